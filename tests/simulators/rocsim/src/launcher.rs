//! The launcher's work: a directory with the library under AMD's name, and the command in place of this process.

use crate::newer;
use std::{
    env, fs, io,
    os::unix::{fs::symlink, process::CommandExt},
    path::{Path, PathBuf},
    process::{Command, ExitCode},
};

/// The name under which AMD's runtime looks for the library.
const NAME: &str = "libhsakmt.so.1";

const USAGE: &str = "usage: rocsim COMMAND [ARGUMENT ..] | rocsim --rocm FOLDER PROGRAM [ARGUMENT ..] | \
                     rocsim --library-path";

/// Runs the command in the arguments.
pub(crate) fn launch() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("rocsim: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> io::Result<()> {
    let mut arguments = env::args_os().skip(1);
    let Some(command) = arguments.next() else {
        return Err(io::Error::other(USAGE));
    };
    if command == "--rocm" {
        let (Some(folder), Some(program)) = (arguments.next(), arguments.next()) else {
            return Err(io::Error::other(USAGE));
        };
        return Err(newer::run(Path::new(&folder), Path::new(&program), arguments));
    }
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

/// A directory that holds nothing but the simulator under AMD's name.
fn library_directory(program: &Path) -> io::Result<PathBuf> {
    let built = program.parent().unwrap_or(Path::new("."));
    let candidates = [built.join("deps/librocsim.so"), built.join("librocsim.so")];
    let library = candidates
        .iter()
        .find(|path| path.exists())
        .ok_or_else(|| io::Error::other(format!("librocsim.so is not in {}", built.display())))?;
    let directory = built.join("rocsim-lib");
    fs::create_dir_all(&directory)?;
    let link = directory.join(NAME);
    if fs::read_link(&link).ok().as_ref() != Some(library) {
        // Renamed into place, because others may be using it.
        let own = directory.join(format!("{}.link", std::process::id()));
        symlink(library, &own)?;
        fs::rename(own, link)?;
    }
    Ok(directory)
}
