//! Moves and combines the bytes of all ranks of an operation.

use crate::call::{Call, Kind};
use std::ptr::{with_exposed_provenance, with_exposed_provenance_mut};

/// Bytes in memory of the process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) address: usize,
    pub(crate) bytes: usize,
}

impl Span {
    fn overlaps(self, other: Self) -> bool {
        let (end, other_end) = (self.address + self.bytes, other.address + other.bytes);
        self.bytes > 0 && other.bytes > 0 && self.address < other_end && other.address < end
    }

    /// The block of this number, of blocks of so many bytes.
    fn block(self, number: usize, bytes: usize) -> Self {
        Self { address: self.address + number * bytes, bytes }
    }
}

/// The part of one rank.
#[derive(Debug, Clone)]
pub(crate) struct Part {
    pub(crate) call: Call,
    pub(crate) source: Span,
    pub(crate) destination: Span,
}

/// Finds a rank that writes memory that another one uses: `(writer, user)`.
pub(crate) fn overlap(parts: &[Part]) -> Option<(usize, usize)> {
    let users = |part: &Part| [part.source, part.destination];
    let mut all: Vec<(Span, usize, bool)> = Vec::with_capacity(2 * parts.len());
    for (seat, part) in parts.iter().enumerate() {
        all.extend(users(part).into_iter().zip([false, true]).map(|(span, write)| (span, seat, write)));
    }
    all.retain(|(span, ..)| span.bytes > 0);
    all.sort_by_key(|(span, ..)| span.address);
    for (index, (span, seat, write)) in all.iter().enumerate() {
        let near = all[index + 1..].iter().take_while(|(other, ..)| span.overlaps(*other));
        for (_, other, other_writes) in near {
            if other != seat && (*write || *other_writes) {
                return Some(if *write { (*seat, *other) } else { (*other, *seat) });
            }
        }
    }
    None
}

/// Does the operation. All ranks have called the same one, with parts that fit, and wait until this returns: so their
/// memory is valid, and no other code uses it.
pub(crate) fn run(parts: &[Part]) {
    let Some(first) = parts.first() else { return };
    let (bytes, count, ranks) = (first.call.bytes(), first.call.count, parts.len());
    let sources = || parts.iter().map(|part| part.source);
    let destinations = || parts.iter().map(|part| part.destination);
    match &first.call.kind {
        Kind::Barrier => {}
        Kind::AllReduce => combine(&first.call, sources(), destinations(), count),
        Kind::Reduce { root } => {
            combine(&first.call, sources(), destinations().skip(*root).take(1), count);
        }
        Kind::ReduceScatter => {
            for rank in 0..ranks {
                let blocks = sources().map(|source| source.block(rank, bytes));
                combine(&first.call, blocks, destinations().skip(rank).take(1), count);
            }
        }
        Kind::Broadcast { root } => {
            let Some(source) = sources().nth(*root) else { return };
            destinations().for_each(|destination| copy(source, destination));
        }
        Kind::AllGather => {
            for destination in destinations() {
                for (rank, source) in sources().enumerate() {
                    copy(source, destination.block(rank, bytes));
                }
            }
        }
        Kind::Gather { root } => {
            let Some(destination) = destinations().nth(*root) else { return };
            for (rank, source) in sources().enumerate() {
                copy(source, destination.block(rank, bytes));
            }
        }
        Kind::Scatter { root } => {
            let Some(source) = sources().nth(*root) else { return };
            for (rank, destination) in destinations().enumerate() {
                copy(source.block(rank, bytes), destination);
            }
        }
        Kind::AllToAll => {
            for (from, source) in sources().enumerate() {
                for (to, destination) in destinations().enumerate() {
                    copy(source.block(to, bytes), destination.block(from, bytes));
                }
            }
        }
        Kind::AllToAllV { .. } => all_to_all_v(parts),
        Kind::Send { .. } | Kind::Receive { .. } => {
            if let [sender, receiver] = parts {
                copy(sender.source, receiver.destination);
            }
        }
    }
}

fn all_to_all_v(parts: &[Part]) {
    // Where the next block of each rank goes.
    let mut next: Vec<usize> = parts.iter().map(|part| part.destination.address).collect();
    for part in parts {
        let Kind::AllToAllV { send, .. } = &part.call.kind else { return };
        let mut address = part.source.address;
        for (bytes, to) in send.iter().zip(&mut next) {
            copy(Span { address, bytes: *bytes }, Span { address: *to, bytes: *bytes });
            address += bytes;
            *to += bytes;
        }
    }
}

fn copy(source: Span, destination: Span) {
    if source.address == destination.address || source.bytes == 0 {
        return;
    }
    let (from, to) = (
        with_exposed_provenance::<u8>(source.address),
        with_exposed_provenance_mut::<u8>(destination.address),
    );
    // SAFETY: both are valid and used by nothing else (see `run`), and were found not to overlap when the ranks agreed.
    // The two of one rank lie apart: see `accesses`.
    unsafe { from.copy_to_nonoverlapping(to, source.bytes.min(destination.bytes)) };
}

fn combine(
    call: &Call,
    sources: impl Iterator<Item = Span>,
    destinations: impl Iterator<Item = Span>,
    count: usize,
) {
    let addresses = |spans: &mut dyn Iterator<Item = Span>| -> Vec<usize> {
        spans.filter(|span| span.bytes > 0).map(|span| span.address).collect()
    };
    let (mut sources, mut destinations) = (sources, destinations);
    let (sources, destinations) = (addresses(&mut sources), addresses(&mut destinations));
    if let Some(computation) = call.computation.filter(|_| count > 0) {
        // SAFETY: the memory is valid and used by nothing else (see `run`). The function is of the type that all ranks
        // have agreed on, and arrays of it are aligned. Spans of two ranks do not overlap where one is written, and those
        // of one rank lie apart or are the same (see `accesses`).
        unsafe { (computation.function)(&sources, &destinations, count) };
    }
}
