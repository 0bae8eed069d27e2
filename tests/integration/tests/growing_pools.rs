//! What happens in a memory resource while a pool grows from it: other threads, and work of the device, may wait for that pool.
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use common::{double, host};
use gpumem_core::{Backend, ErrorKind, MemoryKind, Result};
use gpumem_host::{Host, HostOptions};
use gpumem_integration::calling;
use gpumem_kernel::config_for_items;
use gpumem_runtime::{
    Chunks, Device,
    memory::{MemoryBlock, MemoryRequest, MemoryResource, MemoryStatistics, Pool, PoolOptions},
    trace::{RecorderOptions, ReplayOptions},
};
use ndarray::Array1;
use std::{
    fmt,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

type Act = Box<dyn FnOnce() + Send>;

/// Does something once, when it is asked for memory.
struct Acting<B: Backend>(Arc<dyn MemoryResource<B>>, Mutex<Option<Act>>);

impl<B: Backend> fmt::Debug for Acting<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Acting")
    }
}

impl<B: Backend> MemoryResource<B> for Acting<B> {
    fn name(&self) -> &'static str {
        "acting"
    }

    fn allocate(&self, request: &MemoryRequest<'_, B>) -> Result<MemoryBlock<B>> {
        let act = self.1.lock().unwrap().take();
        act.into_iter().for_each(|act| act());
        self.0.allocate(request)
    }

    fn deallocate(&self, block: MemoryBlock<B>) -> Result<()> {
        self.0.deallocate(block)
    }

    fn forget(&self) {
        self.0.forget();
    }

    fn statistics(&self) -> MemoryStatistics {
        self.0.statistics()
    }
}

/// Runs `body` on a thread of its own, which must end.
fn ends(body: impl FnOnce() + Send + 'static) {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        body();
        sender.send(()).unwrap();
    });
    receiver.recv_timeout(Duration::from_secs(60)).unwrap();
}

/// Does `act` while the pool of a kind grows. Whether an array is made then.
fn while_growing<B: Backend>(device: &Device<B>, act: impl FnOnce() + Send + 'static) {
    let has_run = Arc::new(AtomicBool::new(false));
    let noted = has_run.clone();
    let act: Act = Box::new(move || {
        act();
        noted.store(true, Ordering::SeqCst);
    });
    let acting = Arc::new(Acting(device.driver_memory(), Mutex::new(Some(act))));
    let pool = Arc::new(Pool::new(acting, device.pool_options(MemoryKind::Device)));
    device.set_memory_resource(MemoryKind::Device, pool).unwrap();
    drop(device.device_array::<u32, _>(100).unwrap());
    assert!(has_run.load(Ordering::SeqCst));
}

fn is_refused<T>(result: Result<T>) -> bool {
    matches!(result.map(drop), Err(error) if matches!(error.kind(), ErrorKind::Unsupported { .. }))
}

#[test]
fn a_wait_for_work_that_takes_memory_is_refused() {
    ends(|| {
        let (device, _raw) = double(HostOptions::new());
        let stream = device.stream().unwrap();
        let (in_use, taking) = (device.clone(), device.clone());
        let waiting = stream.clone();
        while_growing(&device, move || {
            waiting.add_callback(move |_| drop(taking.uninit_array::<u32, _>(10))).unwrap();
            assert!(is_refused(waiting.synchronize()));
            assert!(is_refused(in_use.synchronize()));
            assert!(is_refused(in_use.flush()));
            assert!(is_refused(waiting.record_event().unwrap().synchronize()));
        });
        stream.synchronize().unwrap();
        assert_eq!(device.take_errors(), []);
    });
}

#[test]
fn a_callback_takes_memory_while_another_thread_grows_the_pool() {
    ends(|| {
        let (device, _raw) = host(HostOptions::new());
        let stream = device.stream().unwrap();
        let taking = device.clone();
        let (sender, receiver) = mpsc::channel();
        while_growing(&device, move || {
            stream.add_callback(move |_| sender.send(taking.uninit_array::<u32, _>(10)).unwrap()).unwrap();
            drop(receiver.recv().unwrap().unwrap());
        });
    });
}

/// A device whose pool grows from a resource that the test can make act.
fn acting(options: impl FnOnce(PoolOptions) -> PoolOptions) -> (Device<Host>, Arc<Acting<Host>>) {
    let (device, _raw) = host(HostOptions::new());
    let acting = Arc::new(Acting(device.driver_memory(), Mutex::new(None)));
    let pool = Pool::new(acting.clone(), options(device.pool_options(MemoryKind::Device)));
    device.set_memory_resource(MemoryKind::Device, Arc::new(pool)).unwrap();
    (device, acting)
}

#[test]
fn a_callback_that_grows_the_pool_does_not_grow_it_within_that_growth() {
    ends(|| {
        let (device, upstream) = acting(|options| options);
        let (stream, taking) = (device.stream().unwrap(), device.clone());
        let (sender, receiver) = mpsc::channel();
        let again = upstream.clone();
        *upstream.1.lock().unwrap() = Some(Box::new(move || {
            let (inner, sent) = (taking.clone(), sender.clone());
            let callback = move |_| {
                let act: Act = Box::new(move || {
                    sent.send(is_refused(inner.uninit_array::<u32, _>(10))).unwrap();
                });
                *again.1.lock().unwrap() = Some(act);
                sender.send(taking.uninit_array::<u32, _>(10).is_ok()).unwrap();
            };
            stream.add_callback(callback).unwrap();
            assert_eq!([(); 2].map(|()| receiver.recv().unwrap()), [true; 2]);
        }));
        drop(device.device_array::<u32, _>(100).unwrap());
    });
}

#[test]
fn a_pool_that_two_threads_grow_keeps_its_limit() {
    const LIMIT: usize = 1 << 20;
    ends(|| {
        let (device, upstream) = acting(|options| options.chunks(LIMIT, LIMIT).max_size(LIMIT));
        let (stream, taking) = (device.stream().unwrap(), device.clone());
        let (sender, receiver) = mpsc::channel();
        *upstream.1.lock().unwrap() = Some(Box::new(move || {
            stream.add_callback(move |_| sender.send(taking.uninit_array::<u32, _>(10)).unwrap()).unwrap();
            drop(receiver.recv().unwrap().unwrap());
        }));
        // Out of the chunk that the callback has taken.
        drop(device.device_array::<u32, _>(100).unwrap());
        let statistics = device.memory_resource(MemoryKind::Device).unwrap().statistics();
        assert_eq!(statistics.peak_reserved, LIMIT);
    });
}

/// What a thread asked for more than it needs does not fit beside the chunk of the other one, and what it needs does.
#[test]
fn a_thread_takes_less_where_another_one_has_grown_the_pool() {
    const MIB: usize = 1 << 20;
    ends(|| {
        let (device, upstream) = acting(|options| options.chunks(8 * MIB, 8 * MIB).max_size(12 * MIB));
        let (stream, taking) = (device.stream().unwrap(), device.clone());
        let (sender, receiver) = mpsc::channel();
        let (kept, keeps) = mpsc::channel();
        *upstream.1.lock().unwrap() = Some(Box::new(move || {
            let take = move |_| sender.send(taking.uninit_array::<u8, _>(8 * MIB)).unwrap();
            stream.add_callback(take).unwrap();
            kept.send(receiver.recv().unwrap().unwrap()).unwrap();
        }));
        drop(device.device_array::<u8, _>(3 * MIB).unwrap());
        drop(keeps.recv().unwrap());
        let statistics = device.memory_resource(MemoryKind::Device).unwrap().statistics();
        assert!(statistics.peak_reserved <= 12 * MIB, "{}", statistics.peak_reserved);
    });
}

#[test]
fn calls_of_several_threads_are_refused() {
    ends(|| {
        let (device, _raw) = host(HostOptions::new());
        let recording = device.record_memory(RecorderOptions::default()).unwrap();
        drop(device.uninit_array::<u8, _>(1000).unwrap());
        thread::scope(|scope| {
            scope.spawn(|| drop(device.uninit_array::<u8, _>(1000).unwrap())).join().unwrap()
        });
        let trace = recording.finish();
        let using = device.clone();
        while_growing(&device, move || {
            let replayed =
                using.replay_memory(&trace, ReplayOptions::default(), |kind| using.memory_resource(kind));
            assert!(is_refused(replayed));
            let (input, mut output) = (Array1::<u32>::zeros(1 << 20), Array1::<u32>::zeros(1 << 20));
            let mapped =
                using.map_chunks(&input, &mut output, Chunks::rows(1 << 18), |_, _, array| Ok(array));
            assert!(is_refused(mapped));
        });
    });
}

#[test]
fn memory_in_flight_below_two_pools_is_waited_for_outside_of_the_growth() {
    for takes_memory in [false, true] {
        ends(move || {
            let (device, _raw) = host(HostOptions::new().brief_bytes(0));
            let kind = MemoryKind::Pinned;
            let of = |bytes| {
                let mut options = device.pool_options(kind);
                (options.smallest_chunk, options.largest_chunk) = (bytes, bytes);
                options
            };
            let inner = Pool::new(device.driver_memory(), of(1 << 20).max_size(1 << 20));
            let inner: Arc<dyn MemoryResource<_>> = Arc::new(inner);
            device.set_memory_resource(kind, inner.clone()).unwrap();
            let stream = device.stream().unwrap();
            let pinned = device.pinned_array::<u8, _>(1 << 20).unwrap();
            let (begin, begun) = mpsc::channel();
            let (begun, using) = (Mutex::new(begun), device.clone());
            let kernel = calling(move || {
                begun.lock().unwrap().recv().unwrap();
                // The other thread gets as far as the wait for this kernel.
                thread::sleep(Duration::from_millis(300));
                if takes_memory {
                    drop(using.pinned_array::<u8, _>(1000));
                }
            });
            kernel.load(&device).unwrap().launch(&stream, &config_for_items([1; 3], [1; 3]), (1,)).unwrap();
            // All of the inner pool is in flight, after the kernel.
            let copied = stream.to_device(&pinned).unwrap();
            drop(pinned);
            device.set_memory_resource(kind, Arc::new(Pool::new(inner, of(1 << 18)))).unwrap();
            begin.send(()).unwrap();
            drop(device.pinned_array::<u8, _>(1 << 18).unwrap());
            stream.synchronize().unwrap();
            drop(copied);
        });
    }
}
