//! What is asked of an event.

use super::typed::{Named, OnEvent, Typed, same};
use enum_dispatch::enum_dispatch;
use gpumem_core::{Backend, Event, Result};

/// The functions of [`Event`], and the one of [`Backend`] that two events decide.
#[enum_dispatch]
pub(crate) trait EventOps {
    fn query(&self) -> Result<bool>;
    fn synchronize(&self) -> Result<()>;
    fn elapsed(&self, end: &AnyEvent) -> Result<f32>;
}

backends! { any!
    /// An event of one of the enabled backends.
    AnyEvent(OnEvent, Event): Named, EventOps
}

impl<B: Backend> EventOps for OnEvent<B>
where
    AnyEvent: Typed<B, Of = B::Event>,
{
    #[inline]
    fn query(&self) -> Result<bool> {
        self.0.query()
    }

    #[inline]
    fn synchronize(&self) -> Result<()> {
        self.0.synchronize()
    }

    #[inline]
    fn elapsed(&self, end: &AnyEvent) -> Result<f32> {
        B::elapsed(&self.0, same::<B, _>("elapsed", end)?)
    }
}

// SAFETY: what the backend behind it promises.
unsafe impl Event for AnyEvent {
    #[inline]
    fn query(&self) -> Result<bool> {
        EventOps::query(self)
    }

    #[inline]
    fn synchronize(&self) -> Result<()> {
        EventOps::synchronize(self)
    }
}
