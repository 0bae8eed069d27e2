//! Graphs of the driver: a backend that makes them launches them, and keeps a few. Without these cases one whose captures all failed
//! would pass by enqueueing the calls one by one.

use super::tools::{fail, load, same};
use crate::{Lab, Level, Verdict, skip};
use gpumem_core::{Backend, CaptureStart, DriverDevice, Result, Stream as _, StreamOptions};
use gpumem_kernel::{Own, Slice, config_for_items};
use gpumem_runtime::{Graph, WriteForm, writes};
use ndarray::{Array1, Ix1};

mod facade {
    pub(super) use gpumem_kernel as kernel;
}

cases! { Level::Graphs;
    kernels_are_launched_as_a_graph_of_the_driver,
    arrays_in_turn_have_two_graphs_of_the_driver,
    many_arrays_share_graphs_of_the_driver,
}

#[gpumem_macros::kernel(crate = self::facade)]
fn graph_step(a: i32, x: Slice<i32>, y: Own<i32>) {
    let at = global_id(0);
    if at < x.len() {
        y[own()] = a * x[at] - y[own()];
    }
}

const LEN: usize = 200;

type Form = WriteForm<i32, Ix1>;
type Stepping<B> = Graph<(Form, Form, i32), (), B>;

/// `y = a * x - y`, `x = y - x`.
fn steps<B: Backend>(lab: &Lab<B>) -> Verdict<Stepping<B>> {
    let (kernel, dims) = (load(lab, &graph_step())?, config_for_items([LEN, 1, 1], [64, 1, 1]));
    let like = (writes::<i32, _>(LEN), writes::<i32, _>(LEN), 0i32);
    let graph = lab.device().record(like, |stream, (mut x, mut y, a)| {
        kernel.launch(stream, &dims, (a, &x, &mut y))?;
        kernel.launch(stream, &dims, (1, &y, &mut x))
    })?;
    assert_eq!((graph.report().driver_graphs, graph.report().replayed), (0, None), "nothing was launched");
    Ok(graph)
}

/// What a launch of [`steps`] makes of the elements.
fn stepped([x, y]: [i32; 2], a: i32) -> [i32; 2] {
    let y = a * x - y;
    [y - x, y]
}

/// How many graphs of the driver there are after a launch. A skip where the backend makes none: its streams say why.
fn driver_graphs<B: Backend>(lab: &Lab<B>, graph: &Stepping<B>) -> Verdict<usize> {
    let report = graph.report();
    let Some(told) = report.replayed else { return Ok(report.driver_graphs) };
    let stream = lab.device().raw().create_stream(&StreamOptions::default())?;
    // SAFETY: nothing is enqueued on it.
    let start = unsafe { stream.begin_capture() }?;
    if !matches!(start, CaptureStart::Refused(_)) {
        stream.end_capture(false)?;
    }
    stream.destroy()?;
    match start {
        CaptureStart::Refused(why) if why == told => skip(why),
        start => fail(format!("the calls are enqueued one by one: {told}; a capture is {start:?}")),
    }
}

fn kernels_are_launched_as_a_graph_of_the_driver<B: Backend>(lab: &Lab<B>) -> Verdict {
    let (stream, graph) = (lab.device().stream()?, steps(lab)?);
    let (mut x, mut y) = (lab.device().to_device(&[2i32; LEN])?, lab.device().to_device(&[1i32; LEN])?);
    let mut expected = [2, 1];
    for a in [1, 1, 0, 2, -1, 0, 3] {
        graph.launch(&stream, (&mut x, &mut y, a))?;
        expected = stepped(expected, a);
        // Other numbers are given to the one that there is.
        assert_eq!(driver_graphs(lab, &graph)?, 1, "for the number {a}");
    }
    for (found, value) in [x, y].iter().zip(expected) {
        same(found.copy_to_host()?.view(), Array1::from_elem(LEN, value).view());
    }
    Ok(())
}

fn arrays_in_turn_have_two_graphs_of_the_driver<B: Backend>(lab: &Lab<B>) -> Verdict {
    let (device, stream, graph) = (lab.device(), lab.device().stream()?, steps(lab)?);
    let (mut x, mut y) = (device.to_device(&[2i32; LEN])?, device.to_device(&[1i32; LEN])?);
    let mut expected = [2, 1];
    for _ in 0..if lab.is_slow() { 10 } else { 60 } {
        graph.launch(&stream, (&mut x, &mut y, 1))?;
        let [now_y, now_x] = stepped(expected, 1);
        expected = [now_x, now_y];
        std::mem::swap(&mut x, &mut y);
    }
    assert_eq!(driver_graphs(lab, &graph)?, 2);
    for (found, value) in [x, y].iter().zip(expected) {
        same(found.copy_to_host()?.view(), Array1::from_elem(LEN, value).view());
    }
    Ok(())
}

fn many_arrays_share_graphs_of_the_driver<B: Backend>(lab: &Lab<B>) -> Verdict {
    let (device, stream, graph) = (lab.device(), lab.device().stream()?, steps(lab)?);
    let count = if lab.is_slow() { 20 } else { 100 };
    let pair = |number: i32| Ok((device.to_device(&[number; LEN])?, device.to_device(&[1i32; LEN])?));
    let mut all = (0..count).map(pair).collect::<Result<Vec<_>>>()?;
    for (x, y) in &mut all {
        graph.launch(&stream, (x, y, 5))?;
        let kept = driver_graphs(lab, &graph)?;
        assert!((1..=16).contains(&kept), "{kept} graphs of the driver");
    }
    for ((x, y), number) in all.iter().zip(0..) {
        let [of_x, of_y] = stepped([number, 1], 5);
        same(x.copy_to_host()?.view(), Array1::from_elem(LEN, of_x).view());
        same(y.copy_to_host()?.view(), Array1::from_elem(LEN, of_y).view());
    }
    Ok(())
}
