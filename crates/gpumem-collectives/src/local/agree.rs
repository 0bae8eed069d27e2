//! What the ranks of an operation do, once all have called it.

use super::{
    part::{Move, Part, Queue, overlap, plan},
    pending::Verdict,
};
use crate::fingerprint::{Fingerprint, disagreement};
use gpumem_core::CollectiveCause;
use std::sync::Arc;

/// The calls of all slots with their bytes, if they fit together: the steps of the operation.
///
/// # Errors
/// Returns why they do not. Then nothing is moved.
pub(crate) fn agreed(ranks: &[usize], all: Vec<(Fingerprint, Part)>) -> Result<Vec<Move>, Verdict> {
    let (called, parts): (Vec<Fingerprint>, Vec<Part>) = all.into_iter().unzip();
    if let Some(found) = disagreement(ranks, &called) {
        return Err(Verdict::Each(Arc::new(found)));
    }
    let mut queues: Vec<_> = parts.iter().zip(ranks).map(|(part, rank)| (part.queue, *rank)).collect();
    queues.sort_unstable();
    let is_shared = |pair: &&[(Queue, usize)]| pair[0].0 == pair[1].0 && pair[0].1 != pair[1].1;
    if let Some([(_, other), (_, rank)]) = queues.windows(2).find(is_shared) {
        let why = format!(
            "its stream is that of rank {other}, and the work of one would wait for that of the other"
        );
        return Err(Verdict::One(CollectiveCause::PeerLost { rank: *rank, why }));
    }
    // Streams order the work of one rank; nothing orders two ranks of one operation.
    if let Some((writer, user)) = overlap(&parts) {
        let (writer, user) = (ranks[writer], ranks[user]);
        return Err(Verdict::One(CollectiveCause::Overlap { writer, user }));
    }
    plan(&parts).map_err(|slot| {
        let rank = ranks.get(slot).copied().unwrap_or(slot);
        let why = "its array does not have the bytes of the operation that it called".to_owned();
        Verdict::One(CollectiveCause::PeerLost { rank, why })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Sum,
        call::{Call, Kind},
        span::Span,
    };

    #[test]
    fn calls_that_agree_are_planned_unless_they_share_memory() {
        let mut memory = [0; 4];
        // SAFETY: the bytes are there.
        let all = unsafe { Span::new(memory.as_mut_ptr().expose_provenance(), memory.len()) };
        let part = |at: [usize; 2]| {
            let [source, destination] = at.map(|at| all.part(at, 1).unwrap());
            let call = Call::new::<u8>(Kind::AllReduce, 1).computing::<u8, _>(Sum);
            (
                Fingerprint::new(&call, Vec::new()),
                Part { call, queue: ("", 0, at[0] as u64), source, destination },
            )
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
