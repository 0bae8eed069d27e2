//! The copy, fill and stream kernels that HIP's runtime (ROCclr) compiles for itself, by name.
//!
//! The layouts of their arguments follow from the OpenCL signatures in the runtime of HIP 5.2. They changed in HIP 6.

use super::{Arguments, Refusal};
use std::{
    sync::atomic::{AtomicU32, AtomicU64, Ordering},
    thread,
    time::Duration,
};

/// Runs the kernel of that name, or gives `None` if it is not one of the runtime's.
pub(super) fn run(
    name: &str,
    arguments: &Arguments,
    stopped: &dyn Fn() -> bool,
) -> Option<Result<(), Refusal>> {
    Some(match name.strip_prefix("__amd_rocclr_")? {
        "copyBuffer" => copy_buffer(arguments),
        "copyBufferAligned" => copy_buffer_aligned(arguments),
        "copyBufferRect" => copy_rect(arguments, false),
        "copyBufferRectAligned" => copy_rect(arguments, true),
        "fillBufferAligned" => fill_buffer(arguments),
        "fillBufferAligned2D" => fill_buffer_2d(arguments),
        "streamOpsWrite" => stream_write(arguments),
        "streamOpsWait" => stream_wait(arguments, stopped),
        _ => return None,
    })
}

/// `(src, dst, srcOrigin, dstOrigin, size, remain)`: `size` words of four bytes, of the last only `remain`; `remain`
/// is 8 where `size` counts bytes.
fn copy_buffer(arguments: &Arguments) -> Result<(), Refusal> {
    let source = arguments.u64(0)?.wrapping_add(arguments.u64(16)?);
    let destination = arguments.u64(8)?.wrapping_add(arguments.u64(24)?);
    let (size, remain) = (arguments.u64(32)?, u64::from(arguments.u32(40)?));
    let bytes = match (size, remain) {
        (0, _) => 0,
        (_, 8) => size,
        _ => (size - 1) * 4 + remain,
    };
    arguments.copy(source, destination, bytes)
}

/// `(src, dst, srcOrigin, dstOrigin, size, alignment)`: origins and size in units of `alignment` bytes.
fn copy_buffer_aligned(arguments: &Arguments) -> Result<(), Refusal> {
    let unit = u64::from(arguments.u32(40)?);
    let source = arguments.u64(0)?.wrapping_add(arguments.u64(16)? * unit);
    let destination = arguments.u64(8)?.wrapping_add(arguments.u64(24)? * unit);
    arguments.copy(source, destination, arguments.u64(32)? * unit)
}

/// `(src, dst, srcRect, dstRect, size)`: each rectangle is (row pitch, slice pitch, origin, unused), the size is
/// (x, y, z, unit); everything counts units, which are single bytes in the unaligned kernel.
fn copy_rect(arguments: &Arguments, aligned: bool) -> Result<(), Refusal> {
    let quad = |offset: u64| -> Result<[u64; 4], Refusal> {
        Ok([
            arguments.u64(offset)?,
            arguments.u64(offset + 8)?,
            arguments.u64(offset + 16)?,
            arguments.u64(offset + 24)?,
        ])
    };
    let (source, destination) = (arguments.u64(0)?, arguments.u64(8)?);
    // Vectors of four are aligned to their size, so that the first begins at 32.
    let (from, to, size) = (quad(32)?, quad(64)?, quad(96)?);
    let unit = if aligned { size[3] } else { 1 };
    for z in 0..size[2] {
        for y in 0..size[1] {
            let row = |base: u64, rect: &[u64; 4]| {
                base.wrapping_add((rect[2] + y * rect[0] + z * rect[1]).wrapping_mul(unit))
            };
            arguments.copy(row(source, &from), row(destination, &to), size[0] * unit)?;
        }
    }
    Ok(())
}

/// Of the four buffer arguments one is set; which one says how many bytes a step has.
fn target(arguments: &Arguments) -> Result<(u64, u64), Refusal> {
    for (index, width) in [1, 2, 4, 8].into_iter().enumerate() {
        let address = arguments.u64(8 * index as u64)?;
        if address != 0 {
            return Ok((address, width));
        }
    }
    Err(Refusal::Unknown)
}

/// `(uchar*, ushort*, uint*, ulong*, pattern, patternSize, offset, size)`: `size` patterns of `patternSize` steps.
fn fill_buffer(arguments: &Arguments) -> Result<(), Refusal> {
    let (base, width) = target(arguments)?;
    let pattern = arguments.bytes(arguments.u64(32)?, u64::from(arguments.u32(40)?) * width)?;
    arguments.fill(base + arguments.u64(48)? * width, &pattern, arguments.u64(56)?)
}

/// As [`fill_buffer`], `(.., offset, width, height, pitch)`: rows of `width` patterns, `pitch` steps apart.
fn fill_buffer_2d(arguments: &Arguments) -> Result<(), Refusal> {
    let (base, step) = target(arguments)?;
    let pattern = arguments.bytes(arguments.u64(32)?, u64::from(arguments.u32(40)?) * step)?;
    let (offset, width) = (arguments.u64(48)?, arguments.u64(56)?);
    let (height, pitch) = (arguments.u64(64)?, arguments.u64(72)?);
    for row in 0..height {
        arguments.fill(base + (offset + row * pitch) * step, &pattern, width)?;
    }
    Ok(())
}

/// The word of a stream operation: the 32-bit address is used if it is set, else the 64-bit one.
enum Word {
    Short(u64),
    Long(u64),
}

impl Word {
    fn of(arguments: &Arguments) -> Result<Self, Refusal> {
        let (short, long) = (arguments.u64(0)?, arguments.u64(8)?);
        match (short, long) {
            (0, long) if long.is_multiple_of(8) => Ok(Self::Long(long)),
            (short, _) if short != 0 && short.is_multiple_of(4) => Ok(Self::Short(short)),
            _ => Err(Refusal::Unknown),
        }
    }
}

/// `(uint*, ulong*, value, sizeBytes)`.
fn stream_write(arguments: &Arguments) -> Result<(), Refusal> {
    let value = arguments.u64(16)?;
    match Word::of(arguments)? {
        Word::Short(address) => {
            let span = arguments.span(address, 4)?;
            // SAFETY: an aligned word of the span that is only used as an atomic.
            unsafe { AtomicU32::from_ptr(span.as_ptr().cast()) }.store(value as u32, Ordering::Release);
        }
        Word::Long(address) => {
            let span = arguments.span(address, 8)?;
            // SAFETY: as above.
            unsafe { AtomicU64::from_ptr(span.as_ptr().cast()) }.store(value, Ordering::Release);
        }
    }
    Ok(())
}

/// `(uint*, ulong*, value, flags, mask)`: flags 0 to 3 are at least, equal, and, nor.
fn stream_wait(arguments: &Arguments, stopped: &dyn Fn() -> bool) -> Result<(), Refusal> {
    let (value, flags, mask) = (arguments.u64(16)?, arguments.u64(24)?, arguments.u64(32)?);
    let fulfilled = |current: u64, value: u64, all: u64| match flags {
        0 => current >= value,
        1 => current == value,
        2 => current & value != 0,
        _ => !(current | value) & all != 0,
    };
    let word = Word::of(arguments)?;
    loop {
        let done = match word {
            Word::Short(address) => {
                let span = arguments.span(address, 4)?;
                // SAFETY: an aligned word of the span that is only used as an atomic.
                let current = unsafe { AtomicU32::from_ptr(span.as_ptr().cast()) }.load(Ordering::Acquire);
                let all = u64::from(u32::MAX);
                fulfilled(u64::from(current) & mask & all, value & all, all)
            }
            Word::Long(address) => {
                let span = arguments.span(address, 8)?;
                // SAFETY: as above.
                let current = unsafe { AtomicU64::from_ptr(span.as_ptr().cast()) }.load(Ordering::Acquire);
                fulfilled(current & mask, value, u64::MAX)
            }
        };
        if done {
            return Ok(());
        }
        if stopped() {
            return Err(Refusal::Stopped);
        }
        thread::sleep(Duration::from_micros(50));
    }
}
