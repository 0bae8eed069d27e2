//! Ranks that meet: the last to come moves the bytes of all.

use crate::{platform::Waker, reduce};
use std::{collections::HashMap, ffi::c_void, ptr::null};

/// What a rank calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    AllReduce,
    Reduce { root: usize },
    Broadcast { root: usize },
    AllGather,
    ReduceScatter,
    AllToAll,
    Send { to: usize },
    Receive { from: usize },
}

/// An operation of one rank.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Operation {
    pub(crate) kind: Kind,
    pub(crate) from: *const c_void,
    pub(crate) to: *mut c_void,
    pub(crate) count: usize,
    pub(crate) number: u32,
    pub(crate) reduction: u32,
}

// SAFETY: the memory is used on the thread of whichever rank comes last, while all streams wait.
unsafe impl Send for Operation {}

/// Which meeting: the nth operation of all, or the nth from one rank to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Key {
    All(u64),
    Pair(usize, usize, u64),
}

/// An operation that ranks come to.
#[derive(Debug, Default)]
pub(crate) struct Meeting {
    pub(crate) come: HashMap<usize, Operation>,
    pub(crate) wakers: Vec<Waker>,
    pub(crate) is_done: bool,
    /// A rank went away, or the ranks disagree: nothing is ever moved.
    pub(crate) is_dead: bool,
}

impl Meeting {
    /// Moves the bytes once all have come.
    pub(crate) fn run(&mut self, key: Key, size: usize) {
        // A pair has two ends, also if both are one rank's.
        let expected = if matches!(key, Key::All(_)) { size } else { 2 };
        let arrived = self.come.len();
        if self.is_done || self.is_dead || arrived < expected {
            return;
        }
        // SAFETY: all streams are at their operations, whose memory is valid until they are done.
        if unsafe { self.move_all(key, size) } {
            self.is_done = true;
        } else {
            self.is_dead = true;
        }
    }

    /// # Safety
    /// The memory of all operations is valid, and unused by other code.
    unsafe fn move_all(&self, key: Key, size: usize) -> bool {
        // A send and a receive are at places 0 and 1.
        let all: Vec<&Operation> =
            (0..self.come.len().max(2)).filter_map(|rank| self.come.get(&rank)).collect();
        let Some(first) = all.first() else { return false };
        let bytes = first.count * reduce::size(first.number);
        if all.iter().any(|other| other.count * reduce::size(other.number) != bytes) {
            return false;
        }
        if let Key::Pair(..) = key {
            let (from, to) = (self.come[&0].from, self.come[&1].to);
            // SAFETY: the caller's promise.
            unsafe { from.cast::<u8>().copy_to(to.cast(), bytes) };
            return true;
        }
        if all.iter().any(|other| other.kind != first.kind || other.reduction != first.reduction) {
            return false;
        }
        // SAFETY: the caller's promise.
        let read = |from: *const c_void, at: usize| unsafe {
            std::slice::from_raw_parts(from.cast::<u8>().add(at), bytes).to_vec()
        };
        // SAFETY: the caller's promise.
        let write = |to: *mut c_void, at: usize, from: &[u8]| unsafe {
            from.as_ptr().copy_to_nonoverlapping(to.cast::<u8>().add(at), from.len())
        };
        // SAFETY: the caller's promise.
        let combined = |at: usize| unsafe {
            let sources: Vec<_> = all.iter().map(|own| own.from.byte_add(at)).collect();
            reduce::reduce(first.number, first.reduction, &sources, first.count)
        };
        match first.kind {
            Kind::AllReduce => {
                let result = combined(0);
                all.iter().for_each(|own| write(own.to, 0, &result));
            }
            Kind::Reduce { root } => write(all[root].to, 0, &combined(0)),
            Kind::Broadcast { root } => {
                let values = read(all[root].from, 0);
                all.iter().for_each(|own| write(own.to, 0, &values));
            }
            Kind::AllGather => {
                let values: Vec<_> = all.iter().map(|own| read(own.from, 0)).collect();
                for own in &all {
                    values.iter().enumerate().for_each(|(rank, block)| write(own.to, rank * bytes, block));
                }
            }
            Kind::ReduceScatter => {
                let results: Vec<_> = (0..size).map(|rank| combined(rank * bytes)).collect();
                all.iter().zip(&results).for_each(|(own, result)| write(own.to, 0, result));
            }
            Kind::AllToAll => {
                for (rank, own) in all.iter().enumerate() {
                    let blocks: Vec<_> = all.iter().map(|other| read(other.from, rank * bytes)).collect();
                    blocks.iter().enumerate().for_each(|(at, block)| write(own.to, at * bytes, block));
                }
            }
            Kind::Send { .. } | Kind::Receive { .. } => return false,
        }
        true
    }
}

/// An operation without places.
pub(crate) const NOTHING: Operation = Operation {
    kind: Kind::AllReduce,
    from: null(),
    to: std::ptr::null_mut(),
    count: 0,
    number: 1,
    reduction: 0,
};
