//! What a rank calls, as the ranks compare it before anything is moved: in one process, or as bytes.

mod disagreement;

pub(crate) use disagreement::{Disagreement, disagreement, disagreement_of_bytes};

use crate::{
    call::{Call, Kind},
    identity::stable_hash,
    reduction::REDUCTIONS,
};
use gpumem_core::CollectiveCall;
use std::any::TypeId;

/// Changes with the bytes.
const VERSION: u64 = 3;
/// Longest name of an element type, and longest reason. Longer ones are cut.
const LONGEST: usize = 160;
/// Most communicators whose order is compared across processes.
const ORDERS: usize = 8;
/// Bytes without the numbers for each rank.
const FIXED: usize = 576;
/// Numbers before those, and before the names.
const HEAD: usize = 10;
/// Bytes of a [`summary`](Fingerprint::summary): these numbers, and the options. Of every version, so that others can say which they are.
pub(crate) const SUMMARY: usize = 128;
const _: () = assert!(8 * HEAD < SUMMARY);

/// Two types may have one name, and elements of one type several. Within a process the types themselves are compared, and across processes the hash of the name,
/// which is cut there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Identity {
    Type(TypeId),
    Hash(u64),
}

/// What a rank calls, as far as all ranks have to agree.
#[derive(Debug, Clone)]
pub(crate) struct Fingerprint {
    pub(crate) call: CollectiveCall,
    /// The type of the elements, and the bytes of one.
    element: (Identity, usize),
    /// Bytes to each rank and from each rank, where these differ.
    blocks: Option<(Vec<usize>, Vec<usize>)>,
    /// Why the rank cannot take part, if it cannot.
    pub(crate) lost: Option<String>,
}

impl Fingerprint {
    pub(crate) fn new(call: &Call, order: Vec<(u64, u64)>) -> Self {
        let blocks = match &call.kind {
            Kind::AllToAllV { send, receive } => Some((send.clone(), receive.clone())),
            _ => None,
        };
        let element = (Identity::Type(call.element.id), call.element.bytes);
        let mut call = call.describe();
        call.order = order;
        Self { call, element, blocks, lost: None }
    }

    /// What is compared by its name, its count and a hash.
    pub(crate) fn of_name(call: CollectiveCall, hash: u64) -> Self {
        Self { call, element: (Identity::Hash(hash), 0), blocks: None, lost: None }
    }

    /// Operations that are called together, if there are any. Of several, only the number is told: the hash of all does not say
    /// which differ.
    pub(crate) fn of_group(calls: &[&Call]) -> Option<Self> {
        let [first, others @ ..] = calls else { return None };
        if others.is_empty() {
            return Some(Self::new(first, Vec::new()));
        }
        let hashed = calls.iter().flat_map(|call| Self::new(call, Vec::new()).common());
        Some(Self::of_name(CollectiveCall::new("group", "operations", calls.len()), stable_hash(hashed)))
    }

    /// What is equal on all ranks whose calls agree, as far as no rank has to be asked for more.
    fn common(mut self) -> Vec<u8> {
        self.call.order.clear();
        if self.blocks.take().is_some() {
            // Ranks send each other different numbers of rows.
            self.call.count = 0;
        }
        self.to_bytes(0)
    }

    /// What is equal on all ranks whose calls agree, and that also use the same options, in a few bytes: all but the name of the element,
    /// of which it has a hash. Never zeros alone.
    pub(crate) fn summary(&self, check: bool) -> [u8; SUMMARY] {
        let mut out = [0; SUMMARY];
        let mut common = self.clone().common();
        common.truncate(8 * HEAD);
        common.push(u8::from(check));
        out[..common.len()].copy_from_slice(&common);
        out
    }

    /// The same, as far as it concerns some of the ranks.
    pub(crate) fn among(&self, ranks: &[usize]) -> Self {
        let of = |blocks: &Vec<usize>| ranks.iter().filter_map(|rank| blocks.get(*rank).copied()).collect();
        let blocks = self.blocks.as_ref().map(|(send, receive)| (of(send), of(receive)));
        Self { blocks, ..self.clone() }
    }

    /// Whether the ranks have to compare numbers that differ.
    pub(crate) fn has_blocks(&self) -> bool {
        self.blocks.is_some()
    }

    /// The length of [`to_bytes`](Self::to_bytes), which is the same for every call.
    pub(crate) fn len(ranks: usize) -> usize {
        FIXED + 16 * ranks
    }

    pub(crate) fn to_bytes(&self, ranks: usize) -> Vec<u8> {
        let Self { call, element: (identity, bytes), blocks, lost } = self;
        // 0 stands for none.
        let number = |names: &[&str], name| {
            names.iter().position(|known| Some(*known) == name).map_or(0, |at| at as u64 + 1)
        };
        let hash = match identity {
            Identity::Type(_) => stable_hash(call.element.bytes()),
            Identity::Hash(hash) => *hash,
        };
        let order = call.order.iter().take(ORDERS);
        let head: [u64; HEAD] = [
            VERSION,
            number(&Kind::NAMES, Some(call.operation)),
            number(&REDUCTIONS, call.reduction),
            call.root.map_or(0, |root| root as u64 + 1),
            call.count as u64,
            hash,
            *bytes as u64,
            u64::from(blocks.is_some()),
            u64::from(lost.is_some()),
            order.len() as u64,
        ];
        let (to, from) = blocks.as_ref().map_or((&[][..], &[][..]), |(to, from)| (to, from));
        let blocks = to.iter().chain(from).map(|bytes| *bytes as u64);
        let mut out = Vec::with_capacity(Self::len(ranks));
        for number in head.into_iter().chain(order.flat_map(|(id, calls)| [*id, *calls])).chain(blocks) {
            out.extend_from_slice(&number.to_le_bytes());
        }
        put(&mut out, &call.element);
        put(&mut out, lost.as_deref().unwrap_or_default());
        out.resize(Self::len(ranks), 0);
        out
    }

    /// Reads what a rank says. `None` if it is of another version of the library.
    pub(crate) fn from_bytes(mut from: &[u8], ranks: usize) -> Option<Self> {
        let from = &mut from;
        let name = |names: &[&'static str], number: usize| Some(*names.get(number.checked_sub(1)?)?);
        let version = number(from)?;
        let (operation, reduction) = (number(from)?, number(from)?);
        let (root, count) = (number(from)?, number(from)?);
        let element = (Identity::Hash(number(from)? as u64), number(from)?);
        let (has_blocks, is_lost, orders) = (number(from)?, number(from)?, number(from)?);
        if version as u64 != VERSION || orders > ORDERS {
            return None;
        }
        let order =
            (0..orders).map(|_| Some((number(from)? as u64, number(from)? as u64))).collect::<Option<_>>()?;
        let mut block = || (0..ranks).map(|_| number(from)).collect::<Option<Vec<_>>>();
        let blocks = if has_blocks == 0 { None } else { Some((block()?, block()?)) };
        let mut call = CollectiveCall::new(name(&Kind::NAMES, operation)?, get(from)?, count);
        (call.reduction, call.root, call.order) = (name(&REDUCTIONS, reduction), root.checked_sub(1), order);
        let why = get(from)?;
        Some(Self { call, element, blocks, lost: (is_lost != 0).then_some(why) })
    }
}

/// The text without what is beyond so many bytes.
pub(crate) fn cut(text: &str, longest: usize) -> &str {
    let mut end = text.len().min(longest);
    // A text that is cut within a character is no text at the other end.
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// A text, with its length before it.
fn put(out: &mut Vec<u8>, text: &str) {
    let text = cut(text, LONGEST);
    out.extend_from_slice(&(text.len() as u64).to_le_bytes());
    out.extend_from_slice(text.as_bytes());
}

fn get(from: &mut &[u8]) -> Option<String> {
    let length = number(from)?;
    let (text, rest) = from.split_at_checked(length)?;
    *from = rest;
    String::from_utf8(text.to_vec()).ok()
}

fn number(from: &mut &[u8]) -> Option<usize> {
    let (bytes, rest) = from.split_first_chunk()?;
    *from = rest;
    usize::try_from(u64::from_le_bytes(*bytes)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Max, Sum};
    use gpumem_core::CollectiveCause;

    /// The ranks that each rank is told of; nothing if all agree.
    fn told(calls: &[(Call, &[(u64, u64)])]) -> Vec<Vec<usize>> {
        let ranks: Vec<usize> = (0..calls.len()).map(|slot| 10 + slot).collect();
        let all = calls.iter().map(|(call, order)| Fingerprint::new(call, order.to_vec()));
        let all: Vec<Fingerprint> = all.collect();
        let causes: Option<Vec<_>> =
            disagreement(&ranks, &all).map(|found| (0..calls.len()).map(|slot| found.of(slot)).collect());
        // The same between processes.
        let bytes: Vec<_> = all.iter().map(|one| one.to_bytes(calls.len())).collect();
        let bytes: Vec<&[u8]> = bytes.iter().map(|bytes| &**bytes).collect();
        for slot in 0..calls.len() {
            let told = disagreement_of_bytes(&ranks, &bytes, calls.len(), slot);
            assert_eq!(told, causes.as_ref().map(|causes| causes[slot].clone()));
        }
        let Some(causes) = causes else { return Vec::new() };
        let theirs = |slot: usize| match causes[slot].clone() {
            CollectiveCause::Mismatch { mine, theirs } => {
                assert_eq!(*mine, all[slot].call);
                theirs.into_iter().map(|(rank, _)| rank).collect()
            }
            other => panic!("{other}"),
        };
        (0..calls.len()).map(theirs).collect()
    }

    fn sum(count: usize) -> Call {
        Call::new::<u8>(Kind::AllReduce, count).computing::<u8, _>(Sum)
    }

    #[test]
    fn what_differs_is_told_to_both_sides() {
        let same: &[(u64, u64)] = &[(1, 4), (2, 5)];
        assert_eq!(told(&[(sum(3), same), (sum(3), same)]), [[0; 0]; 0]);
        let rooted = |root| Call::new::<u8>(Kind::Reduce { root }, 3).computing::<u8, _>(Sum);
        let pair = |send: bool, count| {
            let kind = if send { Kind::Send { to: 1 } } else { Kind::Receive { from: 0 } };
            Call::new::<u8>(kind, count)
        };
        let differing = [
            (sum(3), sum(4)),
            (sum(3), Call::new::<u8>(Kind::AllReduce, 3).computing::<u8, _>(Max)),
            (sum(3), Call::new::<i8>(Kind::AllReduce, 3).computing::<i8, _>(Sum)),
            (Call::new::<u8>(Kind::AllGather, 3), Call::new::<u8>(Kind::AllToAll, 3)),
            (rooted(0), rooted(1)),
            (pair(true, 3), pair(false, 4)),
            (pair(true, 3), Call { element_name: Some("V1".into()), ..pair(false, 3) }),
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
    fn several_operations_are_compared_by_a_hash() {
        let rows = |send: [usize; 2]| {
            let kind = Kind::AllToAllV { send: send.into(), receive: vec![1; 2] };
            Call::new::<u8>(kind, send.iter().sum())
        };
        let of = |calls: &[&Call]| Fingerprint::of_group(calls).unwrap();
        let agree = |one, other| disagreement(&[0, 1], &[one, other]).is_none();
        let (one, two) = (sum(1), sum(2));
        assert!(
            Fingerprint::of_group(&[]).is_none() && agree(of(&[&one]), Fingerprint::new(&one, Vec::new()))
        );
        assert!(agree(of(&[&one, &two]), of(&[&one, &two])));
        assert!(!agree(of(&[&one, &two]), of(&[&two, &one])));
        assert!(!agree(of(&[&one, &two]), of(&[&one, &two, &two])));
        assert!(agree(of(&[&one, &rows([1, 1])]), of(&[&one, &rows([2, 1])])), "blocks are compared apart");
        assert_eq!(of(&[&one, &two]).call.to_string(), "group of 2 operations");
    }

    #[test]
    fn calls_are_read_as_they_were_written() {
        let blocks = Kind::AllToAllV { send: vec![4, 8], receive: vec![8, 0] };
        let said = Fingerprint::new(&Call::new::<f32>(blocks, 12), vec![(7, 1), (8, 2)]);
        let read = Fingerprint::from_bytes(&said.to_bytes(2), 2).unwrap();
        assert_eq!((&read.call, &read.blocks, &read.lost), (&said.call, &said.blocks, &None));
        assert_eq!(read.element, (Identity::Hash(stable_hash(*b"f32")), 4));
        let long = "ä".repeat(300);
        for root in [0, 1] {
            let call = Call::new::<u8>(Kind::Reduce { root }, 3).computing::<u8, _>(Sum);
            let said = Fingerprint { lost: Some(long.clone()), ..Fingerprint::new(&call, Vec::new()) };
            let read = Fingerprint::from_bytes(&said.to_bytes(2), 2).unwrap();
            assert_eq!((read.call, read.lost.as_deref()), (call.describe(), Some(&*"ä".repeat(80))));
        }
        let bytes: [&[u8]; 2] = [&said.to_bytes(2), &said.to_bytes(2)[..20]];
        let why = disagreement_of_bytes(&[5, 6], &bytes, 2, 0).unwrap();
        assert_eq!(why.to_string(), "rank 6 did not take part: it uses another version of gpumem");
    }

    #[test]
    fn the_longest_call_is_read_as_far_as_it_is_told() {
        let ranks = 50;
        let blocks = Kind::AllToAllV { send: (0..ranks).collect(), receive: (ranks..2 * ranks).collect() };
        let mut call = Call::new::<f32>(blocks, 12);
        call.element_name = Some("ab".repeat(200).into());
        let said = Fingerprint {
            lost: Some(format!("x{}", "ä".repeat(300))),
            ..Fingerprint::new(&call, (0..ORDERS as u64).map(|id| (id, 2 * id)).collect())
        };
        let mut bytes = said.to_bytes(ranks);
        assert!(bytes.len() == Fingerprint::len(ranks) && bytes.len() < 30 * ranks, "{}", bytes.len());
        let read = Fingerprint::from_bytes(&bytes, ranks).unwrap();
        assert_eq!((&read.blocks, &read.call.order), (&said.blocks, &said.call.order));
        assert_eq!(read.call.element, "ab".repeat(80));
        // A text is cut between two characters.
        assert_eq!(read.lost, Some(format!("x{}", "ä".repeat(79))));
        // One communicator more than there can be.
        bytes[8 * (HEAD - 1)] += 1;
        assert!(Fingerprint::from_bytes(&bytes, ranks).is_none());
    }

    /// Two structures of one function have one name. Processes know the types by nothing else.
    #[test]
    fn elements_of_one_name_and_of_two_sizes_differ_between_processes() {
        let of = |bytes| {
            let mut said = Fingerprint::new(&Call::new::<u8>(Kind::AllGather, 3), Vec::new());
            said.element.1 = bytes;
            said
        };
        let (wide, narrow) = (of(8), of(1));
        let said = [wide.to_bytes(2), narrow.to_bytes(2)];
        let told =
            |one: usize, other: usize| disagreement_of_bytes(&[0, 1], &[&said[one], &said[other]], 2, 0);
        assert!(matches!(told(0, 1), Some(CollectiveCause::Mismatch { .. })), "{:?}", told(0, 1));
        assert_eq!(told(0, 0), None);
        assert_ne!(wide.summary(false), narrow.summary(false));
    }

    #[test]
    fn bytes_of_another_version_are_refused() {
        let mut bytes = Fingerprint::new(&sum(1), Vec::new()).to_bytes(2);
        for wrong in [&[], &[0xff; 64][..], &bytes[..20]] {
            assert!(Fingerprint::from_bytes(wrong, 2).is_none());
        }
        bytes[0] += 1;
        assert!(Fingerprint::from_bytes(&bytes, 2).is_none());
    }
}
