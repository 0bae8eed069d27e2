//! The device files: descriptors that the simulator knows again, and memory that is mapped from them.

use crate::{
    config::Config,
    engine::{self, DOORBELLS_BYTES},
    exports, memory,
};
use std::{
    ffi::{CStr, c_int, c_void},
    fs::File,
    os::{
        fd::{AsRawFd, RawFd},
        unix::fs::MetadataExt,
    },
    sync::OnceLock,
};

/// Offsets of memory are its address, of doorbells the GPU's number, each with its mark.
const MEMORY: u64 = 1 << 62;
const DOORBELLS: u64 = 1 << 61;

/// With the mark of memory: the host cannot see it. Its addresses are mapped, without access.
const UNSEEN: u64 = 1 << 60;

/// The number of the first render node.
const FIRST_RENDER_NODE: u32 = 128;

/// The offset by which the host maps the memory at an address of the GPUs.
pub(super) fn memory_offset(address: u64) -> u64 {
    MEMORY | address
}

/// The offset by which the host maps memory of the GPUs that it cannot see.
pub(super) fn unseen_offset(address: u64) -> u64 {
    UNSEEN | memory_offset(address)
}

/// The offset by which the host maps the doorbells of a GPU.
pub(super) fn doorbell_offset(node: u32) -> u64 {
    DOORBELLS | (u64::from(node) * DOORBELLS_BYTES)
}

/// A device file, known by its number in the file system.
struct DeviceFile {
    file: File,
    number: (u64, u64),
}

/// `/dev/kfd`, then the render nodes of the GPUs.
fn devices() -> &'static [DeviceFile] {
    static DEVICES: OnceLock<Vec<DeviceFile>> = OnceLock::new();
    DEVICES.get_or_init(|| {
        let device = |node: u32| {
            let file = memory::memory_file(0, node).ok()?;
            let number = file.metadata().map(|data| (data.dev(), data.ino())).ok()?;
            Some(DeviceFile { file, number })
        };
        (0..=Config::get().gpus).map_while(device).collect()
    })
}

/// Opens a device file of the simulated machine. `None` for any other path; a descriptor, or less than 0 where there is
/// none left.
pub fn open(path: &CStr) -> Option<c_int> {
    let path = path.to_str().ok()?;
    let node = match path.strip_prefix("/dev/dri/renderD") {
        Some(number) => number.parse::<u32>().ok()?.checked_sub(FIRST_RENDER_NODE)? + 1,
        None if path == "/dev/kfd" => 0,
        None => return None,
    };
    let device = devices().get(node as usize)?;
    exports::note_opened();
    // SAFETY: duplicates a descriptor of the simulator.
    Some(unsafe { libc::fcntl(device.file.as_raw_fd(), libc::F_DUPFD_CLOEXEC, 3) })
}

/// The node of an open device file, 0 for `/dev/kfd`; `None` for other descriptors.
pub(super) fn node_of(file: RawFd) -> Option<u32> {
    // SAFETY: all-zero bytes are a value of the structure.
    let mut status: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: writes one structure that is ours.
    if unsafe { libc::fstat(file, &mut status) } != 0 {
        return None;
    }
    let number = (status.st_dev, status.st_ino);
    devices().iter().position(|device| device.number == number).map(|node| node as u32)
}

/// Maps memory of a device file: `call` maps a file at an offset, without access if the last argument is false. `None` if
/// the file and the offset are not the simulator's.
pub fn map(
    file: RawFd,
    offset: i64,
    call: impl FnOnce(RawFd, i64, bool) -> *mut c_void,
) -> Option<*mut c_void> {
    let offset = u64::try_from(offset).ok().filter(|offset| offset & (MEMORY | DOORBELLS) != 0)?;
    node_of(file)?;
    if offset & MEMORY != 0 {
        let is_seen = offset & UNSEEN == 0;
        memory::with_file(offset & !(MEMORY | UNSEEN), |file, inside| call(file, inside as i64, is_seen))
    } else {
        let node = (offset & !DOORBELLS) / DOORBELLS_BYTES;
        engine::with_doorbells(node as u32, |file| call(file, 0, true))
    }
}
