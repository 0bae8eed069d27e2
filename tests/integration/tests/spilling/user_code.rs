//! Arrays that leave the device, beside other threads and code of the user that use them at the worst moment, and beside failed work.

use super::{
    arrays,
    common::{double, host, subscriber::OnEvent},
    is_right, limit, manager, options,
};
use gpumem_core::{Backend, ErrorKind, MemoryKind, Result};
use gpumem_host::{Host, HostOptions};
use gpumem_kernel::{KernelDef, SliceMut, WorkItemIds, config_for_items};
use gpumem_runtime::{
    Device, SpillOptions,
    memory::{LimitingResource, MemoryBlock, MemoryRequest, MemoryResource, MemoryStatistics},
};
use ndarray::{Array1, s};
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

/// Does something once, when it takes memory back.
struct Acting {
    upstream: Arc<dyn MemoryResource<Host>>,
    act: Arc<Mutex<Option<Act>>>,
    /// The alignment of each request.
    alignments: Arc<Mutex<Vec<usize>>>,
}

impl fmt::Debug for Acting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Acting")
    }
}

impl MemoryResource<Host> for Acting {
    fn name(&self) -> &'static str {
        "acting"
    }

    fn allocate(&self, request: &MemoryRequest<'_, Host>) -> Result<MemoryBlock<Host>> {
        self.alignments.lock().unwrap().push(request.align);
        self.upstream.allocate(request)
    }

    fn recycle(&self, block: MemoryBlock<Host>) -> Result<(), MemoryBlock<Host>> {
        let act = self.act.lock().unwrap().take();
        act.into_iter().for_each(|act| act());
        self.upstream.recycle(block)
    }

    fn deallocate(&self, block: MemoryBlock<Host>) -> Result<()> {
        self.upstream.deallocate(block)
    }

    fn forget(&self) {
        self.upstream.forget();
    }

    fn statistics(&self) -> MemoryStatistics {
        self.upstream.statistics()
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

/// Ends a loop of another thread, also where this one panics.
struct EndOnDrop<'a>(&'a AtomicBool);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The order of the last uses is made while they change.
#[test]
fn arrays_are_put_in_order_while_they_are_used() {
    const COUNT: usize = 2000;
    let (device, _raw) = host(HostOptions::new());
    let (spilling, stream) = (manager(&device, SpillOptions::new()), device.stream().unwrap());
    let array =
        |_| spilling.add(device.device_array::<u8, _>(16).unwrap()).map_err(|(_, error)| error).unwrap();
    let all: Vec<_> = (0..COUNT).map(array).collect();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let stream = device.stream().unwrap();
            let numbers = (0_usize..).map(|number| number.wrapping_mul(7919) % COUNT);
            for number in numbers.take_while(|_| !is_over.load(Ordering::Relaxed)) {
                drop(all[number].get(&stream).unwrap());
            }
        });
        let _end = EndOnDrop(&is_over);
        (0..300).for_each(|_| assert_eq!(spilling.wake(&stream).unwrap(), 0));
    });
}

/// The copy of an array that is written goes back to a resource of the user's, which wakes the arrays.
#[test]
fn a_resource_uses_the_array_whose_copy_it_takes_back() {
    ends(|| {
        let (device, _raw) = host(HostOptions::new());
        let act = Arc::new(Mutex::new(None::<Act>));
        let upstream = device.memory_resource(MemoryKind::Pinned).unwrap();
        let acting = Acting { upstream, act: act.clone(), alignments: Arc::default() };
        device.set_memory_resource(MemoryKind::Pinned, Arc::new(acting)).unwrap();
        let (spilling, stream) = (manager(&device, SpillOptions::new()), device.stream().unwrap());
        let array = device.to_device(&vec![1_u32; 1000]).unwrap();
        let mut array = spilling.add(array).map_err(|(_, error)| error).unwrap();
        assert_eq!(spilling.sleep().unwrap().evicted, 4000);
        let (in_resource, of_resource) = (spilling.clone(), stream.clone());
        let wake = move || assert_eq!(in_resource.wake(&of_resource).unwrap(), 0);
        *act.lock().unwrap() = Some(Box::new(wake));
        array.get_mut(&stream).unwrap().fill(3).unwrap();
        assert!(act.lock().unwrap().is_none());
        assert_eq!(device.take_errors(), []);
        assert_eq!(array.get(&stream).unwrap().get(999).unwrap(), 3);
    });
}

/// Other threads that look whether the array can leave are no reason to refuse it.
#[test]
fn a_callback_uses_an_array_that_stays_on_the_device() {
    ends(|| {
        let (device, _raw) = host(HostOptions::new());
        let (spilling, stream) = (manager(&device, SpillOptions::new()), device.stream().unwrap());
        let array = spilling.add(device.to_device(&[1_u32, 2, 3]).unwrap()).map_err(|(_, error)| error);
        let array = Arc::new(array.unwrap());
        let _held = array.get(&stream).unwrap();
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    assert!(!array.evict().unwrap());
                }
            });
            let _end = EndOnDrop(&is_over);
            let (in_callback, of_callback) = (array.clone(), stream.clone());
            let (sender, receiver) = mpsc::channel();
            let uses = move || (0..2000).try_for_each(|_| in_callback.get(&of_callback).map(drop));
            stream.add_callback(move |_| sender.send(uses()).unwrap()).unwrap();
            assert_eq!(receiver.recv().unwrap(), Ok(()));
        });
    });
}

/// An array with a part of its memory is as good as the part, whatever the rest is.
fn uses_a_part<B: Backend>(device: &Device<B>, seed: u64) {
    const LEN: usize = 1000;
    let (spilling, stream) = (manager(device, SpillOptions::new()), device.stream().unwrap());
    // SAFETY: each work-item uses its own element, or fails.
    let declaration = unsafe { KernelDef::<(SliceMut<u8>,)>::new("fails") };
    let body = |ids: &WorkItemIds<'_>, (y,): &(SliceMut<u8>,)| y.set(1 << 30, ids.global_id(0) as u8);
    let kernel = declaration.host_loop(body).load(device).unwrap();
    let numbers: Array1<u32> = (0..LEN as u32).collect();
    let mut bytes: Vec<u8> = numbers.iter().copied().flat_map(u32::to_ne_bytes).collect();
    bytes.resize(8 * LEN, 0);
    let mut bytes = device.to_device(&bytes).unwrap();
    let mut rest = bytes.slice_mut(s![4 * LEN..]).unwrap();
    kernel.launch(&stream, &config_for_items([4 * LEN, 1, 1], [128, 1, 1]), (&mut rest,)).unwrap();
    drop(rest);
    let array = bytes.into_array::<u32, _>(LEN).map_err(|(_, error)| error).unwrap();
    let array = spilling.add(array).map_err(|(_, error)| error).unwrap();
    assert!(array.evict().unwrap());
    assert_eq!(spilling.report().host_bytes, 4 * LEN);
    assert_eq!(array.get(&stream).unwrap().copy_to_host().unwrap(), numbers, "seed {seed}");
    assert!(stream.synchronize().is_err());
    assert!(array.evict().unwrap());
    assert_eq!(array.get(&stream).unwrap().copy_to_host().unwrap(), numbers, "seed {seed}");
    let _ = device.synchronize();
    device.take_errors();
}

#[test]
fn failed_work_beside_an_array_does_not_concern_it() {
    for seed in 0..10 {
        uses_a_part(&host(HostOptions::new().adversarial(seed)).0, seed);
        uses_a_part(&double(HostOptions::new().adversarial(seed)).0, seed);
    }
}

#[test]
fn memory_is_aligned_as_before() {
    let (device, _raw) = host(HostOptions::new());
    let alignments = Arc::<Mutex<Vec<usize>>>::default();
    let upstream = device.memory_resource(MemoryKind::Device).unwrap();
    let acting = Acting { upstream, act: Arc::default(), alignments: alignments.clone() };
    device.set_memory_resource(MemoryKind::Device, Arc::new(acting)).unwrap();
    let (spilling, stream) = (manager(&device, SpillOptions::new()), device.stream().unwrap());
    let array = spilling.add(device.to_device(&[1_u8; 100]).unwrap()).map_err(|(_, error)| error).unwrap();
    assert!(array.evict().unwrap());
    drop(array.get(&stream).unwrap());
    let alignments = alignments.lock().unwrap();
    assert!(matches!(alignments[..], [before, after] if before == after), "{alignments:?}");
}

/// One array cannot leave, and another one comes back while that is found out: then one of the two leaves.
#[test]
fn an_array_that_has_come_back_meanwhile_makes_room() {
    const LEN: usize = 4096;
    let (device, _raw) = host(HostOptions::new());
    let pool = device.memory_resource(MemoryKind::Device).unwrap();
    let limit = Arc::new(LimitingResource::new(pool, 2 * LEN));
    device.set_memory_resource(MemoryKind::Device, limit).unwrap();
    let spilling = manager(&device, SpillOptions::new().host_bytes(LEN));
    let array = || spilling.add(device.to_device(&vec![1_u8; LEN]).unwrap()).map_err(|(_, error)| error);
    let moving = array().unwrap();
    assert!(moving.evict().unwrap());
    // The other one's copy has all the room on the host.
    let other = array().unwrap();
    let plain = device.device_array::<u8, _>(LEN).unwrap();
    let stream = device.stream().unwrap();
    let swap = move || {
        drop(plain);
        drop(moving.get(&stream).unwrap());
        moving
    };
    let swap = Mutex::new(Some(swap));
    let (sender, receiver) = mpsc::channel();
    let on_event = OnEvent(move || {
        // As another thread, which the subscriber waits for.
        let swap = swap.lock().unwrap().take();
        if let Some(swap) = swap {
            sender.send(thread::spawn(swap).join().unwrap()).unwrap();
        }
    });
    let made = tracing::subscriber::with_default(on_event, || device.device_array::<u8, _>(LEN));
    let moving = receiver.recv().unwrap();
    assert!(made.is_ok(), "{made:?}");
    assert_ne!(other.is_resident().unwrap(), moving.is_resident().unwrap());
}

/// A hook that uses the array that moves gets an error, and does not wait for it.
#[test]
fn a_hook_does_not_wait_for_the_array_that_moves() {
    ends(|| {
        let (device, _raw) = host(options());
        let _before = limit(&device, 1);
        let (spilling, stream) = (manager(&device, SpillOptions::new()), device.stream().unwrap());
        let all = Arc::new(arrays(&device, &spilling, 2));
        let held = all[1].get(&stream).unwrap();
        let (sender, receiver) = mpsc::channel();
        let (in_hook, of_hook) = (all.clone(), stream.clone());
        let hook = device.on_exhaustion(move |_| {
            let found = in_hook[0].get(&of_hook).map(drop);
            let _ = sender.send(found.map_err(|error| error.kind().clone()));
            false
        });
        let hook = hook.unwrap();
        let error = all[0].get(&stream).unwrap_err();
        assert!(error.is_out_of_memory(), "{error}");
        let found = receiver.recv_timeout(Duration::from_secs(60)).unwrap();
        assert!(matches!(found, Err(ErrorKind::Unsupported { .. })), "{found:?}");
        drop((hook, held));
        is_right(&all[0], &stream, 0, 0);
    });
}

/// What is there is used. What comes back needs memory, and other arrays leave for it: no hook is asked here.
#[test]
fn deferred_cleanup_leaves_arrays_where_they_are() {
    let (device, _raw) = host(options());
    let before = limit(&device, 2);
    let (spilling, stream) = (manager(&device, SpillOptions::new()), device.stream().unwrap());
    let all = arrays(&device, &spilling, 3);
    assert!(!all[0].is_resident().unwrap());
    let deferred = device.defer_cleanup();
    is_right(&all[2], &stream, 2, 0);
    let error = all[0].get(&stream).unwrap_err();
    assert!(error.is_out_of_memory(), "{error}");
    assert_eq!([0, 1, 2].map(|at: usize| all[at].is_resident().unwrap()), [false, true, true]);
    // With room, it comes back here as well.
    device.set_memory_resource(MemoryKind::Device, before).unwrap();
    is_right(&all[0], &stream, 0, 0);
    drop(deferred);
    for (number, array) in all.iter().enumerate() {
        is_right(array, &stream, number, 0);
    }
}

#[test]
fn callbacks_use_what_is_there() {
    let (device, _raw) = host(options());
    let (spilling, stream) = (manager(&device, SpillOptions::new()), device.stream().unwrap());
    let all = Arc::new(arrays(&device, &spilling, 2));
    assert!(all[1].evict().unwrap());
    let (sender, receiver) = mpsc::channel();
    let (in_callback, of_callback) = (all.clone(), stream.clone());
    stream
        .add_callback(move |_| {
            let kinds =
                [0, 1].map(|at| in_callback[at].get(&of_callback).map(|_| ()).map_err(|e| e.kind().clone()));
            sender.send(kinds).unwrap();
        })
        .unwrap();
    stream.synchronize().unwrap();
    let [there, gone] = receiver.recv_timeout(Duration::from_secs(60)).unwrap();
    assert_eq!(there, Ok(()));
    assert!(matches!(gone, Err(ErrorKind::BlockingInCallback)), "{gone:?}");
}
