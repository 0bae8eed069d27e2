//! Copies and fills against naive loops.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod common;

use common::*;
use gpumem_core::{CopyRegion, DeviceBuffer, Fill, Pattern, Space, Stream as _, StridedCopy};
use gpumem_host::{Device, Stream};
use proptest::prelude::*;

const CASES: u32 = if cfg!(miri) { 4 } else { 128 };

fn numbered(length: usize) -> Vec<u8> {
    (0..length).map(|index| (index * 131 + index / 251) as u8).collect()
}

/// Under both schedules, because copies are whole in one and torn in the other.
fn both(check: impl Fn(&Device, &Stream)) {
    for device in [concurrent(), adversarial(5)] {
        check(&device, &stream(&device));
    }
}

/// A layout: for each axis its length and a stride of either sign, none overlapping, and how far it reaches below and
/// above its first element.
#[derive(Debug, Clone)]
struct Layout {
    strides: Vec<isize>,
    below: usize,
    above: usize,
}

/// Lays axes out in the order of `order`, with `gaps` items between, reversed where `back` says so.
fn layout(shape: &[usize], item: usize, order: &[usize], gaps: &[usize], back: &[bool]) -> Layout {
    let mut strides = vec![0; shape.len()];
    let (mut step, mut below, mut above) = (item, 0, item);
    for (&axis, gap) in order.iter().zip(gaps) {
        let reach = step * (shape[axis] - 1);
        if back[axis] {
            strides[axis] = -(step as isize);
            below += reach;
        } else {
            strides[axis] = step as isize;
            above += reach;
        }
        step = (step * shape[axis]).max(item) + gap * item;
    }
    Layout { strides, below, above }
}

#[derive(Debug, Clone)]
struct Case {
    item: usize,
    shape: Vec<usize>,
    source: Layout,
    destination: Layout,
}

fn case() -> impl Strategy<Value = Case> {
    let item = prop::sample::select(vec![1usize, 2, 3, 4, 8, 12, 16, 24]);
    let shape = prop::collection::vec(prop_oneof![1usize..5, 30usize..70], 0..4)
        .prop_filter("small enough", |shape| shape.iter().product::<usize>() < 20_000);
    (item, shape).prop_flat_map(|(item, shape)| {
        let rank = shape.len();
        let order = || Just((0..rank).collect::<Vec<_>>()).prop_shuffle();
        let gaps = || prop::collection::vec(0usize..3, rank);
        let back = || prop::collection::vec(any::<bool>(), rank);
        let broadcast = prop::collection::vec(prop::bool::weighted(0.15), rank);
        (order(), order(), gaps(), gaps(), back(), back(), broadcast).prop_map(
            move |(from, to, between, apart, back, reversed, broadcast)| {
                let mut source = layout(&shape, item, &from, &between, &back);
                for (stride, _) in source.strides.iter_mut().zip(&broadcast).filter(|(_, all)| **all) {
                    *stride = 0;
                }
                let destination = layout(&shape, item, &to, &apart, &reversed);
                Case { item, shape: shape.clone(), source, destination }
            },
        )
    })
}

fn check_strided(device: &Device, stream: &Stream, case: &Case) {
    let Case { item, shape, source, destination } = case;
    let (from_length, to_length) = (source.below + source.above, destination.below + destination.above);
    let input = numbered(from_length);
    let mut expected = vec![0xEE; to_length];
    let mut index = vec![0usize; shape.len()];
    'all: loop {
        let offset = |layout: &Layout| {
            let steps = index.iter().zip(&layout.strides).map(|(at, stride)| *at as isize * stride);
            (layout.below as isize + steps.sum::<isize>()) as usize
        };
        let (from, to) = (offset(source), offset(destination));
        expected[to..to + item].copy_from_slice(&input[from..from + item]);
        let mut axis = shape.len();
        loop {
            let Some(next) = axis.checked_sub(1) else { break 'all };
            axis = next;
            index[axis] += 1;
            if index[axis] < shape[axis] {
                break;
            }
            index[axis] = 0;
        }
    }
    let (from, to) = (allocate(device, from_length), allocate(device, to_length));
    copy(stream, host(&input), on(device, &from), from_length);
    fill(stream, &to, 0xEE);
    let strided = StridedCopy {
        source: (from.address() + source.below as u64, on(device, &from).1),
        destination: (to.address() + destination.below as u64, on(device, &to).1),
        item: *item,
        axes: shape
            .iter()
            .zip(source.strides.iter().zip(&destination.strides))
            .map(|(length, (source, destination))| (*length, *source, *destination))
            .collect(),
    };
    // SAFETY: both layouts lie in their buffers; destination elements do not overlap.
    unsafe { stream.copy_strided(&strided) }.unwrap();
    assert_eq!(read(device, stream, &to), expected);
    release(device, from);
    release(device, to);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: CASES, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn strided_copies_equal_naive_loops(case in case(), seed in any::<u64>()) {
        for device in [concurrent(), adversarial(seed)] {
            check_strided(&device, &stream(&device), &case);
        }
    }

    #[test]
    fn regions_equal_naive_loops(
        bytes in 1usize..70, rows in 1usize..6, slices in 1usize..5,
        gaps in prop::array::uniform4(0usize..40), seed in any::<u64>(),
    ) {
        let pitch = |row: usize, slice: usize| [bytes + row, (bytes + row) * rows + slice];
        let (from, to) = (pitch(gaps[0], gaps[1]), pitch(gaps[2], gaps[3]));
        let input = numbered(from[1] * slices);
        let mut expected = vec![0u8; to[1] * slices];
        for slice in 0..slices {
            for row in 0..rows {
                let (a, b) = (slice * from[1] + row * from[0], slice * to[1] + row * to[0]);
                expected[b..b + bytes].copy_from_slice(&input[a..a + bytes]);
            }
        }
        for device in [concurrent(), adversarial(seed)] {
            let stream = stream(&device);
            let (middle, last) = (allocate(&device, input.len()), allocate(&device, expected.len()));
            // Host to device, device to device, device to host, each with the pitches of one side or both.
            let mut output = vec![0u8; expected.len()];
            let steps = [
                (endpoint(host(&input), from), endpoint(on(&device, &middle), from)),
                (endpoint(on(&device, &middle), from), endpoint(on(&device, &last), to)),
                (endpoint(on(&device, &last), to), endpoint(host_mut(&mut output), to)),
            ];
            for (source, destination) in steps {
                // SAFETY: all sides hold the region and live until the stream is synchronised.
                unsafe { stream.copy(&CopyRegion { source, destination, bytes, rows, slices }) }.unwrap();
            }
            stream.synchronize().unwrap();
            prop_assert_eq!(&output, &expected);
            release(&device, middle);
            release(&device, last);
        }
    }

    #[test]
    fn fills_equal_naive_loops(
        pattern in prop_oneof![
            any::<u8>().prop_map(Pattern::U8),
            any::<u16>().prop_map(Pattern::U16),
            any::<u32>().prop_map(Pattern::U32),
        ],
        count in 1usize..50, rows in 1usize..5, gap in 0usize..4, seed in any::<u64>(),
    ) {
        let item = pattern.bytes();
        let pitch = (count + gap) * item;
        let value = match pattern {
            Pattern::U8(value) => vec![value],
            Pattern::U16(value) => value.to_ne_bytes().to_vec(),
            Pattern::U32(value) => value.to_ne_bytes().to_vec(),
        };
        let mut expected = vec![0u8; pitch * rows];
        for row in 0..rows {
            for index in 0..count {
                let at = row * pitch + index * item;
                expected[at..at + item].copy_from_slice(&value);
            }
        }
        for device in [concurrent(), adversarial(seed)] {
            let stream = stream(&device);
            let buffer = allocate(&device, expected.len());
            // SAFETY: the rows lie in the buffer.
            unsafe { stream.fill(&Fill { address: buffer.address(), pattern, count, rows, pitch }) }.unwrap();
            prop_assert_eq!(&read(&device, &stream, &buffer), &expected);
            release(&device, buffer);
        }
    }
}

#[test]
fn large_transposes_are_right() {
    let (rows, columns) = if cfg!(miri) { (40, 33) } else { (517, 333) };
    both(|device, stream| {
        let shape = vec![rows, columns];
        let source = layout(&shape, 4, &[1, 0], &[0, 0], &[false, false]);
        let destination = layout(&shape, 4, &[0, 1], &[0, 0], &[false, false]);
        check_strided(device, stream, &Case { item: 4, shape, source, destination });
    });
}

#[test]
fn empty_and_senseless_copies_are_told_apart() {
    both(|device, stream| {
        let empty = StridedCopy {
            source: (0, Space::Host),
            destination: (0, Space::Host),
            item: 4,
            axes: vec![(0, 4, 4)],
        };
        // SAFETY: there is nothing to copy.
        unsafe { stream.copy_strided(&empty) }.unwrap();
        let overlapping = StridedCopy {
            source: (0, Space::Host),
            destination: (0, Space::Host),
            item: 4,
            axes: vec![(2, 4, 0)],
        };
        // SAFETY: refused before anything is touched.
        assert!(unsafe { stream.copy_strided(&overlapping) }.is_err());
        let buffer = allocate(device, 64);
        let mut region = CopyRegion::linear(on(device, &buffer), on(device, &buffer), usize::MAX);
        // SAFETY: as above.
        assert!(unsafe { stream.copy(&region) }.is_err());
        region.bytes = 0;
        // SAFETY: as above.
        assert!(unsafe { stream.copy(&region) }.is_err());
        let crooked =
            Fill { address: buffer.address() + 1, pattern: Pattern::U32(1), count: 1, rows: 1, pitch: 4 };
        // SAFETY: as above.
        assert!(unsafe { stream.fill(&crooked) }.is_err());
        stream.synchronize().unwrap();
        assert_eq!((device.counters().copies, device.counters().fills), (0, 0));
        release(device, buffer);
    });
}

#[test]
fn all_kinds_of_memory_can_be_copied() {
    use gpumem_core::{Attach, MappedOptions, MemoryKind};
    both(|device, stream| {
        let bytes = 300;
        let input = numbered(bytes);
        for kind in [
            MemoryKind::Pinned,
            MemoryKind::Mapped(MappedOptions::default()),
            MemoryKind::Managed(Attach::Global),
        ] {
            let buffer = try_allocate(device, bytes, kind).unwrap();
            let address = buffer.host_address().unwrap();
            assert_eq!(address.as_ptr().addr() as u64, buffer.address());
            copy(stream, host(&input), (buffer.address(), gpumem_core::Space::Host), bytes);
            stream.synchronize().unwrap();
            // SAFETY: live, zeroed when made, and written by a copy that is done.
            let seen = unsafe { std::slice::from_raw_parts(address.as_ptr(), bytes) };
            assert_eq!(seen, input);
            release(device, buffer);
        }
    });
}
