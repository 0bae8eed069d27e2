//! Benches against the driver's own calls, in the same process, on the same memory.
//!
//! The library finds no context current on this thread, as in a program that uses nothing but the library; the names
//! of benches for which that makes a difference say `context_current` where one is. The driver's calls have it current.

mod against_cpp;
mod graphs;
mod interchange;
mod kernels;
mod memory;
mod ordering;
pub(crate) mod raw;
mod transfers;

use crate::Bench;
use gpumem_cuda::Cuda;
use gpumem_runtime::Device;

pub(super) fn all() -> Vec<Bench> {
    let lists = [
        transfers::all(),
        ordering::all(),
        interchange::all(),
        kernels::all(),
        graphs::all(),
        against_cpp::all(),
        memory::all(),
    ];
    lists.into_iter().flatten().collect()
}

/// The device that is measured, without the choice among backends at run time.
fn device() -> anyhow::Result<Device<Cuda>> {
    Ok(Device::open(crate::device::name())?)
}

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;

/// `4KiB`, `64MiB`.
fn size(bytes: usize) -> String {
    match bytes {
        _ if bytes < KIB => format!("{bytes}B"),
        _ if bytes < MIB => format!("{}KiB", bytes / KIB),
        _ => format!("{}MiB", bytes / MIB),
    }
}
