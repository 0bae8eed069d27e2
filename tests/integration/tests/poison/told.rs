//! Who is told of a failure: every call that waits for the work, each time, and a stream's `synchronize` once.

use super::{
    One, Two,
    common::{double, host},
};
use gpumem_core::{CopyRegion, DriverDevice, ErrorKind, Result, Space, Stream as _};
use gpumem_host::{Host, HostOptions, Injection, Operation};
use gpumem_kernel::{Kernel, KernelDef, Slice, WorkItemIds, config_for_items};
use gpumem_runtime::{Completion, Device, DeviceArray, Event, Progress, RawAccess, Stream, TransferOptions};
use ndarray::{Ix1, s};
use std::{
    ops::ControlFlow,
    pin::pin,
    sync::Arc,
    task::{Context, Poll, Wake, Waker},
    thread::{self, Thread},
};

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn wait(completion: Completion) -> Result<()> {
    let mut completion = pin!(completion);
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    loop {
        if let Poll::Ready(result) = completion.as_mut().poll(&mut Context::from_waker(&waker)) {
            return result;
        }
        thread::park();
    }
}

fn query(event: &Event<Host>) -> Result<()> {
    while !event.query()? {
        thread::yield_now();
    }
    Ok(())
}

fn query_stream(stream: &Stream<Host>) -> Result<()> {
    while !stream.query()? {
        thread::yield_now();
    }
    Ok(())
}

struct Bench {
    stream: Stream<Host>,
    bad: Kernel<One, Host>,
    array: DeviceArray<u32, Ix1, Host>,
}

impl Bench {
    fn new(device: &Device<Host>) -> Self {
        // SAFETY: there is no source.
        let bad = unsafe { KernelDef::<One>::new("bad") }.host_loop(|_: &WorkItemIds<'_>, (y,): &One| {
            y.get(1 << 30);
        });
        Self {
            stream: device.stream().unwrap(),
            bad: bad.load(device).unwrap(),
            array: device.to_device(&[1u32; 8]).unwrap(),
        }
    }

    fn fail(&mut self) {
        self.array.fill(1).unwrap();
        self.bad.launch(&self.stream, &config_for_items([1, 1, 1], [1, 1, 1]), (&mut self.array,)).unwrap();
    }
}

#[track_caller]
fn is_told(result: Result<()>) {
    let error = result.unwrap_err();
    assert!(error.to_string().contains("kernel \"bad\""), "{error}");
}

fn each(seed: Option<u64>, check: impl Fn(&Device<Host>)) {
    let options = HostOptions::new().memory(64 << 20);
    check(&host(seed.map_or_else(|| options.clone(), |seed| options.clone().adversarial(seed))).0);
}

#[test]
fn an_event_behind_a_failure_says_so_each_time() {
    type Ask = fn(&Stream<Host>, &Event<Host>) -> Result<()>;
    let asks: [Ask; 6] = [
        |_, event| event.synchronize(),
        |_, event| query(event),
        |_, event| wait(event.completed()),
        |_, event| event.clone().synchronize(),
        |stream, _| query_stream(stream),
        |stream, _| wait(stream.completed()),
    ];
    for seed in [None, Some(1), Some(2)] {
        each(seed, |device| {
            let mut bench = Bench::new(device);
            for first in asks {
                let good = bench.stream.record_event().unwrap();
                bench.fail();
                let events = [bench.stream.record_event().unwrap(), bench.stream.record_event().unwrap()];
                is_told(first(&bench.stream, &events[0]));
                for _ in 0..2 {
                    for (ask, event) in
                        asks.iter().flat_map(|ask| events.iter().map(move |event| (ask, event)))
                    {
                        is_told(ask(&bench.stream, event));
                    }
                }
                good.synchronize().unwrap();
                is_told(bench.stream.synchronize());
                bench.stream.synchronize().expect("told once");
                query_stream(&bench.stream).expect("it was told");
                wait(bench.stream.completed()).expect("it was told");
                bench.stream.record_event().unwrap().synchronize().expect("it covers no failure");
                for event in &events {
                    asks[..4].iter().for_each(|ask| is_told(ask(&bench.stream, event)));
                }
            }
        });
    }
}

/// Work that does not use the bytes runs and is right, on the stream of the failure too, and no wait for it tells of the
/// failure; not even before any call has told it.
#[test]
fn a_service_with_one_stream_answers_after_a_bad_request() {
    // SAFETY: there is no source.
    let pick = unsafe { KernelDef::<Two>::new("pick") }.host_loop(|ids: &WorkItemIds<'_>, (x, y): &Two| {
        y.set(ids.global_id(0), x.get(x.get(ids.global_id(0)) as usize));
    });
    for seed in [None, Some(1), Some(2)] {
        each(seed, |device| serve(device, &pick));
    }

    fn serve(device: &Device<Host>, pick: &KernelDef<Two>) {
        let (stream, pick) = (device.stream().unwrap(), pick.load(device).unwrap());
        let mut buffer = stream.device_array::<u32, _>(3).unwrap();
        let mut answer = |request: [u32; 3]| {
            let x = stream.to_device(&request)?;
            stream.fill(&mut buffer, 0)?;
            pick.launch(&stream, &config_for_items([3, 1, 1], [3, 1, 1]), (&x, &mut buffer))?;
            buffer.copy_to_host().map(|found| found.to_vec())
        };
        for (request, expected) in [
            ([0, 1, 2], Some([0, 1, 2])),
            ([2, 1, 0], Some([0, 1, 2])),
            ([7, 0, 0], None),
            ([2, 1, 0], Some([0, 1, 2])),
            ([1, 0, 8], None),
            ([0, 1, 2], Some([0, 1, 2])),
        ] {
            match (answer(request), expected) {
                (Ok(found), Some(expected)) => assert_eq!(found, expected),
                (Err(error), None) => assert!(error.to_string().contains("kernel \"pick\""), "{error}"),
                (found, _) => panic!("{request:?}: {found:?}"),
            }
        }
        // One error for both.
        let told = stream.synchronize().unwrap_err().to_string();
        assert!(told.matches("kernel \"pick\"").count() == 2, "{told}");
        stream.synchronize().unwrap();
        // The copies out of the buffer may have failed on the default stream.
        let _ = device.synchronize();
        device.synchronize().unwrap();
    }
}

#[test]
fn a_wait_for_other_work_does_not_tell() {
    for seed in [None, Some(1), Some(2)] {
        each(seed, |device| {
            let mut bench = Bench::new(device);
            let (other, mut third) =
                (device.to_device(&[2u32; 8]).unwrap(), device.to_device(&[3u32; 8]).unwrap());
            bench.fail();
            let stream = &bench.stream;
            stream.fill(&mut third, 5).unwrap();
            for _ in 0..3 {
                assert_eq!(third.copy_to_host().unwrap().to_vec(), [5; 8]);
                assert_eq!(stream.copy_to_host(&other).unwrap().view().unwrap().to_vec(), [2; 8]);
                assert_eq!(stream.scope(|_| 1).unwrap(), 1, "the scope has no work");
                is_told(bench.array.copy_to_host().map(drop));
            }
            drop(third);
            is_told(device.synchronize());
            device.synchronize().expect("told once");
            stream.synchronize().expect("told once");
            is_told(bench.array.copy_to_host().map(drop));
        });
    }
}

/// The scope is told of its own work, whichever call was told before.
#[test]
fn a_scope_tells_its_own_failures() {
    for seed in [None, Some(1), Some(2)] {
        each(seed, |device| {
            let mut bench = Bench::new(device);
            let (dims, stream) = (config_for_items([1, 1, 1], [1, 1, 1]), bench.stream.clone());
            is_told(stream.scope(|scope| {
                bench.bad.launch(scope.stream(), &dims, (&mut bench.array,)).unwrap();
                is_told(device.synchronize());
                stream.synchronize().expect("told once");
            }));
            stream.scope(|_| ()).expect("no work of this scope");
        });
    }
}

/// More failures than a stream tells apart.
#[test]
fn no_failure_is_forgotten() {
    each(None, |device| {
        let mut bench = Bench::new(device);
        let mut events = Vec::new();
        for _ in 0..1500 {
            bench.fail();
            events.push(bench.stream.record_event().unwrap());
            is_told(bench.stream.synchronize());
        }
        events.iter().for_each(|event| is_told(event.synchronize()));
        bench.stream.record_event().unwrap().synchronize().unwrap();
    });
}

#[test]
fn the_device_tells_what_a_dropped_stream_has_not() {
    for seed in [None, Some(1), Some(2)] {
        each(seed, |device| {
            let mut bench = Bench::new(device);
            bench.fail();
            bench.stream.query().map(drop).unwrap_or(());
            drop(bench);
            is_told(device.synchronize());
            device.synchronize().expect("told once");
        });
    }
}

/// Work of another library on a stream belongs together: what comes after a failure may build on it.
#[test]
fn a_raw_scope_ends_with_its_first_failure() {
    for seed in [None, Some(1), Some(2)] {
        let options = HostOptions::new().memory(64 << 20);
        let (device, raw) =
            host(seed.map_or_else(|| options.clone(), |seed| options.clone().adversarial(seed)));
        let stream = device.stream().unwrap();
        let mut array = device.to_device(&[1u32; 8]).unwrap();
        let mut other = device.to_device(&[1u32; 8]).unwrap();
        device.synchronize().unwrap();
        let what = ErrorKind::AsynchronousFault { what: "kernel \"bad\"".to_owned() };
        raw.inject(Injection::next(Operation::Copy, what));
        let zeros = [0u32; 8];
        let accesses = [RawAccess::write(&mut array)];
        // SAFETY: the work uses this array alone, goes to this stream, and is waited for before `zeros` goes away.
        unsafe {
            stream.raw_scope(&accesses, |parts| {
                let inner = raw.wrap_stream(parts.stream).unwrap();
                let space = Space::Device(raw.ordinal());
                let (first, second) = ((parts.addresses[0], space), (parts.addresses[0] + 16, space));
                let from = (zeros.as_ptr().expose_provenance() as u64, Space::Host);
                inner.copy(&CopyRegion::linear(from, first, 16)).unwrap();
                inner.copy(&CopyRegion::linear(first, second, 16)).unwrap();
            })
        }
        .unwrap();
        let behind = stream.record_event().unwrap();
        stream.fill(&mut other, 2).unwrap();
        assert_eq!(other.copy_to_host().unwrap().to_vec(), [2; 8]);
        for part in [0..4, 4..8] {
            is_told(array.slice(s![part]).unwrap().copy_to_host().map(drop));
        }
        is_told(behind.synchronize());
        is_told(stream.synchronize());
        stream.synchronize().expect("told once");
    }
}

/// Two parts of one array: the one that is poisoned is named, and not the first that lies in the same memory.
#[test]
fn the_argument_that_is_poisoned_is_named() {
    // SAFETY: it writes nothing.
    let reads = unsafe { KernelDef::<(Slice<u32>, Slice<u32>)>::new("reads") };
    let device = host(HostOptions::new()).0;
    let reads = reads.host_loop(|_, _| ()).load(&device).unwrap();
    let mut bench = Bench::new(&device);
    let half = bench.array.len() / 2;
    let dims = config_for_items([1, 1, 1], [1, 1, 1]);
    bench.bad.launch(&bench.stream, &dims, (&mut bench.array.slice_mut(s![half..]).unwrap(),)).unwrap();
    is_told(bench.stream.synchronize());
    let [good, poisoned] =
        [bench.array.slice(s![..half]), bench.array.slice(s![half..])].map(|part| part.unwrap());
    let error = reads.launch(&bench.stream, &dims, (&good, &poisoned)).unwrap_err();
    assert!(error.is_poisoned() && error.argument() == Some(2), "{error}");
    let error = reads.launch(&bench.stream, &dims, (&poisoned, &good)).unwrap_err();
    assert!(error.is_poisoned() && error.argument() == Some(1), "{error}");
    reads.launch(&bench.stream, &dims, (&good, &good)).unwrap();
    bench.stream.synchronize().unwrap();
}

/// Work that fails between two copies of a transfer, on the same stream, is not the transfer's.
#[test]
fn a_transfer_tells_no_failure_of_work_between_its_copies() {
    let (device, _raw) = double(HostOptions::new());
    let options = TransferOptions::new().threads(1).block_bytes(16 << 10);
    device.set_transfer_options(options.parallel_bytes(1).single_block_bytes(0));
    // SAFETY: there is no source.
    let bad = unsafe { KernelDef::<One>::new("bad") }.host_loop(|_: &WorkItemIds<'_>, (y,): &One| {
        y.get(1 << 30);
    });
    let (bad, stream) = (bad.load(&device).unwrap(), device.default_stream().unwrap());
    let (mut spoiled, new) = (device.to_device(&[1u32]).unwrap(), vec![9u8; 1 << 20]);
    let mut array = device.to_device(&vec![1u8; new.len()]).unwrap();
    let mut early = 0;
    let spoil = |progress: Progress| {
        if early == 0 && progress.done < progress.total {
            bad.launch(&stream, &config_for_items([1, 1, 1], [1, 1, 1]), (&mut spoiled,)).unwrap();
        }
        early += u32::from(progress.done < progress.total);
        ControlFlow::Continue(())
    };
    array.copy_to_device_with_progress(&new, spoil).unwrap();
    assert!(early > 1, "there were copies before and after it");
    is_told(device.synchronize());
    assert!(array.copy_to_host().unwrap().to_vec() == new);
    assert!(spoiled.copy_to_host().unwrap_err().is_poisoned());
}
