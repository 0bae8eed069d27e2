//! An open device: whether it is lost, the handles on it, and how calls on it begin and fail.

use crate::{
    NAME,
    context::Current,
    enqueue_lock::EnqueueLock,
    error::Status,
    graph_choice::OwnGraphs,
    info::Limits,
    packers::Packers,
    probe::Driver,
    provenance::{self, Provenance},
};
use gpumem_core::{Capabilities, DeviceInfo, Error, ErrorKind, LostState, MemoryInfo, Result};
use gpumem_sys::hip::{Hip, hipMemcpyKind, hipStream_t};
use parking_lot::Mutex;
use std::{
    collections::BTreeSet,
    ffi::c_int,
    fmt,
    ptr::{null_mut, with_exposed_provenance_mut},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

/// Bytes of each part that HIP divides a fill into.
pub(crate) const WORD: usize = 8;

/// An open AMD GPU. Clones are the same device.
#[derive(Clone)]
pub struct RocDevice(Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) driver: &'static Driver,
    /// Of this device alone: a thread that waits for it may wait for work of another thread on another device.
    enqueue_lock: EnqueueLock,
    pub(crate) handle: c_int,
    pub(crate) info: DeviceInfo,
    /// Architecture with its features.
    pub(crate) isa: String,
    pub(crate) capabilities: Capabilities,
    pub(crate) limits: Limits,
    /// Number of resets so far. Objects of an earlier generation are not passed to HIP any more.
    pub(crate) generation: AtomicU64,
    pub(crate) loss: LostState,
    pub(crate) held: Mutex<BTreeSet<Held>>,
    /// The table of [`words`](RocDevice::words), and the generation that has made it.
    words: Mutex<Option<(u64, u64)>>,
    pub(crate) packers: Packers,
    /// Whether graphs are HIP's own. `None` until they have been tested.
    pub(crate) graphs: Mutex<Option<OwnGraphs>>,
    /// Ordinals of the devices whose memory this one may reach.
    pub(crate) peers: Mutex<BTreeSet<usize>>,
}

/// The parts of an open device.
pub(crate) struct Parts {
    pub(crate) driver: &'static Driver,
    pub(crate) handle: c_int,
    pub(crate) info: DeviceInfo,
    pub(crate) isa: String,
    pub(crate) capabilities: Capabilities,
    pub(crate) limits: Limits,
    pub(crate) graphs: Option<OwnGraphs>,
}

/// The call that waits for all work of the device.
pub(crate) const WAIT_FOR_DEVICE: &str = "hipDeviceSynchronize";

/// Handles that a reset has to release, because `hipDeviceReset` does not in every version: ROCm 5.2's does nothing. In
/// the order of their release.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Held {
    Executable(usize),
    Graph(usize),
    Stream(usize),
    Event(usize),
    Memory(Provenance),
    Module(usize),
}

impl RocDevice {
    pub(crate) fn new(parts: Parts) -> Self {
        let Parts { driver, handle, info, isa, capabilities, limits, graphs } = parts;
        Self(Arc::new(Inner {
            driver,
            enqueue_lock: EnqueueLock::new(driver.version),
            handle,
            info,
            isa,
            capabilities,
            limits,
            generation: AtomicU64::new(0),
            loss: LostState::default(),
            held: Mutex::default(),
            words: Mutex::default(),
            packers: Packers::default(),
            graphs: Mutex::new(graphs),
            peers: Mutex::default(),
        }))
    }

    pub(crate) fn inner(&self) -> &Inner {
        &self.0
    }

    pub(crate) fn hip(&self) -> &'static Hip {
        &self.0.driver.hip.hip
    }

    pub(crate) fn enqueue_lock(&self) -> &EnqueueLock {
        &self.0.enqueue_lock
    }

    pub(crate) fn ordinal(&self) -> usize {
        self.0.info.ordinal
    }

    pub(crate) fn handle(&self) -> c_int {
        self.0.handle
    }

    pub(crate) fn generation(&self) -> u64 {
        self.0.generation.load(Ordering::Acquire)
    }

    pub(crate) fn is_lost(&self) -> bool {
        self.0.loss.is_lost()
    }

    /// Notes a handle that a reset must release.
    pub(crate) fn hold(&self, held: Held) {
        self.0.held.lock().insert(held);
    }

    /// As [`hold`](Self::hold); false if it was noted already.
    pub(crate) fn hold_once(&self, held: Held) -> bool {
        self.0.held.lock().insert(held)
    }

    /// Removes the note: the caller then releases the handle. Returns `false` if a reset was faster.
    pub(crate) fn remove_note(&self, held: Held) -> bool {
        self.0.held.lock().remove(&held)
    }

    /// HIP's answer to a wait for all work.
    pub(crate) fn wait_for_device(&self) -> Result<Status> {
        let _current = self.enter(WAIT_FOR_DEVICE)?;
        let _turn = self.enqueue_lock().alone();
        // SAFETY: the device is current.
        Ok(unsafe { self.hip().hipDeviceSynchronize() }.into())
    }

    /// Device memory with every byte in turn, each filling a word: where fills of a few bytes are copied from. Made on
    /// first use, for which the stream is waited for. The device is current.
    pub(crate) fn words(&self, stream: hipStream_t) -> Result<u64, Status> {
        let mut words = self.0.words.lock();
        let generation = self.generation();
        if let Some((_, address)) = words.filter(|(made, _)| *made == generation) {
            return Ok(address);
        }
        let contents: Vec<u8> = (0..=u8::MAX).flat_map(|byte| [byte; WORD]).collect();
        let (hip, kind) = (self.hip(), hipMemcpyKind::hipMemcpyHostToDevice);
        let mut place = null_mut();
        // SAFETY: a place for an address.
        Status::from(unsafe { hip.hipMalloc(&mut place, contents.len()) }).ok()?;
        let address = place.expose_provenance() as u64;
        self.hold(Held::Memory(Provenance::Device(address)));
        // SAFETY: both sides are as long as the contents, which outlive the call: it waits.
        Status::from(unsafe {
            hip.hipMemcpyWithStream(place, contents.as_ptr().cast(), contents.len(), kind, stream)
        })
        .ok()?;
        *words = Some((generation, address));
        Ok(address)
    }

    pub(crate) fn set_peer(&self, peer: usize, enabled: bool) {
        let mut peers = self.0.peers.lock();
        if enabled {
            peers.insert(peer);
        } else {
            peers.remove(&peer);
        }
    }

    /// Whether access to that device's memory has been switched on.
    pub(crate) fn reaches(&self, peer: usize) -> bool {
        self.0.peers.lock().contains(&peer)
    }

    /// Whether HIP may be called at all: not in a forked child, not at the end, not on a lost device.
    #[inline]
    pub(crate) fn check_alive(&self, operation: &'static str) -> Result<()> {
        self.0.driver.origin.check(NAME, operation)?;
        self.0.loss.check(NAME, operation)
    }

    /// Begins a call: the device is current until the result is dropped.
    #[inline]
    pub(crate) fn enter(&self, operation: &'static str) -> Result<Current<'static>> {
        self.check_alive(operation)?;
        Current::enter(self.hip(), self.0.handle).map_err(|status| self.failure(status, operation))
    }

    /// Turns HIP's status into a result.
    #[inline]
    pub(crate) fn check(&self, status: impl Into<Status>, operation: &'static str) -> Result<()> {
        let status = status.into();
        if status.is_success() { Ok(()) } else { Err(self.failure(status, operation)) }
    }

    /// As [`check`](Self::check), where "not ready" is an answer.
    #[inline]
    pub(crate) fn check_ready(&self, status: impl Into<Status>, operation: &'static str) -> Result<bool> {
        match status.into() {
            Status::NOT_READY => {
                self.forget_last_error();
                Ok(false)
            }
            status => self.check(status, operation).map(|()| true),
        }
    }

    /// The error for a failed call. A code that makes the device unusable loses it.
    #[cold]
    pub(crate) fn failure(&self, status: Status, operation: &'static str) -> Error {
        self.forget_last_error();
        if status.is_sticky() {
            return self.0.loss.error(NAME, operation, || format!("{status} in {operation}"));
        }
        status.error(operation)
    }

    /// HIP remembers the last failure of each thread for `hipGetLastError`. Ours would be found by the caller's own
    /// code, which looks there after a launch.
    pub(crate) fn forget_last_error(&self) {
        // SAFETY: the function has no preconditions.
        let _ = unsafe { self.hip().hipGetLastError() };
    }

    /// Free and total memory. The device is current.
    pub(crate) fn memory(&self) -> Result<MemoryInfo, Status> {
        let mut memory = MemoryInfo::default();
        // SAFETY: two places for sizes.
        Status::from(unsafe { self.hip().hipMemGetInfo(&mut memory.free, &mut memory.total) }).ok()?;
        Ok(memory)
    }

    /// Beginning and length of the allocation that an address lies in. The device is current.
    pub(crate) fn allocation(&self, address: u64) -> Result<(u64, usize)> {
        const OPERATION: &str = "hipMemGetAddressRange";
        let (mut base, mut bytes) = (null_mut(), 0);
        let address = with_exposed_provenance_mut(address as usize);
        // SAFETY: places for an address and a size; HIP looks the address up without reading from it.
        match Status::from(unsafe { self.hip().hipMemGetAddressRange(&mut base, &mut bytes, address) }) {
            Status::NOT_FOUND | Status::INVALID_VALUE | Status::INVALID_DEVICE_POINTER => {
                self.forget_last_error();
                let why = "the address lies in no allocation of the device";
                Err(Error::new(NAME, OPERATION, ErrorKind::InvalidArgument { why }))
            }
            status => self.check(status, OPERATION).map(|()| (base.expose_provenance() as u64, bytes)),
        }
    }
}

/// # Safety
/// It is ours, and nothing uses it any more.
pub(crate) unsafe fn give_back(hip: &Hip, held: Held) -> Status {
    // SAFETY: passed on to the caller; the addresses are those that HIP gave out.
    unsafe {
        match held {
            Held::Executable(raw) => hip.hipGraphExecDestroy(with_exposed_provenance_mut(raw)).into(),
            Held::Graph(raw) => hip.hipGraphDestroy(with_exposed_provenance_mut(raw)).into(),
            Held::Stream(raw) => hip.hipStreamDestroy(with_exposed_provenance_mut(raw)).into(),
            Held::Event(raw) => hip.hipEventDestroy(with_exposed_provenance_mut(raw)).into(),
            Held::Module(raw) => hip.hipModuleUnload(with_exposed_provenance_mut(raw)).into(),
            Held::Memory(provenance) => provenance::give_back(hip, provenance),
        }
    }
}

impl fmt::Debug for RocDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RocDevice")
            .field("ordinal", &self.0.info.ordinal)
            .field("name", &self.0.info.name)
            .field("isa", &self.0.isa)
            .finish_non_exhaustive()
    }
}

/// A device and which of its generations a handle belongs to.
#[derive(Debug, Clone)]
pub(crate) struct Owner {
    pub(crate) device: RocDevice,
    generation: u64,
}

impl Owner {
    pub(crate) fn new(device: &RocDevice) -> Self {
        Self { device: device.clone(), generation: device.generation() }
    }

    /// Begins a call that uses a handle of this owner; `what` names it.
    #[inline]
    pub(crate) fn enter(&self, operation: &'static str, what: &'static str) -> Result<Current<'static>> {
        self.check_fresh(operation, what)?;
        self.device.enter(operation)
    }

    /// Whether a handle of this owner may be given to HIP.
    #[inline]
    pub(crate) fn check(&self, operation: &'static str, what: &'static str) -> Result<()> {
        self.check_fresh(operation, what)?;
        self.device.check_alive(operation)
    }

    #[inline]
    fn check_fresh(&self, operation: &'static str, what: &'static str) -> Result<()> {
        if self.generation != self.device.generation() {
            return Err(Error::new(NAME, operation, ErrorKind::Stale { what }));
        }
        Ok(())
    }

    /// Destroys a handle. Where there is nothing left to destroy (a lost device, a reset, a forked child, the end of
    /// the process) it is forgotten.
    pub(crate) fn destroy(&self, operation: &'static str, held: Held) -> Result<()> {
        if self.generation != self.device.generation() || self.device.check_alive(operation).is_err() {
            return Ok(());
        }
        let outcome = self.device.enter(operation).and_then(|_current| {
            if !self.device.remove_note(held) {
                return Ok(());
            }
            // Memory is freed after all work of the device.
            let _turn = matches!(held, Held::Memory(_)).then(|| self.device.enqueue_lock().alone());
            // Not noted again where HIP refuses: it may be destroyed all the same.
            // SAFETY: the note was there, so the handle is alive; the caller uses it no more.
            self.device.check(unsafe { give_back(self.device.hip(), held) }, operation)
        });
        match outcome {
            Err(error) if error.is_device_lost() => Ok(()),
            outcome => outcome,
        }
    }

    /// As [`destroy`](Self::destroy), in a `Drop`, where no caller can receive the error.
    pub(crate) fn destroy_quietly(&self, operation: &'static str, held: Held) {
        if let Err(error) = self.destroy(operation, held) {
            gpumem_core::tell!(warn: %error, "a handle could not be destroyed");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reset_destroys_streams_before_it_frees_the_memory_they_use() {
        let mut held = BTreeSet::from([
            Held::Module(1),
            Held::Memory(Provenance::Device(2)),
            Held::Event(3),
            Held::Stream(4),
        ]);
        let order: Vec<_> = std::iter::from_fn(|| held.pop_first()).collect();
        assert_eq!(order[0], Held::Stream(4));
        assert_eq!(order[3], Held::Module(1));
    }
}
