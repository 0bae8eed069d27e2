//! What the ranks are about to call, compared before it is called: on request, because it waits for them.

use super::{
    Link,
    enqueue::{OwnCalls, Turns, enqueue_locked},
};
use crate::{
    call::{Call, Kind, Place, Prepared},
    identity::stable_hash,
    reduction::Number,
};
use gpumem_core::{Backend, CollectiveCall, CollectiveCause, Result};
use gpumem_runtime::{DeviceArray, Stream, internal::may_block};
use ndarray::Ix1;
use std::sync::PoisonError;

/// Bytes of a fingerprint.
const BYTES: usize = 40;

/// The names, in the order of their numbers.
const OPERATIONS: [&str; 10] = [
    "all_reduce",
    "reduce",
    "broadcast",
    "all_gather",
    "reduce_scatter",
    "all_to_all",
    "all_to_all_v",
    "gather",
    "scatter",
    "barrier",
];
const REDUCTIONS: [&str; 5] = ["sum", "product", "min", "max", "average"];
const ELEMENTS: [&str; 12] =
    ["i8", "u8", "i32", "u32", "i64", "u64", "f16", "bf16", "f32", "f64", "Complex<f32>", "Complex<f64>"];
/// The number of what has none.
const NONE: u8 = u8::MAX;

fn number_of(names: &[&'static str], name: &str) -> u8 {
    names.iter().position(|known| *known == name).map_or(NONE, |at| at as u8)
}

fn name_of(names: &[&'static str], number: u8) -> Option<&'static str> {
    names.get(usize::from(number)).copied()
}

/// Whether all ranks call it. Sends and receives concern two of them.
fn concerns_all(call: &Call) -> bool {
    !matches!(call.kind, Kind::Send { .. } | Kind::Receive { .. })
}

/// An operation in bytes: numbers of the operation, the reduction and the element, its bytes, the count, and the root.
fn one(call: &Call) -> [u8; 24] {
    let fingerprint = call.fingerprint(Vec::new());
    let mut bytes = [0; 24];
    bytes[0] = number_of(&OPERATIONS, fingerprint.operation);
    bytes[1] = fingerprint.reduction.map_or(NONE, |name| number_of(&REDUCTIONS, name));
    bytes[2] = call.number.map_or(NONE, |number: Number| number as u8);
    bytes[4..8].copy_from_slice(&(call.element.bytes as u32).to_le_bytes());
    // Ranks send each other different numbers of rows.
    let count = if matches!(call.kind, Kind::AllToAllV { .. }) { 0 } else { call.count };
    bytes[8..16].copy_from_slice(&(count as u64).to_le_bytes());
    bytes[16..].copy_from_slice(&fingerprint.root.map_or(u64::MAX, |root| root as u64).to_le_bytes());
    bytes
}

/// What a rank calls: its first operation, how many there are, and a hash of all.
fn fingerprint(calls: &[Prepared<'_, impl Backend>]) -> Option<[u8; BYTES]> {
    let all: Vec<[u8; 24]> =
        calls.iter().map(|prepared| &prepared.call).filter(|call| concerns_all(call)).map(one).collect();
    let mut bytes = [0; BYTES];
    // The first one as it is, so that an error can name it; a hash of all, so that any difference is seen.
    bytes[..24].copy_from_slice(all.first()?);
    bytes[24..32].copy_from_slice(&(all.len() as u64).to_le_bytes());
    bytes[32..].copy_from_slice(&stable_hash(all.into_iter().flatten()).to_le_bytes());
    Some(bytes)
}

/// The operation of a fingerprint.
fn call_of(bytes: &[u8]) -> CollectiveCall {
    let number = |at: usize| {
        let mut eight = [0; 8];
        eight.copy_from_slice(&bytes[at..at + 8]);
        u64::from_le_bytes(eight) as usize
    };
    // Of several, only the number is known: the hash does not say which differ.
    if number(24) != 1 {
        return CollectiveCall::new("group", "operations", number(24));
    }
    let element = name_of(&ELEMENTS, bytes[2]).unwrap_or("records");
    let mut call = CollectiveCall::new(
        name_of(&OPERATIONS, bytes[0]).unwrap_or("another operation"),
        element,
        number(8),
    );
    call.reduction = name_of(&REDUCTIONS, bytes[1]);
    call.root = (number(16) != usize::MAX).then(|| number(16));
    call
}

/// Bytes that a rank gives to all others.
struct Exchange<'a, B: Backend> {
    own: &'a OwnCalls<'a, B>,
    bytes: Vec<u8>,
    stream: Stream<B>,
    all: DeviceArray<u8, Ix1, B>,
    calls: [Prepared<'static, B>; 1],
}

/// Compares the bytes of this rank with those of all ranks, in their order.
type Compare<'a, B> = fn(&OwnCalls<'a, B>, own: &[u8], all: &[u8]) -> Option<CollectiveCause>;

/// Compares what the ranks are about to call, and waits for that. The caller holds the locks of the links.
pub(super) fn agree<'a, B: Backend>(parts: &'a [OwnCalls<'a, B>], turns: &mut Turns<'_, B>) -> Result<()> {
    let checked = || parts.iter().filter(|own| own.link.options.check);
    let given = checked().filter_map(|own| Some((own, fingerprint(own.calls)?.to_vec()))).collect();
    exchange(given, turns, |_, own, all| same_calls(own, all))?;
    // All ranks call the same operations: so these have blocks of different lengths on all of them, or on none.
    let given = checked().map(|own| (own, blocks(own.calls))).filter(|(_, blocks)| !blocks.is_empty());
    exchange(given.collect(), turns, |own, _, all| same_blocks(own, all))
}

/// Gathers the bytes of all ranks on each, and compares them there.
fn exchange<'a, B: Backend>(
    given: Vec<(&'a OwnCalls<'a, B>, Vec<u8>)>,
    turns: &mut Turns<'_, B>,
    compare: Compare<'a, B>,
) -> Result<()> {
    let mut exchanges = Vec::with_capacity(given.len());
    for (own, bytes) in given {
        may_block(own.operation)?;
        // Not the caller's: its pending work would be waited for, and would fail the comparison.
        let stream = own.link.private_stream()?;
        let source = stream.to_device(&*bytes)?;
        let all = stream.to_device(&vec![0_u8; bytes.len() * own.link.size])?;
        let (source, destination) = (Place::of(&source).into_owned(), Place::of(&all).into_owned());
        let call = Call::new::<u8>(Kind::AllGather, bytes.len());
        let (source, destination) = (Some(source), Some(destination));
        let calls = [Prepared { call, source, destination, in_place: false, target: None }];
        exchanges.push(Exchange { own, bytes, stream, all, calls });
    }
    let together: Vec<OwnCalls<'_, B>> = exchanges
        .iter()
        .map(|Exchange { own, stream, calls, .. }| OwnCalls {
            link: own.link,
            stream,
            operation: own.operation,
            calls,
            counts: false,
        })
        .collect();
    if together.is_empty() {
        return Ok(());
    }
    // Together: one thread with several ranks would wait for itself.
    enqueue_locked(&together, turns)?;
    // Each rank notes its own failure, even if an earlier one has failed.
    let compared: Vec<Result<()>> = exchanges.iter().map(|exchange| exchange.finish(compare)).collect();
    compared.into_iter().collect()
}

/// The ranks whose fingerprints differ from this rank's.
fn same_calls(own: &[u8], all: &[u8]) -> Option<CollectiveCause> {
    let others = all.chunks_exact(BYTES).enumerate().filter(|(_, theirs)| *theirs != own);
    let theirs: Vec<_> = others.map(|(rank, theirs)| (rank, call_of(theirs))).collect();
    (!theirs.is_empty()).then(|| CollectiveCause::Mismatch { mine: call_of(own), theirs })
}

/// Bytes to each rank and from each, for each operation with blocks of different lengths.
fn blocks(calls: &[Prepared<'_, impl Backend>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for prepared in calls {
        if let Kind::AllToAllV { send, receive } = &prepared.call.kind {
            bytes.extend(send.iter().chain(receive).flat_map(|length| (*length as u64).to_le_bytes()));
        }
    }
    bytes
}

/// The ranks that send each other more or less than the other one receives. All ranks find the same.
fn same_blocks<B: Backend>(own: &OwnCalls<'_, B>, all: &[u8]) -> Option<CollectiveCause> {
    let (ranks, rank) = (own.link.size, own.link.rank);
    let numbers: Vec<u64> = all.as_chunks::<8>().0.iter().map(|eight| u64::from_le_bytes(*eight)).collect();
    // All ranks give as many: the calls were compared before.
    let of_rank = numbers.len() / ranks;
    for call in (0..of_rank).step_by(2 * ranks) {
        let sent = |from: usize, to: usize| numbers[from * of_rank + call + to];
        let received = |at: usize, from: usize| numbers[at * of_rank + call + ranks + from];
        let differ = |one: usize, other: usize| {
            sent(one, other) != received(other, one) || sent(other, one) != received(one, other)
        };
        let mut others: Vec<usize> = (0..ranks).filter(|other| differ(rank, *other)).collect();
        if others.is_empty() {
            // A rank without a part in it is told of all.
            others = (0..ranks).filter(|one| (0..ranks).any(|other| differ(*one, other))).collect();
        }
        if !others.is_empty() {
            let bytes = |rank: usize| (0..ranks).map(|to| sent(rank, to)).sum::<u64>() as usize;
            let called = |rank: usize| CollectiveCall::new("all_to_all_v", "bytes", bytes(rank));
            let theirs = others.into_iter().map(|other| (other, called(other))).collect();
            return Some(CollectiveCause::Mismatch { mine: called(rank), theirs });
        }
    }
    None
}

impl<'a, B: Backend> Exchange<'a, B> {
    fn finish(&self, compare: Compare<'a, B>) -> Result<()> {
        let OwnCalls { link, operation, .. } = *self.own;
        let read = self.all.copy_to_host();
        // After the copy, which waits for other ranks: the watchdog needs this lock to give up on them.
        let mut state = link.lock();
        let sequence = state.rank.sequence;
        let all = match (read, state.rank.revoked.clone()) {
            (Ok(all), None) => all.to_vec(),
            (_, Some(cause)) => return Err(link.error(operation, sequence, cause)),
            (Err(error), None) => return Err(error.in_operation(operation)),
        };
        let Some(cause) = compare(self.own, &self.bytes, &all) else { return Ok(()) };
        for prepared in self.own.calls {
            state.rank.begin(prepared.call.fingerprint(Vec::new()));
        }
        let end = state.rank.sequence;
        let failed = state.rank.fail(operation, sequence..end, cause);
        Err(link.device.core_by(crate::KEY).error(operation, failed))
    }
}

impl<B: Backend> Link<B> {
    /// A stream that only exchanges of fingerprints use.
    fn private_stream(&self) -> Result<Stream<B>> {
        let mut stream = self.private.lock().unwrap_or_else(PoisonError::into_inner);
        if stream.is_none() {
            *stream = Some(self.device.stream()?);
        }
        // A stream is made above.
        stream.clone().map_or_else(|| self.device.stream(), Ok)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Average, Sum};

    #[test]
    fn a_fingerprint_tells_what_was_called() {
        let call = Call::new::<f32>(Kind::Reduce { root: 3 }, 77).computing::<f32, Average>();
        let mut bytes = [0; BYTES];
        bytes[..24].copy_from_slice(&one(&call));
        bytes[24] = 1;
        assert_eq!(call_of(&bytes), call.fingerprint(Vec::new()));
        bytes[24] = 2;
        assert_eq!(call_of(&bytes).operation, "group");
        assert_ne!(one(&call), one(&Call::new::<f32>(Kind::Reduce { root: 3 }, 77).computing::<f32, Sum>()));
        assert_ne!(
            one(&call),
            one(&Call::new::<f32>(Kind::Reduce { root: 2 }, 77).computing::<f32, Average>())
        );
        assert_ne!(one(&Call::new::<f32>(Kind::AllGather, 1)), one(&Call::new::<u32>(Kind::AllGather, 1)));
    }
}
