//! A graph that is launched in the recording of another: its steps become steps of the other.

use super::{launch::Bound, plan::Home};
use crate::recording::{GraphRecording, Part};
use gpumem_core::{Backend, Result};
use gpumem_memory::track::{Access, Timeline, Work};
use std::sync::Arc;

const OPERATION: &str = "graph";

pub(super) fn record<B: Backend>(
    bound: &Bound<'_, '_, B>,
    timeline: &Arc<Timeline<B>>,
    recording: &GraphRecording<B>,
) -> Result<()> {
    let numbers = &bound.places.numbers;
    let mut accesses = bound.accesses(&bound.plan.uses);
    let of_recording = numbers.iter().filter_map(|number| number.memory);
    accesses.extend(of_recording.map(|memory| Access::read(memory, 0..memory.len())));
    // All that the steps use is memory of the recording or frozen. What is admitted is not enqueued: it is data.
    drop(timeline.admit(Work::Launch, OPERATION, &accesses)?);
    recording.append(timeline.id(), OPERATION, &bound.plan.steps, |region| {
        match *bound.plan.homes.get(region)? {
            Home::Number(at) => {
                let number = numbers.get(at)?;
                Some(number.memory.map_or(Part::Number(number.bytes), |memory| Part::Memory(memory.id(), 0)))
            }
            home => bound.memory(home).map(|(memory, start)| Part::Memory(memory.id(), start)),
        }
    })
}
