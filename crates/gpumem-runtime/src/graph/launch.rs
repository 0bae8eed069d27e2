//! One launch of a graph.

use super::{
    Inner,
    arguments::{Given, Places, check_memory, lowest},
    executables::{Executable, Executables},
    nested,
    plan::{Home, Plan, ResultMemory, Segment, Uses as StepUses},
    results::{Binder, GraphResults},
};
use crate::{
    Stream,
    device::{Allocation, AllocationRef},
    recording::{Call, Place, RegionUse, Relocation},
    transfer::note_torn,
};
use gpumem_core::{
    Backend, DriverDevice, Error, ErrorKind, Fill, KernelArguments, LayoutError, MemoryKind, MemoryUse,
    MemoryUses, Result, Stream as _, SubmissionId, with_uses,
};
use gpumem_memory::track::{Access, Command, Program, RecordedLaunch, Sink, Timeline, Work};
use smallvec::SmallVec;
use std::{cell::Cell, ops::Range, sync::Arc};

const OPERATION: &str = "graph";

/// Where a region lies at this launch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Base {
    device: u64,
    host: u64,
}

/// What a launch is bound to.
pub(super) struct Bound<'a, 'p, B: Backend> {
    pub(super) plan: &'a Plan<B>,
    pub(super) places: &'a Places<'p, B>,
    pub(super) made: SmallVec<[AllocationRef<B>; 4]>,
    /// Memory for the temporaries.
    pub(super) arena: Option<&'a AllocationRef<B>>,
}

/// See [`Graph::launch`](super::Graph::launch).
pub(super) fn launch<R: GraphResults<B>, B: Backend>(
    inner: &Inner<R, B>,
    stream: &Stream<B>,
    places: &Places<'_, B>,
) -> Result<R> {
    let (plan, timeline) = (&inner.plan, stream.timeline());
    check(inner, timeline)?;
    check_arguments(plan, timeline, places)?;
    let recording = stream.device().recording();
    let mut made = SmallVec::new();
    for result in &plan.results {
        made.push(allocate(stream, result)?);
    }
    // A recording has its own memory for the temporaries.
    let arena = match plan.report.arena_bytes {
        0 => None,
        bytes if recording.is_some() || plan.has_ranks() => {
            Some(Allocation::new(stream.device(), OPERATION, bytes, plan.arena_align)?)
        }
        bytes => {
            plan.shared.as_ref().map(|shared| shared.block(OPERATION, bytes, plan.arena_align)).transpose()?
        }
    };
    let bound = Bound { plan, places, made, arena: arena.as_ref().or(plan.arena.as_ref()) };
    // A launch that failed leaves nothing there that this one reads.
    bound.arena.into_iter().for_each(|arena| arena.forget_contents());
    let mut numbers = inner.numbers.iter();
    let results = inner.results.bind(&mut Binder(&mut |memory| {
        let made = (memory.len() > 0).then(|| numbers.next().and_then(|number| bound.made.get(*number)));
        match made.flatten() {
            Some(made) => Ok(made.clone()),
            // Memory without bytes begins at its alignment.
            None => Allocation::empty(stream.device(), OPERATION, memory.address() as usize, memory.kind()),
        }
    }))?;
    match recording {
        Some(recording) => nested::record(&bound, timeline, recording)?,
        None => enqueue_all(inner, stream, &bound)?,
    }
    Ok(results)
}

fn enqueue_all<R, B: Backend>(
    inner: &Inner<R, B>,
    stream: &Stream<B>,
    bound: &Bound<'_, '_, B>,
) -> Result<()> {
    let (plan, places, timeline) = (bound.plan, bound.places, stream.timeline());
    if places.numbers.iter().any(|number| number.memory.is_some()) {
        return Err(timeline.context.error(OPERATION, ErrorKind::OfRecording { what: "number" }));
    }
    if plan.has_ranks() {
        bound.check_ranks(stream)?;
    }
    let (mut begun, mut failed) = (false, None);
    let bases = bound.bases();
    for (segment, executables) in plan.segments.iter().zip(&inner.executables) {
        let enqueued = match plan.ranks(segment) {
            Some((step, work)) => {
                begun = true;
                // Also after a failure: the other ranks call it, too. What that was to write is poisoned by then.
                bound.enqueue_ranks(stream, step, work)
            }
            None if failed.is_some() => continue,
            None => enqueue_segment(inner, timeline, bound, (segment, executables, &bases), &mut begun),
        };
        if let Err(error) = enqueued
            && failed.is_none()
        {
            if !begun {
                return Err(error);
            }
            if plan.has_ranks() {
                bound.poison(timeline, &error);
            }
            failed = Some(error);
        }
    }
    let Some(error) = failed else { return Ok(()) };
    // What was enqueued before the failure may have written anything.
    let written = bound.arguments(&plan.uses).filter(|(.., write)| *write);
    written.for_each(|(given, ..)| note_torn(timeline, OPERATION, given.array, &error));
    Err(error)
}

/// Enqueues the calls of a segment as one piece of work.
fn enqueue_segment<R, B: Backend>(
    inner: &Inner<R, B>,
    timeline: &Arc<Timeline<B>>,
    bound: &Bound<'_, '_, B>,
    (segment, executables, bases): (&Segment, &Executables<B>, &[Base]),
    begun: &mut bool,
) -> Result<()> {
    let numbers: Numbers<'_> = bound.places.numbers.iter().map(|number| number.bytes).collect();
    let values = Values { plan: bound.plan, steps: &segment.steps, bases, numbers: &numbers };
    let accesses = bound.accesses(&segment.uses);
    let admitted = timeline.admit(Work::Launch, OPERATION, &accesses)?;
    // After the gate: a launch that is refused makes no graph of the driver, and takes the place of none.
    let executable = executables.get(&inner.device, &values);
    let shown = timeline.survives_faults().then(|| bound.shown(segment));
    let (mut not_taken, is_long) = (None, Cell::new(false));
    let launch = Launch { timeline, submission: 0, is_long: &is_long };
    let submitted = admitted.submit(|sink, submission| {
        *begun = true;
        let launch = Launch { submission, ..launch };
        let submission_id = SubmissionId { stream: timeline.id(), submission };
        let uses = shown.as_deref().map(|all| Uses { all, submission: submission_id });
        let told = uses.as_ref().map(|uses| uses as &dyn MemoryUses);
        // SAFETY: these are the accesses of the segment. Each region is where the bases say, and has the bytes that were recorded: the
        // layouts of arguments are equal, and results, temporaries and constants were allocated for it. All of it is in the accesses,
        // whose logs keep it alive and ordered.
        unsafe {
            with_uses(told, || {
                if let Some(executable) = &executable {
                    let stream = sink.stream(OPERATION)?;
                    match launch_executable(executable, &values, launch, stream)? {
                        None => return Ok(()),
                        why => not_taken = why,
                    }
                }
                enqueue(&values, sink, Some(launch))
            })
        }
    });
    // Not under the locks of the stream and of the graph: a subscriber is code of the user.
    if let Some(error) = not_taken {
        executable.iter().for_each(|executable| executables.forget(executable));
        gpumem_core::tell!(warn: %error, "a graph is enqueued call by call, because the driver did not take its numbers");
    }
    if is_long.get() {
        executable.iter().for_each(|executable| executable.program.shorten_log());
        values.programs().for_each(|program| program.shorten_log());
    }
    submitted.map(drop)
}

/// Which work of a stream the calls are, for the logs of their programs.
pub(super) struct Launch<'a, B: Backend> {
    timeline: &'a Arc<Timeline<B>>,
    submission: u64,
    /// Whether one of these logs is long.
    is_long: &'a Cell<bool>,
}

// Written out: a derive would ask for `B: Clone`.
impl<B: Backend> Clone for Launch<'_, B> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<B: Backend> Copy for Launch<'_, B> {}

fn check<R, B: Backend>(inner: &Inner<R, B>, timeline: &Arc<Timeline<B>>) -> Result<()> {
    let (context, own) = (&timeline.context, inner.device.core());
    match timeline.is_recording() {
        true => context.check(OPERATION)?,
        false => timeline.check(OPERATION)?,
    }
    context.check_same(OPERATION, "graph", own)?;
    if inner.generation != context.generation() {
        return Err(context.error(OPERATION, ErrorKind::Stale { what: "graph" }));
    }
    Ok(())
}

/// Whether the arrays and the numbers are as they were recorded.
fn check_arguments<B: Backend>(plan: &Plan<B>, timeline: &Timeline<B>, places: &Places<'_, B>) -> Result<()> {
    let signature = &plan.signature;
    let sizes = signature.numbers.iter().map(|number| number.bytes);
    if signature.lengths != places.lengths
        || !sizes.eq(places.numbers.iter().map(|number| number.bytes.len()))
    {
        let why = "the vectors among the arguments are not as long as those that were recorded";
        return Err(timeline.context.error(OPERATION, ErrorKind::InvalidArgument { why }));
    }
    for (Given { array: place, extent }, parameter) in places.arrays.iter().zip(&signature.arrays) {
        let at = parameter.position;
        let fail = |error: LayoutError| Err(timeline.context.error(OPERATION, error).at_argument(at));
        // Also what no step uses, which no gate sees.
        let usable = timeline.check_owns(OPERATION, place.memory);
        let usable = usable.and_then(|()| match timeline.is_recording() {
            true => Ok(()),
            false => place.memory.check_beside(&timeline.context, OPERATION),
        });
        usable.map_err(|error| error.at_argument(at))?;
        check_memory(OPERATION, place.memory, parameter.kind).map_err(|error| error.at_argument(at))?;
        let (found, expected) = (place.layout, &parameter.layout);
        if found.shape() != expected.shape() || found.strides() != expected.strides() {
            let (found, found_strides) = (found.shape().to_vec(), found.strides().to_vec());
            let (expected, expected_strides) = (expected.shape().to_vec(), expected.strides().to_vec());
            return fail(LayoutError::LayoutMismatch { found, found_strides, expected, expected_strides });
        }
        let Some(region) = parameter.region.and_then(|region| plan.regions.get(region)) else { continue };
        let (address, align) = (lowest(place.memory, extent), parameter.align as u64);
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

impl<B: Backend> Bound<'_, '_, B> {
    /// The memory of a region, and where in it the region begins.
    pub(super) fn memory(&self, home: Home) -> Option<(&AllocationRef<B>, usize)> {
        let Self { plan, places, made, arena } = self;
        match home {
            Home::Argument(at) => places.arrays.get(at).map(|given| (given.array.memory, given.extent.start)),
            Home::Result(at) => made.get(at).map(|memory| (memory, 0)),
            Home::Arena(start) => arena.map(|arena| (arena, start)),
            Home::Constants(start) => plan.constants.as_ref().map(|constants| (&constants.memory, start)),
            Home::Frozen(at) => plan.frozen.get(at).map(|frozen| (&frozen.memory, 0)),
            Home::Number(_) | Home::Unused => None,
        }
    }

    /// Where all regions lie.
    fn bases(&self) -> SmallVec<[Base; 8]> {
        let base = |home: &Home| {
            let (memory, start) = self.memory(*home)?;
            let host = memory.host().map_or(memory.address(), |host| host.as_ptr() as u64);
            let at = |address: u64| address.wrapping_add(start as u64);
            Some(Base { device: at(memory.address()), host: at(host) })
        };
        let mut bases = SmallVec::new();
        for home in &self.plan.homes {
            bases.push(base(home).unwrap_or_default());
        }
        bases
    }

    /// The arguments that steps use, each with its region and whether they write it.
    fn arguments(&self, uses: &StepUses) -> impl Iterator<Item = (&Given<'_, B>, usize, bool)> {
        let arguments = self.places.arrays.iter().zip(&self.plan.signature.arrays);
        arguments.filter_map(|(given, parameter)| {
            let region = parameter.region?;
            Some((given, region, uses.write(region)?))
        })
    }

    /// The results that steps use, each with its region.
    fn results(&self, uses: &StepUses) -> impl Iterator<Item = (&AllocationRef<B>, usize)> {
        let results = self.made.iter().zip(&self.plan.results);
        let results = results.map(|(memory, result)| (memory, result.region));
        results.filter(|(_, region)| uses.write(*region).is_some())
    }

    /// Memory that the graph reads and that is never written.
    fn constants(&self) -> impl Iterator<Item = &AllocationRef<B>> {
        self.plan.constants.iter().chain(&self.plan.frozen).map(|frozen| &frozen.memory)
    }

    /// All memory that steps use.
    pub(super) fn accesses<'s>(&'s self, uses: &StepUses) -> SmallVec<[Access<'s, B>; 8]> {
        // One by one: `extend` takes three times as long for so few.
        let mut accesses = SmallVec::new();
        let all = |memory: &'s AllocationRef<B>, write| Access::new(memory, 0..memory.len(), write);
        for (given, _, write) in self.arguments(uses) {
            accesses.push(given.access(write));
        }
        for (memory, _) in self.results(uses) {
            accesses.push(all(memory, true));
        }
        for memory in self.constants() {
            accesses.push(all(memory, false));
        }
        // Written by each launch: so they run one after the other.
        if let Some(memory) = self.arena {
            accesses.push(Access::scratch(memory, 0..memory.len()));
        }
        accesses
    }

    /// What a segment uses, for backends: all of it. Where its calls are enqueued one by one, a failure of one poisons everything that it
    /// was to write. An array that it reads and writes is there twice, because a copy may read what it is given for writing elsewhere.
    /// What was made for the launch is read by later segments alone. Where there are no others, the arena is left out: nothing else uses
    /// it, and each launch writes what it reads there.
    fn shown(&self, segment: &Segment) -> SmallVec<[MemoryUse; 8]> {
        let mut all = SmallVec::new();
        let is_later = segment.steps.start > 0;
        for (Given { array, extent }, region, write) in self.arguments(&segment.uses) {
            let used = |write| array.memory.used(extent, write);
            all.extend(segment.uses.read(region).then(|| used(false)));
            all.extend(write.then(|| used(true)));
        }
        let whole = |memory: &AllocationRef<B>, write| memory.used(&(0..memory.len()), write);
        let arena = self.arena.filter(|_| self.plan.has_ranks());
        for memory in self.results(&segment.uses).map(|(memory, _)| memory).chain(arena) {
            all.extend(is_later.then(|| whole(memory, false)));
            all.push(whole(memory, true));
        }
        all.extend(self.constants().map(|memory| whole(memory, false)));
        all
    }

    /// Refuses what a later segment would be refused for, before the first one is enqueued.
    fn check_ranks(&self, stream: &Stream<B>) -> Result<()> {
        let accesses = self.accesses(&self.plan.uses);
        stream.timeline().admit(Work::Launch, OPERATION, &accesses)?.refuse_poisoned()?;
        let mut works = self.plan.segments.iter().filter_map(|segment| self.plan.ranks(segment));
        works.try_for_each(|(_, work)| work.check(stream))
    }

    /// Poisons all that the launch was to write, in the order of work.
    #[cold]
    fn poison(&self, timeline: &Arc<Timeline<B>>, error: &Error) {
        let mut written = self.accesses(&self.plan.uses);
        written.retain(|access| access.write);
        timeline.poison(OPERATION, &written, error);
    }
}

/// The numbers of a launch, by their bytes.
pub(super) type Numbers<'a> = SmallVec<[&'a [u8]; 4]>;

/// What the calls of a launch get: where each region lies, and the numbers.
#[derive(Clone, Copy)]
pub(super) struct Values<'a, B: Backend> {
    pub(super) plan: &'a Plan<B>,
    /// Those of a segment.
    pub(super) steps: &'a Range<usize>,
    pub(super) bases: &'a [Base],
    pub(super) numbers: &'a [&'a [u8]],
}

impl<B: Backend> Values<'_, B> {
    /// All calls, in their order.
    pub(super) fn calls(&self) -> impl Iterator<Item = &Call<B>> {
        self.plan.calls(self.steps)
    }

    /// The kernels of the launches.
    pub(super) fn kernels(&self) -> impl Iterator<Item = &B::Kernel> {
        self.launches().map(|launch| &launch.kernel)
    }

    fn programs(&self) -> impl Iterator<Item = &Arc<dyn Program<B>>> {
        self.launches().map(|launch| &launch.program)
    }

    fn launches(&self) -> impl Iterator<Item = &RecordedLaunch<B>> {
        self.calls().filter_map(|call| match &call.command {
            Command::Launch(launch) => Some(&**launch),
            _ => None,
        })
    }

    /// Where the bytes of a use lie. Whose they are, each launch says.
    pub(super) fn used(&self, used: &RegionUse) -> MemoryUse {
        let base = self.bases.get(used.region).copied().unwrap_or_default();
        MemoryUse {
            owner: 0,
            start: base.device.wrapping_add(used.extent.start as u64),
            bytes: used.extent.len(),
            write: used.write,
            is_foreign: false,
        }
    }

    fn address(&self, relocation: &Relocation) -> u64 {
        let base = self.bases.get(relocation.region).copied().unwrap_or_default();
        let start = if relocation.by_host { base.host } else { base.device };
        start.wrapping_add(relocation.offset)
    }

    /// The arguments of a launch of a kernel.
    pub(super) fn arguments(
        &self,
        recorded: &RecordedLaunch<B>,
        relocations: &[Relocation],
    ) -> KernelArguments {
        let mut arguments = recorded.arguments.clone();
        for relocation in relocations {
            match (relocation.place, self.plan.homes.get(relocation.region)) {
                (Place::Argument(argument), _) => {
                    arguments.overwrite(argument, &self.address(relocation).to_ne_bytes());
                }
                (Place::Number(argument), Some(Home::Number(number))) => {
                    let bytes = self.numbers.get(*number).copied().unwrap_or_default();
                    arguments.overwrite(argument, bytes);
                }
                _ => {}
            }
        }
        arguments
    }
}

/// Launches the driver's graph, unless the driver does not take the numbers: then it returns why.
///
/// # Safety
/// As for [`enqueue`].
unsafe fn launch_executable<B: Backend>(
    executable: &Executable<B>,
    values: &Values<'_, B>,
    launch: Launch<'_, B>,
    stream: &B::Stream,
) -> Result<Option<Error>> {
    let mut graph = executable.graph.lock();
    if let Err(error) = graph.set_numbers(values) {
        return Ok(Some(error));
    }
    // As for a kernel's program: nothing but the end of the graph conflicts with it.
    let Launch { timeline, submission, is_long } = launch;
    is_long.set(executable.program.log().note_others(&(0..1), false, timeline, submission));
    // SAFETY: the caller's promise; the graph does what `enqueue` does with these values.
    unsafe { graph.graph.launch(stream)? };
    Ok(None)
}

/// Enqueues all steps. `timeline` and the submission are those of a launch, whose queue is locked; none of a capture.
///
/// # Safety
/// The memory of all regions is where the bases say, valid until the work is done, and its uses are ordered.
pub(super) unsafe fn enqueue<B: Backend>(
    values: &Values<'_, B>,
    sink: &Sink<'_, B>,
    launch: Option<Launch<'_, B>>,
) -> Result<()> {
    for call in values.calls() {
        // SAFETY: the caller's promise.
        unsafe { enqueue_call(call, values, sink, launch)? };
    }
    Ok(())
}

/// # Safety
/// The memory of the call is where the bases say, valid until the call is done, and its uses are ordered.
pub(super) unsafe fn enqueue_call<B: Backend>(
    call: &Call<B>,
    values: &Values<'_, B>,
    sink: &Sink<'_, B>,
    launch: Option<Launch<'_, B>>,
) -> Result<()> {
    let at = |place| {
        let relocation = call.relocations.iter().find(|relocation| relocation.place == place);
        relocation.map_or(0, |relocation| values.address(relocation))
    };
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
            let arguments = values.arguments(recorded, &call.relocations);
            if let Some(Launch { timeline, submission, is_long }) = launch
                && recorded.program.note_launch(timeline, submission)
            {
                is_long.set(true);
            }
            // SAFETY: the caller's promise; the arguments are those that were recorded, with other addresses.
            unsafe { sink.stream(OPERATION)?.launch(&recorded.kernel, &recorded.dims, &arguments) }
        }
    }
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
