//! Failures in graphs: they stay with what depends on what failed.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a panic of a case is its failure")]

use super::tools::{fail, load, same};
use crate::{Lab, Level, Verdict, skip};
use gpumem_core::{Backend, LaunchConfig};
use gpumem_kernel::{Kernel, KernelDef, Slice, SliceMut, WorkItemIds, config_for_items};
use gpumem_runtime::{Device, DeviceArray, Graph, ReadForm, Stream, WriteForm, reads, writes};
use ndarray::{Array1, Ix1};

cases! { Level::Graphs;
    a_failure_stays_with_what_depends_on_it,
    results_of_a_failed_launch_are_not_shown,
}

const LEN: usize = 8;

type Scale = (Slice<f32>, SliceMut<f32>);
type Write = WriteForm<f32, Ix1>;
type Two<B> = Graph<(ReadForm<f32, Ix1>, Write, Write, Write), DeviceArray<f32, Ix1, B>, B>;

fn grid() -> LaunchConfig {
    config_for_items([LEN, 1, 1], [8, 1, 1])
}

/// `y = 2 * x`, and the same where no element is above 1000.
fn kernels<B: Backend>(lab: &Lab<B>) -> Verdict<(Kernel<Scale, B>, Kernel<Scale, B>)> {
    if !lab.device().capabilities().survives_faults {
        return skip("a fault of a kernel loses the device");
    }
    // SAFETY: there is no source.
    let (double, check) = unsafe {
        (
            KernelDef::<Scale>::new("double").host_loop(|ids: &WorkItemIds<'_>, (x, y): &Scale| {
                y.set(ids.global_id(0), 2.0 * x.get(ids.global_id(0)));
            }),
            KernelDef::<Scale>::new("check").host_loop(|ids: &WorkItemIds<'_>, (x, y): &Scale| {
                let value = x.get(ids.global_id(0));
                if value > 1000.0 {
                    x.get(1_000_000);
                }
                y.set(ids.global_id(0), 2.0 * value);
            }),
        )
    };
    Ok((load(lab, &double)?, load(lab, &check)?))
}

/// Two branches: `a = 2x`, a checked step into memory of the graph, `e` from that on a third stream, and a result; and `d = 4x`,
/// by memory of the graph. Skipped where the calls are
/// enqueued one by one, so that all of it fails.
fn two_branches<B: Backend>(lab: &Lab<B>, device: &Device<B>, stream: &Stream<B>) -> Verdict<Two<B>> {
    let (double, check) = kernels(lab)?;
    let like = (reads::<f32, _>(LEN), writes::<f32, _>(LEN), writes::<f32, _>(LEN), writes::<f32, _>(LEN));
    let graph = device.record(like, |stream, (x, mut a, mut d, mut e)| {
        let (other, third) = (stream.device().stream()?, stream.device().stream()?);
        let (mut t, mut b) = (stream.device_array::<f32, _>(LEN)?, other.device_array::<f32, _>(LEN)?);
        double.launch(stream, &grid(), (&x, &mut a))?;
        double.launch(&other, &grid(), (&x, &mut b))?;
        check.launch(stream, &grid(), (&a, &mut t))?;
        double.launch(&other, &grid(), (&b, &mut d))?;
        double.launch(&third, &grid(), (&t, &mut e))?;
        stream.to_device(&t)
    })?;
    let x = device.to_device(&[1.0f32; LEN])?;
    let mut arrays = (device.to_device(&x)?, device.to_device(&x)?, device.to_device(&x)?);
    drop(graph.launch(stream, (&x, &mut arrays.0, &mut arrays.1, &mut arrays.2))?);
    stream.synchronize()?;
    match graph.report().replayed {
        Some(why) => skip(why),
        None => Ok(graph),
    }
}

fn a_failure_stays_with_what_depends_on_it<B: Backend>(lab: &Lab<B>) -> Verdict {
    let (device, stream) = (lab.device(), lab.device().stream()?);
    let graph = two_branches(lab, device, &stream)?;
    let picture = graph.dot();
    let checked = picture.lines().find(|line| line.contains("check")).unwrap_or_default().trim_start();
    let node = checked.split_whitespace().next().unwrap_or_default().to_owned();
    let (mut a, mut d) = (device.device_array::<f32, _>(LEN)?, device.device_array::<f32, _>(LEN)?);
    let mut e = device.device_array::<f32, _>(LEN)?;
    for round in 0..6 {
        let mut host = Array1::from_shape_fn(LEN, |at| (at + round) as f32);
        let is_bad = round % 2 == 0;
        if is_bad {
            host[5] = 600.0;
        }
        let x = device.to_device(&host)?;
        lab.delay(&stream)?;
        let made = graph.launch(&stream, (&x, &mut a, &mut d, &mut e))?;
        let told = [
            stream.synchronize().err(),
            e.copy_to_host().err(),
            made.copy_to_host().err(),
            stream.to_device(&e).err(),
        ];
        same(a.copy_to_host()?.view(), (2.0 * &host).view());
        same(d.copy_to_host()?.view(), (4.0 * &host).view());
        for error in &told {
            let text = error.as_ref().map(ToString::to_string).unwrap_or_default();
            let parts =
                [&*format!("node {node} of a graph"), "kernel \"check\"", "work-item (5, 0, 0)", "1000000"];
            if is_bad != parts.iter().all(|part| text.contains(part)) || is_bad != error.is_some() {
                return fail(format!("round {round}: {text:?} is not the failure of node {node}"));
            }
        }
        if is_bad {
            // Made good, for a kernel that might read it.
            stream.fill(&mut e, 0.0)?;
        } else {
            same(e.copy_to_host()?.view(), (8.0 * &host).view());
            same(made.copy_to_host()?.view(), (4.0 * &host).view());
        }
    }
    let _ = (stream.synchronize(), device.take_errors());
    Ok(())
}

/// A launch after one that failed: its results are those of its own arguments, also where their memory is that of the failed one.
fn results_of_a_failed_launch_are_not_shown<B: Backend>(lab: &Lab<B>) -> Verdict {
    let (device, stream) = (lab.device(), lab.device().stream()?);
    let (_, check) = kernels(lab)?;
    let graph = device.record((reads::<f32, _>(LEN),), |stream, (x,)| {
        let mut y = stream.device_array::<f32, _>(LEN)?;
        check.launch(stream, &grid(), (&x, &mut y))?;
        Ok((stream.to_device(&y)?, stream.copy_to_host(&y)?))
    })?;
    for round in 0..8 {
        let (value, is_bad) = (round as f32, round % 3 == 0);
        let x = device.to_device(&[if is_bad { 2000.0 } else { value }; LEN])?;
        let (copy, host) = graph.launch(&stream, (&x,))?;
        match (is_bad, host.view(), copy.copy_to_host()) {
            (true, Err(_), Err(_)) => {}
            (false, Ok(host), Ok(copy)) => {
                same(host, Array1::from_elem(LEN, 2.0 * value).view());
                same(copy.view(), Array1::from_elem(LEN, 2.0 * value).view());
            }
            (_, host, copy) => return fail(format!("round {round}: {host:?} and {copy:?}")),
        }
    }
    let _ = (stream.synchronize(), device.take_errors());
    Ok(())
}
