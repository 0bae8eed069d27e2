//! From a recording to what each launch does.

use super::{
    GraphMemory, GraphReport,
    arguments::Signature,
    ranks::{self, RankWork},
};
use crate::{
    Device, Layout, Order,
    device::{Allocation, AllocationRef, FrozenMemory},
    recording::{ALIGN, Call, Content, Recorded, Region, Step},
    transfer::{self, ArrayRef, Upload},
};
use gpumem_core::{Backend, Error, ErrorKind, MemoryInfo, MemoryKind, NotRecorded, Result};
use gpumem_layout::arena::{self, Temporary};
use gpumem_memory::track::Command;
use ndarray::ArrayView1;
use std::{
    ops::{Range, RangeInclusive},
    sync::Arc,
};

const OPERATION: &str = "record";

/// Where a region lies at a launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Home {
    /// In the array of that number that is given to the launch.
    Argument(usize),
    /// The number of that number that is given to the launch.
    Number(usize),
    /// In the result of that number.
    Result(usize),
    /// In the arena, from there on.
    Arena(usize),
    /// In the constants, from there on.
    Constants(usize),
    /// In the frozen memory of that number.
    Frozen(usize),
    /// Nowhere: nothing uses it.
    Unused,
}

/// Memory of a result.
#[derive(Debug)]
pub(super) struct ResultMemory {
    pub(super) region: usize,
    pub(super) bytes: usize,
    pub(super) align: usize,
    pub(super) kind: MemoryKind,
    /// Whether the first work that uses it writes all of it.
    pub(super) is_written: bool,
}

/// Steps that a launch submits as one piece of work: one of several ranks, or those up to the next one of several ranks.
#[derive(Debug)]
pub(super) struct Segment {
    pub(super) steps: Range<usize>,
    pub(super) uses: Uses,
}

/// What each launch does.
#[derive(Debug)]
pub(super) struct Plan<B: Backend> {
    pub(super) signature: Signature,
    pub(super) homes: Vec<Home>,
    pub(super) regions: Vec<Region>,
    pub(super) results: Vec<ResultMemory>,
    pub(super) steps: Vec<Step<B>>,
    /// At least one.
    pub(super) segments: Vec<Segment>,
    pub(super) uses: Uses,
    /// Memory for the temporaries, if the graph has its own. Segments of two launches would take turns in it: a graph of several
    /// gets other memory for each launch.
    pub(super) arena: Option<AllocationRef<B>>,
    pub(super) shared: Option<GraphMemory<B>>,
    /// What its address is a multiple of.
    pub(super) arena_align: usize,
    pub(super) constants: Option<Arc<FrozenMemory<B>>>,
    pub(super) frozen: Vec<Arc<FrozenMemory<B>>>,
    pub(super) report: GraphReport,
}

impl<B: Backend> Plan<B> {
    /// Whether there is work of several ranks.
    pub(super) fn has_ranks(&self) -> bool {
        self.report.collectives > 0
    }

    /// All calls of these steps, in the order of a launch.
    pub(super) fn calls(&self, steps: &Range<usize>) -> impl Iterator<Item = &Call<B>> {
        self.steps[steps.clone()].iter().flat_map(|step| &step.calls)
    }

    /// The work of several ranks that a segment is.
    pub(super) fn ranks(&self, segment: &Segment) -> Option<(&Step<B>, &dyn RankWork<B>)> {
        let step = self.steps.get(segment.steps.start)?;
        Some((step, ranks::of(step)?))
    }

    /// The plan of a recording, whose results lie in these regions. Allocates the arena and uploads the constants.
    /// Returns [`OutOfMemory`](ErrorKind::OutOfMemory), and [`NotRecordable`](ErrorKind::NotRecordable) for page-locked memory
    /// that is no result.
    pub(super) fn new(
        device: &Device<B>,
        recorded: Recorded<B>,
        signature: Signature,
        results: &[usize],
        shared: Option<&GraphMemory<B>>,
    ) -> Result<Self> {
        let Recorded { mut regions, steps, .. } = recorded;
        let uses = Uses::of(&steps, regions.len());
        let mut homes = vec![Home::Unused; regions.len()];
        for (at, parameter) in signature.arrays.iter().enumerate() {
            parameter.region.into_iter().for_each(|region| homes[region] = Home::Argument(at));
        }
        for (at, number) in signature.numbers.iter().enumerate() {
            number.region.into_iter().for_each(|region| homes[region] = Home::Number(at));
        }
        let mut frozen = Vec::new();
        for ((region, home), lives) in regions.iter().zip(&mut homes).zip(&uses.lives) {
            // Memory of work that was refused in the end is not kept.
            if let (Content::Frozen(owner), Some(_)) = (&region.content, lives) {
                *home = Home::Frozen(frozen.len());
                // Memory of this device has an owner of its backend.
                frozen.extend(owner.clone().downcast::<FrozenMemory<B>>().ok());
            }
        }
        results.iter().enumerate().for_each(|(at, region)| homes[*region] = Home::Result(at));
        let is_inside = |region: &usize| homes[*region] == Home::Unused && uses.lives[*region].is_some();
        let inside: Vec<usize> = (0..regions.len()).filter(is_inside).collect();
        let (constants, temporaries): (Vec<_>, Vec<_>) =
            inside.into_iter().partition(|region| matches!(regions[*region].content, Content::Constant(_)));
        if temporaries.iter().any(|region| regions[*region].kind != MemoryKind::Device) {
            let what = NotRecorded::PinnedNotReturned;
            return Err(device.core().error(OPERATION, ErrorKind::NotRecordable { what }));
        }
        let of = |region: &usize| Temporary {
            bytes: regions[*region].bytes,
            lives: uses.lives[*region].clone().unwrap_or(0..=0),
        };
        let all: Vec<Temporary> = temporaries.iter().map(of).collect();
        let align = temporaries.iter().map(|region| regions[*region].align).max().unwrap_or(ALIGN);
        let (starts, arena_bytes) =
            arena::plan(&all, align).ok_or_else(|| no_room(device, usize::MAX, "device"))?;
        for (region, start) in temporaries.iter().zip(starts) {
            homes[*region] = Home::Arena(start);
        }
        let bytes =
            gather(&regions, &constants, &mut homes).map_err(|bytes| no_room(device, bytes, "host"))?;
        let temporary_bytes = all.iter().fold(0, |sum: usize, one| sum.saturating_add(one.bytes));
        let report = GraphReport::of(&steps);
        let arena = match shared {
            _ if arena_bytes == 0 || report.collectives > 0 => None,
            // That there is room for it is known now.
            Some(shared) => shared.block(OPERATION, arena_bytes, align).map(|_| None)?,
            None => Some(Allocation::new(device, OPERATION, arena_bytes, align)?),
        };
        let results = results.iter().map(|region| result(&regions, &steps, *region)).collect();
        // The bytes are gathered, and the frozen memory is listed.
        regions.iter_mut().for_each(|region| region.content = Content::Unknown);
        Ok(Self {
            report: GraphReport { arena_bytes, temporary_bytes, constant_bytes: bytes.len(), ..report },
            segments: segments(&steps, regions.len()),
            uses,
            results,
            arena,
            shared: shared.cloned(),
            arena_align: align,
            constants: upload(device, &bytes)?.map(FrozenMemory::new),
            frozen,
            signature,
            homes,
            regions,
            steps,
        })
    }
}

/// The segments of a launch.
fn segments<B: Backend>(steps: &[Step<B>], regions: usize) -> Vec<Segment> {
    let mut end = 0;
    let all = steps.chunk_by(|one, next| one.ranks.is_none() && next.ranks.is_none()).map(|steps| {
        end += steps.len();
        Segment { steps: end - steps.len()..end, uses: Uses::of(steps, regions) }
    });
    let segments: Vec<_> = all.collect();
    // A graph that does nothing has a launch, too.
    if segments.is_empty() { vec![Segment { steps: 0..0, uses: Uses::of(steps, regions) }] } else { segments }
}

/// How steps use each region.
#[derive(Debug)]
pub(super) struct Uses {
    /// Whether they write the region, or only read it; `None` if they do neither.
    pub(super) writes: Vec<Option<bool>>,
    /// Whether a copy or a kernel reads the region.
    pub(super) reads: Vec<bool>,
    /// The first and the last step that uses it.
    lives: Vec<Option<RangeInclusive<usize>>>,
}

impl Uses {
    /// Whether they write a region, if they use it.
    pub(super) fn write(&self, region: usize) -> Option<bool> {
        self.writes.get(region).copied().flatten()
    }

    /// Whether they read a region.
    pub(super) fn read(&self, region: usize) -> bool {
        self.reads.get(region).copied().unwrap_or_default()
    }

    fn of<B: Backend>(steps: &[Step<B>], regions: usize) -> Self {
        let mut all =
            Self { writes: vec![None; regions], reads: vec![false; regions], lives: vec![None; regions] };
        for (at, step) in steps.iter().enumerate() {
            for used in &step.uses {
                all.reads[used.region] |= !used.write;
                let (writes, lives) = (&mut all.writes[used.region], &mut all.lives[used.region]);
                *writes = Some(writes.unwrap_or_default() || used.write);
                *lives = Some(lives.as_ref().map_or(at, |lives| *lives.start())..=at);
            }
        }
        all
    }
}

/// The bytes of all constants, one after the other. Returns their number as the error, if the host has no room for them.
fn gather(regions: &[Region], constants: &[usize], homes: &mut [Home]) -> Result<Vec<u8>, usize> {
    let of = |region: &usize| match &regions[*region].content {
        Content::Constant(elements) => &elements[..],
        _ => &[],
    };
    let end = |end: usize, region| end.checked_next_multiple_of(ALIGN)?.checked_add(of(region).len());
    let all = constants.iter().try_fold(0, end).unwrap_or(usize::MAX);
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(all).map_err(|_| all)?;
    for region in constants {
        bytes.resize(bytes.len().next_multiple_of(ALIGN), 0);
        homes[*region] = Home::Constants(bytes.len());
        bytes.extend_from_slice(of(region));
    }
    Ok(bytes)
}

fn result<B: Backend>(regions: &[Region], steps: &[Step<B>], region: usize) -> ResultMemory {
    let Region { bytes, align, kind, .. } = regions[region];
    let first = steps.iter().find_map(|step| {
        let mut used = step.uses.iter().filter(|used| used.region == region);
        let first = used.next()?;
        Some(used.next().is_none() && first.write && step.writes_all && first.extent == (0..bytes))
    });
    ResultMemory { region, bytes, align, kind, is_written: first == Some(true) }
}

/// Memory of the device with these bytes.
fn upload<B: Backend>(device: &Device<B>, bytes: &[u8]) -> Result<Option<AllocationRef<B>>> {
    if bytes.is_empty() {
        return Ok(None);
    }
    let memory = Allocation::new(device, OPERATION, bytes.len(), ALIGN)?;
    let layout =
        Layout::packed(&[bytes.len()], 1, Order::C).map_err(|error| device.core().error(OPERATION, error))?;
    let (view, place) = (ArrayView1::from(bytes), ArrayRef::new(&memory, &layout));
    transfer::upload(&device.default_timeline()?, OPERATION, &view, place, Upload::Blocking, None)?;
    Ok(Some(memory))
}

#[cold]
fn no_room<B: Backend>(device: &Device<B>, bytes: usize, kind: &'static str) -> Error {
    let kind = ErrorKind::out_of_memory(bytes, kind, MemoryInfo { free: 0, total: 0 });
    device.core().error(OPERATION, kind)
}

impl GraphReport {
    /// What the steps consist of.
    fn of<B: Backend>(steps: &[Step<B>]) -> Self {
        let mut report = Self { nodes: steps.len(), ..Self::default() };
        report.collectives = steps.iter().filter(|step| step.ranks.is_some()).count();
        for call in steps.iter().flat_map(|step| &step.calls) {
            match call.command {
                Command::Launch(_) => report.launches += 1,
                Command::Fill(_) => report.fills += 1,
                Command::Copy(_) | Command::CopyStrided(_) => report.copies += 1,
            }
        }
        report
    }
}
