//! Opens devices, with the functions that the host offers beyond the traits.

use crate::barrier::HostBarrier;
use crate::counters::Counters;
use crate::engine::{Engine, Queue, Step};
use crate::inject::Injection;
use crate::memory::MIN_ALIGN;
use crate::options::{HostOptions, Schedule};
use crate::process::ProcessState;
use crate::sync::lock;
use crate::{NAME, probe};
use gpumem_core::process::PerProcess;
use gpumem_core::{Capabilities, DeviceInfo, DeviceSelector, Result};
use std::collections::BTreeSet;
use std::mem;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// The devices that [`open`](gpumem_core::Backend::open) gave out, by ordinal.
static OPEN: PerProcess<Mutex<Vec<Option<Device>>>> = PerProcess::new(Mutex::default);

/// A host device. Clones are the same device; the last of them (streams count) ends its threads.
#[derive(Debug, Clone)]
pub struct Device(pub(crate) Arc<Inner>);

#[derive(Debug)]
pub(crate) struct Inner {
    engine: Arc<Engine>,
    pub(crate) info: DeviceInfo,
    pub(crate) capabilities: Capabilities,
    pub(crate) barrier: HostBarrier,
    schedule: Schedule,
    pub(crate) legacy: Mutex<Option<Arc<Queue>>>,
    pub(crate) peers: Mutex<BTreeSet<usize>>,
}

impl Device {
    /// Opens a device of the list, or gives it out again.
    pub(crate) fn open(selector: &DeviceSelector) -> Result<Self> {
        let ordinal = selector.choose(NAME, &probe::devices()?)?;
        let options = HostOptions::from_environment()?;
        let process = ProcessState::here();
        process.origin().check(NAME, "open")?;
        let mut devices = lock(OPEN.get());
        if let Some(Some(device)) = devices.get(ordinal) {
            return Ok(device.clone());
        }
        let device = Self::new(process, ordinal, &options);
        if devices.len() <= ordinal {
            devices.resize(ordinal + 1, None);
        }
        devices[ordinal] = Some(device.clone());
        Ok(device)
    }

    /// Makes a device that no other code can open.
    pub(crate) fn private(options: &HostOptions) -> Result<Self> {
        options.check()?;
        let process = ProcessState::here();
        process.origin().check(NAME, "open_with")?;
        Ok(Self::new(process, process.private_ordinal(), options))
    }

    fn new(process: &'static ProcessState, ordinal: usize, options: &HostOptions) -> Self {
        let engine = Arc::new(Engine::new(process, ordinal, options));
        if !engine.has_workers() {
            let weak = Arc::downgrade(&engine);
            process.add_adversary(weak);
        }
        Self(Arc::new(Inner {
            engine,
            info: probe::info(ordinal, options.memory),
            capabilities: capabilities(options),
            barrier: HostBarrier::new(options.wave_size),
            schedule: options.schedule,
            legacy: Mutex::default(),
            peers: Mutex::default(),
        }))
    }

    /// Position in the list of host devices; 1000 and more for those that
    /// [`Host::open_with`](crate::Host::open_with) made.
    pub fn ordinal(&self) -> usize {
        self.0.info.ordinal
    }

    /// Returns how the device runs its streams.
    pub fn schedule(&self) -> Schedule {
        self.0.schedule
    }

    /// Returns counts of what the device has done so far.
    pub fn counters(&self) -> Counters {
        self.engine().count()
    }

    /// The steps of an adversarial schedule so far, at most the first 65536; empty under the concurrent schedule, and in
    /// a forked child.
    pub fn schedule_trace(&self) -> Vec<Step> {
        if self.engine().origin().is_valid() { self.engine().trace() } else { Vec::new() }
    }

    /// Makes a later call fail, for tests. Does nothing in a forked child.
    pub fn inject(&self, injection: Injection) {
        if self.engine().origin().is_valid() {
            self.engine().injections().add(injection);
        }
    }

    /// Takes all injections back that have not struck.
    pub fn clear_injections(&self) {
        if self.engine().origin().is_valid() {
            self.engine().injections().clear();
        }
    }

    /// Loses the device, for tests: pending work is dropped, and every later call but a reset fails with
    /// [`DeviceLost`](gpumem_core::ErrorKind::DeviceLost) and this cause.
    ///
    /// Waits end with that error as soon as the command that is running at this moment has ended, because memory must not
    /// be given up while it is being written. Streams of other devices that wait for an event of this one fault.
    pub fn lose(&self, cause: &str) {
        if self.engine().origin().is_valid() {
            self.engine().lose(cause);
        }
    }

    /// Whether access to the memory of `peer` was enabled by
    /// [`set_peer_access`](gpumem_core::DriverDevice::set_peer_access).
    pub fn has_peer_access(&self, peer: &Self) -> bool {
        self.engine().origin().is_valid() && lock(&self.0.peers).contains(&peer.ordinal())
    }

    pub(crate) fn engine(&self) -> &Arc<Engine> {
        &self.0.engine
    }

    /// The one legacy default stream.
    pub(crate) fn legacy(&self) -> Arc<Queue> {
        let mut legacy = lock(&self.0.legacy);
        let generation = self.engine().generation();
        match &*legacy {
            Some(queue) if queue.generation == generation => Arc::clone(queue),
            _ => {
                let queue = self.engine().create_queue();
                *legacy = Some(Arc::clone(&queue));
                queue
            }
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if self.engine.origin().is_valid() {
            self.engine.close();
            return;
        }
        // One count too many: nothing is ever freed in a process that does not own it.
        mem::forget(Arc::clone(&self.engine));
        mem::forget(self.legacy.get_mut().unwrap_or_else(PoisonError::into_inner).take());
    }
}

fn capabilities(options: &HostOptions) -> Capabilities {
    let mut capabilities = Capabilities::minimal();
    capabilities.mapped = true;
    capabilities.managed = true;
    capabilities.concurrent_managed_access = true;
    capabilities.register = true;
    capabilities.pageable_direct = true;
    capabilities.strided_copy = true;
    capabilities.futures = true;
    capabilities.pinned_by_kernels = true;
    capabilities.survives_faults = options.survives_faults;
    capabilities.wave_size = options.wave_size;
    capabilities.compute_units = thread::available_parallelism().map_or(1, |threads| threads.get() as u32);
    capabilities.max_group_size = 1024;
    capabilities.max_group_dims = [1024, 1024, 64];
    capabilities.shared_memory = 64 << 10;
    capabilities.constant_memory = 64 << 10;
    capabilities.allocation_alignment = MIN_ALIGN;
    capabilities
}
