//! Filling memory with a repeated value.

use crate::{device::WORD, error::Status, stream::RocStream};
use gpumem_core::{Fill, Pattern, Result, Stream};
use gpumem_sys::hip::hipMemcpyKind;
use std::{ffi::c_void, ptr::with_exposed_provenance_mut};

/// Rows up to this number are filled one by one. More are copied from those that are filled already, twice as many
/// each time, because HIP fills rows with single bytes only.
const ROWS_ONE_BY_ONE: usize = 8;

/// # Safety
/// As for [`Stream::fill`](gpumem_core::Stream::fill).
pub(crate) unsafe fn fill(stream: &RocStream, fill: &Fill) -> Result<()> {
    let device = &stream.owner.device;
    let Fill { pattern, count, rows, pitch, .. } = *fill;
    // Rows that follow each other without a gap are one row.
    let row_bytes = count.checked_mul(pattern.bytes());
    let (count, rows) = match count.checked_mul(rows) {
        Some(all) if rows > 1 && row_bytes == Some(pitch) => (all, 1),
        _ => (count, rows),
    };
    let calls = Calls { stream, address: fill.address, pattern, count, pitch };
    let fits = pitch <= device.inner().limits.max_pitch;
    let operation = match pattern {
        Pattern::U8(_) if rows > 1 && fits => "hipMemset2DAsync",
        Pattern::U8(_) => "hipMemsetD8Async",
        Pattern::U16(_) => "hipMemsetD16Async",
        Pattern::U32(_) => "hipMemsetD32Async",
    };
    let turn = stream.owner.device.enqueue_lock().shared();
    let current = stream.owner.enter(operation, "stream")?;
    let mut enqueued = 0;
    // SAFETY: the rows are valid for writes until the fill is done, says the caller.
    let status = unsafe {
        match pattern {
            Pattern::U8(value) if rows > 1 && fits => calls.plane(value, rows),
            _ if rows > ROWS_ONE_BY_ONE && fits => calls.doubling(rows, &mut enqueued),
            _ => calls.rows(0..rows, &mut enqueued),
        }
    };
    if let Err(error) = device.check(status, operation) {
        // The turn too: the wait below takes one, which a thread that frees memory may hold up.
        drop((current, turn));
        // The calls before this one still run, and nothing may be in use after an error.
        if enqueued > 0 {
            stream.synchronize()?;
        }
        return Err(error);
    }
    Ok(())
}

/// Whether a fill begins within a word and ends before the word does. HIP 5.2 then takes more bytes off for the parts
/// of words at both ends than there are, and fills nearly all addresses.
fn is_inside_a_word(address: usize, bytes: usize) -> bool {
    let offset = address % WORD;
    offset != 0 && bytes < WORD - offset
}

struct Calls<'a> {
    stream: &'a RocStream,
    address: u64,
    pattern: Pattern,
    count: usize,
    pitch: usize,
}

impl Calls<'_> {
    fn row(&self, row: usize) -> *mut c_void {
        let offset = row.wrapping_mul(self.pitch) as u64;
        with_exposed_provenance_mut(self.address.wrapping_add(offset) as usize)
    }

    /// Rows of single bytes in one call.
    ///
    /// # Safety
    /// The rows are valid for writes.
    unsafe fn plane(&self, value: u8, rows: usize) -> Status {
        let (hip, raw) = (self.stream.owner.device.hip(), self.stream.raw);
        // SAFETY: passed on to the caller.
        unsafe { hip.hipMemset2DAsync(self.row(0), self.pitch, i32::from(value), self.count, rows, raw) }
            .into()
    }

    /// One row after the other.
    ///
    /// # Safety
    /// The rows are valid for writes.
    unsafe fn rows(&self, rows: std::ops::Range<usize>, enqueued: &mut usize) -> Status {
        let (hip, raw, count) = (self.stream.owner.device.hip(), self.stream.raw, self.count);
        for row in rows {
            let at = self.row(row);
            if is_inside_a_word(at.addr(), count.saturating_mul(self.pattern.bytes())) {
                // SAFETY: passed on to the caller.
                let status = unsafe { self.few_bytes(at, enqueued) };
                if !status.is_success() {
                    return status;
                }
                continue;
            }
            // SAFETY: passed on to the caller.
            let answer = unsafe {
                match self.pattern {
                    Pattern::U8(value) => hip.hipMemsetD8Async(at, value, count, raw),
                    Pattern::U16(value) => hip.hipMemsetD16Async(at, value, count, raw),
                    Pattern::U32(value) => hip.hipMemsetD32Async(at, value as i32, count, raw),
                }
            };
            let status = Status::from(answer);
            if !status.is_success() {
                return status;
            }
            *enqueued += 1;
        }
        Status::SUCCESS
    }

    /// Less than a word, as copies out of a table of bytes.
    ///
    /// # Safety
    /// The row is valid for writes.
    unsafe fn few_bytes(&self, at: *mut c_void, enqueued: &mut usize) -> Status {
        let (device, raw) = (&self.stream.owner.device, self.stream.raw);
        let pattern: &[u8] = match &self.pattern {
            Pattern::U8(value) => &[*value],
            Pattern::U16(value) => &value.to_ne_bytes(),
            Pattern::U32(value) => &value.to_ne_bytes(),
        };
        let (bytes, calls) = match pattern.len() {
            1 => (self.count, 1),
            bytes => (1, self.count * bytes),
        };
        let table = match device.words(raw) {
            Ok(table) => table,
            Err(status) => return status,
        };
        for (offset, value) in pattern.iter().cycle().take(calls).enumerate() {
            let from = with_exposed_provenance_mut(table as usize + usize::from(*value) * WORD);
            let (to, kind) = (at.wrapping_byte_add(offset), hipMemcpyKind::hipMemcpyDeviceToDevice);
            // SAFETY: passed on to the caller; the table has a word for each value, and is never written again.
            let status = Status::from(unsafe { device.hip().hipMemcpyAsync(to, from, bytes, kind, raw) });
            if !status.is_success() {
                return status;
            }
            *enqueued += 1;
        }
        Status::SUCCESS
    }

    /// Some rows, and the others as copies of them: a number of calls that grows with the logarithm of the rows.
    ///
    /// # Safety
    /// The rows are valid for writes.
    unsafe fn doubling(&self, rows: usize, enqueued: &mut usize) -> Status {
        let (hip, raw) = (self.stream.owner.device.hip(), self.stream.raw);
        let (bytes, kind) = (self.count * self.pattern.bytes(), hipMemcpyKind::hipMemcpyDeviceToDevice);
        let mut done = ROWS_ONE_BY_ONE.min(rows);
        // SAFETY: passed on to the caller.
        let mut status = unsafe { self.rows(0..done, enqueued) };
        while status.is_success() && done < rows {
            let more = done.min(rows - done);
            let (from, to, pitch) = (self.row(0), self.row(done), self.pitch);
            // SAFETY: as above; the rows that are read are those before the ones that are written, and filled by now.
            status = unsafe { hip.hipMemcpy2DAsync(to, pitch, from, pitch, bytes, more, kind, raw) }.into();
            *enqueued += 1;
            done += more;
        }
        status
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fills_that_hip_gets_wrong_are_known() {
        for (address, bytes) in
            (0..16usize).flat_map(|address| (1..20usize).map(move |bytes| (address, bytes)))
        {
            // The bytes before the first whole word and after the last, as HIP 5.2 computes them.
            let (head, tail) = (address.next_multiple_of(WORD) - address, (address + bytes) % WORD);
            let wrong = bytes < head + tail;
            // A fill that begins with a word has no head, and none of its bytes is counted twice.
            assert_eq!(is_inside_a_word(address, bytes), wrong, "{bytes} bytes at {address}");
        }
    }
}
