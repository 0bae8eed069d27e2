//! Two devices.

use crate::{
    Case, Skip,
    fixture::{Lab, Numbers},
};
use gpumem_core::{
    Backend, CopyRegion, DeviceBuffer, DeviceSelector, DriverDevice, Endpoint, EventOptions, MappedOptions,
    MemoryKind, Stream,
};
use gpumem_cuda::Cuda;

pub(crate) const CASES: &[Case] = &[
    ("a_device_is_its_own_peer", own),
    ("copies_between_two_devices_match", copies),
    ("portable_memory_is_used_from_two_devices", portable),
    ("a_stream_waits_for_an_event_of_another_device", events),
];

const ONE: Skip = "there is only one device";

fn second(_lab: &Lab) -> Result<Lab, Skip> {
    Cuda::open(&DeviceSelector::ordinal("cuda", 1)).map(Lab::on).map_err(|_| ONE)
}

fn own(lab: &Lab) -> Result<(), Skip> {
    assert!(lab.device.can_access_peer(&lab.device).unwrap());
    for enabled in [true, true, false, false] {
        lab.device.set_peer_access(&lab.device, enabled).unwrap();
    }
    Ok(())
}

/// Runs a check without peer access, and with it where the devices have it. Each setting is made twice.
fn with_and_without(lab: &Lab, other: &Lab, check: impl Fn()) {
    check();
    if lab.device.can_access_peer(&other.device).unwrap() {
        for enabled in [true, false] {
            for _ in 0..2 {
                lab.device.set_peer_access(&other.device, enabled).unwrap();
            }
            check();
        }
    }
}

fn copies(lab: &Lab) -> Result<(), Skip> {
    let other = second(lab)?;
    with_and_without(lab, &other, || {
        let bytes = 1 << 16;
        let (source, destination) =
            (lab.allocate(MemoryKind::Device, bytes), other.allocate(MemoryKind::Device, bytes));
        let data = Numbers(7).bytes(bytes);
        lab.write(source.address(), &data);
        for (width, rows, slices, from, to) in [
            (bytes, 1, 1, [bytes; 2], [bytes; 2]),
            (100, 50, 1, [128, 0], [101, 0]),
            (10, 20, 30, [16, 640], [11, 220]),
            (10, 20, 30, [16, 641], [11, 233]),
        ] {
            for queue in [lab, &other] {
                other.write(destination.address(), &vec![0xEE; bytes]);
                let region = CopyRegion {
                    source: Endpoint { address: source.address(), space: lab.here(), pitch: from },
                    destination: Endpoint { address: destination.address(), space: other.here(), pitch: to },
                    bytes: width,
                    rows,
                    slices,
                };
                let stream = queue.stream();
                queue.copy(&stream, &region);
                stream.synchronize().unwrap();
                let mut expected = vec![0xEE; bytes];
                for (z, y) in (0..slices).flat_map(|z| (0..rows).map(move |y| (z, y))) {
                    let (start, at) = (z * from[1] + y * from[0], z * to[1] + y * to[0]);
                    expected[at..at + width].copy_from_slice(&data[start..start + width]);
                }
                assert!(other.read(destination.address(), bytes) == expected, "{region:?}");
            }
        }
    });
    Ok(())
}

fn portable(lab: &Lab) -> Result<(), Skip> {
    let other = second(lab)?;
    let mut block =
        lab.allocate(MemoryKind::Mapped(MappedOptions { portable: true, write_combined: false }), 4096);
    let data = Numbers(8).bytes(4096);
    block.bytes_mut().copy_from_slice(&data);
    let device = other.allocate(MemoryKind::Device, 4096);
    let stream = other.stream();
    other.copy(
        &stream,
        &CopyRegion::linear((block.address(), other.here()), (device.address(), other.here()), 4096),
    );
    stream.synchronize().unwrap();
    assert_eq!(other.read(device.address(), 4096), data);
    Ok(())
}

fn events(lab: &Lab) -> Result<(), Skip> {
    let other = second(lab)?;
    let (producer, consumer) = (lab.stream(), other.stream());
    let event = lab.device.create_event(EventOptions::default()).unwrap();
    let gate = lab.close(&producer);
    producer.record(&event).unwrap();
    consumer.wait(&event).unwrap();
    assert!(!consumer.query().unwrap());
    gate.open();
    consumer.synchronize().unwrap();
    assert!(producer.query().unwrap());
    Ok(())
}
