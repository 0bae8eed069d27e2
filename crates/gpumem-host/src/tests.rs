//! What a worker that has ended leaves to others. Here its time without work is short.
#![allow(clippy::unwrap_used, reason = "tests")]

use crate::{Device, Host, HostOptions, Kernel, Stream};
use gpumem_core::{
    DriverDevice as _, DriverModule as _, Event as _, EventOptions, HostFunction, KernelArguments,
    KernelSource, LaunchConfig, Result, Stream as _, StreamOptions,
};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;

fn kernel(device: &Device, body: impl Fn() + Send + Sync + 'static) -> Result<Kernel> {
    let body = HostFunction::new(move |_| {
        body();
        Ok(())
    });
    device.compile(&KernelSource::Host(vec![("body".into(), body)]), &Default::default())?.kernel("body")
}

fn launch(stream: &Stream, kernel: &Kernel) -> Result<()> {
    // SAFETY: the kernels take no arguments.
    unsafe { stream.launch(kernel, &LaunchConfig::linear(1, 1), &KernelArguments::new()) }
}

/// The stream waits for work of another device, whose only worker is held, while its own device has no worker left.
#[test]
fn a_query_runs_no_kernel_while_workers_have_ended() {
    let open = || Host::open_with(&HostOptions::new().workers(1).brief_bytes(0)).unwrap();
    let (here, there) = (open(), open());
    let streams = [&here, &there, &there].map(|device| device.create_stream(&StreamOptions::default()));
    let [waiting, late, held] = streams.map(Result::unwrap);
    let (go, gate) = mpsc::channel::<()>();
    let (begun, has_begun) = mpsc::channel::<()>();
    let gate = Mutex::new((gate, begun));
    let hold = move || {
        let gate = gate.lock().unwrap();
        gate.1.send(()).unwrap();
        gate.0.recv().unwrap();
    };
    launch(&held, &kernel(&there, hold).unwrap()).unwrap();
    has_begun.recv().unwrap();
    let ran_by = Arc::new(Mutex::new(None));
    let tell = Arc::clone(&ran_by);
    let body = move || *tell.lock().unwrap() = Some(thread::current().id());
    launch(&late, &kernel(&there, body).unwrap()).unwrap();
    let mark = there.create_event(EventOptions::default()).unwrap();
    late.record(&mark).unwrap();
    waiting.wait(&mark).unwrap();
    while here.counters().workers > 0 {
        thread::yield_now();
    }
    // With as much stack as kernels need.
    thread::scope(|scope| {
        let asking = thread::Builder::new().stack_size(64 << 20).spawn_scoped(scope, || {
            assert!(!waiting.query().unwrap() && !late.query().unwrap() && !mark.query().unwrap());
            assert_eq!(*ran_by.lock().unwrap(), None, "a query has run a kernel");
            go.send(()).unwrap();
            while !waiting.query().unwrap() {
                thread::yield_now();
            }
            assert_ne!(ran_by.lock().unwrap().unwrap(), thread::current().id());
        });
        asking.unwrap().join().unwrap();
    });
}
