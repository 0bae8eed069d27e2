//! Cases and their outcomes.

use crate::Lab;
use gpumem_core::{Backend, Error};
use std::{fmt, panic::Location};

/// The stages of bringing up a backend. Each level relies on those below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Level {
    /// Finding and opening a device.
    Probe = 1,
    /// Memory: making arrays, giving it back.
    Allocate = 2,
    /// Copies and fills, of any layout and element.
    Copy = 3,
    /// Views and other shapes.
    View = 4,
    /// Streams, events, ordering, completion.
    Stream = 5,
    /// Pinned and mapped memory.
    Pinned = 6,
    /// Managed memory.
    Managed = 7,
    /// Memory of the caller, page-locked while a scope lasts.
    Register = 8,
    /// Calls that must be refused, and objects that must survive a failure.
    Fault = 9,
    /// Two devices.
    Devices = 10,
    /// Memory of other libraries, and memory lent to them.
    Interchange = 11,
    /// Kernels.
    Kernel = 12,
    /// Memory that failed work was to write.
    Failures = 13,
    /// Graphs.
    Graphs = 14,
    /// Arrays in files.
    Files = 15,
    /// Arrays that are larger than the device, in chunks.
    Chunks = 16,
    /// Arrays that leave the device when its memory is short.
    Spill = 17,
}

impl Level {
    /// The number by which `--level` knows it.
    pub fn number(self) -> u8 {
        self as u8
    }

    /// The first part of the names of its cases.
    pub fn prefix(self) -> &'static str {
        match self {
            Level::Probe => "01_probe",
            Level::Allocate => "02_allocate",
            Level::Copy => "03_copy",
            Level::View => "04_view",
            Level::Stream => "05_stream",
            Level::Pinned => "06_pinned",
            Level::Managed => "07_managed",
            Level::Register => "08_register",
            Level::Fault => "09_fault",
            Level::Devices => "10_devices",
            Level::Interchange => "11_interchange",
            Level::Kernel => "12_kernel",
            Level::Failures => "13_failures",
            Level::Graphs => "14_graphs",
            Level::Files => "15_files",
            Level::Chunks => "16_chunks",
            Level::Spill => "17_spill",
        }
    }
}

/// Why a case ended before its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stop {
    /// The device lacks the feature of the case.
    Skipped(String),
    /// The device fails the case.
    Failed(String),
}

impl From<Error> for Stop {
    #[track_caller]
    fn from(error: Error) -> Self {
        let at = Location::caller();
        Stop::Failed(format!("{error} ({}:{})", at.file(), at.line()))
    }
}

impl<A> From<gpumem_runtime::RegisterError<A>> for Stop {
    #[track_caller]
    fn from(refused: gpumem_runtime::RegisterError<A>) -> Self {
        refused.error.into()
    }
}

/// The result of a case.
pub type Verdict<T = ()> = Result<T, Stop>;

/// Ends a case whose device lacks a feature.
///
/// # Errors
/// Always.
pub fn skip<T>(reason: impl fmt::Display) -> Verdict<T> {
    Err(Stop::Skipped(reason.to_string()))
}

/// One thing that every backend must do. The case of a kernel that ships is made by [`Case::kernel`], every other by
/// [`Case::new`].
pub struct Case<B: Backend> {
    /// Level and name, as `03_copy::broadcast_sources`.
    pub name: String,
    /// The level that it builds on.
    pub level: Level,
    /// The case itself. Fails by an error or by a panic.
    pub(crate) run: fn(&Lab<B>) -> Verdict,
    pub(crate) compares_kernel: bool,
}

impl<B: Backend> Case<B> {
    /// A case named after its function.
    pub fn new(level: Level, name: &str, run: fn(&Lab<B>) -> Verdict) -> Self {
        Self { name: format!("{}::{name}", level.prefix()), level, run, compares_kernel: false }
    }

    /// Whether it is a case of [`Case::kernel`]: it compares device, host body and reference.
    pub fn compares_kernel(&self) -> bool {
        self.compares_kernel
    }
}

impl<B: Backend> fmt::Debug for Case<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Case").field("name", &self.name).finish_non_exhaustive()
    }
}

/// The list of a file's cases: `cases! { Level::Copy; function, .. }`.
macro_rules! cases {
    ($level:expr; $($case:ident,)*) => {
        pub(super) fn cases<B: gpumem_core::Backend>() -> Vec<crate::Case<B>> {
            vec![$(crate::Case::new($level, stringify!($case), $case::<B>)),*]
        }
    };
}
