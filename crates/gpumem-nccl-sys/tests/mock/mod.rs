//! Builds the mock libraries with the compiler that builds the tests.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

/// Builds `<folder>/<file>` as that version, with a different name for the system's loader if one is given.
pub(crate) fn build(folder: &str, file: &str, version: &str, soname: Option<&str>) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(folder);
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mock/library.rs");
    std::fs::create_dir_all(&folder).unwrap();
    // Other tests, of this program and of others, may be doing the same: each builds its own file, and the last one stays.
    let own = folder.join(format!("{file}.{}.{:?}", std::process::id(), std::thread::current().id()));
    let mut rustc = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    rustc.args(["--edition", "2024", "--crate-type", "cdylib", "-C", "panic=abort", "-O"]);
    rustc.args(["--cfg", &format!("nccl=\"{version}\""), "--crate-name", "mock_nccl"]);
    if let Some(soname) = soname {
        rustc.args(["-C", &format!("link-arg=-Wl,-soname,{soname}")]);
    }
    let done = rustc.arg("-o").args([&own, &source]).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let path = folder.join(file);
    std::fs::rename(own, &path).unwrap();
    path
}
