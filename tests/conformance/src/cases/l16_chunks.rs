//! Arrays in chunks of rows: each row comes once, with its elements, whatever is done with the chunks before.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a panic of a case is its failure")]

use super::tools::{fail, same};
use crate::{Lab, Level, Stop, Verdict, refused, refused_layout, skip};
use gpumem_core::{Backend, Error, ErrorKind, LayoutError, NotRecorded, Result};
use gpumem_ops::ArrayOps;
use gpumem_runtime::{
    Chunks, CudaArrayInterface, Device, DeviceArray, HasCudaArrayInterface, Scalar, ToDevice, cuda_array,
    cuda_array_mut,
};
use ndarray::{Array1, Array2, ArrayD, ArrayView, ArrayView2, Axis, Ix2, Slice, s};
use std::{
    collections::BTreeSet,
    ops::Range,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::mpsc,
};

cases! { Level::Chunks;
    rows_come_once_and_in_order,
    the_edges_of_a_chunk,
    sources_of_every_kind,
    three_chunks_share_their_memory,
    kept_and_late_chunks_stay_as_they_are,
    what_is_written_to_a_chunk_is_in_no_other,
    forgotten_iterators_and_chunks,
    maps_of_every_kind,
    other_elements_come_back,
    a_map_ends_at_its_first_failure,
    a_panic_of_a_map_goes_on,
    maps_are_refused_before_anything_moves,
    chunks_in_a_recording,
}

/// Elements that tell their place.
fn numbers(rows: usize, columns: usize) -> Array2<u32> {
    Array2::from_shape_fn((rows, columns), |(row, column)| (1000 * row + column) as u32)
}

/// Checks the chunks of a source against the rows of the same array on the host.
fn check<B: Backend, S>(
    device: &Device<B>,
    source: &S,
    host: ArrayView<'_, S::Elem, S::Dim>,
    options: Chunks,
    halo: usize,
) -> Result<Vec<Range<usize>>>
where
    S: ToDevice<B> + ?Sized,
{
    let (mut all, total) = (Vec::new(), host.len_of(Axis(0)));
    let mut chunks = device.chunks(source, options.halo(halo))?;
    let most = chunks.size_hint().1.unwrap();
    for chunk in chunks.by_ref() {
        let (rows, array) = chunk?;
        assert_eq!(rows.start, all.last().map_or(0, |last: &Range<usize>| last.end));
        let with_halo = rows.start.saturating_sub(halo)..(rows.end + halo).min(total);
        same(array.copy_to_host()?.view(), host.slice_axis(Axis(0), Slice::from(with_halo)));
        all.push(rows);
    }
    assert!(chunks.next().is_none());
    assert_eq!((all.len(), all.last().map_or(0, |last| last.end)), (most, total));
    Ok(all)
}

fn rows_come_once_and_in_order<B: Backend>(lab: &Lab<B>) -> Verdict {
    let (device, host) = (lab.device(), numbers(23, 17));
    for halo in [0, 1, 5, 100] {
        for rows in [1, 4, 22, 23, 24, usize::MAX] {
            let all = check(device, &host, host.view(), Chunks::rows(rows), halo)?;
            assert!(all.iter().rev().skip(1).all(|range| range.len() == rows), "{all:?}");
        }
    }
    // Four rows and some bytes, with their halo.
    let options = Chunks::bytes(4 * 17 * 4 + 67);
    let lengths = |all: Vec<Range<usize>>| all.iter().map(Range::len).collect::<Vec<_>>();
    assert_eq!(lengths(check(device, &host, host.view(), options, 0)?), [4, 4, 4, 4, 4, 3]);
    assert_eq!(lengths(check(device, &host, host.view(), options, 1)?)[..3], [2, 2, 2]);
    // Larger than a staging block, and of every layout.
    let long = Array2::from_shape_fn((300, 5000), |(row, column)| (row * 5000 + column) as u32);
    check(device, &long, long.view(), Chunks::bytes(1 << 20), 0)?;
    for view in [host.t(), host.slice(s![..;-1, ..;2]), host.slice(s![3..20;4, ..;-1])] {
        check(device, &view, view, Chunks::rows(5), 1)?;
    }
    let wide = host.slice(s![0, ..]);
    let repeated: ArrayView2<'_, u32> = wide.broadcast((9, 17)).unwrap();
    check(device, &repeated, repeated, Chunks::rows(2), 0)?;
    let dynamic: ArrayD<u32> = host.clone().into_dyn();
    check(device, &dynamic, dynamic.view(), Chunks::rows(7), 0)?;
    check(device, &[1u8, 2, 3, 4, 5][..], ndarray::aview1(&[1, 2, 3, 4, 5]), Chunks::bytes(2), 0)?;
    Ok(())
}

fn the_edges_of_a_chunk<B: Backend>(lab: &Lab<B>) -> Verdict {
    let device = lab.device();
    for (rows, columns, chunks) in [(0, 5, 0), (0, 0, 0), (7, 0, 1), (1 << 30, 0, 1)] {
        let host = Array2::<u32>::zeros((rows, columns));
        for options in [Chunks::bytes(100), Chunks::rows(2), Chunks::rows(2).halo(3)] {
            assert_eq!(device.chunks(&host, options)?.size_hint(), (chunks, Some(chunks)));
            assert_eq!(check(device, &host, host.view(), options, 0)?.len(), chunks);
        }
    }
    // A row is longer than a chunk is to be.
    let host = numbers(3, 100);
    for bytes in [0, 1, 399] {
        assert_eq!(check(device, &host, host.view(), Chunks::bytes(bytes), 0)?, [0..1, 1..2, 2..3]);
    }
    let none = |error: &LayoutError| *error == LayoutError::ZeroSection;
    refused_layout(device.chunks(&host, Chunks::rows(0)), none)?;
    let flat = |error: &LayoutError| *error == LayoutError::NoSuchAxis { axis: 0, rank: 0 };
    refused_layout(device.chunks(&Scalar(3u32), Chunks::rows(1)), flat)?;
    Ok(())
}

fn sources_of_every_kind<B: Backend>(lab: &Lab<B>) -> Verdict {
    let (device, host) = (lab.device(), numbers(40, 300));
    let options = Chunks::rows(7);
    let mut pinned = device.pinned_array::<u32, _>((40, 300))?;
    pinned.view_mut()?.assign(&host);
    check(device, &pinned, host.view(), options, 2)?;
    for source in lab.devices() {
        let array = source.to_device(&host)?;
        check(device, &array, host.view(), options, 2)?;
        let part = array.slice(s![..;-3, 10..;7])?;
        check(device, &part, host.slice(s![..;-3, 10..;7]), options, 0)?;
    }
    let array = device.to_device(&host)?;
    array.synchronize()?;
    // Every second row, from the last one.
    let object = object(array.address() + 39 * 1200, &[20, 300], &[-2400, 4]);
    check(device, &cuda_array(&object), host.slice(s![..;-2, ..]), options, 1)?;
    Ok(())
}

fn three_chunks_share_their_memory<B: Backend>(lab: &Lab<B>) -> Verdict {
    let (device, host) = (lab.device(), numbers(60, 1000));
    let mut addresses = BTreeSet::new();
    for chunk in device.chunks(&host, Chunks::rows(3).halo(1))? {
        addresses.insert(chunk?.1.address());
    }
    assert_eq!(addresses.len(), 3, "the memory of chunks that are dropped is reused");
    let mut kept = Vec::new();
    for chunk in device.chunks(&host, Chunks::rows(3))? {
        let (rows, array) = chunk?;
        assert!(
            kept.iter().all(|(_, other): &(_, DeviceArray<u32, Ix2, B>)| other.address() != array.address())
        );
        kept.push((rows, array));
    }
    for (rows, array) in kept {
        same(array.copy_to_host()?.view(), host.slice(s![rows, ..]));
    }
    Ok(())
}

fn kept_and_late_chunks_stay_as_they_are<B: Backend>(lab: &Lab<B>) -> Verdict {
    let (device, host) = (lab.device(), numbers(48, 2000));
    let streams = [device.stream()?, device.stream()?];
    let (mut kept, mut copies) = (Vec::new(), Vec::new());
    for (number, chunk) in device.chunks(&host, Chunks::rows(4))?.enumerate() {
        let (rows, array) = chunk?;
        let stream = &streams[number % 2];
        if number < 4 {
            lab.delay(stream)?;
        }
        // Read late, after the array is dropped.
        copies.push((rows.clone(), stream.copy_to_host(&array)?));
        if number % 3 == 1 {
            kept.push((rows, array));
        }
    }
    for (rows, copy) in copies {
        same(copy.view()?, host.slice(s![rows, ..]));
    }
    for (rows, array) in kept {
        same(array.copy_to_host()?.view(), host.slice(s![rows, ..]));
    }
    Ok(())
}

fn what_is_written_to_a_chunk_is_in_no_other<B: Backend>(lab: &Lab<B>) -> Verdict {
    let (device, host) = (lab.device(), numbers(40, 1500));
    let (stream, mut whole) = (device.stream()?, device.device_array::<u32, _>((40, 1500))?);
    for chunk in device.chunks(&host, Chunks::rows(3))? {
        let (rows, mut array) = chunk?;
        lab.delay(&stream)?;
        stream.copy_to_device(&mut whole.slice_mut(s![rows, ..])?, &array)?;
        // The next owner of the memory must not see it.
        stream.fill(&mut array, 0xbad)?;
    }
    same(whole.copy_to_host()?.view(), host.view());
    Ok(())
}

fn forgotten_iterators_and_chunks<B: Backend>(lab: &Lab<B>) -> Verdict {
    let (device, host) = (lab.device(), numbers(10, 100));
    let mut chunks = device.chunks(&host, Chunks::rows(2))?;
    let first = chunks.next().unwrap()?;
    let second = chunks.next().unwrap()?;
    std::mem::forget(second.1);
    std::mem::forget(chunks);
    lab.leaks(2);
    same(first.1.copy_to_host()?.view(), host.slice(s![..2, ..]));
    // One that is dropped early gives up nothing that the user has.
    let mut chunks = device.chunks(&host, Chunks::rows(2))?;
    let mut first = chunks.next().unwrap()?.1;
    drop(chunks);
    first.fill(7)?;
    same(first.copy_to_host()?.view(), Array2::from_elem((2, 100), 7).view());
    Ok(())
}

fn maps_of_every_kind<B: Backend>(lab: &Lab<B>) -> Verdict {
    let (device, host) = (lab.device(), numbers(50, 700));
    let options = Chunks::rows(6);
    let reversed = host.slice(s![.., ..;-1]).to_owned();
    // A new array of the work's own.
    let mut output = Array2::zeros((50, 700));
    device.map_chunks(&host, &mut output, options, |stream, rows, array| {
        assert_eq!(array.shape(), [rows.len(), 700]);
        stream.to_device(&array.slice(s![.., ..;-1])?)
    })?;
    same(output.view(), reversed.view());
    // The chunk itself; every other column of a larger array.
    let mut output = Array2::from_elem((50, 1400), 9);
    let mut parts = output.slice_mut(s![..;-1, ..;2]);
    device.map_chunks(&host, &mut parts, options, |stream, rows, mut array| {
        stream.fill(&mut array.slice_mut(s![.., 0])?, rows.start as u32)?;
        Ok(array)
    })?;
    let mut expected = host.clone();
    for (row, mut line) in expected.outer_iter_mut().enumerate() {
        line[0] = (row - row % 6) as u32;
    }
    same(output.slice(s![..;-1, ..;2]), expected.view());
    assert!(output.slice(s![.., 1..;2]).iter().all(|other| *other == 9));
    // Another number of axes; memory of the library, on each device, and that of an object.
    let mut pinned = device.pinned_array::<u32, _>(50)?;
    device.map_chunks(&host, &mut pinned, options, |stream, _, array| {
        stream.to_device(&array.slice(s![.., 3])?)
    })?;
    same(pinned.view()?, host.slice(s![.., 3]));
    for target in lab.devices() {
        let mut array = target.device_array::<u32, _>(50)?;
        device.map_chunks(&host, &mut array, options, |stream, _, array| {
            stream.to_device(&array.slice(s![.., 4])?)
        })?;
        same(array.copy_to_host()?.view(), host.slice(s![.., 4]));
    }
    let memory = device.device_array::<u32, _>(50)?;
    memory.synchronize()?;
    // Backwards.
    let mut object = object(memory.address() + 49 * 4, &[50], &[-4]);
    device.map_chunks(&host, &mut cuda_array_mut(&mut object), options, |stream, _, array| {
        stream.to_device(&array.slice(s![.., 5])?)
    })?;
    same(memory.copy_to_host()?.view(), host.slice(s![..;-1, 5]));
    // With the rows around: each element is the sum of its neighbours' and its own.
    let mut output = Array1::zeros(50);
    device.map_chunks(&host, &mut output, options.halo(1), |stream, rows, array| {
        let first = usize::from(rows.start > 0);
        stream.to_device(&array.slice(s![first..first + rows.len(), 3])?)
    })?;
    same(output.view(), host.slice(s![.., 3]));
    // No rows, no work.
    let none = Array1::<u32>::zeros(0);
    device.map_chunks(&none, &mut none.clone(), options, |_, _, _| Err(on_purpose(0)))?;
    // Rows without bytes, of which there may be any number, are worked on at once.
    let (empty, mut ones) = (Array2::<u32>::zeros((9, 0)), Array1::<u32>::zeros(9));
    device.map_chunks(&empty, &mut ones, Chunks::rows(2), |stream, rows, _| {
        assert_eq!(rows, 0..9);
        stream.to_device(&[1; 9])
    })?;
    same(ones.view(), Array1::ones(9).view());
    let empty = Array2::<u32>::zeros((1 << 30, 0));
    device.map_chunks(&empty, &mut empty.clone(), options, |_, _, array| Ok(array))?;
    Ok(())
}

fn other_elements_come_back<B: Backend>(lab: &Lab<B>) -> Verdict {
    let (device, host) = (lab.device(), numbers(50, 700));
    let mut sums = Array1::<u64>::zeros(50);
    let summed =
        device.map_chunks(&host, &mut sums, Chunks::rows(6), |stream, _, array| array.on(stream).sum_axis(1));
    match summed {
        Err(error) if matches!(error.kind(), ErrorKind::Unsupported { .. } | ErrorKind::Load(_)) => {
            return skip(error);
        }
        summed => summed?,
    }
    same(sums.view(), host.mapv(u64::from).sum_axis(Axis(1)).view());
    Ok(())
}

/// An object over memory that a case keeps, and uses through this object only.
struct Object(CudaArrayInterface);

// SAFETY: as it says.
unsafe impl HasCudaArrayInterface for Object {
    fn cuda_array_interface(&self) -> Result<CudaArrayInterface> {
        Ok(self.0.clone())
    }
}

fn object(address: u64, shape: &[i64], strides: &[i64]) -> Object {
    Object(CudaArrayInterface {
        shape: shape.to_vec(),
        typestr: "<u4".parse().unwrap(),
        data: (address, false),
        strides: Some(strides.to_vec()),
        descr: None,
        mask: false,
        version: 3,
        stream: None,
    })
}

/// The error of a work that fails at a chunk.
fn on_purpose(number: usize) -> Error {
    Error::new("", "work", ErrorKind::from(LayoutError::RankMismatch { found: number, expected: 0 }))
}

/// Maps 20 chunks of two rows to twice themselves by copies, and calls `at` before each.
fn mapped<B: Backend>(
    device: &Device<B>,
    output: &mut Array2<u32>,
    mut at: impl FnMut(usize) -> Result<()>,
) -> Result<()> {
    device.map_chunks(&numbers(40, 300), output, Chunks::rows(2), |stream, rows, array| {
        at(rows.start / 2)?;
        stream.to_device(&array)
    })
}

/// Whether the chunks before one are there, and none after it.
fn is_cut(output: &Array2<u32>, chunk: usize) {
    same(output.slice(s![..2 * chunk, ..]), numbers(40, 300).slice(s![..2 * chunk, ..]));
    assert!(output.slice(s![2 * chunk.., ..]).iter().all(|element| *element == 9));
}

fn a_map_ends_at_its_first_failure<B: Backend>(lab: &Lab<B>) -> Verdict {
    let device = lab.device();
    for chunk in [0, 1, 7, 19] {
        let mut output = Array2::from_elem((40, 300), 9);
        let mut calls = 0;
        let failed = mapped(device, &mut output, |number| {
            calls += 1;
            if number == chunk { Err(on_purpose(chunk)) } else { Ok(()) }
        });
        let error = failed.unwrap_err();
        assert_eq!((error.kind(), calls), (on_purpose(chunk).kind(), chunk + 1));
        is_cut(&output, chunk);
        // A chunk of another shape fails at its download; other chunks may have been worked on by then.
        let mut output = Array2::from_elem((40, 300), 9);
        let wrong =
            device.map_chunks(&numbers(40, 300), &mut output, Chunks::rows(2), |stream, rows, array| {
                match rows.start / 2 == chunk {
                    true => stream.to_device(&array.slice(s![..1, ..])?),
                    false => Ok(array),
                }
            });
        refused_layout(wrong, |error| matches!(error, LayoutError::ShapeMismatch { .. }))?;
        is_cut(&output, chunk);
    }
    mapped(device, &mut Array2::zeros((40, 300)), |_| Ok(()))?;
    Ok(())
}

fn a_panic_of_a_map_goes_on<B: Backend>(lab: &Lab<B>) -> Verdict {
    let mut output = Array2::from_elem((40, 300), 9);
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        mapped(lab.device(), &mut output, |number| match number {
            7 => resume_unwind(Box::new("on purpose")),
            _ => Ok(()),
        })
    }));
    match panicked {
        Err(panic) => assert_eq!(panic.downcast_ref(), Some(&"on purpose")),
        Ok(_) => fail("the panic of the work is lost")?,
    }
    is_cut(&output, 7);
    mapped(lab.device(), &mut output, |_| Ok(()))?;
    is_cut(&output, 20);
    Ok(())
}

fn maps_are_refused_before_anything_moves<B: Backend>(lab: &Lab<B>) -> Verdict {
    let (device, stream) = (lab.device(), lab.device().stream()?);
    let host = numbers(10, 4);
    let before = device.counters();
    let other = |error: &LayoutError| matches!(error, LayoutError::ShapeMismatch { found, expected } if (&found[..], &expected[..]) == (&[9, 5], &[10, 5]));
    let copied = device
        .map_chunks(&host, &mut Array2::<u8>::zeros((9, 5)), Chunks::rows(2), |_, _, _| Err(on_purpose(0)));
    refused_layout(copied, other)?;
    let none =
        |error: &LayoutError| matches!(error, LayoutError::NoSuchAxis { .. } | LayoutError::ZeroSection);
    let copied = device.map_chunks(&host, &mut Scalar(1u8), Chunks::rows(2), |_, _, _| Err(on_purpose(0)));
    refused_layout(copied, none)?;
    let copied = device.map_chunks(&host, &mut host.clone(), Chunks::rows(0), |_, _, array| Ok(array));
    refused_layout(copied, none)?;
    let (sender, receiver) = mpsc::channel();
    let inside = device.clone();
    stream.add_callback(move |_| {
        let mapped = inside.map_chunks(&host, &mut host.clone(), Chunks::rows(2), |_, _, array| Ok(array));
        drop(sender.send(mapped));
    })?;
    let called = receiver.recv().map_err(|error| Stop::Failed(error.to_string()))?;
    refused(called, |kind| *kind == ErrorKind::BlockingInCallback)?;
    assert_eq!(device.counters().copies, before.copies);
    Ok(())
}

fn chunks_in_a_recording<B: Backend>(lab: &Lab<B>) -> Verdict {
    let (device, host) = (lab.device(), numbers(10, 30));
    let mut verdict = Ok(());
    let graph = device.record((), |stream, ()| {
        let (device, mut whole) = (stream.device(), stream.device_array::<u32, _>((10, 30))?);
        for chunk in device.chunks(&host, Chunks::rows(1))? {
            let (rows, mut array) = chunk?;
            stream.copy_to_device(&mut whole.slice_mut(s![rows, ..])?, &array)?;
            stream.fill(&mut array, 0xbad)?;
        }
        let mapped = device.map_chunks(&host, &mut host.clone(), Chunks::rows(2), |_, _, array| Ok(array));
        verdict = refused(mapped, |kind| *kind == ErrorKind::NotRecordable { what: NotRecorded::Wait });
        Ok(whole)
    })?;
    verdict?;
    let stream = device.stream()?;
    for _ in 0..2 {
        same(graph.launch(&stream, ())?.copy_to_host()?.view(), host.view());
    }
    Ok(())
}
