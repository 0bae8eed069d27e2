//! Graphs: numbers of each launch, vectors of arguments, frozen arrays, and graphs in graphs.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a panic of a case is its failure")]

use super::tools::{elements, fail, load, same};
use crate::{Lab, Level, Verdict, refused};
use gpumem_core::{Backend, ErrorKind, Result};
use gpumem_kernel::{Kernel, Own, Slice, Value, config_for_items};
use gpumem_runtime::{DeviceView, GraphMemory, Varying, reads, writes};
use ndarray::{Array1, Ix1, s};
use std::thread;

mod facade {
    pub(super) use gpumem_kernel as kernel;
}

cases! { Level::Graphs;
    numbers_are_those_of_their_launch,
    numbers_of_threads_do_not_mix,
    values_and_flags_are_numbers,
    a_number_that_escapes_is_refused,
    vectors_are_arguments,
    frozen_arrays_are_kept,
    what_others_may_write_is_not_frozen,
    graphs_are_recorded_in_graphs,
    a_graph_in_a_graph_takes_parts_and_numbers,
    results_are_made_by_the_body,
    graphs_share_memory,
}

type Axpy = (f32, Slice<f32>, Own<f32>);

#[gpumem_macros::kernel(crate = self::facade)]
fn numbered_axpy(a: f32, x: Slice<f32>, y: Own<f32>) {
    let at = global_id(0);
    if at < x.len() {
        y[own()] = a * x[at] + y[own()];
    }
}

#[gpumem_macros::kernel(crate = self::facade)]
fn put_values(scale: Value<f64>, wide: u64, twice: bool, narrow: u8, y: Own<f64>) {
    let factor = if twice { 2.0 } else { 1.0 };
    y[own()] = factor * scale + (wide as f64) + (narrow as f64);
}

fn axpy<B: Backend>(lab: &Lab<B>) -> Verdict<Kernel<Axpy, B>> {
    load(lab, &numbered_axpy())
}

fn grid(len: usize) -> gpumem_core::LaunchConfig {
    config_for_items([len, 1, 1], [64, 1, 1])
}

const LEN: usize = 512;

fn floats() -> Array1<f32> {
    Array1::from_shape_fn(LEN, |at| (at % 100) as f32)
}

fn numbers_are_those_of_their_launch<B: Backend>(lab: &Lab<B>) -> Verdict {
    let (device, kernel) = (lab.device(), axpy(lab)?);
    let (stream, x) = (device.stream()?, device.to_device(&floats())?);
    let graph = device.record((&x, 0.0f32, 0.0f32), |stream, (x, a, b)| {
        let mut y = stream.to_device(&x)?;
        kernel.launch(stream, &grid(LEN), (&a, &x, &mut y))?;
        kernel.launch(stream, &grid(LEN), (1.0f32, &x, &mut y))?;
        kernel.launch(stream, &grid(LEN), (b, &x, &mut y))?;
        kernel.launch(stream, &grid(LEN), (a, &x, &mut y))?;
        stream.copy_to_host(&y)
    })?;
    let mut all = Vec::new();
    for round in 0..40 {
        if round % 7 == 0 {
            lab.delay(&stream)?;
        }
        // Now and then as before.
        let (a, b) = ((round / 2) as f32, (round % 3) as f32);
        all.push((2.0 + 2.0 * a + b, graph.launch(&stream, (&x, a, b))?));
    }
    for (factor, found) in all {
        same(found.view()?, (floats() * factor).view());
    }
    assert!(graph.report().driver_graphs <= 16);
    Ok(())
}

fn numbers_of_threads_do_not_mix<B: Backend>(lab: &Lab<B>) -> Verdict {
    let (device, kernel) = (lab.device(), axpy(lab)?);
    let graph = device.record((reads::<f32, _>(LEN), 0.0f32), |stream, (x, a)| {
        let mut y = stream.to_device(&x)?;
        kernel.launch(stream, &grid(LEN), (a, &x, &mut y))?;
        stream.copy_to_host(&y)
    })?;
    let x = device.to_device(&floats())?;
    let run = |thread: u32| -> Result<()> {
        let stream = device.stream()?;
        let mut all = Vec::new();
        for round in 0..20 {
            let a = (100 * thread + round) as f32;
            all.push((a, graph.launch(&stream, (&x, a))?));
        }
        for (a, found) in all {
            same(found.view()?, (floats() * (a + 1.0)).view());
        }
        Ok(())
    };
    let run = &run;
    thread::scope(|scope| {
        let all: Vec<_> = (0..3).map(|thread| scope.spawn(move || run(thread))).collect();
        all.into_iter().try_for_each(|one| one.join().unwrap())
    })?;
    Ok(())
}

fn values_and_flags_are_numbers<B: Backend>(lab: &Lab<B>) -> Verdict {
    let (device, kernel) = (lab.device(), load(lab, &put_values())?);
    let mut y = device.device_array::<f64, _>(64)?;
    let stream = device.stream()?;
    let graph = device.record(
        (&mut y, Value(0.0f64), 0u64, false, 0u8),
        |stream, (mut y, scale, wide, twice, narrow)| {
            kernel.launch(stream, &grid(64), (scale, wide, twice, narrow, &mut y))
        },
    )?;
    for (scale, wide, twice, narrow) in
        [(1.5, 1u64 << 40, true, 255u8), (-2.0, 7, false, 0), (0.25, 0, true, 9)]
    {
        graph.launch(&stream, (&mut y, Value(scale), wide, twice, narrow))?;
        let expected = if twice { 2.0 * scale } else { scale } + wide as f64 + f64::from(narrow);
        same(y.copy_to_host()?.view(), Array1::from_elem(64, expected).view());
    }
    Ok(())
}

fn a_number_that_escapes_is_refused<B: Backend>(lab: &Lab<B>) -> Verdict {
    let (device, kernel) = (lab.device(), axpy(lab)?);
    let stream = device.stream()?;
    let (x, mut y) = (device.to_device(&floats())?, device.to_device(&floats())?);
    let mut kept: Option<Varying<f32, B>> = None;
    let graph = device.record((1.0f32,), |_, (a,)| {
        kept = Some(a);
        Ok(())
    })?;
    graph.launch(&stream, (2.0f32,))?;
    let Some(kept) = kept else { return fail("the body has not run") };
    let is_refused = |kind: &ErrorKind| matches!(kind, ErrorKind::OfRecording { .. });
    refused(kernel.launch(&stream, &grid(LEN), (&kept, &x, &mut y)), is_refused)?;
    refused(graph.launch(&stream, (kept.clone(),)), is_refused)?;
    let mut verdict = Ok(());
    let other = device.record((&x, &mut y), |stream, (x, mut y)| {
        verdict = refused(kernel.launch(stream, &grid(LEN), (&kept, &x, &mut y)), is_refused)
            .and_then(|()| refused(graph.launch(stream, (kept.clone(),)), is_refused));
        Ok(())
    })?;
    verdict?;
    other.launch(&stream, (&x, &mut y))?;
    same(y.copy_to_host()?.view(), floats().view());
    Ok(())
}

fn vectors_are_arguments<B: Backend>(lab: &Lab<B>) -> Verdict {
    let (device, kernel) = (lab.device(), axpy(lab)?);
    let stream = device.stream()?;
    let layers: Vec<_> =
        (1..4).map(|layer| device.to_device(&(floats() * layer as f32))).collect::<Result<_>>()?;
    let mut y = device.to_device(&floats())?;
    let like = (layers.iter().collect::<Vec<_>>(), &mut y, vec![0.0f32; 3]);
    let graph = device.record(like, |stream, (layers, mut y, factors)| {
        let all = layers.iter().zip(&factors);
        all.into_iter().try_for_each(|(x, a)| kernel.launch(stream, &grid(LEN), (a, x, &mut y)))
    })?;
    graph.launch(&stream, (layers.iter().collect::<Vec<_>>(), &mut y, vec![1.0f32, 10.0, 100.0]))?;
    same(y.copy_to_host()?.view(), (floats() * 322.0).view());
    let is_refused = |kind: &ErrorKind| matches!(kind, ErrorKind::InvalidArgument { .. });
    refused(
        graph.launch(&stream, (layers.iter().take(2).collect::<Vec<_>>(), &mut y, vec![1.0f32; 3])),
        is_refused,
    )?;
    refused(graph.launch(&stream, (layers.iter().collect::<Vec<_>>(), &mut y, vec![1.0f32; 2])), is_refused)?;
    // As many arrays in all, in other vectors.
    let two = |first: usize| {
        let parts = layers.split_at(first);
        (parts.0.iter().collect::<Vec<_>>(), parts.1.iter().collect::<Vec<_>>())
    };
    let graph = device.record(two(1), |_, _: (Vec<DeviceView<'_, f32, Ix1, B>>, _)| Ok(()))?;
    graph.launch(&stream, two(1))?;
    refused(graph.launch(&stream, two(2)), is_refused)
}

fn frozen_arrays_are_kept<B: Backend>(lab: &Lab<B>) -> Verdict {
    let (device, kernel) = (lab.device(), axpy(lab)?);
    let stream = device.stream()?;
    // Written late, and frozen meanwhile.
    let mut weights = device.device_array::<f32, _>(LEN)?;
    lab.delay(&stream)?;
    stream.fill(&mut weights, 3.0)?;
    let weights = weights.freeze().map_err(|(_, error)| error)?;
    let other = weights.clone();
    let graph = device.record((reads::<f32, _>(LEN),), |stream, (x,)| {
        let mut y = stream.to_device(&x)?;
        kernel.launch(stream, &grid(LEN), (2.0f32, &weights, &mut y))?;
        let part = stream.to_device(&weights.slice(s![..;2])?)?;
        Ok((stream.copy_to_host(&y)?, stream.copy_to_host(&part)?))
    })?;
    let Err(weights) = weights.try_into_array() else { return fail("a kept array can be written") };
    drop((weights, other));
    let x = device.to_device(&floats())?;
    for _ in 0..20 {
        // Blocks of its size come and go.
        let mut beside = stream.device_array::<f32, _>(LEN)?;
        stream.fill(&mut beside, -1.0)?;
        let (y, part) = graph.launch(&stream, (&x,))?;
        same(y.view()?, (floats() + 6.0).view());
        same(part.view()?, Array1::from_elem(LEN / 2, 3.0).view());
    }
    // Without a graph it is as before.
    let frozen = x.freeze().map_err(|(_, error)| error)?;
    same(stream.copy_to_host(&frozen)?.view()?, floats().view());
    let Ok(mut x) = frozen.try_into_array() else { return fail("the only handle cannot be written") };
    x.fill(1.0)?;
    same(x.copy_to_host()?.view(), Array1::ones(LEN).view());
    // What is no longer frozen is refused as any other array.
    let is_refused = |kind: &ErrorKind| matches!(kind, ErrorKind::NotRecordable { .. });
    refused(device.record((), |stream, ()| stream.copy_to_host(&x)), is_refused)
}

fn what_others_may_write_is_not_frozen<B: Backend>(lab: &Lab<B>) -> Verdict {
    let device = lab.device();
    let mut kept = None;
    let graph = device.record((), |stream, ()| {
        kept = Some(stream.device_array::<f32, _>(4)?.freeze().map_err(|(_, error)| error));
        Ok(())
    })?;
    drop(graph);
    refused(kept.unwrap_or_else(|| panic!("the body has not run")), |kind| {
        matches!(kind, ErrorKind::OfRecording { .. })
    })?;
    let mut array = device.device_array::<f32, _>(4)?;
    let loan = array.lend_mut(&device.stream()?)?;
    let Err((array, error)) = array.freeze() else { return fail("a lent array was frozen") };
    assert!(matches!(error.kind(), ErrorKind::InvalidArgument { .. }), "{error}");
    drop(loan);
    array.freeze().map(drop).map_err(|(_, error)| error.into())
}

fn graphs_are_recorded_in_graphs<B: Backend>(lab: &Lab<B>) -> Verdict {
    let (device, kernel) = (lab.device(), axpy(lab)?);
    let stream = device.stream()?;
    let weights = device.to_device(&Array1::from_elem(LEN, 2.0f32))?.freeze().map_err(|(_, error)| error)?;
    // A temporary, a constant, a frozen array, a result.
    let inner = device.record((reads::<f32, _>(LEN), writes::<f32, _>(LEN)), |stream, (x, mut y)| {
        let mut inside = stream.to_device(&x)?;
        kernel.launch(stream, &grid(LEN), (1.0f32, &weights, &mut inside))?;
        let constant = stream.to_device(&floats())?;
        kernel.launch(stream, &grid(LEN), (1.0f32, &constant, &mut inside))?;
        stream.copy_to_device(&mut y, &inside)?;
        stream.to_device(&inside)
    })?;
    let (x, mut y) = (device.to_device(&floats())?, device.to_device(&floats())?);
    let outer = device.record((&x, &mut y), |stream, (x, mut y)| {
        let mut between = stream.device_array::<f32, _>(LEN)?;
        let first = inner.launch(stream, (&x, &mut between))?;
        let second = inner.launch(stream, (&first, &mut y))?;
        Ok((second, stream.copy_to_host(&between)?))
    })?;
    let inner_report = inner.report();
    drop((inner, weights));
    let report = outer.report();
    assert_eq!(report.launches, 2 * inner_report.launches);
    for _ in 0..3 {
        let (second, between) = outer.launch(&stream, (&x, &mut y))?;
        same(between.view()?, (floats() * 2.0 + 2.0).view());
        same(y.copy_to_host()?.view(), (floats() * 3.0 + 4.0).view());
        same(second.copy_to_host()?.view(), (floats() * 3.0 + 4.0).view());
    }
    Ok(())
}

fn a_graph_in_a_graph_takes_parts_and_numbers<B: Backend>(lab: &Lab<B>) -> Verdict {
    let (device, kernel) = (lab.device(), axpy(lab)?);
    let stream = device.stream()?;
    let half = LEN / 2;
    let inner = device
        .record((reads::<f32, _>(half), writes::<f32, _>(half), 0.0f32), |stream, (x, mut y, a)| {
            kernel.launch(stream, &grid(half), (a, &x, &mut y))
        })?;
    let (x, mut y) = (device.to_device(&floats())?, device.to_device(&floats())?);
    let outer = device.record((&x, &mut y, 0.0f32), |stream, (x, mut y, a)| {
        // The same half is read by both; a number of each launch for one, a known one for the other.
        let (mut low, mut high) = y.split_at_mut(0, half)?;
        let from = x.slice(s![..half])?;
        inner.launch(stream, (&from, &mut low, a))?;
        inner.launch(stream, (&from, &mut high, 5.0f32))
    })?;
    for a in [1.0f32, 2.0, 2.0, -3.0] {
        stream.copy_to_device(&mut y, &floats())?;
        outer.launch(&stream, (&x, &mut y, a))?;
        let mut expected = floats();
        let low = floats().slice(s![..half]).to_owned();
        expected.slice_mut(s![..half]).scaled_add(a, &low);
        expected.slice_mut(s![half..]).scaled_add(5.0, &low);
        same(y.copy_to_host()?.view(), expected.view());
    }
    // In a body nothing is bound that a launch would not bind.
    let mut verdict = Ok(());
    let other = device.record((&x,), |stream, (x,)| {
        let mut y = stream.device_array::<f32, _>(half)?;
        verdict =
            refused(inner.launch(stream, (&x, &mut y, 1.0f32)), |kind| matches!(kind, ErrorKind::Layout(_)));
        Ok(())
    })?;
    verdict?;
    assert_eq!(other.report().launches, 0);
    let mut z = device.device_array::<f32, _>(half)?;
    let outside = device.to_device(&Array1::from(elements::<f32>(half)))?;
    let refusal = device.record((), |stream, ()| inner.launch(stream, (&outside, &mut z, 1.0f32)));
    refused(refusal, |kind| matches!(kind, ErrorKind::NotRecordable { .. }))
}

fn results_are_made_by_the_body<B: Backend>(lab: &Lab<B>) -> Verdict {
    let (device, stream) = (lab.device(), lab.device().stream()?);
    // A view that lives for ever is one of what each launch makes.
    let graph = device.record((), |stream, ()| {
        let array = Box::leak(Box::new(stream.to_device(&[1u32, 2, 3, 4])?));
        let (low, high) = array.split_at_mut(0, 1)?;
        Ok((high, low))
    })?;
    let (high, low) = graph.launch(&stream, ())?;
    same(high.copy_to_host()?.view(), Array1::from(vec![2, 3, 4]).view());
    same(low.copy_to_host()?.view(), Array1::from(vec![1]).view());
    Ok(())
}

fn graphs_share_memory<B: Backend>(lab: &Lab<B>) -> Verdict {
    let device = lab.device();
    let (memory, streams) = (GraphMemory::new(device), [device.stream()?, device.stream()?]);
    let graph = |len: usize| {
        device.record_in(&memory, (reads::<u32, _>(len),), |stream, (x,)| {
            let inside = stream.to_device(&x.slice(s![..;-1])?)?;
            stream.copy_to_host(&inside)
        })
    };
    // The second one makes the memory grow while the first one runs, the third one fits.
    let first = graph(1000)?;
    let x = device.to_device(&Array1::from(elements::<u32>(5000)))?;
    let mut all = Vec::new();
    lab.delay(&streams[0])?;
    all.push((1000, first.launch(&streams[0], (&x.slice(s![..1000])?,))?));
    let (second, third) = (graph(5000)?, graph(10)?);
    for round in 0..10 {
        let stream = &streams[round % 2];
        if round % 4 == 0 {
            lab.delay(stream)?;
        }
        all.push((5000, second.launch(stream, (&x,))?));
        all.push((10, third.launch(stream, (&x.slice(s![..10])?,))?));
        all.push((1000, first.launch(stream, (&x.slice(s![..1000])?,))?));
    }
    drop((memory, first, second, third));
    for (len, found) in all {
        let expected = Array1::from(elements::<u32>(5000));
        same(found.view()?, expected.slice(s![..len;-1]));
    }
    Ok(())
}
