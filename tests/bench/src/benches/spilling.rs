//! Data larger than the device, on any device: arrays in chunks, and arrays that leave it.
//!
//! References: `pinned` is the copies of as many bytes between the device and page-locked arrays, one after the other.

use crate::{Bench, Measure, Pair, Routine, Unavailable};
use anyhow::{Context as _, Result};
use gpumem::{
    Chunks, Device, DeviceArray, PinnedArray, SpillManager, SpillOptions, SpillOrder, Spillable, Stream,
    memory::LimitingResource,
};
use gpumem_core::MemoryKind;
use ndarray::{Array1, Ix1};
use std::sync::Arc;

/// An array of a manager: elements of `f32` and bytes.
const LEN: usize = 16 << 20;
const BYTES: usize = LEN * 4;
/// Of as many arrays, a fourth fits.
const ARRAYS: usize = 32;
/// A host array that is used in chunks.
const CHUNKED: usize = 256 << 20;
const CHUNK: usize = 64 << 20;

type Array = DeviceArray<f32, Ix1>;

pub(super) fn of(selector: &str) -> Vec<Bench> {
    vec![
        chunks(selector),
        map_chunks(selector),
        resident(selector),
        out_and_back(selector),
        many(selector, "random", SpillOrder::LeastRecent),
        many(selector, "loop", SpillOrder::MostRecent),
    ]
}

fn open(selector: &str) -> Result<Device> {
    Device::open(selector).map_err(|error| Unavailable(error.to_string()).into())
}

fn throughput(bytes: usize) -> Measure {
    Measure::Throughput { bytes: bytes as u64 }
}

/// Uploads without anything else: what chunks cost beside their copies.
fn chunks(selector: &str) -> Bench {
    let name = format!("chunks/{selector}/1GiB_in_16");
    let selector = selector.to_owned();
    Bench::new(name, "copies into one array", throughput(CHUNKED * 4), move || {
        let device = open(&selector)?;
        let source = Array1::<f32>::ones(CHUNKED);
        let other_source = source.clone();
        let mut other: Array = device.device_array(CHUNK / 4)?;
        let (stream, other_stream) = (device.default_stream()?, device.default_stream()?);
        let ours = Routine::call(move || {
            for chunk in device.chunks(&source, Chunks::bytes(CHUNK))? {
                drop(chunk?);
            }
            Ok(stream.synchronize()?)
        });
        let reference = Routine::call(move || {
            for part in other_source.axis_chunks_iter(ndarray::Axis(0), CHUNK / 4) {
                other.copy_to_device(&part)?;
            }
            Ok(other_stream.synchronize()?)
        });
        Ok(Pair { ours, reference })
    })
}

/// Copies in both directions at once.
fn map_chunks(selector: &str) -> Bench {
    let name = format!("chunks/{selector}/map_1GiB_in_16");
    let selector = selector.to_owned();
    Bench::new(name, "up, then down, pinned", throughput(CHUNKED * 4), move || {
        let device = open(&selector)?;
        let input = Array1::<f32>::ones(CHUNKED);
        let mut output = Array1::<f32>::zeros(CHUNKED);
        let reference = Copies::new(&device, CHUNK / 4)?.routine(|| CHUNKED * 4 / CHUNK);
        let ours = Routine::call(move || {
            Ok(device
                .map_chunks(&input, &mut output, Chunks::bytes(CHUNK), |_, _, array: Array| Ok(array))?)
        });
        Ok(Pair { ours, reference })
    })
}

fn resident(selector: &str) -> Bench {
    let name = format!("spilling/{selector}/get_resident");
    let selector = selector.to_owned();
    Bench::new(name, "DeviceArray::view", Measure::Latency, move || {
        let device = open(&selector)?;
        let (manager, stream) = (SpillManager::new(&device, SpillOptions::new())?, device.stream()?);
        let cell = add(&manager, device.to_device(&[1.0f32][..])?)?;
        let array: Array = device.to_device(&[1.0f32][..])?;
        let ours = Routine::call(move || {
            std::hint::black_box(&cell.get(&stream)?);
            Ok(())
        });
        let reference = Routine::call(move || {
            std::hint::black_box(&array.view());
            Ok(())
        });
        Ok(Pair { ours, reference })
    })
}

/// One array that leaves the device, and comes back because it is used. It is written, so that its copy is made anew.
fn out_and_back(selector: &str) -> Bench {
    let name = format!("spilling/{selector}/out_and_back/64MiB");
    let selector = selector.to_owned();
    Bench::new(name, "down and up, pinned", throughput(2 * BYTES), move || {
        let device = open(&selector)?;
        let (manager, stream) = (SpillManager::new(&device, SpillOptions::new())?, device.stream()?);
        let mut cell = add(&manager, zeros(&device)?)?;
        let reference = Copies::new(&device, LEN)?.routine(|| 1);
        let ours = Routine::call(move || {
            anyhow::ensure!(cell.evict()?, "it stays");
            drop(cell.get_mut(&stream)?);
            Ok(stream.synchronize()?)
        });
        Ok(Pair { ours, reference })
    })
}

/// Uses of arrays that are four times as large as the device's limit, each of which writes. The reference copies what a policy that
/// knows no more than these orders has to: one array out and one back for each use of an array that is not there.
fn many(selector: &str, what: &'static str, order: SpillOrder) -> Bench {
    let name = format!("spilling/{selector}/{what}_of_4_times_the_memory");
    let selector = selector.to_owned();
    let reference_name = "the bytes moved, pinned";
    Bench::new(name, reference_name, throughput(ARRAYS * BYTES), move || {
        let device = open(&selector)?;
        let limit = LimitingResource::new(device.memory_resource(MemoryKind::Device)?, ARRAYS / 4 * BYTES);
        device.set_memory_resource(MemoryKind::Device, Arc::new(limit))?;
        let (manager, stream) =
            (SpillManager::new(&device, SpillOptions::new().order(order))?, device.stream()?);
        let make = |_| add(&manager, zeros(&device)?);
        let cells: Vec<_> = (0..ARRAYS).map(make).collect::<Result<_>>()?;
        let mut uses = Uses { cells, stream, random: what == "random", state: 1 };
        // Afterwards the arrays lie as in a program that has run for a while.
        uses.round()?;
        let before = manager.report().uploaded_bytes;
        let rounds = 4;
        (0..rounds).try_for_each(|_| uses.round())?;
        let moved = (manager.report().uploaded_bytes - before) / rounds / BYTES;
        // Its own device, whose arrays the manager does not count.
        let reference = Copies::new(&open(&selector)?, LEN)?.routine(move || moved);
        Ok(Pair { ours: Routine::call(move || uses.round()), reference })
    })
}

fn zeros(device: &Device) -> Result<Array> {
    let mut array = device.device_array(LEN)?;
    array.fill(0.0)?;
    Ok(array)
}

fn add(manager: &SpillManager, array: Array) -> Result<Spillable<f32, Ix1>> {
    Ok(manager.add(array).map_err(|(_, error)| error)?)
}

/// Uses of all arrays, one after the other or at random.
struct Uses {
    cells: Vec<Spillable<f32, Ix1>>,
    stream: Stream,
    random: bool,
    state: u64,
}

impl Uses {
    fn round(&mut self) -> Result<()> {
        for at in 0..self.cells.len() {
            // Knuth's generator MMIX, whose high bits are good.
            self.state =
                self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let at = if self.random { (self.state >> 33) as usize % self.cells.len() } else { at };
            self.cells[at].get_mut(&self.stream)?.slice_mut(ndarray::s![..1])?.fill(1.0)?;
        }
        Ok(self.stream.synchronize()?)
    }
}

/// Copies between a device and page-locked arrays, down and up.
struct Copies {
    array: Array,
    pinned: PinnedArray<f32, Ix1>,
    stream: Stream,
}

impl Copies {
    fn new(device: &Device, len: usize) -> Result<Self> {
        let pinned = device.pinned_array(len)?;
        Ok(Self { array: device.to_device(&Array1::zeros(len))?, pinned, stream: device.stream()? })
    }

    /// A call makes `count()` pairs of them.
    fn routine(mut self, count: impl Fn() -> usize + 'static) -> Routine {
        Routine::call(move || {
            for _ in 0..count() {
                self.stream.copy_to_host_into(&self.array, &mut self.pinned).context("down")?;
                self.stream.copy_to_device(&mut self.array, &self.pinned).context("up")?;
            }
            Ok(self.stream.synchronize()?)
        })
    }
}
