//! Streams: queues of work.

use crate::Device;
use crate::engine::{Command, Engine, Queue, Work};
use crate::error::{error, invalid};
use crate::inject::Operation;
use gpumem_core::{ErrorKind, RawStream, Result};
use std::cell::RefCell;
use std::mem;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A queue of work on a host device.
#[derive(Debug)]
pub struct Stream {
    queue: Arc<Queue>,
    // Keeps the engine going.
    device: Device,
    /// Whether the stream ends with this handle.
    owned: bool,
}

impl Stream {
    /// A handle that owns its stream.
    pub(crate) fn owning(device: &Device, queue: Arc<Queue>) -> Self {
        Self { queue, device: device.clone(), owned: true }
    }

    /// A further handle.
    pub(crate) fn borrowing(device: &Device, queue: Arc<Queue>) -> Self {
        Self { queue, device: device.clone(), owned: false }
    }

    /// A further handle for a raw one.
    pub(crate) fn wrap(device: &Device, raw: RawStream) -> Result<Self> {
        let engine = device.engine();
        let generation = engine.generation();
        let live =
            |queue: &Arc<Queue>| queue.generation == generation && !queue.closed.load(Ordering::Relaxed);
        match engine.queue(raw.0).filter(live) {
            Some(queue) => Ok(Self::borrowing(device, queue)),
            None => Err(invalid("wrap_stream", "the handle names no live stream of this device")),
        }
    }

    /// The device of the stream.
    pub fn device(&self) -> &Device {
        &self.device
    }

    pub(crate) fn queue(&self) -> &Arc<Queue> {
        &self.queue
    }

    /// Enqueues work, which may be made to fail, and counts it; or captures it. In line: a command is larger than all else that is
    /// handed on here.
    #[inline(always)]
    pub(crate) fn submit(&self, call: Call, work: impl FnOnce(&Engine) -> Result<Work>) -> Result<()> {
        let engine = &self.queue.engine;
        if self.queue.is_captured(call.0)? {
            engine.check_lost(call.0)?;
            return self.queue.capture(work(engine)?);
        }
        let mut counted = None;
        self.submit_command(call, |engine| {
            let work = work(engine)?;
            counted = Some(work.counted());
            Ok(Command::Work(work))
        })?;
        counted.into_iter().for_each(|counted| engine.counters().count(counted));
        Ok(())
    }

    /// Enqueues a command that may be made to fail.
    #[inline(always)]
    pub(crate) fn submit_command(
        &self,
        (name, operation): Call,
        command: impl FnOnce(&Engine) -> Result<Command>,
    ) -> Result<()> {
        let engine = &self.queue.engine;
        let failing = engine.enter_work(name, operation)?;
        self.queue.admit(name)?;
        let mut command = command(engine)?;
        if let Some(what) = failing {
            command = Command::Fail { work: command.name(), what };
        }
        self.queue.enqueue(name, command)?;
        engine.point();
        Ok(())
    }
}

/// The name of a call, and the operation whose injected failures it takes.
pub(crate) type Call = (&'static str, Operation);

impl Drop for Stream {
    fn drop(&mut self) {
        if !self.queue.engine.origin().is_valid() {
            // One count too many: nothing is ever freed in a process that does not own it.
            mem::forget(Arc::clone(&self.queue));
            mem::forget(self.device.clone());
        } else if self.owned {
            self.queue.close();
        }
    }
}

/// The per-thread default streams of one thread.
#[derive(Default)]
struct Own(Vec<Arc<Queue>>);

impl Own {
    fn forget_old(&mut self) {
        for queue in mem::take(&mut self.0) {
            if !queue.engine.origin().is_valid() {
                mem::forget(queue);
            } else if queue.generation == queue.engine.generation() && !queue.engine.is_closed() {
                self.0.push(queue);
            }
        }
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        self.forget_old();
        for queue in &self.0 {
            queue.close();
        }
    }
}

thread_local! {
    static OWN: RefCell<Own> = RefCell::default();
}

/// The default stream of the calling thread.
pub(crate) fn per_thread(engine: &Arc<Engine>) -> Result<Arc<Queue>> {
    let found = OWN.try_with(|own| {
        let mut own = own.try_borrow_mut().ok()?;
        own.forget_old();
        if let Some(queue) = own.0.iter().find(|queue| Arc::ptr_eq(&queue.engine, engine)) {
            return Some(Arc::clone(queue));
        }
        let queue = engine.create_queue();
        own.0.push(Arc::clone(&queue));
        Some(queue)
    });
    found.ok().flatten().ok_or_else(|| error("create_stream", ErrorKind::Exiting))
}
