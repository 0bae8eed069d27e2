//! The pool under arrays: its driver calls, its waits, and freed memory.
#![allow(clippy::unwrap_used, clippy::panic, missing_docs, reason = "tests")]

mod out_of_memory;
mod page_locked;
mod pieces;
mod refused;
mod streams;

use gpumem_core::MemoryKind;
use gpumem_host::{Host, HostOptions};
use gpumem_runtime::{Device, memory::MemoryStatistics};

const MIB: usize = 1 << 20;

fn device(options: HostOptions) -> (Device<Host>, gpumem_host::Device) {
    let raw = Host::open_with(&options).unwrap();
    (Device::from_raw(raw.clone()), raw)
}

fn statistics(device: &Device<Host>, kind: MemoryKind) -> MemoryStatistics {
    device.memory_resource(kind).unwrap().statistics()
}
