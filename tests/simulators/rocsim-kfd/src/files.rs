//! The C library's functions on files. What is not the simulator's goes to the kernel, or to the C library's function
//! of the same name.

use crate::set_errno;
use rocsim::kfd;
use std::{
    ffi::{CStr, CString, c_char, c_int, c_ulong, c_void},
    mem::transmute,
    ptr::null_mut,
    sync::{
        Mutex,
        atomic::{AtomicPtr, Ordering},
    },
};

/// The C library's function of a name, looked up once.
struct Real {
    name: &'static CStr,
    address: AtomicPtr<c_void>,
}

impl Real {
    const fn new(name: &'static CStr) -> Self {
        Self { name, address: AtomicPtr::new(null_mut()) }
    }

    fn address(&self) -> *mut c_void {
        let known = self.address.load(Ordering::Acquire);
        if !known.is_null() {
            return known;
        }
        // SAFETY: the name is a C string; the next library that has it is the C library.
        let found = unsafe { libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr()) };
        self.address.store(found, Ordering::Release);
        found
    }
}

/// The path in a C string.
///
/// # Safety
/// `path` is null or a C string.
unsafe fn path_of<'a>(path: *const c_char) -> Option<&'a CStr> {
    // SAFETY: the caller's promise; not null.
    (!path.is_null()).then(|| unsafe { CStr::from_ptr(path) })
}

/// # Safety
/// `path` is null or a C string.
unsafe fn open_any(path: *const c_char, flags: c_int, mode: libc::mode_t) -> c_int {
    // SAFETY: the caller's promise.
    if let Some(file) = unsafe { path_of(path) }.and_then(kfd::open) {
        return file;
    }
    // SAFETY: the arguments are the caller's.
    unsafe { libc::syscall(libc::SYS_openat, libc::AT_FDCWD, path, flags, mode) as c_int }
}

/// # Safety
/// As the C library's function.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn open(path: *const c_char, flags: c_int, mode: libc::mode_t) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { open_any(path, flags, mode) }
}

/// # Safety
/// As the C library's function.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn open64(path: *const c_char, flags: c_int, mode: libc::mode_t) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { open_any(path, flags | libc::O_LARGEFILE, mode) }
}

/// # Safety
/// As the C library's function.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn ioctl(file: c_int, request: c_ulong, argument: *mut c_void) -> c_int {
    // SAFETY: the caller passes what the request needs.
    match unsafe { kfd::request(file, request, argument) } {
        Some(Ok(())) => 0,
        Some(Err(error)) => {
            set_errno(error);
            -1
        }
        // SAFETY: the arguments are the caller's.
        None => unsafe { libc::syscall(libc::SYS_ioctl, file, request, argument) as c_int },
    }
}

/// # Safety
/// As the C library's function.
unsafe fn map_any(
    address: *mut c_void,
    bytes: usize,
    protection: c_int,
    flags: c_int,
    file: c_int,
    offset: i64,
) -> *mut c_void {
    let map = |file: c_int, offset: i64, is_seen: bool| {
        let protection = if is_seen { protection } else { libc::PROT_NONE };
        // SAFETY: the caller's promise; the file is the one that the caller means.
        unsafe {
            libc::syscall(libc::SYS_mmap, address, bytes, protection, flags, file, offset) as *mut c_void
        }
    };
    let simulated = if file >= 0 { kfd::map(file, offset, map) } else { None };
    simulated.unwrap_or_else(|| map(file, offset, true))
}

/// # Safety
/// As the C library's function.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn mmap(
    address: *mut c_void,
    bytes: usize,
    protection: c_int,
    flags: c_int,
    file: c_int,
    offset: i64,
) -> *mut c_void {
    // SAFETY: the caller's promise.
    unsafe { map_any(address, bytes, protection, flags, file, offset) }
}

/// # Safety
/// As the C library's function.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn mmap64(
    address: *mut c_void,
    bytes: usize,
    protection: c_int,
    flags: c_int,
    file: c_int,
    offset: i64,
) -> *mut c_void {
    // SAFETY: the caller's promise.
    unsafe { map_any(address, bytes, protection, flags, file, offset) }
}

/// A stream that reads a text.
fn stream_of(text: &str) -> *mut libc::FILE {
    // SAFETY: the name is a C string.
    let file = unsafe { libc::memfd_create(c"rocsim-text".as_ptr(), libc::MFD_CLOEXEC) };
    if file < 0 {
        return null_mut();
    }
    // SAFETY: the descriptor is ours and goes to the stream; the text has that many bytes, fewer than a pipe would take.
    unsafe {
        libc::pwrite(file, text.as_ptr().cast(), text.len(), 0);
        libc::fdopen(file, c"r".as_ptr())
    }
}

/// # Safety
/// As the C library's function.
unsafe fn fopen_any(real: &Real, path: *const c_char, mode: *const c_char) -> *mut libc::FILE {
    // SAFETY: the caller's promise.
    let text = unsafe { path_of(path) }.and_then(|path| kfd::text(path.to_str().ok()?));
    if let Some(text) = text {
        return stream_of(&text);
    }
    type Fopen = unsafe extern "C" fn(*const c_char, *const c_char) -> *mut libc::FILE;
    let address = real.address();
    if address.is_null() {
        set_errno(libc::ENOSYS);
        return null_mut();
    }
    // SAFETY: the C library's function of the name has this type; the arguments are the caller's.
    unsafe { transmute::<*mut c_void, Fopen>(address)(path, mode) }
}

/// # Safety
/// As the C library's function.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn fopen(path: *const c_char, mode: *const c_char) -> *mut libc::FILE {
    static REAL: Real = Real::new(c"fopen");
    // SAFETY: the caller's promise.
    unsafe { fopen_any(&REAL, path, mode) }
}

/// # Safety
/// As the C library's function.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn fopen64(path: *const c_char, mode: *const c_char) -> *mut libc::FILE {
    static REAL: Real = Real::new(c"fopen64");
    // SAFETY: the caller's promise.
    unsafe { fopen_any(&REAL, path, mode) }
}

/// A folder of the simulator's that is being read.
struct Folder {
    names: std::vec::IntoIter<String>,
    /// The answer to the last question, which lives until the next one.
    entry: Box<libc::dirent>,
}

/// The simulator's folders that are open, by the addresses of their entries, which are what callers hold.
static FOLDERS: Mutex<Vec<Folder>> = Mutex::new(Vec::new());

impl Folder {
    fn handle(&self) -> *mut libc::DIR {
        (&raw const *self.entry).cast_mut().cast()
    }
}

/// Does something with the open folder of a handle, if it is one of the simulator's.
fn with_folder<R>(handle: *mut libc::DIR, act: impl FnOnce(&mut Vec<Folder>, usize) -> R) -> Option<R> {
    let mut folders = FOLDERS.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let index = folders.iter().position(|folder| folder.handle() == handle)?;
    Some(act(&mut folders, index))
}

/// # Safety
/// As the C library's function.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn opendir(path: *const c_char) -> *mut libc::DIR {
    static REAL: Real = Real::new(c"opendir");
    // SAFETY: the caller's promise.
    let names = unsafe { path_of(path) }.and_then(|path| kfd::folder(path.to_str().ok()?));
    if let Some(names) = names {
        // SAFETY: all-zero bytes are a value of the structure.
        let folder = Folder { names: names.into_iter(), entry: Box::new(unsafe { std::mem::zeroed() }) };
        let handle = folder.handle();
        FOLDERS.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(folder);
        return handle;
    }
    type Opendir = unsafe extern "C" fn(*const c_char) -> *mut libc::DIR;
    // SAFETY: the C library has a function of this name and type; the argument is the caller's.
    unsafe { transmute::<*mut c_void, Opendir>(REAL.address())(path) }
}

/// Puts the next name into a folder's entry, and returns its address; null at the end.
fn next_entry(folder: &mut Folder) -> *mut libc::dirent {
    let Some(name) = folder.names.next().and_then(|name| CString::new(name).ok()) else { return null_mut() };
    folder.entry.d_ino = 1;
    folder.entry.d_type = libc::DT_DIR;
    folder.entry.d_reclen = size_of::<libc::dirent>() as u16;
    for (to, from) in folder.entry.d_name.iter_mut().zip(name.as_bytes_with_nul()) {
        *to = *from as c_char;
    }
    &raw mut *folder.entry
}

/// # Safety
/// As the C library's function.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn readdir(handle: *mut libc::DIR) -> *mut libc::dirent {
    static REAL: Real = Real::new(c"readdir");
    let simulated =
        with_folder(handle, |folders, index| folders.get_mut(index).map_or(null_mut(), next_entry));
    type Readdir = unsafe extern "C" fn(*mut libc::DIR) -> *mut libc::dirent;
    // SAFETY: the C library has a function of this name and type; the argument is the caller's.
    simulated.unwrap_or_else(|| unsafe { transmute::<*mut c_void, Readdir>(REAL.address())(handle) })
}

/// # Safety
/// As the C library's function.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn closedir(handle: *mut libc::DIR) -> c_int {
    static REAL: Real = Real::new(c"closedir");
    if with_folder(handle, |folders, index| drop(folders.swap_remove(index))).is_some() {
        return 0;
    }
    type Closedir = unsafe extern "C" fn(*mut libc::DIR) -> c_int;
    // SAFETY: the C library has a function of this name and type; the argument is the caller's.
    unsafe { transmute::<*mut c_void, Closedir>(REAL.address())(handle) }
}
