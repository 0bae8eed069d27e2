//! Resources around resources: they compose, in any order, and count right.
#![allow(clippy::unwrap_used, clippy::panic, missing_docs, reason = "tests")]

use gpumem_core::{Error, ErrorKind, MemoryKind};
use gpumem_host::{Host, HostOptions};
use gpumem_runtime::{
    Device,
    memory::{
        FailureInjectingResource, FailurePlan, LimitingResource, MemoryBlock, MemoryRequest, MemoryResource,
        MemoryStatistics, Pool, PoolOptions, StatisticsResource, TrackingResource, Trim, named,
    },
    trace::RecorderOptions,
};
use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicUsize, Ordering},
};
use std::time::{Duration, Instant};

type Result<T, E = Error> = std::result::Result<T, E>;

const KIB: usize = 1 << 10;

fn device() -> (Device<Host>, gpumem_host::Device) {
    let raw = Host::open_with(&HostOptions::new()).unwrap();
    (Device::from_raw(raw.clone()), raw)
}

fn pool(device: &Device<Host>) -> Arc<dyn MemoryResource<Host>> {
    Arc::new(Pool::new(device.driver_memory(), PoolOptions::device(256)))
}

#[test]
fn a_limit_holds_inside_and_outside_of_a_pool() {
    for inside in [true, false] {
        let (device, raw) = device();
        let resource: Arc<dyn MemoryResource<Host>> = match inside {
            true => {
                let limit = Arc::new(LimitingResource::new(device.driver_memory(), 256 * KIB));
                Arc::new(Pool::new(limit, PoolOptions::device(256)))
            }
            false => Arc::new(LimitingResource::new(pool(&device), 256 * KIB)),
        };
        device.set_memory_resource(MemoryKind::Device, resource).unwrap();
        let arrays: Vec<_> = (0..4).map(|_| device.uninit_array::<u8, _>(60 * KIB).unwrap()).collect();
        let error = device.uninit_array::<u8, _>(60 * KIB).unwrap_err();
        assert!(error.is_out_of_memory(), "{error}");
        drop(arrays);
        // Freed memory may be allocated again, also as a whole.
        drop(device.uninit_array::<u8, _>(250 * KIB).unwrap());
        device.flush().unwrap();
        assert_eq!(raw.counters().live_allocations, 0);
    }
}

#[test]
fn counting_knows_the_peak() {
    let (device, _) = device();
    let counting = Arc::new(StatisticsResource::new(pool(&device)));
    device.set_memory_resource(MemoryKind::Device, counting.clone()).unwrap();
    let arrays: Vec<_> = (0..10).map(|_| device.uninit_array::<u8, _>(KIB).unwrap()).collect();
    assert!(device.uninit_array::<u8, _>(1 << 60).is_err());
    drop(arrays);
    let one = device.uninit_array::<u8, _>(KIB).unwrap();
    let seen = counting.statistics();
    assert_eq!(
        (seen.allocated, seen.peak_allocated, seen.blocks, seen.allocations),
        (KIB, Some(10 * KIB), 1, 11)
    );
    assert!(seen.failures >= 1);
    counting.reset_peak();
    drop(one);
    assert_eq!((counting.statistics().allocated, counting.statistics().peak_allocated), (0, Some(KIB)));
}

#[test]
fn tracking_names_live_blocks() {
    for over_driver in [true, false] {
        let (device, _) = device();
        let upstream = if over_driver { device.driver_memory() } else { pool(&device) };
        let tracking = Arc::new(TrackingResource::new(upstream).with_sites());
        device.set_memory_resource(MemoryKind::Device, tracking.clone()).unwrap();
        assert_eq!(tracking.leak_report(), "");
        let first = device.uninit_array::<u8, _>(100).unwrap();
        let second = named("table", || device.uninit_array::<u8, _>(200)).unwrap();
        drop(first);
        device.flush().unwrap();
        let live = tracking.live();
        assert_eq!((live.len(), live[0].number, live[0].operation), (1, 1, "uninit_array"));
        assert_eq!(live[0].name.as_deref(), Some("table"));
        let report = tracking.leak_report();
        assert!(report.contains("table") && report.contains("tracking_names_live_blocks"), "{report}");
        drop(second);
        device.flush().unwrap();
        assert!(tracking.live().is_empty());
    }
}

#[test]
fn failures_are_injected_as_planned() {
    let run = |plan: FailurePlan| -> (Vec<bool>, (u64, u64)) {
        let (device, _) = device();
        // Refused, not out of memory: the request is not repeated.
        let plan = plan.kind(ErrorKind::Driver { code: 1, name: "PLANNED" });
        let injecting = Arc::new(FailureInjectingResource::new(pool(&device), plan));
        device.set_memory_resource(MemoryKind::Device, injecting.clone()).unwrap();
        let failed = (1..200).map(|n| device.uninit_array::<u8, _>(n).is_err()).collect();
        (failed, injecting.counts())
    };
    let (failed, counts) = run(FailurePlan::nth(7));
    assert_eq!((failed.iter().position(|failed| *failed), counts), (Some(7), (199, 1)));
    let (failed, counts) = run(FailurePlan::for_sizes(50..=59));
    assert!(failed.iter().enumerate().all(|(at, failed)| *failed == (49..59).contains(&at)));
    assert_eq!(counts, (10, 10));
    let (first, counts) = run(FailurePlan::with_probability(0.25, 3));
    assert!((20..80).contains(&counts.1), "{counts:?}");
    assert_eq!(run(FailurePlan::with_probability(0.25, 3)).0, first, "the same seed, the same failures");
    assert_ne!(run(FailurePlan::with_probability(0.25, 4)).0, first);
}

/// Out of memory once: the request is repeated, and the caller sees no error.
#[test]
fn a_temporary_lack_of_memory_is_not_reported() {
    let (device, _) = device();
    let injecting = Arc::new(FailureInjectingResource::new(pool(&device), FailurePlan::nth(3)));
    device.set_memory_resource(MemoryKind::Device, injecting.clone()).unwrap();
    for n in 1..10 {
        drop(device.uninit_array::<u8, _>(n).unwrap());
    }
    assert_eq!(injecting.counts(), (10, 1));
}

#[test]
fn earlier_blocks_return_to_their_own_resource() {
    let (device, raw) = device();
    let old = device.uninit_array::<u8, _>(100).unwrap();
    let counting = Arc::new(StatisticsResource::new(device.driver_memory()));
    let before = device.set_memory_resource(MemoryKind::Device, counting.clone()).unwrap().unwrap();
    let new = device.uninit_array::<u8, _>(100).unwrap();
    assert_eq!((before.statistics().blocks, counting.statistics().blocks), (1, 1));
    drop((old, new));
    device.flush().unwrap();
    assert_eq!((before.statistics().blocks, counting.statistics().blocks), (0, 0));
    assert_eq!(raw.counters().live_allocations, 0);
    // To and fro as often as one likes, with the same resources.
    for _ in 0..100 {
        device.set_memory_resource(MemoryKind::Device, before.clone()).unwrap();
        device.set_memory_resource(MemoryKind::Device, counting.clone()).unwrap();
    }
    drop(device.uninit_array::<u8, _>(100).unwrap());
}

fn small_pool(device: &Device<Host>) -> Arc<dyn MemoryResource<Host>> {
    Arc::new(Pool::new(device.driver_memory(), PoolOptions::device(256).chunks(KIB, KIB)))
}

/// Counts how many of its kind are alive.
#[derive(Debug)]
struct Counted(StatisticsResource<Host>, Arc<AtomicUsize>);

impl Counted {
    fn new(below: Arc<dyn MemoryResource<Host>>, alive: &Arc<AtomicUsize>) -> Arc<Self> {
        alive.fetch_add(1, Ordering::SeqCst);
        Arc::new(Self(StatisticsResource::new(below), alive.clone()))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.1.fetch_sub(1, Ordering::SeqCst);
    }
}

impl MemoryResource<Host> for Counted {
    fn name(&self) -> &'static str {
        "counted"
    }

    fn allocate(&self, request: &MemoryRequest<'_, Host>) -> Result<MemoryBlock<Host>> {
        self.0.allocate(request)
    }

    fn recycle(&self, block: MemoryBlock<Host>) -> Result<(), MemoryBlock<Host>> {
        self.0.recycle(block)
    }

    fn deallocate(&self, block: MemoryBlock<Host>) -> Result<()> {
        self.0.deallocate(block)
    }

    fn trim(&self, how: Trim, failed: &mut dyn FnMut(Error)) -> usize {
        self.0.trim(how, failed)
    }

    fn forget(&self) {
        self.0.forget();
    }

    fn statistics(&self) -> MemoryStatistics {
        self.0.statistics()
    }

    fn driver_block(&self, block: &MemoryBlock<Host>) -> (u64, usize) {
        self.0.driver_block(block)
    }

    fn upstream(&self) -> Option<&dyn MemoryResource<Host>> {
        Some(&self.0)
    }
}

#[test]
fn resources_that_are_not_used_give_their_places_back() {
    let (device, raw) = device();
    let alive = Arc::default();
    let shared = device.memory_resource(MemoryKind::Device).unwrap();
    let kept = device.to_device(&[7u8; 1000]).unwrap();
    let mut arrays = Vec::new();
    for round in 0..300u32 {
        let below = if round % 2 == 0 { shared.clone() } else { small_pool(&device) };
        device.set_memory_resource(MemoryKind::Device, Counted::new(below, &alive)).unwrap();
        let array = device.to_device(&[round; 1000]).unwrap();
        if round % 10 == 0 {
            // Its resource stays as long as it does.
            arrays.push((round, array));
        }
    }
    assert!(alive.load(Ordering::SeqCst) <= 64 && arrays.len() == 30);
    for (round, array) in arrays {
        assert_eq!(array.copy_to_host().unwrap().to_vec(), [round; 1000]);
    }
    assert_eq!(kept.copy_to_host().unwrap().to_vec(), [7; 1000]);
    for _ in 0..65 {
        device.set_memory_resource(MemoryKind::Device, Counted::new(shared.clone(), &alive)).unwrap();
    }
    device.set_memory_resource(MemoryKind::Device, shared).unwrap();
    drop(kept);
    device.flush().unwrap();
    assert_eq!(raw.counters().live_allocations, 0, "no pool was dropped with memory in it");
    drop(device);
    // The device ends on a thread of the library.
    let patience = Instant::now() + Duration::from_secs(20);
    while alive.load(Ordering::SeqCst) > 0 && Instant::now() < patience {
        std::thread::yield_now();
    }
    assert_eq!(alive.load(Ordering::SeqCst), 0);
}

#[test]
fn resources_with_arrays_are_at_most_64() {
    let (device, _) = device();
    let alive = Arc::default();
    let arrays: Vec<_> = (0..64)
        .map(|_| {
            device
                .set_memory_resource(MemoryKind::Device, Counted::new(small_pool(&device), &alive))
                .unwrap();
            device.uninit_array::<u8, _>(10).unwrap()
        })
        .collect();
    let another = Counted::new(small_pool(&device), &alive);
    let error = device.set_memory_resource(MemoryKind::Device, another.clone()).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Unsupported { .. }), "{error}");
    drop(arrays);
    device.set_memory_resource(MemoryKind::Device, another).unwrap();
    assert_eq!(alive.load(Ordering::SeqCst), 2, "the one before serves until the next one has its place");
}

/// Blocks that a reset has taken do not keep the places of their resources.
#[test]
fn a_reset_gives_the_places_of_resources_back() {
    let (device, _) = device();
    let alive = Arc::default();
    for _ in 0..70 {
        device.set_memory_resource(MemoryKind::Device, Counted::new(device.driver_memory(), &alive)).unwrap();
        let stream = device.stream().unwrap();
        let (kept, dropped) =
            (stream.to_device(&[1u8; 100]).unwrap(), stream.to_device(&[2u8; 100]).unwrap());
        drop(dropped);
        // SAFETY: nothing else uses the device.
        unsafe { device.reset() }.unwrap();
        drop(kept);
    }
    assert!(alive.load(Ordering::SeqCst) <= 64);
}

#[test]
fn the_report_gives_no_user_name_to_the_librarys_memory() {
    let device: Device<Host> = Device::open("host").unwrap();
    // The pool rounds, and the stream's copies go through memory of the library.
    let stream = device.stream().unwrap();
    let small = named("small", || device.uninit_array::<u8, _>(10)).unwrap();
    let report = device.memory_report().unwrap();
    assert_eq!(report.holders.iter().map(|holder| holder.bytes).sum::<usize>(), 10);
    assert_eq!(report.unnamed_bytes, 0, "{report}");
    let points = named("points", || stream.to_device(&[1u64; 100])).unwrap();
    stream.synchronize().unwrap();
    let report = device.memory_report().unwrap();
    let held = report.holders.iter().map(|holder| (holder.name.as_str(), holder.bytes, holder.count));
    assert_eq!(held.collect::<Vec<_>>(), [("points", 800, 1), ("small", 10, 1)]);
    let staged: usize = report.kinds.iter().filter(|kind| kind.kind != "device").map(allocated).sum();
    assert_eq!(report.unnamed_bytes, staged, "{report}");
    drop((small, points));
    assert!(device.memory_report().unwrap().holders.is_empty());

    fn allocated(kind: &gpumem_runtime::memory::KindReport) -> usize {
        kind.resources.first().map_or(0, |resource| resource.statistics.allocated)
    }
}

#[test]
fn the_report_is_complete_as_text_and_as_json() {
    let (device, _) = device();
    let driver = device.driver_memory();
    device
        .set_memory_resource(MemoryKind::Device, Arc::new(LimitingResource::new(driver, 100 * KIB)))
        .unwrap();
    device.set_deferred_limits(gpumem_runtime::memory::DeferredLimits { items: 7, ratio: 0.5 });
    let weights = named("weights", || device.uninit_array::<u8, _>(30 * KIB)).unwrap();
    let unnamed = device.uninit_array::<u8, _>(10 * KIB).unwrap();
    drop(device.uninit_array::<u8, _>(5 * KIB).unwrap());
    assert!(device.uninit_array::<u8, _>(90 * KIB).is_err());
    drop(device.uninit_array::<u8, _>(KIB).unwrap());
    let _deferred = device.defer_cleanup();

    let report = device.memory_report().unwrap();
    assert!(report.free.unwrap() <= report.total);
    assert_eq!((report.pending_items, report.pending_bytes), (1, KIB));
    assert_eq!((report.limit_items, report.limit_bytes), (7, report.total / 2));
    assert!(report.deferred);
    // Pending memory is still allocated from a resource that frees through the driver.
    assert_eq!(report.unnamed_bytes, 11 * KIB);
    let text = report.to_string();
    for part in [
        &format!("memory of {}", device.name()),
        "limit ",
        "driver ",
        "allocated   41.0 KiB in 3 blocks",
        "largest free",
        "in flight",
        "4 requests",
        "pending  1 items, 1.0 KiB (released beyond 7 items or",
        "cleanup is deferred",
        "weights: 30.0 KiB in 1",
        "unnamed  11.0 KiB",
    ] {
        assert!(text.contains(part), "{part}:\n{text}");
    }
    let json: serde_json::Value = serde_json::from_str(&report.to_json()).unwrap();
    let statistics = &json["kinds"][0]["resources"][0]["statistics"];
    for field in [
        "reserved",
        "peak_reserved",
        "allocated",
        "blocks",
        "in_flight",
        "largest_free",
        "allocations",
        "failures",
    ] {
        assert!(statistics[field].is_u64(), "{field}: {json}");
    }
    assert_eq!(json["total"], report.total);
    assert_eq!(
        (&json["holders"][0]["name"], &json["holders"][0]["bytes"]),
        (&"weights".into(), &(30 * KIB).into())
    );
    drop((weights, unnamed));
}

/// Says that it takes its memory from itself, and panics when it is dropped.
#[derive(Debug)]
struct Ring(Arc<dyn MemoryResource<Host>>, Arc<AtomicUsize>);

impl Drop for Ring {
    fn drop(&mut self) {
        self.1.fetch_add(1, Ordering::SeqCst);
        std::panic::panic_any("dropped");
    }
}

impl MemoryResource<Host> for Ring {
    fn name(&self) -> &'static str {
        "ring"
    }

    fn allocate(&self, request: &MemoryRequest<'_, Host>) -> Result<MemoryBlock<Host>> {
        self.0.allocate(request)
    }

    fn deallocate(&self, block: MemoryBlock<Host>) -> Result<()> {
        self.0.deallocate(block)
    }

    fn forget(&self) {}

    fn statistics(&self) -> MemoryStatistics {
        self.0.statistics()
    }

    fn upstream(&self) -> Option<&dyn MemoryResource<Host>> {
        Some(self)
    }
}

#[test]
fn a_chain_without_an_end_and_a_drop_that_panics_end_nothing() {
    let dropped = Arc::<AtomicUsize>::default();
    for is_used in [true, false] {
        let (device, _) = device();
        let ring = Ring(device.driver_memory(), dropped.clone());
        device.set_memory_resource(MemoryKind::Device, Arc::new(ring)).unwrap();
        if is_used {
            let array = device.to_device(&[1u32, 2]).unwrap();
            assert_eq!(array.driver_block(), (array.address(), array.byte_len()));
            assert_eq!(device.memory_report().unwrap().kinds[0].resources.len(), 64);
        }
        device.flush().unwrap();
        drop(device);
    }
    let patience = Instant::now() + Duration::from_secs(20);
    while dropped.load(Ordering::SeqCst) < 2 && Instant::now() < patience {
        std::thread::yield_now();
    }
    assert_eq!(dropped.load(Ordering::SeqCst), 2);
}

#[test]
fn pieces_as_large_as_can_be_said_are_as_large_as_there_is_memory() {
    for largest in [usize::MAX, usize::MAX - 255, isize::MAX as usize] {
        let raw = Host::open_with(&HostOptions::new().memory(1 << 20)).unwrap();
        let device = Device::<Host>::from_raw(raw);
        let options = PoolOptions::device(256).chunks(largest, largest).initial_size(largest);
        let pool = Arc::new(Pool::new(device.driver_memory(), options));
        device.set_memory_resource(MemoryKind::Device, pool.clone()).unwrap();
        let array = device.to_device(&[1u8; 1000]).unwrap();
        assert_eq!(array.copy_to_host().unwrap().to_vec(), [1; 1000]);
        assert!(pool.statistics().reserved <= 1 << 20);
    }
}

/// Users may say that the driver has taken everything while arrays are alive.
#[test]
fn counts_go_on_after_all_was_forgotten() {
    let (device, _) = device();
    let counting = Arc::new(StatisticsResource::new(device.driver_memory()));
    device.set_memory_resource(MemoryKind::Device, counting.clone()).unwrap();
    let first = device.uninit_array::<u8, _>(100).unwrap();
    counting.forget();
    drop(first);
    device.flush().unwrap();
    let second = device.uninit_array::<u8, _>(300).unwrap();
    assert_eq!((counting.statistics().allocated, counting.statistics().blocks), (300, 1));
    drop(second);
}

/// Fails, and says before that the driver has taken everything, or panics.
#[derive(Debug, Default)]
struct Failing(OnceLock<Arc<LimitingResource<Host>>>);

impl MemoryResource<Host> for Failing {
    fn name(&self) -> &'static str {
        "failing"
    }

    fn allocate(&self, request: &MemoryRequest<'_, Host>) -> Result<MemoryBlock<Host>> {
        assert!(request.bytes.is_multiple_of(2), "on purpose");
        self.0.get().unwrap().forget();
        Err(Error::new("", "allocate", ErrorKind::Unsupported { what: "on purpose" }))
    }

    fn deallocate(&self, _: MemoryBlock<Host>) -> Result<()> {
        Ok(())
    }

    fn forget(&self) {}

    fn statistics(&self) -> MemoryStatistics {
        MemoryStatistics::default()
    }
}

#[test]
fn a_request_that_fails_takes_nothing_of_a_limit() {
    let (device, _) = device();
    let failing = Arc::new(Failing::default());
    let limit = Arc::new(LimitingResource::new(failing.clone(), 100 * KIB));
    failing.0.set(limit.clone()).unwrap();
    device.set_memory_resource(MemoryKind::Device, limit.clone()).unwrap();
    for bytes in [1000, 1001] {
        let error = device.uninit_array::<u8, _>(bytes).unwrap_err();
        assert!(!error.is_out_of_memory(), "{error}");
        assert_eq!(limit.statistics().allocated, 0, "{bytes} bytes");
    }
}

#[test]
fn a_block_that_is_refused_lifts_no_limit() {
    let (device, _) = device();
    let kind = MemoryKind::Device;
    let limit = Arc::new(LimitingResource::new(pool(&device), 100 * KIB));
    let counting = Arc::new(StatisticsResource::new(limit.clone()));
    let resource = Arc::new(TrackingResource::new(counting.clone()));
    let block = resource.allocate(&device.memory_request(100 * KIB, kind)).unwrap();
    let seen = || (limit.statistics().allocated, counting.statistics().blocks, resource.live().len());
    let before = seen();
    assert_eq!(before, (block.bytes(), 1, 1));
    let other = pool(&device).allocate(&device.memory_request(100 * KIB, kind)).unwrap();
    assert!(resource.deallocate(other).is_err());
    assert_eq!(seen(), before);
    assert!(resource.allocate(&device.memory_request(100 * KIB, kind)).unwrap_err().is_out_of_memory());
    resource.deallocate(block).unwrap();
    assert_eq!(seen(), (0, 0, 0));
}

/// Records the device, on a thread that is outside of it, when it is asked for its numbers.
#[derive(Debug)]
struct Recording(Arc<dyn MemoryResource<Host>>, OnceLock<Device<Host>>, AtomicUsize);

impl MemoryResource<Host> for Recording {
    fn name(&self) -> &'static str {
        "recording"
    }

    fn allocate(&self, request: &MemoryRequest<'_, Host>) -> Result<MemoryBlock<Host>> {
        self.0.allocate(request)
    }

    fn deallocate(&self, block: MemoryBlock<Host>) -> Result<()> {
        self.0.deallocate(block)
    }

    fn forget(&self) {}

    fn statistics(&self) -> MemoryStatistics {
        if let Some(device) = self.1.get()
            && self.2.fetch_add(1, Ordering::SeqCst) < 3
        {
            let error = device.record_memory(RecorderOptions::default()).unwrap_err();
            assert!(matches!(error.kind(), ErrorKind::Unsupported { .. }), "{error}");
            let record = || device.record_memory(RecorderOptions::default()).unwrap();
            drop(std::thread::scope(|scope| scope.spawn(record).join()));
        }
        self.0.statistics()
    }
}

#[test]
fn resources_are_asked_without_a_lock_when_a_recording_starts() {
    let (device, _) = device();
    let resource = Arc::new(Recording(device.driver_memory(), OnceLock::new(), AtomicUsize::new(0)));
    resource.1.set(device.clone()).unwrap();
    device.set_memory_resource(MemoryKind::Device, resource.clone()).unwrap();
    let (done, is_done) = std::sync::mpsc::channel();
    let recorded = device.clone();
    std::thread::spawn(move || done.send(recorded.record_memory(RecorderOptions::default()).is_ok()));
    assert_eq!(is_done.recv_timeout(Duration::from_secs(20)), Ok(true));
    assert!(resource.2.load(Ordering::SeqCst) >= 3);
}
