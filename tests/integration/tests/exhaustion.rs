//! Hooks that are asked for memory before a request fails.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod common;

use common::{double, host, is_clean};
use gpumem_core::{Backend, Error, ErrorKind, MemoryKind, Result};
use gpumem_host::HostOptions;
use gpumem_kernel::{ConstantArray, In, Own, config_for_items};
use gpumem_runtime::{
    Device, DeviceArray,
    memory::{Exhausted, LimitingResource, ReclaimHook, named},
};
use host_double::{Double, DoubleOptions};
use ndarray::{Array1, Ix1};
use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    thread,
    time::{Duration, Instant},
};

const MEMORY: usize = 8 << 20;
const MIB: usize = 1 << 20;

type Cache<B> = Arc<Mutex<Vec<DeviceArray<u8, Ix1, B>>>>;

fn bytes<B: Backend>(device: &Device<B>, mib: usize) -> Result<DeviceArray<u8, Ix1, B>> {
    device.device_array(mib * MIB)
}

/// Arrays of two MiB each that fill the memory but for the rest that the pool cannot use.
fn filled<B: Backend>(device: &Device<B>) -> Cache<B> {
    let cache: Vec<_> = std::iter::from_fn(|| bytes(device, 2).ok()).collect();
    assert!(cache.len() >= 3, "{}", cache.len());
    Arc::new(Mutex::new(cache))
}

/// Counts its calls, and says `again`.
fn counting<B: Backend>(device: &Device<B>, again: bool) -> (ReclaimHook, Arc<AtomicUsize>) {
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = calls.clone();
    let count = move |_: &Exhausted| {
        counted.fetch_add(1, Ordering::SeqCst);
        again
    };
    (device.on_exhaustion(count).unwrap(), calls)
}

/// A hook that drops all of a cache, and counts its calls.
fn clearing<B: Backend>(device: &Device<B>, cache: &Cache<B>) -> (ReclaimHook, Arc<AtomicUsize>) {
    let (cache, calls) = (cache.clone(), Arc::new(AtomicUsize::new(0)));
    let counted = calls.clone();
    let clear = move |_: &Exhausted| {
        counted.fetch_add(1, Ordering::SeqCst);
        let dropped = std::mem::take(&mut *cache.lock().unwrap());
        !dropped.is_empty()
    };
    (device.on_exhaustion(clear).unwrap(), calls)
}

fn calls(count: &AtomicUsize) -> usize {
    count.load(Ordering::SeqCst)
}

fn is_out<T>(result: Result<T>) -> bool {
    matches!(result, Err(error) if error.is_out_of_memory())
}

/// With the pool, with the driver alone, whose blocks go through the deferred queue, and below a limit.
fn devices() -> Vec<(Device<Double>, host_double::DoubleDevice)> {
    let device = || double(HostOptions::new().adversarial(5).memory(MEMORY));
    let (pool, driver, limited) = (device(), device(), device());
    driver.0.set_memory_resource(MemoryKind::Device, driver.0.driver_memory()).unwrap();
    let limit = LimitingResource::new(limited.0.memory_resource(MemoryKind::Device).unwrap(), 7 * MIB);
    limited.0.set_memory_resource(MemoryKind::Device, Arc::new(limit)).unwrap();
    vec![pool, driver, limited]
}

#[test]
fn a_hook_that_drops_a_cache_is_asked_once_and_the_request_is_served() {
    for (device, _raw) in devices() {
        let cache = filled(&device);
        let (hook, asked) = clearing(&device, &cache);
        let array = bytes(&device, 2).unwrap();
        assert_eq!(calls(&asked), 1);
        // Requests that are served need no hook.
        drop(bytes(&device, 1).unwrap());
        assert_eq!(calls(&asked), 1);
        // There is nothing to drop any more.
        assert!(is_out(bytes(&device, 64)));
        assert_eq!(calls(&asked), 2);
        drop((hook, array));
        // Without it, the library waits and joins what is left.
        drop(bytes(&device, 4).unwrap());
        assert!(is_out(bytes(&device, 64)));
        assert_eq!((calls(&asked), device.take_errors()), (2, vec![]));
    }
}

/// Work that uses the cache runs late; the new owner of the memory waits for it on the device.
#[test]
fn memory_that_a_hook_drops_may_be_in_use() {
    for seed in 0..20 {
        let (device, raw) = double(HostOptions::new().adversarial(seed).memory(MEMORY));
        let cache = filled(&device);
        let stream = device.stream().unwrap();
        let mut copies = Vec::new();
        for (number, array) in cache.lock().unwrap().iter_mut().enumerate() {
            stream.fill(array, number as u8).unwrap();
            copies.push(stream.copy_to_host(array).unwrap());
        }
        let (hook, asked) = clearing(&device, &cache);
        let (other, value) = (device.stream().unwrap(), 77u8);
        let array = other.to_device(&Array1::from_elem(2 * MIB, value)).unwrap();
        assert_eq!(calls(&asked), 1);
        for (number, copy) in copies.iter().enumerate() {
            assert!(copy.view().unwrap().iter().all(|byte| *byte == number as u8), "seed {seed}, {number}");
        }
        assert_eq!(array.copy_to_host().unwrap(), Array1::from_elem(2 * MIB, value));
        drop((hook, array, copies));
        is_clean(&device, raw.host());
    }
}

#[test]
fn a_hook_that_always_says_true_is_asked_sixteen_times() {
    for (device, _raw) in devices() {
        let (_one, first) = counting(&device, true);
        let error = bytes(&device, 64).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::OutOfMemory { pressure: Some(_), .. }), "{error}");
        assert_eq!(calls(&first), 16);
        // Each of two as often, and one that says no until no other says yes.
        let ((_two, second), (_three, third)) = (counting(&device, true), counting(&device, false));
        assert!(is_out(bytes(&device, 64)));
        assert_eq!([&first, &second, &third].map(|count| calls(count)), [32, 16, 16]);
    }
}

#[test]
fn what_a_hook_is_told() {
    let raw = Double::open_with(&DoubleOptions {
        host: HostOptions::new().memory(MEMORY),
        page_locked: 4 << 20,
        ..DoubleOptions::default()
    });
    let device = Device::<Double>::from_raw(raw.unwrap());
    let (sender, told) = mpsc::channel();
    let (own, allocated) = (device.clone(), Mutex::new((sender, Vec::new())));
    let hook = device.on_exhaustion(move |need| {
        let (sender, allocated) = &mut *allocated.lock().unwrap();
        sender.send(need.clone()).unwrap();
        allocated.push(own.device_array::<u8, _>(100).unwrap());
        false
    });
    let held = bytes(&device, 2).unwrap();
    assert!(is_out(named("weights", || bytes(&device, 64))));
    let need = told.try_recv().unwrap();
    let seen = (need.bytes, need.kind, need.operation, need.name.as_deref());
    assert_eq!(seen, (64 * MIB, MemoryKind::Device, "device_array", Some("weights")));
    assert!(need.free <= MEMORY - 2 * MIB && need.total == MEMORY, "{need:?}");
    assert!(is_out(device.pinned_array::<u8, _>(16 * MIB)));
    let need = told.try_recv().unwrap();
    let seen = (need.bytes, need.kind, need.operation, need.name);
    assert_eq!(seen, (16 * MIB, MemoryKind::Pinned, "pinned_array", None));
    assert!(told.try_recv().is_err());
    // What the hook has allocated is not the request's.
    assert_eq!(device.memory_report().unwrap().holders, []);
    drop((held, hook));
}

#[test]
fn a_panic_of_a_hook_is_queued_and_the_next_hook_is_asked() {
    let (device, _raw) = host(HostOptions::new().memory(MEMORY));
    let cache = filled(&device);
    let _panics = device.on_exhaustion(|need| match need.bytes {
        0 => true,
        _ => panic!("the hook's own"),
    });
    let (_hook, asked) = clearing(&device, &cache);
    let array = bytes(&device, 2).unwrap();
    assert_eq!(calls(&asked), 1);
    let is_told = |error: &Error| {
        let ErrorKind::UserCodePanicked { what, message } = error.kind() else { return false };
        *what == "a hook for exhausted memory" && message == "the hook's own"
    };
    let errors = device.take_errors();
    assert!(errors.len() == 1 && errors.iter().all(is_told), "{errors:?}");
    // It is asked the next time, too.
    assert!(is_out(bytes(&device, 64)));
    assert_eq!(device.take_errors().len(), 1);
    drop(array);
}

/// A value whose drop panics, in the hook that the library drops last.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        if !thread::panicking() {
            panic!("on purpose");
        }
    }
}

#[test]
fn a_hook_is_removed_while_it_runs() {
    let (device, _raw) = host(HostOptions::new().memory(MEMORY));
    // By another thread.
    let (inside, is_inside) = mpsc::channel();
    let (go_on, may_go_on) = mpsc::channel::<()>();
    let channels = Mutex::new((inside, may_go_on));
    let bomb = Bomb;
    let hook = device.on_exhaustion(move |_| {
        let _captured = &bomb;
        let (inside, may_go_on) = &*channels.lock().unwrap();
        inside.send(()).unwrap();
        may_go_on.recv().unwrap();
        true
    });
    thread::scope(|scope| {
        let request = scope.spawn(|| is_out(bytes(&device, 64)));
        is_inside.recv().unwrap();
        drop(hook.unwrap());
        go_on.send(()).unwrap();
        assert!(request.join().unwrap());
    });
    // It was asked once, and what it had captured was dropped by the library.
    assert!(is_inside.try_recv().is_err());
    let errors = device.take_errors();
    assert!(errors.len() == 1 && errors[0].to_string().contains("on purpose"), "{errors:?}");
    // By itself.
    let own: Arc<Mutex<Option<ReclaimHook>>> = Arc::default();
    let removed = own.clone();
    let hook = device.on_exhaustion(move |_| removed.lock().unwrap().take().is_some()).unwrap();
    *own.lock().unwrap() = Some(hook);
    assert!(is_out(bytes(&device, 64)) && own.lock().unwrap().is_none());
    assert!(is_out(bytes(&device, 64)) && device.take_errors().is_empty());
}

#[test]
fn requests_inside_a_hook_ask_no_hook() {
    let (device, _raw) = host(HostOptions::new().memory(MEMORY));
    let (other, _raw) = host(HostOptions::new().memory(MEMORY));
    let cache = filled(&device);
    let (_counts, of_other) = counting(&other, true);
    let (inner, nested) = (device.clone(), other.clone());
    let (dropped, found) = (cache.clone(), Arc::new(Mutex::new(Vec::new())));
    let seen = found.clone();
    let _hook = device.on_exhaustion(move |_| {
        // Refused at once, here and on another device; what there is room for is served, also after a wait.
        let refused = is_out(bytes(&inner, 64)) && is_out(bytes(&nested, 64));
        let dropped = std::mem::take(&mut *dropped.lock().unwrap());
        let again = !dropped.is_empty();
        drop(dropped);
        inner.flush().unwrap();
        inner.synchronize().unwrap();
        seen.lock().unwrap().push((refused, bytes(&inner, 1).is_ok()));
        again
    });
    drop(bytes(&device, 2).unwrap());
    assert_eq!(*found.lock().unwrap(), [(true, true)]);
    assert_eq!(calls(&of_other), 0);
    // Outside of it, that other device's is asked as always.
    assert!(is_out(bytes(&other, 64)) && calls(&of_other) == 16);
}

#[test]
fn no_hook_is_asked_where_nothing_may_be_freed() {
    let (device, _raw) = host(HostOptions::new().memory(MEMORY));
    let (_hook, asked) = counting(&device, true);
    let deferred = device.defer_cleanup();
    assert!(is_out(bytes(&device, 64)));
    drop(deferred);
    let (sender, receiver) = mpsc::channel();
    let inside = device.clone();
    let ask = move |_| sender.send(is_out(bytes(&inside, 64))).unwrap();
    device.stream().unwrap().add_callback(ask).unwrap();
    assert!(receiver.recv().unwrap());
    assert_eq!(calls(&asked), 0);
    assert!(is_out(bytes(&device, 64)) && calls(&asked) == 16);
}

#[test]
fn hooks_are_forgotten_and_own_their_device() {
    let (device, raw) = host(HostOptions::new().memory(MEMORY));
    let (own, kept) = (device.clone(), bytes(&device, 1).unwrap());
    // A hook that owns the device is no circle: it goes with its guard.
    let hook = device
        .on_exhaustion(move |_| own.trim(gpumem_runtime::memory::Trim::ALL).is_err() && kept.is_empty());
    assert!(is_out(bytes(&device, 64)));
    drop((hook, device));
    // A thread of the library frees the memory.
    let start = Instant::now();
    while raw.counters().live_allocations > 0 {
        assert!(start.elapsed().as_secs() < 20, "{:?}", raw.counters());
        thread::yield_now();
    }
    let (device, _raw) = host(HostOptions::new().memory(MEMORY));
    let (hook, asked) = counting(&device, true);
    std::mem::forget(hook);
    assert!(is_out(bytes(&device, 64)) && calls(&asked) == 16);
}

#[gpumem::kernel]
fn weigh(weights: ConstantArray<u32, 1>, y: Own<u32>) {
    y[own()] = weights[0];
}

/// Constants are sent through page-locked memory. Who gives it may launch the same kernel with others.
#[test]
fn a_hook_launches_the_kernel_that_needs_memory() {
    let (sender, ended) = mpsc::channel();
    // A thread of its own: one that waits for itself does not end.
    thread::spawn(move || {
        let (device, _raw) = double(HostOptions::new());
        let pinned = device.memory_resource(MemoryKind::Pinned).unwrap();
        device
            .set_memory_resource(MemoryKind::Pinned, Arc::new(LimitingResource::new(pinned, 1 << 20)))
            .unwrap();
        let kernel = weigh().load(&device).unwrap();
        let held = Arc::new(Mutex::new(Some(device.pinned_array::<u8, _>((1 << 20) - 4096).unwrap())));
        let launch = {
            let (kernel, device) = (kernel.clone(), device.clone());
            move |weight: u32| {
                let stream = device.stream()?;
                let mut y = stream.device_array::<u32, _>(4)?;
                kernel.launch(&stream, &config_for_items(4, 4), (In(&[weight]), &mut y))?;
                y.copy_to_host()
            }
        };
        let nested = Arc::new(Mutex::new(None));
        let hook = {
            let (launch, nested) = (launch.clone(), nested.clone());
            device.on_exhaustion(move |_| {
                let Some(array) = held.lock().unwrap().take() else { return false };
                drop(array);
                *nested.lock().unwrap() = Some(launch(1));
                true
            })
        };
        let outer = launch(7);
        drop(hook);
        let nested = nested.lock().unwrap().take();
        sender.send((outer, nested)).unwrap();
    });
    let (outer, nested) = ended.recv_timeout(Duration::from_secs(120)).unwrap();
    assert_eq!(outer.unwrap().to_vec(), [7; 4]);
    assert_eq!(nested.expect("the hook is asked").unwrap().to_vec(), [1; 4]);
}
