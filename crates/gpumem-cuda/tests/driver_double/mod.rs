//! A test program that runs once more, over a double of the driver.

use std::{
    env, fs,
    os::unix::fs::symlink,
    path::Path,
    process::{Command, Stdio},
};

/// Runs the tests of this program in a child process with these variables, whose driver is the double. Prints that they are skipped
/// where it is not built. `directory` is for the program alone.
pub(crate) fn run_again(directory: &str, variables: &[(&str, &str)]) {
    let double = env::current_exe().unwrap().with_file_name("libcuda_double.so");
    if !double.exists() {
        println!("skipped: {} is not there", double.display());
        return;
    }
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(directory);
    fs::create_dir_all(&directory).unwrap();
    for name in ["libcuda.so", "libcuda.so.1"] {
        let link = directory.join(name);
        if fs::read_link(&link).ok().as_deref() != Some(&double) {
            let _ = fs::remove_file(&link);
            symlink(&double, &link).unwrap();
        }
    }
    let child = Command::new(env::current_exe().unwrap())
        .env("LD_LIBRARY_PATH", &directory)
        .envs(variables.iter().copied())
        .stdin(Stdio::null())
        .output();
    let output = child.unwrap();
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    assert!(output.status.success() && text.contains("test result: ok"), "{}\n{text}", output.status);
}
