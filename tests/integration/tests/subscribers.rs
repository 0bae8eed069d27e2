//! A subscriber of tracing that panics at every event. A separate program: the process has one subscriber for all threads.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod common;

use common::{
    host,
    subscriber::{OnEvent, panics},
};
use gpumem_core::{ErrorKind, LaunchConfig, MemoryKind, Result};
use gpumem_host::{Host, HostOptions, Injection, Operation};
use gpumem_integration::{calling, holding, slow_fill};
use gpumem_kernel::config_for_items;
use gpumem_runtime::{
    Device, Stream,
    memory::{MemoryBlock, MemoryRequest, MemoryResource, MemoryStatistics},
};
use ndarray::Array1;
use std::{
    panic::{AssertUnwindSafe, catch_unwind, panic_any},
    process::Command,
    sync::{
        Arc, Once, OnceLock,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

fn subscribe() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| tracing::subscriber::set_global_default(OnEvent(panics)).unwrap());
}

fn one() -> LaunchConfig {
    config_for_items([1, 1, 1], [1, 1, 1])
}

/// The caller's memory goes back to it when all of it has been waited for, whatever the unlocking of a part says.
#[test]
fn locked_arrays_are_waited_for() {
    subscribe();
    let (device, raw) = host(HostOptions::new().brief_bytes(0));
    let stream = device.stream().unwrap();
    let slow = slow_fill().load(&device).unwrap();
    let mut array = device.device_array::<u32, _>(64 << 10).unwrap();
    let [mut first, mut last] = [(); 2].map(|()| Array1::<u32>::zeros(64 << 10));
    let ended = catch_unwind(AssertUnwindSafe(|| {
        device.pinned([first.view_mut(), last.view_mut()], |[first, _]| {
            slow.launch(&stream, &one(), (&mut array,)).unwrap();
            stream.copy_to_host_into(&array, first).unwrap();
            let refused = ErrorKind::Driver { code: 1, name: "REFUSED" };
            raw.inject(Injection::next(Operation::Release, refused));
        })
    }));
    assert!(stream.query().unwrap(), "the copy into the first array is under way");
    ended.unwrap().unwrap();
    assert_eq!(device.take_errors().len(), 1);
}

/// Panics when it is dropped.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        if !thread::panicking() {
            panic_any("a drop's");
        }
    }
}

#[test]
fn a_stream_goes_on_after_a_drop_that_panics() {
    subscribe();
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let (device, _) = host(HostOptions::new());
        let stream = device.stream().unwrap();
        let kernel = holding(Bomb).load(&device).unwrap();
        kernel.launch(&stream, &one(), (1,)).unwrap();
        drop(kernel);
        device.flush().unwrap();
        let kernel = calling(|| ()).load(&device).unwrap();
        kernel.launch(&stream, &one(), (1,)).unwrap();
        stream.add_callback(|_| panic_any("a callback's")).unwrap();
        stream.synchronize().unwrap();
        sender.send(device.take_errors().len()).unwrap();
    });
    assert_eq!(receiver.recv_timeout(Duration::from_secs(60)), Ok(2));
}

/// A resource that cannot be asked.
#[derive(Debug)]
struct Silent(Arc<dyn MemoryResource<Host>>);

impl MemoryResource<Host> for Silent {
    fn name(&self) -> &'static str {
        "silent"
    }
    fn allocate(&self, request: &MemoryRequest<'_, Host>) -> Result<MemoryBlock<Host>> {
        self.0.allocate(request)
    }
    fn deallocate(&self, block: MemoryBlock<Host>) -> Result<()> {
        self.0.deallocate(block)
    }
    fn statistics(&self) -> MemoryStatistics {
        panic_any("the resource's")
    }
    fn forget(&self) {
        self.0.forget();
    }
}

#[test]
fn reports_and_drops_say_what_cannot_be_asked() {
    subscribe();
    let (device, _raw) = host(HostOptions::new());
    device.set_memory_resource(MemoryKind::Device, Arc::new(Silent(device.driver_memory()))).unwrap();
    let array = device.to_device(&[1u32; 100]).unwrap();
    assert!(device.memory_report().unwrap().to_string().contains("unknown"));
    assert!(device.uninit_array::<u8, _>(usize::MAX / 4).unwrap_err().is_out_of_memory());
    drop(array);
    // Nor is a panic inside of another one an abort.
    let unwound = catch_unwind(AssertUnwindSafe(move || {
        let _dropped = device;
        panic_any("the caller's");
    }));
    assert!(unwound.is_err());
}

const CHILD: &str = "GPUMEM_TEST_OPENS_IN_SUBSCRIBER";

/// Opens a second device at the first event, while another thread is opening the first one.
fn opens_another() {
    static HAS_BEGUN: AtomicBool = AtomicBool::new(false);
    if !HAS_BEGUN.swap(true, Ordering::Relaxed) {
        drop(Device::<Host>::open("host:1").unwrap());
    }
}

/// The environment is read when a device is opened, and a subscriber hears of a variable without meaning.
#[test]
fn a_subscriber_may_open_a_device_while_another_one_is_opened() {
    if std::env::var_os(CHILD).is_some() {
        tracing::subscriber::set_global_default(OnEvent(opens_another)).unwrap();
        let (sender, receiver) = mpsc::channel();
        thread::spawn(move || sender.send(Device::<Host>::open("host:0").unwrap().name()));
        assert_eq!(receiver.recv_timeout(Duration::from_secs(30)).as_deref(), Ok("host:0"));
        return;
    }
    for variable in ["GPUMEM_TRANSFER_THREADS", "GPUMEM_MAX_PENDING_DEALLOCS_COUNT"] {
        let mut child = Command::new(std::env::current_exe().unwrap());
        let test = "a_subscriber_may_open_a_device_while_another_one_is_opened";
        child.args(["--exact", test]).env(CHILD, "1").env("GPUMEM_HOST_DEVICES", "2").env(variable, "many");
        let output = child.output().unwrap();
        assert!(output.status.success(), "{variable}: {}", String::from_utf8_lossy(&output.stdout));
    }
}

/// The stream whose callback fails.
static STREAM: OnceLock<Stream<Host>> = OnceLock::new();
static REFUSED: AtomicBool = AtomicBool::new(false);

fn waits() {
    if let Some(stream) = STREAM.get() {
        let refused = stream.synchronize();
        REFUSED.store(
            refused.is_err_and(|error| *error.kind() == ErrorKind::BlockingInCallback),
            Ordering::Relaxed,
        );
    }
}

/// The thread that tells of a failed callback is the one that a wait for the stream waits for.
#[test]
fn a_subscriber_waits_for_no_device() {
    let test = "a_subscriber_waits_for_no_device";
    if std::env::var_os(CHILD).is_some() {
        tracing::subscriber::set_global_default(OnEvent(waits)).unwrap();
        let (sender, receiver) = mpsc::channel();
        thread::spawn(move || {
            let device = Device::<Host>::open("host").unwrap();
            let stream = STREAM.get_or_init(|| device.stream().unwrap());
            stream.add_callback(|_| panic_any("on purpose")).unwrap();
            sender.send(stream.synchronize())
        });
        receiver.recv_timeout(Duration::from_secs(30)).unwrap().unwrap();
        assert!(REFUSED.load(Ordering::Relaxed));
        return;
    }
    let mut child = Command::new(std::env::current_exe().unwrap());
    let output = child.args(["--exact", test]).env(CHILD, "1").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}
