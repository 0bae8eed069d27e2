//! The work-item as a body with barriers sees it.

use crate::simt::{
    BarrierFuture, FaultKind, Shared, WorkItemIds,
    barrier::Stop,
    checker::Checker,
    fault::raise,
    group::{Group, Seat},
    name::SiteName,
    wave::Wave,
};
use gpumem_core::{BarrierScope, Element};
use std::{ops::Deref, panic::Location};

/// A work-item, with its [`WorkItemIds`]. All work-items of a group run in turn on one thread.
#[derive(Debug, Clone, Copy)]
pub struct WorkItem<'g> {
    group: &'g Group<'g>,
    pub(crate) seat: &'g Seat<'g>,
}

impl<'g> Deref for WorkItem<'g> {
    type Target = WorkItemIds<'g>;

    #[inline(always)]
    fn deref(&self) -> &WorkItemIds<'g> {
        &self.seat.ids
    }
}

impl<'g> WorkItem<'g> {
    #[inline(always)]
    pub(crate) fn new(group: &'g Group<'g>, seat: &'g Seat<'g>) -> Self {
        Self { group, seat }
    }

    /// Waits until all work-items of the group have come here. After it, all of them see the earlier writes to the
    /// memory of the scope.
    ///
    /// All of the group must come to the same barrier: one that has ended, or waits elsewhere, is a
    /// [fault](crate::simt::FaultKind::GroupDivergence). Barriers are known by their places in the source; in a body that a
    /// `macro_rules` writes all have one place, and `#[kernel]` numbers them.
    #[inline(always)]
    #[track_caller]
    pub fn barrier(self, scope: BarrierScope) -> BarrierFuture<'g> {
        self.arrive(scope.into(), SiteName::at(Location::caller()))
    }

    /// Waits until all work-items of the wave have come here, with a fence for shared and global memory among them.
    #[inline(always)]
    #[track_caller]
    pub fn wavebarrier(self) -> BarrierFuture<'g> {
        self.arrive(Stop::WaveFence, SiteName::at(Location::caller()))
    }

    /// Makes writes before it visible to other groups before writes after it. Does not order accesses within the group:
    /// barriers do that.
    pub fn memory_fence(self) {
        std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
    }

    /// Says where it is about to wait.
    #[inline(always)]
    pub(crate) fn say(self, stop: Stop, name: SiteName) {
        self.group.desk.set(stop, name);
    }

    #[inline(always)]
    pub(crate) fn arrive(self, stop: Stop, name: SiteName) -> BarrierFuture<'g> {
        BarrierFuture::new(&self.group.desk, stop, name)
    }

    /// The work-item where it waits, or its wave exchanges values: at the barrier or operation of this number, which `#[kernel]`
    /// gives to each of a body.
    #[doc(hidden)]
    #[inline(always)]
    pub fn numbered(self, number: u32) -> NumberedItem<'g> {
        NumberedItem { item: self, number }
    }

    /// Work-items of a wave on this device: 32 or 64.
    #[inline(always)]
    pub fn wave_size(self) -> usize {
        self.group.wave_size
    }

    /// The wave of this work-item in its group.
    #[inline(always)]
    pub fn wave_id(self) -> usize {
        self.seat.wave as usize
    }

    /// The place of this work-item in its wave.
    #[inline(always)]
    pub fn lane(self) -> usize {
        self.seat.lane as usize
    }

    /// Work-items of this wave: fewer than the wave size in the last wave of a group whose size does not divide.
    #[inline(always)]
    pub fn wave_items(self) -> usize {
        self.seat.lanes as usize
    }

    #[inline(always)]
    pub(crate) fn wave(self) -> &'g Wave {
        &self.group.waves[self.wave_id()]
    }

    /// A shared array of the group. Each place of the source that names one is one array, as a declaration is on a GPU; all
    /// work-items must name it with the same shape.
    ///
    /// All that one `macro_rules` writes stands at one place, where the macro is called: a body that a `macro_rules` writes
    /// uses `#[kernel]`, which numbers its arrays.
    ///
    /// More than the group has is a [fault](crate::simt::FaultKind::SharedMemory). Elements are aligned to at most 16 bytes:
    /// others do not compile.
    #[inline(always)]
    #[track_caller]
    pub fn shared<T: Element, const N: usize>(self, extents: [usize; N]) -> Shared<'g, T, N> {
        self.group.shared(extents, self.group.checker, SiteName::at(Location::caller()))
    }

    /// The shared array of this number, which `#[kernel]` gives to each declaration of a body.
    #[doc(hidden)]
    #[inline(always)]
    #[track_caller]
    pub fn shared_at<T: Element, const N: usize>(self, number: u32, extents: [usize; N]) -> Shared<'g, T, N> {
        self.group.shared(extents, self.group.checker, SiteName::numbered(number, Location::caller()))
    }

    /// The dynamic shared memory of the launch, as elements: `shared_bytes` of it.
    ///
    /// Elements are aligned to at most 16 bytes: others do not compile.
    pub fn dynamic_shared<T: Element>(self) -> Shared<'g, T, 1> {
        self.group.dynamic_shared(self.group.checker)
    }
}

/// A work-item at a numbered barrier or operation of a wave. What it does there is what [`WorkItem`] does.
#[derive(Debug, Clone, Copy)]
pub struct NumberedItem<'g> {
    pub(crate) item: WorkItem<'g>,
    pub(crate) number: u32,
}

impl<'g> NumberedItem<'g> {
    /// As [`WorkItem::barrier`].
    #[inline(always)]
    #[track_caller]
    pub fn barrier(self, scope: BarrierScope) -> BarrierFuture<'g> {
        self.item.arrive(scope.into(), SiteName::numbered(self.number, Location::caller()))
    }

    /// As [`WorkItem::wavebarrier`].
    #[inline(always)]
    #[track_caller]
    pub fn wavebarrier(self) -> BarrierFuture<'g> {
        self.item.arrive(Stop::WaveFence, SiteName::numbered(self.number, Location::caller()))
    }
}

impl<'g> Group<'g> {
    /// The shared array of this name.
    #[inline(always)]
    pub(crate) fn shared<T: Element, const N: usize>(
        &'g self,
        extents: [usize; N],
        checker: Option<&'g Checker>,
        name: SiteName,
    ) -> Shared<'g, T, N> {
        const { check_alignment::<T>() };
        let arena = &self.arena;
        let size = extents.iter().try_fold(size_of::<T>(), |size, extent| size.checked_mul(*extent));
        let lengths = extents.map(|extent| u32::try_from(extent).ok());
        // An axis that long fits only beside one of length zero, or with elements of no bytes.
        let size = size.filter(|_| lengths.iter().all(Option::is_some)).unwrap_or(usize::MAX);
        match arena.named(name, size) {
            Ok(offset) => {
                let lengths = lengths.map(Option::unwrap_or_default);
                Shared::over(arena.at(offset).cast::<T>(), lengths, checker)
            }
            Err(needs) => {
                raise(FaultKind::SharedMemory { needs, has: arena.bytes(), at: name.place });
                Shared::over(arena.at(0).cast::<T>(), [0; N], checker)
            }
        }
    }

    /// The dynamic shared memory of the launch, as elements.
    pub(crate) fn dynamic_shared<T: Element>(&'g self, checker: Option<&'g Checker>) -> Shared<'g, T, 1> {
        const { check_alignment::<T>() };
        // The launch gives the number of bytes in 32 bits.
        let len = self.arena.dynamic().checked_div(size_of::<T>()).unwrap_or(0) as u32;
        Shared::over(self.arena.at(0).cast::<T>(), [len], checker)
    }
}

/// Refuses elements that shared memory has no place for, while the program is compiled.
#[allow(clippy::panic)] // in a constant
const fn check_alignment<T>() {
    assert!(
        align_of::<T>() <= crate::simt::shared_arena::ALIGN,
        "elements of shared arrays are aligned to at most 16 bytes"
    );
}
