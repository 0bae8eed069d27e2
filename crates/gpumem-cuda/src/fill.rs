//! Filling memory with a repeated value.

use crate::stream::CudaStream;
use gpumem_core::{Fill, Pattern, Result, Stream};

/// One row, as most fills are.
///
/// # Safety
/// As for [`fill`].
#[inline]
unsafe fn fill_run(stream: &CudaStream, address: u64, pattern: Pattern, count: usize) -> Result<()> {
    let operation = match pattern {
        Pattern::U8(_) => "cuMemsetD8Async",
        Pattern::U16(_) => "cuMemsetD16Async",
        Pattern::U32(_) => "cuMemsetD32Async",
    };
    let (api, raw) = (stream.owner.device.api(), stream.raw);
    // SAFETY: the row is valid for writes until the fill is done, says the caller.
    stream.call(operation, || unsafe {
        match pattern {
            Pattern::U8(value) => api.cuMemsetD8Async(address, value, count, raw),
            Pattern::U16(value) => api.cuMemsetD16Async(address, value, count, raw),
            Pattern::U32(value) => api.cuMemsetD32Async(address, value, count, raw),
        }
    })
}

/// # Safety
/// As for [`Stream::fill`](gpumem_core::Stream::fill).
pub(crate) unsafe fn fill(stream: &CudaStream, fill: &Fill) -> Result<()> {
    let Fill { address, pattern, count, rows, pitch } = *fill;
    if rows == 1 {
        // SAFETY: passed on to the caller.
        return unsafe { fill_run(stream, address, pattern, count) };
    }
    // Rows that follow each other without a gap are one row.
    if count.checked_mul(pattern.bytes()) == Some(pitch)
        && let Some(all) = count.checked_mul(rows)
    {
        // SAFETY: passed on to the caller.
        return unsafe { fill_run(stream, address, pattern, all) };
    }
    let (device, raw) = (&stream.owner.device, stream.raw);
    if pitch <= device.inner().limits.max_pitch {
        let operation = match pattern {
            Pattern::U8(_) => "cuMemsetD2D8Async",
            Pattern::U16(_) => "cuMemsetD2D16Async",
            Pattern::U32(_) => "cuMemsetD2D32Async",
        };
        let _current = stream.owner.enter(operation, "stream")?;
        let api = device.api();
        // SAFETY: the rows are valid for writes until the fill is done, says the caller.
        let status = unsafe {
            match pattern {
                Pattern::U8(value) => api.cuMemsetD2D8Async(address, pitch, value, count, rows, raw),
                Pattern::U16(value) => api.cuMemsetD2D16Async(address, pitch, value, count, rows, raw),
                Pattern::U32(value) => api.cuMemsetD2D32Async(address, pitch, value, count, rows, raw),
            }
        };
        return device.check(status, operation);
    }
    for row in 0..rows {
        let address = address.wrapping_add(row.wrapping_mul(pitch) as u64);
        // SAFETY: as above, for one row.
        if let Err(error) = unsafe { fill_run(stream, address, pattern, count) } {
            // The rows before this one are still being written, and nothing may be in use after an error.
            if row > 0 {
                stream.synchronize()?;
            }
            return Err(error);
        }
    }
    Ok(())
}
