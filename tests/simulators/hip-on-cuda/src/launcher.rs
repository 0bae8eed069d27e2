//! The launcher's work: a directory with the library under AMD's names, and the command in place of this process.

use std::{
    env, fs, io,
    os::unix::{fs::symlink, process::CommandExt},
    path::{Path, PathBuf},
    process::{Command, ExitCode},
};

/// The names under which programs and backends look for HIP and hipRTC.
const NAMES: [&str; 8] = [
    "libamdhip64.so",
    "libamdhip64.so.5",
    "libamdhip64.so.6",
    "libamdhip64.so.7",
    "libhiprtc.so",
    "libhiprtc.so.5",
    "libhiprtc.so.6",
    "libhiprtc.so.7",
];

/// Runs the command in the arguments.
pub(crate) fn launch() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("hip-on-cuda: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> io::Result<()> {
    let mut arguments = env::args_os().skip(1);
    let Some(command) = arguments.next() else {
        let usage = "usage: hip-on-cuda COMMAND [ARGUMENT ..] | hip-on-cuda --library-path";
        return Err(io::Error::other(usage));
    };
    let directory = library_directory(&env::current_exe()?)?;
    if command == "--library-path" {
        println!("{}", directory.display());
        return Ok(());
    }
    let mut path = directory.into_os_string();
    if let Some(rest) = env::var_os("LD_LIBRARY_PATH").filter(|rest| !rest.is_empty()) {
        path.push(":");
        path.push(rest);
    }
    // Comes back only if the command cannot be started.
    Err(Command::new(command).args(arguments).env("LD_LIBRARY_PATH", path).exec())
}

/// A directory that holds nothing but the library under AMD's names. All are one file, so that one copy is loaded
/// whichever of them a program asks for.
fn library_directory(program: &Path) -> io::Result<PathBuf> {
    let built = program.parent().unwrap_or(Path::new("."));
    let candidates = [built.join("deps/libhip_on_cuda.so"), built.join("libhip_on_cuda.so")];
    let library = candidates
        .iter()
        .find(|path| path.exists())
        .ok_or_else(|| io::Error::other(format!("libhip_on_cuda.so is not in {}", built.display())))?;
    let directory = built.join("hip-on-cuda-lib");
    fs::create_dir_all(&directory)?;
    for name in NAMES {
        let link = directory.join(name);
        if fs::read_link(&link).ok().as_ref() != Some(library) {
            // Renamed into place, because others may be using it.
            let own = directory.join(format!("{name}.{}", std::process::id()));
            symlink(library, &own)?;
            fs::rename(own, link)?;
        }
    }
    Ok(directory)
}
