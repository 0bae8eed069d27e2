//! Files that are written: where they come to lie, who may read them, and whose they are.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use gpumem_core::{ErrorKind, FileFailure, Result};
use gpumem_host::Host;
use gpumem_runtime::{Device, FileView, NewFile};
use ndarray::Ix1;
use std::{
    env, fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::Path,
};

fn save(path: impl AsRef<Path>, bytes: &[u8]) -> Result<()> {
    let file = NewFile::create(path, bytes.len() as u64)?;
    file.write_at(0, bytes)?;
    file.commit()
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

/// Runs `body` in a forked child. Its answer is the child's.
fn in_a_child(body: impl FnOnce() -> bool) -> bool {
    // SAFETY: the child calls nothing that another thread may have locked, and leaves by `_exit`.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0, "fork failed");
    if pid == 0 {
        // SAFETY: a hang ends by a signal, and the child at once.
        unsafe {
            libc::alarm(60);
            libc::_exit(if body() { 0 } else { 1 });
        }
    }
    let mut status = 0;
    // SAFETY: our own child, and a valid place for its status.
    let waited = unsafe { libc::waitpid(pid, &raw mut status, 0) };
    waited == pid && status == 0
}

fn is_forked(result: Result<()>) -> bool {
    result.is_err_and(|error| *error.kind() == ErrorKind::ForkedChild)
}

#[test]
fn a_file_is_its_creators() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x");
    fs::write(&path, b"old").unwrap();
    let mut file = Some(NewFile::create(&path, 3).unwrap());
    for commits in [false, true] {
        assert!(in_a_child(|| {
            let file = file.take().unwrap();
            let is_refused = is_forked(file.write_at(0, b"bad")) && is_forked(file.sync());
            is_refused && (!commits || is_forked(file.commit()))
        }));
        assert_eq!(fs::read(&path).unwrap(), b"old");
    }
    let file = file.unwrap();
    file.write_at(0, b"new").unwrap();
    file.commit().unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"new");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

/// The other tests use absolute paths.
#[test]
fn a_relative_path_is_that_of_the_beginning() {
    let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    env::set_current_dir(one.path()).unwrap();
    let (kept, dropped) = (NewFile::create("x", 3).unwrap(), NewFile::create("y", 3).unwrap());
    env::set_current_dir(other.path()).unwrap();
    kept.write_at(0, b"new").unwrap();
    kept.commit().unwrap();
    drop(dropped);
    env::set_current_dir("/").unwrap();
    assert_eq!(fs::read(one.path().join("x")).unwrap(), b"new");
    let files = [&one, &other].map(|folder| fs::read_dir(folder.path()).unwrap().count());
    assert_eq!(files, [1, 0]);
}

#[test]
fn names_may_be_as_long_as_the_system_allows() {
    let folder = tempfile::tempdir().unwrap();
    for length in [1, 230, 243, 255] {
        let path = folder.path().join("n".repeat(length));
        save(&path, b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new", "{length}");
    }
    assert!(save(folder.path().join("n".repeat(256)), b"new").is_err());
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 4);
}

#[test]
fn a_file_that_is_replaced_keeps_its_permissions() {
    let folder = tempfile::tempdir().unwrap();
    let (path, link) = (folder.path().join("x"), folder.path().join("link"));
    for permissions in [0o600, 0o640, 0o666, 0o400] {
        fs::write(&path, b"old").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(permissions)).unwrap();
        let file = NewFile::create(&path, 3).unwrap();
        let modes = fs::read_dir(folder.path()).unwrap().map(|entry| mode(&entry.unwrap().path()));
        assert!(modes.into_iter().all(|mode| mode == permissions), "before anything is written");
        file.write_at(0, b"new").unwrap();
        file.commit().unwrap();
        assert_eq!((fs::read(&path).unwrap(), mode(&path)), (b"new".to_vec(), permissions));
        fs::remove_file(&path).unwrap();
    }
    // A link is replaced by a file which no one else may read.
    fs::write(&path, b"old").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    symlink(&path, &link).unwrap();
    save(&link, b"new").unwrap();
    assert_eq!((fs::read(&path).unwrap(), fs::read(&link).unwrap()), (b"old".to_vec(), b"new".to_vec()));
    assert!(!link.is_symlink() && mode(&link) == 0o600);
}

#[test]
fn what_may_still_be_written_is_read_and_no_source_of_copies() {
    let folder = tempfile::tempdir().unwrap();
    let file = NewFile::create(folder.path().join("x"), 4).unwrap();
    file.write_at(0, &[1, 2, 3, 4]).unwrap();
    let mut bytes = [0; 4];
    file.written().read_at(0, &mut bytes).unwrap();
    assert_eq!(bytes, [1, 2, 3, 4]);
    let view = FileView::<u8, Ix1>::new(file.written(), 0, 4).unwrap();
    let refused = Device::<Host>::open("host").unwrap().to_device(&view).unwrap_err();
    let ErrorKind::File(error) = refused.kind() else { panic!("{refused}") };
    assert_eq!(error.failure, FileFailure::Changed);
}
