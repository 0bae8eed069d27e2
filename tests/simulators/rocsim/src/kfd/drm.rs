//! The functions of libdrm that AMD's runtime uses: the name of a GPU, and buffers that are shared by descriptors.

use super::{
    device,
    memory::duplicate,
    request::{status, structure},
};
use crate::{abi::PAGE, config::Config, memory};
use parking_lot::Mutex;
use std::{
    ffi::{c_int, c_void},
    os::fd::{AsRawFd, OwnedFd, RawFd},
};

/// A GPU as libdrm knows it.
#[derive(Debug)]
pub struct Device {
    node: u32,
    file: OwnedFd,
}

impl Device {
    /// The GPU whose render node is open under a descriptor.
    pub fn of(file: RawFd) -> Result<Self, c_int> {
        let node = device::node_of(file).filter(|node| *node != 0).ok_or(libc::ENODEV)?;
        Ok(Self { node, file: duplicate(file)? })
    }

    /// The descriptor of its render node.
    pub fn file(&self) -> RawFd {
        self.file.as_raw_fd()
    }

    /// Imports memory by a descriptor.
    pub fn import(&self, file: RawFd) -> Result<Buffer, c_int> {
        let (bytes, _) = memory::file_facts(file).ok_or(libc::EINVAL)?;
        Ok(Buffer { node: self.node, file: duplicate(file)?, bytes })
    }
}

/// `amdgpu_gpu_info`: facts of a GPU.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct GpuInfo {
    asic_id: u32,
    chip_rev: u32,
    chip_external_rev: u32,
    family_id: u32,
    ids_flags: u64,
    max_engine_clk: u64,
    max_memory_clk: u64,
    num_shader_engines: u32,
    unknown: [u32; 7],
    gpu_counter_freq: u32,
    rest: [u32; 85],
}

impl GpuInfo {
    /// The facts of the simulated GPUs.
    pub fn get() -> Self {
        Self {
            asic_id: Config::get().model.device_id.into(),
            chip_rev: 1,
            chip_external_rev: 1,
            family_id: 141,
            ids_flags: 0,
            max_engine_clk: 1_700_000,
            max_memory_clk: 1_000_000,
            num_shader_engines: 4,
            unknown: [0; 7],
            gpu_counter_freq: 1_000_000,
            rest: [0; 85],
        }
    }
}

/// `amdgpu_bo_metadata`: what one process says of a buffer to others.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Metadata {
    flags: u64,
    tiling_info: u64,
    size_metadata: u32,
    umd_metadata: [u32; 64],
}

impl Metadata {
    const NONE: Self = Self { flags: 0, tiling_info: 0, size_metadata: 0, umd_metadata: [0; 64] };

    /// Some words, of which 64 at most are kept.
    pub fn of(words: &[u32]) -> Self {
        let mut metadata = Self { size_metadata: 4 * words.len().min(64) as u32, ..Self::NONE };
        for (to, from) in metadata.umd_metadata.iter_mut().zip(words) {
            *to = *from;
        }
        metadata
    }

    /// The words that were said.
    pub fn words(&self) -> &[u32] {
        self.umd_metadata.get(..self.size_metadata as usize / 4).unwrap_or(&self.umd_metadata)
    }
}

/// `amdgpu_bo_info`: facts of a buffer.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct BufferInfo {
    alloc_size: u64,
    phys_alignment: u64,
    preferred_heap: u32,
    alloc_flags: u64,
    metadata: Metadata,
}

impl BufferInfo {
    /// What a process has said of it.
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }
}

/// Memory that was imported for one GPU.
#[derive(Debug)]
pub struct Buffer {
    node: u32,
    file: OwnedFd,
    bytes: u64,
}

/// How a buffer's addresses change, as libdrm numbers it.
pub const MAP: u32 = 1;
/// See [`MAP`].
pub const UNMAP: u32 = 2;
/// See [`MAP`].
pub const REPLACE: u32 = 4;

/// Buffers that have a number for the kernel driver, which is their place here plus 1.
static NUMBERED: Mutex<Vec<u64>> = Mutex::new(Vec::new());

impl Buffer {
    /// Length in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Its facts, with what a process has said of it.
    pub fn info(&self) -> Result<BufferInfo, c_int> {
        let mut metadata = Metadata::NONE;
        let bytes = size_of::<Metadata>();
        // SAFETY: the structure has that many bytes and holds integers only.
        let read = unsafe {
            libc::pread(self.file.as_raw_fd(), (&raw mut metadata).cast(), bytes, self.bytes as i64)
        };
        if read != bytes as isize {
            return Err(libc::EIO);
        }
        let alloc_size = self.bytes;
        Ok(BufferInfo { alloc_size, phys_alignment: PAGE, preferred_heap: 0, alloc_flags: 0, metadata })
    }

    /// Says something of it to all processes.
    pub fn set_metadata(&self, metadata: &Metadata) -> Result<(), c_int> {
        let bytes = size_of::<Metadata>();
        // SAFETY: the structure has that many bytes; the page after the memory has room for them.
        let written = unsafe {
            libc::pwrite(self.file.as_raw_fd(), (&raw const *metadata).cast(), bytes, self.bytes as i64)
        };
        if written == bytes as isize { Ok(()) } else { Err(libc::EIO) }
    }

    /// Another descriptor of its memory.
    pub fn file(&self) -> Result<OwnedFd, c_int> {
        duplicate(self.file.as_raw_fd())
    }

    /// Lets its GPU reach its memory under an address, or no longer.
    pub fn change(&self, offset: u64, bytes: u64, address: u64, how: u32) -> Result<(), c_int> {
        match how {
            MAP | REPLACE if offset == 0 && bytes <= self.bytes => {
                // Another GPU may have it there already.
                if memory::with_file(address, |_, _| ()).is_none() {
                    status(memory::import_at(address, self.file()?))?;
                }
                status(memory::grant(address, &[self.node]))
            }
            UNMAP => {
                status(memory::revoke(address, &[self.node]))?;
                status(memory::release_unused(address))
            }
            _ => Err(libc::EINVAL),
        }
    }

    /// Gives it a number by which its memory is mapped for the host.
    pub fn number(&self) -> Result<u32, c_int> {
        let address = super::memory::place_without_address(self.bytes)?;
        status(memory::import_at(address, self.file()?))?;
        let mut numbered = NUMBERED.lock();
        numbered.push(address);
        Ok(numbered.len() as u32)
    }
}

/// The one request of render nodes: where the host maps a buffer of a number.
const GEM_MMAP: u8 = 0x41;

/// # Safety
/// `argument` leads to the structure of the request.
pub(super) unsafe fn request(request: u8, argument: *mut c_void) -> Result<(), c_int> {
    if request != GEM_MMAP {
        return Err(libc::EINVAL);
    }
    // SAFETY: the structure is a word with the number, into which the offset is written.
    let word = unsafe { structure::<u64>(argument) };
    let number = (*word as u32 as usize).checked_sub(1).ok_or(libc::EINVAL)?;
    let address = NUMBERED.lock().get(number).copied().ok_or(libc::EINVAL)?;
    *word = device::memory_offset(address);
    Ok(())
}
