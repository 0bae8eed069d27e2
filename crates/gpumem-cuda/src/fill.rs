//! Filling memory with a repeated value.

use crate::stream::CudaStream;
use gpumem_core::{Fill, Pattern, Result, Stream};

/// # Safety
/// As for [`Backend::fill`](gpumem_core::Backend::fill).
pub(crate) unsafe fn fill(stream: &CudaStream, fill: &Fill) -> Result<()> {
    let device = &stream.owner.device;
    let Fill { address, pattern, count, rows, pitch } = *fill;
    // Rows that follow each other without a gap are one row.
    let row_bytes = count.checked_mul(pattern.bytes());
    let (count, rows) = match count.checked_mul(rows) {
        Some(all) if rows > 1 && row_bytes == Some(pitch) => (all, 1),
        _ => (count, rows),
    };
    let (api, raw) = (device.api(), stream.raw);
    if rows > 1 && pitch <= device.inner().limits.max_pitch {
        let operation = match pattern {
            Pattern::U8(_) => "cuMemsetD2D8Async",
            Pattern::U16(_) => "cuMemsetD2D16Async",
            Pattern::U32(_) => "cuMemsetD2D32Async",
        };
        let _current = stream.owner.enter(operation, "stream")?;
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
    let operation = match pattern {
        Pattern::U8(_) => "cuMemsetD8Async",
        Pattern::U16(_) => "cuMemsetD16Async",
        Pattern::U32(_) => "cuMemsetD32Async",
    };
    let current = stream.owner.enter(operation, "stream")?;
    for row in 0..rows {
        let address = address.wrapping_add(row.wrapping_mul(pitch) as u64);
        // SAFETY: as above, for one row.
        let status = unsafe {
            match pattern {
                Pattern::U8(value) => api.cuMemsetD8Async(address, value, count, raw),
                Pattern::U16(value) => api.cuMemsetD16Async(address, value, count, raw),
                Pattern::U32(value) => api.cuMemsetD32Async(address, value, count, raw),
            }
        };
        if let Err(error) = device.check(status, operation) {
            drop(current);
            // The rows before this one are still being written, and nothing may be in use after an error.
            if row > 0 {
                stream.synchronize()?;
            }
            return Err(error);
        }
    }
    Ok(())
}
