//! Arrays that leave the device when its memory is short: on slow streams, from several threads, with failures at every call.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

#[path = "../common/mod.rs"]
mod common;
mod failures;
mod names;
mod user_code;

use common::{double, host, is_clean};
use gpumem_core::{Backend, MemoryKind, Result};
use gpumem_host::HostOptions;
use gpumem_kernel::{Kernel, KernelDef, SliceMut, WorkItemIds, config_for_items};
use gpumem_runtime::{
    DataFile, Device, DeviceArray, FileView, RawAccess, SpillManager, SpillOptions, SpillOrder, Spillable,
    Stream,
    memory::{LimitingResource, MemoryResource},
};
use ndarray::{Array1, Ix1, array};
use std::{fs, sync::Arc, thread};

/// Elements of one array.
const LEN: usize = 4096;
const BYTES: usize = 4 * LEN;

struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }
}

/// Elements that tell their array, their place and how often they were written.
fn numbers(array: usize, version: u32) -> Array1<u32> {
    (0..LEN).map(|at| (array * 100_000 + at) as u32 + 10_000_000 * version).collect()
}

/// The kernel `y = y + 10,000,000`, which fails at an element that is `bad`.
fn next_version<B: Backend>(device: &Device<B>, bad: u32) -> Kernel<(SliceMut<u32>,), B> {
    // SAFETY: each work-item uses its own element.
    let declaration = unsafe { KernelDef::<(SliceMut<u32>,)>::new("next_version") };
    let body = move |ids: &WorkItemIds<'_>, (y,): &(SliceMut<u32>,)| {
        let at = ids.global_id(0);
        if at < y.len() {
            let element = y.get(at);
            y.set(if element == bad { 1 << 30 } else { at }, element + 10_000_000);
        }
    };
    declaration.host_loop(body).load(device).unwrap()
}

fn write<B: Backend>(
    kernel: &Kernel<(SliceMut<u32>,), B>,
    stream: &Stream<B>,
    array: &mut Spillable<u32, Ix1, B>,
) -> Result<()> {
    let config = config_for_items([LEN, 1, 1], [128, 1, 1]);
    kernel.launch(stream, &config, (&mut array.get_mut(stream)?,)).map(drop)
}

/// Limits the memory of all arrays together to `arrays` arrays. Returns the resource that was set before.
fn limit<B: Backend>(device: &Device<B>, arrays: usize) -> Arc<dyn MemoryResource<B>> {
    let pool = device.memory_resource(MemoryKind::Device).unwrap();
    let limited = Arc::new(LimitingResource::new(pool.clone(), arrays * BYTES));
    device.set_memory_resource(MemoryKind::Device, limited).unwrap();
    pool
}

fn options() -> HostOptions {
    HostOptions::new().memory(8 << 20)
}

fn manager<B: Backend>(device: &Device<B>, options: SpillOptions) -> SpillManager<B> {
    SpillManager::new(device, options).unwrap()
}

fn add<B: Backend>(spilling: &SpillManager<B>, array: DeviceArray<u32, Ix1, B>) -> Spillable<u32, Ix1, B> {
    spilling.add(array).map_err(|(_, error)| error).unwrap()
}

/// Arrays that do not fit together, each with its number.
fn arrays<B: Backend>(
    device: &Device<B>,
    spilling: &SpillManager<B>,
    count: usize,
) -> Vec<Spillable<u32, Ix1, B>> {
    (0..count).map(|array| add(spilling, device.to_device(&numbers(array, 0)).unwrap())).collect()
}

fn is_right<B: Backend>(array: &Spillable<u32, Ix1, B>, stream: &Stream<B>, number: usize, version: u32) {
    let view = array.get(stream).unwrap();
    assert_eq!(
        stream.copy_to_host(&view).unwrap().view().unwrap(),
        numbers(number, version),
        "array {number}"
    );
}

/// A file with arrays one after the other, in a folder of its own.
struct Files {
    folder: tempfile::TempDir,
}

impl Files {
    fn new(arrays: impl Iterator<Item = usize>) -> Self {
        let files = Self { folder: tempfile::tempdir().unwrap() };
        let bytes: Vec<u8> = arrays.flat_map(|array| numbers(array, 0)).flat_map(u32::to_ne_bytes).collect();
        fs::write(files.path(), bytes).unwrap();
        files
    }

    fn path(&self) -> std::path::PathBuf {
        self.folder.path().join("arrays")
    }

    fn view(&self, index: usize) -> FileView<u32, Ix1> {
        let file = DataFile::open(self.path()).unwrap();
        FileView::new(&file, (index * BYTES) as u64, LEN).unwrap()
    }
}

/// Reads, writes, prefetches, evicts and replaces 24 arrays on four streams, on a device with room for six.
fn use_at_random<B: Backend>(device: &Device<B>, seed: u64, order: SpillOrder) {
    const COUNT: usize = 24;
    let mut random = Random(seed);
    let before = limit(device, 6);
    let spilling = manager(device, SpillOptions::new().order(order).host_bytes((30 - 4) * BYTES));
    let files = Files::new(0..6);
    let kernel = next_version(device, u32::MAX);
    let streams: Vec<_> = (0..4).map(|_| device.stream().unwrap()).collect();
    let mut all: Vec<_> = (0..6).map(|index| spilling.open(files.view(index)).unwrap()).collect();
    all.extend((6..COUNT).map(|array| add(&spilling, device.to_device(&numbers(array, 0)).unwrap())));
    let (mut versions, mut copies) = ([0; COUNT], Vec::new());
    for _ in 0..300 {
        let (at, stream) = (random.below(COUNT), &streams[random.below(4)]);
        match random.below(8) {
            0 | 1 => {
                write(&kernel, stream, &mut all[at]).unwrap();
                versions[at] += 1;
            }
            2 => all[at].prefetch(stream).unwrap(),
            3 => drop(all[at].evict().unwrap()),
            4 => {
                versions[at] = 7;
                let mut view = all[at].get_mut(stream).unwrap();
                stream.copy_to_device(&mut view, &numbers(at, 7)).unwrap();
            }
            5 => {
                // Ordinary memory of the same size, written where an array was a moment ago.
                let mut other = stream.device_array::<u32, _>(LEN).unwrap();
                stream.fill(&mut other, 0xbad).unwrap();
            }
            _ => {
                let view = all[at].get(stream).unwrap();
                copies.push((at, versions[at], stream.copy_to_host(&view).unwrap()));
            }
        }
        assert!(spilling.report().device_bytes <= 6 * BYTES);
        if copies.len() > 20 {
            for (array, version, copy) in copies.drain(..) {
                assert_eq!(copy.view().unwrap(), numbers(array, version), "seed {seed}, array {array}");
            }
        }
    }
    drop(copies);
    for (at, array) in all.into_iter().enumerate() {
        let array = array.into_array(&streams[0]).map_err(|(_, error)| error).unwrap();
        assert_eq!(array.copy_to_host().unwrap(), numbers(at, versions[at]), "seed {seed}, array {at}");
    }
    let report = spilling.report();
    assert_eq!((report.device_bytes, report.host_bytes), (0, 0));
    assert!(report.downloaded_bytes > 0 && report.uploaded_bytes > report.downloaded_bytes);
    drop((kernel, spilling));
    device.set_memory_resource(MemoryKind::Device, before).unwrap();
}

#[test]
fn arrays_are_used_in_every_way_on_slow_streams() {
    for seed in 0..10 {
        for order in [SpillOrder::LeastRecent, SpillOrder::MostRecent] {
            let (device, raw) = host(options().adversarial(seed));
            use_at_random(&device, seed, order);
            is_clean(&device, &raw);
            let (device, raw) = double(options().adversarial(seed));
            use_at_random(&device, seed, order);
            is_clean(&device, raw.host());
        }
    }
}

#[test]
fn threads_share_arrays() {
    for seed in 0..5 {
        let (device, _raw) = double(options().adversarial(seed));
        // Each thread has one view at most.
        let _before = limit(&device, 10);
        let spilling = manager(&device, SpillOptions::new());
        let shared = arrays(&device, &spilling, 30);
        thread::scope(|scope| {
            for thread in 0..4 {
                let (device, shared, spilling) = (&device, &shared, &spilling);
                scope.spawn(move || {
                    let (mut random, stream) = (Random(100 * seed + thread), device.stream().unwrap());
                    for _ in 0..60 {
                        let at = random.below(30);
                        is_right(&shared[at], &stream, at, 0);
                        let own = add(spilling, stream.to_device(&numbers(77, 0)).unwrap());
                        is_right(&own, &stream, 77, 0);
                    }
                });
            }
        });
    }
}

#[test]
fn a_view_without_a_borrow_keeps_an_array_as_long_as_it_lives() {
    let (device, _raw) = host(options());
    let (spilling, stream) = (manager(&device, SpillOptions::new()), device.stream().unwrap());
    let all = arrays(&device, &spilling, 1);
    for _ in 0..2 {
        // SAFETY: nothing is written.
        let view = unsafe { all[0].get(&stream).unwrap().detach() };
        assert!(!all[0].evict().unwrap());
        assert_eq!(view.copy_to_host().unwrap(), numbers(0, 0));
        drop(view);
        assert!(all[0].evict().unwrap());
    }
}

#[test]
fn an_array_stays_while_a_view_or_a_loan_exists() {
    let (device, _raw) = host(options());
    let _before = limit(&device, 3);
    let (spilling, stream) = (manager(&device, SpillOptions::new()), device.stream().unwrap());
    let all = arrays(&device, &spilling, 2);
    let view = all[0].get(&stream).unwrap();
    let address = view.address();
    let (other, loan) = (all[1].get(&stream).unwrap(), all[1].get(&stream).unwrap().lend(&stream).unwrap());
    drop(other);
    assert!(!all[0].evict().unwrap() && !all[1].evict().unwrap());
    let third = device.device_array::<u32, _>(LEN).unwrap();
    let error = device.device_array::<u32, _>(LEN).unwrap_err();
    assert!(error.is_out_of_memory(), "{error}");
    assert_eq!((view.address(), view.copy_to_host().unwrap()), (address, numbers(0, 0)));
    drop(view);
    let _fourth = device.device_array::<u32, _>(LEN).unwrap();
    assert!(!all[0].is_resident().unwrap() && all[1].is_resident().unwrap());
    drop(third);
    std::mem::forget(loan);
    assert!(!all[1].evict().unwrap());
    is_right(&all[0], &stream, 0, 0);
}

/// Other code that has the address keeps the array where it is.
#[test]
fn an_array_stays_while_others_have_its_address() {
    let (device, _raw) = host(options());
    let _before = limit(&device, 3);
    let (spilling, stream) = (manager(&device, SpillOptions::new()), device.stream().unwrap());
    let array = add(&spilling, device.to_device(&numbers(1, 0)).unwrap());
    let stays = |what: &str| {
        assert!(!array.evict().unwrap(), "{what}");
        let ones = || device.uninit_array::<u32, _>(LEN).and_then(|ones| ones.fill(1)).ok();
        assert_eq!(std::iter::from_fn(ones).collect::<Vec<_>>().len(), 2, "{what}");
        assert!(array.is_resident().unwrap(), "{what}");
    };
    let leaves = |what: &str| {
        assert!(array.evict().unwrap(), "{what}");
        is_right(&array, &stream, 1, 0);
    };
    let view = || array.get(&stream).unwrap();
    let loan = view().lend_to_host().unwrap();
    stays("a loan");
    drop(loan);
    leaves("a loan");
    let loan = view().lend(&stream).unwrap().on_any_stream();
    stays("a loan for any stream");
    drop(loan);
    leaves("a loan for any stream");
    let tensor = view().lend_to_host().unwrap().into_dlpack().unwrap();
    stays("a tensor");
    drop(tensor);
    leaves("a tensor");
    let read = view();
    // SAFETY: nothing is enqueued.
    let has_left = unsafe { stream.raw_scope(&[RawAccess::read(&read)], |_| array.evict()) };
    assert!(!has_left.unwrap().unwrap());
    stays("work of another library");
    drop(read);
    leaves("work of another library");
    let back = device.as_cuda_array::<u32, Ix1, _>(view().lend(&stream).unwrap()).unwrap();
    stays("an import");
    assert_eq!(back.copy_to_host().unwrap(), numbers(1, 0));
    drop(back);
    leaves("an import");
}

/// The memory of an array that leaves goes to another one at once; what was enqueued before still has its bytes.
#[test]
fn enqueued_work_has_the_bytes_of_an_array_that_has_left() {
    for seed in 0..500 {
        let (device, _raw) = double(options().adversarial(seed));
        let _before = limit(&device, 1);
        let spilling = manager(&device, SpillOptions::new());
        let (kernel, one, two) =
            (next_version(&device, u32::MAX), device.stream().unwrap(), device.stream().unwrap());
        let mut array = add(&spilling, device.to_device(&numbers(1, 0)).unwrap());
        write(&kernel, &one, &mut array).unwrap();
        let copy = one.copy_to_host(&array.get(&one).unwrap()).unwrap();
        let mut other = two.device_array::<u32, _>(LEN).unwrap();
        two.fill(&mut other, 0xbad).unwrap();
        assert!(!array.is_resident().unwrap());
        drop(other);
        // It reads and writes what has come back, and what comes after the fill in the same memory.
        write(&kernel, &two, &mut array).unwrap();
        is_right(&array, &one, 1, 2);
        assert_eq!(copy.view().unwrap(), numbers(1, 1), "seed {seed}");
    }
}

#[test]
fn what_is_on_the_host_or_in_a_file_already_is_not_copied_again() {
    let (device, _raw) = double(options());
    let (spilling, stream) = (manager(&device, SpillOptions::new()), device.stream().unwrap());
    let moved = || {
        let report = spilling.report();
        (report.downloaded_bytes / BYTES, report.uploaded_bytes / BYTES, report.host_bytes / BYTES)
    };
    let mut array = add(&spilling, device.to_device(&numbers(1, 0)).unwrap());
    for round in 0..3 {
        assert!(array.evict().unwrap() && !array.evict().unwrap());
        is_right(&array, &stream, 1, 0);
        assert_eq!(moved(), (1, round + 1, 1));
    }
    array.get_mut(&stream).unwrap().copy_to_device(&numbers(1, 1)).unwrap();
    assert_eq!(moved(), (1, 3, 0));
    assert!(array.evict().unwrap());
    is_right(&array, &stream, 1, 1);
    assert_eq!(moved(), (2, 4, 1));
    drop(array);

    let files = Files::new(5..6);
    let mut array = spilling.open(files.view(0)).unwrap();
    assert!(!array.is_resident().unwrap());
    for round in 0..3 {
        is_right(&array, &stream, 5, 0);
        assert!(array.evict().unwrap());
        assert_eq!(moved(), (2, 5 + round, 0));
    }
    stream.copy_to_device(&mut array.get_mut(&stream).unwrap(), &numbers(5, 3)).unwrap();
    assert!(array.evict().unwrap());
    fs::remove_file(files.path()).unwrap();
    is_right(&array, &stream, 5, 3);
    assert_eq!(moved(), (3, 9, 1));
}

/// Nothing runs before a wait, and there is none: what leaves makes room for what comes, in the order of the streams.
#[test]
fn a_thousand_evictions_wait_for_nothing_and_take_no_memory() {
    for seed in 0..4 {
        let (device, raw) = double(options().adversarial(seed));
        let _before = limit(&device, 6);
        let (spilling, stream) = (manager(&device, SpillOptions::new()), device.stream().unwrap());
        let (kernel, mut all) = (next_version(&device, u32::MAX), arrays(&device, &spilling, 10));
        let mut written = 0;
        let mut write_all = |times: usize| {
            for _ in 0..times {
                all.iter_mut().for_each(|array| write(&kernel, &stream, array).unwrap());
                written += 1;
            }
            let counters = raw.host().counters();
            (spilling.report().downloaded_bytes / BYTES, [counters.synchronizations, counters.allocations])
        };
        // Streams, events and blocks are made on first use.
        let (start, before) = write_all(3);
        let (evicted, after) = write_all(100);
        assert!(evicted >= start + 1000, "{evicted}");
        assert_eq!(after, before, "seed {seed}: waits, and allocations of the driver");
        for (number, array) in all.iter().enumerate() {
            is_right(array, &stream, number, written);
        }
    }
}

#[test]
fn the_order_decides_what_a_loop_moves() {
    let moved = |order| {
        let (device, _raw) = host(options());
        let _before = limit(&device, 8);
        let (spilling, stream) =
            (manager(&device, SpillOptions::new().order(order)), device.stream().unwrap());
        let all = arrays(&device, &spilling, 10);
        let start = spilling.report().uploaded_bytes;
        for _ in 0..10 {
            for (number, array) in all.iter().enumerate() {
                is_right(array, &stream, number, 0);
            }
        }
        (spilling.report().uploaded_bytes - start) / BYTES
    };
    assert!(moved(SpillOrder::LeastRecent) >= 98);
    assert!(moved(SpillOrder::MostRecent) <= 30);
}

#[test]
fn arrays_sleep_and_wake() {
    let (device, raw) = double(options());
    let (spilling, stream) = (manager(&device, SpillOptions::new()), device.stream().unwrap());
    let mut all = arrays(&device, &spilling, 6);
    let files = Files::new(6..7);
    all.push(spilling.open(files.view(0)).unwrap());
    let plain = device.to_device(&numbers(9, 0)).unwrap();
    // Not on the device before: not woken.
    assert!(all[3].evict().unwrap());
    let held = all[2].get(&stream).unwrap();
    let slept = spilling.sleep().unwrap();
    assert_eq!((slept.evicted, slept.kept, slept.error), (4 * BYTES, BYTES, None));
    drop(held);
    let slept = spilling.sleep().unwrap();
    assert_eq!((slept.evicted, slept.kept, slept.error), (BYTES, 0, None));
    let before = raw.host().counters().live_device_bytes;
    assert_eq!(spilling.sleep().unwrap().evicted, 0);
    assert_eq!(raw.host().counters().live_device_bytes, before);
    // A use brings back its own.
    is_right(&all[1], &stream, 1, 0);
    // Room for the other four is missing.
    let pool = limit(&device, 3);
    let error = {
        let _held: Vec<_> = (0..3).map(|_| device.device_array::<u32, _>(LEN).unwrap()).collect();
        spilling.wake(&stream).unwrap_err()
    };
    assert!(error.is_out_of_memory(), "{error}");
    device.set_memory_resource(MemoryKind::Device, pool).unwrap();
    assert_eq!(spilling.wake(&stream).unwrap() + 2 * BYTES, 6 * BYTES);
    assert_eq!(spilling.wake(&stream).unwrap(), 0);
    let resident: Vec<_> = all.iter().map(|array| array.is_resident().unwrap()).collect();
    // The second one has left to make room, and does not sleep.
    assert_eq!(resident, [true, false, true, false, true, true, false]);
    for (number, array) in all.iter().enumerate() {
        is_right(array, &stream, number, 0);
    }
    assert_eq!(plain.copy_to_host().unwrap(), numbers(9, 0));
}

#[test]
fn sleep_gives_the_memory_back_to_the_driver() {
    let (device, raw) = double(options());
    let (spilling, stream) = (manager(&device, SpillOptions::new()), device.stream().unwrap());
    let all = arrays(&device, &spilling, 20);
    let used = || raw.host().counters().live_device_bytes as usize;
    assert!(used() >= 20 * BYTES);
    for _ in 0..3 {
        let slept = spilling.sleep().unwrap();
        assert_eq!((slept.evicted, &slept.error), (20 * BYTES, &None));
        assert!(slept.returned >= 20 * BYTES && used() == 0, "{slept:?}, {} bytes", used());
        assert_eq!(spilling.wake(&stream).unwrap(), 20 * BYTES);
        all.iter().zip(0..).for_each(|(array, number)| is_right(array, &stream, number, 0));
    }
}

/// A resource that does not take memory back at once leaves it to the queue.
#[test]
fn sleep_gives_memory_back_that_comes_straight_from_the_driver() {
    let (device, raw) = double(options());
    device.set_memory_resource(MemoryKind::Device, device.driver_memory()).unwrap();
    let (spilling, stream) = (manager(&device, SpillOptions::new()), device.stream().unwrap());
    let all = arrays(&device, &spilling, 5);
    let slept = spilling.sleep().unwrap();
    let used = raw.host().counters().live_device_bytes;
    assert!(
        slept.evicted == 5 * BYTES && slept.returned >= 5 * BYTES && used == 0,
        "{slept:?}, {used} bytes"
    );
    assert_eq!(spilling.wake(&stream).unwrap(), 5 * BYTES);
    all.iter().zip(0..).for_each(|(array, number)| is_right(array, &stream, number, 0));
}

/// Strides are kept, those of a transposed and reversed array among them, and arrays without elements are no trouble.
#[test]
fn layouts_are_kept() {
    let (device, _raw) = double(options());
    let (spilling, stream) = (manager(&device, SpillOptions::new()), device.stream().unwrap());
    let array = device.to_device(&array![[1, 2, 3], [4, 5, 6]]).unwrap();
    let array = array.reversed_axes().inverted_axis(0).unwrap();
    let (shape, strides) = (array.shape().to_vec(), array.strides().to_vec());
    let array = spilling.add(array).map_err(|(_, error)| error).unwrap();
    assert!(array.evict().unwrap());
    let array = array.into_array(&stream).map_err(|(_, error)| error).unwrap();
    assert_eq!((array.shape(), array.strides()), (&shape[..], &strides[..]));
    assert_eq!(array.copy_to_host().unwrap(), array![[3, 6], [2, 5], [1, 4]]);
    let empty = add(&spilling, device.device_array::<u32, _>(0).unwrap());
    assert!(!empty.evict().unwrap() && empty.get(&stream).unwrap().is_empty());
}
