//! Making a graph of the driver: the calls are enqueued on streams that are captured.

use super::{
    edges::edges,
    launch::{Values, enqueue_call},
    plan::{Home, Plan},
};
use crate::recording::RegionUse;
use gpumem_core::{
    Backend, DriverDevice, EventOptions, ExecutableGraph, GraphNode, Result, Stream as _, StreamOptions,
};
use gpumem_memory::track::{Counters, Sink};
use std::collections::BTreeSet;

/// Streams of a body that run side by side in a graph, at most.
const MOST_STREAMS: usize = 16;

/// What was captured, and each launch of it with numbers among its arguments, by its place among all calls.
pub(super) type Captured<B> = (Box<dyn ExecutableGraph<B>>, Vec<(usize, GraphNode)>);

/// Which steps run side by side.
struct Order {
    /// The stream of each step.
    streams: Vec<usize>,
    /// The steps of other streams that each step needs, the last of each stream.
    needed: Vec<Vec<usize>>,
}

impl Order {
    fn of<B: Backend>(plan: &Plan<B>) -> Self {
        let mut numbers: Vec<u64> = Vec::new();
        let mut stream_of = |number| {
            let found = numbers.iter().position(|known| *known == number).unwrap_or_else(|| {
                numbers.push(number);
                numbers.len() - 1
            });
            found % MOST_STREAMS
        };
        let streams: Vec<usize> = plan.steps.iter().map(|step| stream_of(step.stream)).collect();
        let mut needed = vec![Vec::new(); streams.len()];
        if streams.iter().any(|stream| *stream > 0) {
            let all = edges(plan.steps.iter().map(|step| placed(plan, &step.uses)), plan.regions.len() + 1);
            for (at, before) in all.into_iter().enumerate() {
                let last = |step: &usize| {
                    let mut later = before.range(step + 1..);
                    streams[*step] != streams[at] && later.all(|other| streams[*other] != streams[*step])
                };
                needed[at] = before.iter().copied().filter(last).collect();
            }
        }
        Self { streams, needed }
    }
}

/// The uses of a step, those of temporaries as uses of the arena: there two may share bytes whose steps do not meet in the order of the
/// body.
fn placed<B: Backend>(plan: &Plan<B>, uses: &[RegionUse]) -> Vec<RegionUse> {
    let arena = plan.regions.len();
    let placed = |used: &RegionUse| match plan.homes.get(used.region) {
        Some(Home::Arena(start)) => {
            let extent = start + used.extent.start..start + used.extent.end;
            RegionUse { region: arena, extent, write: used.write }
        }
        _ => used.clone(),
    };
    uses.iter().map(placed).collect()
}

/// Captures the calls on streams that are made for it, and given to `retire` afterwards. `None` if the backend has no graphs.
pub(super) fn capture<B: Backend>(
    device: &B::Device,
    values: &Values<'_, B>,
    retire: impl FnMut(B::Stream),
) -> Result<Option<Captured<B>>> {
    let order = Order::of(values.plan);
    let streams = order.streams.iter().max().map_or(1, |most| most + 1);
    let mut made = Vec::new();
    let captured = (0..streams)
        .try_for_each(|_| device.create_stream(&StreamOptions::default()).map(|stream| made.push(stream)))
        .and_then(|()| capture_on(device, values, &order, &made));
    made.into_iter().for_each(retire);
    captured
}

fn capture_on<B: Backend>(
    device: &B::Device,
    values: &Values<'_, B>,
    order: &Order,
    streams: &[B::Stream],
) -> Result<Option<Captured<B>>> {
    let Some((first, others)) = streams.split_first() else { return Ok(None) };
    if !first.begin_capture()? {
        return Ok(None);
    }
    let mut nodes = Vec::new();
    let enqueued = enqueue(device, values, order, (first, others), &mut nodes);
    let captured = first.end_capture(!nodes.is_empty());
    let graph = enqueued.and(captured)?;
    Ok(Some((graph, nodes)))
}

fn enqueue<B: Backend>(
    device: &B::Device,
    values: &Values<'_, B>,
    order: &Order,
    (first, others): (&B::Stream, &[B::Stream]),
    nodes: &mut Vec<(usize, GraphNode)>,
) -> Result<()> {
    let record = |stream: &B::Stream| {
        let event = device.create_event(EventOptions::default())?;
        stream.record(&event).map(|()| event)
    };
    if !others.is_empty() {
        // The other streams become part of the capture.
        let begun = record(first)?;
        others.iter().try_for_each(|stream| stream.wait(&begun))?;
    }
    let awaited: BTreeSet<usize> = order.needed.iter().flatten().copied().collect();
    let mut events: Vec<Option<B::Event>> = Vec::new();
    let mut call_number = 0;
    for ((step, at), needed) in values.plan.steps.iter().zip(&order.streams).zip(&order.needed) {
        let stream = at.checked_sub(1).and_then(|at| others.get(at)).unwrap_or(first);
        let mut before = needed.iter().filter_map(|step| events.get(*step)?.as_ref());
        before.try_for_each(|event| stream.wait(event))?;
        for call in &step.calls {
            // They are no calls of the driver that do anything.
            let counters = Counters::default();
            // SAFETY: nothing runs: the calls are captured.
            unsafe { enqueue_call(call, values, &Sink::Stream(stream, &counters), None)? };
            if call.has_numbers() {
                nodes.push((call_number, stream.captured_node()?));
            }
            call_number += 1;
        }
        let event = if awaited.contains(&events.len()) { Some(record(stream)?) } else { None };
        events.push(event);
    }
    others.iter().try_for_each(|stream| first.wait(&record(stream)?))
}
