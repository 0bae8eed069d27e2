//! Communicators, and the work that they enqueue.

use crate::{
    Fault, Wake, Work,
    meeting::{Key, Kind, Meeting, Operation},
    platform::{Waker, platform},
};
use std::{
    collections::HashMap,
    ffi::c_void,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::Duration,
};

pub(crate) const SUCCESS: u32 = 0;
pub(crate) const SYSTEM_ERROR: u32 = 2;
pub(crate) const INVALID_ARGUMENT: u32 = 4;
pub(crate) const INVALID_USAGE: u32 = 5;
pub(crate) const REMOTE_ERROR: u32 = 6;

/// The faults, one bit each.
pub(crate) static FAULTS: AtomicU32 = AtomicU32::new(0);

pub(crate) fn has(fault: Fault) -> bool {
    FAULTS.load(Ordering::SeqCst) & (1 << fault as u32) != 0
}

/// What the ranks of a communicator share.
#[derive(Debug, Default)]
pub(crate) struct Group {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    joined: usize,
    open: HashMap<Key, Meeting>,
    /// How many ranks have called each operation.
    called: HashMap<Key, usize>,
}

impl Group {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One rank.
#[derive(Debug)]
pub(crate) struct Communicator {
    pub(crate) group: Arc<Group>,
    pub(crate) rank: usize,
    pub(crate) size: usize,
    device: u64,
    numbers: Mutex<HashMap<(usize, usize), u64>>,
    pub(crate) aborted: AtomicBool,
}

static GROUPS: Mutex<Option<HashMap<[u8; 128], Arc<Group>>>> = Mutex::new(None);

impl Communicator {
    /// Joins, and waits for all other ranks.
    pub(crate) fn join(id: [u8; 128], rank: usize, size: usize) -> Result<Arc<Self>, u32> {
        let device = platform().map_or(0, |platform| (platform.current)());
        if device == 0 || rank >= size {
            return Err(INVALID_ARGUMENT);
        }
        let group = {
            let mut groups = GROUPS.lock().unwrap_or_else(PoisonError::into_inner);
            groups.get_or_insert_default().entry(id).or_default().clone()
        };
        let mut state = group.lock();
        state.joined += 1;
        group.changed.notify_all();
        while state.joined < size {
            state = group.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        drop(state);
        let (numbers, aborted) = (Mutex::default(), AtomicBool::new(false));
        Ok(Arc::new(Self { group, rank, size, device, numbers, aborted }))
    }

    /// The meeting of the next operation, and the seat there.
    fn key(&self, kind: Kind) -> (Key, usize) {
        let mut numbers = self.numbers.lock().unwrap_or_else(PoisonError::into_inner);
        let mut next = |from: usize, to: usize, end: usize| {
            // Each end of a pair counts for itself: a rank may be both.
            let number = numbers.entry((from * 2 + end, to)).or_default();
            *number += 1;
            *number
        };
        match kind {
            Kind::Send { to } => (Key::Pair(self.rank, to, next(self.rank, to, 0)), 0),
            Kind::Receive { from } => (Key::Pair(from, self.rank, next(from, self.rank, 1)), 1),
            _ => (Key::All(next(usize::MAX / 4, 0, 0)), self.rank),
        }
    }

    /// Gives a rank's operations, which were called together, numbers.
    pub(crate) fn number(self: &Arc<Self>, operations: Vec<Operation>) -> Together {
        let mut state = self.group.lock();
        let numbered = operations.into_iter().map(|operation| {
            let (key, seat) = self.key(operation.kind);
            *state.called.entry(key).or_default() += 1;
            (key, seat, operation)
        });
        let operations = numbered.collect();
        self.group.changed.notify_all();
        Together { communicator: self.clone(), operations, has_come: false }
    }

    /// Fails what is under way here: its streams go on.
    pub(crate) fn abort(&self) {
        self.aborted.store(true, Ordering::SeqCst);
        let mut state = self.group.lock();
        let mut woken = Vec::new();
        for (key, meeting) in &mut state.open {
            let seat = match key {
                Key::All(_) => self.rank,
                Key::Pair(from, _, _) => usize::from(*from != self.rank),
            };
            if meeting.come.contains_key(&seat) && !meeting.is_done {
                meeting.is_dead = true;
            }
            woken.append(&mut meeting.wakers);
        }
        self.group.changed.notify_all();
        drop(state);
        drop(woken);
    }
}

impl Drop for Communicator {
    fn drop(&mut self) {
        if let Some(platform) = platform() {
            (platform.forget)(self.device);
        }
    }
}

/// Operations of one rank that are one piece of work.
#[derive(Debug)]
pub(crate) struct Together {
    communicator: Arc<Communicator>,
    operations: Vec<(Key, usize, Operation)>,
    has_come: bool,
}

impl Together {
    /// Waits until all ranks have called the operations.
    pub(crate) fn wait_for_calls(&self) -> u32 {
        let Communicator { group, size, aborted, .. } = &*self.communicator;
        let mut state = group.lock();
        loop {
            let is_missing = |key: &Key| {
                let all = if matches!(key, Key::All(_)) { *size } else { 2 };
                state.called.get(key).is_none_or(|called| *called < all)
            };
            if !self.operations.iter().any(|(key, ..)| is_missing(key)) {
                return SUCCESS;
            }
            if aborted.load(Ordering::SeqCst) {
                return REMOTE_ERROR;
            }
            let nap = Duration::from_millis(5);
            state = group.changed.wait_timeout(state, nap).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Enqueues the work.
    pub(crate) fn enqueue(self, stream: *mut c_void) -> u32 {
        let Some(platform) = platform() else { return INVALID_USAGE };
        let device = self.communicator.device;
        let data = Box::into_raw(Box::new(self)).cast();
        // SAFETY: the functions below take this data.
        let done = unsafe { (platform.enqueue)(device, stream as u64, Work { poll, free, data }) };
        if done { SUCCESS } else { SYSTEM_ERROR }
    }

    fn go_on(&mut self, waker: Waker) -> bool {
        let Communicator { group, size, aborted, .. } = &*self.communicator;
        let mut state = group.lock();
        let mut woken = Vec::new();
        if aborted.load(Ordering::SeqCst) {
            // As the real library's kernels, it ends well.
            drop(state);
            return true;
        }
        for (key, seat, operation) in &self.operations {
            let meeting = state.open.entry(*key).or_default();
            if !self.has_come {
                meeting.come.insert(*seat, *operation);
                meeting.run(*key, *size);
            }
            if meeting.is_done {
                woken.append(&mut meeting.wakers);
            }
        }
        self.has_come = true;
        let waits = self.operations.iter().find(|(key, ..)| !state.open[key].is_done);
        let is_over = waits.is_none();
        if let Some((key, ..)) = waits {
            let key = *key;
            state.open.entry(key).or_default().wakers.push(waker);
        }
        drop(state);
        drop(woken);
        is_over
    }
}

/// # Safety
/// The data is that of a `Together`.
unsafe extern "C" fn poll(data: *mut c_void, wake: Wake, waker: *mut c_void) -> bool {
    // SAFETY: the caller's promise; the stream polls on one thread at a time.
    unsafe { &mut *data.cast::<Together>() }.go_on(Waker(wake, waker))
}

/// # Safety
/// The data is that of a `Together`, and not used again.
unsafe extern "C" fn free(data: *mut c_void) {
    // SAFETY: the caller's promise.
    drop(unsafe { Box::from_raw(data.cast::<Together>()) });
}
