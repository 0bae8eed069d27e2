//! Bodies that are split at their barriers: between two barriers runs a loop over the work-items of the group.
//!
//! `#[kernel]` splits a body if all work-items of a group are known to come to the same barriers. A [`Private`] holds a
//! value that each work-item keeps across a barrier; a value that all work-items share is a variable outside the loops.

use crate::simt::{
    Fault, Inside, Number, Parameters, Shared, WorkItemIds, fault,
    group::{Group, Unwound},
    group_batch::Batch,
    ids::GroupIds,
    name::SiteName,
    wave::{LANES, reduce_lanes, scan_lanes},
};
use gpumem_core::Element;
use std::{any::TypeId, cell::Cell, hint::assert_unchecked, ops::Deref, panic::Location};

/// The group that a thread runs, and those that it runs after it.
#[derive(Debug)]
pub struct Phases<'g> {
    group: &'g Group<'g>,
    numbers: &'g mut Batch,
    /// The work-item that panicked.
    at: &'g Cell<u32>,
    arguments: (usize, TypeId),
    /// The work-items about which the arguments promise more.
    inside: Inside,
    /// Whether all of the group are among them.
    is_inside: bool,
}

/// A work-item between two barriers, with its [`WorkItemIds`].
#[derive(Debug)]
pub struct PhaseItem<'i, 'g> {
    ids: WorkItemIds<'i>,
    group: &'g Group<'g>,
    linear: u32,
}

/// A variable that each work-item of a group has for itself, and keeps across barriers.
#[derive(Debug)]
pub struct Private<T>(Vec<T>);

/// Runs some groups of a launch on this thread.
/// Returns the first fault; the groups after it have not run.
#[inline(never)] // so that the arguments alias nothing that the body writes
pub(crate) fn run<P: Parameters>(
    group: &Group<'_>,
    numbers: &mut Batch,
    arguments: &P,
    body: &impl Fn(&mut Phases<'_>, &P) -> Result<(), Fault>,
) -> Result<(), Fault> {
    let at = Cell::new(0);
    let mut inside = Inside::all();
    arguments.narrow(&mut inside);
    let mut phases =
        Phases { group, numbers, at: &at, arguments: identity(arguments), inside, is_inside: false };
    match fault::catch(|| body(&mut phases, arguments)) {
        Ok(Ok(())) if !cfg!(panic = "unwind") => match fault::take() {
            Some(kind) => Err(group.fault_of(at.get(), kind)),
            None => Ok(()),
        },
        Ok(outcome) => outcome,
        Err(kind) => Err(group.fault_of(at.get(), kind)),
    }
}

/// Tells arguments apart.
#[inline(always)]
fn identity<P: Parameters>(arguments: &P) -> (usize, TypeId) {
    (std::ptr::from_ref(arguments).addr(), TypeId::of::<P>())
}

impl<'g> Phases<'g> {
    /// Goes on to the next group. Returns `false` after the last one.
    #[inline(always)]
    pub fn next_group(&mut self) -> bool {
        let Some(number) = self.numbers.next() else { return false };
        self.at.set(0);
        self.group.begin(number);
        let (group, sizes) = (self.group.ids.group(), self.group.ids.group_size);
        let first = |axis: usize| group[axis] as usize * sizes[axis] as usize;
        self.is_inside = self.inside.has_all([first(0), first(1), first(2)], sizes);
        true
    }

    /// Returns the first work-item, which computes the values that all share.
    #[inline(always)]
    pub fn first(&self) -> PhaseItem<'g, 'g> {
        let group = self.group;
        PhaseItem { ids: WorkItemIds::new(&group.ids, group.ids.first_x(), [0; 3]), group, linear: 0 }
    }

    /// Runs each work-item of the group, in the order of their numbers.
    ///
    /// # Errors
    /// Returns the first fault, in programs that do not unwind.
    #[inline(always)]
    pub fn each(&self, run: impl FnMut(&PhaseItem<'_, 'g>)) -> Result<(), Fault> {
        self.rows(&self.group.ids, run)
    }

    /// As [`each`](Self::each), in two loops: one for groups that stand inside all arguments and have no axis longer than one of
    /// `extents`, those of the shared arrays, about which the compiler may assume that; and one for all other groups.
    ///
    /// # Errors
    /// As [`each`](Self::each).
    #[inline(always)]
    pub fn each_inside<P: Parameters>(
        &self,
        arguments: &P,
        extents: &[usize],
        mut run: impl FnMut(&PhaseItem<'_, 'g>),
    ) -> Result<(), Fault> {
        let sizes = self.group.ids.group_size;
        let least = extents.iter().copied().fold(usize::MAX, usize::min);
        let is_inside = self.is_inside && self.arguments == identity(arguments);
        let is_small = sizes[0].max(sizes[1]).max(sizes[2]) as usize <= least;
        if is_inside && is_small {
            // A private copy: its ids are no memory that the body could write.
            let ids = self.group.ids.copied();
            return self.rows(&ids, |item| {
                // SAFETY: the group is inside all of these arguments, and so small.
                unsafe {
                    arguments.assume([item.global_id(0), item.global_id(1), item.global_id(2)]);
                    assert_unchecked(item.local_id(0) < least);
                    assert_unchecked(item.local_id(1) < least);
                    assert_unchecked(item.local_id(2) < least);
                }
                run(item);
            });
        }
        self.each(run)
    }

    #[inline(always)]
    fn rows(&self, ids: &GroupIds, mut run: impl FnMut(&PhaseItem<'_, 'g>)) -> Result<(), Fault> {
        let (group, first) = (self.group, ids.first_x());
        let [width, height, depth] = ids.group_size;
        let mut row = 0;
        for z in 0..depth {
            for y in 0..height {
                for x in 0..width {
                    let linear = row + x;
                    let ids = WorkItemIds::new(ids, first + x as usize, [x, y, z]);
                    let unwound = Unwound { at: self.at, number: linear };
                    run(&PhaseItem { ids, group, linear });
                    std::mem::forget(unwound);
                    if !cfg!(panic = "unwind")
                        && let Some(kind) = fault::take()
                    {
                        return Err(group.fault_of(linear, kind));
                    }
                }
                row += width;
            }
        }
        Ok(())
    }

    /// Computes, for each wave, the results of its work-items from their values.
    #[inline(always)]
    fn each_wave<T: Copy, R>(
        &self,
        values: &Private<T>,
        results: &mut Private<R>,
        mut compute: impl FnMut(&[T], &mut Vec<R>),
    ) {
        results.0.clear();
        if !results.has_room(values.0.len()) {
            return;
        }
        for (number, lanes) in values.0.chunks(self.group.wave_size).enumerate() {
            // If the function panics, the first lane of the wave is named.
            self.at.set((number * self.group.wave_size) as u32);
            compute(lanes, &mut results.0);
        }
        self.at.set(0);
    }

    /// Combines all values of a wave, for each of its work-items.
    #[inline(always)]
    pub fn wave_reduce<T: Element>(
        &self,
        values: &Private<T>,
        results: &mut Private<T>,
        op: impl Fn(T, T) -> T,
    ) {
        let wave_size = self.group.wave_size;
        self.each_wave(values, results, |given, results| {
            let mut lanes = lanes(given);
            let all = reduce_lanes(&mut lanes[..given.len()], wave_size, &op);
            results.extend(std::iter::repeat_n(all, given.len()));
        });
    }

    /// Adds the values of a wave.
    #[inline(always)]
    pub fn wave_sum<T: Number>(&self, values: &Private<T>, results: &mut Private<T>) {
        self.wave_reduce(values, results, T::plus);
    }

    /// Finds the smallest value of a wave.
    #[inline(always)]
    pub fn wave_min<T: Number>(&self, values: &Private<T>, results: &mut Private<T>) {
        self.wave_reduce(values, results, T::least);
    }

    /// Finds the largest value of a wave.
    #[inline(always)]
    pub fn wave_max<T: Number>(&self, values: &Private<T>, results: &mut Private<T>) {
        self.wave_reduce(values, results, T::greatest);
    }

    /// Adds the values of lanes 0 to the work-item's own.
    #[inline(always)]
    pub fn wave_scan<T: Number>(&self, values: &Private<T>, results: &mut Private<T>) {
        let wave_size = self.group.wave_size;
        self.each_wave(values, results, |given, results| {
            let mut lanes = lanes(given);
            scan_lanes(&mut lanes[..given.len()], wave_size, T::plus);
            results.extend_from_slice(&lanes[..given.len()]);
        });
    }

    /// Sets a bit for each lane whose condition holds. Lane 0 is the lowest.
    #[inline(always)]
    pub fn wave_ballot(&self, values: &Private<bool>, results: &mut Private<u64>) {
        self.each_wave(values, results, |given, results| {
            let set = given.iter().enumerate().filter(|(_, value)| **value);
            let bits = set.fold(0, |bits, (lane, _)| bits | 1u64 << lane);
            results.extend(std::iter::repeat_n(bits, given.len()));
        });
    }

    /// Tells whether the condition holds in any lane.
    #[inline(always)]
    pub fn wave_any(&self, values: &Private<bool>, results: &mut Private<bool>) {
        self.each_wave(values, results, |given, results| {
            let any = given.iter().any(|value| *value);
            results.extend(std::iter::repeat_n(any, given.len()));
        });
    }

    /// Tells whether the condition holds in every lane.
    #[inline(always)]
    pub fn wave_all(&self, values: &Private<bool>, results: &mut Private<bool>) {
        self.each_wave(values, results, |given, results| {
            let all = given.iter().all(|value| *value);
            results.extend(std::iter::repeat_n(all, given.len()));
        });
    }

    /// Gives each work-item the value of another lane; its own if there is no such lane.
    #[inline(always)]
    fn exchange<T: Copy>(
        &self,
        (values, others): (&Private<T>, &Private<usize>),
        results: &mut Private<T>,
        from: impl Fn(usize, usize) -> Option<usize>,
    ) {
        let mut others = others.0.iter();
        self.each_wave(values, results, |given, results| {
            results.extend(given.iter().zip(others.by_ref()).enumerate().map(|(lane, (own, other))| {
                from(lane, *other).and_then(|lane| given.get(lane)).copied().unwrap_or(*own)
            }));
        });
    }

    /// Gives the value of a lane; one's own if there is no such lane.
    #[inline(always)]
    pub fn shuffle<T: Element>(&self, values: &Private<T>, lanes: &Private<usize>, results: &mut Private<T>) {
        self.exchange((values, lanes), results, |_, other| Some(other));
    }

    /// Gives the value of the lane that many below; one's own if there is none.
    #[inline(always)]
    pub fn shuffle_up<T: Element>(
        &self,
        values: &Private<T>,
        distances: &Private<usize>,
        results: &mut Private<T>,
    ) {
        self.exchange((values, distances), results, |lane, other| lane.checked_sub(other));
    }

    /// Gives the value of the lane that many above; one's own if there is none.
    #[inline(always)]
    pub fn shuffle_down<T: Element>(
        &self,
        values: &Private<T>,
        distances: &Private<usize>,
        results: &mut Private<T>,
    ) {
        self.exchange((values, distances), results, |lane, other| lane.checked_add(other));
    }

    /// Gives the value of the lane whose number differs in these bits; one's own if there is none.
    #[inline(always)]
    pub fn shuffle_xor<T: Element>(
        &self,
        values: &Private<T>,
        masks: &Private<usize>,
        results: &mut Private<T>,
    ) {
        self.exchange((values, masks), results, |lane, other| Some(lane ^ other));
    }
}

fn lanes<T: Element>(given: &[T]) -> [T; LANES] {
    let mut lanes = [T::zeroed(); LANES];
    lanes[..given.len()].copy_from_slice(given);
    lanes
}

impl<'i> Deref for PhaseItem<'i, '_> {
    type Target = WorkItemIds<'i>;

    #[inline(always)]
    fn deref(&self) -> &WorkItemIds<'i> {
        &self.ids
    }
}

impl<'g> PhaseItem<'_, 'g> {
    /// Makes writes before it visible to other groups before writes after it.
    pub fn memory_fence(&self) {
        std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
    }

    /// Work-items of a wave on this device.
    #[inline(always)]
    pub fn wave_size(&self) -> usize {
        self.group.wave_size
    }

    /// The wave of this work-item in its group.
    #[inline(always)]
    pub fn wave_id(&self) -> usize {
        self.linear as usize / self.group.wave_size
    }

    /// The place of this work-item in its wave.
    #[inline(always)]
    pub fn lane(&self) -> usize {
        self.linear as usize % self.group.wave_size
    }

    /// Work-items of this wave.
    #[inline(always)]
    pub fn wave_items(&self) -> usize {
        let first = self.wave_id() * self.group.wave_size;
        (self.group.items() - first).min(self.group.wave_size)
    }

    /// As [`WorkItem::shared`](crate::simt::WorkItem::shared).
    #[inline(always)]
    #[track_caller]
    pub fn shared<T: Element, const N: usize>(&self, extents: [usize; N]) -> Shared<'g, T, N> {
        self.group.shared(extents, None, SiteName::at(Location::caller()))
    }

    /// As [`WorkItem::shared_at`](crate::simt::WorkItem::shared_at).
    #[doc(hidden)]
    #[inline(always)]
    #[track_caller]
    pub fn shared_at<T: Element, const N: usize>(
        &self,
        number: u32,
        extents: [usize; N],
    ) -> Shared<'g, T, N> {
        self.group.shared(extents, None, SiteName::numbered(number, Location::caller()))
    }

    /// As [`WorkItem::dynamic_shared`](crate::simt::WorkItem::dynamic_shared).
    pub fn dynamic_shared<T: Element>(&self) -> Shared<'g, T, 1> {
        self.group.dynamic_shared(None)
    }
}

impl<T: Copy> Private<T> {
    #[allow(clippy::new_without_default)] // its type is inferred, which a default would not help
    pub fn new() -> Self {
        Self(Vec::new())
    }

    #[inline(always)]
    pub fn get(&self, item: &PhaseItem<'_, '_>) -> T {
        self.0[item.linear as usize]
    }

    #[inline(always)]
    pub fn set(&mut self, item: &PhaseItem<'_, '_>, value: T) {
        match self.0.get_mut(item.linear as usize) {
            Some(place) => *place = value,
            None => self.make(item.group.items(), value),
        }
    }

    /// Makes room for all work-items, when the first of them has a value.
    #[cold]
    #[inline(never)]
    fn make(&mut self, items: usize, value: T) {
        if self.has_room(items) {
            self.0.resize(items, value);
        }
    }
}

impl<T> Private<T> {
    /// Whether there is memory for a value of each work-item; else raises the fault.
    fn has_room(&mut self, items: usize) -> bool {
        fault::reserve(&mut self.0, items).map_err(fault::raise).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simt::FaultKind;

    #[test]
    fn values_without_memory_are_a_fault() {
        let mut vast = Private::<[u8; 1 << 40]>(Vec::new());
        // More than there are addresses: no allocator is asked, as that of Miri would end the test.
        let fault = fault::catch(|| vast.has_room(1 << 24));
        assert_eq!(fault, Err(FaultKind::HostMemory { needs: usize::MAX }));
        assert!(Private::<u8>(Vec::new()).has_room(1 << 10));
    }
}
