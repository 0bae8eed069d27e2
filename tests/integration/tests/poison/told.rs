//! Who is told of a failure: every call that waits for the work, each time, and a stream's `synchronize` once.

use super::{One, common::host};
use gpumem_core::Result;
use gpumem_host::{Host, HostOptions};
use gpumem_kernel::{Kernel, KernelDef, WorkItemIds, config_for_items};
use gpumem_runtime::{Completion, Device, DeviceArray, Event, Stream};
use ndarray::Ix1;
use std::{
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
