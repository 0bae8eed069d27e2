//! Graphs: their memory beside that of other work, and of each other.

use super::tools::{elements, same};
use crate::{Lab, Level, Verdict, skip};
use gpumem_core::{Backend, ErrorKind, Result};
use gpumem_ops::ArrayOps;
use gpumem_runtime::{Device, DeviceArray, Graph, ReadForm, reads};
use ndarray::{Array1, Ix0, Ix1, s};

cases! { Level::Graphs;
    temporaries_are_no_one_elses,
    reductions_of_two_graphs_do_not_mix,
}

const LEN: usize = 3000;

fn temporaries_are_no_one_elses<B: Backend>(lab: &Lab<B>) -> Verdict {
    let (device, streams) = (lab.device(), [lab.device().stream()?, lab.device().stream()?]);
    let graph = device.record((reads::<u32, _>(LEN),), |stream, (x,)| {
        let other = stream.device().stream()?;
        let first = other.to_device(&x)?;
        let second = stream.to_device(&first.slice(s![..;-1])?)?;
        drop(first);
        let third = other.to_device(&second)?;
        stream.copy_to_host(&third)
    })?;
    assert!(graph.report().arena_bytes >= 2 * 4 * LEN);
    let x = device.to_device(&Array1::from(elements::<u32>(LEN)))?;
    let mut all = Vec::new();
    for round in 0..if lab.is_slow() { 20 } else { 200u32 } {
        let (stream, other) = (&streams[round as usize % 2], &streams[(round as usize + 1) % 2]);
        if round % 16 == 0 {
            lab.delay(stream)?;
        }
        let found = graph.launch(stream, (&x,))?;
        // Blocks of its size come and go beside it, on both streams.
        let mut beside = stream.device_array::<u32, _>(LEN)?;
        stream.fill(&mut beside, round)?;
        let mut dropped = other.device_array::<u32, _>(LEN)?;
        other.fill(&mut dropped, u32::MAX)?;
        all.push((round, found, beside));
        if all.len() > 8 {
            let (round, found, beside) = all.remove(0);
            same(found.view()?, Array1::from(elements::<u32>(LEN)).slice(s![..;-1]));
            same(beside.copy_to_host()?.view(), Array1::from_elem(LEN, round).view());
        }
    }
    Ok(())
}

type Sums<B> = (DeviceArray<i64, Ix0, B>, DeviceArray<i64, Ix1, B>);
type Summing<B> = Graph<(ReadForm<i64, Ix1>,), Sums<B>, B>;

/// The sum and the running sums of an array, which is read backwards by one graph.
fn summing<B: Backend>(device: &Device<B>, backwards: bool) -> Result<Summing<B>> {
    device.record((reads::<i64, _>(LEN),), |stream, (x,)| {
        let x = if backwards { x.slice(s![..;-1])? } else { x.slice(s![..])? };
        Ok((x.on(stream).sum()?, x.on(stream).inclusive_scan(0)?))
    })
}

fn reductions_of_two_graphs_do_not_mix<B: Backend>(lab: &Lab<B>) -> Verdict {
    let (device, streams) = (lab.device(), [lab.device().stream()?, lab.device().stream()?]);
    let graphs = match (summing(device, false), summing(device, true)) {
        (Err(error), _) if matches!(error.kind(), ErrorKind::Unsupported { .. } | ErrorKind::Load(_)) => {
            return skip(error);
        }
        (forwards, backwards) => [forwards?, backwards?],
    };
    for round in 0..if lab.is_slow() { 4 } else { 60i64 } {
        let host = Array1::from_shape_fn(LEN, |at| at as i64 % 97 - round);
        let x = device.to_device(&host)?;
        if round % 8 == 0 {
            lab.delay(&streams[round as usize % 2])?;
        }
        let [forwards, backwards] = [0, 1].map(|at| graphs[at].launch(&streams[at], (&x,)));
        let running = |numbers: Vec<i64>| {
            let sums = numbers.into_iter().scan(0, |sum, number| {
                *sum += number;
                Some(*sum)
            });
            Array1::from_iter(sums)
        };
        let ((sum, scan), (other_sum, other_scan)) = (forwards?, backwards?);
        assert_eq!((sum.read()?, other_sum.read()?), (host.sum(), host.sum()));
        same(scan.copy_to_host()?.view(), running(host.to_vec()).view());
        same(other_scan.copy_to_host()?.view(), running(host.iter().rev().copied().collect()).view());
    }
    Ok(())
}
