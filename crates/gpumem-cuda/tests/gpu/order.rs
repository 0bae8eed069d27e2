//! Events: order between streams, and time.

use crate::{Case, Skip, fixture::Lab};
use gpumem_core::{
    CopyRegion, DeviceBuffer, DriverDevice, ErrorKind, Event, EventOptions, Fill, MemoryKind, Pattern, Space,
    Stream,
};
use gpumem_cuda::{Cuda, CudaExt};
use std::time::Duration;

pub(crate) const CASES: &[Case] = &[
    ("an_event_is_done_when_the_work_before_it_is", done),
    ("a_stream_waits_for_an_event_of_another", waits),
    ("time_is_measured_between_events", elapsed),
    ("waiting_returns_when_the_work_is_done", waiting),
];

fn done(lab: &Lab) -> Result<(), Skip> {
    let stream = lab.stream();
    let event = lab.device.create_event(EventOptions::default()).unwrap();
    // Never recorded: done.
    assert!(event.query().unwrap());
    event.synchronize().unwrap();
    stream.wait(&event).unwrap();
    let gate = lab.close(&stream);
    stream.record(&event).unwrap();
    assert!(!event.query().unwrap());
    gate.open();
    event.synchronize().unwrap();
    assert!(event.query().unwrap());
    event.destroy().unwrap();
    Ok(())
}

fn waits(lab: &Lab) -> Result<(), Skip> {
    let bytes = 1 << 20;
    let (producer, consumer) = (lab.stream(), lab.stream());
    let device = lab.allocate(MemoryKind::Device, bytes);
    let pinned = lab.allocate(MemoryKind::Pinned, bytes);
    let fill = |value| Fill {
        address: device.address(),
        pattern: Pattern::U8(value),
        count: bytes,
        rows: 1,
        pitch: bytes,
    };
    lab.fill(&producer, &fill(1));
    producer.synchronize().unwrap();
    let event = lab.device.create_event(EventOptions::default()).unwrap();
    let gate = lab.close(&producer);
    lab.fill(&producer, &fill(2));
    producer.record(&event).unwrap();
    consumer.wait(&event).unwrap();
    let to = (pinned.host_address().unwrap().as_ptr().expose_provenance() as u64, Space::Host);
    lab.copy(&consumer, &CopyRegion::linear((device.address(), lab.here()), to, bytes));
    // Work that already waits is not affected when the event is recorded again or dropped.
    drop(event);
    assert!(!consumer.query().unwrap());
    gate.open();
    consumer.synchronize().unwrap();
    assert!(pinned.bytes().iter().all(|byte| *byte == 2));
    Ok(())
}

fn elapsed(lab: &Lab) -> Result<(), Skip> {
    let stream = lab.stream();
    let timed = || lab.device.create_event(EventOptions { timing: true }).unwrap();
    let (start, end) = (timed(), timed());
    let invalid = |outcome: gpumem_core::Result<f32>| {
        let error = outcome.unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::InvalidArgument { .. }), "{error}");
    };
    invalid(start.elapsed(&end));
    let untimed = lab.device.create_event(EventOptions::default()).unwrap();
    stream.record(&start).unwrap();
    invalid(start.elapsed(&untimed));
    let gate = lab.close(&stream);
    stream.record(&end).unwrap();
    assert_eq!(start.elapsed(&end).unwrap_err().kind(), &ErrorKind::NotReady);
    std::thread::sleep(Duration::from_millis(30));
    gate.open();
    stream.synchronize().unwrap();
    let milliseconds = start.elapsed(&end).unwrap();
    // The gate was closed for at least that long; how much longer is the machine's affair.
    assert!(milliseconds >= 25.0, "{milliseconds} ms");
    assert!(end.elapsed(&start).unwrap() <= 0.0);
    Ok(())
}

fn waiting(lab: &Lab) -> Result<(), Skip> {
    let stream = lab.stream();
    let spinning = lab.device.create_event(EventOptions::default()).unwrap();
    let blocking = Cuda::create_blocking_event(&lab.device, EventOptions { timing: true }).unwrap();
    for event in [&spinning, &blocking] {
        let gate = lab.close(&stream);
        stream.record(event).unwrap();
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| event.synchronize().map(|()| event.query().unwrap()));
            std::thread::sleep(Duration::from_millis(10));
            assert!(!waiter.is_finished());
            gate.open();
            assert_eq!(waiter.join().unwrap(), Ok(true));
        });
    }
    Ok(())
}
