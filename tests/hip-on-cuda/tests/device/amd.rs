//! AMD's own library passes the same tests on a simulated GPU.

use crate::hip::UNDER_TEST;
use std::{
    env, fs,
    os::unix::fs::symlink,
    path::Path,
    process::{Command, Stdio},
};

const AMDS: &str = "libamdhip64.so.5";

#[test]
fn amds_library_agrees_on_a_simulated_gpu() {
    if env::var_os(UNDER_TEST).is_some() {
        return;
    }
    let program = env::current_exe().unwrap();
    let simulator = program.with_file_name("librocsim.so");
    if !simulator.exists() {
        println!("skipped: {} is not there", simulator.display());
        return;
    }
    // SAFETY: initialisers of AMD's libraries have no preconditions.
    if let Err(error) = unsafe { libloading::Library::new(AMDS) } {
        assert!(env::var_os("ROCSIM_REQUIRE").is_none(), "{AMDS} is required: {error}");
        println!("skipped: {AMDS} is not installed ({error})");
        return;
    }
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("amd");
    fs::create_dir_all(&directory).unwrap();
    let link = directory.join("libhsakmt.so.1");
    if fs::read_link(&link).ok().as_ref() != Some(&simulator) {
        let _ = fs::remove_file(&link);
        symlink(&simulator, &link).unwrap();
    }
    // Each test in a process of its own would cost a start of the runtime each time; one process has two devices.
    let output = Command::new(program)
        .args(["--test-threads=1", "--skip", "amds_library_agrees"])
        .env(UNDER_TEST, AMDS)
        .env("LD_LIBRARY_PATH", &directory)
        .envs([("ROCSIM_GPUS", "2"), ("ROCSIM_LARGE_BAR", "1")])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}\n{text}", output.status);
    assert!(text.contains("test result: ok") && !text.contains(" 0 passed"), "{text}");
}
