//! State that the work-items of one group share while they run.

use crate::simt::{
    Fault, FaultKind, WorkItemIds,
    barrier::Desk,
    checker::Checker,
    fault,
    ids::{self, GroupIds},
    shared_arena::Arena,
    wave::Wave,
};
use gpumem_core::LaunchConfig;
use std::cell::Cell;

/// The state of the group that a thread is running; used for one group after the other.
#[derive(Debug)]
pub(crate) struct Group<'c> {
    pub(crate) desk: Desk,
    pub(crate) waves: Vec<Wave>,
    pub(crate) arena: Arena,
    pub(crate) wave_size: usize,
    pub(crate) checker: Option<&'c Checker>,
    pub(crate) ids: GroupIds,
    /// Work-items of a group; 0 if nothing is kept of them.
    items: usize,
    /// The number of the group after the last one.
    next: Cell<u64>,
}

/// The description of one work-item of each group, for the whole launch. Work-items hold a reference to theirs, so that
/// a suspended body stays small: a barrier has to load it.
#[derive(Debug)]
pub(crate) struct Seat<'g> {
    pub(crate) ids: WorkItemIds<'g>,
    /// Its wave in the group, and its place there.
    pub(crate) wave: u32,
    pub(crate) lane: u32,
    /// Work-items of that wave.
    pub(crate) lanes: u32,
}

impl<'c> Group<'c> {
    pub(crate) fn new(
        dims: LaunchConfig,
        wave_size: usize,
        shared_memory: usize,
        checker: Option<&'c Checker>,
    ) -> Result<Self, Fault> {
        let items = dims.group_size.iter().map(|size| *size as usize).product::<usize>();
        let waves = fault::list(items.div_ceil(wave_size), Wave::default)?;
        let dynamic = dims.shared_bytes as usize;
        let arena = Arena::new(shared_memory.max(dynamic), dynamic)?;
        Ok(Self { waves, arena, items, ..Self::flat(dims, wave_size, checker) })
    }

    /// For bodies that never wait: nothing is kept of a work-item.
    pub(crate) fn flat(dims: LaunchConfig, wave_size: usize, checker: Option<&'c Checker>) -> Self {
        Self {
            desk: Desk::new(),
            waves: Vec::new(),
            arena: Arena::default(),
            wave_size,
            checker,
            ids: GroupIds::new([0; 3], dims.group_size, dims.groups),
            items: 0,
            next: Cell::new(u64::MAX),
        }
    }

    /// The seats of the work-items, in the order of their numbers.
    pub(crate) fn seats(&self) -> Result<Vec<Seat<'_>>, Fault> {
        let [width, height, depth] = self.ids.group_size;
        let size = self.wave_size.min(self.items) as u32;
        let mut seats = fault::with_room(self.items)?;
        // Counted, not divided: a short launch spends much of its time here.
        let (mut wave, mut lane, mut lanes) = (0, 0, size);
        for z in 0..depth {
            for y in 0..height {
                for x in 0..width {
                    if lane == size {
                        (wave, lane) = (wave + 1, 0);
                        lanes = size.min((self.items - seats.len()) as u32);
                    }
                    seats.push(Seat { ids: WorkItemIds::new(&self.ids, 0, [x, y, z]), wave, lane, lanes });
                    lane += 1;
                }
            }
        }
        Ok(seats)
    }

    /// Work-items of a group; 0 if nothing is kept of them.
    #[inline(always)]
    pub(crate) fn items(&self) -> usize {
        self.items
    }

    /// Another group begins.
    #[inline(always)]
    pub(crate) fn begin(&self, number: u64) {
        let position = self.go_to(number);
        if self.items > 0 {
            self.arena.clear();
        }
        if let Some(checker) = self.checker {
            checker.begin(number, position, self.waves.len(), self.arena.dynamic_addresses());
        }
    }

    /// Makes another group the one that faults name. Returns its position.
    #[inline(always)]
    pub(crate) fn go_to(&self, number: u64) -> [u32; 3] {
        // Groups mostly come one after the other, and divisions take as long as a short group.
        let position = match number == self.next.replace(number + 1) {
            true => ids::following(self.ids.group(), self.ids.groups),
            false => ids::coordinates(number, self.ids.groups),
        };
        self.ids.set_group(position);
        position
    }

    /// This work-item runs from now on, for the check mode.
    #[cold]
    #[inline(never)]
    pub(crate) fn enter(&self, linear: u32) {
        if let Some(checker) = self.checker {
            let item = ids::coordinates(u64::from(linear), self.ids.group_size);
            checker.run(linear, item, linear / self.wave_size as u32);
        }
    }

    /// A fault of a work-item.
    pub(crate) fn fault_of(&self, linear: u32, kind: FaultKind) -> Fault {
        let item = ids::coordinates(u64::from(linear), self.ids.group_size);
        Fault { group: self.ids.group(), item, kind }
    }
}

/// Remembers the work-item that is unwound, without a store for those that are not.
pub(crate) struct Unwound<'a> {
    pub(crate) at: &'a Cell<u32>,
    pub(crate) number: u32,
}

impl Drop for Unwound<'_> {
    #[cold]
    fn drop(&mut self) {
        self.at.set(self.number);
    }
}
