//! The kernels of pack.cu: their arguments, their launches and their work.

use std::ffi::c_void;

/// Axes of a [`StridedKernel`].
pub(super) const WALK_RANK: usize = 8;
/// Axes around the two of a [`TransposeKernel`].
pub(super) const TURN_RANK: usize = 6;

/// Threads of a group that walks, and units that each of them moves, about.
const THREADS: u32 = 256;
const UNITS_OF_A_THREAD: u64 = 4;
/// Rows of threads of a group that turns.
const ROWS: u32 = 8;
/// Most groups of a launch: enough for every device, and threads count their units in 32 bits up to 2 GiU.
const MOST_GROUPS: u64 = 1 << 20;
/// Most groups of a launch that waits for the link: enough to fill it, and the rest of the device is left to other streams. On an
/// H100, 64 groups fill it whatever the units, and 32 do not.
const MOST_GROUPS_AT_LINK: u64 = 128;
/// Fewer units than this are counted in 32 bits: the index of the last thread's next unit does not overflow.
const FAR: u64 = 1 << 31;

/// Side of the tiles of a transpose, in units of so many bytes.
pub(super) const fn tile(unit: usize) -> usize {
    if unit <= 4 { 64 } else { 32 }
}

/// The kernels of one unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PackKernel {
    /// Takes a [`StridedKernel`] of fewer than 2³¹ units.
    StridedKernel,
    /// Takes any [`StridedKernel`].
    WalkFar,
    /// Takes a [`TransposeKernel`].
    TransposeKernel,
}

impl PackKernel {
    /// All of them, in the order of their discriminants.
    pub const ALL: [Self; 3] = [Self::StridedKernel, Self::WalkFar, Self::TransposeKernel];

    /// The symbol of the kernel for units of so many bytes.
    pub fn symbol(self, unit: usize) -> String {
        let family = match self {
            Self::StridedKernel => "walk",
            Self::WalkFar => "walk_far",
            Self::TransposeKernel => "turn",
        };
        format!("gpumem_{family}_{unit}")
    }
}

/// A loop nest over units, the last axis innermost: `StridedKernel` of pack.cu. Strides count bytes.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, bytemuck::Pod, bytemuck::Zeroable)]
pub struct StridedKernel {
    pub(super) from: u64,
    pub(super) to: u64,
    pub(super) total: u64,
    pub(super) rank: u64,
    pub(super) length: [i64; WALK_RANK],
    pub(super) from_stride: [i64; WALK_RANK],
    pub(super) to_stride: [i64; WALK_RANK],
}

impl StridedKernel {
    /// Calls `each` with the addresses from and to which the kernel copies a unit, one unit after the other.
    pub fn each_unit(&self, mut each: impl FnMut(u64, u64)) {
        for index in 0..self.total {
            let (mut rest, mut from, mut to) = (index, 0, 0);
            for axis in (0..self.rank as usize).rev() {
                let length = self.length[axis] as u64;
                let at = if axis > 0 { rest % length } else { rest } as i64;
                rest /= length;
                from += at * self.from_stride[axis];
                to += at * self.to_stride[axis];
            }
            each(self.from.wrapping_add_signed(from), self.to.wrapping_add_signed(to));
        }
    }
}

/// Tiles over two axes, and the axes around them, outermost first: `TransposeKernel` of pack.cu. Strides count bytes.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, bytemuck::Pod, bytemuck::Zeroable)]
pub struct TransposeKernel {
    pub(super) from: u64,
    pub(super) to: u64,
    pub(super) tiles: u64,
    pub(super) rank: u64,
    pub(super) length_to: i64,
    pub(super) length_from: i64,
    pub(super) tiles_to: i64,
    pub(super) tiles_from: i64,
    pub(super) from_stride_to: i64,
    pub(super) to_stride_to: i64,
    pub(super) from_stride_from: i64,
    pub(super) to_stride_from: i64,
    pub(super) length: [i64; TURN_RANK],
    pub(super) from_stride: [i64; TURN_RANK],
    pub(super) to_stride: [i64; TURN_RANK],
}

impl TransposeKernel {
    /// As [`StridedKernel::each_unit`], for units of so many bytes.
    pub fn each_unit(&self, unit: usize, mut each: impl FnMut(u64, u64)) {
        let side = tile(unit) as i64;
        for index in 0..self.tiles as i64 {
            let (first_to, rest) = (index % self.tiles_to * side, index / self.tiles_to);
            let (first_from, mut rest) = (rest % self.tiles_from * side, rest / self.tiles_from);
            let (mut from, mut to) = (self.from, self.to);
            for axis in (0..self.rank as usize).rev() {
                let at = rest % self.length[axis];
                rest /= self.length[axis];
                from = from.wrapping_add_signed(at * self.from_stride[axis]);
                to = to.wrapping_add_signed(at * self.to_stride[axis]);
            }
            for along in first_to..(first_to + side).min(self.length_to) {
                for across in first_from..(first_from + side).min(self.length_from) {
                    each(
                        from.wrapping_add_signed(
                            along * self.from_stride_to + across * self.from_stride_from,
                        ),
                        to.wrapping_add_signed(along * self.to_stride_to + across * self.to_stride_from),
                    );
                }
            }
        }
    }
}

/// What one launch does.
#[derive(Debug, Clone, Copy)]
pub enum PackLaunch {
    /// One unit after the other.
    StridedKernel(StridedKernel),
    /// A transpose, tile by tile.
    TransposeKernel(TransposeKernel),
}

impl PackLaunch {
    /// The kernel that does it.
    pub fn family(&self) -> PackKernel {
        match self {
            Self::StridedKernel(walk) if walk.total < FAR => PackKernel::StridedKernel,
            Self::StridedKernel(_) => PackKernel::WalkFar,
            Self::TransposeKernel(_) => PackKernel::TransposeKernel,
        }
    }

    /// The only argument of that kernel, which takes the structure by value.
    pub fn argument(&self) -> *const c_void {
        match self {
            Self::StridedKernel(walk) => std::ptr::from_ref(walk).cast(),
            Self::TransposeKernel(turn) => std::ptr::from_ref(turn).cast(),
        }
    }

    /// Groups to launch along x; there is one along y and z.
    pub(super) fn groups(&self, crosses_link: bool) -> u32 {
        let groups = match self {
            Self::StridedKernel(walk) => walk.total.div_ceil(u64::from(THREADS) * UNITS_OF_A_THREAD),
            Self::TransposeKernel(turn) => turn.tiles,
        };
        groups.clamp(1, if crosses_link { MOST_GROUPS_AT_LINK } else { MOST_GROUPS }) as u32
    }

    /// Work-items of a group along x and y, for units of so many bytes; there is one along z.
    pub fn group_size(&self, unit: usize) -> [u32; 2] {
        match self {
            Self::StridedKernel(_) => [THREADS, 1],
            Self::TransposeKernel(_) => [tile(unit) as u32, ROWS],
        }
    }
}
