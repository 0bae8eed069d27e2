//! Work that is enqueued whatever context is current on the thread: none, another one of the device, its own, and
//! another device's. The current context stays current.

use crate::{
    Case, Skip,
    fixture::{Lab, current_context, host},
};
use cudarc::driver::sys;
use gpumem_core::{
    Backend, CopyRegion, DeviceBuffer, DeviceSelector, DriverDevice, Event, EventOptions, Fill,
    KernelArguments, LaunchConfig, MemoryKind, Pattern, Space, Stream, StreamKind, StreamOptions,
};
use gpumem_cuda::{CUcontext, Cuda, CudaExt};
use std::ptr::null_mut;

pub(crate) const CASES: &[Case] = &[
    ("events_order_streams_with_any_current_context", events),
    ("copies_fills_and_launches_work_with_any_current_context", work),
];

/// Runs `body` with each context current in turn, on a thread that has had none.
fn with_each(lab: &Lab, body: impl Fn(u8, &dyn Fn(&dyn Fn())) + Sync) {
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut other = null_mut();
            let mut current: Vec<CUcontext> = vec![null_mut(), Cuda::context(&lab.device)];
            if let Ok(second) = Cuda::open(&DeviceSelector::ordinal("cuda", 1)) {
                // Devices stay open, and their contexts with them.
                current.push(Cuda::context(&second));
            }
            let run = |value: usize, current: CUcontext| {
                body(value as u8 + 1, &|act| {
                    // SAFETY: the context is alive; the test sets none but these.
                    unsafe { sys::cuCtxSetCurrent(current).result().unwrap() };
                    act();
                    assert_eq!(current_context(), current);
                    // SAFETY: as above.
                    unsafe { sys::cuCtxSetCurrent(null_mut()).result().unwrap() };
                });
            };
            current.iter().enumerate().for_each(|(value, current)| run(value, *current));
            // SAFETY: a place for a handle. The new context is current afterwards, which is undone.
            unsafe {
                sys::cuCtxCreate_v2(&mut other, 0, 0).result().unwrap();
                sys::cuCtxSetCurrent(null_mut()).result().unwrap();
            }
            run(current.len(), other);
            // SAFETY: this test owns it and no longer uses it.
            unsafe { sys::cuCtxDestroy_v2(other).result().unwrap() };
        });
    });
}

/// The mark is reached on the stream that it was put on.
fn events(lab: &Lab) -> Result<(), Skip> {
    let named = StreamOptions { kind: StreamKind::Legacy, ..StreamOptions::default() };
    let named = lab.device.create_stream(&named).unwrap();
    with_each(lab, |_, with| {
        let (producer, consumer) = (lab.stream(), lab.stream());
        let events: Vec<_> =
            (0..3).map(|_| lab.device.create_event(EventOptions::default()).unwrap()).collect();
        let gate = lab.close(&producer);
        with(&|| {
            producer.record(&events[0]).unwrap();
            consumer.wait(&events[0]).unwrap();
            consumer.record(&events[1]).unwrap();
            named.record(&events[2]).unwrap();
            assert!(!events[0].query().unwrap(), "the event comes after a closed gate");
            assert!(!events[1].query().unwrap(), "the other stream has not waited");
        });
        drop(gate);
        consumer.synchronize().unwrap();
        events[2].synchronize().unwrap();
        assert!(events.iter().all(|event| event.query().unwrap()));
    });
    Ok(())
}

const BYTES: usize = 1000;

/// Enqueues an upload, a copy, a fill, a kernel and a download after the stream's earlier work.
fn through(lab: &Lab, value: u8, with: &dyn Fn(&dyn Fn()), first: u64) {
    let text = "extern \"C\" __global__ void more(unsigned char* data, unsigned int count) {
        unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i < count) data[i] += 1;
    }";
    let more = lab.kernel(text, "more");
    let stream = lab.stream();
    let mut source = lab.allocate(MemoryKind::Pinned, BYTES);
    source.bytes_mut().fill(value);
    let second = lab.allocate(MemoryKind::Device, BYTES);
    let target = lab.allocate(MemoryKind::Pinned, BYTES);
    let gate = lab.close(&stream);
    let ends = [
        (host(source.bytes().as_ptr()), Space::Host),
        (first, lab.here()),
        (second.address(), lab.here()),
        (host(target.bytes().as_ptr()), Space::Host),
    ];
    with(&|| {
        let copy = |pair: &[(u64, Space)]| lab.copy(&stream, &CopyRegion::linear(pair[0], pair[1], BYTES));
        ends[..3].windows(2).for_each(copy);
        let pattern = Pattern::U8(0x40 + value);
        lab.fill(&stream, &Fill { address: second.address(), pattern, count: 10, rows: 1, pitch: 0 });
        let arguments = KernelArguments::new().with(second.address()).with(BYTES as u32);
        lab.launch(&stream, &more, LaunchConfig::linear(4, 256), &arguments);
        copy(&ends[2..]);
        assert!(!stream.query().unwrap(), "the work comes after a closed gate");
    });
    drop(gate);
    stream.synchronize().unwrap();
    assert_eq!(target.bytes()[..10], [0x41 + value; 10]);
    assert_eq!(target.bytes()[10..], [value + 1; BYTES - 10]);
    // Ordinary memory, both ways.
    let data = [value ^ 0x80; BYTES];
    with(&|| {
        lab.write(first, &data);
        assert_eq!(lab.read(first, BYTES), data);
    });
}

fn work(lab: &Lab) -> Result<(), Skip> {
    with_each(lab, |value, with| {
        let first = lab.allocate(MemoryKind::Device, BYTES);
        through(lab, value, with, first.address());
    });
    Ok(())
}
