//! Downloads inside a scope: how much staging memory they take, when the call waits, and which error tells of a failure.
//!
//! A separate program: some tests poison page-locked memory, and the process has one table of poisoned bytes.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

#[path = "../common/mod.rs"]
mod common;
mod failures;
mod memory;
mod order;

use common::double;
use gpumem_core::{Backend, MemoryKind};
use gpumem_host::HostOptions;
use gpumem_integration::calling;
use gpumem_kernel::config_for_items;
use gpumem_runtime::{
    Device, Stream, TransferOptions,
    memory::{MemoryResource, StatisticsResource},
};
use host_double::{Double, DoubleDevice};
use ndarray::Array1;
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

const UNTOUCHED: u32 = 0xDEAD_BEEF;
/// The shortest staging block.
const BLOCK: usize = 64 << 10;
/// Most staging bytes that the downloads of one stream hold between two calls.
const BOUND: usize = 8 * BLOCK;
/// `u32` elements of a download that fits into the bound, and of one that is eight times as long.
const WITHIN: usize = BOUND / 4;
const BEYOND: usize = 8 * WITHIN;

fn options() -> TransferOptions {
    TransferOptions::new().threads(4).block_bytes(BLOCK).parallel_bytes(1).single_block_bytes(0)
}

fn short_blocks(options_of_host: HostOptions) -> (Device<Double>, DoubleDevice) {
    let (device, raw) = double(options_of_host);
    device.set_transfer_options(options());
    (device, raw)
}

fn numbers(len: usize) -> Array1<u32> {
    Array1::from_iter(0..len as u32)
}

fn untouched(len: usize) -> Array1<u32> {
    Array1::from_elem(len, UNTOUCHED)
}

/// Counts the page-locked bytes of the device from here on. Nothing is staged when it returns.
fn count_staging<B: Backend>(device: &Device<B>) -> Arc<StatisticsResource<B>> {
    device.flush().unwrap();
    let pool = device.memory_resource(MemoryKind::Pinned).unwrap();
    let counting = Arc::new(StatisticsResource::new(pool));
    device.set_memory_resource(MemoryKind::Pinned, counting.clone()).unwrap();
    counting
}

fn peak<B: Backend>(counting: &StatisticsResource<B>) -> usize {
    counting.statistics().peak_allocated.unwrap()
}

/// Whether each element is the right one or has not been written.
fn is_right_or_untouched(found: &Array1<u32>) -> bool {
    found.iter().enumerate().all(|(at, value)| *value == at as u32 || *value == UNTOUCHED)
}

/// Keeps a stream from going on until the flag is set, or for 20 seconds.
fn close<B: Backend>(device: &Device<B>, stream: &Stream<B>) -> Arc<AtomicBool> {
    let open = Arc::new(AtomicBool::new(false));
    let (theirs, end) = (open.clone(), Instant::now() + Duration::from_secs(20));
    let kernel = calling(move || {
        while !theirs.load(Ordering::Acquire) && Instant::now() < end {
            thread::sleep(Duration::from_millis(1));
        }
    });
    let kernel = kernel.load(device).unwrap();
    kernel.launch(stream, &config_for_items([1, 1, 1], [1, 1, 1]), (1,)).unwrap();
    open
}
