//! Memory that several processes share.

use crate::{Error, ErrorKind, Result};

/// A part of an allocation of device memory, for another process on this machine.
///
/// It says nothing about when the memory is written: the processes agree on that themselves. The exporting process
/// must keep the allocation alive for as long as another one has it open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct IpcMemory {
    handle: [u8; 64],
    offset: u64,
    bytes: u64,
}

impl IpcMemory {
    /// Length of [`to_bytes`](Self::to_bytes).
    pub const ENCODED_LEN: usize = 80;

    /// A driver's handle of a whole allocation, with the part of it that is meant.
    pub fn new(handle: [u8; 64], offset: u64, bytes: u64) -> Self {
        Self { handle, offset, bytes }
    }

    /// Bytes that are shared.
    pub fn len(&self) -> usize {
        usize::try_from(self.bytes).unwrap_or(usize::MAX)
    }

    /// Tells whether nothing is shared. Always `false` for a handle of
    /// [`DriverDevice::export_memory`](crate::DriverDevice::export_memory).
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Bytes from the beginning of the allocation to the shared part.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// The driver's handle of the whole allocation, for use with other libraries.
    pub fn handle(&self) -> &[u8; 64] {
        &self.handle
    }

    /// Checks that the part lies in an allocation of `allocated` bytes, from its beginning. A backend calls this when it has opened
    /// the allocation: what follows it belongs to others.
    ///
    /// # Errors
    /// Returns [`InvalidArgument`](ErrorKind::InvalidArgument) if the part reaches outside.
    pub fn check_within(&self, allocated: u64, device: &'static str, operation: &'static str) -> Result<()> {
        match self.offset.checked_add(self.bytes) {
            Some(end) if end <= allocated => Ok(()),
            _ => {
                let why = "the array reaches outside the memory that was exported";
                Err(Error::new(device, operation, ErrorKind::InvalidArgument { why }))
            }
        }
    }

    /// The same as bytes, to be sent to the other process: the handle, the offset and the length (little-endian).
    pub fn to_bytes(&self) -> [u8; Self::ENCODED_LEN] {
        let mut bytes = [0; Self::ENCODED_LEN];
        bytes[..64].copy_from_slice(&self.handle);
        bytes[64..72].copy_from_slice(&self.offset.to_le_bytes());
        bytes[72..].copy_from_slice(&self.bytes.to_le_bytes());
        bytes
    }

    /// Reads the bytes that [`to_bytes`](Self::to_bytes) returned.
    pub fn from_bytes(bytes: &[u8; Self::ENCODED_LEN]) -> Self {
        let mut memory = Self { handle: [0; 64], offset: 0, bytes: 0 };
        let mut word = [0; 8];
        memory.handle.copy_from_slice(&bytes[..64]);
        word.copy_from_slice(&bytes[64..72]);
        memory.offset = u64::from_le_bytes(word);
        word.copy_from_slice(&bytes[72..]);
        memory.bytes = u64::from_le_bytes(word);
        memory
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_handles_survive_serialisation() {
        let mut handle = [0; 64];
        handle.iter_mut().zip(1..).for_each(|(byte, value)| *byte = value);
        let memory = IpcMemory::new(handle, 0x0102_0304_0506, 77);
        let sent = memory.to_bytes();
        assert_eq!(IpcMemory::from_bytes(&sent), memory);
        assert_eq!((&sent[..64], sent[64], sent[72]), (&handle[..], 6, 77));
        assert_eq!((memory.len(), memory.is_empty(), memory.offset()), (77, false, 0x0102_0304_0506));
    }

    #[test]
    fn a_part_lies_in_its_allocation() {
        let is_within = |offset, bytes, allocated| {
            IpcMemory::new([0; 64], offset, bytes).check_within(allocated, "gpu", "open").is_ok()
        };
        assert!(is_within(0, 16, 16) && is_within(8, 8, 16) && is_within(u64::MAX - 1, 1, u64::MAX));
        assert!(!is_within(0, 17, 16) && !is_within(9, 8, 16) && !is_within(16, 1, 16));
        assert!(!is_within(u64::MAX, 1, u64::MAX) && !is_within(1, u64::MAX, u64::MAX));
    }
}
