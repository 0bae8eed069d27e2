//! Which ranks have called what does not fit.
//!
//! The work and the memory are in proportion to what the ranks say: an operation may have thousands of ranks.

use super::{Fingerprint, Identity};
use gpumem_core::{CollectiveCall, CollectiveCause};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Most ranks that the failure of a rank names.
const NAMED: usize = 16;

/// The calls of an operation that do not fit together.
#[derive(Debug)]
pub(crate) struct Disagreement {
    /// The rank of each slot, and what it called.
    calls: Vec<(usize, CollectiveCall)>,
    /// The slots that each slot is told of.
    told: Vec<Vec<usize>>,
}

impl Disagreement {
    /// Why the operation fails, for a slot: a rank that calls something else is named, or sixteen of them. The calls are copied
    /// only here, for each slot its own few.
    pub(crate) fn of(&self, slot: usize) -> CollectiveCause {
        let (Some((_, mine)), Some(told)) = (self.calls.get(slot), self.told.get(slot)) else {
            let why = "it has no part in the operation".to_owned();
            return CollectiveCause::PeerLost { rank: slot, why };
        };
        let theirs = told.iter().filter_map(|other| self.calls.get(*other)).cloned().collect();
        CollectiveCause::Mismatch { mine: Box::new(mine.clone()), theirs }
    }
}

/// As [`disagreement`], of bytes that ranks of a communicator of `size` ranks have said, for one slot. A rank that cannot take part
/// is told to all.
pub(crate) fn disagreement_of_bytes(
    ranks: &[usize],
    said: &[&[u8]],
    size: usize,
    slot: usize,
) -> Option<CollectiveCause> {
    let mut all = Vec::with_capacity(said.len());
    for (rank, said) in ranks.iter().zip(said) {
        let lost = |why: String| Some(CollectiveCause::PeerLost { rank: *rank, why });
        match Fingerprint::from_bytes(said, size) {
            None => return lost("it uses another version of gpumem".to_owned()),
            Some(Fingerprint { lost: Some(why), .. }) => return lost(why),
            Some(fingerprint) => all.push(fingerprint),
        }
    }
    Some(disagreement(ranks, &all)?.of(slot))
}

/// Returns which calls do not fit together, if there are any. `ranks` has the rank of each slot.
pub(crate) fn disagreement(ranks: &[usize], all: &[Fingerprint]) -> Option<Disagreement> {
    let first = all.first()?;
    // As in nearly all operations: then nothing is sorted.
    if all.iter().all(|one| first.is_same(one)) {
        return None;
    }
    let compared = Compared::new(all);
    let mut told: Vec<Vec<usize>> = (0..all.len()).map(|slot| compared.differing(slot)).collect();
    // A rank that agrees with every other one, as two others disagree about a block between them, is told of both.
    let slots = told.iter().enumerate().filter(|(_, theirs)| !theirs.is_empty());
    let any: Vec<usize> = slots.map(|(slot, _)| slot).take(NAMED).collect();
    if any.is_empty() {
        return None;
    }
    told.iter_mut().filter(|theirs| theirs.is_empty()).for_each(|theirs| theirs.clone_from(&any));
    let calls = ranks.iter().zip(all).map(|(rank, of)| (*rank, of.call.clone())).collect();
    Some(Disagreement { calls, told })
}

impl Fingerprint {
    /// Whether a call fits this one, and is told of in the same words, but for sends and receives. `false` where they have blocks.
    pub(crate) fn is_same(&self, one: &Self) -> bool {
        one.blocks.is_none() && one.call.order == self.call.order && Key::of(one) == Key::of(self)
    }
}

/// What has to be equal on all ranks.
#[derive(PartialEq, Eq, Hash)]
struct Key<'a> {
    operation: &'a str,
    element: (Identity, usize, &'a str),
    reduction: Option<&'a str>,
    root: Option<usize>,
    /// `None` where the ranks give each other blocks of different lengths.
    count: Option<usize>,
}

impl<'a> Key<'a> {
    fn of(one: &'a Fingerprint) -> Self {
        let (call, (identity, bytes)) = (&one.call, one.element);
        Self {
            // A receive fits a send.
            operation: if call.operation == "receive" { "send" } else { call.operation },
            element: (identity, bytes, &call.element),
            reduction: call.reduction,
            root: call.root,
            count: one.blocks.is_none().then_some(call.count),
        }
    }
}

/// The calls of all slots, by what is compared.
struct Compared<'a> {
    all: &'a [Fingerprint],
    /// The slots with equal calls.
    groups: Vec<Vec<usize>>,
    /// The group of each slot.
    group_of: Vec<usize>,
    /// For each communicator, the slots by how many operations of it their ranks had called.
    orders: BTreeMap<u64, BTreeMap<u64, Vec<usize>>>,
}

impl<'a> Compared<'a> {
    fn new(all: &'a [Fingerprint]) -> Self {
        let (mut groups, mut orders) =
            (Vec::<Vec<usize>>::new(), BTreeMap::<_, BTreeMap<_, Vec<usize>>>::new());
        let (mut numbers, mut group_of) = (HashMap::new(), Vec::with_capacity(all.len()));
        for (slot, one) in all.iter().enumerate() {
            let group = *numbers.entry(Key::of(one)).or_insert(groups.len());
            match groups.get_mut(group) {
                Some(group) => group.push(slot),
                None => groups.push(vec![slot]),
            }
            group_of.push(group);
            for (communicator, calls) in &one.call.order {
                orders.entry(*communicator).or_default().entry(*calls).or_default().push(slot);
            }
        }
        Self { all, groups, group_of, orders }
    }

    /// Slots whose calls do not fit that of a slot, if there are any: one for each other call, then more of them, but not too many.
    fn differing(&self, slot: usize) -> Vec<usize> {
        let Some((own, group)) = self.all.get(slot).zip(self.group_of.get(slot).copied()) else {
            return Vec::new();
        };
        let others = || self.groups.iter().enumerate().filter(|(at, _)| *at != group).map(|(_, slots)| slots);
        let firsts = others().filter_map(|slots| slots.first());
        let more = others().take(NAMED).flat_map(|slots| slots.iter().skip(1));
        // Ranks that had called different numbers of operations of a communicator that both belong to.
        let by_order = own.call.order.iter().flat_map(|(communicator, calls)| {
            let counts = self.orders.get(communicator).into_iter().flatten();
            counts.filter(move |(theirs, _)| *theirs != calls).flat_map(|(_, slots)| slots)
        });
        // A slot fits itself, unless what it sends to itself is not what it receives from itself.
        let equal = self.groups.get(group).filter(|_| own.blocks.is_some());
        let by_block = equal.into_iter().flatten().filter(|other| self.blocks_differ(slot, **other));
        let mut found = BTreeSet::new();
        for other in firsts.chain(more).chain(by_order).chain(by_block) {
            if found.len() == NAMED {
                break;
            }
            found.insert(*other);
        }
        found.into_iter().collect()
    }

    /// Whether two slots see the blocks between them differently.
    fn blocks_differ(&self, left: usize, right: usize) -> bool {
        let blocks = |slot: usize| self.all.get(slot).and_then(|one| one.blocks.as_ref());
        match (blocks(left), blocks(right)) {
            (Some((send, receive)), Some((their_send, their_receive))) => {
                send.get(right) != their_receive.get(left) || receive.get(right) != their_send.get(left)
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Max, Sum,
        call::{Call, Kind},
    };
    use proptest::prelude::*;
    use std::iter;

    /// Whether the calls of two slots do not fit together, compared one by one.
    fn differ((left, right): (usize, usize), all: &[Fingerprint]) -> bool {
        let (one, other) = (&all[left], &all[right]);
        let orders_differ = one
            .call
            .order
            .iter()
            .any(|(id, calls)| other.call.order.iter().any(|(of, theirs)| of == id && theirs != calls));
        orders_differ || Key::of(one) != Key::of(other) || Compared::new(all).blocks_differ(left, right)
    }

    fn call() -> impl Strategy<Value = Call> {
        prop_oneof![
            (0..3_usize).prop_map(|count| Call::new::<u8>(Kind::AllReduce, count).computing::<u8, _>(Sum)),
            Just(Call::new::<u8>(Kind::AllReduce, 1).computing::<u8, _>(Max)),
            Just(Call::new::<i8>(Kind::AllGather, 1)),
            (0..2_usize).prop_map(|root| Call::new::<u8>(Kind::Broadcast { root }, 1)),
            prop::collection::vec(0..2_usize, 8)
                .prop_map(|send| Call::new::<u8>(Kind::AllToAllV { send, receive: vec![1; 8] }, 0)),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(if cfg!(miri) { 8 } else { 256 }) })]
        #[test]
        fn every_slot_is_told_of_those_that_differ(
            said in prop::collection::vec((call(), prop::collection::vec((0..3_u64, 0..2_u64), 0..2)), 1..8),
            is_uniform: bool,
        ) {
            let first = said[0].0.clone();
            let of = |call: Call| if is_uniform { first.clone() } else { call };
            let all: Vec<Fingerprint> =
                said.into_iter().map(|(call, order)| Fingerprint::new(&of(call), order)).collect();
            let size = all.len();
            let differing = |slot| (0..size).filter(|other| differ((slot, *other), &all)).collect::<Vec<_>>();
            let any: Vec<usize> = (0..size).filter(|slot| !differing(*slot).is_empty()).collect();
            let ranks: Vec<usize> = (0..size).collect();
            match disagreement(&ranks, &all) {
                None => prop_assert!(any.is_empty()),
                Some(found) => {
                    for slot in 0..size {
                        let wanted = if differing(slot).is_empty() { any.clone() } else { differing(slot) };
                        prop_assert_eq!(&found.told[slot], &wanted);
                    }
                }
            }
        }
    }

    #[test]
    fn of_many_ranks_a_few_are_named_with_each_other_call() {
        let ranks: Vec<usize> = (0..if cfg!(miri) { 100 } else { 20_000 }).collect();
        let named = |count: fn(usize) -> usize, slot: usize| -> Vec<usize> {
            let call =
                |slot: &usize| Fingerprint::new(&Call::new::<u8>(Kind::AllGather, count(*slot)), Vec::new());
            let found = disagreement(&ranks, &ranks.iter().map(call).collect::<Vec<_>>());
            match found.unwrap().of(slot) {
                CollectiveCause::Mismatch { theirs, .. } => {
                    theirs.into_iter().map(|(rank, _)| rank).collect()
                }
                other => panic!("{other}"),
            }
        };
        assert_eq!(named(|slot| slot % 2, 0), (0..NAMED).map(|at| 2 * at + 1).collect::<Vec<_>>());
        assert_eq!(named(|slot| slot, 1), iter::once(0).chain(2..=NAMED).collect::<Vec<_>>());
        // The only one of its kind is among them.
        assert!(named(|slot| usize::from(slot >= 40) + usize::from(slot == 60), 0).contains(&60));
        assert_eq!(named(|slot| usize::from(slot == 50), 0), [50]);
    }

    #[test]
    fn a_slot_that_is_none_gets_a_failure_too() {
        let calls =
            [1, 2].map(|count| Fingerprint::new(&Call::new::<u8>(Kind::AllGather, count), Vec::new()));
        let found = disagreement(&[0, 1], &calls).unwrap();
        assert!(matches!(found.of(2), CollectiveCause::PeerLost { rank: 2, .. }));
    }
}
