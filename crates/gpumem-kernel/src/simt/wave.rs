//! The memory of one wave, through which its work-items exchange values.

use crate::simt::fault;
use gpumem_core::Element;
use std::cell::{Cell, OnceCell};

/// Work-items of the largest wave.
pub(crate) const LANES: usize = 64;

/// The values that the lanes of one wave exchange. Two sets in turn, because a lane that goes on writes its next value
/// before the others have read the last ones.
#[derive(Debug, Default)]
pub(crate) struct Wave {
    /// Made at the first exchange, because most kernels have none.
    sets: OnceCell<Box<[Set; 2]>>,
    /// The set that values are given to.
    open: Cell<bool>,
}

/// The values of one exchange.
#[derive(Debug)]
pub(crate) struct Set {
    pub(crate) values: [Cell<u128>; LANES],
    /// The result that all lanes share, once the first of them has computed it.
    pub(crate) result: Cell<Option<u128>>,
}

impl Default for Set {
    fn default() -> Self {
        Self { values: [const { Cell::new(0) }; LANES], result: Cell::new(None) }
    }
}

impl Wave {
    /// All lanes have arrived, so all have read the values exchanged before.
    #[inline(always)]
    pub(crate) fn release(&self) {
        self.open.set(!self.open.get());
        if let Some(sets) = self.sets.get() {
            sets[usize::from(self.open.get())].result.set(None);
        }
    }

    /// The set of the next exchange; `None` if the host has no memory for it, which is a fault.
    #[inline(always)]
    pub(crate) fn open(&self) -> Option<&Set> {
        let sets = self.sets.get().map_or_else(|| self.make(), |sets| Some(sets))?;
        Some(&sets[usize::from(self.open.get())])
    }

    #[cold]
    #[inline(never)]
    fn make(&self) -> Option<&[Set; 2]> {
        let sets = fault::list(2, Set::default).map_err(|fault| fault::raise(fault.kind)).ok()?;
        let sets = sets.into_boxed_slice().try_into().ok()?;
        Some(self.sets.get_or_init(|| sets))
    }

    /// The set of the last exchange; `None` if there was none.
    #[inline(always)]
    pub(crate) fn closed(&self) -> Option<&Set> {
        Some(&self.sets.get()?[usize::from(!self.open.get())])
    }
}

#[inline(always)]
pub(crate) fn pack<T: Element>(value: T) -> u128 {
    const { assert!(size_of::<T>() <= 16, "lanes exchange values of at most 16 bytes") };
    let mut bits = 0u128;
    if let Some(bytes) = bytemuck::bytes_of_mut(&mut bits).get_mut(..size_of::<T>()) {
        bytes.copy_from_slice(bytemuck::bytes_of(&value));
    }
    bits
}

#[inline(always)]
pub(crate) fn unpack<T: Element>(bits: u128) -> T {
    let bytes = bytemuck::bytes_of(&bits);
    bytes.get(..size_of::<T>()).map_or_else(T::zeroed, bytemuck::pod_read_unaligned)
}

/// Combines the values of a wave by the tree that the prelude walks on a GPU: lane `i` takes in lane `i + d`, for `d` from
/// half a wave down to 1.
#[inline(always)]
pub(crate) fn reduce_lanes<T: Copy>(values: &mut [T], wave_size: usize, op: impl Fn(T, T) -> T) -> T {
    let lanes = values.len();
    let mut distance = wave_size / 2;
    while distance > 0 {
        for lane in 0..distance.min(lanes.saturating_sub(distance)) {
            values[lane] = op(values[lane], values[lane + distance]);
        }
        distance /= 2;
    }
    values[0]
}

/// Combines each value with those of the lanes below, in the order of the prelude (Kogge and Stone).
#[inline(always)]
pub(crate) fn scan_lanes<T: Copy>(values: &mut [T], wave_size: usize, op: impl Fn(T, T) -> T) {
    let mut distance = 1;
    while distance < wave_size {
        for lane in (distance..values.len()).rev() {
            values[lane] = op(values[lane - distance], values[lane]);
        }
        distance *= 2;
    }
}
