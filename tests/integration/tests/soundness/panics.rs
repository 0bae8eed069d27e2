//! Code of the user that panics where the library runs it.

use super::device;
use gpumem_core::{Error, ErrorKind, MemoryKind, Result};
use gpumem_host::Host;
use gpumem_integration::{holding, slow_fill, threaded_sum};
use gpumem_kernel::config_for_items;
use gpumem_runtime::{
    Device, DeviceArray,
    memory::{MemoryBlock, MemoryRequest, MemoryResource, MemoryStatistics, Trim},
    trace::RecorderOptions,
};
use host_double::{Double, DoubleOptions};
use ndarray::{Array1, Ix1};
use std::{
    panic::{AssertUnwindSafe, catch_unwind, panic_any},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    time::Duration,
};

/// Panics when it is dropped, with a value that does so as often again.
struct Bomb(u32);

impl Drop for Bomb {
    fn drop(&mut self) {
        if self.0 > 0 && !std::thread::panicking() {
            panic_any(Bomb(self.0 - 1));
        }
    }
}

fn panics(errors: &[Error]) -> usize {
    errors.iter().filter(|error| matches!(error.kind(), ErrorKind::UserCodePanicked { .. })).count()
}

/// Elements that a slow kernel writes.
const LEN: usize = if cfg!(miri) { 1 << 10 } else { 1 << 16 };

/// A kernel whose captured value panics is dropped while in use, and an owner's memory after it.
fn leave_behind(device: &Device<Host>, depth: u32) {
    let (stream, other) = (device.stream().unwrap(), device.stream().unwrap());
    let one = config_for_items([1, 1, 1], [1, 1, 1]);
    let quiet = holding(Bomb(depth)).load(device).unwrap();
    let slow = slow_fill().load(device).unwrap();
    quiet.launch(&other, &one, (1,)).unwrap();
    drop(quiet);
    let mut array = device.adopt_array(Array1::<u32>::zeros(LEN)).unwrap();
    slow.launch(&stream, &one, (&mut array,)).unwrap();
    drop(array);
}

#[test]
fn frees_after_a_panicking_drop_wait_for_their_last_use() {
    for depth in 1..4 {
        let device = device();
        leave_behind(&device, depth);
        device.flush().unwrap();
        assert_eq!(panics(&device.take_errors()), 1);
        assert_eq!(device.pending_frees().0, 0);
        device.synchronize().unwrap();
    }
}

#[test]
fn an_allocation_does_not_get_the_panic_of_a_deferred_drop() {
    let device = device();
    (0..12).for_each(|_| leave_behind(&device, 2));
    // Some of it is over by now, and the rest is in use.
    std::thread::sleep(Duration::from_millis(100));
    let array = device.to_device(&[1u32, 2, 3]).unwrap();
    assert_eq!(array.copy_to_host().unwrap().to_vec(), [1, 2, 3]);
    device.flush().unwrap();
    assert_eq!(panics(&device.take_errors()), 12);
    device.synchronize().unwrap();
}

#[test]
fn a_callback_may_panic_with_a_payload_that_panics_on_drop() {
    for depth in 0..4 {
        let device = device();
        let stream = device.stream().unwrap();
        stream.add_callback(move |_| panic_any(Bomb(depth))).unwrap();
        let (sender, receiver) = mpsc::channel();
        let waiting = stream.clone();
        std::thread::spawn(move || sender.send(waiting.synchronize()).unwrap());
        receiver.recv_timeout(Duration::from_secs(20)).unwrap().unwrap();
        assert_eq!(device.take_errors().len(), 1);
        // And the thread still serves others.
        let (sender, receiver) = mpsc::channel();
        stream.add_callback(move |result| sender.send(result).unwrap()).unwrap();
        receiver.recv_timeout(Duration::from_secs(20)).unwrap().unwrap();
    }
}

/// A resource that panics in the methods that are chosen, once it is armed, or says absurd things.
#[derive(Debug)]
struct Wild {
    upstream: Arc<dyn MemoryResource<Host>>,
    armed: Arc<AtomicBool>,
    panics: &'static str,
    /// The bytes that it says it has, if they are absurd.
    absurd: Option<usize>,
}

impl Wild {
    fn strike(&self, method: &str) {
        let (panics, is_once) = match self.panics.strip_suffix(" once") {
            Some(panics) => (panics, true),
            None => (self.panics, false),
        };
        if panics == method && self.armed.load(Ordering::Relaxed) {
            self.armed.store(!is_once, Ordering::Relaxed);
            panic_any(Bomb(2));
        }
    }
}

impl MemoryResource<Host> for Wild {
    fn name(&self) -> &'static str {
        self.strike("name");
        "wild"
    }
    fn allocate(&self, request: &MemoryRequest<'_, Host>) -> Result<MemoryBlock<Host>> {
        self.strike("allocate");
        self.upstream.allocate(request)
    }
    fn recycle(&self, block: MemoryBlock<Host>) -> Result<(), MemoryBlock<Host>> {
        self.strike("recycle");
        self.upstream.recycle(block)
    }
    fn deallocate(&self, block: MemoryBlock<Host>) -> Result<()> {
        self.strike("deallocate");
        self.upstream.deallocate(block)
    }
    fn trim(&self, how: Trim, failed: &mut dyn FnMut(Error)) -> usize {
        self.strike("trim");
        let bytes = self.upstream.trim(how, failed);
        self.absurd.unwrap_or(bytes)
    }
    fn forget(&self) {
        self.upstream.forget();
    }
    fn statistics(&self) -> MemoryStatistics {
        self.strike("statistics");
        let mut statistics = self.upstream.statistics();
        if let Some(bytes) = self.absurd {
            (statistics.reserved, statistics.allocated, statistics.in_flight) = (bytes, bytes, bytes);
        }
        statistics
    }
    fn upstream(&self) -> Option<&dyn MemoryResource<Host>> {
        self.strike("upstream");
        // Its own upstream, for ever, where it is absurd.
        if self.absurd.is_some() { Some(self) } else { Some(&*self.upstream) }
    }
}

/// Elements of an array that is made again and again.
const MANY: usize = if cfg!(miri) { 1 << 10 } else { 1 << 20 };

/// Everything that calls a resource.
fn exercise(panics: &'static str, absurd: Option<usize>, under_a_pool: bool) -> (Device<Host>, usize) {
    let device = device();
    let armed = Arc::new(AtomicBool::new(false));
    let upstream = device.driver_memory();
    let mut resource: Arc<dyn MemoryResource<Host>> =
        Arc::new(Wild { upstream, armed: armed.clone(), panics, absurd });
    if under_a_pool {
        let mut options = device.pool_options(MemoryKind::Device);
        if cfg!(miri) {
            // So that the small arrays of the interpreter need pieces of their own.
            (options.initial_size, options.smallest_chunk, options.largest_chunk) = (0, 1 << 9, 1 << 9);
        }
        resource = Arc::new(gpumem_runtime::memory::Pool::new(resource, options));
    }
    for kind in [MemoryKind::Device, MemoryKind::Pinned] {
        if !(under_a_pool && kind == MemoryKind::Pinned) {
            device.set_memory_resource(kind, resource.clone()).unwrap();
        }
    }
    let early = device.to_device(&[1u32; 100]).unwrap();
    let recording = device.record_memory(RecorderOptions::default()).unwrap();
    armed.store(true, Ordering::Relaxed);
    let mut refused = 0;
    for _ in 0..3 {
        let outcome = device.to_device(&[2u32; MANY]);
        refused += usize::from(outcome.is_err());
        drop(outcome);
        let _ = device.pinned_array::<u32, _>(100);
        if !cfg!(miri) {
            // The interpreter ends where memory does.
            let _ = device.uninit_array::<u8, _>(usize::MAX / 4);
        }
        let _ = device.memory_report().unwrap().to_string();
        let _ = format!("{device:?}");
        device.trim(Trim::ALL).unwrap();
        device.flush().unwrap();
    }
    assert_eq!(early.copy_to_host().unwrap()[7], 1);
    drop(early);
    device.flush().unwrap();
    recording.finish().check().unwrap();
    (device, refused)
}

#[test]
fn a_resource_that_panics_is_an_error_wherever_it_is_called() {
    for under_a_pool in [false, true] {
        for method in ["name", "allocate", "recycle", "deallocate", "trim", "statistics", "upstream"] {
            let (device, refused) = exercise(method, None, under_a_pool);
            let errors = panics(&device.take_errors());
            match method {
                "allocate" => assert_eq!(refused, 3, "under a pool: {under_a_pool}"),
                "recycle" if under_a_pool => assert_eq!(errors + refused, 0),
                "recycle" | "deallocate" | "trim" => assert!(errors > 0, "{method}"),
                _ => assert_eq!(refused, 0, "{method}"),
            }
            // The drop of the last handle asks the resource as well.
            drop(device);
        }
    }
}

/// The other pieces of the pool are freed.
#[test]
fn a_panic_below_a_pool_loses_the_piece_that_it_is_about() {
    const PIECE: usize = 1 << 16;
    let device = device();
    let armed = Arc::new(AtomicBool::new(false));
    let wild = Wild {
        upstream: device.driver_memory(),
        armed: armed.clone(),
        panics: "deallocate once",
        absurd: None,
    };
    let mut options = device.pool_options(MemoryKind::Device);
    (options.initial_size, options.smallest_chunk, options.largest_chunk) = (0, PIECE, PIECE);
    let pool = gpumem_runtime::memory::Pool::new(Arc::new(wild), options);
    device.set_memory_resource(MemoryKind::Device, Arc::new(pool)).unwrap();
    let arrays = [(); 6].map(|()| device.device_array::<u8, _>(PIECE - 1024).unwrap());
    device.synchronize().unwrap();
    let before = device.raw().counters().live_allocations;
    assert!(before >= 6);
    drop(arrays);
    armed.store(true, Ordering::Relaxed);
    device.trim(Trim::ALL).unwrap();
    device.flush().unwrap();
    assert_eq!(panics(&device.take_errors()), 1);
    assert_eq!(device.raw().counters().live_allocations, before - 5);
}

/// A resource that asks for the report of all of them.
#[derive(Debug)]
struct Asking {
    upstream: Arc<dyn MemoryResource<Host>>,
    device: Mutex<Option<Device<Host>>>,
}

impl MemoryResource<Host> for Asking {
    fn name(&self) -> &'static str {
        "asking"
    }
    fn allocate(&self, request: &MemoryRequest<'_, Host>) -> Result<MemoryBlock<Host>> {
        self.upstream.allocate(request)
    }
    fn deallocate(&self, block: MemoryBlock<Host>) -> Result<()> {
        self.upstream.deallocate(block)
    }
    fn forget(&self) {
        self.upstream.forget();
    }
    fn statistics(&self) -> MemoryStatistics {
        let device = self.device.lock().unwrap().clone();
        if let Some(device) = device {
            let error = device.memory_report().unwrap_err();
            assert!(matches!(error.kind(), ErrorKind::Unsupported { .. }), "{error}");
            // The error of exhausted memory looks at the resources too.
            assert!(device.uninit_array::<u8, _>(usize::MAX / 4).unwrap_err().is_out_of_memory());
        }
        self.upstream.statistics()
    }
}

#[test]
#[cfg_attr(miri, ignore = "the interpreter ends where memory does")]
fn a_resource_does_not_ask_itself_without_end() {
    let device = device();
    let asking = Arc::new(Asking { upstream: device.driver_memory(), device: Mutex::new(None) });
    device.set_memory_resource(MemoryKind::Device, asking.clone()).unwrap();
    let array = device.to_device(&[1u32; 100]).unwrap();
    *asking.device.lock().unwrap() = Some(device.clone());
    let report = device.memory_report().unwrap();
    assert!(report.to_string().contains("asking"), "{report}");
    assert!(device.uninit_array::<u8, _>(usize::MAX / 4).is_err());
    *asking.device.lock().unwrap() = None;
    assert_eq!(panics(&device.take_errors()), 0);
    drop(array);
}

#[test]
fn a_resource_with_absurd_statistics_does_no_harm() {
    for bytes in [usize::MAX, isize::MAX as usize] {
        for under_a_pool in [false, true] {
            let (device, refused) = exercise("", Some(bytes), under_a_pool);
            assert_eq!(refused, 0);
            assert!(device.take_errors().is_empty());
        }
    }
}

#[test]
fn a_checked_body_may_read_on_other_threads() {
    let device = device();
    let stream = device.stream().unwrap();
    let kernel = threaded_sum().load(&device).unwrap();
    let data = device.to_device(&vec![1u32; if cfg!(miri) { 16 } else { 1 << 12 }]).unwrap();
    for _ in 0..if cfg!(miri) { 1 } else { 4 } {
        kernel.launch(&stream, &config_for_items([1, 1, 1], [1, 1, 1]), (&data,)).unwrap();
        stream.synchronize().unwrap();
    }
}

/// Copies its array back when it is dropped.
struct Saved<'a>(&'a mut Vec<u32>, DeviceArray<u32, Ix1, Double>);

impl Drop for Saved<'_> {
    fn drop(&mut self) {
        self.1.copy_to_host_into(&mut *self.0).unwrap();
    }
}

/// Through staging memory, by several threads.
#[test]
fn a_transfer_in_a_destructor_succeeds_while_its_thread_unwinds() {
    let device = Device::from_raw(Double::open_with(&DoubleOptions::default()).unwrap());
    let array = device.to_device(&vec![7_u32; 1 << 21]).unwrap();
    let mut back = vec![0; 1 << 21];
    let unwound = catch_unwind(AssertUnwindSafe(|| {
        let _saved = Saved(&mut back, array);
        panic_any("on purpose");
    }));
    assert_eq!(unwound.unwrap_err().downcast_ref(), Some(&"on purpose"));
    assert!(back.iter().all(|element| *element == 7));
}
