//! Work on a stream that another library captures is refused before anything of it is enqueued: it would run when that library
//! launches its graph, with whatever lies there by then.
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use common::packing_double;
use gpumem::prelude::ArrayOps;
use gpumem_core::{ErrorKind, LaunchConfig, MemoryKind, Result};
use gpumem_host::HostOptions;
use gpumem_integration::{fill, of_constants};
use gpumem_kernel::{In, InOut, Out, config_for_items};
use gpumem_runtime::{Device, DeviceArray, Graph, RawAccess, ReadForm, Stream, WriteForm, reads, writes};
use host_double::{Double, DoubleDevice};
use ndarray::{Array1, Ix1, s};

/// More elements than a sum adds up in one pass.
const LEN: usize = 40_000;

type Array = DeviceArray<u32, Ix1, Double>;
type Forms = (ReadForm<u32, Ix1>, WriteForm<u32, Ix1>);
type Operation = fn(&mut Place) -> Result<()>;

struct Place {
    device: Device<Double>,
    raw: DoubleDevice,
    stream: Stream<Double>,
    array: Array,
    other: Array,
    graph: Graph<Forms, (), Double>,
}

fn dims() -> LaunchConfig {
    config_for_items([LEN, 1, 1], [256, 1, 1])
}

/// What is tried, by name.
const OPERATIONS: &[(&str, Operation)] = &[
    ("fill", |p| p.stream.fill(&mut p.array, 4)),
    ("zeros", |p| p.stream.device_array::<u32, _>(LEN).map(drop)),
    ("copy", |p| p.stream.copy_to_device(&mut p.other, &p.array).map(drop)),
    ("strided copy", |p| {
        p.stream.copy_to_device(&mut p.other.slice_mut(s![..10])?, &p.array.slice(s![..20; 2])?).map(drop)
    }),
    ("copy to a new array", |p| p.stream.to_device(&p.array).map(drop)),
    ("upload", |p| p.stream.copy_to_device(&mut p.array, &vec![4; LEN]).map(drop)),
    ("short upload", |p| p.stream.copy_to_device(&mut p.array.slice_mut(s![..5])?, &[4; 5]).map(drop)),
    ("download", |p| p.stream.copy_to_host(&p.array).map(drop)),
    ("packed download", |p| p.stream.copy_to_host(&p.array.slice(s![..;2])?).map(drop)),
    ("kernel", |p| fill().load(&p.device)?.launch(&p.stream, &dims(), (&mut p.array, 4))),
    ("kernel of constants", |p| {
        let kernel = of_constants(|| ()).load(&p.device)?;
        kernel.launch(&p.stream, &config_for_items([1, 1, 1], [1, 1, 1]), (In(&[4_u32]), &mut p.array))
    }),
    ("kernel for the host", |p| {
        let mut host = Array1::zeros(LEN);
        fill().load(&p.device)?.launch(&p.stream, &dims(), (Out(&mut host), 4))
    }),
    ("kernel from and to the host", |p| {
        let mut host = Array1::zeros(LEN);
        fill().load(&p.device)?.launch(&p.stream, &dims(), (InOut(&mut host), 4))
    }),
    ("kernel in a scope of mapped memory", |p| {
        let mut host = Array1::zeros(LEN);
        let kernel = fill().load(&p.device)?;
        p.device.mapped([host.view_mut()], |[mapped]| {
            kernel.launch(&p.stream, &dims(), (&mut mapped.device_view_mut(), 4))
        })?
    }),
    ("sum", |p| p.array.on(&p.stream).sum().map(drop)),
    ("graph", |p| p.graph.launch(&p.stream, (&p.array, &mut p.other))),
    ("loan", |p| p.array.lend_mut(&p.stream).map(drop)),
    ("work of others", |p| {
        let accesses = [RawAccess::write(&mut p.array)];
        // SAFETY: the body does nothing.
        unsafe { p.stream.raw_scope(&accesses, |_| ()) }
    }),
];

fn new() -> Place {
    let (device, raw) = packing_double(HostOptions::new());
    let stream = device.stream().unwrap();
    let forms = (reads::<u32, _>(LEN), writes::<u32, _>(LEN));
    let graph = device.record(forms, |stream, (from, mut to)| stream.copy_to_device(&mut to, &from)).unwrap();
    let arrays = [7, 8].map(|value| device.to_device(&vec![value; LEN]).unwrap());
    let [array, other] = arrays;
    device.synchronize().unwrap();
    Place { device, raw, stream, array, other, graph }
}

#[test]
fn nothing_is_enqueued_on_a_captured_stream() {
    for (name, operation) in OPERATIONS {
        let mut place = new();
        // What is made once is there already.
        operation(&mut place).unwrap();
        place.array.fill(7).unwrap();
        place.other.fill(8).unwrap();
        place.device.synchronize().unwrap();
        let before = place.device.counters();
        place.raw.set_capturing(true);
        let error = operation(&mut place).expect_err(name);
        place.raw.set_capturing(false);
        let after = place.device.counters();
        assert!(
            matches!(error.kind(), ErrorKind::Unsupported { what } if what.contains("captures")),
            "{name}: {error}"
        );
        let calls = [after.copies, after.fills, after.records, after.waits];
        assert_eq!(calls, [before.copies, before.fills, before.records, before.waits], "{name}");
        // It has left nothing behind: neither in the arrays nor in what other streams wait for.
        let other = place.device.stream().unwrap();
        other.fill(&mut place.array.slice_mut(s![..1]).unwrap(), 7).unwrap();
        assert!(place.array.copy_to_host().unwrap().iter().all(|element| *element == 7), "{name}");
        assert!(place.other.copy_to_host().unwrap().iter().all(|element| *element == 8), "{name}");
        operation(&mut place).unwrap();
        place.device.synchronize().unwrap();
        assert_eq!(place.device.take_errors(), [], "{name}");
    }
}

/// Nothing may wait for it during the capture; afterwards all can.
#[test]
fn what_a_captured_stream_has_used_is_freed_after_the_capture() {
    let (device, raw) = packing_double(HostOptions::new());
    let driver = device.driver_memory();
    device.set_memory_resource(MemoryKind::Device, driver.clone()).unwrap();
    let stream = device.stream().unwrap();
    // Others have the handle, and may capture the stream.
    stream.raw_handle().unwrap();
    let mut array = device.device_array::<u32, _>(LEN).unwrap();
    let allocated = || driver.statistics().allocated;
    let before = allocated();
    stream.fill(&mut array, 4).unwrap();
    raw.set_capturing(true);
    drop(array);
    device.flush().unwrap();
    assert_eq!((device.pending_frees().0, allocated()), (1, before));
    raw.set_capturing(false);
    device.flush().unwrap();
    assert_eq!((device.pending_frees().0, allocated()), (0, before - 4 * LEN));
    assert_eq!(device.take_errors(), []);
}

/// A borrower's stream is made to wait for work on what it has borrowed, which a captured one cannot.
#[test]
fn nothing_is_enqueued_on_memory_whose_borrower_is_captured() {
    let Place { device, raw, stream, mut array, mut other, .. } = new();
    let borrower = device.stream().unwrap();
    let loan = array.lend(&borrower).unwrap();
    let write_loan = other.lend_mut(&borrower).unwrap();
    device.synchronize().unwrap();
    let before = device.counters();
    raw.capture_only(borrower.raw_handle().unwrap());
    let mut has_run = false;
    let copy = stream.copy_to_host(&array).map(drop);
    let fill = stream.fill(&mut array, 4);
    // SAFETY: the body enqueues nothing.
    let by_others = unsafe { stream.raw_scope(&[RawAccess::write(&mut other)], |_| has_run = true) };
    raw.set_capturing(false);
    for (name, result) in [("copy", copy), ("fill", fill), ("work of others", by_others)] {
        let error = result.expect_err(name);
        assert!(
            matches!(error.kind(), ErrorKind::Unsupported { what } if what.contains("captures")),
            "{name}: {error}"
        );
    }
    assert!(!has_run);
    let after = device.counters();
    let calls = [after.copies, after.fills, after.records, after.waits];
    assert_eq!(calls, [before.copies, before.fills, before.records, before.waits]);
    drop((loan, write_loan));
    assert!(array.copy_to_host().unwrap().iter().all(|element| *element == 7));
    assert!(other.copy_to_host().unwrap().iter().all(|element| *element == 8));
    assert_eq!(device.take_errors(), []);
}
