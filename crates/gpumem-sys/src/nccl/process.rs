//! Copies of a library that the process has loaded already.
//!
//! Two copies in one process do not share communicators, and both take the GPU's resources. So the copy of PyTorch,
//! CuPy or another library is used, instead of loading a second one.

use libloading::Library;
use std::{ffi::c_void, path::PathBuf};

#[cfg(target_os = "linux")]
use std::{
    ffi::{CStr, OsStr, c_int},
    os::unix::ffi::OsStrExt,
    path::Path,
};

/// The files that the process has loaded and whose name begins so, in the order in which they were loaded.
#[cfg(target_os = "linux")]
pub(crate) fn files(prefix: &str) -> Vec<PathBuf> {
    struct Search<'a> {
        prefix: &'a [u8],
        found: Vec<PathBuf>,
    }

    unsafe extern "C" fn visit(info: *mut libc::dl_phdr_info, _: usize, data: *mut c_void) -> c_int {
        // SAFETY: the loader gives a valid description, and `data` is the search below.
        let (name, search) = unsafe { ((*info).dlpi_name, &mut *data.cast::<Search<'_>>()) };
        if !name.is_null() {
            // SAFETY: the loader's names end with a zero, and live during this call.
            let path = Path::new(OsStr::from_bytes(unsafe { CStr::from_ptr(name) }.to_bytes()));
            if path.file_name().is_some_and(|name| name.as_bytes().starts_with(search.prefix)) {
                search.found.push(path.to_owned());
            }
        }
        0
    }

    let mut search = Search { prefix: prefix.as_bytes(), found: Vec::new() };
    // SAFETY: `visit` has the signature that the loader calls, and does not unwind.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut search).cast()) };
    search.found
}

/// Opens a library only if it is loaded already.
#[cfg(target_os = "linux")]
pub(crate) fn open_loaded(name: &Path) -> Option<Library> {
    use libloading::os::unix::{Library as Unix, RTLD_NOW};
    // SAFETY: nothing is loaded, so that nothing of the library runs.
    unsafe { Unix::open(Some(name), RTLD_NOW | libc::RTLD_NOLOAD) }.ok().map(Library::from)
}

/// The file that a function of a library was loaded from.
#[cfg(target_os = "linux")]
pub(crate) fn file_of(function: *const c_void) -> Option<PathBuf> {
    let mut info = std::mem::MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: a place for the description; the address is only looked up.
    let found = unsafe { libc::dladdr(function, info.as_mut_ptr()) } != 0;
    // SAFETY: zeros are a description too: that of nothing.
    let name = unsafe { info.assume_init() }.dli_fname;
    // SAFETY: the loader's names end with a zero, and live as long as the library.
    let name = (found && !name.is_null()).then(|| unsafe { CStr::from_ptr(name) });
    name.map(|name| PathBuf::from(OsStr::from_bytes(name.to_bytes())))
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn files(_: &str) -> Vec<PathBuf> {
    Vec::new()
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn open_loaded(_: &std::path::Path) -> Option<Library> {
    None
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn file_of(_: *const c_void) -> Option<PathBuf> {
    None
}

#[cfg(all(test, target_os = "linux", not(miri)))]
mod tests {
    use super::*;

    #[test]
    fn a_loaded_library_is_found_without_loading_another() {
        let [c] = files("libc.so").try_into().unwrap();
        assert!(c.is_absolute(), "{}", c.display());
        assert!(open_loaded(Path::new("libc.so.6")).is_some() && open_loaded(&c).is_some());
        assert_eq!(file_of(libc::getpid as *const c_void), Some(c));
        assert!(files("libgpumem-nowhere").is_empty());
        assert!(open_loaded(Path::new("libgpumem-nowhere.so")).is_none());
        assert_eq!(file_of(std::ptr::null()), None);
    }
}
