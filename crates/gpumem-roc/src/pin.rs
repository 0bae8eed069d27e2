//! Registering memory of the caller with the HSA runtime: a hint, or page-locking for chosen agents.

use crate::{
    Agent, NAME, Pool, RocEvent,
    device::{Held, RocDevice, WAIT_FOR_DEVICE},
    error::Status,
    hsa_runtime::{HsaStatus, Runtime},
    probe,
    provenance::{self, Provenance},
};
use gpumem_core::{Error, ErrorKind, Event, EventOptions, MemoryInfo, Result};
use gpumem_sys::hsa::hsa_agent_t;
use std::{
    ffi::c_void,
    ptr::{NonNull, null_mut, with_exposed_provenance_mut},
};

/// How memory is registered.
#[derive(Debug, Clone, Copy)]
pub enum Pinning<'a> {
    /// Numba's `roc.register`: tells the runtime that devices will use the memory (`hsa_memory_register`). The runtime
    /// may do nothing, and there is no second address.
    Hint,
    /// The memory is page-locked and mapped for these agents; none means all (`hsa_amd_memory_lock`).
    Lock(&'a [Agent]),
    /// The same, as memory of that kind of the host's (`hsa_amd_memory_lock_to_pool`).
    LockTo(&'a [Agent], &'a Pool),
}

/// Bytes of the caller's memory that are registered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RegisteredRange {
    /// Where the host reaches them.
    pub host: NonNull<u8>,
    /// How many.
    pub bytes: usize,
    /// The address under which the agents reach them. Often another one than the host's.
    pub address: u64,
}

/// Memory that is registered until this goes.
///
/// This type does not touch the memory. [`deregister`](crate::RocExt::deregister) reports errors; dropping deregisters
/// and ignores them. A forgotten value stays registered.
#[derive(Debug)]
pub struct Registered {
    device: RocDevice,
    is_hint: bool,
    ranges: Vec<RegisteredRange>,
}

// SAFETY: it describes memory and never touches it; addresses mean the same on every thread.
unsafe impl Send for Registered {}
// SAFETY: as above; nothing in it changes.
unsafe impl Sync for Registered {}

impl Registered {
    /// The registered ranges, in the order given.
    pub fn ranges(&self) -> &[RegisteredRange] {
        &self.ranges
    }

    /// # Safety
    /// As for [`RocExt::register_memory`](crate::RocExt::register_memory).
    pub(crate) unsafe fn new(
        device: &RocDevice,
        wanted: &[(NonNull<u8>, usize)],
        pinning: Pinning<'_>,
    ) -> Result<Self> {
        let operation = match pinning {
            Pinning::Hint => "hsa_memory_register",
            Pinning::Lock(_) => "hsa_amd_memory_lock",
            Pinning::LockTo(..) => "hsa_amd_memory_lock_to_pool",
        };
        device.check_alive(operation)?;
        let runtime = probe::hsa(operation)?;
        let agents: &[Agent] = match pinning {
            Pinning::Hint => &[],
            Pinning::Lock(agents) | Pinning::LockTo(agents, _) => agents,
        };
        let mut handles: Vec<hsa_agent_t> = agents.iter().map(|agent| agent.raw).collect();
        let is_hint = matches!(pinning, Pinning::Hint);
        // If a later range fails, dropping this value deregisters the earlier ones.
        let mut registered = Self { device: device.clone(), is_hint, ranges: Vec::new() };
        for (host, bytes) in wanted.iter().copied().filter(|(_, bytes)| *bytes > 0) {
            // SAFETY: the caller's promise.
            unsafe { registered.add((runtime, operation), (host, bytes), pinning, &mut handles)? };
        }
        Ok(registered)
    }

    /// Registers one range more.
    ///
    /// # Safety
    /// As for [`new`](Self::new).
    unsafe fn add(
        &mut self,
        (Runtime { hsa }, operation): (&Runtime, &'static str),
        (host, bytes): (NonNull<u8>, usize),
        pinning: Pinning<'_>,
        agents: &mut [hsa_agent_t],
    ) -> Result<()> {
        // The runtime takes no list for "all".
        let list = if agents.is_empty() { null_mut() } else { agents.as_mut_ptr() };
        let count = agents.len() as i32;
        let place = host.as_ptr().cast::<c_void>();
        let number = place.expose_provenance();
        let held = Held::Memory(Provenance::Locked(number));
        let refused = |why| Error::new(NAME, operation, ErrorKind::Registration { why });
        if !self.is_hint && !self.device.hold_once(held) {
            return Err(refused("it is page-locked already"));
        }
        let mut address = null_mut();
        // SAFETY: the caller's memory is valid until it is deregistered; as many agents as are counted; a place
        // for an address.
        let answer = unsafe {
            match pinning {
                Pinning::Hint => hsa.hsa_memory_register(place, bytes),
                Pinning::Lock(_) => hsa.hsa_amd_memory_lock(place, bytes, list, count, &mut address),
                Pinning::LockTo(_, pool) => {
                    hsa.hsa_amd_memory_lock_to_pool(place, bytes, list, count, pool.raw, 0, &mut address)
                }
            }
        };
        if let Err(status) = HsaStatus::from(answer).ok() {
            if !self.is_hint {
                self.device.remove_note(held);
            }
            return Err(match status {
                HsaStatus::OUT_OF_RESOURCES => {
                    let kind = ErrorKind::out_of_memory(bytes, "registered", MemoryInfo::default());
                    Error::new(NAME, operation, kind)
                }
                HsaStatus::Code(_) => refused("the HSA runtime does not take this memory"),
                missing => missing.error(operation),
            });
        }
        let address = if self.is_hint { number } else { address.expose_provenance() } as u64;
        self.ranges.push(RegisteredRange { host, bytes, address });
        Ok(())
    }

    /// Undoes all of it, and tells the first failure.
    pub(crate) fn undo(&mut self) -> Result<()> {
        let operation = if self.is_hint { "hsa_memory_deregister" } else { "hsa_amd_memory_unlock" };
        let mut outcome = Ok(());
        // In reverse, as scopes end.
        while let Some(RegisteredRange { host, bytes, .. }) = self.ranges.pop() {
            if let Err(error) = self.undo_one(operation, host, bytes)
                && outcome.is_ok()
            {
                outcome = Err(error);
            }
        }
        outcome
    }

    fn undo_one(&self, operation: &'static str, host: NonNull<u8>, bytes: usize) -> Result<()> {
        // In a forked child and at the end of the process there is no caller to tell.
        if self.device.check_alive(operation).is_err() {
            return Ok(());
        }
        let place = host.as_ptr().cast::<c_void>();
        if self.is_hint {
            let Runtime { hsa } = probe::hsa(operation)?;
            // SAFETY: the range was registered so.
            let answer = unsafe { hsa.hsa_memory_deregister(place, bytes) };
            return HsaStatus::from(answer).ok().map_err(|status| status.error(operation));
        }
        let held = Held::Memory(Provenance::Locked(place.expose_provenance()));
        // A reset may have been faster.
        if !self.device.remove_note(held) {
            return Ok(());
        }
        // SAFETY: the note was there, so the memory is locked; the caller uses it on no device any more.
        let status: Status = unsafe { provenance::unlock(place) };
        if !status.is_success() {
            // It is locked: a reset unlocks it, and no other lock of these bytes counts as the first.
            self.device.hold(held);
        }
        status.ok().map_err(|status| status.error(operation))
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        if let Err(error) = self.undo() {
            gpumem_core::tell!(warn: %error, "memory could not be deregistered");
        }
    }
}

/// Waits for all work that may use registered memory. While any stream is captured HIP refuses to wait for a device, which says nothing
/// of the work: the streams that the device has made are waited for.
fn wait_for_all(device: &RocDevice) -> Result<()> {
    let status = device.wait_for_device()?;
    if status.is_beside_capture() {
        device.forget_last_error();
        return wait_for_streams(device);
    }
    device.check(status, WAIT_FOR_DEVICE)
}

/// Waits for the work of each stream that the device has made.
fn wait_for_streams(device: &RocDevice) -> Result<()> {
    const OPERATION: &str = "hipEventRecord";
    let is_stream = |held: &Held| matches!(held, Held::Stream(_));
    let streams: Vec<Held> = device.inner().held.lock().iter().copied().filter(is_stream).collect();
    let event = |_| RocEvent::create(device, EventOptions::default(), true);
    let events: Vec<RocEvent> = streams.iter().map(event).collect::<Result<_>>()?;
    {
        let _current = device.enter(OPERATION)?;
        let _turn = device.enqueue_lock().shared();
        // Locked meanwhile: a stream whose note is there is not destroyed.
        let held = device.inner().held.lock();
        for (stream, event) in streams.iter().zip(&events) {
            if let Some(Held::Stream(stream)) = held.get(stream) {
                let stream = with_exposed_provenance_mut(*stream);
                // SAFETY: both handles are alive.
                device.check(unsafe { device.hip().hipEventRecord(event.raw, stream) }, OPERATION)?;
            }
        }
    }
    // Without a lock: the work may wait for another thread.
    events.iter().try_for_each(Event::synchronize)
}

/// Registers the slices while `body` runs. However it is left, the device is waited for before they are deregistered.
pub(crate) fn scope<R>(
    device: &RocDevice,
    arrays: &mut [&mut [u8]],
    pinning: Pinning<'_>,
    body: impl FnOnce(&[RegisteredRange]) -> R,
) -> Result<R> {
    let wanted: Vec<(NonNull<u8>, usize)> = arrays
        .iter_mut()
        .filter_map(|array| NonNull::new(array.as_mut_ptr()).map(|host| (host, array.len())))
        .collect();
    /// Ends the scope in a panic too.
    struct Scope(Option<Registered>);
    impl Scope {
        fn end(&mut self) -> Result<()> {
            let Some(mut registered) = self.0.take() else { return Ok(()) };
            if let Err(error) = wait_for_all(&registered.device)
                && !error.is_device_lost()
            {
                if registered.device.check_alive("with_registered").is_err() {
                    // A forked child, or the end of the process: nothing uses the memory here.
                    std::mem::forget(registered);
                    return Err(error);
                }
                // Law 3: memory that the device may still be using does not go back to its owner.
                eprintln!(
                    "gpumem: the device could not be waited for ({error}); borrowed memory may still be in use"
                );
                std::process::abort();
            }
            registered.undo()
        }
    }
    impl Drop for Scope {
        fn drop(&mut self) {
            if let Err(error) = self.end() {
                gpumem_core::tell!(warn: %error, "memory could not be deregistered");
            }
        }
    }
    // SAFETY: the slices are borrowed, and so valid, until the scope has ended.
    let registered = unsafe { Registered::new(device, &wanted, pinning)? };
    let ranges = registered.ranges.clone();
    let mut scope = Scope(Some(registered));
    let result = body(&ranges);
    scope.end()?;
    Ok(result)
}
