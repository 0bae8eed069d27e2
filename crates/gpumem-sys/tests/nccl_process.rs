//! Tests that a process uses one copy of NCCL: the one that was loaded before.
//!
//! A loaded library stays in the process, so each case runs in a child process: this program again, with one test.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod mock;

use gpumem_sys::nccl::{Engine, Environment, Library, LoadError, Places, Refusal, Version, load};
use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

/// Set in the process of a case: the file that another library of the process has loaded.
const LOADED: &str = "GPUMEM_TEST_LOADED";

/// Runs this test again in a process that finds `found` on the loader's path and, if `loaded` is given, has that loaded.
/// Whether this is not that process.
fn again(test: &str, found: &Path, loaded: Option<&Path>, named: Option<&Path>) -> bool {
    if env::var_os(LOADED).is_some() {
        return false;
    }
    let mut command = Command::new(env::current_exe().unwrap());
    command.args([test, "--exact", "--nocapture"]);
    command.env("LD_LIBRARY_PATH", found.parent().unwrap()).env(LOADED, loaded.unwrap_or(Path::new("")));
    command.env_remove("GPUMEM_NCCL");
    if let Some(path) = named {
        command.env("GPUMEM_NCCL", path);
    }
    let done = command.output().unwrap();
    let output = String::from_utf8_lossy(&done.stdout) + String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success() && output.contains("1 passed"), "{output}");
    true
}

/// Loads as another library would, then as the crate does.
fn load_after_others() -> Result<Library, LoadError> {
    let before = env::var_os(LOADED).filter(|path| !path.is_empty());
    if let Some(path) = before {
        // SAFETY: the mock runs nothing when it is loaded.
        std::mem::forget(unsafe { libloading::Library::new(path) }.unwrap());
    }
    load(&Places::from_environment(Engine::Nccl))
}

fn new(test: &str) -> PathBuf {
    mock::build(
        "nccl",
        &[("nccl", "2.32.3")],
        &format!("process/{test}/new"),
        "libnccl.so.2",
        Some("libnccl.so.2"),
    )
}

fn other(test: &str, file: &str, version: &str, soname: Option<&str>) -> PathBuf {
    mock::build("nccl", &[("nccl", version)], &format!("process/{test}/other"), file, soname)
}

#[test]
fn the_loaders_copy_is_found() {
    let name = "the_loaders_copy_is_found";
    let found = new(name);
    if again(name, &found, None, None) {
        return;
    }
    let library = load_after_others().unwrap();
    assert_eq!((library.path.as_path(), library.version), (found.as_path(), Version::new(2, 32, 3)));
    assert!(library.other_copies().is_empty());
}

#[test]
fn a_loaded_copy_is_used() {
    let name = "a_loaded_copy_is_used";
    let (found, loaded) = (new(name), other(name, "libnccl.so.2", "2.18.3", Some("libnccl.so.2")));
    if again(name, &found, Some(&loaded), None) {
        return;
    }
    let library = load_after_others().unwrap();
    assert_eq!((library.path.as_path(), library.version), (loaded.as_path(), Version::new(2, 18, 3)));
    assert!(library.other_copies().is_empty());
    // The same one again, and still no second.
    assert_eq!(load(&Places::from_environment(Engine::Nccl)).unwrap().path, loaded);
    assert!(library.other_copies().is_empty());
}

/// The loader does not know such a file by the usual name.
#[test]
fn a_loaded_copy_is_used_under_any_name() {
    let name = "a_loaded_copy_is_used_under_any_name";
    let (found, loaded) = (new(name), other(name, "libnccl.so.2.18.3", "2.18.3", None));
    if again(name, &found, Some(&loaded), None) {
        return;
    }
    let library = load_after_others().unwrap();
    assert_eq!((library.path.as_path(), library.version), (loaded.as_path(), Version::new(2, 18, 3)));
    assert!(library.other_copies().is_empty());
}

#[test]
fn no_second_copy_is_loaded_if_the_loaded_one_is_too_old() {
    let name = "no_second_copy_is_loaded_if_the_loaded_one_is_too_old";
    let (found, loaded) = (new(name), other(name, "libnccl.so.2", "2.17.1", Some("libnccl.so.2")));
    if again(name, &found, Some(&loaded), None) {
        return;
    }
    let error = load_after_others().unwrap_err();
    let told = &error.telling().unwrap().refusal;
    assert_eq!(told, &Refusal::Version { found: "2.17.1".to_owned(), oldest: "2.18.1".to_owned() });
    assert_eq!(error.attempts.len(), 1, "{error}");
    // Checked by the loader's list, not by this program's own test of names.
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    assert!(maps.contains(loaded.to_str().unwrap()) && !maps.contains(found.to_str().unwrap()), "{maps}");
}

#[test]
fn two_loaded_copies_are_reported() {
    let name = "two_loaded_copies_are_reported";
    let (found, loaded) = (new(name), other(name, "libnccl.so.2", "2.18.3", Some("libnccl.so.2")));
    if again(name, &found, Some(&loaded), Some(&found)) {
        return;
    }
    let library = load_after_others().unwrap();
    assert_eq!((library.path.as_path(), library.version), (found.as_path(), Version::new(2, 32, 3)));
    assert_eq!(library.other_copies(), [loaded]);
}

#[test]
fn a_folder_of_the_program_is_looked_into_after_the_loaders() {
    let name = "a_folder_of_the_program_is_looked_into_after_the_loaders";
    let (found, packaged) = (new(name), other(name, "libnccl.so.2", "2.18.3", Some("libnccl.so.2")));
    let nowhere = PathBuf::from("/nowhere/libnccl.so.2");
    if again(name, &nowhere, None, None) {
        assert!(again(name, &found, None, None));
        return;
    }
    let is_there = env::var_os("LD_LIBRARY_PATH").unwrap() == found.parent().unwrap();
    let folders = vec![packaged.parent().unwrap().to_owned()];
    let environment = Environment { folders, ..Environment::current(Engine::Nccl) };
    let library = load(&Places::new(Engine::Nccl, &environment)).unwrap();
    assert_eq!(library.path, if is_there { found } else { packaged });
}
