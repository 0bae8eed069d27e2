//! The engine for GPUs over the double of NCCL: code of the user that it runs may call it again.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod common;
#[path = "../../../integration/tests/common/subscriber.rs"]
mod subscriber;

use common::*;
use gpumem_collectives::{CollectiveCause, Communicator, InPlace, Options, Sum};
use gpumem_core::{MemoryKind, Result};
use gpumem_runtime::memory::{
    FailureInjectingResource, FailurePlan, MemoryBlock, MemoryRequest, MemoryResource, MemoryStatistics,
};
use nccl_double::Fault;
use std::{
    cell::Cell,
    fmt,
    sync::{Arc, Mutex, mpsc},
    thread,
    time::Duration,
};
use subscriber::{OnEvent, panics};

/// A rank whose calls are compared, which takes memory.
fn checked() -> Arc<Comm> {
    let options = Options::new().check(true).timeout(Duration::from_secs(20));
    Arc::new(Communicator::all_with(&[concurrent()], &options).unwrap().remove(0))
}

/// Fails instead of hanging: a thread that waits for itself comes to no deadline.
fn on_a_thread<R: Send + 'static>(run: impl FnOnce() -> R + Send + 'static) -> R {
    let (ended, wait) = mpsc::channel();
    thread::spawn(move || drop(ended.send(run())));
    wait.recv_timeout(Duration::from_secs(60)).expect("the thread ends")
}

#[test]
fn a_hook_that_takes_a_registration_back_during_a_comparison() {
    let _alone = alone();
    let asked = on_a_thread(|| {
        let comm = checked();
        let device = comm.device().clone();
        let stream = device.stream().unwrap();
        let mut array = stream.to_device(&[1_i32; 4]).unwrap();
        let cached = stream.to_device(&[1_i32; 1000]).unwrap();
        comm.register(&cached).unwrap();
        let (asked, told) = mpsc::channel();
        let (cache, of) = (Mutex::new(Some(cached)), comm.clone());
        let hook = device.on_exhaustion(move |_| {
            let Some(cached) = cache.lock().unwrap().take() else { return false };
            asked.send(of.deregister(&cached)).unwrap();
            true
        });
        let pool = device.memory_resource(MemoryKind::Device).unwrap();
        let failing = FailureInjectingResource::new(pool, FailurePlan::for_sizes(100..=100_000));
        device.set_memory_resource(MemoryKind::Device, Arc::new(failing)).unwrap();
        // The plan fails the comparison's memory for good.
        comm.on(&stream).all_reduce(InPlace, &mut array, Sum).unwrap_err();
        drop(hook.unwrap());
        told.try_iter().collect::<Vec<_>>()
    });
    assert!(matches!(*asked, [Ok(())]), "{asked:?}");
}

type Act = Arc<dyn Fn() -> Result<()> + Send + Sync>;

/// Calls an operation when it gets memory, and when memory comes back.
struct Calling {
    upstream: Arc<dyn MemoryResource<B>>,
    act: Mutex<Option<Act>>,
    told: mpsc::Sender<(&'static str, Result<()>)>,
}

thread_local! {
    static IS_INSIDE: Cell<bool> = const { Cell::new(false) };
}

impl fmt::Debug for Calling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Calling")
    }
}

impl Calling {
    /// Serves the device's memory.
    fn serve(device: &Device, act: Act) -> (Arc<Self>, mpsc::Receiver<(&'static str, Result<()>)>) {
        let (told, all) = mpsc::channel();
        let upstream = device.memory_resource(MemoryKind::Device).unwrap();
        let calling = Arc::new(Self { upstream, act: Mutex::new(Some(act)), told });
        device.set_memory_resource(MemoryKind::Device, calling.clone()).unwrap();
        (calling, all)
    }

    fn call(&self, when: &'static str) {
        let act = self.act.lock().unwrap().clone();
        if let Some(act) = act
            && !IS_INSIDE.replace(true)
        {
            let _ = self.told.send((when, act()));
            IS_INSIDE.set(false);
        }
    }
}

impl MemoryResource<B> for Calling {
    fn name(&self) -> &'static str {
        "calling"
    }
    fn allocate(&self, request: &MemoryRequest<'_, B>) -> Result<MemoryBlock<B>> {
        self.call("allocate");
        self.upstream.allocate(request)
    }
    fn recycle(&self, block: MemoryBlock<B>) -> std::result::Result<(), MemoryBlock<B>> {
        self.call("recycle");
        self.upstream.recycle(block)
    }
    fn deallocate(&self, block: MemoryBlock<B>) -> Result<()> {
        self.upstream.deallocate(block)
    }
    fn forget(&self) {
        self.upstream.forget();
    }
    fn statistics(&self) -> MemoryStatistics {
        self.upstream.statistics()
    }
}

#[test]
fn a_resource_that_calls_operations_serves_comparisons() {
    let _alone = alone();
    let told = on_a_thread(|| {
        let comm = checked();
        let device = comm.device().clone();
        let (stream, other) = (device.stream().unwrap(), device.stream().unwrap());
        let (one, two) =
            (&mut stream.to_device(&[1_i32; 4]).unwrap(), &mut stream.to_device(&[2_i32]).unwrap());
        let own = comm.clone();
        let (calling, told) = Calling::serve(&device, Arc::new(move || own.on(&other).barrier()));
        comm.on(&stream).all_reduce(InPlace, one, Sum).unwrap();
        // The blocks of several operations are compared apart, with memory that is as long as they are many.
        for count in [1, 2, 3] {
            let (source, rows) = (stream.to_device(&[5_i32; 3]).unwrap(), [3]);
            let mut all: Vec<_> = (0..count).map(|_| stream.to_device(&[0_i32; 3]).unwrap()).collect();
            comm.group(&stream, |group| {
                group.all_reduce(InPlace, two, Sum)?;
                all.iter_mut().try_for_each(|to| group.all_to_all_v((&source, &rows), (to, &rows)))
            })
            .unwrap();
            assert_eq!(all[0].copy_to_host().unwrap().to_vec(), [5; 3]);
        }
        stream.synchronize().unwrap();
        *calling.act.lock().unwrap() = None;
        told.try_iter().collect::<Vec<_>>()
    });
    for when in ["allocate", "recycle"] {
        assert!(told.iter().any(|(at, _)| *at == when), "{told:?}");
    }
    // The first barriers find no memory to compare with inside of the resource.
    assert!(told.iter().any(|(_, called)| called.is_ok()), "{told:?}");
}

/// The source fails between the first look at it and the call, as memory for the comparison is made.
#[test]
fn a_rank_that_does_not_make_the_call_that_all_agreed_on_calls_no_later_one() {
    let _alone = alone();
    let devices = [concurrent(), concurrent()];
    let options = Options::new().timeout(Duration::from_secs(2)).concurrent(true);
    let other = Communicator::all_with(&devices, &options).unwrap();
    let all = Communicator::all_with(&devices, &options.check(true)).unwrap();
    let streams = devices.each_ref().map(|device| device.stream().unwrap());
    let mut source = streams[0].to_device(&[1_i32]).unwrap();
    let mut sums = streams.each_ref().map(|stream| stream.to_device(&[2_i32]).unwrap());
    // The other rank does not come.
    other[0].on(&streams[0]).all_reduce(InPlace, &mut source, Sum).unwrap();
    let act = move || {
        other[0].abort();
        Ok(())
    };
    let (_calling, told) = Calling::serve(&devices[0], Arc::new(act));
    let [first, second] = &mut sums;
    thread::scope(|scope| {
        scope.spawn(|| all[1].on(&streams[1]).all_reduce(InPlace, second, Sum));
        let refused = all[0].on(&streams[0]).all_reduce(&source, first, Sum).unwrap_err();
        assert!(refused.is_poisoned(), "{refused}");
        let failure = failed(all[0].on(&streams[0]).barrier());
        assert!(matches!(failure.cause, CollectiveCause::PeerLost { rank: 0, .. }), "{failure}");
    });
    assert_eq!(told.recv().unwrap().0, "allocate");
    sums[1].copy_to_host().unwrap_err();
}

#[test]
fn what_comparisons_need_is_kept_for_the_next_ones() {
    let _alone = alone();
    let comm = checked();
    let stream = comm.device().stream().unwrap();
    let mut array = stream.to_device(&[1_i32; 4]).unwrap();
    comm.on(&stream).all_reduce(InPlace, &mut array, Sum).unwrap();
    let none = comm.device().memory_resource(MemoryKind::Device).unwrap();
    let none = Arc::new(FailureInjectingResource::new(none, FailurePlan::always()));
    comm.device().set_memory_resource(MemoryKind::Device, none).unwrap();
    for _ in 0..3 {
        comm.on(&stream).all_reduce(InPlace, &mut array, Sum).unwrap();
    }
    assert_eq!(array.copy_to_host().unwrap().to_vec(), [1; 4]);
}

#[test]
fn a_subscriber_that_panics_keeps_no_communicator_from_its_end() {
    let _alone = alone();
    tracing::subscriber::set_global_default(OnEvent(panics)).unwrap();
    let device = concurrent();
    let comm = Communicator::all_with(std::slice::from_ref(&device), &Options::new()).unwrap().remove(0);
    let blocks = || device.memory_resource(MemoryKind::Device).unwrap().statistics().blocks;
    let array = device.to_device(&vec![1_i32; 1 << 20]).unwrap();
    comm.register(&array).unwrap();
    let fault = plant(Fault::FailingDeregister);
    let held = blocks();
    drop(array);
    comm.destroy().unwrap();
    drop(fault);
    assert!(blocks() < held, "the end of the communicator takes the memory back");
}
