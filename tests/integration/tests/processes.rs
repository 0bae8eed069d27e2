//! Forked children, and the end of a process with arrays that are not dropped.
#![cfg(all(unix, feature = "host"))]
#![allow(clippy::unwrap_used, reason = "tests")]

use gpumem::{Device, DeviceArray, ErrorKind, PinnedArray, Result, Stream};
use gpumem_core::process::ProcessGuard;
use gpumem_integration::slow_fill;
use gpumem_kernel::config_for_items;
use host_double::{Double, DoubleOptions};
use std::{
    cell::RefCell,
    process::Command,
    sync::{
        Mutex, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

fn is_forked<T>(result: Result<T>) -> bool {
    matches!(result, Err(error) if *error.kind() == ErrorKind::ForkedChild)
}

/// Runs `body` in a forked child, which returns a description of a failure. A hang ends by a signal.
fn in_a_child(body: impl FnOnce() -> Result<(), &'static str>) {
    // SAFETY: the child uses only functions that work in a forked child, and leaves by `_exit`.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0, "fork failed");
    if pid == 0 {
        // SAFETY: nothing of the parent runs in the child.
        unsafe { libc::alarm(20) };
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(body));
        let code = match outcome {
            Ok(Ok(())) => 0,
            Ok(Err(what)) => {
                eprintln!("in the child: {what}");
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

fn check(condition: bool, what: &'static str) -> Result<(), &'static str> {
    if condition { Ok(()) } else { Err(what) }
}

#[test]
fn a_forked_child_waits_for_no_lock_of_its_parents() {
    use gpumem::memory::{MemoryResource, Pool, TrackingResource, Trim};
    use std::sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    };
    let device = Device::open("host").unwrap();
    let kind = gpumem::MemoryKind::Device;
    let pool = Arc::new(Pool::new(device.driver_memory(), device.pool_options(kind)));
    let tracking = Arc::new(TrackingResource::new(pool.clone()));
    device.set_memory_resource(kind, tracking.clone()).unwrap();
    let end = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // Threads that hold every lock again and again.
        for _ in 0..3 {
            scope.spawn(|| {
                while !end.load(Ordering::Relaxed) {
                    let array: DeviceArray<u32> = device.to_device(&[1; 100]).unwrap();
                    let _ = (device.memory_report().unwrap(), device.take_errors(), device.counters());
                    let _ = (pool.statistics(), tracking.live(), device.transfer_options());
                    let _ = array.lend_to_host().unwrap();
                }
            });
        }
        for _ in 0..60 {
            in_a_child(|| {
                check(is_forked(device.memory_report()), "report")?;
                check(device.take_errors().len() == 1, "errors")?;
                let _ = (device.counters(), device.transfer_options(), device.pending_frees());
                device.set_transfer_options(gpumem::TransferOptions::default());
                let request = device.memory_request(100, kind);
                check(is_forked(pool.allocate(&request)), "pool")?;
                check(is_forked(tracking.allocate(&request)), "tracking")?;
                check(is_forked(device.driver_memory().allocate(&request)), "driver")?;
                let mut told = 0;
                check(pool.trim(Trim::ALL, &mut |_| told += 1) == 0 && told == 1, "trim")?;
                check(pool.statistics().reserved == 0 && tracking.live().is_empty(), "statistics")?;
                let fresh = Device::open("host").map_err(|_| "a device of the child's own")?;
                let array = fresh.to_device(&[4u32, 5]).map_err(|_| "to_device")?;
                let loan = array.lend_to_host().map_err(|_| "a loan")?;
                check(fresh.as_cuda_array::<u32, ndarray::Ix1, _>(loan).is_ok(), "import")
            });
        }
        end.store(true, Ordering::Relaxed);
    });
}

#[test]
fn a_forked_child_gets_an_error_and_may_open_a_device() {
    let device = Device::open("host").unwrap();
    let stream = device.stream().unwrap();
    let mut array: DeviceArray<u32> = stream.to_device(&[1, 2, 3]).unwrap();
    let pinned: PinnedArray<u32> = stream.copy_to_host(&array).unwrap();
    let event = stream.record_event().unwrap();
    let mut out = ndarray::Array1::from_elem(3, 9u32);
    in_a_child(|| {
        check(is_forked(device.synchronize()) && is_forked(device.flush()), "device")?;
        check(is_forked(device.stream()) && is_forked(device.memory_info()), "device")?;
        // SAFETY: no other thread uses the device.
        check(is_forked(device.to_device(&[1u8])) && is_forked(unsafe { device.reset() }), "device")?;
        check(is_forked(stream.synchronize()) && is_forked(stream.query()), "stream")?;
        check(is_forked(stream.record_event()) && is_forked(stream.scope(|_| ())), "stream")?;
        check(is_forked(event.synchronize()) && is_forked(event.query()), "event")?;
        check(is_forked(array.copy_to_host()) && is_forked(array.fill(1)), "array")?;
        check(is_forked(array.copy_to_host_into(out.view_mut())) && out[0] == 9, "array into")?;
        check(is_forked(pinned.view()), "pinned")?;
        check(is_forked(device.pinned([out.view_mut()], |_| ())), "pages")?;
        check(array.shape() == [3] && array.view().len() == 3, "what needs no driver")?;
        check(is_forked(device.memory_report()), "report")?;
        check(device.take_errors().iter().all(|error| *error.kind() == ErrorKind::ForkedChild), "errors")?;
        drop((array, pinned, event, stream, device));
        let fresh = Device::open("host").map_err(|_| "a device of the child's own")?;
        let array = fresh.to_device(&[4u32, 5]).map_err(|_| "to_device")?;
        let host = array.copy_to_host().map_err(|_| "copy_to_host")?;
        check(host.to_vec() == [4, 5], "contents")?;
        drop(array);
        check(fresh.flush().is_ok() && fresh.take_errors().is_empty(), "flush")
    });
    // The parent's have never been touched.
    let device = Device::open("host").unwrap();
    let array = device.to_device(&[7u32]).unwrap();
    assert_eq!(array.get(0).unwrap(), 7);
}

type Everything = (Stream, DeviceArray<u32>, PinnedArray<u32>, Device);

fn everything() -> Everything {
    let device = Device::open("host").unwrap();
    let stream = device.stream().unwrap();
    let array = stream.to_device(&vec![1u32; 1 << 18]).unwrap();
    let pinned = stream.copy_to_host(&array).unwrap();
    (stream, array, pinned, device)
}

/// Set in the child process.
const CHILD: &str = "GPUMEM_TEST_SUBPROCESS";

#[test]
fn a_process_may_end_with_arrays_in_statics_and_thread_locals() {
    static KEPT: OnceLock<Mutex<Everything>> = OnceLock::new();
    thread_local! {
        static LOCAL: RefCell<Option<Everything>> = const { RefCell::new(None) };
    }
    extern "C" fn at_exit() {
        // After the library's own handler: registered before it.
        if let Some(kept) = KEPT.get() {
            let kept = kept.lock().unwrap();
            let told = matches!(kept.1.copy_to_host(), Err(error) if *error.kind() == ErrorKind::Exiting);
            println!("at exit: {told}");
        }
    }
    if std::env::var_os(CHILD).is_some() {
        // SAFETY: the handler uses only functions that work at exit.
        unsafe { libc::atexit(at_exit) };
        KEPT.get_or_init(|| Mutex::new(everything()));
        LOCAL.set(Some(everything()));
        std::thread::spawn(|| LOCAL.set(Some(everything()))).join().unwrap();
        std::process::exit(0);
    }
    for seed in [None, Some("0"), Some("5")] {
        let mut child = Command::new(std::env::current_exe().unwrap());
        let test = "a_process_may_end_with_arrays_in_statics_and_thread_locals";
        child.args(["--exact", test, "--nocapture"]).env(CHILD, "1");
        seed.map(|seed| child.env("GPUMEM_HOST_SEED", seed));
        let output = child.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(said.contains("at exit: true"), "{output:?}");
    }
}

/// The memory that a scope has borrowed may be in use still, and nothing can wait for it any more: its thread does not go on.
#[test]
fn no_scope_returns_to_a_thread_while_the_process_ends() {
    static RETURNED: AtomicBool = AtomicBool::new(false);
    extern "C" fn at_exit() {
        // After the library's own handler: registered before it.
        std::thread::sleep(Duration::from_millis(500));
        println!("returned: {}", RETURNED.load(Ordering::SeqCst));
    }
    /// Until the library has noticed the end.
    fn wait_for_the_end(device: &Device) {
        while !device.to_device(&[1_u32]).is_err_and(|error| *error.kind() == ErrorKind::Exiting) {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    let test = "no_scope_returns_to_a_thread_while_the_process_ends";
    if let Some(form) = std::env::var_os(CHILD) {
        // SAFETY: the handler uses only functions that work at exit.
        unsafe { libc::atexit(at_exit) };
        let (sender, receiver) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let device = Device::open("host").unwrap();
            let stream = device.stream().unwrap();
            let mut host = vec![0_u32; 1 << 20];
            let (slow, dims) = (slow_fill().load(&device).unwrap(), config_for_items([1, 1, 1], [1, 1, 1]));
            let all = ndarray::aview_mut1(&mut host);
            let _ = match form == "scope" {
                true => stream.scope(|scope| {
                    let mut mapped = scope.mapped(all).unwrap();
                    slow.launch(&stream, &dims, (&mut mapped.device_view_mut(),)).unwrap();
                    sender.send(()).unwrap();
                    wait_for_the_end(&device);
                }),
                false => device.mapped([all], |[mapped]| {
                    slow.launch(&stream, &dims, (&mut mapped.device_view_mut(),)).unwrap();
                    sender.send(()).unwrap();
                    wait_for_the_end(&device);
                }),
            };
            RETURNED.store(true, Ordering::SeqCst);
        });
        receiver.recv().unwrap();
        std::process::exit(0);
    }
    for form in ["scope", "mapped"] {
        let mut child = Command::new(std::env::current_exe().unwrap());
        let output = child.args(["--exact", test, "--nocapture"]).env(CHILD, form).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(said.contains("returned: false"), "{form}: {output:?}");
    }
}

/// A copy may be under way when a call after it is refused because the process ends: the caller does not get its memory back.
#[test]
fn no_copy_returns_to_a_thread_while_the_process_ends() {
    static RETURNED: AtomicBool = AtomicBool::new(false);
    extern "C" fn at_exit() {
        // After the library's own handler: registered before it.
        std::thread::sleep(Duration::from_millis(500));
        println!("returned: {}", RETURNED.load(Ordering::SeqCst));
    }
    let test = "no_copy_returns_to_a_thread_while_the_process_ends";
    if std::env::var_os(CHILD).is_some() {
        // SAFETY: the handler uses only functions that work at exit.
        unsafe { libc::atexit(at_exit) };
        let (sender, receiver) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let options = DoubleOptions { is_direct: true, ..DoubleOptions::default() };
            let raw = Double::open_with(&options).unwrap();
            let device = gpumem_runtime::Device::<Double>::from_raw(raw.clone());
            let array = device.to_device(&vec![7_u32; 1 << 20]).unwrap();
            // Its stream waits for the copy, by an event after it.
            let _loan = array.lend(&device.stream().unwrap()).unwrap();
            let process = ProcessGuard::current();
            raw.script().during("record", move || {
                sender.send(()).unwrap();
                while process.is_valid() {
                    std::thread::sleep(Duration::from_millis(1));
                }
            });
            let mut host = ndarray::Array1::<u32>::zeros(1 << 20);
            let _ = array.copy_to_host_into(&mut host);
            RETURNED.store(true, Ordering::SeqCst);
        });
        receiver.recv().unwrap();
        std::process::exit(0);
    }
    let mut child = Command::new(std::env::current_exe().unwrap());
    let output = child.args(["--exact", test, "--nocapture"]).env(CHILD, "copy").output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("returned: false"), "{output:?}");
}

/// A program that does not know of the recording; one array is alive at its end.
fn a_program() -> (Device, DeviceArray<u32>) {
    let device = Device::open("host").unwrap();
    let kept = gpumem::memory::named("kept", || device.to_device(&[1u32, 2, 3])).unwrap();
    drop(device.device_array::<u8, _>(5000).unwrap());
    let one = device.clone();
    std::thread::spawn(move || drop(one.device_array::<u8, _>(70).unwrap())).join().unwrap();
    // A forked child has the recording in its memory, and does not write the file. SAFETY: the child only exits, and
    // runs the exit handlers.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        // SAFETY: a child that hangs ends by a signal.
        unsafe { libc::alarm(20) };
        std::process::exit(0);
    }
    let mut status = 0;
    // SAFETY: our own child, and a valid place for its status.
    let waited = unsafe { libc::waitpid(pid, &raw mut status, 0) };
    assert_eq!((waited, status), (pid, 0), "status {status:#x}");
    (device, kept)
}

#[test]
fn a_program_can_be_recorded_from_outside() {
    use gpumem::trace::{ENV_TRACE_FILE, Trace};
    if std::env::var_os(CHILD).is_some() {
        static KEPT: OnceLock<Mutex<(Device, DeviceArray<u32>)>> = OnceLock::new();
        KEPT.get_or_init(|| Mutex::new(a_program()));
        std::process::exit(0);
    }
    let folder = tempfile::tempdir().unwrap();
    let run = |name: &str| {
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", "a_program_can_be_recorded_from_outside", "--nocapture"]);
        let output = child.env(CHILD, "1").env(ENV_TRACE_FILE, folder.path().join(name)).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    run("of %p.json");
    let files: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|file| file.unwrap().path()).collect();
    assert_eq!(files.len(), 1, "one process, one file: {files:?}");
    assert!(!files[0].to_string_lossy().contains("%p"));
    let trace = Trace::from_json(&std::fs::read_to_string(&files[0]).unwrap()).unwrap();
    let sizes: Vec<u64> = trace.allocations.iter().map(|allocation| allocation.bytes).collect();
    assert!([12, 5000, 70].iter().all(|bytes| sizes.contains(bytes)), "{sizes:?}");
    let usage = trace.usage();
    let device = usage.iter().find(|usage| usage.kind.word() == "device").unwrap();
    assert_eq!(device.steps.last().unwrap().1, 12, "what is kept is still there");
    assert!(trace.names.contains(&"kept".to_owned()) && trace.threads.len() == 2);

    run("run.perfetto.json");
    let events = std::fs::read_to_string(folder.path().join("run.perfetto.json")).unwrap();
    assert!(events.contains("\"traceEvents\"") && events.contains("kept"));
    let said = run("not there/trace.json");
    assert!(said.contains(ENV_TRACE_FILE) && said.contains("not there"), "{said}");
}

/// Other systems refuse such names themselves.
#[cfg(target_os = "linux")]
#[test]
fn a_recording_may_have_a_name_that_is_not_utf8() {
    use std::{ffi::OsString, os::unix::ffi::OsStringExt};
    let folder = tempfile::tempdir().unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "a_program_can_be_recorded_from_outside", "--nocapture"]);
    child.env(CHILD, "1").current_dir(&folder);
    let name = OsString::from_vec(b"\xff of %p%%p.json".to_vec());
    let child = child.env(gpumem::trace::ENV_TRACE_FILE, name).spawn().unwrap();
    let number = child.id().to_string();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let files: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|file| file.unwrap()).collect();
    assert_eq!(files.len(), 1, "one process, one file: {files:?}");
    let expected = [b"\xff of ", number.as_bytes(), b"%", number.as_bytes(), b".json"].concat();
    assert_eq!(files[0].file_name().into_vec(), expected);
    let text = std::fs::read_to_string(files[0].path()).unwrap();
    assert!(gpumem::trace::Trace::from_json(&text).unwrap().names.contains(&"kept".to_owned()));
}

#[test]
fn a_recording_is_written_by_its_process_only() {
    let device = Device::open("host").unwrap();
    let recording = device.record_memory(gpumem::trace::RecorderOptions::default()).unwrap();
    let array = device.to_device(&[1u8]).unwrap();
    in_a_child(|| {
        check(array.shape() == [1], "what needs no driver")?;
        let fresh = Device::open("host").map_err(|_| "a device of the child's own")?;
        let own = fresh.record_memory(gpumem::trace::RecorderOptions::default());
        let own = own.map_err(|_| "a recording of the child's own")?;
        drop(fresh.to_device(&[2u8]).map_err(|_| "to_device")?);
        check(own.finish().events.len() >= 2, "the child's own events")?;
        check(recording.snapshot().events.is_empty(), "the parent's recording")
    });
    assert!(!recording.finish().events.is_empty());
}
