//! Regions of memory to copy.

use std::{cmp::Reverse, ops::Range};

/// Which memory an address belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Space {
    /// The host's memory, page-locked or not.
    Host,
    /// Memory of the device with this ordinal of the same backend.
    Device(usize),
}

/// One side of a copy: an address, where it lives, and the distance between rows and slices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Endpoint {
    /// Address of the first byte.
    pub address: u64,
    /// The memory that the address belongs to.
    pub space: Space,
    /// Bytes from one row to the next and from one slice to the next. Ignored where there is only one.
    pub pitch: [usize; 2],
}

/// A copy of `slices × rows × bytes` between two places, each with its own pitches.
///
/// Rows do not overlap within one side: `pitch[0] >= bytes` where there is more than one row, and
/// `pitch[1] >= pitch[0] * rows` (or `>= bytes`, with one row) where there is more than one slice. The pitch of slices need not be a
/// multiple of the pitch of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CopyRegion {
    /// Where the bytes come from.
    pub source: Endpoint,
    /// Where the bytes go. Its memory does not overlap the source's.
    pub destination: Endpoint,
    /// Bytes in a row, at least 1.
    pub bytes: usize,
    /// Rows in a slice, at least 1.
    pub rows: usize,
    /// Slices, at least 1.
    pub slices: usize,
}

impl CopyRegion {
    /// A copy of one contiguous run.
    #[inline]
    pub fn linear(source: (u64, Space), destination: (u64, Space), bytes: usize) -> Self {
        let end = |(address, space)| Endpoint { address, space, pitch: [bytes, bytes] };
        Self { source: end(source), destination: end(destination), bytes, rows: 1, slices: 1 }
    }

    /// All bytes that the copy moves, or `None` if the number does not fit.
    #[inline]
    pub fn total_bytes(&self) -> Option<usize> {
        self.bytes.checked_mul(self.rows)?.checked_mul(self.slices)
    }

    /// Bytes from the first to the last of one side, gaps included, or `None` if it reaches over the end of the address space.
    pub fn extent(&self, side: &Endpoint) -> Option<usize> {
        let slices = side.pitch[1].checked_mul(self.slices.checked_sub(1)?)?;
        let rows = side.pitch[0].checked_mul(self.rows.checked_sub(1)?)?;
        let bytes = slices.checked_add(rows)?.checked_add(self.bytes)?;
        side.address.checked_add(bytes as u64).map(|_| bytes)
    }

    /// Number of dimensions that are in use: 1, 2 or 3.
    pub fn dimensions(&self) -> u32 {
        match (self.rows, self.slices) {
            (1, 1) => 1,
            (_, 1) => 2,
            _ => 3,
        }
    }
}

/// A copy between any two strided layouts, element by element, done on the device.
///
/// The innermost axis is the last. A source stride may be zero or negative; destination elements do not overlap each
/// other, and source and destination do not overlap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StridedCopy {
    /// Address of the source's element `[0, 0, ..]`, and the memory that it belongs to: the stream's device, or the host.
    ///
    /// Memory of the host is page-locked, at the address that it has for the device; or it is ordinary memory, where the
    /// device copies that directly ([`Capabilities::pageable_direct`](crate::Capabilities::pageable_direct)).
    pub source: (u64, Space),
    /// Address of the destination's element `[0, 0, ..]`, and its memory, as for the source.
    pub destination: (u64, Space),
    /// Number of bytes of one element.
    pub item: usize,
    /// For each axis: its length, the source's stride and the destination's stride in bytes.
    pub axes: Vec<(usize, isize, isize)>,
}

impl StridedCopy {
    /// Whether host memory is on either side: a GPU reaches it over a link that is slower than either memory.
    pub fn crosses_link(&self) -> bool {
        [self.source.1, self.destination.1].contains(&Space::Host)
    }

    /// The bytes from the first to the last that it reaches, of the source and of the destination. `None` for a copy without
    /// elements, and for one that reaches over the end of the address space.
    pub fn spans(&self) -> Option<[Range<u64>; 2]> {
        let of = |address: u64, stride: fn(&(usize, isize, isize)) -> isize| {
            let (mut low, mut high) = (i128::from(address), i128::from(address) + self.item as i128);
            for axis in &self.axes {
                let reach = (axis.0 as i128 - 1).checked_mul(stride(axis) as i128)?;
                if reach < 0 { low = low.checked_add(reach)? } else { high = high.checked_add(reach)? }
            }
            isize::try_from(high).ok()?;
            Some(u64::try_from(low).ok()?..u64::try_from(high).ok()?)
        };
        if self.item == 0 || self.axes.iter().any(|(length, ..)| *length == 0) {
            return None;
        }
        Some([of(self.source.0, |axis| axis.1)?, of(self.destination.0, |axis| axis.2)?])
    }
}

/// One loop of a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Axis {
    /// Number of steps.
    pub len: usize,
    /// Bytes from one step to the next in the source; of any sign, 0 where the source repeats an element.
    pub src: isize,
    /// Bytes from one step to the next in the destination.
    pub dst: isize,
}

/// Makes of the loops around `item` bytes as few as possible that copy the same bytes, in another order: those of one step go,
/// no destination stride is negative, the largest is outermost (first), and loops that are one on both sides are joined. What is
/// contiguous on both sides is part of `item`. The axes have elements.
///
/// Returns how many loops remain at the front of `axes`, and by how many bytes the copy begins later in the source and in the
/// destination.
pub fn fewest_axes(item: &mut usize, axes: &mut [Axis]) -> (usize, [isize; 2]) {
    let mut begin = [0_isize; 2];
    for axis in axes.iter_mut().filter(|axis| axis.dst < 0) {
        let steps = axis.len as isize - 1;
        begin = [
            begin[0].wrapping_add(axis.src.wrapping_mul(steps)),
            begin[1].wrapping_add(axis.dst.wrapping_mul(steps)),
        ];
        (axis.src, axis.dst) = (axis.src.wrapping_neg(), axis.dst.wrapping_neg());
    }
    axes.sort_by_key(|axis| Reverse((axis.dst, axis.src.unsigned_abs())));
    let mut kept = 0;
    for at in 0..axes.len() {
        let inner = axes[at];
        let continues = |outer: isize, step: isize| step.checked_mul(inner.len as isize) == Some(outer);
        match axes[..kept].last_mut() {
            _ if inner.len == 1 => {}
            Some(outer) if continues(outer.src, inner.src) && continues(outer.dst, inner.dst) => {
                *outer = Axis { len: outer.len * inner.len, ..inner };
            }
            _ => {
                axes[kept] = inner;
                kept += 1;
            }
        }
    }
    while let Some(axis) = axes[..kept].last()
        && [axis.src, axis.dst] == [*item as isize; 2]
    {
        *item *= axis.len;
        kept -= 1;
    }
    (kept, begin)
}
