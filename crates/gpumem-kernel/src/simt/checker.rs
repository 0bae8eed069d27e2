//! The check mode: which work-item touched each element last, and whether a barrier orders the accesses.

use crate::simt::{
    FaultKind, Memory,
    fault::{Access, AccessKind, raise},
    number::is_number,
};
use gpumem_core::BarrierScope;
use std::{
    collections::HashMap,
    ops::Range,
    panic::Location,
    sync::{Mutex, MutexGuard, PoisonError},
};

/// Memory that an argument gives a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryReach {
    /// The lowest byte.
    pub start: u64,
    /// Bytes up to the end of the highest element.
    pub bytes: u64,
}

/// An access, with the data that decides whether another one is ordered after it.
#[derive(Debug, Clone, Copy)]
struct Noted {
    access: Access,
    item: u32,
    wave: u32,
    /// Barriers of the group that it has passed, for this memory.
    epoch: u32,
    /// Fences of its wave that it has passed.
    fence: u32,
}

impl Noted {
    /// Whether nothing orders the two, of which `self` came first, both in one group.
    fn races_with(&self, later: &Self) -> bool {
        let harmless = self.access.kind == later.access.kind && later.access.kind != AccessKind::Write;
        let by_group = self.epoch < later.epoch;
        let by_wave = self.wave == later.wave && self.fence < later.fence;
        self.item != later.item && !harmless && !by_group && !by_wave
    }
}

/// The first access of each kind: read, write, atomic.
type ByKind = [Option<Access>; 3];

/// The accesses remembered for an element.
#[derive(Debug, Default)]
struct Element {
    /// Number of the group that touched it last.
    group: u64,
    /// Accesses of that group that something later in it may still race with.
    recent: Vec<Noted>,
    /// Accesses of that group, by kind.
    current: ByKind,
    /// Accesses of all groups before it, by kind: nothing orders the groups of a launch.
    before: ByKind,
}

impl Element {
    /// Notes an access. Returns the one that it races with.
    fn note(&mut self, group: u64, now: Noted) -> Option<Access> {
        if self.group != group {
            for (before, current) in self.before.iter_mut().zip(std::mem::take(&mut self.current)) {
                *before = before.or(current);
            }
            self.recent.clear();
            self.group = group;
        }
        let kind = now.access.kind;
        let [read, write, atomic] = self.before;
        let of_another_group = match kind {
            AccessKind::Read => write.or(atomic),
            AccessKind::Write => write.or(read).or(atomic),
            AccessKind::Atomic => write.or(read),
        };
        let of_this = self.recent.iter().find(|earlier| earlier.races_with(&now)).map(|noted| noted.access);
        let slot = &mut self.current[kind as usize];
        *slot = slot.or(Some(now.access));
        // Accesses that a barrier of the group has ordered cannot race with later ones.
        self.recent.retain(|earlier| earlier.epoch == now.epoch);
        let alike = |noted: &&Noted| noted.access.kind == kind;
        if let Some(own) =
            self.recent.iter_mut().find(|noted| noted.item == now.item && noted.access.kind == kind)
        {
            *own = now;
        } else {
            // Two entries of a kind from different waves suffice: any access that conflicts with a third conflicts with
            // one of them.
            let first = self.recent.iter().find(alike).map(|noted| noted.wave);
            let enough = self.recent.iter().filter(alike).any(|noted| Some(noted.wave) != first);
            if kind == AccessKind::Write || !enough {
                self.recent.push(now);
            }
        }
        of_this.or(of_another_group)
    }
}

/// The work-item that is running.
#[derive(Debug, Clone, Copy, Default)]
struct Current {
    group_number: u64,
    group: [u32; 3],
    item: [u32; 3],
    linear: u32,
    wave: u32,
    /// Group barriers passed: for shared and for global memory.
    epochs: [u32; 2],
}

/// The memory of the check mode. A checked launch runs its groups one after the other on one thread; but a body may use
/// its arguments on other threads, so the memory is locked.
#[derive(Debug, Default)]
#[doc(hidden)]
pub struct Checker(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    current: Current,
    /// Fences that each wave of the group has passed.
    fences: Vec<u32>,
    /// The dynamic shared memory, which bodies may use as elements of several types.
    dynamic: Range<usize>,
    shared: HashMap<u64, Element>,
    global: HashMap<u64, Element>,
    /// The arrays among the launch's arguments: position, counted from 1, and memory.
    arrays: Vec<(usize, MemoryReach)>,
}

impl State {
    /// Returns the position of the argument that reaches an address.
    fn argument_at(&self, address: u64) -> Option<usize> {
        let reaches = |(_, reach): &&(usize, MemoryReach)| {
            address.checked_sub(reach.start).is_some_and(|at| at < reach.bytes)
        };
        self.arrays.iter().find(reaches).map(|(position, _)| *position)
    }
}

impl Checker {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes the memory of the argument at `position`, counted from 1.
    pub(crate) fn note_argument(&self, position: usize, reach: Option<MemoryReach>) {
        self.state().arrays.extend(reach.map(|reach| (position, reach)));
    }

    /// Another group begins.
    pub(crate) fn begin(&self, number: u64, group: [u32; 3], waves: usize, dynamic: Range<usize>) {
        // The number 0 belongs to elements that have not been touched.
        let mut state = self.state();
        state.current = Current { group_number: number + 1, group, ..Current::default() };
        state.fences.clear();
        state.fences.resize(waves, 0);
        state.shared.clear();
        state.dynamic = dynamic;
    }

    /// This work-item runs from now on.
    pub(crate) fn run(&self, linear: u32, item: [u32; 3], wave: u32) {
        let mut state = self.state();
        state.current = Current { linear, item, wave, ..state.current };
    }

    /// The group has passed a barrier.
    pub(crate) fn pass_group(&self, scope: BarrierScope) {
        let mut state = self.state();
        let [shared, global] = &mut state.current.epochs;
        *shared += u32::from(scope != BarrierScope::Global);
        *global += u32::from(scope != BarrierScope::Local);
    }

    /// A wave has passed a fence.
    pub(crate) fn pass_wave(&self, wave: usize) {
        if let Some(fence) = self.state().fences.get_mut(wave) {
            *fence += 1;
        }
    }

    /// Notes that the running work-item touches the element `index` of an array, or a part of it that lies at `place`.
    ///
    /// Numbers have one type wherever they are used, and are noted by their first byte. All else is noted by each byte: elements
    /// with parts, of which different ones do not conflict, and dynamic shared memory.
    pub(crate) fn touch<T: 'static>(
        &self,
        memory: Memory,
        place: *mut T,
        index: &[usize],
        kind: AccessKind,
        at: &'static Location<'static>,
    ) {
        let has_types = memory == Memory::Shared && self.state().dynamic.contains(&place.addr());
        let bytes = if is_number::<T>() && !has_types { 1 } else { size_of::<T>() };
        for byte in 0..bytes {
            if !self.access(memory, (place.addr() + byte) as u64, index, kind, at) {
                return;
            }
        }
    }

    /// Notes an access to the element at `address`. Returns whether it was in order.
    fn access(
        &self,
        memory: Memory,
        address: u64,
        index: &[usize],
        kind: AccessKind,
        at: &'static Location<'static>,
    ) -> bool {
        let mut state = self.state();
        let State { current, fences, shared, global, .. } = &mut *state;
        let access = Access { kind, group: current.group, item: current.item, at };
        let (elements, epoch) = match memory {
            Memory::Shared => (shared, current.epochs[0]),
            Memory::Global => (global, current.epochs[1]),
        };
        let fence = fences.get(current.wave as usize).copied().unwrap_or(0);
        let noted = Noted { access, item: current.linear, wave: current.wave, epoch, fence };
        let fault = {
            let element = elements.entry(address).or_default();
            let fresh =
                element.group != current.group_number || element.current[1].or(element.current[2]).is_none();
            if memory == Memory::Shared && fresh && kind != AccessKind::Write {
                Some(FaultKind::NeverWritten { at })
            } else {
                let race = element.note(current.group_number, noted);
                race.map(|first| FaultKind::Race {
                    memory,
                    argument: (memory == Memory::Global).then(|| state.argument_at(address)).flatten(),
                    index: index.to_vec(),
                    first: Box::new(first),
                    second: Box::new(access),
                })
            }
        };
        drop(state);
        let in_order = fault.is_none();
        if let Some(fault) = fault {
            raise(fault);
        }
        in_order
    }
}
