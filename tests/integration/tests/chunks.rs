//! Chunks of arrays that are larger than the device: on slow streams, with little memory, with failures at every call.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod common;

use common::{direct_double, double, host, is_clean};
use gpumem_core::{Backend, ErrorKind, MemoryKind, Result};
use gpumem_host::HostOptions;
use gpumem_integration::reset;
use gpumem_kernel::{Kernel, KernelDef, SliceMut, WorkItemIds, config_for_items};
use gpumem_runtime::{
    Chunks, DataFile, Device, DeviceArray, FileView, FromDevice, Order, PinnedArray, TransferOptions,
    memory::{LimitingResource, MemoryResource, StatisticsResource},
};
use host_double::{Script, Trouble};
use ndarray::{Array2, Ix2, s};
use std::{ops::Range, sync::Arc, thread};

/// Elements that tell their place.
fn numbers(rows: usize, columns: usize) -> Array2<u32> {
    Array2::from_shape_fn((rows, columns), |(row, column)| (10_000 * row + column) as u32)
}

/// Arrays of the caller take several staging blocks.
fn small_blocks<B: Backend>(device: &Device<B>) {
    let options = TransferOptions::new().threads(2).block_bytes(4 << 10);
    device.set_transfer_options(options.parallel_bytes(8 << 10).single_block_bytes(2 << 10));
}

/// The kernel `y = 2 * y`, which fails at an element that is `bad`.
fn doubling<B: Backend>(device: &Device<B>, bad: u32) -> Kernel<(SliceMut<u32>,), B> {
    // SAFETY: each work-item uses its own element.
    let declaration = unsafe { KernelDef::<(SliceMut<u32>,)>::new("doubling") };
    let body = move |ids: &WorkItemIds<'_>, (y,): &(SliceMut<u32>,)| {
        let at = ids.global_id(0);
        if at < y.len() {
            let element = y.get(at);
            y.set(if element == bad { 1 << 30 } else { at }, element.wrapping_mul(2));
        }
    };
    declaration.host_loop(body).load(device).unwrap()
}

/// Doubles an array in chunks of `rows` rows.
fn doubled<B: Backend>(
    device: &Device<B>,
    kernel: &Kernel<(SliceMut<u32>,), B>,
    (input, output): (&Array2<u32>, &mut Array2<u32>),
    options: Chunks,
) -> Result<()> {
    device.map_chunks(input, output, options, |stream, _, mut array| {
        let len = array.len();
        let mut flat = array.reshape_mut(len, Order::C)?;
        kernel.launch(stream, &config_for_items([len, 1, 1], [128, 1, 1]), (&mut flat,))?;
        Ok(array)
    })
}

struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }
}

type Chunk<B> = (Range<usize>, DeviceArray<u32, Ix2, B>);

/// Uses each chunk of an array at random: copied late, written, dropped, kept for a while or for ever, given to a thread.
fn use_at_random<B: Backend>(device: &Device<B>, seed: u64) {
    small_blocks(device);
    let (mut random, host) = (Random(seed), numbers(40, 900));
    let mut pinned = device.pinned_array::<u32, _>((40, 900)).unwrap();
    pinned.view_mut().unwrap().assign(&host);
    let streams: Vec<_> = (0..3).map(|_| device.stream().unwrap()).collect();
    let mut copies: Vec<(Range<usize>, PinnedArray<u32, Ix2, B>)> = Vec::new();
    let mut kept: Vec<Chunk<B>> = Vec::new();
    let mut for_a_while: Vec<(usize, Chunk<B>)> = Vec::new();
    let options = Chunks::rows(1 + random.below(5));
    let chunks: Box<dyn Iterator<Item = _>> = match random.below(2) {
        0 => Box::new(device.chunks(&host, options).unwrap()),
        _ => Box::new(device.chunks(&pinned, options).unwrap()),
    };
    thread::scope(|scope| {
        for (number, chunk) in chunks.enumerate() {
            let (rows, mut array) = chunk.unwrap();
            let stream = &streams[random.below(3)];
            copies.push((rows.clone(), stream.copy_to_host(&array).unwrap()));
            for_a_while.retain(|(until, _)| *until > number);
            match random.below(6) {
                0 => kept.push((rows, array)),
                1 => for_a_while.push((number + 1 + random.below(4), (rows, array))),
                2 => {
                    let stream = stream.clone();
                    scope.spawn(move || stream.fill(&mut array, 0xbad).unwrap());
                }
                3 => std::mem::forget(array),
                _ => stream.fill(&mut array, 0xbad).unwrap(),
            }
        }
    });
    for (rows, copy) in &copies {
        assert_eq!(copy.view().unwrap(), host.slice(s![rows.clone(), ..]), "seed {seed}, {rows:?}");
    }
    let kept = kept.into_iter().chain(for_a_while.into_iter().map(|(_, chunk)| chunk));
    for (rows, array) in kept {
        assert_eq!(array.copy_to_host().unwrap(), host.slice(s![rows.clone(), ..]), "seed {seed}, {rows:?}");
    }
    assert_eq!(copies.iter().map(|(rows, _)| rows.len()).sum::<usize>(), 40);
}

#[test]
fn chunks_are_used_in_every_way_on_slow_streams() {
    for seed in 0..40 {
        use_at_random(&host(HostOptions::new().adversarial(seed).memory(4 << 20)).0, seed);
        use_at_random(&double(HostOptions::new().adversarial(seed).memory(4 << 20)).0, seed);
    }
}

/// Limits the memory of all arrays together to so many bytes. Returns the resource that was set before.
fn limit<B: Backend>(device: &Device<B>, bytes: usize) -> Arc<dyn MemoryResource<B>> {
    let pool = device.memory_resource(MemoryKind::Device).unwrap();
    let limited = Arc::new(LimitingResource::new(pool.clone(), bytes));
    device.set_memory_resource(MemoryKind::Device, limited).unwrap();
    pool
}

#[test]
fn three_chunks_and_what_is_kept_are_all_the_memory() {
    const ROW: usize = 1024 * 4;
    let host_array = numbers(256, 1024);
    for kept in [0, 2] {
        let (device, raw) = double(HostOptions::new().memory(8 << 20));
        // With chunks of eight rows, at most.
        let before = limit(&device, (3 + kept) * 8 * ROW);
        let mut held = Vec::new();
        for chunk in device.chunks(&host_array, Chunks::bytes(8 * ROW + 5)).unwrap() {
            let chunk = chunk.unwrap();
            if held.len() < kept {
                held.push(chunk);
            }
        }
        for (rows, array) in held {
            assert_eq!(array.copy_to_host().unwrap(), host_array.slice(s![rows, ..]));
        }
        let (kernel, mut output) = (doubling(&device, u32::MAX), Array2::zeros((256, 1024)));
        doubled(&device, &kernel, (&host_array, &mut output), Chunks::bytes(8 * ROW)).unwrap();
        assert_eq!(output, &host_array * 2);
        drop(kernel);
        device.set_memory_resource(MemoryKind::Device, before).unwrap();
        is_clean(&device, raw.host());
    }
}

#[test]
fn a_file_goes_through_the_memory_of_three_chunks() {
    const ROW: usize = 1024 * 4;
    let base = numbers(2048, 1024);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rows");
    std::fs::write(&path, bytemuck::cast_slice::<_, u8>(base.as_slice().unwrap())).unwrap();
    let view = FileView::<u32, _>::new(&DataFile::open(&path).unwrap(), 0, (2048, 1024)).unwrap();
    let (device, raw) = double(HostOptions::new().adversarial(4));
    let before = limit(&device, 3 * 16 * ROW);
    let limited = device.memory_resource(MemoryKind::Device).unwrap();
    let counted = Arc::new(StatisticsResource::new(limited));
    device.set_memory_resource(MemoryKind::Device, counted.clone()).unwrap();
    let (stream, mut copies) = (device.stream().unwrap(), Vec::new());
    for chunk in device.chunks(&view, Chunks::rows(16)).unwrap() {
        let (rows, array) = chunk.unwrap();
        copies.push((rows, stream.copy_to_host(&array).unwrap()));
    }
    assert_eq!(copies.len(), 128);
    for (rows, copy) in copies {
        assert_eq!(copy.view().unwrap(), base.slice(s![rows, ..]));
    }
    let (kernel, mut output) = (doubling(&device, u32::MAX), Array2::zeros((2048, 1024)));
    let mapped = device.map_chunks(&view, &mut output, Chunks::rows(16), |stream, _, mut array| {
        let mut flat = array.reshape_mut(16 * 1024, Order::C)?;
        kernel.launch(stream, &config_for_items([16 * 1024, 1, 1], [128, 1, 1]), (&mut flat,))?;
        Ok(array)
    });
    mapped.unwrap();
    assert_eq!(output, &base * 2);
    let peak = counted.statistics().peak_allocated.unwrap();
    assert!((2 * 16 * ROW..=3 * 16 * ROW).contains(&peak), "{peak}");
    drop((kernel, stream));
    device.set_memory_resource(MemoryKind::Device, before).unwrap();
    is_clean(&device, raw.host());
}

#[test]
fn a_chunk_without_room_ends_the_iterator() {
    let (device, raw) = double(HostOptions::new().memory(8 << 20));
    let before = limit(&device, 40_000);
    let host_array = numbers(100, 1000);
    let mut chunks = device.chunks(&host_array, Chunks::bytes(100_000)).unwrap();
    let error = chunks.next().unwrap().unwrap_err();
    assert!(error.is_out_of_memory() && error.operation() == "chunks", "{error}");
    assert!(chunks.next().is_none() && chunks.next().is_none());
    // Two are kept, and there is no room for a third one.
    let mut kept = Vec::new();
    let mut chunks = device.chunks(&host_array, Chunks::bytes(16_000)).unwrap();
    let error = loop {
        match chunks.next().unwrap() {
            Ok(chunk) => kept.push(chunk),
            Err(error) => break error,
        }
    };
    assert!(error.is_out_of_memory() && chunks.next().is_none() && kept.len() == 2, "{error}");
    for (rows, array) in kept {
        assert_eq!(array.copy_to_host().unwrap(), host_array.slice(s![rows, ..]));
    }
    let mut output = Array2::zeros((100, 1000));
    let mapped = device.map_chunks(&host_array, &mut output, Chunks::bytes(16_000), |_, _, array| Ok(array));
    assert!(mapped.unwrap_err().is_out_of_memory());
    device.set_memory_resource(MemoryKind::Device, before).unwrap();
    is_clean(&device, raw.host());
}

/// Memory that is lent is the borrower's, also when the array is gone.
#[test]
fn lent_chunks_are_not_reused() {
    let (device, _raw) = host(HostOptions::new().memory(8 << 20));
    let (host_array, stream) = (numbers(40, 100), device.stream().unwrap());
    let (mut loans, mut addresses) = (Vec::new(), Vec::new());
    for chunk in device.chunks(&host_array, Chunks::rows(2)).unwrap() {
        let (_, array) = chunk.unwrap();
        assert!(!addresses.contains(&array.address()));
        if loans.len() < 5 {
            addresses.push(array.address());
            loans.push(array.lend(&stream).unwrap());
        }
    }
}

#[test]
fn a_kernel_that_fails_at_a_chunk_ends_a_map_there() {
    for seed in 0..10 {
        for (at, input) in [0, 7, 19].into_iter().map(|chunk| (chunk, numbers(40, 300))) {
            let (device, raw) = double(HostOptions::new().adversarial(seed).memory(4 << 20));
            small_blocks(&device);
            let mut output = Array2::from_elem((40, 300), 9);
            let kernel = doubling(&device, 20_000 * at as u32 + 5);
            let error = doubled(&device, &kernel, (&input, &mut output), Chunks::rows(2)).unwrap_err();
            assert!(error.to_string().contains("kernel \"doubling\""), "{error}");
            assert_eq!(output.slice(s![..2 * at, ..]), &input.slice(s![..2 * at, ..]) * 2);
            assert!(output.slice(s![2 * at.., ..]).iter().all(|element| *element == 9), "chunk {at}");
            // It has been told, and the next one works.
            device.synchronize().unwrap();
            let kernel = doubling(&device, u32::MAX);
            doubled(&device, &kernel, (&input, &mut output), Chunks::rows(2)).unwrap();
            assert_eq!(output, &input * 2);
            drop(kernel);
            is_clean(&device, raw.host());
        }
    }
}

/// Outputs of a map that are memory of the library, of 40 rows.
trait Target<B: Backend>: FromDevice<B, Elem = u32, Dim = Ix2> {
    fn rows(&self, rows: Range<usize>) -> Array2<u32>;
}

impl<B: Backend> Target<B> for DeviceArray<u32, Ix2, B> {
    fn rows(&self, rows: Range<usize>) -> Array2<u32> {
        self.slice(s![rows, ..]).unwrap().copy_to_host().unwrap()
    }
}

impl<B: Backend> Target<B> for PinnedArray<u32, Ix2, B> {
    fn rows(&self, rows: Range<usize>) -> Array2<u32> {
        self.view().unwrap().slice(s![rows, ..]).to_owned()
    }
}

/// Two kernels fail, at chunks 7 and 8, and `work` with an error of its own at chunk 10: only the first is the map's.
fn fails_at_the_first<B: Backend>(device: &Device<B>, output: &mut impl Target<B>) {
    let (first, second) = (doubling(device, 140_005), doubling(device, 160_005));
    let mapped = device.map_chunks(&numbers(40, 300), output, Chunks::rows(2), |stream, rows, mut array| {
        if rows.start == 20 {
            return stream.to_device(&array.slice(s![..1, ..])?);
        }
        let kernel = if rows.start == 16 { &second } else { &first };
        let mut flat = array.reshape_mut(600, Order::C)?;
        kernel.launch(stream, &config_for_items([600, 1, 1], [128, 1, 1]), (&mut flat,))?;
        Ok(array)
    });
    let error = mapped.unwrap_err();
    assert_eq!(error.operation(), "map_chunks", "{error}");
    assert!(error.to_string().contains("kernel \"doubling\""), "{error}");
    assert_eq!(output.rows(0..14), &numbers(40, 300).slice(s![..14, ..]) * 2);
    assert!(output.rows(14..40).iter().all(|element| *element == 9));
    // The second one is told by the next wait for the device, unless the map ended before it.
    let _ = device.synchronize();
    device.synchronize().unwrap();
    assert_eq!(device.take_errors(), []);
}

#[test]
fn a_map_into_memory_of_the_library_ends_at_its_first_failure() {
    fn on<B: Backend>(device: &Device<B>) {
        let nine = Array2::from_elem((40, 300), 9);
        fails_at_the_first(device, &mut device.to_device(&nine).unwrap());
        let mut pinned = device.pinned_array::<u32, _>((40, 300)).unwrap();
        pinned.view_mut().unwrap().assign(&nine);
        fails_at_the_first(device, &mut pinned);
    }
    for seed in 0..5 {
        on(&host(HostOptions::new().adversarial(seed).memory(4 << 20)).0);
        on(&double(HostOptions::new().adversarial(seed).memory(4 << 20)).0);
    }
    on(&host(HostOptions::new().brief_bytes(0)).0);
}

/// The failure of work whose results no chunk has is told beside an error of the map, not lost with it.
#[test]
fn a_failure_beside_the_first_one_is_told() {
    let (device, _raw) = host(HostOptions::new().adversarial(1).memory(4 << 20));
    let (kernel, input) = (doubling(&device, 5), numbers(40, 300));
    let mut output = device.device_array::<u32, _>((40, 300)).unwrap();
    let mapped = device.map_chunks(&input, &mut output, Chunks::rows(2), |stream, rows, array| {
        let mut other = stream.to_device(&[5])?;
        kernel.launch(stream, &config_for_items([1, 1, 1], [1, 1, 1]), (&mut other,))?;
        stream.to_device(&array.slice(s![..rows.len() - 1, ..])?)
    });
    // Both come with the first chunk, whose work is told before its download.
    let first = mapped.unwrap_err();
    assert!(first.to_string().contains("kernel \"doubling\""), "{first}");
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        device.map_chunks(&input, &mut output, Chunks::rows(2), |stream, _, array| {
            let mut other = stream.to_device(&[5])?;
            kernel.launch(stream, &config_for_items([1, 1, 1], [1, 1, 1]), (&mut other,))?;
            drop(array);
            std::panic::resume_unwind(Box::new("on purpose"))
        })
    }));
    assert!(panicked.is_err());
    let left = device.synchronize().unwrap_err();
    assert!(left.to_string().contains("kernel \"doubling\""), "{left}");
}

#[test]
fn every_call_of_a_map_may_fail_once() {
    let input = numbers(24, 500);
    for make in [double, direct_double] {
        let mut number = 0;
        loop {
            let (device, raw) = make(HostOptions::new().adversarial(3).memory(4 << 20));
            small_blocks(&device);
            let (kernel, mut output) = (doubling(&device, u32::MAX), Array2::from_elem((24, 500), 9));
            raw.script().begin(Some((number, Trouble::Refuse)));
            let mapped = doubled(&device, &kernel, (&input, &mut output), Chunks::rows(2));
            let struck = raw.script().struck();
            raw.script().begin(None);
            let is_right = |chunk: &usize| {
                let rows = s![2 * chunk..2 * chunk + 2, ..];
                output.slice(rows) == &input.slice(rows) * 2
            };
            let right = (0..12).take_while(is_right).count();
            match mapped {
                Ok(()) => assert_eq!(right, 12, "call {number}, {struck:?}"),
                Err(error) => {
                    assert_eq!(*error.kind(), Script::REFUSED, "call {number}, {struck:?}: {error}");
                    // The chunk that failed may have arrived in part.
                    let rest = output.slice(s![(2 * right + 2).min(24).., ..]);
                    assert!(rest.iter().all(|element| *element == 9), "call {number}, {struck:?}");
                }
            }
            let _ = device.synchronize();
            device.take_errors();
            doubled(&device, &kernel, (&input, &mut output), Chunks::rows(2)).unwrap();
            assert_eq!(output, &input * 2, "call {number}, {struck:?}");
            if struck.is_none() {
                break;
            }
            number += 1;
        }
        assert!(number > 60, "a map makes {number} calls");
    }
}

#[test]
fn chunks_of_before_a_reset_are_refused() {
    let (device, _raw) = host(HostOptions::new());
    let host_array = numbers(40, 100);
    let mut chunks = device.chunks(&host_array, Chunks::rows(2)).unwrap();
    let first = chunks.next().unwrap().unwrap();
    reset(&device).unwrap();
    assert!(matches!(chunks.next().unwrap().unwrap_err().kind(), ErrorKind::Stale { .. }));
    assert!(chunks.next().is_none());
    drop(first);
    assert_eq!(
        device.chunks(&host_array, Chunks::rows(2)).unwrap().filter(|chunk| chunk.is_ok()).count(),
        20
    );
}
