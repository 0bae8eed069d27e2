//! Programs on a newer ROCm than the system has: its libraries lie in a folder of their own, with the C library that they
//! need, and the simulated kernel driver is preloaded.
//!
//! The dynamic linker must come with its C library, and a program names it by a path. So a copy of the program is made
//! that names the folder's; it is one that can start itself again, as test programs do.

use std::{
    env,
    ffi::OsString,
    fs, io,
    os::unix::{ffi::OsStrExt, fs::PermissionsExt, process::CommandExt},
    path::{Path, PathBuf},
    process::Command,
};

/// The library that is preloaded, as cargo names it.
const PRELOADED: &str = "librocsim_kfd.so";

/// Where Debian's packages have libraries and the dynamic linker.
const LIBRARIES: &str = "usr/lib/x86_64-linux-gnu";
const LINKER: &str = "ld-linux-x86-64.so.2";

/// Replaces this process by the program, with the libraries below a folder. Comes back only with an error.
pub(crate) fn run(folder: &Path, program: &Path, arguments: impl Iterator<Item = OsString>) -> io::Error {
    let start = || -> io::Result<io::Error> {
        let folder = fs::canonicalize(folder)?;
        let preloaded = preloaded(&env::current_exe()?)?;
        let libraries = libraries(&folder)?;
        let copy = with_linker(program, &folder.join(LIBRARIES).join(LINKER))?;
        let path = joined(libraries, "LD_LIBRARY_PATH")?;
        let preload = joined(vec![preloaded], "LD_PRELOAD")?;
        let mut command = Command::new(copy);
        command.args(arguments).env("LD_LIBRARY_PATH", path).env("LD_PRELOAD", preload);
        Ok(command.exec())
    };
    start().unwrap_or_else(|error| error)
}

/// The paths before those that a variable has already.
fn joined(paths: Vec<PathBuf>, variable: &str) -> io::Result<OsString> {
    let before = env::var_os(variable).filter(|value| !value.is_empty());
    let before = before.iter().flat_map(env::split_paths);
    env::join_paths(paths.into_iter().chain(before)).map_err(io::Error::other)
}

/// The simulated kernel driver, built beside this program.
fn preloaded(program: &Path) -> io::Result<PathBuf> {
    let built = program.parent().unwrap_or(Path::new("."));
    let candidates = [built.join("deps").join(PRELOADED), built.join(PRELOADED)];
    let found = candidates.into_iter().find(|path| path.exists());
    found.ok_or_else(|| {
        io::Error::other(format!("{PRELOADED} is not in {}: build rocsim-kfd", built.display()))
    })
}

/// The folders of libraries: the usual one, and LLVM's.
fn libraries(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let usual = folder.join(LIBRARIES);
    if !usual.join(LINKER).exists() {
        return Err(io::Error::other(format!("there is no {LINKER} in {}", usual.display())));
    }
    let mut found = vec![usual];
    for entry in fs::read_dir(folder.join("usr/lib"))? {
        let entry = entry?;
        if entry.file_name().as_bytes().starts_with(b"llvm-") {
            found.push(entry.path().join("lib"));
        }
    }
    Ok(found)
}

/// A copy of a program, beside it, that names another dynamic linker.
fn with_linker(program: &Path, linker: &Path) -> io::Result<PathBuf> {
    let program = fs::canonicalize(program)?;
    let name = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
    // Programs of one name on several versions of ROCm.
    let copy = program.with_file_name(format!("{name}.{:08x}", hash(linker.as_os_str().as_bytes())));
    let age = |path: &Path| fs::metadata(path).and_then(|data| data.modified());
    if age(&copy).is_ok_and(|copied| age(&program).is_ok_and(|made| made < copied)) {
        return Ok(copy);
    }
    let mut code = fs::read(&program)?;
    if !name_linker(&mut code, linker.as_os_str().as_bytes()) {
        let what = format!("{} is not a program with a dynamic linker", program.display());
        return Err(io::Error::other(what));
    }
    // Renamed into place, because others may be using it.
    let own = copy.with_extension(std::process::id().to_string());
    fs::write(&own, code)?;
    fs::set_permissions(&own, fs::Permissions::from_mode(0o755))?;
    fs::rename(own, &copy)?;
    Ok(copy)
}

/// FNV-1a, folded: names need only differ.
fn hash(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}

/// Lets a program for x86-64 Linux name another dynamic linker: the name is appended to the file, and the part of the
/// program that says where it is (`PT_INTERP`) leads there. False if there is no such part.
fn name_linker(code: &mut Vec<u8>, linker: &[u8]) -> bool {
    const INTERPRETER: u64 = 3;
    const IS_ELF64: [u8; 6] = [0x7f, b'E', b'L', b'F', 2, 1];
    let number = |code: &[u8], at: u64, bytes: usize| -> Option<u64> {
        let at = usize::try_from(at).ok()?;
        let mut value = [0; 8];
        value.get_mut(..bytes)?.copy_from_slice(code.get(at..at.checked_add(bytes)?)?);
        Some(u64::from_le_bytes(value))
    };
    let find = |code: &[u8]| {
        let (table, size, count) = (number(code, 32, 8)?, number(code, 54, 2)?, number(code, 56, 2)?);
        let entries = (0..count).map(|index| table.checked_add(index * size));
        let mut entries = entries.map_while(|entry| entry);
        entries.find(|entry| number(code, *entry, 4) == Some(INTERPRETER))
    };
    if !code.starts_with(&IS_ELF64) {
        return false;
    }
    let Some(entry) = find(code).and_then(|entry| usize::try_from(entry).ok()) else { return false };
    let (place, length) = (code.len() as u64, linker.len() as u64 + 1);
    // The place in the file, and the lengths in the file and in memory.
    for (at, value) in [(8, place), (32, length), (40, length)] {
        let Some(field) = code.get_mut(entry + at..entry + at + 8) else { return false };
        field.copy_from_slice(&value.to_le_bytes());
    }
    code.extend_from_slice(linker);
    code.push(0);
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_names_another_linker() {
        let mut code = fs::read(env::current_exe().unwrap()).unwrap();
        let before = code.len();
        assert!(name_linker(&mut code, b"/a/linker"));
        assert_eq!(&code[before..], b"/a/linker\0");
        let place = (before as u64).to_le_bytes();
        assert!(code[..1024].windows(8).any(|bytes| bytes == place), "the table of the program leads to it");
    }

    #[test]
    fn other_files_are_refused() {
        for wrong in [&b""[..], b"#!/bin/sh\n", b"\x7fELF\x02\x01", &[0; 4096]] {
            let mut code = wrong.to_vec();
            assert!(!name_linker(&mut code, b"/a/linker"));
            assert_eq!(code, wrong);
        }
    }
}
