//! Builds the mock libraries with the compiler that builds the tests.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

/// Builds `<folder>/<file>` from `tests/mock/<source>.rs` with these values of `cfg`, with a different name for the system's loader if
/// one is given.
pub(crate) fn build(
    source: &str,
    values: &[(&str, &str)],
    folder: &str,
    file: &str,
    soname: Option<&str>,
) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(folder);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/mock/{source}.rs"));
    std::fs::create_dir_all(&folder).unwrap();
    // Other tests, of this program and of others, may be doing the same: each builds its own file, and the last one stays.
    let own = folder.join(format!("{file}.{}.{:?}", std::process::id(), std::thread::current().id()));
    let mut rustc = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    rustc.args(["--edition", "2024", "--crate-type", "cdylib", "-C", "panic=abort", "-O"]);
    rustc.args(["--crate-name", &format!("mock_{source}")]);
    for (name, value) in values {
        rustc.args(["--cfg", &format!("{name}=\"{value}\"")]);
    }
    if let Some(soname) = soname {
        rustc.args(["-C", &format!("link-arg=-Wl,-soname,{soname}")]);
    }
    let done = rustc.arg("-o").args([&own, &path]).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let path = folder.join(file);
    std::fs::rename(own, &path).unwrap();
    path
}
