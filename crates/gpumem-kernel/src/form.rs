//! How the host runs a kernel.

/// How the body of a kernel runs on the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostForm {
    /// As a plain loop over the work-items: the body meets no barrier and no operation of a wave.
    Loop,
    /// As loops over the work-items of a group, one from each barrier to the next: all work-items are known to come to the
    /// same barriers.
    Phases,
    /// As work-items of a group that take turns, and wait for each other at barriers.
    WorkItems,
}
