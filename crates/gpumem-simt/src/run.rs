//! Running the work-items of a group in turn, from barrier to barrier.

use crate::{
    Fault, FaultKind, Ids, WorkItem,
    barrier::{Slot, Stop},
    fault,
    group::Group,
};
use gpumem_core::LaunchDims;
use std::{
    mem::MaybeUninit,
    ops::Range,
    panic::{AssertUnwindSafe, Location, catch_unwind},
    pin::Pin,
    task::{Context, Waker},
};

type Place = &'static Location<'static>;

/// Runs some groups of a launch, one after the other, on this thread.
///
/// # Errors
/// The first fault; the groups behind it have not run.
pub(crate) fn run<'g, W: Future<Output = ()>>(
    group: &'g Group<'g>,
    dims: &LaunchDims,
    mut numbers: Range<u64>,
    make: impl Fn(WorkItem<'g>) -> W,
) -> Result<(), Fault> {
    fault::take();
    let mut items = Items::new(group);
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        numbers.try_for_each(|number| {
            group.begin(number);
            items.run_group(dims, &make)
        })
    }));
    let outcome = outcome.unwrap_or_else(|payload| Err(group.fault(fault::caught(payload))));
    // What the work-items hold may panic when it is dropped; each is given up only once.
    while items.started > 0 {
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| items.clear())) {
            fault::caught(payload);
        }
    }
    outcome
}

/// The work-items of the group that wait. One that ends without waiting leaves its slot to the next, so that a body
/// which never waits needs one slot.
struct Items<'g, W> {
    group: &'g Group<'g>,
    work: Vec<MaybeUninit<W>>,
    /// Work-items in `work`: those with a slot below this that have not `Ended`.
    started: usize,
    /// The work-item in each slot.
    who: Vec<u32>,
}

/// Where the work-items of a pass have come to.
struct Tally {
    /// The first that waits: how, and where.
    stop: Stop,
    place: Option<Place>,
    /// Those that wait as the first does: nearly always all of them.
    same: usize,
    /// The others, at a barrier of the group.
    group: usize,
    /// The others, at a barrier or operation of their wave.
    wave: usize,
    /// At more than one place.
    mixed: bool,
}

impl Default for Tally {
    fn default() -> Self {
        Self { stop: Stop::Ended, place: None, same: 0, group: 0, wave: 0, mixed: false }
    }
}

impl Tally {
    #[inline(always)]
    fn count(&mut self, stop: Stop, place: Place) {
        if stop == self.stop && self.place.is_some_and(|first| std::ptr::eq(first, place)) {
            self.same += 1;
        } else {
            self.count_other(stop, place);
        }
    }

    /// The first, or one that waits otherwise.
    #[inline(never)]
    fn count_other(&mut self, stop: Stop, place: Place) {
        let Some(first) = self.place else {
            (self.stop, self.place, self.same) = (stop, Some(place), 1);
            return;
        };
        self.group += usize::from(stop.is_group());
        self.wave += usize::from(stop.is_wave());
        // The same place usually has the same address, but may have several.
        self.mixed |= first != place;
    }

    /// Work-items at a barrier of the group.
    fn group(&self) -> usize {
        self.group + if self.stop.is_group() { self.same } else { 0 }
    }

    /// Work-items at a barrier or operation of their wave.
    fn wave(&self) -> usize {
        self.wave + if self.stop.is_wave() { self.same } else { 0 }
    }
}

/// How far a work-item has come.
enum Step {
    Waits(Stop),
    Ended,
    Fault(Box<FaultKind>),
}

/// Runs a work-item to its next barrier, or to its end: then it is gone.
#[inline(always)]
fn step<W: Future<Output = ()>>(slot: &Slot, work: &mut MaybeUninit<W>) -> Step {
    let mut context = Context::from_waker(Waker::noop());
    // SAFETY: slots below `started` that have not ended hold a work-item (in `start` and `pass`, the only callers); it
    // stays where it is until it is dropped, because `work` never grows.
    let poll = unsafe { Pin::new_unchecked(work.assume_init_mut()) }.poll(&mut context);
    if !cfg!(panic = "unwind")
        && let Some(kind) = fault::take()
    {
        return Step::Fault(Box::new(kind));
    }
    if poll.is_ready() {
        slot.stop.set(Stop::Ended);
        // SAFETY: it holds a work-item, which counts as gone from the line above on.
        unsafe { work.assume_init_drop() };
        return Step::Ended;
    }
    match slot.stop.get() {
        Stop::Running => Step::Fault(Box::new(FaultKind::ForeignAwait)),
        stop => Step::Waits(stop),
    }
}

impl<'g, W: Future<Output = ()>> Items<'g, W> {
    fn new(group: &'g Group<'g>) -> Self {
        let mut work = Vec::with_capacity(group.items());
        work.resize_with(group.items(), MaybeUninit::uninit);
        Self { group, work, started: 0, who: vec![0; group.items()] }
    }

    fn run_group(&mut self, dims: &LaunchDims, make: &impl Fn(WorkItem<'g>) -> W) -> Result<(), Fault> {
        let mut tally = self.start(dims, make)?;
        while tally.group() + tally.wave() > 0 {
            if tally.wave() > 0 {
                tally = self.settle_waves()?;
                continue;
            }
            if tally.group() != self.group.items() || tally.mixed {
                return Err(self.group_divergence());
            }
            if let Some(checker) = self.group.checker
                && let Some(scope) = self.group.slots[0].stop.get().scope()
            {
                checker.pass_group(scope);
            }
            tally = self.pass(0..self.started)?;
        }
        self.started = 0;
        Ok(())
    }

    /// Makes every work-item and runs it to its first barrier or its end.
    fn start(&mut self, dims: &LaunchDims, make: &impl Fn(WorkItem<'g>) -> W) -> Result<Tally, Fault> {
        let mut tally = Tally::default();
        let mut linear = 0;
        let [width, height, depth] = dims.group_size;
        let group = self.group;
        let first_x = group.ids.group.get()[0] as usize * width as usize;
        for z in 0..depth {
            for y in 0..height {
                for x in 0..width {
                    let index = self.started;
                    let slot = &group.slots[index];
                    let ids = Ids::new(&group.ids, first_x + x as usize, [x, y, z]);
                    group.enter(linear);
                    slot.stop.set(Stop::Running);
                    self.who[index] = linear;
                    self.work[index].write(make(WorkItem::new(group, slot, linear, ids)));
                    self.started += 1;
                    match step(slot, &mut self.work[index]) {
                        Step::Waits(stop) => tally.count(stop, slot.place.get()),
                        Step::Ended => self.started -= 1,
                        Step::Fault(kind) => return Err(group.fault(*kind)),
                    }
                    linear += 1;
                }
            }
        }
        Ok(tally)
    }

    /// Runs each of these work-items on by one step.
    fn pass(&mut self, range: Range<usize>) -> Result<Tally, Fault> {
        let mut tally = Tally::default();
        let group = self.group;
        let slots = &group.slots[range.clone()];
        let (work, who) = (&mut self.work[range.clone()], &self.who[range]);
        for ((slot, work), who) in slots.iter().zip(work).zip(who) {
            if slot.stop.get() == Stop::Ended {
                continue;
            }
            group.enter(*who);
            slot.stop.set(Stop::Running);
            match step(slot, work) {
                Step::Waits(stop) => tally.count(stop, slot.place.get()),
                Step::Ended => {}
                Step::Fault(kind) => return Err(group.fault(*kind)),
            }
        }
        Ok(tally)
    }

    /// Runs every wave until none of it waits for its wave only.
    fn settle_waves(&mut self) -> Result<Tally, Fault> {
        let size = self.group.wave_size;
        let (mut first, mut all) = (0, Tally::default());
        while first < self.started {
            let wave = self.who[first] as usize / size;
            let rest = self.who[first..self.started].iter();
            let end = first + rest.take_while(|linear| **linear as usize / size == wave).count();
            let lanes = (self.group.items() - wave * size).min(size);
            let mut tally = self.count(first..end);
            while tally.wave() > 0 {
                if tally.wave() != lanes || tally.mixed {
                    return Err(self.wave_divergence(first..end, wave * size..wave * size + lanes));
                }
                if let Some(checker) = self.group.checker
                    && self.group.slots[first].stop.get() == Stop::WaveFence
                {
                    checker.pass_wave(wave);
                }
                self.group.waves[wave].release();
                tally = self.pass(first..end)?;
            }
            all.group += tally.group();
            first = end;
        }
        all.mixed = self.count(0..self.started).mixed;
        Ok(all)
    }

    fn count(&self, slots: Range<usize>) -> Tally {
        let mut tally = Tally::default();
        for slot in self.group.slots[slots].iter().filter(|slot| slot.stop.get() != Stop::Ended) {
            tally.count(slot.stop.get(), slot.place.get());
        }
        tally
    }

    /// Work-items of the slots that wait for their group, or for their wave, and where.
    fn waiting(&self, slots: Range<usize>, wave: bool) -> impl Iterator<Item = (u32, Place)> {
        slots.filter_map(move |index| {
            let slot = &self.group.slots[index];
            let stop = slot.stop.get();
            let waits = if wave { stop.is_wave() } else { stop.is_group() };
            waits.then(|| (self.who[index], slot.place.get()))
        })
    }

    /// Where a work-item waits, or `None` if it has ended.
    fn place_of(&self, linear: u32) -> Option<Place> {
        let index = self.who[..self.started].iter().position(|who| *who == linear)?;
        let slot = &self.group.slots[index];
        (slot.stop.get() != Stop::Ended).then(|| slot.place.get())
    }

    #[cold]
    fn group_divergence(&self) -> Fault {
        let all = 0..self.group.items() as u32;
        let (at, arrived, culprit) = self.divergence(0..self.started, false, all.clone());
        let instead = self.place_of(culprit);
        self.group.fault_of(culprit, FaultKind::GroupDivergence { arrived, of: all.end, at, instead })
    }

    #[cold]
    fn wave_divergence(&self, slots: Range<usize>, items: Range<usize>) -> Fault {
        let (items, of) = (items.start as u32..items.end as u32, items.len() as u32);
        let (at, arrived, culprit) = self.divergence(slots, true, items);
        let instead = self.place_of(culprit);
        self.group.fault_of(culprit, FaultKind::WaveDivergence { arrived, of, at, instead })
    }

    /// The place where the first work-item waits, how many wait there, and the first of `items` that does not.
    fn divergence(&self, slots: Range<usize>, wave: bool, mut items: Range<u32>) -> (Place, u32, u32) {
        let first = self.waiting(slots.clone(), wave).next();
        let at = first.map_or_else(|| Location::caller(), |(_, place)| place);
        let there: Vec<u32> =
            self.waiting(slots, wave).filter(|(_, place)| *place == at).map(|(who, _)| who).collect();
        let culprit = items.find(|item| !there.contains(item)).unwrap_or(0);
        (at, there.len() as u32, culprit)
    }

    /// Drops the work-items that have not ended.
    fn clear(&mut self) {
        while let Some(index) = self.started.checked_sub(1) {
            self.started = index;
            if self.group.slots[index].stop.replace(Stop::Ended) != Stop::Ended {
                // SAFETY: the slot holds a work-item, which counts as gone from the line above on.
                unsafe { self.work[index].assume_init_drop() };
            }
        }
    }
}
