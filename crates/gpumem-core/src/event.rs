//! How events are made.

/// How an event is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct EventOptions {
    /// Remember the time, for [`Event::elapsed`](crate::Event::elapsed). Costs a little; off by default.
    pub timing: bool,
}
