//! The backend: its types, and what belongs to no value of them.

mod device;
mod stream;

use crate::process::ProcessState;
use crate::{Buffer, Device, Event, Host, HostBarrier, HostOptions, Kernel, Module, NAME, Stream, probe};
use gpumem_core::{Backend, DeviceInfo, DeviceSelector, LoadError, Result};

impl Host {
    /// Makes a new device that no other code can open: with memory, streams and threads of its own, and an ordinal
    /// from 1000 upward that no other device of the process has.
    ///
    /// # Errors
    /// Returns [`InvalidArgument`](gpumem_core::ErrorKind::InvalidArgument) for options that make no sense.
    pub fn open_with(options: &HostOptions) -> Result<Device> {
        Device::private(options)
    }
}

// SAFETY: `set_poisoned` touches no memory, and the other functions have no part in it.
unsafe impl Backend for Host {
    const NAME: &'static str = NAME;

    type Device = Device;
    type Buffer = Buffer;
    type Stream = Stream;
    type Event = Event;
    type Barrier = HostBarrier;
    type Module = Module;
    type Kernel = Kernel;

    fn probe() -> Result<(), LoadError> {
        Ok(())
    }

    fn devices() -> Result<Vec<DeviceInfo>> {
        probe::devices()
    }

    fn open(selector: &DeviceSelector) -> Result<Device> {
        Device::open(selector)
    }

    const WANTS_POISONING: bool = crate::asan::IS_ON;

    unsafe fn set_poisoned(address: u64, bytes: usize, is_lent: bool) {
        if Self::WANTS_POISONING && ProcessState::here().table.holds(address as usize) {
            // SAFETY: the caller's promise, and the block is the host's.
            unsafe { crate::asan::set_poisoned(address, bytes, is_lent) };
        }
    }
}
