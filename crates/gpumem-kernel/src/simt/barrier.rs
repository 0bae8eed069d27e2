//! Where work-items wait.

use crate::simt::name::{Place, SiteName};
use gpumem_core::BarrierScope;
use std::{
    cell::Cell,
    marker::PhantomData,
    panic::Location,
    pin::Pin,
    task::{Context, Poll},
};

/// The state of a work-item. Fieldless, because every step of every work-item reads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Stop {
    Running,
    /// No state of a work-item: stands for several work-items in different states.
    Apart,
    Ended,
    /// Waits for values of its wave.
    Wave,
    /// Waits for its wave, with a memory fence.
    WaveFence,
    /// Waits for its group.
    Local,
    Global,
    Both,
}

impl Stop {
    #[inline(always)]
    pub(crate) fn is_group(self) -> bool {
        matches!(self, Self::Local | Self::Global | Self::Both)
    }

    #[inline(always)]
    pub(crate) fn is_wave(self) -> bool {
        matches!(self, Self::Wave | Self::WaveFence)
    }

    /// The scope of a barrier of the group.
    pub(crate) fn scope(self) -> Option<BarrierScope> {
        match self {
            Self::Local => Some(BarrierScope::Local),
            Self::Global => Some(BarrierScope::Global),
            Self::Both => Some(BarrierScope::Both),
            _ => None,
        }
    }
}

impl From<BarrierScope> for Stop {
    #[inline(always)]
    fn from(scope: BarrierScope) -> Self {
        match scope {
            BarrierScope::Local => Self::Local,
            BarrierScope::Global => Self::Global,
            BarrierScope::Both => Self::Both,
        }
    }
}

/// Where a work-item has stopped: for whom it waits, and at which barrier or operation of the body.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Halt {
    pub(crate) stop: Stop,
    number: u32,
    /// The place, `stop` bytes on: places are further apart than that, so one comparison tells whether both are the same.
    tagged: *const u8,
}

impl Halt {
    /// Of a work-item that has ended; the place says nothing.
    pub(crate) const ENDED: Self = Self::new(Stop::Ended, SiteName::at(Location::caller()));
    /// Of no work-item.
    pub(crate) const APART: Self = Self::new(Stop::Apart, SiteName::at(Location::caller()));
    const RUNNING: Self = Self::new(Stop::Running, SiteName::at(Location::caller()));

    #[inline(always)]
    const fn new(stop: Stop, name: SiteName) -> Self {
        const { assert!(size_of::<Location<'static>>() > Stop::Both as usize) };
        let tagged = (&raw const *name.place).cast::<u8>().wrapping_add(stop as usize);
        Self { stop, number: name.number, tagged }
    }

    pub(crate) fn place(self) -> Place {
        // SAFETY: `new` has made it of a place and this number.
        unsafe { &*self.tagged.wrapping_sub(self.stop as usize).cast() }
    }

    fn name(self) -> SiteName {
        SiteName { number: self.number, place: self.place() }
    }

    /// `None` if it is that of no work-item.
    pub(crate) fn of_work_items(self) -> Option<Self> {
        (self.stop != Stop::Apart).then_some(self)
    }

    /// Whether both wait together. Scopes may differ at one barrier.
    pub(crate) fn joins(self, other: Self) -> bool {
        match self.stop {
            Stop::Running | Stop::Apart | Stop::Ended => self.stop == other.stop,
            _ => {
                let alike = (self.stop.is_wave(), self.stop.is_group());
                alike == (other.stop.is_wave(), other.stop.is_group()) && self.name().is(other.name())
            }
        }
    }
}

/// The running work-item reports here that it waits. A group has one: the executor reads it when the work-item has
/// stopped, before the next one runs. So it stays in one cache line.
#[derive(Debug)]
pub(crate) struct Desk {
    stop: Cell<Stop>,
    number: Cell<u32>,
    tagged: Cell<*const u8>,
}

impl Desk {
    pub(crate) fn new() -> Self {
        Self {
            stop: Cell::new(Stop::Running),
            number: Cell::new(SiteName::UNNUMBERED),
            tagged: Cell::new(std::ptr::null()),
        }
    }

    /// A work-item runs, and has said nothing yet.
    #[inline(always)]
    pub(crate) fn clear(&self) {
        self.tagged.set(std::ptr::null());
    }

    /// The reported state; `Running` if none.
    #[inline(always)]
    pub(crate) fn halt(&self) -> Halt {
        let (stop, tagged) = (self.stop.get(), self.tagged.get());
        if tagged.is_null() { Halt::RUNNING } else { Halt { stop, number: self.number.get(), tagged } }
    }

    /// Whether it has said just that.
    #[inline(always)]
    pub(crate) fn is(&self, halt: Halt) -> bool {
        self.tagged.get() == halt.tagged && self.number.get() == halt.number
    }

    #[inline(always)]
    pub(crate) fn set(&self, stop: Stop, name: SiteName) {
        self.stop.set(stop);
        self.number.set(name.number);
        self.tagged.set(Halt::new(stop, name).tagged);
    }
}

/// A barrier that a work-item is to wait at; `.await` it at once.
///
/// Where it waits has been said already, so that this, which every suspended body holds, is one byte.
#[derive(Debug)]
#[must_use = "a barrier waits only when it is awaited"]
pub struct BarrierFuture<'g> {
    waiting: bool,
    desk: PhantomData<&'g Desk>,
}

impl<'g> BarrierFuture<'g> {
    #[inline(always)]
    pub(crate) fn new(desk: &'g Desk, stop: Stop, name: SiteName) -> Self {
        desk.set(stop, name);
        Self { waiting: false, desk: PhantomData }
    }
}

impl Future for BarrierFuture<'_> {
    type Output = ();

    /// The executor polls a work-item again only when all have arrived.
    #[inline(always)]
    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        if std::mem::replace(&mut self.waiting, true) { Poll::Ready(()) } else { Poll::Pending }
    }
}
