//! Running the work-items of a group in turn, from barrier to barrier.
//!
//! Nearly always all work-items of a group, or of a wave, stop at the same barrier. So one value holds the state of all
//! of them, and a barrier costs a work-item no memory but its own body. There is a list only if their states differ:
//! when waves go different ways, or after a fault.

use crate::simt::{
    Fault, FaultKind, WorkItem,
    barrier::{Halt, Stop},
    divergence, fault,
    group::{Group, Seat, Unwound},
    group_batch::Batch,
};
use std::{
    cell::Cell,
    mem::MaybeUninit,
    ops::Range,
    pin::Pin,
    task::{Context, Poll, Waker},
};

/// Runs some groups of a launch, one after the other, on this thread.
/// Returns the first fault; the groups after it have not run.
pub(crate) fn run<'g, W: Future<Output = ()>>(
    group: &'g Group<'g>,
    seats: &'g [Seat<'g>],
    numbers: &mut Batch,
    make: impl Fn(WorkItem<'g>) -> W,
) -> Result<(), Fault> {
    let mut items = Items::new(group, seats)?;
    let at = Cell::new(0);
    let outcome = fault::catch(|| {
        numbers.try_for_each(|number| {
            group.begin(number);
            items.run_group(&make, &at)
        })
    });
    let outcome = outcome.unwrap_or_else(|kind| {
        let item = items.who.get(at.get() as usize).copied().unwrap_or(0);
        Err(group.fault_of(item, kind))
    });
    // Values of the work-items may panic when dropped; each work-item is dropped only once.
    while items.started > 0 {
        let _ = fault::catch(|| items.clear());
    }
    outcome
}

/// The work-items of the group that wait. One that ends without waiting leaves its slot to the next, so that a body
/// which never waits needs one slot.
struct Items<'g, W> {
    group: &'g Group<'g>,
    /// The work-item that each body gets. Prepared once, because a body copies it whole, and a processor is slow to
    /// load a whole right after its parts were stored.
    seats: Vec<WorkItem<'g>>,
    work: Vec<MaybeUninit<W>>,
    /// Slots of `work` below this hold a work-item, unless it is gone.
    started: usize,
    gone: Vec<bool>,
    /// The work-item in each slot; they rise.
    who: Vec<u32>,
    /// The state of each work-item. Out of date while all are in the same state.
    halts: Vec<Halt>,
}

/// Tells whether the work-item that has just run is in the same state as those before it.
#[inline(always)]
fn stands(group: &Group<'_>, poll: Poll<()>, common: Halt) -> bool {
    if poll.is_ready() { common.stop == Stop::Ended } else { group.desk.is(common) }
}

/// The work-item `linear` is in another state than those from `first` on before it, or is the first. Returns the state
/// of all of them now, or `APART`: then they are on the list.
#[inline(never)]
fn join(
    group: &Group<'_>,
    halts: &mut [Halt],
    (first, linear): (usize, usize),
    common: Halt,
    poll: Poll<()>,
) -> Result<Halt, Fault> {
    if !cfg!(panic = "unwind")
        && let Some(kind) = fault::take()
    {
        return Err(group.fault_of(linear as u32, kind));
    }
    let halt = if poll.is_ready() { Halt::ENDED } else { group.desk.halt() };
    if halt.stop == Stop::Running {
        return Err(group.fault_of(linear as u32, FaultKind::ForeignAwait));
    }
    if linear == first {
        return Ok(halt);
    }
    if common.stop != Stop::Apart {
        if common.joins(halt) {
            return Ok(common);
        }
        halts[first..linear].fill(common);
    }
    halts[linear] = halt;
    Ok(Halt::APART)
}

/// A work-item has ended: it is gone.
#[inline(always)]
fn end<W>(work: &mut MaybeUninit<W>, gone: &mut bool) {
    *gone = true;
    // SAFETY: it held a work-item until the line above.
    unsafe { work.assume_init_drop() };
}

/// Runs a work-item to its next barrier, or to its end.
///
/// # Safety
/// There is a work-item, and it stays where it is until it is dropped.
#[inline(always)]
unsafe fn step<W: Future<Output = ()>>(group: &Group<'_>, work: &mut MaybeUninit<W>) -> Poll<()> {
    group.desk.clear();
    // SAFETY: the caller's promise.
    let work = unsafe { Pin::new_unchecked(work.assume_init_mut()) };
    let poll = work.poll(&mut Context::from_waker(Waker::noop()));
    if !cfg!(panic = "unwind") && fault::is_raised() {
        // In no state, so that `join` sees it and takes the fault.
        group.desk.clear();
        return Poll::Pending;
    }
    poll
}

impl<'g, W: Future<Output = ()>> Items<'g, W> {
    fn new(group: &'g Group<'g>, seats: &'g [Seat<'g>]) -> Result<Self, Fault> {
        let mut work_items = fault::with_room(seats.len())?;
        work_items.extend(seats.iter().map(|seat| WorkItem::new(group, seat)));
        Ok(Self {
            group,
            seats: work_items,
            // The variables of a work-item are in each.
            work: fault::list(seats.len(), MaybeUninit::uninit)?,
            started: 0,
            gone: fault::list(seats.len(), || true)?,
            who: fault::list(seats.len(), || 0)?,
            halts: fault::list(seats.len(), || Halt::ENDED)?,
        })
    }

    fn run_group(&mut self, make: &impl Fn(WorkItem<'g>) -> W, at: &Cell<u32>) -> Result<(), Fault> {
        let mut common = if self.seats.is_empty() { Some(Halt::ENDED) } else { self.start(make, at)? };
        loop {
            let waits_for_wave = match common {
                Some(halt) => halt.stop.is_wave(),
                None => self.halts.iter().any(|halt| halt.stop.is_wave()),
            };
            if waits_for_wave {
                common = self.settle_waves(common, at)?;
            }
            match common {
                Some(halt) if halt.stop == Stop::Ended => break,
                Some(halt) => {
                    if let (Some(checker), Some(scope)) = (self.group.checker, halt.stop.scope()) {
                        checker.pass_group(scope);
                    }
                    common = self.pass(0..self.seats.len(), at)?;
                }
                None => {
                    let (item, kind) = divergence::of_group(&self.halts);
                    return Err(self.group.fault_of(item, kind));
                }
            }
        }
        self.started = 0;
        Ok(())
    }

    /// Makes every work-item and runs it to its first barrier or its end. Returns their state, if all are in the same.
    fn start(&mut self, make: &impl Fn(WorkItem<'g>) -> W, at: &Cell<u32>) -> Result<Option<Halt>, Fault> {
        let group = self.group;
        let first_x = group.ids.first_x();
        let mut common = Halt::APART;
        for (linear, item) in self.seats.iter().enumerate() {
            let index = self.started;
            item.set_global_x(first_x + item.local_id(0));
            if group.checker.is_some() {
                group.enter(linear as u32);
            }
            self.who[index] = linear as u32;
            // The body may panic before it is a work-item, too.
            let unwound = Unwound { at, number: index as u32 };
            self.work[index].write(make(*item));
            self.gone[index] = false;
            self.started = index + 1;
            // SAFETY: it has been written above; `work` never grows.
            let poll = unsafe { step(group, &mut self.work[index]) };
            std::mem::forget(unwound);
            if poll.is_ready() {
                end(&mut self.work[index], &mut self.gone[index]);
                self.started = index;
            }
            if !stands(group, poll, common) {
                common = join(group, &mut self.halts, (0, linear), common, poll)?;
            }
        }
        Ok(common.of_work_items())
    }

    /// Runs the work-items of these slots, all of which wait, on by one step. Their numbers are consecutive, because a
    /// barrier opens only if no work-item of its group or wave is missing. Returns their state, if all are in the same.
    #[inline(never)]
    fn pass(&mut self, slots: Range<usize>, at: &Cell<u32>) -> Result<Option<Halt>, Fault> {
        let group = self.group;
        let first = self.who[slots.start] as usize;
        let mut common = Halt::APART;
        // None of this changes meanwhile, which the compiler cannot know.
        let (start, checked) = (slots.start, group.checker.is_some());
        for (index, work) in self.work[slots].iter_mut().enumerate() {
            if checked {
                group.enter((first + index) as u32);
            }
            let unwound = Unwound { at, number: (start + index) as u32 };
            // SAFETY: a work-item that waits is there; `work` never grows.
            let poll = unsafe { step(group, work) };
            std::mem::forget(unwound);
            if poll.is_ready() {
                end(work, &mut self.gone[start + index]);
            }
            if !stands(group, poll, common) {
                common = join(group, &mut self.halts, (first, first + index), common, poll)?;
            }
        }
        Ok(common.of_work_items())
    }

    /// Runs every wave until no work-item waits for its wave only. Takes and returns the state of all, if it is the
    /// same.
    fn settle_waves(&mut self, common: Option<Halt>, at: &Cell<u32>) -> Result<Option<Halt>, Fault> {
        let (size, items) = (self.group.wave_size, self.seats.len());
        let mut all = None;
        for (wave, first) in (0..items).step_by(size).enumerate() {
            let lanes = first..(first + size).min(items);
            let mut here = common.or_else(|| self.common(lanes.clone()));
            while let Some(halt) = here
                && halt.stop.is_wave()
            {
                if let Some(checker) = self.group.checker
                    && halt.stop == Stop::WaveFence
                {
                    checker.pass_wave(wave);
                }
                self.group.waves[wave].release();
                here = self.pass(self.slots(lanes.clone()), at)?;
            }
            if here.is_none() && self.halts[lanes.clone()].iter().any(|halt| halt.stop.is_wave()) {
                let (lane, kind) = divergence::of_wave(&self.halts[lanes]);
                return Err(self.group.fault_of(first as u32 + lane, kind));
            }
            match (all, here) {
                _ if first == 0 => all = here,
                (Some(others), Some(halt)) if halt.joins(others) => {}
                _ => {
                    // From here on the list says where the work-items stand.
                    if let Some(others) = all.take() {
                        self.halts[..first].fill(others);
                    }
                    if let Some(halt) = here {
                        self.halts[lanes].fill(halt);
                    }
                }
            }
        }
        Ok(all)
    }

    /// The state of all of these work-items by the list, if it is the same.
    fn common(&self, items: Range<usize>) -> Option<Halt> {
        let (first, others) = self.halts[items].split_first()?;
        others.iter().all(|halt| halt.joins(*first)).then_some(*first)
    }

    /// The slots of these work-items, all of which wait.
    #[inline(always)]
    fn slots(&self, items: Range<usize>) -> Range<usize> {
        if self.started == self.seats.len() {
            return items;
        }
        let below = |end: usize| self.who[..self.started].partition_point(|who| (*who as usize) < end);
        below(items.start)..below(items.end)
    }

    /// Drops the work-items that have not ended.
    fn clear(&mut self) {
        while let Some(index) = self.started.checked_sub(1) {
            self.started = index;
            if !std::mem::replace(&mut self.gone[index], true) {
                // SAFETY: the slot holds a work-item, which counts as gone from the line above on.
                unsafe { self.work[index].assume_init_drop() };
            }
        }
    }
}
