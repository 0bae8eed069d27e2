//! The same tests where there is no NVIDIA GPU: on AMD's own library over a simulated GPU, and on ours over a double of
//! the CUDA driver.

use crate::hip::{DOUBLE, UNDER_TEST};
use rocsim::installed::{Part, is_skipped};
use std::{
    env, fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

const AMDS: &str = "libamdhip64.so.5";

/// Whether this process is one of those that are started here.
fn is_child() -> bool {
    env::var_os(UNDER_TEST).is_some() || env::var_os(DOUBLE).is_some()
}

/// A directory in which a library has another name.
fn directory(name: &str, library: &Path, alias: &str) -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::create_dir_all(&directory).unwrap();
    let link = directory.join(alias);
    if fs::read_link(&link).ok().as_deref() != Some(library) {
        let _ = fs::remove_file(&link);
        symlink(library, &link).unwrap();
    }
    directory
}

/// Runs all tests but these in another process, one after the other.
fn run_with(libraries: &Path, variables: &[(&str, &str)]) {
    let output = Command::new(env::current_exe().unwrap())
        .args(["--test-threads=1", "--skip", "elsewhere::"])
        .env("LD_LIBRARY_PATH", libraries)
        .envs(variables.iter().copied())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}\n{text}", output.status);
    assert!(text.contains("test result: ok") && !text.contains(" 0 passed"), "{text}");
}

#[test]
fn amds_library_agrees_on_a_simulated_gpu() {
    if is_child() {
        return;
    }
    let simulator = env::current_exe().unwrap().with_file_name("librocsim.so");
    if !simulator.exists() {
        println!("skipped: {} is not there", simulator.display());
        return;
    }
    if is_skipped(&[Part::Hip]) {
        return;
    }
    let two = [("ROCSIM_GPUS", "2"), ("ROCSIM_LARGE_BAR", "1"), (UNDER_TEST, AMDS)];
    run_with(&directory("amd", &simulator, "libhsakmt.so.1"), &two);
}

#[test]
fn our_library_works_over_a_double_of_the_driver() {
    if is_child() {
        return;
    }
    let double = env::current_exe().unwrap().with_file_name("libcuda_double.so");
    if !double.exists() {
        println!("skipped: {} is not there", double.display());
        return;
    }
    let libraries = directory("double", &double, "libcuda.so.1");
    for version in ["5", "6", "7"] {
        let variables = [(DOUBLE, "1"), ("HIP_ON_CUDA_REQUIRE", "1"), ("HIP_ON_CUDA_VERSION", version)];
        run_with(&libraries, &variables);
    }
    // A library of CUDA's sees the device that HIP has chosen.
    run_with(&libraries, &[(DOUBLE, "1"), ("HIP_ON_CUDA_REQUIRE", "1"), ("HIP_ON_CUDA_CURRENT", "1")]);
}
