//! The arguments of a kernel, and what built-in kernels do with memory.

use super::Refusal;
use crate::{
    memory::{Fault, Span, span},
    stats::stats,
};

/// The argument block of a kernel, read through the eyes of its GPU.
#[derive(Debug)]
pub(super) struct Arguments {
    node: u32,
    address: u64,
}

impl Arguments {
    pub(super) fn new(node: u32, address: u64) -> Self {
        Self { node, address }
    }

    pub(super) fn u64(&self, offset: u64) -> Result<u64, Refusal> {
        let bytes = self.span(self.address.wrapping_add(offset), 8)?;
        // SAFETY: the span has eight bytes, whatever their alignment.
        Ok(unsafe { bytes.as_ptr().cast::<u64>().read_unaligned() })
    }

    pub(super) fn u32(&self, offset: u64) -> Result<u32, Refusal> {
        let bytes = self.span(self.address.wrapping_add(offset), 4)?;
        // SAFETY: the span has four bytes, whatever their alignment.
        Ok(unsafe { bytes.as_ptr().cast::<u32>().read_unaligned() })
    }

    /// The structure that the block consists of.
    pub(super) fn structure<T: bytemuck::AnyBitPattern>(&self) -> Result<T, Refusal> {
        let bytes = self.span(self.address, size_of::<T>() as u64)?;
        // SAFETY: the span is as long as the structure, whatever its alignment, and any bytes are one.
        Ok(unsafe { bytes.as_ptr().cast::<T>().read_unaligned() })
    }

    /// Memory of the kernel's GPU.
    pub(super) fn span(&self, address: u64, bytes: u64) -> Result<Span, Fault> {
        span(self.node, address, bytes)
    }

    pub(super) fn copy(&self, from: u64, to: u64, bytes: u64) -> Result<(), Refusal> {
        if bytes == 0 {
            return Ok(());
        }
        let source = self.span(from, bytes)?;
        self.span(to, bytes)?.copy_from(&source);
        stats().blit_copied_bytes.add(bytes);
        Ok(())
    }

    /// Writes the pattern that many times in a row.
    pub(super) fn fill(&self, to: u64, pattern: &[u8], count: u64) -> Result<(), Refusal> {
        let bytes = (pattern.len() as u64).saturating_mul(count);
        if bytes != 0 {
            self.span(to, bytes)?.fill(pattern);
        }
        Ok(())
    }

    /// A copy of bytes of the GPU.
    pub(super) fn bytes(&self, address: u64, count: u64) -> Result<Vec<u8>, Refusal> {
        let source = self.span(address, count)?;
        // SAFETY: the span has that many bytes. The runtime does not write a pattern that a kernel is reading.
        Ok(unsafe { std::slice::from_raw_parts(source.as_ptr(), source.bytes()) }.to_vec())
    }
}
