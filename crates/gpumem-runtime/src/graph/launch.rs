//! One launch of a graph.

use super::{
    Inner,
    arguments::{Parameter, check_memory, lowest},
    executables::Executable,
    plan::{Home, Plan, ResultMemory},
    results::{Binder, GraphResults},
};
use crate::{
    Stream,
    device::{Allocation, AllocationRef},
    recording::{Call, Place, Relocation},
    transfer::{ArrayRef, note_torn},
};
use gpumem_core::{
    Backend, DriverDevice, ErrorKind, Fill, LayoutError, MemoryKind, MemoryUse, MemoryUses, NotRecorded,
    Result, Stream as _, SubmissionId, with_uses,
};
use gpumem_memory::track::{Access, Command, Sink, Timeline, Work};
use smallvec::SmallVec;
use std::sync::Arc;

const OPERATION: &str = "graph";

/// Where a region lies at this launch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Base {
    device: u64,
    host: u64,
}

/// See [`Graph::launch`](super::Graph::launch).
pub(super) fn launch<R: GraphResults<B>, B: Backend>(
    inner: &Inner<R, B>,
    stream: &Stream<B>,
    places: &[ArrayRef<'_, B>],
) -> Result<R> {
    let (plan, timeline) = (&inner.plan, stream.timeline());
    check(inner, timeline)?;
    check_arguments(plan, timeline, places)?;
    let mut made: SmallVec<[AllocationRef<B>; 4]> = SmallVec::new();
    let results = inner.results.bind(&mut Binder(&mut |memory| match plan.results.get(made.len()) {
        Some(result) if memory.len() > 0 => {
            let memory = allocate(stream, result)?;
            made.push(memory.clone());
            Ok(memory)
        }
        _ => Allocation::empty(stream.device(), OPERATION, 1, memory.kind()),
    }))?;
    let bases = bases(plan, places, &made);
    let executable = inner.executables.get(&inner.device, plan, &bases);
    let accesses = accesses(plan, places, &made);
    let admitted = timeline.admit(Work::Launch, OPERATION, &accesses)?;
    let shown = shown(plan, places, &made);
    let mut begun = false;
    let submitted = admitted.submit(|sink, submission| {
        begun = true;
        let uses = Uses { all: &shown, submission: SubmissionId { stream: timeline.id(), submission } };
        let told: Option<&dyn MemoryUses> = if timeline.survives_faults() { Some(&uses) } else { None };
        // SAFETY: these are the accesses of the launch, but for the arena. Each region is where the bases say, and has the bytes
        // that were recorded: the layouts of arguments are equal, and results, temporaries and constants were allocated for it.
        // All of it is in the accesses of the launch, whose logs keep it alive and ordered.
        unsafe {
            with_uses(told, || match &executable {
                Some(executable) => {
                    launch_executable(executable, timeline, sink.stream(OPERATION)?, submission)
                }
                None => enqueue(plan, &bases, sink, Some((timeline, submission))),
            })
        }
    });
    if let Err(error) = submitted {
        // What was enqueued before the failure may have written anything.
        let is_written = |(_, parameter): &(_, &Parameter)| {
            begun && parameter.region.is_some_and(|region| plan.writes.get(region) == Some(&Some(true)))
        };
        let written = places.iter().zip(&plan.parameters).filter(is_written).map(|(place, _)| place);
        written.for_each(|place| note_torn(OPERATION, *place, &error));
        return Err(error);
    }
    Ok(results)
}

fn check<R, B: Backend>(inner: &Inner<R, B>, timeline: &Arc<Timeline<B>>) -> Result<()> {
    let (context, own) = (&timeline.context, inner.device.core());
    if timeline.is_recording() {
        return Err(context.error(OPERATION, ErrorKind::NotRecordable { what: NotRecorded::AnotherGraph }));
    }
    timeline.check(OPERATION)?;
    if !own.is_same(context) {
        let (has, wants) = (own.name(), context.name());
        return Err(context.error(OPERATION, ErrorKind::WrongDevice { what: "graph", has, wants }));
    }
    if inner.generation != context.generation() {
        return Err(context.error(OPERATION, ErrorKind::Stale { what: "graph" }));
    }
    Ok(())
}

/// Whether the arrays are as they were recorded.
fn check_arguments<B: Backend>(
    plan: &Plan<B>,
    timeline: &Timeline<B>,
    places: &[ArrayRef<'_, B>],
) -> Result<()> {
    for (at, (place, parameter)) in places.iter().zip(&plan.parameters).enumerate() {
        let fail = |error: LayoutError| Err(timeline.context.error(OPERATION, error).at_argument(at + 1));
        check_memory(OPERATION, place.memory).map_err(|error| error.at_argument(at + 1))?;
        let (found, expected) = (place.layout, &parameter.layout);
        if found.shape() != expected.shape() || found.strides() != expected.strides() {
            let (found, found_strides) = (found.shape().to_vec(), found.strides().to_vec());
            let (expected, expected_strides) = (expected.shape().to_vec(), expected.strides().to_vec());
            return fail(LayoutError::LayoutMismatch { found, found_strides, expected, expected_strides });
        }
        let Some(region) = parameter.region.and_then(|region| plan.regions.get(region)) else { continue };
        let (address, align) = (lowest(place.memory, &found.extent()), parameter.align as u64);
        if address % align != region.address % align {
            let bytes = (address % align) as isize - (region.address % align) as isize;
            return fail(LayoutError::Misaligned { bytes, align: parameter.align });
        }
    }
    Ok(())
}

/// Memory of a result.
fn allocate<B: Backend>(stream: &Stream<B>, result: &ResultMemory) -> Result<AllocationRef<B>> {
    let (device, bytes) = (stream.device(), result.bytes);
    let align = device.raw().capabilities().allocation_alignment.max(result.align);
    if result.kind == MemoryKind::Device {
        return Allocation::new(device, OPERATION, bytes, align);
    }
    let memory = Allocation::for_host(device, OPERATION, bytes, align, result.kind)?;
    if !result.is_written {
        memory.zero(OPERATION)?;
    }
    Ok(memory.into_memory())
}

/// Where all regions lie.
fn bases<B: Backend>(
    plan: &Plan<B>,
    places: &[ArrayRef<'_, B>],
    made: &[AllocationRef<B>],
) -> SmallVec<[Base; 8]> {
    let of = |memory: &Allocation<B>, start: usize| Base {
        device: memory.address().wrapping_add(start as u64),
        host: memory.host().map_or(memory.address(), |host| host.as_ptr() as u64).wrapping_add(start as u64),
    };
    let base = |home: &Home| match *home {
        Home::Argument(at) => places.get(at).map(|place| of(place.memory, place.layout.extent().start)),
        Home::Result(at) => made.get(at).map(|memory| of(memory, 0)),
        Home::Arena(start) => plan.arena.as_ref().map(|arena| of(arena, start)),
        Home::Constants(start) => plan.constants.as_ref().map(|constants| of(constants, start)),
        Home::Unused => None,
    };
    plan.homes.iter().map(|home| base(home).unwrap_or_default()).collect()
}

/// All memory that the graph uses.
fn accesses<'a, B: Backend>(
    plan: &'a Plan<B>,
    places: &[ArrayRef<'a, B>],
    made: &'a [AllocationRef<B>],
) -> SmallVec<[Access<'a, B>; 8]> {
    let mut accesses = SmallVec::new();
    for (place, parameter) in places.iter().zip(&plan.parameters) {
        let used = parameter.region.and_then(|region| plan.writes.get(region).copied().flatten());
        accesses.extend(used.map(|write| place.access(write)));
    }
    let all = |memory: &'a AllocationRef<B>, write| Access::new(memory, 0..memory.len(), write);
    accesses.extend(made.iter().map(|memory| all(memory, true)));
    accesses.extend(plan.constants.iter().map(|memory| all(memory, false)));
    // Written by each launch: so they run one after the other.
    accesses.extend(plan.arena.iter().map(|memory| all(memory, true)));
    accesses
}

/// Launches the driver's graph.
///
/// # Safety
/// As for [`enqueue`].
unsafe fn launch_executable<B: Backend>(
    executable: &Executable<B>,
    timeline: &Arc<Timeline<B>>,
    stream: &B::Stream,
    submission: u64,
) -> Result<()> {
    if stream.is_capturing()? {
        let what = "a graph on a stream that is being captured";
        return Err(timeline.context.error(OPERATION, ErrorKind::Unsupported { what }));
    }
    // As for a kernel's program: nothing but the end of the graph conflicts with it.
    executable.program.log().note_others(&(0..1), false, timeline, submission);
    // SAFETY: the caller's promise; the graph does what `enqueue` does with these bases.
    unsafe { executable.graph.lock().launch(stream) }
}

/// Enqueues all steps. `timeline` and the submission are those of a launch, whose queue is locked; none of a capture.
///
/// # Safety
/// The memory of all regions is where the bases say, valid until the work is done, and its uses are ordered.
pub(super) unsafe fn enqueue<B: Backend>(
    plan: &Plan<B>,
    bases: &[Base],
    sink: &Sink<'_, B>,
    launch: Option<(&Arc<Timeline<B>>, u64)>,
) -> Result<()> {
    for call in plan.steps.iter().flat_map(|step| &step.calls) {
        // SAFETY: the caller's promise.
        unsafe { enqueue_call(call, bases, sink, launch)? };
    }
    Ok(())
}

/// # Safety
/// The memory of the call is where the bases say, valid until the call is done, and its uses are ordered.
unsafe fn enqueue_call<B: Backend>(
    call: &Call<B>,
    bases: &[Base],
    sink: &Sink<'_, B>,
    launch: Option<(&Arc<Timeline<B>>, u64)>,
) -> Result<()> {
    let address = |relocation: &Relocation| {
        let base = bases.get(relocation.region).copied().unwrap_or_default();
        let start = if relocation.by_host { base.host } else { base.device };
        start.wrapping_add(relocation.offset)
    };
    let at = |place| call.relocations.iter().find(|relocation| relocation.place == place).map_or(0, address);
    match &call.command {
        Command::Copy(recorded) => {
            let mut region = *recorded;
            region.source.address = at(Place::Source);
            region.destination.address = at(Place::Destination);
            // SAFETY: the caller's promise.
            unsafe { sink.copy(&region) }
        }
        Command::CopyStrided(recorded) => {
            let mut copy = recorded.clone();
            copy.source.0 = at(Place::Source);
            copy.destination.0 = at(Place::Destination);
            // SAFETY: the caller's promise.
            unsafe { sink.copy_strided(&copy) }
        }
        // SAFETY: the caller's promise.
        Command::Fill(recorded) => unsafe {
            sink.fill(&Fill { address: at(Place::Destination), ..*recorded })
        },
        Command::Launch(recorded) => {
            let mut arguments = recorded.arguments.clone();
            for relocation in &call.relocations {
                if let Place::Argument(argument) = relocation.place {
                    arguments.overwrite(argument, &address(relocation).to_ne_bytes());
                }
            }
            if let Some((timeline, submission)) = launch {
                recorded.program.note_launch(timeline, submission);
            }
            // SAFETY: the caller's promise; the arguments are those that were recorded, with other addresses.
            unsafe { sink.stream(OPERATION)?.launch(&recorded.kernel, &recorded.dims, &arguments) }
        }
    }
}

/// What a launch uses, for backends: all of it for each of its calls, so that a failure poisons everything that the graph was to
/// write. An array that it reads and writes is there twice, because a copy may read what it is given for writing elsewhere. The
/// arena is not: nothing else uses it, and each launch writes what it reads there.
fn shown<B: Backend>(
    plan: &Plan<B>,
    places: &[ArrayRef<'_, B>],
    made: &[AllocationRef<B>],
) -> SmallVec<[MemoryUse; 8]> {
    let mut all = SmallVec::new();
    for (place, parameter) in places.iter().zip(&plan.parameters) {
        let Some(region) = parameter.region else { continue };
        let used = |write| place.memory.used(&place.layout.extent(), write);
        all.extend(plan.reads.get(region).filter(|reads| **reads).map(|_| used(false)));
        all.extend(plan.writes.get(region).copied().flatten().filter(|writes| *writes).map(used));
    }
    all.extend(made.iter().map(|memory| memory.used(&(0..memory.len()), true)));
    all.extend(plan.constants.iter().map(|memory| memory.used(&(0..memory.len()), false)));
    all
}

struct Uses<'a> {
    all: &'a [MemoryUse],
    submission: SubmissionId,
}

impl MemoryUses for Uses<'_> {
    fn each(&self, found: &mut dyn FnMut(&MemoryUse)) {
        self.all.iter().for_each(found);
    }

    fn submission(&self) -> Option<SubmissionId> {
        Some(self.submission)
    }
}
