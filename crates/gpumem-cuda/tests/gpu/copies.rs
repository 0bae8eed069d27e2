//! Copies against loops of the host.

use crate::{
    Case, Skip,
    fixture::{Block, Lab, Numbers, host},
};
use gpumem_core::{Attach, CopyRegion, DeviceBuffer, DriverDevice, Endpoint, MemoryKind, Space, Stream};

pub(crate) const CASES: &[Case] = &[
    ("copies_of_every_direction_and_shape_match_loops_of_the_host", shapes),
    ("large_copies_match", large),
    ("single_lines_of_page_locked_memory_arrive_in_their_places", lines),
    ("copies_on_the_host_run_in_the_streams_order", host_to_host),
    ("a_copy_of_pinned_memory_does_not_wait", asynchronous),
];

/// A place for one side of a copy.
enum Place {
    Pageable(Vec<u8>),
    Block(Block, Space),
}

impl Place {
    fn all(lab: &Lab, bytes: usize) -> Vec<(&'static str, Self)> {
        let mut places = vec![
            ("pageable", Self::Pageable(vec![0; bytes])),
            ("pinned", Self::Block(lab.allocate(MemoryKind::Pinned, bytes), Space::Host)),
            ("device", Self::Block(lab.allocate(MemoryKind::Device, bytes), lab.here())),
        ];
        if lab.device.capabilities().managed {
            let managed = lab.allocate(MemoryKind::Managed(Attach::Global), bytes);
            places.push(("managed", Self::Block(managed, lab.here())));
        }
        places
    }

    fn end(&mut self, offset: usize, pitch: [usize; 2]) -> Endpoint {
        let (address, space) = match self {
            Self::Pageable(array) => (host(array.as_mut_ptr()), Space::Host),
            Self::Block(block, space) => (block.address(), *space),
        };
        Endpoint { address: address + offset as u64, space, pitch }
    }

    fn put(&mut self, lab: &Lab, data: &[u8]) {
        match self {
            Self::Pageable(array) => array.copy_from_slice(data),
            Self::Block(block, Space::Host) => block.bytes_mut().copy_from_slice(data),
            Self::Block(block, _) => lab.write(block.address(), data),
        }
    }

    fn get(&self, lab: &Lab) -> Vec<u8> {
        match self {
            Self::Pageable(array) => array.clone(),
            Self::Block(block, Space::Host) => block.bytes().to_vec(),
            Self::Block(block, _) => lab.read(block.address(), block.len()),
        }
    }
}

fn shapes(lab: &Lab) -> Result<(), Skip> {
    const BYTES: usize = 1 << 13;
    let stream = lab.stream();
    let mut numbers = Numbers(1);
    let (mut sources, mut destinations) = (Place::all(lab, BYTES), Place::all(lab, BYTES));
    let data = numbers.bytes(BYTES);
    sources.iter_mut().for_each(|(_, place)| place.put(lab, &data));
    let (mut dimensions, mut uneven) = ([0; 4], 0);
    for _ in 0..40 {
        let (bytes, rows, slices) = (1 + numbers.below(40), 1 + numbers.below(8), 1 + numbers.below(5));
        let mut pitch = || {
            let row = bytes + [0, 0, 1, 7, 24][numbers.below(5)];
            [row, row * rows + [0, row, 2 * row, 5, 3 * row + 1][numbers.below(5)]]
        };
        let (from, to) = (pitch(), pitch());
        let (from_offset, to_offset) = (numbers.below(64), numbers.below(64));
        uneven += usize::from(rows > 1 && slices > 1 && from[1] % from[0] != 0);
        let mut expected = vec![0xEE; BYTES];
        for (z, y) in (0..slices).flat_map(|z| (0..rows).map(move |y| (z, y))) {
            let (at, start) = (to_offset + z * to[1] + y * to[0], from_offset + z * from[1] + y * from[0]);
            expected[at..at + bytes].copy_from_slice(&data[start..start + bytes]);
        }
        for (from_name, source) in &mut sources {
            for (to_name, destination) in &mut destinations {
                destination.put(lab, &[0xEE; BYTES]);
                let (source, target) = (source.end(from_offset, from), destination.end(to_offset, to));
                let region = CopyRegion { source, destination: target, bytes, rows, slices };
                dimensions[region.dimensions() as usize] += 1;
                lab.copy(&stream, &region);
                stream.synchronize().unwrap();
                assert!(destination.get(lab) == expected, "{from_name} to {to_name}: {region:?}");
            }
        }
    }
    assert!(dimensions[1..].iter().all(|count| *count > 0) && uneven > 3, "{dimensions:?} {uneven}");
    Ok(())
}

fn large(lab: &Lab) -> Result<(), Skip> {
    let bytes = (64 << 20) + 13;
    let stream = lab.stream();
    let data = Numbers(2).bytes(bytes);
    for source in ["pageable", "pinned"] {
        let mut places = Place::all(lab, bytes);
        places.retain(|(name, _)| *name == source || *name == "device");
        let [(_, from), (_, to)] = &mut places[..] else { panic!("two places") };
        from.put(lab, &data);
        let pitch = [bytes, bytes];
        let (up, down) = (from.end(0, pitch), to.end(0, pitch));
        lab.copy(&stream, &CopyRegion { source: up, destination: down, bytes, rows: 1, slices: 1 });
        stream.synchronize().unwrap();
        from.put(lab, &vec![0; bytes]);
        lab.copy(&stream, &CopyRegion { source: down, destination: up, bytes, rows: 1, slices: 1 });
        stream.synchronize().unwrap();
        assert!(from.get(lab) == data, "{source}");
    }
    Ok(())
}

/// Cache lines out of every two or three: many enough for the copy to be done in turns, and not.
fn lines(lab: &Lab) -> Result<(), Skip> {
    const LINE: usize = 64;
    let stream = lab.stream();
    for (rows, pitch, target_pitch) in [
        (1 << 19, 128, 64),
        (1 << 19, 128, 80),
        ((1 << 19) + 1, 128, 64),
        (1 << 19, 192, 64),
        (1 << 10, 128, 64),
    ] {
        let data = Numbers(3).bytes(rows * pitch);
        let (mut from, to) = (
            lab.allocate(MemoryKind::Pinned, data.len()),
            lab.allocate(MemoryKind::Device, rows * target_pitch),
        );
        from.bytes_mut().copy_from_slice(&data);
        lab.write(to.address(), &vec![0xEE; rows * target_pitch]);
        let end = |address, space, pitch| Endpoint { address, space, pitch: [pitch, rows * pitch] };
        let (source, destination) =
            (end(from.address(), Space::Host, pitch), end(to.address(), lab.here(), target_pitch));
        lab.copy(&stream, &CopyRegion { source, destination, bytes: LINE, rows, slices: 1 });
        stream.synchronize().unwrap();
        let found = lab.read(to.address(), rows * target_pitch);
        for (line, (row, expected)) in found.chunks(target_pitch).zip(data.chunks(pitch)).enumerate() {
            assert!(row[..LINE] == expected[..LINE], "line {line} of {rows}, {pitch} to {target_pitch}");
            assert!(row[LINE..].iter().all(|byte| *byte == 0xEE), "after line {line} of {rows}");
        }
    }
    Ok(())
}

fn host_to_host(lab: &Lab) -> Result<(), Skip> {
    let stream = lab.stream();
    let bytes = 1 << 16;
    let device = lab.allocate(MemoryKind::Device, bytes);
    let (middle, end) = (lab.allocate(MemoryKind::Pinned, bytes), lab.allocate(MemoryKind::Pinned, bytes));
    let data = Numbers(3).bytes(bytes);
    lab.write(device.address(), &data);
    let gate = lab.close(&stream);
    let [first, second] =
        [&middle, &end].map(|block| (host(block.host_address().unwrap().as_ptr()), Space::Host));
    lab.copy(&stream, &CopyRegion::linear((device.address(), lab.here()), first, bytes));
    // A copy on the host may keep the caller waiting, so another thread opens the gate.
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(std::time::Duration::from_millis(20));
            gate.open();
        });
        lab.copy(&stream, &CopyRegion::linear(first, second, bytes));
    });
    stream.synchronize().unwrap();
    assert!(end.bytes() == data);
    Ok(())
}

fn asynchronous(lab: &Lab) -> Result<(), Skip> {
    let stream = lab.stream();
    let bytes = 4 << 20;
    let device = lab.allocate(MemoryKind::Device, bytes);
    let mut pinned = lab.allocate(MemoryKind::Pinned, bytes);
    let back = lab.allocate(MemoryKind::Pinned, bytes);
    let data = Numbers(4).bytes(bytes);
    pinned.bytes_mut().copy_from_slice(&data);
    let [from, to] =
        [&pinned, &back].map(|block| (host(block.host_address().unwrap().as_ptr()), Space::Host));
    let gate = lab.close(&stream);
    lab.copy(&stream, &CopyRegion::linear(from, (device.address(), lab.here()), bytes));
    lab.copy(&stream, &CopyRegion::linear((device.address(), lab.here()), to, bytes));
    assert!(!stream.query().unwrap(), "the copies returned before the work before them was done");
    gate.open();
    stream.synchronize().unwrap();
    assert!(stream.query().unwrap() && back.bytes() == data);
    Ok(())
}
