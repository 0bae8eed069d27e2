//! Recordings: their contents, their files, and their replay.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs, reason = "tests")]

mod random;
mod recording;
mod replaying;
mod simulating;
mod threads;

use gpumem_host::{Host, HostOptions};
use gpumem_runtime::{
    Device,
    memory::named,
    trace::{Trace, TraceEventKind},
};

fn device() -> Device<Host> {
    Device::from_raw(Host::open_with(&HostOptions::new()).unwrap())
}

fn count(trace: &Trace, of: impl Fn(&TraceEventKind) -> bool) -> usize {
    trace.events.iter().filter(|event| of(&event.what)).count()
}

fn is_allocation(what: &TraceEventKind) -> bool {
    matches!(what, TraceEventKind::Allocate { .. })
}

fn is_free(what: &TraceEventKind) -> bool {
    matches!(what, TraceEventKind::Free { .. })
}

/// Makes and drops `count` arrays on each of four threads; each thread keeps one.
fn busy(device: &Device<Host>, count: usize) {
    // All four keep an array before any other is made, so that the peak has them all.
    let started = std::sync::Barrier::new(4);
    std::thread::scope(|scope| {
        for number in 0..4 {
            let started = &started;
            let work = move || {
                let stream = device.stream().unwrap();
                let kept = named("kept", || stream.uninit_array::<u8, _>(1000 + number)).unwrap();
                started.wait();
                for size in 1..=count {
                    drop(stream.uninit_array::<u8, _>(size).unwrap());
                }
                kept
            };
            let worker = std::thread::Builder::new().name(format!("worker {number}"));
            worker.spawn_scoped(scope, move || std::mem::forget(work())).unwrap();
        }
    });
}
