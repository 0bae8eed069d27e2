//! Transfers that fail half-way while earlier work is still to come: a fill of the same memory, which must not make torn elements good,
//! and a download, which must arrive.

use super::{
    One,
    common::{double, host, packing_double},
};
use gpumem_core::{Backend, CollectiveLibrary, ErrorKind, Failure, MemoryUse, POISONED};
use gpumem_host::HostOptions;
use gpumem_kernel::{KernelDef, WorkItemIds, config_for_items};
use gpumem_runtime::{
    DataFile, Device, DeviceArray, FileView, Order, PinnedArray, Progress, Stream, ToDevice, TransferOptions,
};
use host_double::{Double, DoubleDevice, DoubleOptions, Trouble};
use ndarray::{Ix1, s};
use std::{
    fs,
    ops::ControlFlow,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::channel,
    },
    thread,
    time::Duration,
};

const BYTES: usize = 256 << 10;

/// Holds a stream back until it is opened.
#[derive(Clone, Default)]
struct Gate(Arc<AtomicBool>);

impl Gate {
    fn open(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// Makes work wait for the gate, and a while longer: what a failed call does comes before it.
    fn hold<B: Backend>(&self, device: &Device<B>, stream: &Stream<B>) {
        let gate = self.clone();
        let body = move |_: &WorkItemIds<'_>, _: &One| {
            while !gate.0.load(Ordering::Acquire) {
                thread::yield_now();
            }
            thread::sleep(Duration::from_millis(5));
        };
        // SAFETY: there is no source.
        let kernel = unsafe { KernelDef::<One>::new("gate") }.host_loop(body).load(device).unwrap();
        let mut own = device.device_array::<u32, _>(1).unwrap();
        own.synchronize().unwrap();
        kernel.launch(stream, &config_for_items([1, 1, 1], [1, 1, 1]), (&mut own,)).unwrap();
    }
}

/// How an upload fails after its first part.
#[derive(Debug, Clone, Copy, PartialEq)]
enum How {
    /// The caller's function of progress panics.
    Panics,
    /// It would have to wait, in a callback.
    InCallback,
}

/// An array of sevens, of which a download is enqueued, and then a fill with ones.
struct Scene<B: Backend> {
    device: Device<B>,
    has_workers: bool,
    gate: Gate,
    before: Stream<B>,
    array: DeviceArray<u8, Ix1, B>,
    download: PinnedArray<u8, Ix1, B>,
}

impl<B: Backend> Scene<B> {
    /// Under a schedule without threads the work may run late as it is; a body that waits would never end.
    fn new(device: Device<B>, has_workers: bool) -> Self {
        let options = TransferOptions::new().threads(2).block_bytes(16 << 10);
        device.set_transfer_options(options.parallel_bytes(32 << 10).single_block_bytes(2 << 10));
        let (gate, before) = (Gate::default(), device.stream().unwrap());
        let mut array = device.to_device(&vec![7_u8; BYTES]).unwrap();
        device.synchronize().unwrap();
        if has_workers {
            gate.hold(&device, &before);
        }
        let download = before.copy_to_host(&array).unwrap();
        before.fill(&mut array, 1).unwrap();
        Self { device, has_workers, gate, before, array, download }
    }

    fn upload<S>(self, source: S, how: How)
    where
        S: ToDevice<B, Elem = u8, Dim = Ix1> + Clone + Send + 'static,
    {
        let Self { device, has_workers, gate, before, mut array, download } = self;
        match how {
            How::Panics => {
                let progress = |_: Progress| -> ControlFlow<()> {
                    gate.open();
                    resume_unwind(Box::new("on purpose"))
                };
                let upload =
                    AssertUnwindSafe(|| array.copy_to_device_with_progress(&source, progress).map(drop));
                assert!(catch_unwind(upload).is_err());
            }
            How::InCallback => {
                let (callbacks, stream) = (device.stream().unwrap(), device.stream().unwrap());
                let (sender, receiver) = channel();
                let source = source.clone();
                let upload = move |_| {
                    let result = stream.copy_to_device(&mut array, &source).map(drop);
                    drop(sender.send((array, result)));
                };
                callbacks.add_callback(upload).unwrap();
                let result;
                (array, result) = receiver.recv().unwrap();
                let Err(error) = result else {
                    assert!(!has_workers, "the first copies were held back");
                    assert!(array.copy_to_host().unwrap().iter().all(|byte| *byte == 3));
                    return;
                };
                assert!(matches!(error.kind(), ErrorKind::BlockingInCallback), "{error}");
            }
        }
        gate.open();
        is_torn(&mut array);
        assert!(download.view().unwrap().iter().all(|byte| *byte == 7), "{how:?}");
        before.synchronize().unwrap();
        device.synchronize().unwrap();
    }
}

/// No call reads the elements until they are written anew.
fn is_torn<B: Backend>(array: &mut DeviceArray<u8, Ix1, B>) {
    for _ in 0..2 {
        let error = array.copy_to_host().unwrap_err();
        assert!(error.is_poisoned(), "{error}");
    }
    assert!(array.get(BYTES - 1).unwrap_err().is_poisoned());
    array.slice_mut(s![..100]).unwrap().fill(4).unwrap();
    assert_eq!(array.get(99).unwrap(), 4);
    assert!(array.copy_to_host().unwrap_err().is_poisoned());
    array.copy_to_device(&vec![5_u8; BYTES]).unwrap();
    assert!(array.copy_to_host().unwrap().iter().all(|byte| *byte == 5));
}

/// Schedules: with threads, and a few that delay work as long as they may.
fn schedules() -> impl Iterator<Item = (HostOptions, bool)> {
    let options = || HostOptions::new().memory(64 << 20);
    let late = (0..if cfg!(miri) { 0 } else { 6 }).map(move |seed| (options().adversarial(seed), false));
    std::iter::once((options().workers(2), true)).chain(late)
}

#[test]
fn poison_of_a_torn_upload_comes_after_the_work_before_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("threes");
    fs::write(&path, vec![3_u8; BYTES]).unwrap();
    let file = FileView::<u8, _>::new(&DataFile::open(&path).unwrap(), 0, BYTES).unwrap();
    let bytes = vec![3_u8; BYTES];
    for (options, has_workers) in schedules() {
        for how in [How::Panics, How::InCallback] {
            // The host copies memory of the caller at once, and nothing is torn.
            Scene::new(host(options.clone()).0, has_workers).upload(file.clone(), how);
            for make in [double, packing_double] {
                Scene::new(make(options.clone()).0, has_workers).upload(file.clone(), how);
                Scene::new(make(options.clone()).0, has_workers).upload(bytes.clone(), how);
            }
        }
    }
}

/// The elements have been read, of a file that is another one by then.
#[test]
fn a_load_of_a_file_that_has_changed_is_torn() {
    fn load<B: Backend>(device: Device<B>, has_workers: bool) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data");
        fs::write(&path, vec![3_u8; BYTES]).unwrap();
        let file = FileView::<u8, _>::new(&DataFile::open(&path).unwrap(), 0, 1000).unwrap();
        fs::write(&path, vec![9_u8; BYTES + 1]).unwrap();
        let Scene { device, gate, before, mut array, download, .. } = Scene::new(device, has_workers);
        let (callbacks, stream) = (device.stream().unwrap(), device.stream().unwrap());
        let (sender, receiver) = channel();
        let upload = move |_| {
            let result = stream.copy_to_device(&mut array.slice_mut(s![..1000]).unwrap(), &file).map(drop);
            drop(sender.send((array, result)));
        };
        callbacks.add_callback(upload).unwrap();
        let (array, result) = receiver.recv().unwrap();
        let error = result.unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::File(_)), "{error}");
        gate.open();
        assert!(array.copy_to_host().unwrap_err().is_poisoned());
        assert!(array.slice(s![1000..]).unwrap().copy_to_host().unwrap().iter().all(|byte| *byte == 1));
        assert!(download.view().unwrap().iter().all(|byte| *byte == 7));
        before.synchronize().unwrap();
    }
    for (options, has_workers) in schedules() {
        load(host(options.clone()).0, has_workers);
        load(double(options.clone()).0, has_workers);
        load(packing_double(options).0, has_workers);
    }
}

/// A copy of several calls of the driver, in a callback: the call that is refused cannot wait for those before it.
#[test]
fn a_copy_that_is_refused_half_way_in_a_callback_is_torn() {
    const HALF: usize = 8;
    let mut torn = 0;
    for call in 0..2 * HALF as u64 {
        let (device, raw): (_, DoubleDevice) = double(HostOptions::new().workers(2).memory(64 << 20));
        let threes = device.to_device(&vec![3_u8; BYTES]).unwrap();
        let Scene { device, gate, before, mut array, download, .. } = Scene::new(device, true);
        let (callbacks, stream) = (device.stream().unwrap(), device.stream().unwrap());
        let (sender, receiver) = channel();
        let script = raw.clone();
        let copy = move |_| {
            let mut target = array.reshape_mut((HALF, BYTES / HALF), Order::C).unwrap();
            let source = threes.reshape((HALF, BYTES / HALF)).unwrap();
            script.script().begin(Some((call, Trouble::Refuse)));
            let (mut to, from) =
                (target.slice_mut(s![.., ..;2]).unwrap(), source.slice(s![..;-1, ..;2]).unwrap());
            let result = stream.copy_to_device(&mut to, &from).map(drop);
            script.script().begin(None);
            drop(sender.send((array, result)));
        };
        callbacks.add_callback(copy).unwrap();
        let (array, result) = receiver.recv().unwrap();
        gate.open();
        match (array.copy_to_host(), result) {
            (Ok(read), Err(_)) => assert!(read.iter().all(|byte| *byte == 1), "call {call}"),
            (Ok(read), Ok(())) => assert_eq!(read.iter().filter(|byte| **byte == 3).count(), BYTES / 2),
            (Err(error), Err(_)) => {
                assert!(error.is_poisoned(), "{error}");
                torn += 1;
            }
            (Err(error), Ok(())) => panic!("{error}"),
        }
        assert!(download.view().unwrap().iter().all(|byte| *byte == 7));
        before.synchronize().unwrap();
        drop(device.take_errors());
    }
    assert!(torn > 0);
}

/// What comes after a copy in the same submission may be refused, too: the wait of a stream that has borrowed the array, and the event of
/// a stream that each thread has its own of.
#[test]
fn an_upload_is_torn_if_what_follows_its_copies_is_refused() {
    for (is_lent, single_block) in [(true, 2 << 10), (true, 1 << 20), (false, 2 << 10), (false, 1 << 20)] {
        let mut torn = 0;
        for call in 0.. {
            let (device, raw): (_, DoubleDevice) = double(HostOptions::new().memory(64 << 20));
            let options = TransferOptions::new().block_bytes(64 << 10).parallel_bytes(usize::MAX);
            device.set_transfer_options(options.single_block_bytes(single_block));
            let (other, mut array) =
                (device.stream().unwrap(), device.to_device(&vec![7_u8; BYTES]).unwrap());
            device.synchronize().unwrap();
            let stream = if is_lent { device.stream() } else { device.per_thread_stream() }.unwrap();
            let loan = is_lent.then(|| array.lend(&other).unwrap());
            raw.script().begin(Some((call, Trouble::Refuse)));
            let result = stream.copy_to_device(&mut array, &vec![3_u8; BYTES]);
            let struck = raw.script().struck();
            raw.script().begin(None);
            drop(loan);
            match (array.copy_to_host(), result) {
                (Ok(read), Err(_)) => assert!(read.iter().all(|byte| *byte == 7), "call {call}"),
                (Ok(read), Ok(_)) => assert!(read.iter().all(|byte| *byte == 3), "call {call}"),
                (Err(error), Err(_)) => {
                    assert!(error.is_poisoned(), "{error}");
                    torn += 1;
                }
                (Err(error), Ok(_)) => panic!("{error}"),
            }
            array.fill(1).unwrap();
            assert!(array.copy_to_host().unwrap().iter().all(|byte| *byte == 1));
            drop(device.take_errors());
            if struck.is_none() {
                break;
            }
        }
        assert!(torn > 1, "{is_lent} {single_block}");
    }
}

/// Memory that is dropped while its poison is still to come leaves none.
#[test]
fn memory_that_is_gone_is_not_poisoned() {
    let device = double(HostOptions::new().workers(2).memory(64 << 20)).0;
    let address;
    {
        let Scene { device, gate, before, mut array, download, .. } = Scene::new(device.clone(), true);
        let (callbacks, stream) = (device.stream().unwrap(), device.stream().unwrap());
        let (sender, receiver) = channel();
        address = array.address();
        let upload = move |_| {
            let result = stream.copy_to_device(&mut array, &vec![3_u8; BYTES]).map(drop);
            drop(array);
            drop(sender.send(result));
        };
        callbacks.add_callback(upload).unwrap();
        assert!(receiver.recv().unwrap().is_err());
        gate.open();
        drop((before, download));
    }
    device.synchronize().unwrap();
    device.flush().unwrap();
    let used = MemoryUse { owner: 0, start: address, bytes: BYTES, write: false, is_foreign: true };
    assert!(POISONED.find(&used).is_none());
}

/// As an operation of several ranks that is aborted while its result is copied to where it belongs.
#[test]
fn a_copy_makes_nothing_good_if_its_source_fails_while_it_is_enqueued() {
    // As a GPU, it goes on with work that reads what failed work was to write.
    let collective_library = Some(CollectiveLibrary::Nccl);
    let options = DoubleOptions { is_packing: true, collective_library, ..DoubleOptions::default() };
    let raw = Double::open_with(&options).unwrap();
    let device = Device::<Double>::from_raw(raw.clone());
    let stream = device.stream().unwrap();
    for (operation, columns) in [("copy", 8), ("copy_strided", 4)] {
        let source = device.to_device(&ndarray::Array2::<u8>::zeros((8, columns))).unwrap();
        let mut whole = device.to_device(&ndarray::Array2::<u8>::zeros((8, 8))).unwrap();
        device.synchronize().unwrap();
        let used = |start, bytes| MemoryUse { owner: 0, start, bytes, write: true, is_foreign: true };
        let ends = [used(source.address(), 8 * columns), used(whole.address(), 64)];
        raw.script().during(operation, move || {
            let failure = Arc::new(Failure::new("all_reduce", "a device", "aborted"));
            // SAFETY: they are the bytes of the arrays.
            ends.iter().for_each(|used| unsafe { POISONED.poison(used, &failure) });
        });
        stream.copy_to_device(&mut whole.slice_mut(s![.., ..columns]).unwrap(), &source).unwrap();
        stream.synchronize().unwrap();
        let told = whole.slice(s![.., ..columns]).unwrap().copy_to_host().unwrap_err();
        assert!(matches!(told.kind(), ErrorKind::Poisoned { .. }), "{operation}: {told}");
        // What is good is copied as ever.
        stream.fill(&mut whole, 1).unwrap();
        assert_eq!(whole.copy_to_host().unwrap(), ndarray::Array2::from_elem((8, 8), 1));
        // SAFETY: nothing reads the array any more.
        unsafe { POISONED.clear(&ends[0].range()) };
    }
}
