//! A subscriber of tracing that runs code at each event, as a user's may.

use std::{panic, thread};
use tracing::{Event, Metadata, Subscriber, span};

/// Calls a function at each event.
pub(crate) struct OnEvent<F>(pub(crate) F);

impl<F: Fn() + Send + Sync + 'static> Subscriber for OnEvent<F> {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }
    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }
    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn event(&self, _: &Event<'_>) {
        (self.0)();
    }
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}

/// Panics, but not while its thread panics already: that would end the process.
#[allow(clippy::panic, reason = "what a user may do")]
pub(crate) fn panics() {
    if !thread::panicking() {
        panic::panic_any("the subscriber's");
    }
}
