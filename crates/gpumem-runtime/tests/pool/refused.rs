//! Refused calls: invalid requests, blocks that do not match the request, exports of a part.

use super::{MIB, device};
use gpumem_core::{DriverDevice, Error, ErrorKind, MemoryKind, Result};
use gpumem_host::{Host, HostOptions};
use gpumem_runtime::memory::{
    MemoryBlock, MemoryRequest, MemoryResource, MemoryStatistics, Pool, PoolOptions, named,
};
use std::{
    collections::{BTreeMap, VecDeque},
    sync::{
        Arc, Barrier, Mutex, OnceLock, Weak,
        atomic::{AtomicBool, Ordering},
        mpsc::channel,
    },
    time::Duration,
};

/// Requests other memory than it should, and returns that. Gives nothing back when it is trimmed.
#[derive(Debug)]
pub(super) struct Altered {
    pub(super) upstream: Arc<dyn MemoryResource<Host>>,
    pub(super) bytes: fn(usize) -> usize,
    pub(super) align: Option<usize>,
}

impl MemoryResource<Host> for Altered {
    fn name(&self) -> &'static str {
        "altered"
    }
    fn allocate(&self, request: &MemoryRequest<'_, Host>) -> Result<MemoryBlock<Host>> {
        let align = self.align.unwrap_or(request.align);
        self.upstream.allocate(&request.for_bytes((self.bytes)(request.bytes), align))
    }
    fn recycle(&self, block: MemoryBlock<Host>) -> Result<(), MemoryBlock<Host>> {
        self.upstream.recycle(block)
    }
    fn deallocate(&self, block: MemoryBlock<Host>) -> Result<()> {
        self.upstream.deallocate(block)
    }
    fn forget(&self) {}
    fn statistics(&self) -> MemoryStatistics {
        self.upstream.statistics()
    }
}

#[test]
fn an_invalid_alignment_is_always_refused() {
    for align in [0, 3, 48, usize::MAX] {
        let (device, _) = device(HostOptions::new());
        let pool = device.memory_resource(MemoryKind::Device).unwrap();
        drop(device.uninit_array::<u8, _>(1000).unwrap());
        device
            .set_memory_resource(
                MemoryKind::Device,
                Arc::new(Altered { upstream: pool, bytes: |bytes| bytes, align: Some(align) }),
            )
            .unwrap();
        let error = device.uninit_array::<u8, _>(1000).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::InvalidArgument { .. }), "{align}: {error}");
    }
}

#[test]
fn a_resource_that_allocates_too_little_is_an_error() {
    let (device, raw) = device(HostOptions::new());
    let altered = Altered { upstream: device.driver_memory(), bytes: |bytes| bytes / 2, align: None };
    let before = device.set_memory_resource(MemoryKind::Device, Arc::new(altered)).unwrap();
    assert!(before.is_none());
    let error: Error = device.uninit_array::<u8, _>(100).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::InvalidArgument { .. }), "{error}");
    device.flush().unwrap();
    assert_eq!(raw.counters().live_allocations, 0);
    assert_eq!(raw.memory_info().unwrap().free, raw.memory_info().unwrap().total);
}

/// Another process sees the driver's block as a whole, so an exported array has a separate one.
#[test]
fn an_array_to_be_exported_has_a_separate_block() {
    let (device, raw) = device(HostOptions::new().memory(64 * MIB));
    let pooled = device.to_device(&[1u32, 2, 3]).unwrap();
    // SAFETY: refused.
    let error = unsafe { pooled.ipc_handle() }.unwrap_err();
    let is_told = matches!(error.kind(), ErrorKind::InvalidArgument { why } if why.contains("ipc_array"));
    assert!(is_told, "{error}");
    let arrays: Vec<_> = (0..3).map(|_| named("shared", || device.ipc_array::<u32, _>(3)).unwrap()).collect();
    for array in &arrays {
        assert_eq!((array.driver_block(), array.kind()), ((array.address(), 2 * MIB), MemoryKind::Device));
        assert_eq!(array.copy_to_host().unwrap().to_vec(), [0; 3]);
        // SAFETY: refused, by the backend: the host shares no memory.
        let error = unsafe { array.ipc_handle() }.unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Unsupported { .. }), "{error}");
    }
    assert_eq!(device.memory_report().unwrap().holders[0].bytes, 36);
    let (pending, live) = (device.pending_frees().0, raw.counters().live_allocations);
    drop(arrays);
    assert_eq!(device.pending_frees().0, pending + 3, "their memory goes through the queue");
    drop(pooled);
    device.flush().unwrap();
    assert!(
        live >= 4
            && raw.counters().live_allocations == 0
            && device.memory_report().unwrap().holders.is_empty()
    );
    let error = device.ipc_array::<u8, _>(100 * MIB).unwrap_err();
    assert!(error.is_out_of_memory(), "{error}");
    assert!(device.ipc_array::<u8, _>(0).unwrap().is_empty());
    // Idle memory of a pool makes room.
    drop(device.uninit_array::<u8, _>(40 * MIB).unwrap());
    drop(device.ipc_array::<u8, _>(40 * MIB).unwrap());
}

/// A pool of device memory gives the host nothing to write to.
#[test]
fn pools_of_the_library_serve_no_other_kind() {
    let [pinned, plain] = [MemoryKind::Pinned, MemoryKind::Device];
    for (kind, other) in [(pinned, plain), (plain, pinned)] {
        // Asked by the caller for another kind, before its own.
        let (device, _) = device(HostOptions::new());
        let pool = device.memory_resource(kind).unwrap();
        let error = pool.allocate(&device.memory_request(100, other)).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::InvalidArgument { .. }), "{error}");
        let array = device.to_device(&[1u32, 2, 3]).unwrap();
        let mut back = device.pinned_array::<u32, _>(3).unwrap();
        back.copy_from(&array).unwrap();
        assert_eq!(back.view().unwrap().to_vec(), [1, 2, 3]);
        drop((array, back));
        // Set for another kind, with idle memory of its own.
        device.set_memory_resource(other, pool).unwrap();
        let error = match other {
            MemoryKind::Pinned => device.pinned_array::<u32, _>(3).unwrap_err(),
            _ => device.uninit_array::<u32, _>(3).unwrap_err(),
        };
        assert!(matches!(error.kind(), ErrorKind::InvalidArgument { .. }), "{error}");
    }
}

/// Takes memory from a pool that takes its memory from here.
#[derive(Debug)]
struct Ring {
    driver: Arc<dyn MemoryResource<Host>>,
    pool: OnceLock<Weak<Pool<Host>>>,
}

impl MemoryResource<Host> for Ring {
    fn name(&self) -> &'static str {
        "ring"
    }
    fn allocate(&self, request: &MemoryRequest<'_, Host>) -> Result<MemoryBlock<Host>> {
        match self.pool.get().and_then(Weak::upgrade) {
            Some(pool) if pool.statistics().reserved > 0 => pool.allocate(&request.for_bytes(MIB, 256)),
            _ => self.driver.allocate(request),
        }
    }
    fn deallocate(&self, block: MemoryBlock<Host>) -> Result<()> {
        match self.pool.get().and_then(Weak::upgrade) {
            Some(pool) => pool.recycle(block).or_else(|block| self.driver.deallocate(block)),
            None => self.driver.deallocate(block),
        }
    }
    fn forget(&self) {}
    fn statistics(&self) -> MemoryStatistics {
        self.driver.statistics()
    }
}

#[test]
fn a_pool_takes_none_of_its_own_memory_as_a_piece() {
    let (device, raw) = device(HostOptions::new());
    let ring = Arc::new(Ring { driver: device.driver_memory(), pool: OnceLock::new() });
    let pool = Arc::new(Pool::new(ring.clone(), PoolOptions::device(256).chunks(4 * MIB, 4 * MIB)));
    ring.pool.set(Arc::downgrade(&pool)).unwrap();
    device.set_memory_resource(MemoryKind::Device, pool.clone()).unwrap();
    let (first, second) =
        (device.uninit_array::<u8, _>(100).unwrap(), device.uninit_array::<u8, _>(100).unwrap());
    drop(first);
    let error = device.uninit_array::<u8, _>(8 * MIB).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::InvalidArgument { .. }), "{error}");
    assert_eq!((pool.statistics().reserved, pool.statistics().blocks), (4 * MIB, 1));
    drop(second);
    device.flush().unwrap();
    assert_eq!((pool.statistics().reserved, raw.counters().live_allocations), (0, 0));
}

/// Takes memory from another pool, which takes its own from the like. Both pools grow when the first of them goes on.
#[derive(Debug)]
struct Cross {
    driver: Arc<dyn MemoryResource<Host>>,
    other: OnceLock<Weak<Pool<Host>>>,
    both_grow: Arc<Barrier>,
    has_met: AtomicBool,
    refused: Mutex<Vec<Error>>,
}

impl MemoryResource<Host> for Cross {
    fn name(&self) -> &'static str {
        "cross"
    }
    fn allocate(&self, request: &MemoryRequest<'_, Host>) -> Result<MemoryBlock<Host>> {
        if !self.has_met.swap(true, Ordering::Relaxed) {
            self.both_grow.wait();
        }
        let other = self.other.get().and_then(Weak::upgrade).unwrap();
        other.allocate(request).or_else(|error| {
            self.refused.lock().unwrap().push(error);
            self.driver.allocate(request)
        })
    }
    fn deallocate(&self, block: MemoryBlock<Host>) -> Result<()> {
        let block = match self.other.get().and_then(Weak::upgrade) {
            Some(other) => other.recycle(block),
            None => Err(block),
        };
        block.or_else(|block| self.driver.deallocate(block))
    }
    fn forget(&self) {}
    fn statistics(&self) -> MemoryStatistics {
        self.driver.statistics()
    }
}

/// Each thread holds the turn of one pool and wants that of the other.
#[test]
fn two_pools_that_grow_from_each_other_are_an_error() {
    let (device, _) = device(HostOptions::new());
    let both_grow = Arc::new(Barrier::new(2));
    let (resources, pools): (Vec<_>, Vec<_>) = (0..2)
        .map(|_| {
            let cross = Arc::new(Cross {
                driver: device.driver_memory(),
                other: OnceLock::new(),
                both_grow: both_grow.clone(),
                has_met: AtomicBool::new(false),
                refused: Mutex::default(),
            });
            let pool = Pool::new(cross.clone(), PoolOptions::device(256).chunks(4 * MIB, 4 * MIB));
            (cross, Arc::new(pool))
        })
        .unzip();
    for (resource, other) in resources.iter().zip(pools.iter().rev()) {
        resource.other.set(Arc::downgrade(other)).unwrap();
    }
    let (done, is_done) = channel();
    for pool in pools.clone() {
        let (device, done) = (device.clone(), done.clone());
        std::thread::spawn(move || {
            let block = pool.allocate(&device.memory_request(100, MemoryKind::Device));
            done.send(block.and_then(|block| pool.deallocate(block))).unwrap();
        });
    }
    for _ in &pools {
        is_done.recv_timeout(Duration::from_secs(60)).expect("they wait for each other").unwrap();
    }
    let refused: Vec<Error> = resources
        .iter()
        .flat_map(|resource| std::mem::take(&mut *resource.refused.lock().unwrap()))
        .collect();
    assert!(!refused.is_empty());
    for error in refused {
        assert!(matches!(error.kind(), ErrorKind::Unsupported { .. }), "{error}");
    }
}

/// Users can say that the driver has taken everything while other threads use the pool. Memory is lost then; no two blocks share
/// any.
#[test]
fn a_pool_that_forgets_gives_no_memory_twice() {
    let (device, _) = device(HostOptions::new());
    let pool = Pool::new(device.driver_memory(), PoolOptions::device(256).chunks(8 << 10, 8 << 10));
    let held: Mutex<BTreeMap<u64, u64>> = Mutex::default();
    let is_over = AtomicBool::new(false);
    let hold = |block: &MemoryBlock<Host>| {
        let (start, end) = (block.address(), block.address() + block.bytes() as u64);
        let mut held = held.lock().unwrap();
        let before = held.range(..end).next_back().map(|(_, end)| *end);
        assert!(before.is_none_or(|before| before <= start), "given twice");
        held.insert(start, end);
    };
    let give_back = |block: MemoryBlock<Host>| {
        held.lock().unwrap().remove(&block.address());
        pool.recycle(block).unwrap();
    };
    std::thread::scope(|threads| {
        for thread in 0..3 {
            let (device, pool, is_over) = (&device, &pool, &is_over);
            threads.spawn(move || {
                let mut blocks = VecDeque::new();
                for round in thread.. {
                    let request = device.memory_request(256 << (round % 3), MemoryKind::Device);
                    let block = pool.allocate(&request).unwrap();
                    hold(&block);
                    blocks.push_back(block);
                    if blocks.len() > 6 || is_over.load(Ordering::Relaxed) {
                        blocks.pop_front().map(give_back);
                    }
                    if is_over.load(Ordering::Relaxed) {
                        break;
                    }
                }
                blocks.into_iter().for_each(give_back);
            });
        }
        for _ in 0..2000 {
            pool.forget();
            std::thread::yield_now();
        }
        is_over.store(true, Ordering::Relaxed);
    });
    pool.forget();
    assert_eq!((pool.statistics().reserved, pool.statistics().blocks), (0, 0));
}
