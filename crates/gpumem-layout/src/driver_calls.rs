//! How a region becomes calls of a driver. Nothing here calls one.
//!
//! A GPU's driver copies a run, a plane of rows with a pitch, or a volume of such planes whose distance is a multiple
//! of the pitch. A copy that fits none of these is a loop over the largest that does.

use gpumem_core::CopyRegion;

/// One call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    /// Bytes in one run.
    Run {
        /// Length of the run.
        bytes: usize,
    },
    /// Rows of bytes.
    Plane {
        /// Length of a row.
        bytes: usize,
        /// Number of rows.
        rows: usize,
        /// Bytes from one row to the next, of the source and of the destination.
        pitch: [usize; 2],
    },
    /// Planes of rows.
    Volume {
        /// Length of a row.
        bytes: usize,
        /// Rows of a plane.
        rows: usize,
        /// Number of planes.
        planes: usize,
        /// Bytes from one row to the next, of the source and of the destination.
        pitch: [usize; 2],
        /// Rows from one plane to the next, of the source and of the destination.
        height: [usize; 2],
    },
}

/// A loop around a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repeat {
    /// How often.
    pub count: usize,
    /// Steps of the source and of the destination in bytes.
    pub step: [usize; 2],
}

impl Repeat {
    const ONCE: Self = Self { count: 1, step: [0, 0] };
}

/// A call in two nested loops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DriverCalls {
    /// The outer loop.
    pub outer: Repeat,
    /// The inner loop.
    pub inner: Repeat,
    /// The call.
    pub call: Call,
}

impl DriverCalls {
    /// The plan for a region on a device that takes pitches up to `max_pitch` bytes, or `None` if the region has more
    /// bytes than can be addressed.
    pub fn new(region: &CopyRegion, max_pitch: usize) -> Option<Self> {
        if region.rows == 1 && region.slices == 1 {
            // What most copies are.
            let call = Call::Run { bytes: region.bytes };
            return Some(Self { outer: Repeat::ONCE, inner: Repeat::ONCE, call });
        }
        region.total_bytes()?;
        let sides = [region.source.pitch, region.destination.pitch];
        let Merged { bytes, rows, slices, row_pitch, slice_pitch } =
            Merged::new(region.bytes, region.rows, region.slices, sides);
        let fits = |pitch: [usize; 2]| pitch.iter().all(|pitch| *pitch <= max_pitch);
        let row_loop = Repeat { count: rows, step: row_pitch };
        let slice_loop = Repeat { count: slices, step: slice_pitch };
        let once = Repeat::ONCE;

        if rows == 1 && slices == 1 {
            return Some(Self { outer: once, inner: once, call: Call::Run { bytes } });
        }
        if slices == 1 && fits(row_pitch) {
            return Some(Self {
                outer: once,
                inner: once,
                call: Call::Plane { bytes, rows, pitch: row_pitch },
            });
        }
        let whole = |side: usize| row_pitch[side] != 0 && slice_pitch[side].is_multiple_of(row_pitch[side]);
        if slices > 1 && fits(row_pitch) && whole(0) && whole(1) {
            let height = [slice_pitch[0] / row_pitch[0], slice_pitch[1] / row_pitch[1]];
            let call = Call::Volume { bytes, rows, planes: slices, pitch: row_pitch, height };
            return Some(Self { outer: once, inner: once, call });
        }
        // Planes along either axis do; the fewer, the better.
        let planes =
            Self { outer: once, inner: slice_loop, call: Call::Plane { bytes, rows, pitch: row_pitch } };
        let across = Self {
            outer: once,
            inner: row_loop,
            call: Call::Plane { bytes, rows: slices, pitch: slice_pitch },
        };
        Some(match (slices > 1 && fits(row_pitch), slices > 1 && fits(slice_pitch)) {
            (true, true) if rows < slices => across,
            (true, _) => planes,
            (false, true) => across,
            (false, false) => Self { outer: slice_loop, inner: row_loop, call: Call::Run { bytes } },
        })
    }

    /// Whether one call does all.
    #[inline]
    pub fn is_one_call(&self) -> bool {
        self.outer.count == 1 && self.inner.count == 1
    }

    /// The steps of source and destination for every call, in order.
    pub fn steps(&self) -> impl Iterator<Item = [u64; 2]> {
        let (outer, inner) = (self.outer, self.inner);
        let at = move |side: usize, i: usize, j: usize| {
            (i.wrapping_mul(outer.step[side]) as u64).wrapping_add(j.wrapping_mul(inner.step[side]) as u64)
        };
        (0..outer.count).flat_map(move |i| (0..inner.count).map(move |j| [at(0, i, j), at(1, i, j)]))
    }
}

/// A region without axes of length one and without axes that continue another on both sides.
struct Merged {
    bytes: usize,
    rows: usize,
    slices: usize,
    row_pitch: [usize; 2],
    slice_pitch: [usize; 2],
}

impl Merged {
    fn new(bytes: usize, rows: usize, slices: usize, [source, destination]: [[usize; 2]; 2]) -> Self {
        let mut merged = Self {
            bytes,
            rows,
            slices,
            row_pitch: [source[0], destination[0]],
            slice_pitch: [source[1], destination[1]],
        };
        if merged.rows == 1 {
            merged.slices_become_rows();
        }
        let joined = |low: [usize; 2], count: usize, high: [usize; 2]| {
            low[0].checked_mul(count) == Some(high[0]) && low[1].checked_mul(count) == Some(high[1])
        };
        // The products below fit: the region was checked to be addressable.
        if merged.slices > 1 && joined(merged.row_pitch, merged.rows, merged.slice_pitch) {
            merged.rows = merged.rows.saturating_mul(merged.slices);
            merged.slices = 1;
        }
        while merged.rows > 1 && merged.row_pitch == [merged.bytes; 2] {
            merged.bytes = merged.bytes.saturating_mul(merged.rows);
            merged.slices_become_rows();
        }
        merged
    }

    fn slices_become_rows(&mut self) {
        self.rows = self.slices;
        self.row_pitch = self.slice_pitch;
        self.slices = 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpumem_core::{Endpoint, Space};

    fn region(
        bytes: usize,
        rows: usize,
        slices: usize,
        source: [usize; 2],
        destination: [usize; 2],
    ) -> CopyRegion {
        let end = |pitch| Endpoint { address: 0, space: Space::Device(0), pitch };
        CopyRegion { source: end(source), destination: end(destination), bytes, rows, slices }
    }

    /// Every (source, destination) offset of a run that a plan copies, byte by byte.
    fn bytes_of(plan: &DriverCalls) -> Vec<[usize; 2]> {
        let mut all = Vec::new();
        for step in plan.steps() {
            let (bytes, rows, planes, pitch, height) = match plan.call {
                Call::Run { bytes } => (bytes, 1, 1, [0, 0], [0, 0]),
                Call::Plane { bytes, rows, pitch } => (bytes, rows, 1, pitch, [0, 0]),
                Call::Volume { bytes, rows, planes, pitch, height } => (bytes, rows, planes, pitch, height),
            };
            let at = |side: usize, z: usize, y: usize, x: usize| {
                step[side] as usize + z * pitch[side] * height[side] + y * pitch[side] + x
            };
            for (z, y, x) in
                (0..planes).flat_map(|z| (0..rows).flat_map(move |y| (0..bytes).map(move |x| (z, y, x))))
            {
                all.push([at(0, z, y, x), at(1, z, y, x)]);
            }
        }
        all.sort_unstable();
        all
    }

    fn expected(region: &CopyRegion) -> Vec<[usize; 2]> {
        let mut all = Vec::new();
        for (z, y, x) in (0..region.slices)
            .flat_map(|z| (0..region.rows).flat_map(move |y| (0..region.bytes).map(move |x| (z, y, x))))
        {
            let at = |pitch: [usize; 2]| z * pitch[1] + y * pitch[0] + x;
            all.push([at(region.source.pitch), at(region.destination.pitch)]);
        }
        all.sort_unstable();
        all
    }

    #[test]
    fn every_plan_copies_exactly_the_bytes_of_its_region() {
        let pitches = |bytes: usize, rows: usize| {
            let row = [bytes, bytes + 1, bytes + 5];
            row.into_iter().flat_map(move |row| [0, 1, row, 2 * row + 3].map(|more| [row, row * rows + more]))
        };
        let mut plans = 0;
        for (bytes, rows, slices) in [(1, 1, 1), (3, 1, 4), (4, 5, 1), (2, 3, 4), (2, 4, 3), (1, 2, 2)] {
            for (source, destination) in
                pitches(bytes, rows).flat_map(|s| pitches(bytes, rows).map(move |d| (s, d)))
            {
                let region = region(bytes, rows, slices, source, destination);
                for max_pitch in [0, 6, 10, usize::MAX] {
                    let plan = DriverCalls::new(&region, max_pitch).unwrap();
                    assert_eq!(bytes_of(&plan), expected(&region), "{region:?} {plan:?}");
                    if let Call::Plane { pitch, .. } | Call::Volume { pitch, .. } = plan.call {
                        assert!(pitch.iter().all(|pitch| *pitch <= max_pitch), "{plan:?}");
                    }
                    plans += 1;
                }
            }
        }
        assert_eq!(plans, 6 * 144 * 4);
    }

    #[test]
    fn regions_become_the_fewest_calls() {
        let plan = |region: CopyRegion| DriverCalls::new(&region, 1 << 31).unwrap();
        // Contiguous on both sides, over both axes.
        assert_eq!(plan(region(4, 3, 2, [4, 12], [4, 12])).call, Call::Run { bytes: 24 });
        // One row in each slice.
        let one = plan(region(4, 1, 5, [4, 16], [4, 8]));
        assert_eq!(one.call, Call::Plane { bytes: 4, rows: 5, pitch: [16, 8] });
        // Slices that follow each other at the pitch of rows.
        let tall = plan(region(4, 3, 2, [8, 24], [6, 18]));
        assert_eq!(tall.call, Call::Plane { bytes: 4, rows: 6, pitch: [8, 6] });
        // Rows that are contiguous on both sides, slices that are not.
        let wide = plan(region(4, 3, 2, [4, 16], [4, 20]));
        assert_eq!(wide.call, Call::Plane { bytes: 12, rows: 2, pitch: [16, 20] });
        let volume = plan(region(4, 3, 2, [8, 32], [6, 18]));
        let (pitch, height) = ([8, 6], [4, 3]);
        assert_eq!(volume.call, Call::Volume { bytes: 4, rows: 3, planes: 2, pitch, height });
        // The pitch of slices is no multiple of that of rows: planes along the longer axis.
        assert_eq!(plan(region(4, 3, 9, [8, 33], [6, 18])).steps().count(), 3);
        assert_eq!(plan(region(4, 9, 3, [8, 75], [6, 54])).steps().count(), 3);
    }

    #[test]
    fn a_region_that_cannot_be_addressed_is_refused() {
        assert_eq!(DriverCalls::new(&region(usize::MAX, 2, 1, [usize::MAX; 2], [usize::MAX; 2]), 1), None);
    }
}
