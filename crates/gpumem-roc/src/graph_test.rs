//! The self-test of HIP's graphs, before a device makes its first one.
//!
//! HIP's graphs have had defects in every version so far, and not all are mended. Version 7.2 corrupts the results of about one
//! process in five (ROCm/clr#279), and gives launches old contents of memory in graphs of some two hundred (ROCm/hip#3887). So
//! graphs are HIP's only where the user asks for them, and where this process has computed the right bits by two of them, each of
//! more launches than that, a third of which are changed in turn while earlier ones are under way. All kinds of calls take part
//! that the backend enqueues: one that HIP runs at once, instead of capturing it, shows by what it has not written. That a device
//! passes does not prove its graphs right.

use crate::{Roc, RocBuffer, RocDevice, RocKernel, RocModule, RocStream, copy, error::Status, fill, graph};
use gpumem_core::{
    AllocationRequest, CaptureStart, CompileOptions, CopyRegion, DeviceBuffer, DriverDevice, DriverModule,
    Endpoint, ExecutableGraph, Fill, GraphNode, KernelArguments, KernelSource, LaunchConfig, MemoryKind,
    Pattern, Result, Space, Stream, StreamOptions,
};
use std::ptr::NonNull;

/// One that the tests replace on the simulated GPU.
const KERNEL: &str = "gpumem_graph_test";
const SOURCE: &str = r#"
extern "C" __global__ void gpumem_graph_test(const unsigned* from, unsigned* to, unsigned number) {
    to[threadIdx.x] = 3 * from[threadIdx.x] + number;
}
"#;

/// Bytes of what a launch reads and writes.
const SLOT: usize = 64;
/// Launches of each of two chains.
const CHAIN: usize = 160;
/// The slots of both chains, and those of the other calls.
const BLOCK: usize = (2 * (CHAIN + 1) + 8) * SLOT;
const GRAPHS: usize = 2;
const ROUNDS: usize = 4;
/// What no call writes, and what a call has not written.
const UNTOUCHED: u8 = 0xA5;

const WRONG: &str = "the self-test of HIP's own graphs found wrong results";
const FAILED: &str = "the self-test of HIP's own graphs could not be carried out";

type Graph = Box<dyn ExecutableGraph<Roc>>;
/// The launches of a graph: the node of each, and the addresses that it gets.
type Launches = Vec<(GraphNode, [u64; 2])>;

/// Begins to capture the stream, if graphs are HIP's own. The stream alone: HIP 6.4 ends the process, by a recursion without an
/// end, where two streams of a capture wait for each other, and 7.2 does not wait for the second branch of a graph.
pub(crate) fn begin(stream: &RocStream) -> Result<CaptureStart> {
    let device = &stream.owner.device;
    stream.owner.check("hipStreamBeginCapture", "stream")?;
    let known = *device.inner().graphs.lock();
    let verdict = match known {
        Some(verdict) => verdict,
        // Without the lock: a subscriber may launch a graph. Two threads may both test.
        None => test(device),
    };
    match verdict {
        Ok(()) => graph::begin(stream).map(|()| CaptureStart::BegunAlone),
        Err(why) => Ok(CaptureStart::Refused(why)),
    }
}

#[cold]
fn test(device: &RocDevice) -> Result<(), &'static str> {
    let found = is_right(device);
    let verdict = match found {
        Ok(true) => Ok(()),
        Ok(false) => Err(WRONG),
        Err(_) => Err(FAILED),
    };
    // Of tests at the same time one that fails is enough.
    let mut known = device.inner().graphs.lock();
    let verdict = known.unwrap_or(verdict).and(verdict);
    *known = Some(verdict);
    drop(known);
    match found {
        Ok(true) => {}
        Ok(false) => gpumem_core::tell!(warn: "graphs are enqueued call by call: {WRONG}"),
        Err(error) => gpumem_core::tell!(warn: %error, "graphs are enqueued call by call: {FAILED}"),
    }
    verdict
}

/// Whether the graphs have written what their calls write.
fn is_right(device: &RocDevice) -> Result<bool> {
    let source = KernelSource::Text(SOURCE.to_owned());
    let kernel = RocModule::compile(device, &source, &CompileOptions::default())?.kernel(KERNEL)?;
    let stream = RocStream::create(device, &StreamOptions::default())?;
    let (mut buffers, mut graphs) = (Vec::new(), Vec::new());
    let enqueued = enqueue(&stream, &kernel, &mut buffers, &mut graphs);
    // What may be in use is given back by a reset alone.
    if let Err(error) = stream.synchronize() {
        std::mem::forget((graphs, kernel));
        return Err(error);
    }
    drop(graphs);
    let is_right = enqueued.map(|host| {
        // SAFETY: the memory is ours, as long as the two halves of images, and all work on it has been waited for.
        let all = unsafe { std::slice::from_raw_parts(host, 2 * ROUNDS * GRAPHS * BLOCK) };
        let (before, after) = all.split_at(ROUNDS * GRAPHS * BLOCK);
        let mut pairs = before.chunks_exact(BLOCK).zip(after.chunks_exact(BLOCK)).enumerate();
        pairs.all(|(at, (before, after))| model(before, at) == after)
    });
    for buffer in &buffers {
        buffer.give_back(device)?;
    }
    is_right
}

/// Returns images of the memory of each launch of a graph: all of those before, then all after.
fn enqueue(
    stream: &RocStream,
    kernel: &RocKernel,
    buffers: &mut Vec<RocBuffer>,
    graphs: &mut Vec<Graph>,
) -> Result<*const u8> {
    let device = &stream.owner.device;
    let mut allocate = |kind, images: usize| {
        let request = AllocationRequest { bytes: images * BLOCK, align: SLOT, kind };
        // SAFETY: the sizes are positive, and what is read was written before.
        let buffer = unsafe { device.allocate(&request) }?;
        let place = (buffer.address(), buffer.host_address());
        buffers.push(buffer);
        Ok(place)
    };
    let (memory, _) = allocate(MemoryKind::Device, GRAPHS)?;
    let (_, host) = allocate(MemoryKind::Pinned, 2 * ROUNDS * GRAPHS)?;
    let Some(host) = host.map(NonNull::as_ptr) else {
        return Err(device.failure(Status::NOT_SUPPORTED, "hipHostMalloc"));
    };
    let own = Space::Device(device.ordinal());
    let mut nodes = Vec::new();
    for which in 0..GRAPHS {
        let (graph, launches) = capture(stream, kernel, memory, which)?;
        graphs.push(graph);
        nodes.push(launches);
    }
    for at in 0..ROUNDS * GRAPHS {
        let (which, image) = (at % GRAPHS, host.wrapping_add(at * BLOCK));
        let (Some(graph), Some(launches)) = (graphs.get_mut(which), nodes.get(which)) else { continue };
        // SAFETY: one of the images, which no work uses yet.
        unsafe {
            image.write_bytes(UNTOUCHED, BLOCK);
            image.write_bytes(1 + at as u8, SLOT);
        }
        for (launch, (node, places)) in launches.iter().enumerate().step_by(3).filter(|_| at >= GRAPHS) {
            let arguments = arguments(*places, number(at, launch));
            // SAFETY: a launch of this kernel in this graph, and its arguments.
            unsafe { graph.set_launch(*node, kernel, &dims(), &arguments)? };
        }
        let (device_side, host_side) = ((memory + (which * BLOCK) as u64, own), |image: *mut u8| {
            (image.expose_provenance() as u64, Space::Host)
        });
        let after = image.wrapping_add(ROUNDS * GRAPHS * BLOCK);
        // SAFETY: all places have room for an image; the stream is waited for before they are given back.
        unsafe {
            copy::copy(stream, &CopyRegion::linear(host_side(image), device_side, BLOCK))?;
            graph.launch(stream)?;
            copy::copy(stream, &CopyRegion::linear(device_side, host_side(after), BLOCK))?;
        }
    }
    Ok(host)
}

fn capture(stream: &RocStream, kernel: &RocKernel, memory: u64, which: usize) -> Result<(Graph, Launches)> {
    let own = Space::Device(stream.owner.device.ordinal());
    let mut launches = Launches::new();
    graph::begin(stream)?;
    let enqueued = calls(memory + (which * BLOCK) as u64, own).iter().try_for_each(|call| match call {
        // SAFETY: all of it lies in the memory of the graph; the calls depend on those before them and on no others.
        Call::Copy(region) => unsafe { copy::copy(stream, region) },
        // SAFETY: as above.
        Call::Fill(rows) => unsafe { fill::fill(stream, rows) },
        Call::Launch(places) => {
            let arguments = arguments(*places, number(which, launches.len()));
            // SAFETY: as above; the arguments are those of the kernel.
            unsafe { kernel.launch(stream, &dims(), &arguments)? };
            launches.push((graph::captured_node(stream)?, *places));
            Ok(())
        }
    });
    let ended = graph::end(stream, true);
    enqueued.and(ended).map(|graph| (graph, launches))
}

enum Call {
    /// From one slot to another.
    Launch([u64; 2]),
    Copy(CopyRegion),
    Fill(Fill),
}

/// The calls of a graph whose memory begins there: two chains, and what follows both.
fn calls(start: u64, own: Space) -> Vec<Call> {
    let slot = |slot: usize| start + (slot * SLOT) as u64;
    let chain = |first: usize| {
        (first..first + CHAIN).map(move |at| Call::Launch([slot(at), slot(at + 1)])).collect::<Vec<_>>()
    };
    let (second, other) = (CHAIN + 1, 2 * (CHAIN + 1));
    let fill = |address, pattern, count, rows| Call::Fill(Fill { address, pattern, count, rows, pitch: 32 });
    let copy = |from, to, [bytes, rows, slices]: [usize; 3], [of_source, of_destination]: [[usize; 2]; 2]| {
        let side = |address, pitch| Endpoint { address, space: own, pitch };
        let (source, destination) = (side(from, of_source), side(to, of_destination));
        Call::Copy(CopyRegion { source, destination, bytes, rows, slices })
    };
    let mut calls = chain(0);
    calls.push(fill(slot(second), Pattern::U32(0x1234_5678), SLOT / 4, 1));
    calls.append(&mut chain(second));
    calls.extend([
        fill(slot(other), Pattern::U8(7), 50, 1),
        fill(slot(other + 1), Pattern::U16(0x0908), 20, 1),
        fill(slot(other + 2), Pattern::U8(10), 16, 4),
        copy(slot(second + CHAIN), slot(other + 4), [SLOT, 1, 1], [[SLOT; 2]; 2]),
        copy(slot(CHAIN - 3), slot(other + 5), [16, 4, 1], [[SLOT, SLOT], [32, SLOT]]),
        copy(slot(second), slot(other + 7), [8, 2, 2], [[SLOT, 4 * SLOT], [16, 32]]),
    ]);
    calls
}

/// The number of a launch, the same as in the round before for two of three.
fn number(at: usize, launch: usize) -> u32 {
    let (which, round) = (at % GRAPHS, if launch.is_multiple_of(3) { at / GRAPHS } else { 0 });
    (1 + launch + 1000 * which + 100_000 * round) as u32
}

fn arguments([from, to]: [u64; 2], number: u32) -> KernelArguments {
    KernelArguments::new().with(from).with(to).with(number)
}

fn dims() -> LaunchConfig {
    LaunchConfig::linear(1, (SLOT / 4) as u32)
}

/// What a launch makes of an image.
fn model(before: &[u8], at: usize) -> Vec<u8> {
    model_with(before, at, |_, _| ())
}

/// The same, with something else done to the image after each call, which is given by its place among them.
fn model_with(before: &[u8], at: usize, mut after: impl FnMut(usize, &mut [u8])) -> Vec<u8> {
    let (mut image, mut launch) = (before.to_vec(), 0);
    for (step, call) in calls(0, Space::Host).into_iter().enumerate() {
        match call {
            Call::Launch(places) => {
                let [from, to] = places.map(|place| place as usize);
                for place in (0..SLOT).step_by(4) {
                    let mut word = [0; 4];
                    word.copy_from_slice(&image[from + place..from + place + 4]);
                    let word = u32::from_ne_bytes(word).wrapping_mul(3).wrapping_add(number(at, launch));
                    image[to + place..to + place + 4].copy_from_slice(&word.to_ne_bytes());
                }
                launch += 1;
            }
            Call::Copy(region) => {
                for (slice, row) in
                    (0..region.slices).flat_map(|slice| (0..region.rows).map(move |row| (slice, row)))
                {
                    let place =
                        |side: &Endpoint| side.address as usize + slice * side.pitch[1] + row * side.pitch[0];
                    let from = place(&region.source);
                    image.copy_within(from..from + region.bytes, place(&region.destination));
                }
            }
            Call::Fill(fill) => {
                let pattern: &[u8] = match &fill.pattern {
                    Pattern::U8(value) => &[*value],
                    Pattern::U16(value) => &value.to_ne_bytes(),
                    Pattern::U32(value) => &value.to_ne_bytes(),
                };
                for row in 0..fill.rows {
                    let from = fill.address as usize + row * fill.pitch;
                    let row = &mut image[from..from + fill.count * pattern.len()];
                    row.iter_mut().zip(pattern.iter().cycle()).for_each(|(byte, value)| *byte = *value);
                }
            }
        }
        after(step, &mut image);
    }
    image
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of launches, fills and copies: nothing that comes later hides it.
    #[test]
    fn a_byte_that_a_call_writes_wrong_shows_in_the_image() {
        let before = vec![UNTOUCHED; BLOCK];
        let right = model(&before, 1);
        for (number, call) in calls(0, Space::Host).into_iter().enumerate() {
            let (to, bytes) = match call {
                Call::Launch([_, to]) => (to, SLOT),
                Call::Copy(region) => (region.destination.address, region.bytes),
                Call::Fill(fill) => (fill.address, fill.count),
            };
            for wrong in [to as usize, to as usize + bytes - 1] {
                let found = model_with(&before, 1, |step, image| {
                    image[wrong] ^= if step == number { 0x10 } else { 0 };
                });
                assert_ne!(found, right, "call {number}, byte {wrong}");
            }
        }
    }

    #[test]
    fn each_call_of_the_test_shows_in_the_image() {
        let before = vec![UNTOUCHED; BLOCK];
        let after = model(&before, 0);
        for call in calls(0, Space::Host) {
            let to = match call {
                Call::Launch([_, to]) => to,
                Call::Copy(region) => region.destination.address,
                Call::Fill(fill) => fill.address,
            } as usize;
            assert_ne!(after[to..to + 8], before[to..to + 8], "at {to}");
        }
        assert_ne!(model(&before, 0), model(&before, 1), "another graph");
        assert_ne!(model(&before, 0), model(&before, GRAPHS), "another round");
        assert_eq!(after.last(), Some(&UNTOUCHED));
    }
}
