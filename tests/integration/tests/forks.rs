//! Children that are forked from several threads while others hold the locks of kernels, traces, streams and scopes.
#![cfg(all(target_os = "linux", feature = "host"))]
#![allow(clippy::unwrap_used, reason = "tests")]

use gpumem::{
    Chunks, Device, DeviceArray, Error, ErrorKind, Graph, MappedHost, PinnedArray, Result, SpillManager,
    SpillOptions, Spillable, Stream,
    files::{self, FileView},
    kernel::{
        ConstantArray, In, InOut, Kernel, KernelDef, Out, Slice, SliceMut, WorkItemIds, config_for_items,
    },
    memory::{Pool, TrackingResource, Trim, named},
    ops::ArrayOps,
    trace::{RecorderOptions, ReplayOptions, Trace},
};
use ndarray::{Array1, Ix1};
use std::{
    any::TypeId,
    fs,
    future::Future,
    pin::pin,
    slice,
    sync::atomic::{AtomicBool, Ordering},
    task::{Context, Poll, Waker},
    thread,
    time::Duration,
};

type Scale = (SliceMut<u32>, ConstantArray<u32, 1>);
type Copy = (Slice<u32>, SliceMut<u32>);

const LEN: usize = 5000;

fn is_forked<T>(result: Result<T>) -> bool {
    matches!(result, Err(error) if *error.kind() == ErrorKind::ForkedChild)
}

fn is_ready_and_forked(polled: Poll<Result<()>>) -> bool {
    matches!(polled, Poll::Ready(Err(error)) if *error.kind() == ErrorKind::ForkedChild)
}

fn check(condition: bool, what: &'static str) -> Result<(), &'static str> {
    if condition { Ok(()) } else { Err(what) }
}

/// Runs `body` in a forked child, which returns a description of a failure. A hang ends by a signal.
fn in_a_child(body: impl FnOnce() -> Result<(), &'static str>) {
    // SAFETY: the child uses only functions that work in a forked child, and leaves by `_exit`.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0, "fork failed");
    if pid == 0 {
        // SAFETY: nothing of the parent runs in the child.
        unsafe { libc::alarm(60) };
        let code = match std::panic::catch_unwind(std::panic::AssertUnwindSafe(body)) {
            Ok(Ok(())) => 0,
            Ok(Err(what)) => {
                let text = format!("in the child: {what}\n");
                // SAFETY: no lock, which another thread may have held: the text as it is.
                unsafe { libc::write(2, text.as_ptr().cast(), text.len()) };
                1
            }
            Err(_) => 2,
        };
        // SAFETY: ends the child at once.
        unsafe { libc::_exit(code) };
    }
    let mut status = 0;
    // SAFETY: our own child, and a valid place for its status.
    let waited = unsafe { libc::waitpid(pid, &raw mut status, 0) };
    assert_eq!((waited, status), (pid, 0), "status {status:#x}");
}

fn declarations() -> (KernelDef<Scale>, KernelDef<Copy>) {
    // SAFETY: there is no source.
    unsafe {
        let scale = KernelDef::<Scale>::new("scale").constant_bytes(64);
        let copy = KernelDef::<Copy>::new("copy");
        (
            scale.host_loop(|ids: &WorkItemIds<'_>, (y, c): &Scale| {
                let at = ids.global_id(0);
                y.set(at, y.get(at).wrapping_mul(c.get(0)));
            }),
            copy.host_loop(|ids: &WorkItemIds<'_>, (x, y): &Copy| {
                // Long enough that other threads take part.
                if ids.global_id(0).is_multiple_of(1000) {
                    thread::sleep(Duration::from_micros(50));
                }
                y.set(ids.global_id(0), x.get(ids.global_id(0)));
            }),
        )
    }
}

/// One of everything.
struct Things {
    device: Device,
    stream: Stream,
    scale: Kernel<Scale, gpumem::AnyBackend>,
    copy: Kernel<Copy, gpumem::AnyBackend>,
    array: DeviceArray<u32, Ix1>,
    pinned: PinnedArray<u32, Ix1>,
    spilling: SpillManager,
    spilled: Spillable<u32>,
    file: FileView<u32, Ix1>,
    graph: Graph<(), PinnedArray<u32, Ix1>>,
}

impl Things {
    fn new(device: &Device) -> Self {
        let (scale, copy) = declarations();
        let stream = device.stream().unwrap();
        let array = stream.to_device(&[3u32; LEN]).unwrap();
        let (scale, copy) = (scale.load(device).unwrap(), copy.load(device).unwrap());
        let pinned = stream.copy_to_host(&array).unwrap();
        let spilling = SpillManager::new(device, SpillOptions::new()).unwrap();
        let spilled =
            spilling.add(stream.to_device(&[4u32; LEN]).unwrap()).map_err(|(_, error)| error).unwrap();
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("x"), [9; 4 * LEN]).unwrap();
        let file = files::raw(folder.path().join("x"), 0, LEN).unwrap();
        let body = |stream: &Stream, ()| stream.copy_to_host(&stream.to_device(&[6u32; 9])?);
        let (graph, device) = (device.record((), body).unwrap(), device.clone());
        Self { device, stream, scale, copy, array, pinned, spilling, spilled, file, graph }
    }

    /// Uses everything that takes a lock, and checks the results.
    fn use_all(&mut self) -> Result<()> {
        let Self { device, stream, scale, copy, array, pinned, spilling, spilled, file, graph } = self;
        let dims = config_for_items([LEN, 1, 1], [50, 1, 1]);
        let host = vec![5u32; LEN];
        let mut copied = vec![0u32; LEN];
        copy.launch(stream, &dims, (In(&host), Out(&mut copied)))?;
        assert_eq!(copied, host);
        array.fill(3)?;
        scale.launch(stream, &dims, (&mut *array, In(&[7u32])))?;
        assert_eq!(array.get(LEN - 1)?, 21);
        let mut landed = Array1::zeros(LEN);
        let mut locked = Array1::zeros(LEN);
        stream.scope(|scope| {
            scope.copy_to_host(&*array, landed.view_mut())?;
            let mut mapped: MappedHost<'_, u32, Ix1> = scope.mapped(locked.view_mut())?;
            stream.copy_to_device(&mut mapped.device_view_mut(), &*array)?;
            copy.launch_in(scope, &dims, (In(&host), Out(&mut copied)))
        })??;
        assert!(landed[0] == 21 && locked[LEN - 1] == 21);
        assert_eq!(pinned.view()?.len(), LEN);
        spilling.sleep()?;
        assert_eq!(spilled.get(stream)?.get(7)?, 4);
        assert_eq!(stream.to_device(&*file)?.get(LEN - 1)?, 0x0909_0909);
        assert_eq!(graph.launch(stream, ())?.view()?[8], 6);
        stream.add_callback(|_| ())?;
        device.pinned([landed.view_mut()], |locked| stream.to_device(&locked[0]).map(drop))??;
        let lent = named("lent", || array.lend(stream))?;
        drop(lent);
        let _ = (stream.record_event()?.query()?, device.memory_report()?.to_string(), device.counters());
        stream.synchronize()
    }
}

/// Every call on the parent's objects is an error, at once.
fn parents_things_are_refused(things: &mut Things) -> Result<(), &'static str> {
    let Things { device, stream, scale, copy, array, pinned, spilling, spilled, file, graph } = things;
    let dims = config_for_items([LEN, 1, 1], [50, 1, 1]);
    let (scale_declared, copy_declared) = declarations();
    check(is_forked(scale_declared.load(device)) && is_forked(copy_declared.load(device)), "load")?;
    let host = vec![5u32; LEN];
    let mut copied = vec![0u32; LEN];
    check(is_forked(copy.launch(stream, &dims, (In(&host), Out(&mut copied)))), "launch of host arrays")?;
    check(is_forked(copy.launch(stream, &dims, (In(&host), InOut(&mut copied)))), "launch in and out")?;
    check(is_forked(scale.launch(stream, &dims, (&mut *array, In(&[7u32])))), "launch with constants")?;
    check(is_forked(device.chunks(&host, Chunks::rows(9))), "chunks")?;
    let mapped = device.map_chunks(&host, &mut copied, Chunks::rows(9), |_, _, array| Ok(array));
    check(is_forked(mapped), "map of chunks")?;
    check(is_forked(device.on_exhaustion(|_| true)), "a hook for exhausted memory")?;
    check(is_forked(device.record_memory(RecorderOptions::default())), "recording")?;
    let replayed =
        device.replay_memory(&Trace::empty(), ReplayOptions::default(), |kind| device.memory_resource(kind));
    check(replayed.is_ok() || is_forked(replayed), "replay")?;
    check(is_forked(stream.add_callback(|_| ())), "callback")?;
    let done = pin!(stream.completed());
    let polled = done.poll(&mut Context::from_waker(Waker::noop()));
    check(is_ready_and_forked(polled), "completion")?;
    check(is_forked(stream.scope(|_| ())) && is_forked(graph.launch(stream, ())), "scope and graph")?;
    check(is_forked(array.lend(stream)) && is_forked(array.lend_to_host()), "loans")?;
    check(is_forked(array.try_clone()) && is_forked(device.trim(Trim::ALL)), "memory")?;
    check(is_forked(spilled.get(stream)) && is_forked(spilled.get_mut(stream)), "a spillable array")?;
    check(is_forked(spilled.evict()) && is_forked(spilled.is_resident()), "an array that leaves")?;
    check(is_forked(spilling.sleep()) && is_forked(spilling.wake(stream)), "arrays that sleep")?;
    check(is_forked(SpillManager::new(device, SpillOptions::new())), "a manager")?;
    check(
        is_forked(device.to_device(&*file)) && is_forked(stream.copy_to_device(&mut *array, &*file)),
        "a file",
    )?;
    check(is_forked(stream.to_device_all(slice::from_ref(file))), "files in one pass")?;
    check(is_forked(stream.record_event()) && is_forked(pinned.view()), "event and view")?;
    let _ =
        (device.clone(), stream.clone(), device.defer_cleanup(), format!("{stream:?} {device:?} {array:?}"));
    check(is_forked(device.flush()) && is_forked(device.synchronize()), "flush")
}

/// A device of the child's own does all that one of the parent does.
fn a_device_of_its_own_works() -> Result<(), &'static str> {
    let device = Device::open("host").map_err(|_| "open")?;
    let mut things = Things::new(&device);
    let recording = device.record_memory(RecorderOptions::default()).map_err(|_| "recording")?;
    things.use_all().map_err(|error| &*error.to_string().leak())?;
    let done = pin!(things.stream.completed());
    let _ = done.poll(&mut Context::from_waker(Waker::noop()));
    let trace = recording.finish();
    let known = |word: &str| trace.operations.iter().any(|operation| operation == word);
    check(known("launch") && known("fill") && trace.events.len() > 10, "what was recorded")
}

#[test]
fn children_of_busy_threads_are_refused_and_never_wait() {
    let device = Device::open("host").unwrap();
    let rounds = std::env::var("GPUMEM_ROUNDS").map_or(12, |text| text.parse().unwrap());
    let end = AtomicBool::new(false);
    thread::scope(|scope| {
        for number in 0..3 {
            let (device, end) = (&device, &end);
            scope.spawn(move || {
                while !end.load(Ordering::Relaxed) {
                    Things::new(device).use_all().unwrap();
                    // So that many children find this lock held.
                    for _ in 0..10_000 {
                        device.set_transfer_options(device.transfer_options());
                    }
                    if number == 0 {
                        let recording = device.record_memory(RecorderOptions::default()).unwrap();
                        Things::new(device).use_all().unwrap();
                        let _ = (recording.snapshot(), recording.finish());
                    }
                }
            });
        }
        let forking = |_| {
            scope.spawn(|| {
                for _ in 0..rounds {
                    let mut things = Things::new(&device);
                    let done = things.stream.completed();
                    let loan = things.array.lend_to_host().unwrap();
                    // Inside a scope, with copies that have yet to arrive.
                    let mut landed = Array1::<u32>::zeros(LEN);
                    let mut locked = Array1::<u32>::zeros(LEN);
                    let scoped = things.stream.scope(|scope| {
                        scope.copy_to_host(&things.array, landed.view_mut())?;
                        let mapped = scope.mapped(locked.view_mut())?;
                        in_a_child(|| {
                            check(is_forked(mapped.view()), "an array of a scope")?;
                            let mut more = Array1::<u32>::zeros(LEN);
                            let inner = things.stream.scope(|_| ());
                            check(is_forked(inner), "a scope in a scope")?;
                            drop(mapped);
                            check(is_forked(things.device.pinned([more.view_mut()], |_| ())), "pinned")
                        });
                        Ok::<_, Error>(())
                    });
                    scoped.unwrap().unwrap();
                    drop(loan);
                    in_a_child(move || {
                        parents_things_are_refused(&mut things)?;
                        let polled = pin!(done).poll(&mut Context::from_waker(Waker::noop()));
                        check(is_ready_and_forked(polled), "an old completion")?;
                        drop(things);
                        Ok(())
                    });
                }
            })
        };
        let forking: Vec<_> = (0..3).map(forking).collect();
        let ended: Vec<_> = forking.into_iter().map(thread::ScopedJoinHandle::join).collect();
        end.store(true, Ordering::Relaxed);
        assert!(ended.iter().all(Result::is_ok));
    });
}

/// Run in a process whose other threads are idle: with busy ones, Rust's own start of a thread may wait in the child for a lock
/// of the parent.
#[test]
fn a_child_of_a_quiet_process_may_open_a_device() {
    const NAME: &str = "a_child_of_a_quiet_process_may_open_a_device";
    if std::env::var_os("GPUMEM_TEST_SUBPROCESS").is_some() {
        let device = Device::open("host").unwrap();
        Things::new(&device).use_all().unwrap();
        let tensor = Things::new(&device).array.lend_to_host().unwrap().into_dlpack().unwrap();
        in_a_child(|| {
            a_device_of_its_own_works()?;
            let own = Device::open("host").map_err(|_| "open")?;
            check(is_forked(own.from_dlpack::<u32, Ix1>(tensor, None)), "a tensor of the parent")
        });
        return;
    }
    let program = std::env::current_exe().unwrap();
    let ran = std::process::Command::new(program)
        .args([NAME, "--exact"])
        .env("GPUMEM_TEST_SUBPROCESS", NAME)
        .output();
    let ran = ran.unwrap();
    let said = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success() && said.contains("1 passed"), "{said}");
}

#[test]
fn a_child_may_leave_the_scope_that_it_was_forked_in() {
    let device = Device::open("host").unwrap();
    let things = Things::new(&device);
    let end = AtomicBool::new(false);
    thread::scope(|scope| {
        // Others hold the locks of the stream again and again.
        for _ in 0..2 {
            scope.spawn(|| {
                while !end.load(Ordering::Relaxed) {
                    let mut landed = Array1::<u32>::zeros(LEN);
                    let copied =
                        things.stream.scope(|scope| scope.copy_to_host(&things.array, landed.view_mut()));
                    copied.unwrap().unwrap();
                }
            });
        }
        for _ in 0..60 {
            let mut landed = Array1::<u32>::from_elem(LEN, 9);
            let mut locked = Array1::<u32>::zeros(LEN);
            let mut pid = 0;
            let left = things.stream.scope(|scope| {
                scope.copy_to_host(&things.array, landed.view_mut())?;
                let _mapped = scope.mapped(locked.view_mut())?;
                // SAFETY: the child leaves the scope, which is promised to work, and ends.
                pid = unsafe { libc::fork() };
                if pid == 0 {
                    // SAFETY: a child that hangs ends by a signal.
                    unsafe { libc::alarm(60) };
                }
                Ok::<_, Error>(())
            });
            if pid == 0 {
                let told = is_forked(left) && landed.iter().all(|element| [3, 9].contains(element));
                // SAFETY: ends the child at once.
                unsafe { libc::_exit(i32::from(!told)) };
            }
            left.unwrap().unwrap();
            assert!(landed.iter().all(|element| *element == 3));
            let mut status = 0;
            // SAFETY: our own child, and a valid place for its status.
            let waited = unsafe { libc::waitpid(pid, &raw mut status, 0) };
            assert_eq!((waited, status), (pid, 0), "status {status:#x}");
        }
        end.store(true, Ordering::Relaxed);
    });
}

#[test]
fn a_child_may_leave_the_map_of_chunks_that_it_was_forked_in() {
    let device = Device::open("host").unwrap();
    let from = vec![5_u32; LEN];
    let rows = LEN / 8;
    for turn in 0..8 {
        let (mut to, mut pid, mut seen) = (vec![0_u32; LEN], 1, 0);
        let mapped = device.map_chunks(&from, &mut to, Chunks::rows(rows), |_, _, array| {
            if seen == turn {
                // SAFETY: the child leaves the call, which is promised to work, and ends.
                pid = unsafe { libc::fork() };
                if pid == 0 {
                    // SAFETY: a child that hangs ends by a signal.
                    unsafe { libc::alarm(20) };
                }
            }
            seen += 1;
            Ok(array)
        });
        if pid == 0 {
            // SAFETY: ends the child at once.
            unsafe { libc::_exit(i32::from(!is_forked(mapped))) };
        }
        mapped.unwrap();
        assert_eq!(to, from);
        let mut status = 0;
        // SAFETY: our own child, and a valid place for its status.
        let waited = unsafe { libc::waitpid(pid, &raw mut status, 0) };
        assert_eq!((waited, status), (pid, 0), "turn {turn}: status {status:#x}");
    }
}

#[test]
fn a_child_may_leave_the_recording_that_it_was_forked_in() {
    let device = Device::open("host").unwrap();
    let stream = device.stream().unwrap();
    let graph = device.record((), |_, ()| Ok(())).unwrap();
    let end = AtomicBool::new(false);
    thread::scope(|scope| {
        // Others hold the locks of the graph and of the recording again and again.
        scope.spawn(|| {
            while !end.load(Ordering::Relaxed) {
                graph.report();
            }
        });
        for _ in 0..60 {
            let (mut pid, mut other) = (0, None);
            let left = device.record((), |inside, ()| {
                let inside = inside.clone();
                other = Some(scope.spawn(move || while inside.device_array::<u8, _>(1).is_ok() {}));
                thread::sleep(Duration::from_micros(200));
                // SAFETY: the child leaves the recording, which is promised to work, and ends.
                pid = unsafe { libc::fork() };
                if pid == 0 {
                    // SAFETY: a child that hangs ends by a signal.
                    unsafe { libc::alarm(60) };
                }
                Ok(())
            });
            if pid == 0 {
                graph.report();
                let told = is_forked(left) && is_forked(graph.launch(&stream, ()));
                // SAFETY: ends the child at once.
                unsafe { libc::_exit(i32::from(!told)) };
            }
            assert!(left.is_ok() && other.unwrap().join().is_ok());
            let mut status = 0;
            // SAFETY: our own child, and a valid place for its status.
            let waited = unsafe { libc::waitpid(pid, &raw mut status, 0) };
            end.fetch_or(status != 0, Ordering::Relaxed);
            assert_eq!((waited, status), (pid, 0), "status {status:#x}");
        }
        end.store(true, Ordering::Relaxed);
    });
}

/// Tells threads that they can end, also after a panic.
struct Ending<'a>(&'a AtomicBool);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Other threads hold the locks that these calls would take nearly all the time.
#[test]
fn a_child_asks_for_what_other_threads_hold() {
    let device = Device::open("host").unwrap();
    let things = Things::new(&device);
    // SAFETY: the value holds nothing.
    let key = unsafe { gpumem_runtime::internal::Key::new() };
    let kept = || device.kept_by::<u8>(key, TypeId::of::<u8>(), || Ok(1));
    let kind = gpumem::MemoryKind::Device;
    let tracking = TrackingResource::new(std::sync::Arc::new(Pool::new(
        device.driver_memory(),
        device.pool_options(kind),
    )));
    let end = AtomicBool::new(false);
    let busy = |work: &(dyn Fn() + Sync)| {
        while !end.load(Ordering::Relaxed) {
            work();
        }
    };
    thread::scope(|scope| {
        let _ending = Ending(&end);
        scope.spawn(|| busy(&|| assert!(things.stream.submission_index() > 0)));
        scope.spawn(|| busy(&|| assert!(kept().is_ok())));
        scope.spawn(|| busy(&|| drop((tracking.live(), tracking.leak_report(), device.take_errors()))));
        for _ in 0..60 {
            in_a_child(|| {
                check(things.stream.submission_index() == 0, "the index of a stream")?;
                check(is_forked(kept()) && is_forked(things.array.sum()), "kernels that are kept")?;
                let errors = device.take_errors();
                check(errors.len() == 1 && is_forked(Err::<(), _>(errors[0].clone())), "errors")?;
                check(tracking.live().is_empty() && tracking.leak_report().is_empty(), "a resource")?;
                let _ = (format!("{tracking:?}"), device.counters(), device.pending_frees());
                check(is_forked(device.memory_report()), "a report")?;
                check(is_forked(device.memory_resource(kind)), "the resource of a device")
            });
        }
    });
}

#[test]
fn a_child_cannot_go_on_with_a_recording() {
    let device = Device::open("host").unwrap();
    let recorded = device.record((gpumem::writes::<u32, _>(LEN),), |stream, (mut x,)| {
        let end = AtomicBool::new(false);
        thread::scope(|scope| {
            // Holds the lock of the recording nearly all the time.
            scope.spawn(|| {
                while !end.load(Ordering::Relaxed) {
                    assert!(stream.device_array::<u8, _>(1).is_ok());
                }
            });
            let _ending = Ending(&end);
            for _ in 0..60 {
                in_a_child(|| {
                    check(is_forked(stream.device_array::<u8, _>(1)), "an array")?;
                    check(is_forked(stream.fill(&mut x, 1)), "a fill")?;
                    check(is_forked(stream.to_device(&[1u32; 3])), "elements of the host")?;
                    check(is_forked(stream.copy_to_host(&x)), "a result")
                });
            }
        });
        Ok(())
    });
    assert!(recorded.is_ok());
}

#[test]
fn a_child_freezes_arrays_of_its_own() {
    let device = Device::open("host").unwrap();
    let end = AtomicBool::new(false);
    thread::scope(|scope| {
        // Others hold the lock of the table of frozen memory again and again.
        for _ in 0..2 {
            scope.spawn(|| {
                let mut array = device.device_array::<u8, _>(1).unwrap();
                while !end.load(Ordering::Relaxed) {
                    let frozen = array.freeze().map_err(|(_, error)| error).unwrap();
                    array = frozen.try_into_array().unwrap_or_else(|_| unreachable!());
                }
            });
        }
        let forking = scope.spawn(|| {
            for _ in 0..100 {
                in_a_child(|| {
                    let device = Device::open("host").map_err(|_| "open")?;
                    let frozen = device.device_array::<u8, _>(1).map(|array| array.freeze().is_ok());
                    check(frozen.is_ok_and(|is_frozen| is_frozen), "freeze")
                });
            }
        });
        let forked = forking.join();
        end.store(true, Ordering::Relaxed);
        forked.unwrap();
    });
}
