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
    // Streams order the work of one rank; nothing orders two ranks of one operation.
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
    if one.element != other.element
        || (mine.reduction, mine.root) != (theirs.reduction, theirs.root)
        || orders_differ(&mine.order, &theirs.order)
    {
        return true;
    }
    match (&one.kind, &other.kind) {
        (Kind::AllToAllV { send, receive }, Kind::AllToAllV { send: their_send, receive: their_receive }) => {
            send.get(right) != their_receive.get(left) || receive.get(right) != their_send.get(left)
        }
        (Kind::Send { .. }, Kind::Receive { .. }) | (Kind::Receive { .. }, Kind::Send { .. }) => {
            mine.count != theirs.count
        }
        _ => mine.operation != theirs.operation || mine.count != theirs.count,
    }
}

/// Whether two ranks had called different numbers of operations of a communicator that both belong to.
fn orders_differ(mine: &[(u64, u64)], theirs: &[(u64, u64)]) -> bool {
    mine.iter().any(|(communicator, calls)| {
        theirs.iter().any(|(other, their_calls)| other == communicator && their_calls != calls)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Max, Sum, call::Call, span::Span};

    fn called(call: &Call, order: &[(u64, u64)]) -> Called {
        Called::new(call.fingerprint(order.to_vec()), call.kind.clone(), call.element)
    }

    /// The ranks that each rank is told of; nothing if all agree.
    fn told(calls: &[(Call, &[(u64, u64)])]) -> Vec<Vec<usize>> {
        let ranks: Vec<usize> = (0..calls.len()).map(|seat| 10 + seat).collect();
        let all: Vec<Called> = calls.iter().map(|(call, order)| called(call, order)).collect();
        let Some(verdict) = disagreement(&ranks, &all) else { return Vec::new() };
        let theirs = |seat| match verdict.of(seat) {
            CollectiveCause::Mismatch { mine, theirs } => {
                assert_eq!(mine, all[seat].call);
                theirs.into_iter().map(|(rank, _)| rank).collect()
            }
            other => panic!("{other}"),
        };
        (0..calls.len()).map(theirs).collect()
    }

    fn sum(count: usize) -> Call {
        Call::new::<u8>(Kind::AllReduce, count).computing::<u8, Sum>()
    }

    #[test]
    fn what_differs_is_told_to_both_sides() {
        let same: &[(u64, u64)] = &[(1, 4), (2, 5)];
        assert_eq!(told(&[(sum(3), same), (sum(3), same)]), [[0; 0]; 0]);
        let rooted = |root| Call::new::<u8>(Kind::Reduce { root }, 3).computing::<u8, Sum>();
        let pair = |send: bool, count| {
            let kind = if send { Kind::Send { to: 1 } } else { Kind::Receive { from: 0 } };
            Call::new::<u8>(kind, count)
        };
        let differing = [
            (sum(3), sum(4)),
            (sum(3), Call::new::<u8>(Kind::AllReduce, 3).computing::<u8, Max>()),
            (sum(3), Call::new::<i8>(Kind::AllReduce, 3).computing::<i8, Sum>()),
            (Call::new::<u8>(Kind::AllGather, 3), Call::new::<u8>(Kind::AllToAll, 3)),
            (rooted(0), rooted(1)),
            (pair(true, 3), pair(false, 4)),
            (pair(false, 3), pair(true, 4)),
            (Call::new::<u8>(Kind::Barrier, 0), Call::new::<u8>(Kind::AllGather, 0)),
        ];
        for (mine, theirs) in differing {
            assert_eq!(
                told(&[(mine.clone(), &[]), (theirs.clone(), &[])]),
                [[11], [10]],
                "{mine:?}, {theirs:?}"
            );
            assert_eq!(told(&[(mine.clone(), &[]), (mine, &[])]).len(), 0);
        }
        assert_eq!(told(&[(pair(true, 3), &[]), (pair(false, 3), &[])]), [[0; 0]; 0]);
        // A third rank with the second one's call, and one whose order is another's.
        assert_eq!(told(&[(sum(3), &[]), (sum(4), &[]), (sum(4), &[])]), [vec![11, 12], vec![10], vec![10]]);
        assert_eq!(told(&[(sum(3), same), (sum(3), &[(1, 4), (2, 6)])]), [[11], [10]]);
        assert_eq!(told(&[(sum(3), same), (sum(3), &[(2, 5), (3, 9)])]), [[0; 0]; 0], "what both belong to");
    }

    #[test]
    fn a_block_that_two_ranks_see_differently_is_told_to_all() {
        let rows = |send: [usize; 3], receive: [usize; 3]| {
            let kind = Kind::AllToAllV { send: send.into(), receive: receive.into() };
            (Call::new::<u8>(kind, 0), &[][..])
        };
        let of = |sent, received, own| {
            told(&[rows([own, sent, 1], [2, 3, 1]), rows([3, 1, 1], [received, 1, 1]), rows([1; 3], [1; 3])])
        };
        let ordered = |calls| {
            let order: &[(u64, u64)] = if calls == 0 { &[(1, 0)] } else { &[(1, 1)] };
            (Call::new::<u8>(Kind::AllToAllV { send: vec![1; 2], receive: vec![1; 2] }, 0), order)
        };
        assert_eq!(told(&[ordered(0), ordered(0)]), [[0; 0]; 0]);
        assert_eq!(told(&[ordered(0), ordered(1)]), [[11], [10]], "in another order");
        assert_eq!(of(4, 4, 2), [[0; 0]; 0]);
        assert_eq!(of(5, 4, 2), [vec![11], vec![10], vec![10, 11]]);
        assert_eq!(of(4, 5, 2), [vec![11], vec![10], vec![10, 11]]);
        assert_eq!(of(4, 4, 1), [[10]; 3], "a rank differs from itself");
    }

    #[test]
    fn calls_that_agree_are_planned_unless_they_share_memory() {
        let mut memory = [0; 4];
        // SAFETY: the bytes are there.
        let all = unsafe { Span::new(memory.as_mut_ptr().expose_provenance(), memory.len()) };
        let part = |at: [usize; 2]| {
            let [source, destination] = at.map(|at| all.part(at, 1).unwrap());
            let call = sum(1);
            (called(&call, &[]), Part { call, source, destination })
        };
        assert_eq!(agreed(&[5, 6], vec![part([0, 1]), part([2, 3])]).map(|moves| moves.len()).ok(), Some(1));
        let shared = agreed(&[5, 6], vec![part([0, 1]), part([1, 3])]).err().unwrap().of(0);
        assert!(matches!(shared, CollectiveCause::Overlap { writer: 5, user: 6 }), "{shared}");
        let mut short = part([2, 3]);
        short.1.source = Span::default();
        let lost = agreed(&[5, 6], vec![part([0, 1]), short]).err().unwrap().of(0);
        assert!(matches!(lost, CollectiveCause::PeerLost { rank: 6, .. }), "{lost}");
    }
}
