//! What destructors of a thread's own variables do with the library, after the library's variables of that thread are gone.

use gpumem::{
    Device, Stream,
    kernel::{In, InOut, config_for_items, prelude::*},
    memory,
};
use std::{cell::RefCell, sync::mpsc};

#[gpumem::kernel]
fn increment(x: Slice<u32>, y: Own<u32>) {
    let i = global_id(0);
    if i < y.len() {
        y[own()] = x[i] + 1;
    }
}

#[gpumem::kernel]
fn together(y: Own<u32>) {
    let sum = wave_sum(1u32);
    barrier(Local);
    y[own()] = sum;
}

type Work = fn(&Device, &Stream) -> gpumem::Result<()>;

/// What is to run, and who is told of its end.
struct Job {
    device: Device,
    stream: Stream,
    work: Work,
    report: mpsc::Sender<Result<(), String>>,
}

/// Runs its job when the thread that it belongs to ends.
struct Late(Option<Job>);

impl Drop for Late {
    fn drop(&mut self) {
        let Some(Job { device, stream, work, report }) = self.0.take() else { return };
        report.send(work(&device, &stream).map_err(|error| error.to_string())).unwrap();
    }
}

thread_local! {
    static LATE: RefCell<Late> = const { RefCell::new(Late(None)) };
}

/// What `work` returns at the end of a thread on which it has run before.
fn at_the_end(work: Work) -> Result<(), String> {
    let (report, outcome) = mpsc::channel();
    let thread = std::thread::spawn(move || {
        // The first variable of the thread: its destructor is the last to run.
        LATE.with_borrow_mut(|_| ());
        let device = Device::open("host").unwrap();
        let stream = device.stream().unwrap();
        let early = work(&device, &stream).map_err(|error| error.to_string());
        LATE.with_borrow_mut(|late| late.0 = Some(Job { device, stream, work, report }));
        early
    });
    let early = thread.join().unwrap();
    let late = outcome.recv().unwrap();
    assert_eq!(early, late);
    late
}

#[test]
fn a_launch_runs_in_a_destructor_of_a_thread_local() {
    let launch: Work = |device, stream| {
        let mut y = vec![0; 1000];
        let arguments = (In(&vec![1; 1000]), InOut(&mut y));
        increment().load(device)?.launch(stream, &config_for_items(1000, 64), arguments)?;
        assert_eq!(y, vec![2; 1000]);
        let mut sums = vec![0; 64];
        together().load(device)?.launch(stream, &config_for_items(64, 64), (InOut(&mut sums),))
    };
    assert_eq!(at_the_end(launch), Ok(()));
}

#[test]
fn a_fault_is_reported_in_a_destructor_of_a_thread_local() {
    let fault: Work = |device, stream| {
        let mut y = vec![0; 64];
        let arguments = (In(&[1]), InOut(&mut y));
        increment().load(device)?.launch(stream, &config_for_items(64, 64), arguments)
    };
    assert!(at_the_end(fault).unwrap_err().contains("uses index [1] of an array of shape [1]"));
}

#[test]
fn allocations_have_a_name_in_a_destructor_of_a_thread_local() {
    let allocate: Work = |device, _| {
        let array = memory::named("late", || device.to_device(&[1, 2, 3]))?;
        let report = device.memory_report()?;
        assert!(report.holders.iter().any(|holder| holder.name == "late"));
        drop(array);
        Ok(())
    };
    assert_eq!(at_the_end(allocate), Ok(()));
}
