//! Making a graph of the driver: the calls are enqueued on streams that are captured.

use super::{
    launch::{Values, enqueue_call},
    schedule::Schedule,
};
use gpumem_core::{
    Backend, CaptureStart, DriverDevice, EventOptions, ExecutableGraph, GraphNode, MemoryUse, MemoryUses,
    Result, Stream as _, StreamOptions, with_uses,
};
use gpumem_memory::track::{Calls, Counters, Sink};
use smallvec::SmallVec;
use std::collections::BTreeSet;

/// What was captured, and each launch of it with numbers among its arguments, by its place among all calls.
pub(super) type Captured<B> = (Box<dyn ExecutableGraph<B>>, Vec<(usize, GraphNode)>);

/// Captures the calls on streams that are made for it, and given to `retire` afterwards. Returns why not, if the backend makes no
/// graph.
pub(super) fn capture<B: Backend>(
    device: &B::Device,
    values: &Values<'_, B>,
    retire: impl FnMut(B::Stream),
) -> Result<Result<Captured<B>, &'static str>> {
    let mut schedule = Schedule::of(values.plan, values.steps.clone());
    let streams = schedule.streams.iter().max().map_or(1, |most| most + 1);
    let mut made = Vec::new();
    let captured = (0..streams)
        .try_for_each(|_| device.create_stream(&StreamOptions::default()).map(|stream| made.push(stream)))
        .and_then(|()| capture_on(device, values, &mut schedule, &made));
    made.into_iter().for_each(retire);
    captured
}

fn capture_on<B: Backend>(
    device: &B::Device,
    values: &Values<'_, B>,
    schedule: &mut Schedule,
    streams: &[B::Stream],
) -> Result<Result<Captured<B>, &'static str>> {
    let Some((first, mut others)) = streams.split_first() else { return Ok(Err("the graph has no calls")) };
    // SAFETY: the stream was made for this, and its handle is not given away: what is enqueued on it is to be captured.
    match unsafe { first.begin_capture() }? {
        CaptureStart::Begun => {}
        CaptureStart::BegunAlone => {
            others = &[];
            // In the order of the body, so no step waits for another stream.
            schedule.streams.fill(0);
        }
        CaptureStart::Refused(why) => return Ok(Err(why)),
    }
    let mut nodes = Vec::new();
    let enqueued = enqueue(device, values, schedule, (first, others), &mut nodes);
    let captured = first.end_capture(!nodes.is_empty());
    let graph = enqueued.and(captured)?;
    Ok(Ok((graph, nodes)))
}

fn enqueue<B: Backend>(
    device: &B::Device,
    values: &Values<'_, B>,
    schedule: &Schedule,
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
    let awaited: BTreeSet<usize> =
        (0..schedule.streams.len()).flat_map(|step| schedule.waits(step)).collect();
    let mut events: Vec<Option<B::Event>> = Vec::new();
    let mut call_number = 0;
    for (step, at) in values.plan.steps[values.steps.clone()].iter().zip(&schedule.streams) {
        let stream = at.checked_sub(1).and_then(|at| others.get(at)).unwrap_or(first);
        let number = events.len();
        let mut before = schedule.waits(number).filter_map(|step| events.get(step)?.as_ref());
        before.try_for_each(|event| stream.wait(event))?;
        let uses = StepUses {
            number: values.steps.start + number,
            all: step.uses.iter().map(|used| values.used(used)).collect(),
        };
        for call in &step.calls {
            // They are no calls of the driver that do anything.
            let counters = Counters::default();
            let calls = Calls::new(&counters);
            let sink = Sink::Stream(stream, &calls);
            // SAFETY: nothing runs: the calls are captured. The uses are those of their step.
            unsafe { with_uses(Some(&uses), || enqueue_call(call, values, &sink, None))? };
            if call.has_numbers() {
                nodes.push((call_number, stream.captured_node()?));
            }
            call_number += 1;
        }
        let event = if awaited.contains(&number) { Some(record(stream)?) } else { None };
        events.push(event);
    }
    others.iter().try_for_each(|stream| first.wait(&record(stream)?))
}

/// What a step uses.
struct StepUses {
    /// As a picture of the graph has it.
    number: usize,
    all: SmallVec<[MemoryUse; 4]>,
}

impl MemoryUses for StepUses {
    fn each(&self, found: &mut dyn FnMut(&MemoryUse)) {
        self.all.iter().for_each(found);
    }

    fn node(&self) -> Option<usize> {
        Some(self.number)
    }
}
