//! Where a work-item stands.

use std::cell::Cell;

/// The ids that all work-items of a group share.
#[derive(Debug)]
pub(crate) struct GroupIds {
    /// One cell for each axis: a processor is slow to load a whole right after its parts were stored.
    group: [Cell<u32>; 3],
    pub(crate) group_size: [u32; 3],
    pub(crate) groups: [u32; 3],
}

impl GroupIds {
    #[inline(always)]
    pub(crate) fn new([x, y, z]: [u32; 3], group_size: [u32; 3], groups: [u32; 3]) -> Self {
        Self { group: [Cell::new(x), Cell::new(y), Cell::new(z)], group_size, groups }
    }

    #[inline(always)]
    pub(crate) fn group(&self) -> [u32; 3] {
        let [x, y, z] = &self.group;
        [x.get(), y.get(), z.get()]
    }

    /// The same in other memory.
    #[inline(always)]
    pub(crate) fn copied(&self) -> Self {
        Self::new(self.group(), self.group_size, self.groups)
    }

    /// Goes on to another group.
    #[inline(always)]
    pub(crate) fn set_group(&self, [x, y, z]: [u32; 3]) {
        self.group[0].set(x);
        self.group[1].set(y);
        self.group[2].set(z);
    }

    /// The global id along x of the group's first work-items.
    #[inline(always)]
    pub(crate) fn first_x(&self) -> usize {
        self.group[0].get() as usize * self.group_size[0] as usize
    }
}

/// The place of a work-item in its launch. Axes are 0 (x), 1 (y) and 2 (z); beyond them every id is 0 and every size 1.
///
/// The words are OpenCL's; CUDA's are in brackets.
#[derive(Debug, Clone)]
pub struct WorkItemIds<'g> {
    of_group: &'g GroupIds,
    /// Kept as it is, so that the compiler sees the counter of a loop in it. A cell, because a work-item with barriers has
    /// the same `WorkItemIds` in every group.
    global_x: Cell<usize>,
    local: [u32; 3],
}

fn along(values: [u32; 3], axis: usize, beyond: u32) -> usize {
    values.get(axis).copied().unwrap_or(beyond) as usize
}

impl<'g> WorkItemIds<'g> {
    #[inline(always)]
    pub(crate) fn new(of_group: &'g GroupIds, global_x: usize, local: [u32; 3]) -> Self {
        Self { of_group, global_x: Cell::new(global_x), local }
    }

    /// The same place in another group.
    #[inline(always)]
    pub(crate) fn set_global_x(&self, global_x: usize) {
        self.global_x.set(global_x);
    }

    /// Position in the work-group (`threadIdx`).
    #[inline(always)]
    pub fn local_id(&self, axis: usize) -> usize {
        along(self.local, axis, 0)
    }

    /// Position of the work-group (`blockIdx`).
    #[inline(always)]
    pub fn group_id(&self, axis: usize) -> usize {
        along(self.of_group.group(), axis, 0)
    }

    /// Work-items of a group (`blockDim`).
    #[inline(always)]
    pub fn group_size(&self, axis: usize) -> usize {
        along(self.of_group.group_size, axis, 1)
    }

    /// Groups of the launch (`gridDim`).
    #[inline(always)]
    pub fn groups(&self, axis: usize) -> usize {
        along(self.of_group.groups, axis, 1)
    }

    /// Position in the launch (`blockIdx * blockDim + threadIdx`).
    #[inline(always)]
    pub fn global_id(&self, axis: usize) -> usize {
        match axis {
            0 => self.global_x.get(),
            _ => self.group_id(axis) * self.group_size(axis) + self.local_id(axis),
        }
    }

    /// Work-items of the launch along an axis.
    #[inline(always)]
    pub fn global_size(&self, axis: usize) -> usize {
        self.groups(axis) * self.group_size(axis)
    }

    /// Position in the group with x running fastest: the order in which work-items fill waves.
    #[inline(always)]
    pub fn local_linear(&self) -> usize {
        (self.local_id(2) * self.group_size(1) + self.local_id(1)) * self.group_size(0) + self.local_id(0)
    }

    /// Position of the group with x running fastest.
    #[inline(always)]
    pub fn group_linear(&self) -> usize {
        (self.group_id(2) * self.groups(1) + self.group_id(1)) * self.groups(0) + self.group_id(0)
    }
}

/// Coordinates of the `linear`-th of `sizes` things, x running fastest.
pub(crate) fn coordinates(linear: u64, sizes: [u32; 3]) -> [u32; 3] {
    let [x, y] = [sizes[0], sizes[1]].map(|size| u64::from(size.max(1)));
    [(linear % x) as u32, (linear / x % y) as u32, (linear / x / y) as u32]
}

/// Coordinates after `[x, y, z]`.
#[inline(always)]
pub(crate) fn following([x, y, z]: [u32; 3], sizes: [u32; 3]) -> [u32; 3] {
    if x + 1 < sizes[0] {
        return [x + 1, y, z];
    }
    if y + 1 < sizes[1] { [0, y + 1, z] } else { [0, 0, z + 1] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coordinates_follow_in_the_order_of_their_numbers() {
        for sizes in [[1, 1, 1], [7, 1, 1], [1, 5, 1], [1, 1, 4], [3, 4, 5], [2, 1, 3]] {
            let mut at = coordinates(0, sizes);
            for linear in 1..sizes.iter().map(|size| u64::from(*size)).product() {
                at = following(at, sizes);
                assert_eq!(at, coordinates(linear, sizes), "{linear} of {sizes:?}");
            }
        }
    }
}
