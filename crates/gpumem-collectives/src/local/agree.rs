//! Compares what the ranks called.

use super::{
    meeting::Verdict,
    part::{Move, Part, overlap, plan},
};
use crate::call::{ElementId, Kind};
use gpumem_core::{CollectiveCall, CollectiveCause};

/// What one rank called.
#[derive(Debug, Clone)]
pub(crate) struct Called {
    pub(crate) call: CollectiveCall,
    pub(crate) kind: Kind,
    pub(crate) element: ElementId,
}

impl Called {
    pub(crate) fn new(call: CollectiveCall, kind: Kind, element: ElementId) -> Self {
        Self { call, kind, element }
    }
}

/// The calls of all seats with their bytes, if they fit together: the steps of the operation.
///
/// # Errors
/// Returns why they do not. Then nothing is moved.
pub(crate) fn agreed(ranks: &[usize], all: Vec<(Called, Part)>) -> Result<Vec<Move>, Verdict> {
    let (called, parts): (Vec<Called>, Vec<Part>) = all.into_iter().unzip();
    if let Some(verdict) = disagreement(ranks, &called) {
        return Err(verdict);
    }
    if let Some((writer, user)) = overlap(&parts) {
        let (writer, user) = (ranks[writer], ranks[user]);
        return Err(Verdict::One(CollectiveCause::Overlap { writer, user }));
    }
    plan(&parts).map_err(|seat| {
        let rank = ranks.get(seat).copied().unwrap_or(seat);
        let why = "its array does not have the bytes of the operation that it called".to_owned();
        Verdict::One(CollectiveCause::PeerLost { rank, why })
    })
}

/// Tells why the calls do not fit together, if they do not. `ranks` has the rank of each seat.
pub(crate) fn disagreement(ranks: &[usize], all: &[Called]) -> Option<Verdict> {
    let differing =
        |seat: usize| -> Vec<usize> { (0..all.len()).filter(|other| differ((seat, *other), all)).collect() };
    let differing: Vec<Vec<usize>> = (0..all.len()).map(differing).collect();
    if differing.iter().all(Vec::is_empty) {
        return None;
    }
    // A rank that agrees with every other one, as two others disagree about a block between them, is told of both.
    let any: Vec<usize> = (0..all.len()).filter(|seat| !differing[*seat].is_empty()).collect();
    let causes = differing.iter().enumerate().map(|(seat, theirs)| {
        let theirs = if theirs.is_empty() { &any } else { theirs };
        let theirs = theirs.iter().map(|other| (ranks[*other], all[*other].call.clone())).collect();
        CollectiveCause::Mismatch { mine: all[seat].call.clone(), theirs }
    });
    Some(Verdict::Each(causes.collect()))
}

/// Whether the calls of two seats do not fit together. A seat fits itself, unless what it sends to itself is not what it
/// receives from itself.
fn differ((left, right): (usize, usize), all: &[Called]) -> bool {
    let (one, other) = (&all[left], &all[right]);
    let (mine, theirs) = (&one.call, &other.call);
    if one.element != other.element || (mine.reduction, mine.root) != (theirs.reduction, theirs.root) {
        return true;
    }
    match (&one.kind, &other.kind) {
        (Kind::AllToAllV { send, receive }, Kind::AllToAllV { send: their_send, receive: their_receive }) => {
            send.get(right) != their_receive.get(left) || receive.get(right) != their_send.get(left)
        }
        (Kind::Send { .. }, Kind::Receive { .. }) | (Kind::Receive { .. }, Kind::Send { .. }) => {
            mine.count != theirs.count
        }
        _ => {
            mine.operation != theirs.operation
                || mine.count != theirs.count
                || orders_differ(&mine.order, &theirs.order)
        }
    }
}

/// Whether two ranks had called different numbers of operations of a communicator that both belong to.
fn orders_differ(mine: &[(u64, u64)], theirs: &[(u64, u64)]) -> bool {
    mine.iter().any(|(communicator, calls)| {
        theirs.iter().any(|(other, their_calls)| other == communicator && their_calls != calls)
    })
}
