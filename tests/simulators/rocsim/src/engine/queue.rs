//! User-mode queues and the threads that run them.

use super::{Patience, aql, doorbell, doorbell::Doorbell, go_first, is_halted, sdma};
use crate::{
    abi::{QueueResource, Status, queue_type},
    config::trace,
    memory::{self, Span},
    stats::stats,
};
use parking_lot::Mutex;
use std::{
    collections::HashMap,
    sync::{
        Arc, LazyLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

/// A queue as its engine sees it.
#[derive(Debug)]
pub(super) struct Queue {
    pub(super) node: u32,
    /// The ring of packets; its length is a power of two.
    pub(super) ring: Span,
    /// The ring's address for the GPU.
    pub(super) ring_address: u64,
    pub(super) doorbell: Arc<Doorbell>,
    read_pointer: *mut u64,
    write_pointer: *mut u64,
    /// See [`NewQueue`].
    pub(super) exceptions: Option<(u64, u32)>,
    stop: AtomicBool,
    paused: AtomicBool,
}

// SAFETY: the pointers lead to words that live as long as the queue (the runtime's promise to the thunk) and that are
// only used as atomics; the ring is read and written by one engine.
unsafe impl Send for Queue {}
// SAFETY: as above.
unsafe impl Sync for Queue {}

impl Queue {
    /// How far the engine has come: packets for AQL, bytes for SDMA.
    pub(super) fn read_index(&self) -> &AtomicU64 {
        // SAFETY: the word lives as long as the queue and everybody uses it as an atomic.
        unsafe { AtomicU64::from_ptr(self.read_pointer) }
    }

    /// How far the producers have come.
    pub(super) fn write_index(&self) -> &AtomicU64 {
        // SAFETY: as above.
        unsafe { AtomicU64::from_ptr(self.write_pointer) }
    }

    /// The address of the write pointer, by which the command processor finds the rest of the queue's structure.
    pub(super) fn write_pointer_address(&self) -> u64 {
        self.write_pointer as u64
    }

    /// Whether the engine must end.
    pub(super) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    /// Lets the queue stand still after an error, until the runtime lets it run again.
    pub(super) fn stand_still(&self) {
        self.paused.store(true, Ordering::Release);
    }

    /// Whether the engine may run packets.
    pub(super) fn may_run(&self) -> bool {
        !self.is_stopped() && !self.paused.load(Ordering::Acquire) && !is_halted(self.node)
    }
}

/// Runs packets for as long as there are any; true if some are left because the queue must not run.
type Run = fn(&Queue) -> bool;

struct Engine {
    queue: Arc<Queue>,
    thread: JoinHandle<()>,
}

static ENGINES: LazyLock<Mutex<HashMap<u64, Engine>>> = LazyLock::new(Mutex::default);
static LAST_ID: AtomicU64 = AtomicU64::new(0);

/// A queue that is to be made.
pub(crate) struct NewQueue {
    pub(crate) node: u32,
    /// As `HSA_QUEUE_TYPE`.
    pub(crate) kind: u32,
    pub(crate) ring: u64,
    pub(crate) ring_bytes: u64,
    pub(crate) read_pointer: *mut u64,
    pub(crate) write_pointer: *mut u64,
    /// Where errors of the queue are said, if not through its signal: a word for a mask of exceptions, and an event.
    pub(crate) exceptions: Option<(u64, u32)>,
}

/// Makes a queue and starts its engine. Fills in the fields that the runtime needs.
///
/// # Safety
/// * `ring` names memory of the queue, and the pointers in `resource` words of it, that live until [`destroy`].
pub(crate) unsafe fn create(
    node: u32,
    kind: u32,
    ring: u64,
    ring_bytes: u64,
    resource: &mut QueueResource,
) -> Result<(), Status> {
    let doorbell = Doorbell::new().map_err(|_| Status::NO_MEMORY)?;
    if matches!(kind, queue_type::SDMA | queue_type::SDMA_XGMI) {
        resource.read_ptr = doorbell.read_pointer();
        resource.write_ptr = doorbell.write_pointer();
    }
    let (read_pointer, write_pointer) = (resource.read_ptr, resource.write_ptr);
    let address = doorbell.address();
    let new = NewQueue { node, kind, ring, ring_bytes, read_pointer, write_pointer, exceptions: None };
    // SAFETY: the caller's promise; the doorbell's page lives as long as the queue.
    resource.queue_id = unsafe { start(&new, doorbell)? };
    resource.doorbell = address;
    Ok(())
}

/// As [`create`], with one of the doorbells of the GPU. Returns the queue's number and the place of its doorbell in bytes.
///
/// # Safety
/// The ring and both pointers of the queue lead to memory that lives until [`destroy`].
pub(crate) unsafe fn create_with_doorbell(new: &NewQueue) -> Result<(u64, u64), Status> {
    let doorbell = Doorbell::of_gpu(new.node).map_err(|_| Status::OUT_OF_RESOURCES)?;
    let offset = doorbell.offset();
    // SAFETY: the caller's promise.
    Ok((unsafe { start(new, doorbell)? }, offset))
}

/// # Safety
/// The ring and both pointers of the queue lead to memory that lives until [`destroy`].
unsafe fn start(new: &NewQueue, doorbell: Doorbell) -> Result<u64, Status> {
    let NewQueue { node, kind, ring, ring_bytes, read_pointer, write_pointer, exceptions } = *new;
    if !ring_bytes.is_power_of_two() || ring_bytes < 64 || read_pointer.is_null() || write_pointer.is_null() {
        return Err(Status::INVALID_PARAMETER);
    }
    let (run, name): (Run, _) = match kind {
        queue_type::COMPUTE_AQL => (aql::run, "rocsim AQL"),
        queue_type::SDMA | queue_type::SDMA_XGMI => (sdma::run, "rocsim SDMA"),
        _ => return Err(Status::NOT_SUPPORTED),
    };
    let ring_address = ring;
    let ring = memory::span(node, ring, ring_bytes).map_err(|fault| {
        trace!("the ring of a queue: {fault}");
        Status::INVALID_PARAMETER
    })?;
    let doorbell = Arc::new(doorbell);
    let queue = Arc::new(Queue {
        node,
        ring,
        ring_address,
        read_pointer,
        write_pointer,
        exceptions,
        stop: AtomicBool::new(false),
        paused: AtomicBool::new(false),
        doorbell: Arc::clone(&doorbell),
    });
    let id = LAST_ID.fetch_add(1, Ordering::Relaxed) + 1;
    let engine = Arc::clone(&queue);
    let thread = thread::Builder::new()
        .name(name.into())
        .spawn(move || live(&engine, run))
        .map_err(|_| Status::NO_MEMORY)?;
    doorbell::watch(&doorbell, thread.thread().clone());
    ENGINES.lock().insert(id, Engine { queue, thread });
    stats().queues_created.add(1);
    stats().queues_live.add(1);
    trace!("node {node}: {name} queue {id}, {ring_bytes} bytes");
    Ok(id)
}

/// Runs packets when the doorbell rings; looks again for a short while, then sleeps until the watcher wakes it.
fn live(queue: &Queue, run: Run) {
    go_first();
    let mut patience = Patience::default();
    // Packets that could not be run when the doorbell rang.
    let mut pending = false;
    while !queue.is_stopped() {
        pending |= queue.doorbell.answer();
        if pending && queue.may_run() {
            pending = run(queue);
            patience = Patience::default();
        } else if patience.is_exhausted() {
            // The timeout only matters where the watcher could not be started.
            thread::park_timeout(Duration::from_millis(100));
        } else {
            patience.pause();
        }
    }
}

/// Lets a queue run or stand still.
pub(crate) fn pause(id: u64, paused: bool) -> Status {
    let engines = ENGINES.lock();
    let Some(engine) = engines.get(&id) else { return Status::INVALID_HANDLE };
    engine.queue.paused.store(paused, Ordering::Release);
    engine.thread.thread().unpark();
    Status::SUCCESS
}

/// Ends the engine of a queue, between two packets.
pub(crate) fn destroy(id: u64) -> Status {
    let Some(engine) = ENGINES.lock().remove(&id) else { return Status::INVALID_HANDLE };
    engine.queue.stop.store(true, Ordering::Release);
    engine.thread.thread().unpark();
    if engine.thread.join().is_err() {
        eprintln!("rocsim: the engine of queue {id} has panicked");
    }
    drop(engine.queue);
    doorbell::forget();
    stats().queues_live.subtract(1);
    Status::SUCCESS
}
