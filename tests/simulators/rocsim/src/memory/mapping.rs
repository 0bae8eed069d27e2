//! Address space of the process, released when it is dropped.

use crate::abi::PAGE;
use parking_lot::Mutex;
use std::{
    collections::VecDeque,
    fs::File,
    io,
    os::fd::{AsRawFd, FromRawFd},
    ptr::NonNull,
};

/// A range of addresses that this library has mapped.
#[derive(Debug)]
pub(super) struct Mapping {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: a mapping is only an address range; its bytes are accessed through raw pointers.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Addresses that fault for the host.
    pub(super) fn reserve(bytes: usize) -> io::Result<Self> {
        Self::map(bytes, libc::PROT_NONE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE, -1)
    }

    /// Maps new readable and writable memory.
    pub(super) fn anonymous(bytes: usize, executable: bool) -> io::Result<Self> {
        let protection = libc::PROT_READ | libc::PROT_WRITE | if executable { libc::PROT_EXEC } else { 0 };
        Self::map(bytes, protection, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1)
    }

    /// A view of a memory file.
    pub(super) fn of_file(file: &File, bytes: usize) -> io::Result<Self> {
        Self::map(bytes, libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED, file.as_raw_fd())
    }

    fn map(bytes: usize, protection: i32, flags: i32, fd: i32) -> io::Result<Self> {
        // SAFETY: a new mapping at an address that the kernel chooses touches no other memory.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), bytes, protection, flags, fd, 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        // As the driver does for its buffers: a forked child must not see memory of the GPU.
        // SAFETY: the range was just mapped. That the advice can fail changes nothing for this process.
        unsafe { libc::madvise(start, bytes, libc::MADV_DONTFORK) };
        let start = NonNull::new(start.cast()).ok_or_else(|| io::Error::other("mapped at address 0"))?;
        Ok(Self { start, bytes })
    }

    pub(super) fn start(&self) -> *mut u8 {
        self.start.as_ptr()
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the range was mapped by us, and every user of it holds the `Backing` that owns this.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

/// Addresses that were released last. They are not used again for a while, so that a late access is a fault and does
/// not hit other memory.
static QUARANTINE: Mutex<VecDeque<Mapping>> = Mutex::new(VecDeque::new());

/// How many ranges are kept from being used again. Only addresses are kept, no memory.
const QUARANTINED: usize = 512;

impl Mapping {
    /// Gives the memory back, and the addresses later.
    pub(super) fn retire(self) {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED;
        let start = self.start.as_ptr().cast();
        // SAFETY: replaces our own mapping, which is not used any more.
        if unsafe { libc::mmap(start, self.bytes, libc::PROT_NONE, flags, -1, 0) } == libc::MAP_FAILED {
            return;
        }
        let mut quarantine = QUARANTINE.lock();
        quarantine.push_back(self);
        if quarantine.len() > QUARANTINED {
            quarantine.pop_front();
        }
    }
}

/// A new memory file of that length for memory of a node, all zero. Its name tells other processes the node. A page
/// follows the memory, for what is said of it ([`drm`](crate::kfd::drm)).
pub(crate) fn memory_file(bytes: u64, node: u32) -> io::Result<File> {
    let name = std::ffi::CString::new(format!("rocsim-node-{node}"))?;
    // SAFETY: the name is a C string.
    let fd = unsafe { libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new and ours.
    let file = unsafe { File::from_raw_fd(fd) };
    file.set_len(bytes + PAGE)?;
    Ok(file)
}
