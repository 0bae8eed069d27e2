//! The recording of a graph: placeholder memory, and what a body enqueues.

use crate::frozen;
use gpumem_core::{
    Backend, CopyRegion, DriverDevice, ErrorKind, MemoryInfo, MemoryKind, NotRecorded, Result, Space,
};
use gpumem_memory::track::{Access, Command, DeviceContext, Recording, Work};
use parking_lot::Mutex;
use smallvec::SmallVec;
use std::{
    any::Any,
    collections::HashMap,
    mem,
    ops::Range,
    panic::{RefUnwindSafe, UnwindSafe},
    sync::Arc,
};

/// Where the addresses of placeholder memory begin. No processor and no GPU has memory there: neither with all bits nor without
/// the highest eight, which some ignore.
const FIRST: u64 = 1 << 62 | 1 << 54;
/// Bytes of one allocation, and of all together. Beyond there is no memory to launch the graph with.
const MOST: usize = 1 << 50;
/// Placeholder memory begins at a multiple of it, but for arguments.
pub(crate) const ALIGN: usize = 256;

/// Placeholder memory: addresses without bytes, which each launch replaces by those of an argument, a result or the arena.
#[derive(Debug)]
pub(crate) struct Region {
    /// Its placeholder address, or the address of frozen memory.
    pub(crate) address: u64,
    pub(crate) bytes: usize,
    /// What the address is a multiple of, for memory that the recording makes.
    pub(crate) align: usize,
    pub(crate) kind: MemoryKind,
    pub(crate) content: Content,
}

/// What is known of the bytes of a region.
#[derive(Debug)]
pub(crate) enum Content {
    Unknown,
    /// Elements of the host that were uploaded to it.
    Constant(Box<[u8]>),
    /// They are the bytes of a number of each launch.
    Number,
    /// They are in memory that nothing writes any more.
    Frozen(frozen::Owner),
}

impl Region {
    pub(crate) fn new(address: u64, (bytes, align): (usize, usize), kind: MemoryKind) -> Self {
        Self { address, bytes, align: align.max(ALIGN), kind, content: Content::Unknown }
    }
}

/// A use of a region by a step.
#[derive(Debug, Clone)]
pub(crate) struct RegionUse {
    pub(crate) region: usize,
    pub(crate) extent: Range<usize>,
    pub(crate) write: bool,
}

/// Where a call has an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Source,
    Destination,
    /// The first bytes of that argument.
    Argument(usize),
    /// That argument, which is a number and no address.
    Number(usize),
}

/// An address in a call, which each launch replaces.
#[derive(Debug, Clone)]
pub(crate) struct Relocation {
    pub(crate) place: Place,
    pub(crate) region: usize,
    /// Bytes from the beginning of the region.
    pub(crate) offset: u64,
    /// Whether it is the host's address.
    pub(crate) by_host: bool,
}

/// A call of the driver, with its addresses.
#[derive(Debug)]
pub(crate) struct Call<B: Backend> {
    pub(crate) command: Command<B>,
    pub(crate) relocations: SmallVec<[Relocation; 4]>,
}

impl<B: Backend> Call<B> {
    /// Whether a number of each launch is among its arguments.
    pub(crate) fn has_numbers(&self) -> bool {
        self.relocations.iter().any(|relocation| matches!(relocation.place, Place::Number(_)))
    }
}

/// Work of several ranks, as the module of graphs wraps it.
pub(crate) type UntypedRanks = Arc<dyn Any + Send + Sync>;

/// A piece of work as it was submitted.
#[derive(Debug)]
pub(crate) struct Step<B: Backend> {
    pub(crate) operation: &'static str,
    /// The number of the stream that it was enqueued on. Steps of one stream run in order.
    pub(crate) stream: u64,
    pub(crate) uses: SmallVec<[RegionUse; 4]>,
    pub(crate) calls: Vec<Call<B>>,
    /// Work of several ranks, which has no calls of its own. The uses are those of its memory, in their order.
    pub(crate) ranks: Option<UntypedRanks>,
    /// Whether it writes every byte of what it names for writing.
    pub(crate) writes_all: bool,
}

/// Where a region of a graph lies that is launched in a recording.
pub(crate) enum Part<'a> {
    /// In the memory of that number, from there on.
    Memory(u64, usize),
    /// It is a number, which is known.
    Number(&'a [u8]),
}

impl<B: Backend> Step<B> {
    /// What it does, for people.
    pub(crate) fn name(&self) -> String {
        let kernel = self.calls.iter().find_map(|call| match &call.command {
            Command::Launch(launch) => Some(launch.program.name()),
            _ => None,
        });
        kernel.map_or_else(|| self.operation.to_owned(), |kernel| format!("{} {kernel}", self.operation))
    }
}

#[derive(Debug)]
pub(crate) struct Recorded<B: Backend> {
    pub(crate) regions: Vec<Region>,
    /// The region of each allocation, by its number.
    pub(crate) numbers: HashMap<u64, usize>,
    pub(crate) steps: Vec<Step<B>>,
    /// Bytes of elements of the host.
    constant_bytes: usize,
    next: u64,
    is_open: bool,
}

/// A recording that goes on, or has ended.
#[derive(Debug)]
pub(crate) struct GraphRecording<B: Backend> {
    context: Arc<DeviceContext<B>>,
    /// Nothing is called under it.
    state: Mutex<Recorded<B>>,
}

// As a device.
impl<B: Backend> UnwindSafe for GraphRecording<B> {}
impl<B: Backend> RefUnwindSafe for GraphRecording<B> {}

impl<B: Backend> GraphRecording<B> {
    pub(crate) fn new(context: &Arc<DeviceContext<B>>) -> Arc<Self> {
        Arc::new(Self { context: context.clone(), state: Mutex::new(Recorded::new(true)) })
    }

    /// Ends the recording. Returns what it has: nothing in a forked child, where a thread of the parent may hold the lock for ever.
    pub(crate) fn close(&self) -> Recorded<B> {
        match self.context.origin.is_valid() {
            true => mem::replace(&mut self.state.lock(), Recorded::new(false)),
            false => Recorded::new(false),
        }
    }

    /// An address for placeholder memory.
    /// Returns [`NotRecordable`](ErrorKind::NotRecordable) for a kind of memory that is not.
    pub(crate) fn reserve(
        &self,
        operation: &'static str,
        (bytes, align): (usize, usize),
        kind: MemoryKind,
    ) -> Result<u64> {
        if !matches!(kind, MemoryKind::Device | MemoryKind::Pinned) {
            return Err(self.context.not_recordable(operation, NotRecorded::MappedOrManaged));
        }
        self.reserve_like(operation, (bytes, align.max(ALIGN)), 0)
    }

    /// An address with the same rest modulo `align` as `like`, and never modulo twice that. So nothing in the body can rely on more
    /// than each launch has.
    pub(crate) fn reserve_like(
        &self,
        operation: &'static str,
        (bytes, align): (usize, usize),
        like: u64,
    ) -> Result<u64> {
        let (from, align) = (align as u64 + like % align as u64, align.saturating_mul(2));
        let mut state = self.state.lock();
        if !state.is_open {
            return Err(self.context.error(operation, ErrorKind::OfRecording { what: "device" }));
        }
        let start = state.next.next_multiple_of(align.clamp(ALIGN, MOST) as u64) + from;
        let end = start.checked_add(bytes as u64 + ALIGN as u64);
        match end.filter(|end| bytes <= MOST && align <= MOST && *end <= FIRST + MOST as u64) {
            Some(end) => {
                state.next = end;
                Ok(start)
            }
            None => {
                let kind = ErrorKind::out_of_memory(bytes, "device", MemoryInfo { free: 0, total: 0 });
                Err(self.context.error(operation, kind))
            }
        }
    }

    /// Adds memory at an address that was reserved, by the number of its allocation. Returns the number of its region.
    pub(crate) fn add(&self, allocation: u64, region: Region) -> usize {
        self.state.lock().add(allocation, region)
    }

    /// Room for elements of the host. All of a recording have to fit into the memory of the device in any case.
    /// Returns [`OutOfMemory`](ErrorKind::OutOfMemory).
    pub(crate) fn room(&self, operation: &'static str, bytes: usize) -> Result<Room<'_, B>> {
        let total = self.context.raw.info().total_memory;
        let (mut state, mut elements) = (self.state.lock(), Vec::new());
        let free = total.saturating_sub(state.constant_bytes);
        if bytes > free || elements.try_reserve_exact(bytes).is_err() {
            let kind = ErrorKind::out_of_memory(bytes, "device", MemoryInfo { free, total });
            return Err(self.context.error(operation, kind));
        }
        state.constant_bytes += bytes;
        Ok(Room { recording: self, elements, bytes })
    }

    /// Writes down the steps of a graph on one stream. Their regions lie where `part` says, in memory that has been admitted. All of
    /// them, or none.
    pub(crate) fn append<'a>(
        &self,
        stream: u64,
        operation: &'static str,
        steps: &[Step<B>],
        part: impl Fn(usize) -> Option<Part<'a>>,
    ) -> Result<()> {
        let mut state = self.state.lock();
        if !state.is_open {
            return Err(self.context.error(operation, ErrorKind::OfRecording { what: "stream" }));
        }
        let missing = || self.context.not_recordable(operation, NotRecorded::OutsideArray);
        let moved = steps.iter().map(|step| state.moved(stream, step, &part).ok_or_else(missing));
        let moved = moved.collect::<Result<Vec<_>>>()?;
        state.steps.extend(moved);
        Ok(())
    }

    /// Writes down work of several ranks, with its uses of memory that has been admitted.
    pub(crate) fn add_ranks<'a>(
        &self,
        stream: u64,
        operation: &'static str,
        accesses: impl Iterator<Item = &'a Access<'a, B>>,
        work: UntypedRanks,
    ) -> Result<()>
    where
        B: 'a,
    {
        let mut state = self.state.lock();
        let closed = |what| self.context.error(operation, ErrorKind::OfRecording { what });
        if !state.is_open {
            return Err(closed("stream"));
        }
        let mut uses = SmallVec::new();
        for access in accesses {
            let region = state.numbers.get(&access.memory.id()).ok_or_else(|| closed("array"))?;
            uses.push(RegionUse { region: *region, extent: access.extent.clone(), write: access.write });
        }
        let (calls, ranks) = (Vec::new(), Some(work));
        state.steps.push(Step { operation, stream, uses, calls, ranks, writes_all: false });
        Ok(())
    }
}

/// Room for elements of the host, which is given back unless it is kept.
#[derive(Debug)]
pub(crate) struct Room<'a, B: Backend> {
    recording: &'a GraphRecording<B>,
    pub(crate) elements: Vec<u8>,
    bytes: usize,
}

impl<B: Backend> Room<'_, B> {
    /// Takes the elements for memory of the recording.
    pub(crate) fn keep(mut self, allocation: u64) {
        let mut state = self.recording.state.lock();
        if let Some(region) = state.region_of(allocation) {
            region.content = Content::Constant(mem::take(&mut self.elements).into_boxed_slice());
            self.bytes = 0;
        }
    }
}

impl<B: Backend> Drop for Room<'_, B> {
    fn drop(&mut self) {
        // In a forked child a thread of the parent may hold the lock for ever.
        if self.bytes > 0 && self.recording.context.origin.is_valid() {
            let mut state = self.recording.state.lock();
            state.constant_bytes = state.constant_bytes.saturating_sub(self.bytes);
        }
    }
}

impl<B: Backend> Recorded<B> {
    fn new(is_open: bool) -> Self {
        let (regions, steps) = (Vec::new(), Vec::new());
        Self { regions, numbers: HashMap::new(), steps, constant_bytes: 0, next: FIRST, is_open }
    }

    fn add(&mut self, allocation: u64, region: Region) -> usize {
        let number = self.regions.len();
        self.regions.push(region);
        self.numbers.insert(allocation, number);
        number
    }

    fn region_of(&mut self, allocation: u64) -> Option<&mut Region> {
        let number = *self.numbers.get(&allocation)?;
        self.regions.get_mut(number)
    }

    /// The region of the step's uses that has an address.
    fn locate(&self, uses: &[RegionUse], address: u64, place: Place, by_host: bool) -> Option<Relocation> {
        uses.iter().find_map(|used| {
            let region = self.regions.get(used.region)?;
            let offset = address.checked_sub(region.address)?;
            let is_within = offset < region.bytes as u64;
            is_within.then_some(Relocation { place, region: used.region, offset, by_host })
        })
    }

    /// A step of a graph, as one of this recording.
    fn moved<'a>(
        &self,
        stream: u64,
        step: &Step<B>,
        part: &impl Fn(usize) -> Option<Part<'a>>,
    ) -> Option<Step<B>> {
        let mut uses = SmallVec::new();
        for RegionUse { region, extent, write } in &step.uses {
            if let Part::Memory(memory, start) = part(*region)? {
                let (region, extent) =
                    (*self.numbers.get(&memory)?, start + extent.start..start + extent.end);
                uses.push(RegionUse { region, extent, write: *write });
            }
        }
        let mut calls = Vec::new();
        for call in &step.calls {
            let (mut command, mut relocations) = (call.command.clone(), SmallVec::new());
            for relocation in &call.relocations {
                match (part(relocation.region)?, relocation.place, &mut command) {
                    (Part::Memory(memory, start), ..) => {
                        let region = *self.numbers.get(&memory)?;
                        let offset = relocation.offset + start as u64;
                        relocations.push(Relocation { region, offset, ..relocation.clone() });
                    }
                    (Part::Number(bytes), Place::Number(argument), Command::Launch(launch)) => {
                        launch.arguments.overwrite(argument, bytes);
                    }
                    _ => return None,
                }
            }
            calls.push(Call { command, relocations });
        }
        let Step { operation, ref ranks, writes_all, .. } = *step;
        Some(Step { operation, stream, uses, calls, ranks: ranks.clone(), writes_all })
    }

    /// Where a call has addresses. `None` if one of them is of no use.
    fn relocations(
        &self,
        uses: &[RegionUse],
        arguments: &[(usize, usize)],
        command: &Command<B>,
        direct: bool,
    ) -> Option<SmallVec<[Relocation; 4]>> {
        let both = |source: (u64, Space), destination: (u64, Space), by_host: bool| {
            let is_host = |space| by_host && space == Space::Host;
            let source = self.locate(uses, source.0, Place::Source, is_host(source.1))?;
            let destination = self.locate(uses, destination.0, Place::Destination, is_host(destination.1))?;
            Some(SmallVec::from_iter([source, destination]))
        };
        match command {
            Command::Copy(CopyRegion { source, destination, .. }) => {
                both((source.address, source.space), (destination.address, destination.space), true)
            }
            Command::CopyStrided(copy) => both(copy.source, copy.destination, direct),
            Command::Fill(fill) => {
                Some(SmallVec::from_iter([self.locate(uses, fill.address, Place::Destination, false)?]))
            }
            Command::Launch(launch) => arguments
                .iter()
                .map(|(argument, used)| {
                    let region = uses.get(*used)?.region;
                    if let Content::Number = self.regions.get(region)?.content {
                        let place = Place::Number(*argument);
                        return Some(Relocation { place, region, offset: 0, by_host: false });
                    }
                    let bytes = launch.arguments.get(*argument)?.first_chunk()?;
                    let address = u64::from_ne_bytes(*bytes);
                    self.locate(uses.get(*used..)?.get(..1)?, address, Place::Argument(*argument), false)
                })
                .collect(),
        }
    }
}

impl<B: Backend> Recording<B> for GraphRecording<B> {
    fn admit(&self, work: Work, operation: &'static str, accesses: &[Access<'_, B>]) -> Result<()> {
        let refuse = |what| Err(self.context.not_recordable(operation, what));
        match work {
            // What is recorded for one rank does not come here.
            Work::Collective => return refuse(NotRecorded::SeveralRanks),
            Work::Foreign => return refuse(NotRecorded::ForeignWork),
            _ => {}
        }
        let mut state = self.state.lock();
        if !state.is_open {
            return Err(self.context.error(operation, ErrorKind::OfRecording { what: "stream" }));
        }
        // Memory without bytes is used by no work.
        for access in accesses.iter().filter(|access| access.memory.len() > 0) {
            let memory = access.memory;
            if state.numbers.contains_key(&memory.id()) {
                continue;
            }
            if memory.is_placeholder() {
                return Err(self.context.error(operation, ErrorKind::OfRecording { what: "array" }));
            }
            let is_of_device = memory.context().is_same(&self.context);
            let frozen = if access.write || !is_of_device { None } else { frozen::find(memory.id()) };
            let Some(frozen) = frozen else { return refuse(NotRecorded::OutsideArray) };
            memory.check_beside(&self.context, operation)?;
            let region = Region::new(memory.address(), (memory.len(), 1), MemoryKind::Device);
            state.add(memory.id(), Region { content: Content::Frozen(frozen), ..region });
        }
        Ok(())
    }

    fn record(
        &self,
        stream: u64,
        work: Work,
        operation: &'static str,
        accesses: &[Access<'_, B>],
        commands: Vec<Command<B>>,
    ) -> Result<()> {
        // Strided copies go by the host's addresses there.
        let direct = self.context.raw.capabilities().pageable_direct;
        let mut state = self.state.lock();
        // It may have ended since the work was admitted.
        if !state.is_open {
            return Err(self.context.error(operation, ErrorKind::OfRecording { what: "stream" }));
        }
        let (mut uses, mut arguments) = (SmallVec::new(), SmallVec::<[_; 4]>::new());
        let mut writes_all = work == Work::Transfer;
        for access in accesses {
            let Some(region) = state.numbers.get(&access.memory.id()) else {
                if access.memory.len() == 0 {
                    continue;
                }
                return Err(self.context.error(operation, ErrorKind::OfRecording { what: "array" }));
            };
            let used = RegionUse { region: *region, extent: access.extent.clone(), write: access.write };
            // The elements may lie apart.
            writes_all &=
                !access.write || access.elements().is_none_or(|elements| elements.packed_len().is_some());
            arguments.extend(access.argument().map(|argument| (argument, uses.len())));
            uses.push(used);
        }
        let is_launch = commands.iter().any(|command| matches!(command, Command::Launch(_)));
        if is_launch && arguments.len() < uses.len() {
            return Err(self.context.not_recordable(operation, NotRecorded::HostArguments));
        }
        let calls = commands.into_iter().map(|command| {
            let relocations = state.relocations(&uses, &arguments, &command, direct);
            let missing = || self.context.not_recordable(operation, NotRecorded::OutsideArray);
            Ok(Call { relocations: relocations.ok_or_else(missing)?, command })
        });
        let calls = calls.collect::<Result<Vec<_>>>()?;
        state.steps.push(Step { operation, stream, uses, calls, ranks: None, writes_all });
        Ok(())
    }
}
