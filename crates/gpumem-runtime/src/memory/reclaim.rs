//! The way back to the driver (law 6).
//!
//! Dropping an array only puts its memory into this queue. The queue is emptied where waiting is allowed: by
//! [`Device::flush`](crate::Device::flush), by an allocation that fails, and, for memory whose last use is over, by an allocation that finds
//! more than ten items or a fifth of the device's memory pending (Numba's limits, SPEC E1).

use super::allocation::PendingUse;
use crate::device::DeviceCore;
use gpumem_core::{Backend, Error};
use parking_lot::Mutex;
use smallvec::SmallVec;
use std::{any::Any, collections::VecDeque, fmt, mem, sync::Arc};

/// Most pending items before an allocation looks after them.
const ITEMS: usize = 10;
/// Most pending bytes, as a part of the device's memory: one fifth.
const PARTS: usize = 5;

enum Item<B: Backend> {
    Memory {
        buffer: Option<B::Buffer>,
        owner: Option<Box<dyn Any + Send + Sync>>,
        uses: SmallVec<[PendingUse<B>; 4]>,
        generation: u64,
        bytes: usize,
    },
    Stream {
        raw: Arc<B::Stream>,
        generation: u64,
    },
}

/// What has been dropped and not yet given back.
pub(crate) struct Reclaim<B: Backend> {
    queue: Mutex<Queue<B>>,
}

struct Queue<B: Backend> {
    items: VecDeque<Item<B>>,
    bytes: usize,
}

impl<B: Backend> Default for Reclaim<B> {
    fn default() -> Self {
        Self { queue: Mutex::new(Queue { items: VecDeque::new(), bytes: 0 }) }
    }
}

impl<B: Backend> Reclaim<B> {
    pub(crate) fn add_memory(
        &self,
        buffer: Option<B::Buffer>,
        owner: Option<Box<dyn Any + Send + Sync>>,
        uses: SmallVec<[PendingUse<B>; 4]>,
        generation: u64,
        bytes: usize,
    ) {
        let mut queue = self.queue.lock();
        queue.bytes = queue.bytes.saturating_add(bytes);
        queue.items.push_back(Item::Memory { buffer, owner, uses, generation, bytes });
    }

    pub(crate) fn add_stream(&self, raw: Arc<B::Stream>, generation: u64) {
        self.queue.lock().items.push_back(Item::Stream { raw, generation });
    }

    /// Gives back what is done, if enough is pending. Never waits for the device's work.
    pub(crate) fn sweep(&self, core: &Arc<DeviceCore<B>>) {
        let due = {
            let queue = self.queue.lock();
            queue.items.len() > ITEMS || queue.bytes > B::info(&core.raw).total_memory / PARTS
        };
        if due {
            self.work(core, false);
        }
    }

    /// Gives back everything, after waiting for its last uses.
    pub(crate) fn flush(&self, core: &Arc<DeviceCore<B>>) {
        // An owner may have held memory of ours, which comes into the queue when it is let go.
        while self.work(core, true) {}
        for event in core.events.take() {
            if let Err(error) = B::destroy_event(&core.raw, event) {
                core.errors.push(error);
            }
        }
    }

    /// Goes through the queue once. Says whether owners of foreign memory were let go.
    fn work(&self, core: &Arc<DeviceCore<B>>, wait: bool) -> bool {
        let taken = {
            let mut queue = self.queue.lock();
            queue.bytes = 0;
            mem::take(&mut queue.items)
        };
        // The lock is not held while the driver works: others may go on dropping.
        let mut owners = false;
        for item in taken {
            let owned = matches!(&item, Item::Memory { owner: Some(_), .. });
            let left = give_back(core, item, wait);
            owners |= owned && left.is_none();
            if let Some(item) = left {
                let mut queue = self.queue.lock();
                if let Item::Memory { bytes, .. } = &item {
                    queue.bytes = queue.bytes.saturating_add(*bytes);
                }
                queue.items.push_back(item);
            }
        }
        owners
    }

    /// Hands everything to a thread of ours, because nobody will flush any more.
    pub(crate) fn abandon(&self, core: &Arc<DeviceCore<B>>) {
        if self.queue.lock().items.is_empty() {
            return;
        }
        let last = core.clone();
        let spawned = std::thread::Builder::new().name("gpumem reclaim".to_owned()).spawn(move || {
            if last.check("flush").is_ok() {
                last.reclaim.flush(&last);
            }
        });
        if let Err(error) = spawned {
            tracing::error!(%error, device = core.name(), "memory of a closed device is leaked: no thread to free it");
        }
    }
}

/// Gives one item back; returns it if it is still in use and `wait` is not allowed.
fn give_back<B: Backend>(core: &Arc<DeviceCore<B>>, item: Item<B>, wait: bool) -> Option<Item<B>> {
    match item {
        Item::Memory { buffer, owner, uses, generation, bytes } => {
            if generation != core.generation() {
                // The reset has taken the memory already; foreign memory goes back to its owner.
                mem::forget(buffer);
                drop(owner);
                return None;
            }
            for (timeline, ticket) in &uses {
                let over = match wait {
                    true => timeline.settle(*ticket).done,
                    // An error of the work is not ours to report here; `poll` has noted that the work is over.
                    false => timeline.poll(*ticket).unwrap_or_else(|_| timeline.has_passed(*ticket)),
                };
                if !over && !wait {
                    return Some(Item::Memory { buffer, owner, uses, generation, bytes });
                }
                if !over {
                    tracing::error!(bytes, "memory is leaked: its last use cannot be proven to be over");
                    mem::forget((buffer, owner));
                    return None;
                }
            }
            if let Some(buffer) = buffer {
                release(core, buffer);
            }
            drop(owner);
            None
        }
        Item::Stream { raw, generation } => match Arc::try_unwrap(raw) {
            Ok(raw) if generation == core.generation() => {
                if let Err(error) = B::destroy_stream(&core.raw, raw) {
                    core.errors.push(error);
                }
                None
            }
            Ok(stale) => {
                mem::forget(stale);
                None
            }
            // Somebody is waiting for the stream at this moment.
            Err(raw) => Some(Item::Stream { raw, generation }),
        },
    }
}

fn release<B: Backend>(core: &DeviceCore<B>, buffer: B::Buffer) {
    // SAFETY: the buffer was made by this device in this generation, and its uses are over.
    match unsafe { B::release(&core.raw, buffer) } {
        Ok(()) => core.counters.count_release(),
        Err((buffer, error)) => {
            // Whether it is free now is unknown: freeing it again could free somebody else's.
            mem::forget(buffer);
            note(core, error);
        }
    }
}

fn note<B: Backend>(core: &DeviceCore<B>, error: Error) {
    if let Err(error) = core.note_loss::<()>(Err(error)) {
        core.errors.push(error);
    }
}

impl<B: Backend> fmt::Debug for Reclaim<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let queue = self.queue.lock();
        f.debug_struct("Reclaim").field("items", &queue.items.len()).field("bytes", &queue.bytes).finish()
    }
}
