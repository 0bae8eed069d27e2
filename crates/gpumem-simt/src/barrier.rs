//! Where work-items wait.

use gpumem_core::BarrierScope;
use std::{
    cell::Cell,
    marker::PhantomData,
    panic::Location,
    pin::Pin,
    task::{Context, Poll},
};

/// What a work-item is doing. Fieldless, because it is looked at in every step of every work-item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Stop {
    Running,
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
        self as u8 >= Self::Local as u8
    }

    #[inline(always)]
    pub(crate) fn is_wave(self) -> bool {
        self as u8 & !1 == Self::Wave as u8
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

/// The state of a work-item that has been started.
#[derive(Debug)]
#[repr(align(16))]
pub(crate) struct Slot {
    pub(crate) stop: Cell<Stop>,
    /// Where it waits, or waited last.
    pub(crate) place: Cell<&'static Location<'static>>,
}

impl Slot {
    #[track_caller]
    pub(crate) fn new() -> Self {
        Self { stop: Cell::new(Stop::Ended), place: Cell::new(Location::caller()) }
    }
}

/// A barrier that a work-item is to wait at; `.await` it at once.
///
/// Where it waits stands in its slot already, so that this, which every suspended body holds, is one byte.
#[derive(Debug)]
#[must_use = "a barrier waits only when it is awaited"]
pub struct Arrival<'g> {
    waiting: bool,
    slot: PhantomData<&'g Slot>,
}

impl<'g> Arrival<'g> {
    #[inline(always)]
    pub(crate) fn new(slot: &'g Slot, stop: Stop, place: &'static Location<'static>) -> Self {
        slot.stop.set(stop);
        slot.place.set(place);
        Self { waiting: false, slot: PhantomData }
    }
}

impl Future for Arrival<'_> {
    type Output = ();

    /// The executor polls a work-item again only when all have arrived.
    #[inline(always)]
    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        if std::mem::replace(&mut self.waiting, true) { Poll::Ready(()) } else { Poll::Pending }
    }
}
