//! Graphs: their memory beside that of other work, and of each other.

use super::tools::{elements, same};
use crate::{Lab, Level, Verdict, skip};
use gpumem_core::{Backend, ErrorKind, Result};
use gpumem_ops::ArrayOps;
use gpumem_runtime::{Device, DeviceArray, Graph, GraphResults, ReadForm, WriteForm, reads, writes};
use ndarray::{Array1, Ix0, Ix1, s};
use std::collections::BTreeSet;

cases! { Level::Graphs;
    temporaries_are_no_one_elses,
    branches_that_share_bytes_are_in_turn,
    branches_of_a_sum_are_side_by_side,
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

/// The pairs of nodes of which the second follows from the first, by one edge or several.
fn ordered<P, R: GraphResults<B>, B: Backend>(graph: &Graph<P, R, B>) -> BTreeSet<(usize, usize)> {
    let picture = graph.dot();
    let node = |text: &str| text.trim().trim_start_matches('s').trim_end_matches(';').parse::<usize>().ok();
    let edges = picture.lines().filter_map(|line| line.split_once(" -> "));
    let mut pairs: BTreeSet<_> = edges.filter_map(|(from, to)| Some((node(from)?, node(to)?))).collect();
    assert_eq!(pairs.len(), graph.report().edges, "{picture}");
    // Nodes are numbered in the order of the body.
    for middle in 0..graph.report().nodes {
        let before: Vec<_> = pairs.iter().filter(|(_, to)| *to == middle).map(|(from, _)| *from).collect();
        let after: Vec<_> = pairs.iter().filter(|(from, _)| *from == middle).map(|(_, to)| *to).collect();
        pairs.extend(before.iter().flat_map(|from| after.iter().map(move |to| (*from, *to))));
    }
    pairs
}

/// Two branches have a temporary each. `keeps` says whether the first one lives until the second is made.
fn branches<B: Backend>(device: &Device<B>, keeps: bool) -> Result<Copying<B>> {
    let like = (reads::<u32, _>(LEN), writes::<u32, _>(LEN), writes::<u32, _>(LEN));
    device.record(like, |stream, (x, mut y, mut z)| {
        let other = stream.device().stream()?;
        let first = stream.to_device(&x.slice(s![..;-1])?)?;
        stream.copy_to_device(&mut y, &first)?;
        let kept = if keeps { Some(first) } else { None };
        let second = other.to_device(&x)?;
        other.copy_to_device(&mut z, &second.slice(s![..;-1])?)?;
        kept.map_or(Ok(()), |first| stream.copy_to_device(&mut y, &first))
    })
}

fn branches_that_share_bytes_are_in_turn<B: Backend>(lab: &Lab<B>) -> Verdict {
    let (device, stream) = (lab.device(), lab.device().stream()?);
    let host = Array1::from(elements::<u32>(LEN));
    let x = device.to_device(&host)?;
    for keeps in [false, true] {
        let graph = branches(device, keeps)?;
        let arena = graph.report().arena_bytes;
        assert_eq!(arena, if keeps { (4 * LEN).next_multiple_of(256) + 4 * LEN } else { 4 * LEN });
        // The second branch writes what the first one has read; or neither waits for the other.
        let pairs = ordered(&graph);
        assert_eq!([(0, 1), (2, 3)].map(|pair| pairs.contains(&pair)), [true; 2], "{pairs:?}");
        assert_eq!([(1, 2), (0, 3)].map(|pair| pairs.contains(&pair)), [!keeps; 2], "{pairs:?}");
        for _ in 0..4 {
            let (mut y, mut z) = (device.device_array::<u32, _>(LEN)?, device.device_array::<u32, _>(LEN)?);
            graph.launch(&stream, (&x, &mut y, &mut z))?;
            for found in [y, z] {
                same(found.copy_to_host()?.view(), host.slice(s![..;-1]));
            }
        }
    }
    Ok(())
}

fn branches_of_a_sum_are_side_by_side<B: Backend>(lab: &Lab<B>) -> Verdict {
    let (device, stream) = (lab.device(), lab.device().stream()?);
    let host = Array1::from_shape_fn(LEN, |at| at as i64 % 89 - 40);
    let x = device.to_device(&host)?;
    let graph = device.record((&x,), |stream, (x,)| {
        let (half, other) = (LEN / 2, stream.device().stream()?);
        let mut both = stream.device_array::<i64, _>(LEN)?;
        let (mut low, mut high) = both.split_at_mut(0, half)?;
        stream.copy_to_device(&mut low, &x.slice(s![half..])?)?;
        other.copy_to_device(&mut high, &x.slice(s![..half])?)?;
        both.on(stream).sum()
    });
    let graph = match graph {
        Err(error) if matches!(error.kind(), ErrorKind::Unsupported { .. } | ErrorKind::Load(_)) => {
            return skip(error);
        }
        graph => graph?,
    };
    let (pairs, last) = (ordered(&graph), graph.report().nodes - 1);
    // After the zeros of the whole.
    let found = [(1, 2), (1, last), (2, last)].map(|pair| pairs.contains(&pair));
    assert_eq!(found, [false, true, true], "{pairs:?}");
    for _ in 0..4 {
        assert_eq!(graph.launch(&stream, (&x,))?.read()?, host.sum());
    }
    Ok(())
}

type Form = WriteForm<u32, Ix1>;
type Copying<B> = Graph<(ReadForm<u32, Ix1>, Form, Form), (), B>;
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
