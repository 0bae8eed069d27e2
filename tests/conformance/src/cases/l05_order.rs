//! Automatic ordering between streams.

use super::tools::{fail, same};
use crate::{Lab, Level, Verdict, skip};
use gpumem_core::{Backend, Result};
use gpumem_runtime::{Device, Stream};
use ndarray::{Array1, Array2, s};
use std::thread;

cases! { Level::Stream;
    reading_waits_for_a_late_writer,
    writing_waits_for_a_late_reader,
    writing_waits_for_a_late_writer,
    chains_across_many_streams,
    blocking_calls_wait_for_streams,
    views_are_ordered_by_their_memory,
    one_stream_needs_no_event,
    disjoint_halves_do_not_wait,
    what_was_waited_for_is_remembered,
    a_dropped_stream_is_still_waited_for,
    dropped_with_work_in_flight,
    forgotten_with_work_in_flight,
    freeing_waits_for_no_other_stream,
    eight_threads,
    four_threads_on_one_stream,
}

/// Long enough to be torn by a schedule that tears.
const LEN: usize = 40_000;

fn two<B: Backend>(lab: &Lab<B>) -> Result<(Stream<B>, Stream<B>)> {
    Ok((lab.device().stream()?, lab.device().stream()?))
}

fn reading_waits_for_a_late_writer<B: Backend>(lab: &Lab<B>) -> Verdict {
    let (producer, consumer) = two(lab)?;
    let mut array = lab.device().device_array::<u32, _>(LEN)?;
    for value in 1..4 {
        lab.delay(&producer)?;
        producer.fill(&mut array, value)?;
        let host = consumer.copy_to_host(&array)?;
        let copy = consumer.to_device(&array)?;
        same(host.view()?, Array1::from_elem(LEN, value).view());
        same(copy.copy_to_host()?.view(), Array1::from_elem(LEN, value).view());
    }
    Ok(())
}

fn writing_waits_for_a_late_reader<B: Backend>(lab: &Lab<B>) -> Verdict {
    let (reader, writer) = two(lab)?;
    let mut array = lab.device().to_device(&Array1::from_elem(LEN, 5u32))?;
    lab.delay(&reader)?;
    let before = reader.copy_to_host(&array)?;
    writer.fill(&mut array, 6)?;
    let after = reader.copy_to_host(&array)?;
    same(before.view()?, Array1::from_elem(LEN, 5).view());
    same(after.view()?, Array1::from_elem(LEN, 6).view());
    Ok(())
}

fn writing_waits_for_a_late_writer<B: Backend>(lab: &Lab<B>) -> Verdict {
    let (late, early) = two(lab)?;
    let mut array = lab.device().device_array::<u32, _>(LEN)?;
    lab.delay(&late)?;
    late.fill(&mut array, 1)?;
    early.fill(&mut array, 2)?;
    same(array.copy_to_host()?.view(), Array1::from_elem(LEN, 2).view());
    Ok(())
}

fn chains_across_many_streams<B: Backend>(lab: &Lab<B>) -> Verdict {
    let streams = (0..5).map(|_| lab.device().stream()).collect::<Result<Vec<_>>>()?;
    let mut arrays = (0..4)
        .map(|n| lab.device().to_device(&Array1::from_elem(LEN / 4, n as u32)))
        .collect::<Result<Vec<_>>>()?;
    let mut expected: Vec<u32> = (0..4).collect();
    for round in 0..24usize {
        let stream = &streams[(round * 7 + 3) % 5];
        let (from, to) = (round * 5 % 4, (round * 3 + 1) % 4);
        if round % 8 == 0 {
            lab.delay(stream)?;
        }
        if from == to {
            stream.fill(&mut arrays[to], 100 + round as u32)?;
            expected[to] = 100 + round as u32;
        } else {
            let source = arrays[from].view();
            // Two arrays of one vector: a copy of the source's handle cannot be had, so it goes by a third array.
            let middle = streams[round % 5].to_device(&source)?;
            stream.copy_to_device(&mut arrays[to], &middle)?;
            expected[to] = expected[from];
        }
    }
    for (array, value) in arrays.iter().zip(expected) {
        same(array.copy_to_host()?.view(), Array1::from_elem(LEN / 4, value).view());
    }
    Ok(())
}

fn blocking_calls_wait_for_streams<B: Backend>(lab: &Lab<B>) -> Verdict {
    let stream = lab.device().stream()?;
    let mut array = lab.device().device_array::<u16, _>((40, 50))?;
    lab.delay(&stream)?;
    stream.fill(&mut array, 3)?;
    assert_eq!(array.get((39, 49))?, 3);
    lab.delay(&stream)?;
    stream.fill(&mut array, 4)?;
    array.slice_mut(s![.., ..;2])?.fill(5)?;
    let mut expected = Array2::from_elem((40, 50), 4);
    expected.slice_mut(s![.., ..;2]).fill(5);
    same(array.copy_to_host()?.view(), expected.view());
    lab.delay(&stream)?;
    stream.fill(&mut array, 6)?;
    array.copy_to_device(&expected)?;
    same(array.copy_to_host()?.view(), expected.view());
    Ok(())
}

fn views_are_ordered_by_their_memory<B: Backend>(lab: &Lab<B>) -> Verdict {
    let (first, second) = two(lab)?;
    let mut array = lab.device().device_array::<u32, _>((200, 100))?;
    lab.delay(&first)?;
    first.fill(&mut array.slice_mut(s![.., ..;2])?, 1)?;
    second.fill(&mut array.slice_mut(s![50..150, 1..;2])?, 2)?;
    let part = first.copy_to_host(&array.t().slice(s![..;-1, ..])?)?;
    let mut expected = Array2::zeros((200, 100));
    expected.slice_mut(s![.., ..;2]).fill(1);
    expected.slice_mut(s![50..150, 1..;2]).fill(2);
    same(part.view()?, expected.t().slice(s![..;-1, ..]));
    Ok(())
}

fn one_stream_needs_no_event<B: Backend>(lab: &Lab<B>) -> Verdict {
    let device = lab.device();
    let stream = device.stream()?;
    let mut pinned = device.pinned_array::<u32, _>(1000)?;
    let (mut one, mut two) = (stream.device_array::<u32, _>(1000)?, stream.device_array::<u32, _>(1000)?);
    stream.synchronize()?;
    let before = device.counters();
    for value in 0..50 {
        stream.fill(&mut one, value)?;
        stream.copy_to_device(&mut two, &one)?;
        stream.copy_to_device(&mut one.slice_mut(s![..;2])?, &two.slice(s![..;-2])?)?;
        stream.copy_to_host_into(&two, &mut pinned)?;
        stream.copy_to_device(&mut one, &pinned)?;
    }
    let after = device.counters();
    assert_eq!((after.records, after.waits), (before.records, before.waits));
    assert!(after.copies > before.copies + 150 && after.fills >= before.fills + 50);
    assert_eq!(pinned.view()?[999], 49);
    Ok(())
}

fn disjoint_halves_do_not_wait<B: Backend>(lab: &Lab<B>) -> Verdict {
    let device = lab.device();
    let (first, second) = two(lab)?;
    let mut array = device.device_array::<u32, _>(2 * LEN)?;
    let mut pinned = [device.pinned_array::<u32, _>(LEN)?, device.pinned_array::<u32, _>(LEN)?];
    device.synchronize()?;
    first.synchronize()?;
    device.default_stream()?.synchronize()?;
    let before = device.counters();
    let (mut left, mut right) = array.split_at_mut(0, LEN)?;
    let [to_left, to_right] = &mut pinned;
    for value in 0..8 {
        first.fill(&mut left, value)?;
        second.fill(&mut right, 100 + value)?;
        first.copy_to_host_into(&left, to_left)?;
        second.copy_to_host_into(&right, to_right)?;
    }
    let after = device.counters();
    assert_eq!((after.waits, after.records), (before.waits, before.records), "a double buffer overlaps");
    assert_eq!((pinned[0].view()?[LEN - 1], pinned[1].view()?[0]), (7, 107));
    // The whole array waits for both.
    let whole = device.stream()?.copy_to_host(&array)?;
    assert_eq!((whole.view()?[0], whole.view()?[2 * LEN - 1]), (7, 107));
    assert!(device.counters().waits <= after.waits + 2);
    Ok(())
}

fn what_was_waited_for_is_remembered<B: Backend>(lab: &Lab<B>) -> Verdict {
    let device = lab.device();
    let (producer, consumer) = two(lab)?;
    let mut array = producer.device_array::<u32, _>(LEN)?;
    device.synchronize()?;
    let before = device.counters();
    lab.delay(&producer)?;
    producer.fill(&mut array, 1)?;
    let reads = (0..6).map(|_| consumer.copy_to_host(&array)).collect::<Result<Vec<_>>>()?;
    let after = device.counters();
    assert!(after.waits <= before.waits + 1, "{} waits for one writer", after.waits - before.waits);
    for read in reads {
        assert_eq!(read.view()?[LEN - 1], 1);
    }
    Ok(())
}

fn a_dropped_stream_is_still_waited_for<B: Backend>(lab: &Lab<B>) -> Verdict {
    let device = lab.device();
    let mut array = device.device_array::<u32, _>(LEN)?;
    let other = device.stream()?;
    let stream = device.stream()?;
    lab.delay(&stream)?;
    stream.fill(&mut array, 8)?;
    drop(stream);
    let read = other.copy_to_host(&array)?;
    same(read.view()?, Array1::from_elem(LEN, 8).view());
    let stream = device.stream()?;
    lab.delay(&stream)?;
    stream.fill(&mut array, 9)?;
    drop(stream);
    same(array.copy_to_host()?.view(), Array1::from_elem(LEN, 9).view());
    Ok(())
}

fn dropped_with_work_in_flight<B: Backend>(lab: &Lab<B>) -> Verdict {
    let device = lab.device();
    for round in 0..4 {
        let (stream, other) = two(lab)?;
        lab.delay(&stream)?;
        let mut array = stream.to_device(&Array1::from_elem(LEN, round))?;
        let copy = stream.to_device(&array)?;
        stream.fill(&mut array, 77)?;
        drop(array);
        drop(stream.copy_to_host(&copy)?);
        drop(stream);
        // New memory may be memory that was just freed; the late work must not reach it.
        let fresh = other.device_array::<u32, _>(LEN)?;
        if round % 2 == 0 {
            device.flush()?;
        }
        let kept = other.copy_to_host(&copy)?;
        drop(copy);
        same(fresh.copy_to_host()?.view(), Array1::zeros(LEN).view());
        same(kept.view()?, Array1::from_elem(LEN, round).view());
    }
    Ok(())
}

/// A driver's own free waits for the whole device; dropping an array does not.
fn freeing_waits_for_no_other_stream<B: Backend>(lab: &Lab<B>) -> Verdict {
    const ROUNDS: usize = 30;
    let (busy, other) = two(lab)?;
    lab.delay(&busy)?;
    busy.synchronize()?;
    for _ in 0..ROUNDS {
        let host = Array1::from_elem(LEN, 7u32);
        let arrays = [other.to_device(&host)?, other.to_device(&host)?];
        other.synchronize()?;
        lab.delay(&busy)?;
        if busy.query()? {
            return skip("nothing keeps a stream busy here");
        }
        drop(arrays);
        let fresh = other.device_array::<u32, _>(LEN)?;
        other.synchronize()?;
        let is_busy = !busy.query()?;
        same(fresh.copy_to_host()?.view(), Array1::zeros(LEN).view());
        if is_busy {
            return Ok(());
        }
        // Waited for, or this thread was away for as long as the delay: once is enough to tell.
        busy.synchronize()?;
    }
    fail("a stream was done whenever an array of another one had been freed")
}

fn forgotten_with_work_in_flight<B: Backend>(lab: &Lab<B>) -> Verdict {
    let device = lab.device();
    let stream = device.stream()?;
    let mut array = device.device_array::<u32, _>(LEN)?;
    lab.delay(&stream)?;
    stream.fill(&mut array, 1)?;
    let mut copy = stream.device_array::<u32, _>(LEN)?;
    stream.copy_to_device(&mut copy, &array)?;
    std::mem::forget(array);
    std::mem::forget(stream.record_event()?);
    std::mem::forget(stream.completed());
    std::mem::forget(stream);
    // Forgotten memory is not freed, and does no other harm.
    lab.leaks(1);
    same(copy.copy_to_host()?.view(), Array1::from_elem(LEN, 1).view());
    Ok(())
}

fn churn<B: Backend>(device: &Device<B>, thread: u32) -> Result<bool> {
    let streams = [device.stream()?, device.stream()?];
    let mut right = true;
    for round in 0..12u32 {
        let value = 1000 * thread + round;
        let mut array = streams[0].device_array::<u32, _>(512 + 8 * round as usize)?;
        streams[1].fill(&mut array, value)?;
        let copy = streams[0].to_device(&array)?;
        drop(array);
        let host = streams[1].copy_to_host(&copy)?;
        drop(copy);
        right &= host.view()?.iter().all(|element| *element == value);
    }
    Ok(right)
}

fn eight_threads<B: Backend>(lab: &Lab<B>) -> Verdict {
    let device = lab.device();
    let right = thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|number| scope.spawn(move || churn(device, number))).collect();
        threads.into_iter().map(|thread| thread.join()).collect::<Vec<_>>()
    });
    for result in right {
        match result {
            Ok(right) => assert!(right?, "a thread saw another one's elements"),
            Err(_) => return super::tools::fail("a thread panicked"),
        }
    }
    Ok(())
}

/// Short blocking transfers, each with different elements: one thread waits for the stream while others enqueue.
fn round_trip<B: Backend>(device: &Device<B>, thread: u32, rounds: u32) -> Result<bool> {
    let mut right = true;
    for round in 0..rounds {
        let first = 1_000_000 * thread + 1000 * round;
        let len = 700 + 37 * (round as usize % 50);
        let numbers = Array1::from_iter((0..len as u32).map(|index| first + index));
        let array = device.to_device(&numbers)?;
        let copy = device.to_device(&array)?;
        right &= copy.copy_to_host()? == numbers && array.copy_to_host()? == numbers;
    }
    Ok(right)
}

fn four_threads_on_one_stream<B: Backend>(lab: &Lab<B>) -> Verdict {
    let (device, rounds) = (lab.device(), if lab.is_slow() { 60 } else { 300 });
    let right = thread::scope(|scope| {
        let threads = (0..4).map(|number| scope.spawn(move || round_trip(device, number, rounds)));
        let threads: Vec<_> = threads.collect();
        threads.into_iter().map(|thread| thread.join()).collect::<Vec<_>>()
    });
    for result in right {
        match result {
            Ok(right) => assert!(right?, "a thread did not get its elements back"),
            Err(_) => return fail("a thread panicked"),
        }
    }
    Ok(())
}
