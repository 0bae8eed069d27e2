//! What the work-items of one group share while they run.

use crate::{
    Fault, FaultKind,
    arena::Arena,
    barrier::Slot,
    checker::Checker,
    ids::{self, GroupIds},
    wave::Wave,
};
use gpumem_core::LaunchDims;
use std::cell::Cell;

/// The state of the group that a thread is running; used for one group after the other.
#[derive(Debug)]
pub(crate) struct Group<'c> {
    pub(crate) slots: Vec<Slot>,
    pub(crate) waves: Vec<Wave>,
    pub(crate) arena: Arena,
    pub(crate) wave_size: usize,
    pub(crate) checker: Option<&'c Checker>,
    /// The group that runs.
    pub(crate) ids: GroupIds,
    /// The work-item that runs.
    current: Cell<u32>,
    /// The number of the group behind the last one.
    next: Cell<u64>,
}

impl<'c> Group<'c> {
    pub(crate) fn new(
        dims: LaunchDims,
        wave_size: usize,
        shared_memory: usize,
        checker: Option<&'c Checker>,
    ) -> Self {
        let items = dims.group_size.iter().map(|size| *size as usize).product::<usize>();
        Self::with_items(items, dims, wave_size, shared_memory, checker)
    }

    /// For bodies that never wait: nothing is kept of a work-item.
    pub(crate) fn flat(dims: LaunchDims, wave_size: usize, checker: Option<&'c Checker>) -> Self {
        Self::with_items(0, LaunchDims { shared_bytes: 0, ..dims }, wave_size, 0, checker)
    }

    fn with_items(
        items: usize,
        dims: LaunchDims,
        wave_size: usize,
        shared_memory: usize,
        checker: Option<&'c Checker>,
    ) -> Self {
        let waves = items.div_ceil(wave_size);
        Self {
            slots: (0..items).map(|_| Slot::new()).collect(),
            waves: (0..waves).map(|_| Wave::new(wave_size)).collect(),
            arena: Arena::new(shared_memory.max(dims.shared_bytes as usize), dims.shared_bytes as usize),
            wave_size,
            checker,
            ids: GroupIds { group: Cell::new([0; 3]), group_size: dims.group_size, groups: dims.groups },
            current: Cell::new(0),
            next: Cell::new(u64::MAX),
        }
    }

    /// Work-items of a group.
    pub(crate) fn items(&self) -> usize {
        self.slots.len()
    }

    /// Another group begins.
    #[inline(always)]
    pub(crate) fn begin(&self, number: u64) {
        // Groups mostly come one after the other, and divisions take as long as a short group.
        let position = match number == self.next.replace(number + 1) {
            true => ids::following(self.ids.group.get(), self.ids.groups),
            false => ids::coordinates(number, self.ids.groups),
        };
        self.ids.group.set(position);
        if !self.slots.is_empty() {
            self.arena.clear();
        }
        if let Some(checker) = self.checker {
            checker.begin(number, position, self.waves.len());
        }
    }

    /// This work-item runs from now on.
    #[inline(always)]
    pub(crate) fn enter(&self, linear: u32) {
        self.current.set(linear);
        if let Some(checker) = self.checker {
            let item = ids::coordinates(u64::from(linear), self.ids.group_size);
            checker.run(linear, item, linear / self.wave_size as u32);
        }
    }

    /// A fault of the work-item that runs.
    pub(crate) fn fault(&self, kind: FaultKind) -> Fault {
        self.fault_of(self.current.get(), kind)
    }

    /// A fault of a work-item.
    pub(crate) fn fault_of(&self, linear: u32, kind: FaultKind) -> Fault {
        let item = ids::coordinates(u64::from(linear), self.ids.group_size);
        Fault { group: self.ids.group.get(), item, kind }
    }
}
