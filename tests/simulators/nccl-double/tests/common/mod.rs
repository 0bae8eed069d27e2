//! Ranks on the double of NCCL: devices of the host that name a library of collectives.
#![allow(dead_code, reason = "not every test file uses everything")]

#[path = "../../../../../crates/gpumem-collectives/tests/common/failure.rs"]
mod failure;
#[path = "../../../../../crates/gpumem-collectives/tests/common/random.rs"]
pub(crate) mod random;

#[allow(unused_imports, reason = "not every test file uses both")]
pub(crate) use failure::{failed, poisoned};

use gpumem_collectives::{CollectiveLibrary, Communicator, Options};
use gpumem_core::{DriverDevice, HostFuture, RawStream, Stream as _};
use gpumem_host::HostOptions;
use host_double::{Double, DoubleDevice, DoubleOptions};
use libloading::Library;
use nccl_double::{Fault, Platform, Work};
use std::{
    collections::BTreeMap,
    env,
    ffi::c_void,
    future::poll_fn,
    path::PathBuf,
    sync::{
        Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    task::{Poll, Waker},
    time::Duration,
};

/// Numbers of ranks. Each communicator takes its devices some memory, so there are fewer than on the host.
pub(crate) const COUNTS: &[usize] = &[1, 3, 4];

pub(crate) type B = Double;
pub(crate) type Device = gpumem_runtime::Device<Double>;
pub(crate) type Stream = gpumem_runtime::Stream<Double>;
pub(crate) type Comm = Communicator<Double>;

/// The devices of the double's communicators.
static DEVICES: Mutex<BTreeMap<u64, gpumem_host::Device>> = Mutex::new(BTreeMap::new());

fn devices_told() -> MutexGuard<'static, BTreeMap<u64, gpumem_host::Device>> {
    DEVICES.lock().unwrap_or_else(PoisonError::into_inner)
}

extern "C" fn current() -> u64 {
    let Some(device) = Double::current() else { return 0 };
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    devices_told().insert(number, device.host().clone());
    number
}

extern "C" fn forget(device: u64) {
    let forgotten = devices_told().remove(&device);
    drop(forgotten);
}

unsafe extern "C" fn enqueue(device: u64, stream: u64, work: Work) -> bool {
    /// Frees the work when it is dropped.
    struct Owned(Work);
    // SAFETY: the double's work may be polled and freed on any thread.
    unsafe impl Send for Owned {}
    impl Owned {
        fn poll(&self, waker: *mut c_void) -> bool {
            // SAFETY: the work's own function and data.
            unsafe { (self.0.poll)(self.0.data, wake, waker) }
        }
    }
    impl Drop for Owned {
        fn drop(&mut self) {
            // SAFETY: as above; it is not used again.
            unsafe { (self.0.free)(self.0.data) };
        }
    }
    unsafe extern "C" fn wake(waker: *mut c_void) {
        // SAFETY: the double wakes each waker once.
        unsafe { Box::from_raw(waker.cast::<Waker>()) }.wake();
    }
    let owned = Owned(work);
    let device = devices_told()[&device].clone();
    // SAFETY: the engine passes live streams of the device.
    let Ok(stream) = (unsafe { device.wrap_stream(RawStream(stream)) }) else { return false };
    let future = poll_fn(move |context| {
        let waker = Box::into_raw(Box::new(context.waker().clone())).cast();
        if owned.poll(waker) { Poll::Ready(Ok(())) } else { Poll::Pending }
    });
    // SAFETY: the engine orders and keeps the memory; nothing is said about what is written, as on a GPU.
    unsafe { stream.enqueue_future(HostFuture::new("work of the library", future)) }.is_ok()
}

/// The double, loaded as NCCL is.
fn library() -> &'static Library {
    static LIBRARY: OnceLock<Library> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        let folder: PathBuf = env::current_exe().unwrap().parent().unwrap().into();
        let path = folder.join("libnccl_double.so");
        // SAFETY: before any thread of the test reads the environment: the lock of the first device is held.
        unsafe { env::set_var("GPUMEM_NCCL", &path) };
        // SAFETY: the double's initialisers have no preconditions.
        let library = unsafe { Library::new(&path) }.unwrap();
        // SAFETY: the function has this type.
        let tell = unsafe { library.get::<extern "C" fn(Platform)>(b"nccl_double_platform\0").unwrap() };
        tell(Platform { current, forget, enqueue });
        library
    })
}

/// Communicators that the library has.
pub(crate) fn alive() -> u64 {
    // SAFETY: the function has this type.
    unsafe { library().get::<extern "C" fn() -> u64>(b"nccl_double_alive\0").unwrap()() }
}

/// Registrations that the library has.
pub(crate) fn registered() -> u64 {
    // SAFETY: the function has this type.
    unsafe { library().get::<extern "C" fn() -> u64>(b"nccl_double_registered\0").unwrap()() }
}

/// A fault, until it is dropped. Tests with faults run one after the other.
pub(crate) struct Planted(Fault);

static ONE: Mutex<()> = Mutex::new(());

/// Keeps tests with faults away.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Plants a fault; the caller is [`alone`].
pub(crate) fn plant(fault: Fault) -> Planted {
    set(fault, true);
    Planted(fault)
}

fn set(fault: Fault, is_on: bool) {
    // SAFETY: the function has this type.
    let plant = unsafe { library().get::<extern "C" fn(Fault, bool)>(b"nccl_double_fault\0").unwrap() };
    plant(fault, is_on);
}

impl Drop for Planted {
    fn drop(&mut self) {
        set(self.0, false);
    }
}

fn open(host: HostOptions) -> Device {
    library();
    let host = host.memory(256 << 20);
    let collective_library = Some(CollectiveLibrary::Nccl);
    let options = DoubleOptions { host, is_packing: true, collective_library, ..DoubleOptions::default() };
    let device = Device::from_raw(Double::open_with(&options).unwrap());
    // Its first memory takes long, which is not to count for the deadlines of tests.
    drop(device.to_device(&[0_u8]).unwrap());
    device
}

pub(crate) fn concurrent() -> Device {
    open(HostOptions::new().workers(2))
}

pub(crate) fn adversarial(seed: u64) -> Device {
    open(HostOptions::new().adversarial(seed))
}

/// Devices for so many ranks: all ranks on one, or each on its own.
pub(crate) fn devices(ranks: usize, seed: Option<u64>) -> Vec<Device> {
    match seed {
        None => vec![concurrent(); ranks],
        Some(seed) if seed % 2 == 0 => vec![adversarial(seed); ranks],
        Some(seed) => (0..ranks as u64).map(|rank| adversarial(seed * 100 + rank)).collect(),
    }
}

/// The numbers of ranks of most tests.
pub(crate) fn counts() -> &'static [usize] {
    COUNTS
}

/// Whether all ranks are in this process.
pub(crate) fn is_in_one_process() -> bool {
    true
}

/// Whether the ranks are added one after the other: then sums that are rounded are known.
pub(crate) fn adds_in_order() -> bool {
    true
}

/// The schedules of most tests.
pub(crate) fn seeds(most: u64) -> impl Iterator<Item = Option<u64>> {
    std::iter::once(None).chain((0..most).map(Some))
}

/// Ranks with a stream each.
pub(crate) fn ranks(count: usize, seed: Option<u64>) -> Vec<(Comm, Stream)> {
    ranks_with(count, seed, &Options::new())
}

pub(crate) fn ranks_with(count: usize, seed: Option<u64>, options: &Options) -> Vec<(Comm, Stream)> {
    let all = Communicator::all_with(&devices(count, seed), options).unwrap();
    all.into_iter()
        .map(|rank| {
            let stream = rank.device().stream().unwrap();
            (rank, stream)
        })
        .collect()
}

pub(crate) fn soon() -> Options {
    Options::new().timeout(Duration::from_secs(2))
}

/// The device as its own double.
pub(crate) fn raw(device: &Device) -> &DoubleDevice {
    device.raw()
}
