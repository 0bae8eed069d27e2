//! The deferred queue, `defer_cleanup` and explicit `free`, over memory that comes straight from the driver.
#![allow(clippy::unwrap_used, missing_docs, reason = "tests")]

use gpumem_core::{Error, ErrorKind, MemoryKind, StreamOptions};
use gpumem_host::{Host, HostOptions, Injection, Operation};
use gpumem_kernel::{KernelDef, SliceMut, WorkItemIds, config_for_items};
use gpumem_runtime::{
    Device,
    memory::{DeferredLimits, MemoryBlock, MemoryRequest, MemoryResource, MemoryStatistics},
};
use std::sync::{Arc, Mutex, PoisonError, mpsc};

const TOTAL: usize = 1 << 20;

/// A device whose arrays are the driver's own blocks.
fn device(options: HostOptions) -> (Device<Host>, gpumem_host::Device) {
    let raw = Host::open_with(&options.memory(TOTAL)).unwrap();
    let device = Device::from_raw(raw.clone());
    for kind in [MemoryKind::Device, MemoryKind::Pinned] {
        device.set_memory_resource(kind, device.driver_memory()).unwrap();
    }
    (device, raw)
}

/// An allocation that looks after the queue, and stays.
fn look(device: &Device<Host>) {
    std::mem::forget(device.uninit_array::<u8, _>(1).unwrap());
}

fn drop_some(device: &Device<Host>, count: usize, bytes: usize) {
    let arrays: Vec<_> = (0..count).map(|_| device.uninit_array::<u8, _>(bytes).unwrap()).collect();
    drop(arrays);
}

#[test]
fn ten_items_stay_and_eleven_are_freed() {
    let (device, raw) = device(HostOptions::new());
    assert_eq!(device.deferred_limits(), DeferredLimits { items: 10, ratio: 0.2 });
    drop_some(&device, 10, 16);
    assert_eq!((device.pending_frees(), raw.counters().releases), ((10, 160), 0), "a drop frees nothing");
    look(&device);
    assert_eq!(raw.counters().releases, 0, "ten are not more than ten");
    drop_some(&device, 1, 16);
    assert_eq!(raw.counters().releases, 0);
    look(&device);
    assert_eq!((device.pending_frees(), raw.counters().releases), ((0, 0), 11), "eleven are, and all go");
}

#[test]
fn a_fifth_of_the_memory_stays_and_a_byte_more_is_freed() {
    let (device, raw) = device(HostOptions::new());
    let fifth = (TOTAL as f64 * 0.2).floor() as usize;
    drop_some(&device, 1, fifth);
    look(&device);
    assert_eq!(raw.counters().releases, 0, "reaching the limit frees nothing");
    drop_some(&device, 1, 1);
    look(&device);
    assert_eq!(raw.counters().releases, 2);
    // Page-locked bytes count as well.
    drop(device.pinned_array::<u8, _>(fifth + 1).unwrap());
    look(&device);
    assert_eq!(raw.counters().releases, 3);
}

#[test]
fn limits_can_be_set() {
    let (device, raw) = device(HostOptions::new());
    device.set_deferred_limits(DeferredLimits { items: 0, ratio: 1.0 });
    drop_some(&device, 1, 16);
    look(&device);
    assert_eq!(raw.counters().releases, 1);
    device.set_deferred_limits(DeferredLimits { items: usize::MAX, ratio: f64::NAN });
    assert_eq!(device.deferred_limits().ratio, 0.0);
    drop_some(&device, 1, 16);
    look(&device);
    assert_eq!(raw.counters().releases, 2);
}

#[test]
fn streams_and_events_are_items_too() {
    let (device, raw) = device(HostOptions::new());
    let stream = device.stream().unwrap();
    let streams: Vec<_> = (0..5).map(|_| device.stream_with(StreamOptions::default()).unwrap()).collect();
    let events: Vec<_> = (0..5).map(|_| stream.record_timed_event().unwrap()).collect();
    let before = raw.counters();
    drop((streams, events));
    assert_eq!((device.pending_frees(), raw.counters().streams), ((10, 0), before.streams));
    look(&device);
    assert_eq!(raw.counters().streams, before.streams);
    drop_some(&device, 1, 16);
    look(&device);
    assert_eq!((device.pending_frees(), raw.counters().streams), ((0, 0), before.streams - 5));
}

/// Unloading a program is a driver call: dropping its kernel leaves it to the queue, launched or not.
#[test]
fn programs_are_items_too() {
    for launched in [true, false] {
        let (device, _) = device(HostOptions::new().adversarial(5));
        let stream = device.stream().unwrap();
        let loaded = Arc::new(());
        let held = Arc::downgrade(&loaded);
        let is_loaded = || held.strong_count() > 0;
        // SAFETY: the body touches nothing.
        let declaration = unsafe { KernelDef::<(u32,)>::new("nothing") };
        let declaration = declaration.host_loop(move |_: &WorkItemIds<'_>, _: &(u32,)| {
            let _ = &loaded;
        });
        let kernels: Vec<_> = (0..11).map(|_| declaration.load(&device).unwrap()).collect();
        let again = kernels[0].clone();
        drop(declaration);
        if launched {
            let dims = config_for_items([64, 1, 1], [64, 1, 1]);
            kernels.iter().for_each(|kernel| kernel.launch(&stream, &dims, (1u32,)).unwrap());
        }
        drop(kernels);
        assert_eq!(device.pending_frees(), (10, 0), "one has a clone");
        look(&device);
        assert!(is_loaded());
        drop(again);
        assert_eq!(device.pending_frees(), (11, 0));
        assert!(is_loaded(), "no drop unloads");
        stream.synchronize().unwrap();
        look(&device);
        assert_eq!(device.pending_frees(), (0, 0));
        assert!(!is_loaded());
    }
}

#[test]
fn a_failed_free_is_reported_and_the_others_run() {
    for failing in 0..11 {
        let (device, raw) = device(HostOptions::new());
        drop_some(&device, 11, 16);
        let what = ErrorKind::Driver { code: 7, name: "REFUSED" };
        raw.inject(Injection::next(Operation::Release, what.clone()).after(failing));
        look(&device);
        assert_eq!(
            (device.pending_frees(), raw.counters().releases),
            ((0, 0), 10),
            "all but number {failing}"
        );
        let errors = device.take_errors();
        assert_eq!(errors.iter().map(|error| error.kind()).collect::<Vec<_>>(), [&what]);
    }
}

#[test]
fn defer_cleanup_frees_trims_and_waits_for_nothing() {
    let (device, raw) = device(HostOptions::new());
    let pooled = device.memory_resource(MemoryKind::Pinned).unwrap();
    {
        let _outer = device.defer_cleanup();
        {
            let _inner = device.defer_cleanup();
            drop_some(&device, 30, 16);
            look(&device);
        }
        look(&device);
        let filled = device.uninit_array::<u8, _>(16).unwrap().fill(1).unwrap();
        let before = raw.counters();
        device.flush().unwrap();
        assert_eq!(device.trim(gpumem_runtime::memory::Trim::ALL).unwrap(), 0);
        filled.free().unwrap();
        assert_eq!((raw.counters().releases, device.pending_frees().0), (0, 31));
        assert_eq!(raw.counters().synchronizations, before.synchronizations);
        // Out of memory inside is an error that says so, and frees nothing.
        let error = device.uninit_array::<u8, _>(TOTAL).unwrap_err();
        let ErrorKind::OutOfMemory { requested: TOTAL, pressure: Some(pressure), .. } = error.kind() else {
            panic!("{error}")
        };
        assert!(pressure.deferred && pressure.pending_items == 31, "{pressure:?}");
        assert!(error.to_string().contains("defer_cleanup"), "{error}");
        assert_eq!(raw.counters().releases, 0);
    }
    assert_eq!(raw.counters().releases, 0, "its end frees nothing by itself");
    look(&device);
    assert_eq!((device.pending_frees(), raw.counters().releases), ((0, 0), 31));
    drop(pooled);
}

#[test]
fn an_explicit_free_returns_the_error() {
    let (device, raw) = device(HostOptions::new());
    let array = device.to_device(&[1u8, 2, 3]).unwrap();
    array.free().unwrap();
    assert_eq!((raw.counters().live_allocations, device.pending_frees()), (0, (0, 0)));
    let array = device.to_device(&[1u8, 2, 3]).unwrap();
    let what = ErrorKind::Driver { code: 7, name: "REFUSED" };
    raw.inject(Injection::next(Operation::Release, what.clone()));
    assert_eq!(array.free().unwrap_err().kind(), &what);
    assert_eq!(device.take_errors(), [], "it was told to the caller");
    let pinned = device.pinned_array::<u32, _>(5).unwrap();
    pinned.free().unwrap();
    assert_eq!(raw.counters().live_pinned_bytes, 0);
}

#[test]
fn memory_in_use_stays_until_it_is_done() {
    for seed in 0..20 {
        let (device, raw) = device(HostOptions::new().adversarial(seed));
        let stream = device.stream().unwrap();
        for _ in 0..11 {
            let mut array = stream.device_array::<u8, _>(1000).unwrap();
            stream.fill(&mut array, 7).unwrap();
        }
        look(&device);
        device.flush().unwrap();
        assert_eq!((device.pending_frees(), raw.counters().faults), ((0, 0), 0));
        assert_eq!(raw.counters().live_allocations, 1);
    }
}

/// A program that has all its arrays makes streams, events and kernels, and no allocation follows.
#[test]
fn what_is_made_without_an_allocation_frees_what_was_dropped() {
    const MOST: usize = 12;
    let (device, raw) = device(HostOptions::new());
    let stream = device.stream().unwrap();
    // SAFETY: it does nothing.
    let nothing = || unsafe { KernelDef::<(u32,)>::new("nothing") }.host_loop(|_, _| {});
    for _ in 0..100 {
        drop(device.stream().unwrap());
        assert!(device.pending_frees().0 <= MOST);
    }
    for _ in 0..100 {
        drop(stream.record_timed_event().unwrap());
        assert!(device.pending_frees().0 <= MOST);
    }
    for _ in 0..100 {
        drop(nothing().load(&device).unwrap());
        assert!(device.pending_frees().0 <= MOST);
    }
    assert!(raw.counters().streams < 20 && raw.counters().events < 20);
}

/// A cache of one's own: it keeps blocks with the uses that are pending, and gives one back to the driver where none fits.
#[derive(Debug)]
struct Cache {
    driver: Arc<dyn MemoryResource<Host>>,
    kept: Mutex<Vec<MemoryBlock<Host>>>,
}

impl Cache {
    fn pop(&self) -> Option<MemoryBlock<Host>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }
}

impl MemoryResource<Host> for Cache {
    fn name(&self) -> &'static str {
        "cache"
    }

    fn allocate(&self, request: &MemoryRequest<'_, Host>) -> Result<MemoryBlock<Host>, Error> {
        match self.pop() {
            Some(block) if block.bytes() >= request.bytes => return Ok(block),
            Some(block) => self.driver.deallocate(block)?,
            None => {}
        }
        self.driver.allocate(request)
    }

    fn recycle(&self, block: MemoryBlock<Host>) -> Result<(), MemoryBlock<Host>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).push(block);
        Ok(())
    }

    fn deallocate(&self, block: MemoryBlock<Host>) -> Result<(), Error> {
        self.driver.deallocate(block)
    }

    fn forget(&self) {
        while self.pop().is_some() {}
    }

    fn statistics(&self) -> MemoryStatistics {
        self.driver.statistics()
    }
}

/// In a callback nothing may wait, and a block that is given back there is freed by a later call.
#[test]
fn the_driver_keeps_a_block_whose_use_it_cannot_wait_for_until_it_is_over() {
    let raw = Host::open_with(&HostOptions::new().memory(TOTAL)).unwrap();
    let device = Device::from_raw(raw.clone());
    let driver = device.driver_memory();
    let cache = Arc::new(Cache { driver: driver.clone(), kept: Mutex::default() });
    device.set_memory_resource(MemoryKind::Device, cache).unwrap();
    let (end, wait) = mpsc::channel::<()>();
    let wait = Mutex::new(wait);
    // SAFETY: it writes nothing.
    let slow = unsafe { KernelDef::<(SliceMut<u8>,)>::new("slow") }
        .host_loop(move |_, _| drop(wait.lock().map(|wait| wait.recv())))
        .load(&device)
        .unwrap();
    let (busy, idle) = (device.stream().unwrap(), device.stream().unwrap());
    let mut array = device.device_array::<u8, _>(1 << 10).unwrap();
    slow.launch(&busy, &config_for_items([1, 1, 1], [1, 1, 1]), (&mut array,)).unwrap();
    drop(array);

    let (told, outcome) = mpsc::channel();
    let inside = device.clone();
    idle.add_callback(move |_| drop(told.send(inside.uninit_array::<u8, _>(2 << 10).map(drop)))).unwrap();
    outcome.recv().unwrap().unwrap();
    assert_eq!(
        (driver.statistics().allocated, device.pending_frees()),
        (3 << 10, (1, 1 << 10)),
        "it is in use"
    );
    end.send(()).unwrap();
    device.synchronize().unwrap();
    device.flush().unwrap();
    assert_eq!((driver.statistics().allocated, raw.counters().releases), (2 << 10, 1));
    assert_eq!(device.pending_frees(), (0, 0));
    assert!(device.take_errors().is_empty());
}
