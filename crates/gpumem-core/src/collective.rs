//! Failures of collective operations.

use std::{borrow::Cow, fmt, time::Duration};

/// A library of collective operations that works on a backend's streams and addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CollectiveLibrary {
    /// NCCL, with CUDA's streams.
    Nccl,
    /// RCCL, with HIP's streams.
    Rccl,
}

/// A collective operation that failed, as one rank sees it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct CollectiveError {
    /// The operation: `all_reduce`, `send`, ..
    pub operation: &'static str,
    /// Number of the operation among those of this rank's communicator, from 0.
    pub sequence: u64,
    /// The rank that reports the failure.
    pub rank: usize,
    /// Number of ranks of the communicator.
    pub size: usize,
    /// Why it failed.
    pub cause: CollectiveCause,
    /// The last operations of the rank, for a [`Timeout`](CollectiveCause::Timeout): the oldest first.
    pub recent: Vec<CollectiveRecord>,
}

impl CollectiveError {
    /// Describes a failure.
    pub fn new(
        operation: &'static str,
        sequence: u64,
        (rank, size): (usize, usize),
        cause: CollectiveCause,
    ) -> Self {
        Self { operation, sequence, rank, size, cause, recent: Vec::new() }
    }
}

impl fmt::Display for CollectiveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { operation, sequence, rank, size, cause, recent } = self;
        write!(f, "operation {sequence} ({operation}) of rank {rank} of {size} failed: {cause}")?;
        write_recent(f, recent)
    }
}

/// Writes the last operations of a rank.
pub(crate) fn write_recent(f: &mut impl fmt::Write, recent: &[CollectiveRecord]) -> fmt::Result {
    for (at, record) in recent.iter().enumerate() {
        write!(f, "{}{record}", if at == 0 { "; the last operations of this rank: " } else { ", " })?;
    }
    Ok(())
}

impl std::error::Error for CollectiveError {}

/// How far an operation of one rank has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CollectiveState {
    /// It was called, and has not ended as far as is known.
    UnderWay,
    /// It has ended well.
    Done,
    /// It has failed.
    Failed,
}

/// An operation that a rank has called.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct CollectiveRecord {
    /// Its number among those of the rank's communicator, from 0.
    pub sequence: u64,
    /// What was called.
    pub call: CollectiveCall,
    /// How far it has come.
    pub state: CollectiveState,
}

impl CollectiveRecord {
    /// Describes an operation that is under way.
    pub fn new(sequence: u64, call: CollectiveCall) -> Self {
        Self { sequence, call, state: CollectiveState::UnderWay }
    }
}

impl fmt::Display for CollectiveRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { sequence, call, state } = self;
        let state = match state {
            CollectiveState::UnderWay => "under way",
            CollectiveState::Done => "done",
            CollectiveState::Failed => "failed",
        };
        write!(f, "{sequence}: {call} ({state})")
    }
}

/// Why a collective operation failed.
#[derive(Debug, Clone, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum CollectiveCause {
    /// The ranks called different operations, or the same one with arguments that do not fit. Nothing was moved.
    #[error("the ranks disagree: this rank called {mine}{}", theirs.iter().map(|(rank, call)| differing(mine, *rank, call)).collect::<String>())]
    Mismatch {
        /// What this rank called.
        mine: Box<CollectiveCall>,
        /// Ranks that called something else, and what they called: sixteen at most.
        theirs: Vec<(usize, CollectiveCall)>,
    },
    /// One rank writes memory that another one uses in the same operation. Nothing was moved.
    #[error("rank {writer} writes memory that rank {user} uses in the same operation")]
    Overlap {
        /// The rank whose destination it is.
        writer: usize,
        /// The other rank.
        user: usize,
    },
    /// Some ranks did not take part in time.
    #[error("{} did not take part within {after:?}", if missing.is_empty() { "some ranks".to_owned() } else { format!("ranks {missing:?}") })]
    Timeout {
        /// The deadline.
        after: Duration,
        /// The ranks that had not taken part. Empty where that is not known.
        missing: Vec<usize>,
    },
    /// Another rank cannot take part any more, or its part failed.
    #[error("rank {rank} did not take part: {why}")]
    PeerLost {
        /// That rank.
        rank: usize,
        /// What happened to it.
        why: String,
    },
    /// The library of the device reports a failure ([`CollectiveLibrary`]).
    #[error("the library reports {why}")]
    Library {
        /// Its words.
        why: String,
    },
    /// A rank aborted the communicator.
    #[error("rank {rank} aborted the communicator")]
    Aborted {
        /// The rank that did.
        rank: usize,
    },
}

/// What a rank called, as far as all ranks have to agree.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct CollectiveCall {
    /// The operation.
    pub operation: &'static str,
    /// Type of the elements.
    pub element: Cow<'static, str>,
    /// Number of elements: those that each rank gives, or gets.
    pub count: usize,
    /// What is computed.
    pub reduction: Option<&'static str>,
    /// The root.
    pub root: Option<usize>,
    /// How many operations of each communicator this rank had called before: of communicators with a rank in common.
    /// Empty where the order is not checked.
    pub order: Vec<(u64, u64)>,
}

/// What another rank called, where it differs from `mine`.
fn differing(mine: &CollectiveCall, rank: usize, theirs: &CollectiveCall) -> String {
    let text = theirs.to_string();
    match text == mine.to_string() {
        false => format!(", rank {rank} called {text}"),
        true => format!(", rank {rank} called {text} with another type of that name, or other blocks"),
    }
}

impl CollectiveCall {
    /// Describes a call without a reduction, a root and an order.
    pub fn new(operation: &'static str, element: impl Into<Cow<'static, str>>, count: usize) -> Self {
        Self { operation, element: element.into(), count, reduction: None, root: None, order: Vec::new() }
    }
}

impl fmt::Display for CollectiveCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { operation, element, count, reduction, root, order } = self;
        write!(f, "{operation} of {count} {element}")?;
        if let Some(reduction) = reduction {
            write!(f, " ({reduction})")?;
        }
        if let Some(root) = root {
            write!(f, " with root {root}")?;
        }
        for (communicator, calls) in order {
            write!(f, " after {calls} of communicator {communicator}")?;
        }
        Ok(())
    }
}
