//! Thousands of imports leak nothing, and need no new timelines and events.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use gpumem_core::{ErrorKind, RawStream};
use gpumem_host::{Host, HostOptions};
use gpumem_runtime::{
    CudaArrayInterface, Device, ImportedArray, InterchangeStream,
    internal::{Access, Key, Work},
};
use ndarray::{Array1, Ix1};
use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

/// The number of items that the library may keep: Numba's limit, and those of one more import.
const FEW: usize = 14;

/// An owner whose drop can be observed.
struct Owner(Arc<AtomicUsize>);

impl Owner {
    fn new(alive: &Arc<AtomicUsize>) -> Self {
        alive.fetch_add(1, Ordering::SeqCst);
        Self(alive.clone())
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

fn import(device: &Device<Host>, says: &CudaArrayInterface, owner: Owner) -> ImportedArray<f32, Ix1, Host> {
    // SAFETY: the memory outlives every import of these tests.
    unsafe { device.from_cuda_array_interface(says, owner).unwrap() }
}

#[test]
fn owners_are_dropped_without_an_allocation_or_a_flush() {
    let device = Device::<Host>::open("host").unwrap();
    let (array, stream) = (device.to_device(&Array1::from_elem(16, 1f32)).unwrap(), device.stream().unwrap());
    let loan = array.lend(&stream).unwrap();
    let says = loan.describe();
    assert_eq!(says.stream, Some(InterchangeStream::Handle(stream.raw_handle().unwrap()).number()));
    let (alive, mut most) = (Arc::default(), 0);
    let mut events = 0;
    for round in 0..500 {
        if round == 100 {
            events = device.raw().counters().events_created;
        }
        drop(import(&device, &says, Owner::new(&alive)));
        most = most.max(alive.load(Ordering::SeqCst));
    }
    assert!(most <= FEW, "{most} owners were kept");
    let made = device.raw().counters().events_created - events;
    assert!(made <= 8, "{made} events were made for 400 imports, after the first hundred");
    device.flush().unwrap();
    assert_eq!(alive.load(Ordering::SeqCst), 0);
}

#[test]
fn owners_stay_until_pending_reads_are_done() {
    for seed in 0..8 {
        let raw = Host::open_with(&HostOptions::new().adversarial(seed)).unwrap();
        let device = Device::<Host>::from_raw(raw);
        let mut array = device.to_device(&Array1::from_elem(16, 1f32)).unwrap();
        let (theirs, ours) = (device.stream().unwrap(), device.stream().unwrap());
        let says = array.lend(&theirs).unwrap().describe();
        device.synchronize().unwrap();
        let alive = Arc::default();
        // Timelines and events of earlier rounds are reused: none may cover work of a later one.
        for value in 2..40 {
            theirs.fill(&mut array, value as f32).unwrap();
            let taken = import(&device, &says, Owner::new(&alive));
            let copy = ours.to_device(&taken).unwrap();
            drop(taken);
            if value % 3 == 0 {
                assert_eq!(copy.copy_to_host().unwrap(), Array1::from_elem(16, value as f32));
            }
        }
        device.flush().unwrap();
        assert_eq!(alive.load(Ordering::SeqCst), 0);
    }
}

#[test]
fn a_closed_device_is_released() {
    let (memory, alive) = (vec![1f32; 16], Arc::default());
    let raw = {
        let device = Device::<Host>::from_raw(Host::open_with(&HostOptions::new()).unwrap());
        let array = device.to_device(&Array1::from(memory)).unwrap();
        let stream = device.stream().unwrap();
        let says = array.lend(&stream).unwrap().describe();
        for _ in 0..100 {
            drop(import(&device, &says, Owner::new(&alive)));
        }
        device.flush().unwrap();
        device.raw().clone()
    };
    // A thread of the library frees the rest.
    let start = std::time::Instant::now();
    while (raw.counters().events, raw.counters().live_allocations) != (0, 0) {
        assert!(start.elapsed().as_secs() < 20, "{:?}", raw.counters());
        std::thread::yield_now();
    }
    assert_eq!(alive.load(Ordering::SeqCst), 0);
}

#[test]
fn the_two_sides_of_a_copy_are_compared_without_a_second_handle_too() {
    let device = Device::<Host>::open("host").unwrap();
    let (array, stream) = (device.to_device(&[0u32; 16]).unwrap(), device.stream().unwrap());
    // SAFETY: nothing is enqueued with it.
    let key = unsafe { Key::new() };
    let memory = array.place_by(key).memory;
    let admitted = |work, read, written| {
        let accesses = [Access::read(memory, read), Access::write(memory, written)];
        stream.timeline_by(key).admit(work, "copy", &accesses).map(drop)
    };
    for apart in [(0..32, 32..64), (32..64, 0..32)] {
        admitted(Work::Transfer, apart.0, apart.1).unwrap();
    }
    for together in [(0..32, 28..64), (28..64, 0..32), (0..64, 8..9), (0..64, 0..64)] {
        let error = admitted(Work::Transfer, together.0, together.1).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Overlap { .. }), "{error}");
    }
}

/// Two allocations share bytes where memory of the caller was wrapped twice, and where one is an array of the library's.
#[test]
fn memory_that_two_allocations_name_is_compared_by_its_bytes() {
    let device = Device::<Host>::open("host").unwrap();
    let (array, stream) = (device.to_device(&[0f32; 16]).unwrap(), device.stream().unwrap());
    let says = array.lend(&stream).unwrap().describe();
    let alive = Arc::default();
    let middle = CudaArrayInterface { shape: vec![8], data: (says.data.0 + 16, false), ..says.clone() };
    let wrapped = |says| import(&device, says, Owner::new(&alive));
    let (whole, middle) = (wrapped(&says), wrapped(&middle));
    // SAFETY: nothing is enqueued with it.
    let key = unsafe { Key::new() };
    let (own, whole, middle) =
        (array.place_by(key).memory, whole.place_by(key).memory, middle.place_by(key).memory);
    assert!(own.is_owned() && !whole.is_owned() && !middle.is_owned());
    for outer in [own, whole] {
        for (written, read) in [(true, false), (false, true), (true, true)] {
            let admitted = |a, b| {
                let access = |memory, extent, write| match write {
                    true => Access::write(memory, extent),
                    false => Access::read(memory, extent),
                };
                let accesses = [access(outer, a, written), access(middle, b, read)];
                stream.timeline_by(key).admit(Work::Foreign, "copy", &accesses).map(drop)
            };
            for together in [(0..64, 0..32), (16..20, 0..4), (44..64, 28..32), (0..20, 0..4)] {
                let error = admitted(together.0, together.1).unwrap_err();
                assert!(matches!(error.kind(), ErrorKind::Overlap { .. }), "{error}");
            }
            for apart in [(0..16, 0..32), (48..64, 0..32), (0..64, 8..8), (24..24, 0..32), (16..20, 4..32)] {
                admitted(apart.0, apart.1).unwrap();
            }
        }
    }
}

#[test]
fn streams_that_do_not_exist_are_refused() {
    let device = Device::<Host>::open("host").unwrap();
    let array = device.to_device(&Array1::from_elem(16, 1f32)).unwrap();
    // SAFETY: the host backend looks for the stream, and there is none.
    let lent = unsafe { array.lend_to_handle(InterchangeStream::Handle(RawStream(u64::MAX - 7))) };
    assert!(matches!(lent.unwrap_err().kind(), ErrorKind::InvalidArgument { .. }));
}

/// A handle is that of a stream that was alive when the loan began: what keeps no stream names none to an import.
#[test]
fn a_loan_names_no_stream_that_it_does_not_keep() {
    let device = Device::<Host>::open("host").unwrap();
    let array = device.to_device(&Array1::from_elem(16, 1f32)).unwrap();
    let stream = device.stream().unwrap();
    let handle = InterchangeStream::Handle(stream.raw_handle().unwrap());
    // SAFETY: the stream is alive.
    let loan = unsafe { array.lend_to_handle(handle) }.unwrap();
    assert_eq!(loan.describe().stream, Some(handle.number()));
    drop(stream);
    device.flush().unwrap();
    let shared = device.as_cuda_array::<f32, Ix1, _>(loan).unwrap();
    assert_eq!(shared.copy_to_host().unwrap(), Array1::from_elem(16, 1f32));
}
