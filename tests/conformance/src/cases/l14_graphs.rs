//! Graphs: a launch does what the recorded calls would have done, with the arrays of that launch.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a panic of a case is its failure")]

use super::tools::{elements, load, same};
use crate::{Lab, Level, Verdict, skip};
use gpumem_core::{Backend, ErrorKind, Result};
use gpumem_kernel::{Kernel, Own, Slice, config_for_items};
use gpumem_ops::ArrayOps;
use gpumem_runtime::{DeviceArray, Stream, reads, writes};
use ndarray::{Array1, Array2, Ix1, s};
use std::{sync::Mutex, thread};

mod facade {
    pub(super) use gpumem_kernel as kernel;
}

cases! { Level::Graphs;
    nothing_runs_before_a_launch,
    a_launch_does_what_the_calls_do,
    results_are_those_of_their_launch,
    launches_are_ordered_with_all_other_work,
    results_and_arguments_go_from_stream_to_stream,
    one_graph_on_many_streams_and_threads,
    copies_of_any_layout_are_recorded,
    fills_of_any_value_are_recorded,
    elements_of_the_host_are_kept,
    operations_are_recorded,
    streams_inside_are_recorded,
    random_programs_on_several_streams,
    temporaries_in_turn_share_memory,
    a_graph_is_dropped_in_flight,
    memory_stays_flat,
    addresses_come_back_as_other_memory,
    arrays_without_elements_are_arguments,
}

type Axpy = (f32, Slice<f32>, Own<f32>);

#[gpumem_macros::kernel(crate = self::facade)]
fn graph_axpy(a: f32, x: Slice<f32>, y: Own<f32>) {
    let at = global_id(0);
    if at < x.len() {
        y[own()] = a * x[at] + y[own()];
    }
}

/// `y = a * x + y`, or a skip where the device takes no kernels.
fn axpy<B: Backend>(lab: &Lab<B>) -> Verdict<Kernel<Axpy, B>> {
    load(lab, &graph_axpy())
}

fn floats(len: usize) -> Array1<f32> {
    Array1::from_shape_fn(len, |at| (at % 1000) as f32 * 0.25 - 20.0)
}

fn grid(len: usize) -> gpumem_core::LaunchConfig {
    config_for_items([len, 1, 1], [64, 1, 1])
}

const LEN: usize = 1000;

fn nothing_runs_before_a_launch<B: Backend>(lab: &Lab<B>) -> Verdict {
    let (device, kernel) = (lab.device(), axpy(lab)?);
    let (x, mut y) = (device.to_device(&floats(LEN))?, device.to_device(&floats(LEN))?);
    device.synchronize()?;
    let before = device.counters();
    let graph = device.record((&x, &mut y), |stream, (x, mut y)| {
        kernel.launch(stream, &grid(LEN), (2.0f32, &x, &mut y))?;
        stream.fill(&mut y.slice_mut(s![..10])?, 0.0)?;
        stream.copy_to_device(&mut y.slice_mut(s![10..20])?, &x.slice(s![..10])?)
    })?;
    let after = device.counters();
    assert_eq!((before.fills, before.copies), (after.fills, after.copies));
    same(y.copy_to_host()?.view(), floats(LEN).view());
    let report = graph.report();
    assert_eq!((report.launches, report.fills, report.copies), (1, 1, 1));
    assert_eq!((report.arena_bytes, report.constant_bytes), (0, 0));
    // One stream: one after the other.
    assert_eq!((report.nodes, report.edges), (3, 2));
    let picture = graph.dot();
    assert!(picture.contains("launch graph_axpy") && picture.contains("s0 -> s1"), "{picture}");
    assert!(picture.contains("s1 -> s2") && !picture.contains("s0 -> s2"), "{picture}");
    assert!(report.to_string().starts_with("3 nodes and 2 edges: 1 launches"), "{report}");
    Ok(())
}

fn a_launch_does_what_the_calls_do<B: Backend>(lab: &Lab<B>) -> Verdict {
    let (device, kernel) = (lab.device(), axpy(lab)?);
    let stream = device.stream()?;
    let body = |stream: &Stream<B>, x: &DeviceArray<f32, Ix1, B>, y: &mut DeviceArray<f32, Ix1, B>| {
        kernel.launch(stream, &grid(LEN), (2.0f32, x, &mut *y))?;
        let twice = stream.to_device(&*y)?;
        kernel.launch(stream, &grid(LEN), (0.5f32, &twice, &mut *y))?;
        Ok::<_, gpumem_core::Error>(twice)
    };
    let (x, mut expected) = (device.to_device(&floats(LEN))?, device.to_device(&floats(LEN))?);
    let mut y = device.to_device(&floats(LEN))?;
    let graph = device.record((&x, &mut y), |stream, (x, mut y)| {
        kernel.launch(stream, &grid(LEN), (2.0f32, &x, &mut y))?;
        let twice = stream.to_device(&y)?;
        kernel.launch(stream, &grid(LEN), (0.5f32, &twice, &mut y))?;
        Ok(twice)
    })?;
    for _ in 0..3 {
        let (found, right) = (graph.launch(&stream, (&x, &mut y))?, body(&stream, &x, &mut expected)?);
        same(found.copy_to_host()?.view(), right.copy_to_host()?.view());
        same(y.copy_to_host()?.view(), expected.copy_to_host()?.view());
    }
    // Other arrays, and no array at all where there is a specification.
    let graph = device.record((reads::<f32, _>(LEN), writes::<f32, _>(LEN)), |stream, (x, mut y)| {
        kernel.launch(stream, &grid(LEN), (1.0f32, &x, &mut y))
    })?;
    for seed in 0..20 {
        let (x, mut y) = (device.to_device(&(floats(LEN) + seed as f32))?, device.to_device(&floats(LEN))?);
        graph.launch(&stream, (&x, &mut y))?;
        same(y.copy_to_host()?.view(), (2.0 * floats(LEN) + seed as f32).view());
    }
    Ok(())
}

fn results_are_those_of_their_launch<B: Backend>(lab: &Lab<B>) -> Verdict {
    let (device, stream) = (lab.device(), lab.device().stream()?);
    let mut x = device.to_device(&[0u32; 64])?;
    let graph = device.record((&x,), |stream, (x,)| {
        let copy = stream.to_device(&x)?;
        Ok((copy, stream.copy_to_host(&x)?, vec![stream.to_device(&x.slice(s![..;2])?)?]))
    })?;
    let mut all = Vec::new();
    for round in 0..10u32 {
        lab.delay(&stream)?;
        stream.fill(&mut x, round)?;
        all.push(graph.launch(&stream, (&x,))?);
    }
    drop(graph);
    for (round, (copy, pinned, parts)) in all.into_iter().enumerate() {
        let expected = Array1::from_elem(64, round as u32);
        same(pinned.view()?, expected.view());
        same(copy.copy_to_host()?.view(), expected.view());
        same(parts[0].copy_to_host()?.view(), expected.slice(s![..32]));
    }
    // An array of the host that nothing writes.
    let graph = device.record((), |stream, ()| stream.device().pinned_array::<u32, _>(5))?;
    same(graph.launch(&stream, ())?.view()?, Array1::zeros(5).view());
    Ok(())
}

fn launches_are_ordered_with_all_other_work<B: Backend>(lab: &Lab<B>) -> Verdict {
    let device = lab.device();
    let (one, two, three) = (device.stream()?, device.stream()?, device.stream()?);
    let (mut x, mut y) = (device.to_device(&[0u32; 256])?, device.to_device(&[0u32; 256])?);
    let graph = device.record((&x, &mut y), |stream, (x, mut y)| {
        let inside = stream.to_device(&x)?;
        stream.copy_to_device(&mut y, &inside)
    })?;
    for round in 1..20u32 {
        // What it reads is written late, and what it writes is read late, on other streams.
        lab.delay(&one)?;
        one.fill(&mut x, round)?;
        graph.launch(&two, (&x, &mut y))?;
        one.fill(&mut x, 0)?;
        let back = three.copy_to_host(&y)?;
        three.fill(&mut y, 0)?;
        same(back.view()?, Array1::from_elem(256, round).view());
    }
    Ok(())
}

fn results_and_arguments_go_from_stream_to_stream<B: Backend>(lab: &Lab<B>) -> Verdict {
    let device = lab.device();
    let (one, two) = (device.stream()?, device.stream()?);
    let step = device.record((reads::<u32, _>(512),), |stream, (x,)| {
        let mut next = stream.device_array::<u32, _>(512)?;
        stream.copy_to_device(&mut next.slice_mut(s![1..])?, &x.slice(s![..511])?)?;
        Ok(next)
    })?;
    let mut x = device.to_device(&Array1::from_iter(1..=512u32))?;
    for round in 0..16 {
        let stream = if round % 2 == 0 { &one } else { &two };
        if round % 5 == 0 {
            lab.delay(stream)?;
        }
        // The array of the round before is dropped with work in flight.
        x = step.launch(stream, (&x,))?;
    }
    let expected = Array1::from_shape_fn(512, |at| (at as u32 + 1).saturating_sub(16));
    same(x.copy_to_host()?.view(), expected.view());
    Ok(())
}

fn one_graph_on_many_streams_and_threads<B: Backend>(lab: &Lab<B>) -> Verdict {
    let device = lab.device();
    let graph = device.record((reads::<u32, _>(LEN),), |stream, (x,)| {
        // Through a temporary, which all launches share.
        let inside = stream.to_device(&x)?;
        let twice = stream.to_device(&inside.slice(s![..;-1])?)?;
        stream.to_device(&twice)
    })?;
    assert!(graph.report().arena_bytes >= 2 * LEN * 4);
    let streams = [device.stream()?, device.stream()?, device.stream()?];
    let failed = Mutex::new(None);
    thread::scope(|scope| {
        for thread in 0..3u32 {
            let (graph, streams, failed, device) = (graph.clone(), &streams, &failed, device.clone());
            scope.spawn(move || {
                let run = || -> Result<()> {
                    let mut all = Vec::new();
                    for round in 0..15u32 {
                        let values = Array1::from_shape_fn(LEN, |at| at as u32 + 1000 * round + thread);
                        let x = device.to_device(&values)?;
                        let stream = &streams[(round as usize + thread as usize) % streams.len()];
                        all.push((values, graph.launch(stream, (&x,))?));
                    }
                    for (values, found) in all {
                        same(found.copy_to_host()?.view(), values.slice(s![..;-1]));
                    }
                    Ok(())
                };
                if let Err(error) = run() {
                    *failed.lock().unwrap() = Some(error);
                }
            });
        }
    });
    match failed.into_inner().unwrap() {
        Some(error) => Err(error.into()),
        None => Ok(()),
    }
}

fn copies_of_any_layout_are_recorded<B: Backend>(lab: &Lab<B>) -> Verdict {
    let (device, stream) = (lab.device(), lab.device().stream()?);
    let host = Array2::from_shape_vec((24, 32), elements::<u32>(24 * 32)).unwrap();
    let (x, mut y) = (device.to_device(&host)?, device.to_device(&Array2::<u32>::zeros((32, 24)))?);
    let graph = device.record((&x, &mut y), |stream, (x, mut y)| {
        stream.copy_to_device(&mut y, &x.t())?;
        let packed = stream.to_device(&x.slice(s![..;2, ..;-3])?)?;
        stream.assign(&mut y.slice_mut(s![4..6, ..])?, &x.slice(s![0, ..24])?)?;
        let back = stream.copy_to_host(&packed)?;
        Ok((packed, back))
    })?;
    let (packed, back) = graph.launch(&stream, (&x, &mut y))?;
    let mut expected = host.t().to_owned();
    expected.slice_mut(s![4..6, ..]).assign(&host.slice(s![0, ..24]));
    same(y.copy_to_host()?.view(), expected.view());
    same(packed.copy_to_host()?.view(), host.slice(s![..;2, ..;-3]));
    same(back.view()?, host.slice(s![..;2, ..;-3]));
    // Views as arguments: any strides, if they are those that were recorded.
    let graph = device.record((&x.slice(s![..;-2, 3..;4])?,), |stream, (x,)| stream.to_device(&x))?;
    let found = graph.launch(&stream, (&x.slice(s![..;-2, 3..;4])?,))?;
    same(found.copy_to_host()?.view(), host.slice(s![..;-2, 3..;4]));
    Ok(())
}

fn fills_of_any_value_are_recorded<B: Backend>(lab: &Lab<B>) -> Verdict {
    let (device, stream) = (lab.device(), lab.device().stream()?);
    let mut x = device.device_array::<f64, _>((8, 16))?;
    let mut y = device.device_array::<[u8; 3], _>(100)?;
    let graph = device.record((&mut x, &mut y), |stream, (mut x, mut y)| {
        stream.fill(&mut x, 0.1)?;
        stream.fill(&mut x.slice_mut(s![..;2, 3..9])?, -0.0)?;
        stream.fill(&mut y, [1, 2, 3])?;
        stream.fill(&mut x, 0.1)?;
        stream.fill(&mut x.slice_mut(s![1..3, ..])?, 7.5)
    })?;
    graph.launch(&stream, (&mut x, &mut y))?;
    let mut expected = Array2::from_elem((8, 16), 0.1);
    expected.slice_mut(s![1..3, ..]).fill(7.5);
    same(x.copy_to_host()?.view(), expected.view());
    same(y.copy_to_host()?.view(), Array1::from_elem(100, [1, 2, 3]).view());
    Ok(())
}

fn elements_of_the_host_are_kept<B: Backend>(lab: &Lab<B>) -> Verdict {
    let (device, stream) = (lab.device(), lab.device().stream()?);
    let graph = device.record((), |stream, ()| {
        let large = elements::<u32>(300_000);
        let turned = Array2::from_shape_vec((3, 4), elements::<u16>(12)).unwrap();
        let results = (stream.to_device(&large)?, stream.to_device(&turned.t())?);
        // The graph has its own copies.
        drop((large, turned));
        Ok(results)
    })?;
    assert_eq!(graph.report().constant_bytes, 300_000usize.next_multiple_of(64) * 4 + 24);
    for _ in 0..3 {
        let (large, turned) = graph.launch(&stream, ())?;
        same(large.copy_to_host()?.view(), Array1::from(elements::<u32>(300_000)).view());
        let host = Array2::from_shape_vec((3, 4), elements::<u16>(12)).unwrap();
        same(turned.copy_to_host()?.view(), host.t());
        // Results belong to the caller, and the next launch does not see what becomes of them.
        drop((large, turned));
    }
    Ok(())
}

fn operations_are_recorded<B: Backend>(lab: &Lab<B>) -> Verdict {
    let (device, stream) = (lab.device(), lab.device().stream()?);
    let host = Array1::from_shape_fn(70_000, |at| (at % 97) as i64 - 40);
    let x = device.to_device(&host)?;
    let graph = device.record((&x,), |stream, (x,)| {
        let on = x.on(stream);
        Ok((on.sum()?, on.inclusive_scan(0)?, on.argmax()?, stream.copy_to_host(&on.max()?)?))
    });
    let graph = match graph {
        Err(error) if matches!(error.kind(), ErrorKind::Unsupported { .. } | ErrorKind::Load(_)) => {
            return skip(error);
        }
        graph => graph?,
    };
    for _ in 0..3 {
        lab.delay(&stream)?;
        let (sum, scan, place, greatest) = graph.launch(&stream, (&x,))?;
        assert_eq!(sum.read()?, host.sum());
        let mut running = 0;
        same(
            scan.copy_to_host()?.view(),
            host.mapv(|value| {
                running += value;
                running
            })
            .view(),
        );
        assert_eq!((place.read()?, greatest.view()?[()]), (96, 56));
    }
    Ok(())
}

fn streams_inside_are_recorded<B: Backend>(lab: &Lab<B>) -> Verdict {
    let (device, stream) = (lab.device(), lab.device().stream()?);
    let (x, mut y) = (device.to_device(&[5u32; 128])?, device.to_device(&[0u32; 256])?);
    let graph = device.record((&x, &mut y), |stream, (x, mut y)| {
        let other = stream.device().stream()?;
        let (mut low, mut high) = y.split_at_mut(0, 128)?;
        stream.copy_to_device(&mut low, &x)?;
        other.copy_to_device(&mut high, &x)?;
        let copy = other.to_device(&high)?;
        // By the device.
        let zeros = stream.device().clone().device_array::<u32, _>(4)?;
        Ok((copy, zeros))
    })?;
    let (copy, zeros) = graph.launch(&stream, (&x, &mut y))?;
    same(y.copy_to_host()?.view(), Array1::from_elem(256, 5).view());
    same(copy.copy_to_host()?.view(), Array1::from_elem(128, 5).view());
    same(zeros.copy_to_host()?.view(), Array1::zeros(4).view());
    // The results belong to no recording.
    zeros.device()?.synchronize()?;
    Ok(())
}

/// A part of a random program: what it does on which stream to which of four arrays.
#[derive(Debug, Clone, Copy)]
struct Part {
    kind: u32,
    stream: usize,
    /// Two different arrays.
    arrays: [usize; 2],
    /// Where it begins in each, and how many elements it has.
    starts: [usize; 2],
    len: usize,
}

impl Part {
    const LEN: usize = 256;

    fn random(next: &mut impl FnMut(usize) -> usize) -> Self {
        let first = next(4);
        let (arrays, len) = ([first, (first + 1 + next(3)) % 4], 1 + next(Self::LEN));
        let starts = [next(Self::LEN - len + 1), next(Self::LEN - len + 1)];
        Self { kind: next(4) as u32, stream: next(3), arrays, starts, len }
    }

    fn ranges(&self) -> [std::ops::Range<usize>; 2] {
        self.starts.map(|start| start..start + self.len)
    }

    /// Enqueues it, in a body.
    fn enqueue<B: Backend>(
        self,
        kernel: &Kernel<Axpy, B>,
        streams: &[Stream<B>; 3],
        arrays: &mut [gpumem_runtime::DeviceViewMut<'_, f32, Ix1, B>],
    ) -> Result<()> {
        let (stream, [from, to]) = (&streams[self.stream], self.ranges());
        let [x, y] = arrays.get_disjoint_mut(self.arrays).unwrap();
        let (x, mut y) = (x.slice(s![from])?, y.slice_mut(s![to])?);
        match self.kind {
            0 => stream.fill(&mut y, self.len as f32),
            1 => stream.copy_to_device(&mut y, &x),
            2 => {
                // By a temporary that another stream reads.
                let temporary = stream.to_device(&x.slice(s![..;-1])?)?;
                streams[(self.stream + 1) % 3].copy_to_device(&mut y, &temporary)
            }
            _ => kernel.launch(stream, &grid(self.len), (0.5f32, &x, &mut y)),
        }
    }

    /// Does it to arrays of the host.
    fn run(self, arrays: &mut [Array1<f32>]) {
        let [from, to] = self.ranges();
        let x = arrays[self.arrays[0]].slice(s![from]).to_owned();
        let mut y = arrays[self.arrays[1]].slice_mut(s![to]);
        match self.kind {
            0 => y.fill(self.len as f32),
            1 => y.assign(&x),
            2 => y.assign(&x.slice(s![..;-1])),
            _ => y.zip_mut_with(&x, |y, x| *y += 0.5 * x),
        }
    }
}

fn random_programs_on_several_streams<B: Backend>(lab: &Lab<B>) -> Verdict {
    let (device, kernel) = (lab.device(), axpy(lab)?);
    let stream = device.stream()?;
    for seed in 0..if lab.is_slow() { 3 } else { 20u64 } {
        let mut state = seed + 1;
        let mut next = |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % below
        };
        let parts: Vec<Part> = (0..40).map(|_| Part::random(&mut next)).collect();
        let mut expected: Vec<_> = (0..4).map(|at| floats(Part::LEN) + at as f32).collect();
        let arrays: Result<Vec<_>> = expected.iter().map(|array| device.to_device(array)).collect();
        let mut arrays = arrays?;
        let graph = device.record((arrays.iter_mut().collect::<Vec<_>>(),), |stream, (mut arrays,)| {
            let streams = [stream.clone(), device_stream(stream)?, device_stream(stream)?];
            parts.iter().try_for_each(|part| part.enqueue(&kernel, &streams, &mut arrays))
        })?;
        for _ in 0..3 {
            graph.launch(&stream, (arrays.iter_mut().collect::<Vec<_>>(),))?;
            parts.iter().for_each(|part| part.run(&mut expected));
        }
        for (found, expected) in arrays.iter().zip(&expected) {
            same(found.copy_to_host()?.view(), expected.view());
        }
    }
    Ok(())
}

fn device_stream<B: Backend>(stream: &Stream<B>) -> Result<Stream<B>> {
    stream.device().stream()
}

fn temporaries_in_turn_share_memory<B: Backend>(lab: &Lab<B>) -> Verdict {
    let (device, stream) = (lab.device(), lab.device().stream()?);
    let x = device.to_device(&Array1::from(elements::<u32>(1 << 14)))?;
    let graph = device.record((&x,), |stream, (x,)| {
        let mut last = stream.to_device(&x)?;
        for _ in 0..6 {
            last = stream.to_device(&last)?;
        }
        Ok(last)
    })?;
    let report = graph.report();
    // Six, of which two are alive at a time.
    assert_eq!((report.temporary_bytes, report.arena_bytes), (6 << 16, 2 << 16));
    same(graph.launch(&stream, (&x,))?.copy_to_host()?.view(), x.copy_to_host()?.view());
    Ok(())
}

fn a_graph_is_dropped_in_flight<B: Backend>(lab: &Lab<B>) -> Verdict {
    let (device, stream) = (lab.device(), lab.device().stream()?);
    for _ in 0..5 {
        let x = device.to_device(&Array1::from(elements::<u32>(4096)))?;
        let graph = device.record((&x,), |stream, (x,)| {
            let inside = stream.to_device(&x)?;
            stream.to_device(&inside)
        })?;
        lab.delay(&stream)?;
        let found = graph.launch(&stream, (&x,))?;
        drop((graph, x));
        // Memory of the same size, which may be that of the graph.
        let mut other = device.uninit_array::<u32, _>(4096)?.fill(1)?;
        other.fill(2)?;
        same(found.copy_to_host()?.view(), Array1::from(elements::<u32>(4096)).view());
        same(other.copy_to_host()?.view(), Array1::from_elem(4096, 2).view());
    }
    Ok(())
}

fn memory_stays_flat<B: Backend>(lab: &Lab<B>) -> Verdict {
    let (device, stream) = (lab.device(), lab.device().stream()?);
    let mut kept = None;
    let mut round = || -> Result<()> {
        let graph = device.record((reads::<u32, _>(1000),), |stream, (x,)| {
            let inside = stream.to_device(&x)?;
            Ok((stream.to_device(&inside)?, stream.copy_to_host(&inside)?, stream.to_device(&[1u8; 100])?))
        })?;
        let x = device.to_device(&[3u32; 1000])?;
        // Longer than the graph.
        let results = graph.launch(&stream, (&x,))?;
        drop(graph);
        let copy = results.0.copy_to_host()?;
        assert_eq!((copy[999], results.1.view()?[0]), (3, 3));
        kept = Some(results);
        stream.synchronize()
    };
    round()?;
    let allocated = |kind: &str| -> Result<usize> {
        // Blocks that uploads have gone through are kept otherwise.
        device.flush()?;
        let report = device.memory_report()?;
        let outermost =
            report.kinds.iter().filter(|one| one.kind == kind).filter_map(|one| one.resources.first());
        Ok(outermost.map(|resource| resource.statistics.allocated).sum())
    };
    let before = (allocated("device")?, allocated("pinned")?);
    (0..if lab.is_slow() { 10 } else { 1000 }).try_for_each(|_| round())?;
    assert_eq!((allocated("device")?, allocated("pinned")?), before);
    drop(kept);
    Ok(())
}

/// CUDA remembers which page-locked allocation a copy of its graph was of.
fn addresses_come_back_as_other_memory<B: Backend>(lab: &Lab<B>) -> Verdict {
    let (device, stream) = (lab.device(), lab.device().stream()?);
    for len in [1 << 10, 1 << 20] {
        let x = device.to_device(&Array1::from(elements::<u32>(len)))?;
        let graph = device.record((&x,), |stream, (x,)| stream.copy_to_host(&x))?;
        for _ in 0..4 {
            let found = graph.launch(&stream, (&x,))?;
            same(found.view()?, x.copy_to_host()?.view());
            drop(found);
            device.flush()?;
        }
    }
    Ok(())
}

fn arrays_without_elements_are_arguments<B: Backend>(lab: &Lab<B>) -> Verdict {
    let (device, stream) = (lab.device(), lab.device().stream()?);
    let (x, mut y) = (device.device_array::<f32, _>((0, 3))?, device.device_array::<f32, _>((3, 0))?);
    let graph = device.record((&x, &mut y), |stream, (x, mut y)| {
        stream.copy_to_device(&mut y, &x.t())?;
        stream.fill(&mut y, 1.0)?;
        Ok((stream.to_device(&x)?, stream.copy_to_host(&x)?, stream.device_array::<f32, _>(0)?))
    })?;
    assert_eq!(graph.report().nodes, 0);
    let (copy, pinned, empty) = graph.launch(&stream, (&x, &mut y))?;
    assert_eq!((copy.shape(), pinned.view()?.shape(), empty.len()), (&[0, 3][..], &[0, 3][..], 0));
    copy.device()?.synchronize()?;
    assert!(stream.to_device(&copy)?.is_empty());
    Ok(())
}
