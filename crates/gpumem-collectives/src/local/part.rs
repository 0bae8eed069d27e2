//! Moves and combines the bytes of all ranks of an operation.

use crate::{
    call::{Call, Kind},
    reduction::Reduce,
    span::{CopySpans, Span},
};

/// What tells the queue of a stream from every other one: the backend, the device and the driver's handle.
pub(crate) type Queue = (&'static str, usize, u64);

/// The part of one rank.
#[derive(Debug, Clone)]
pub(crate) struct Part {
    pub(crate) call: Call,
    /// The queue of the rank's stream: that of no other stream, unless both are one of the driver's.
    pub(crate) queue: Queue,
    pub(crate) source: Span,
    pub(crate) destination: Span,
}

impl Part {
    /// One block of the source for each of `ranks`.
    fn source_blocks(&self, ranks: usize) -> Option<Vec<Span>> {
        self.source.blocks(ranks).filter(|blocks| blocks.iter().all(|block| block.len() == self.call.bytes()))
    }

    /// One block of the destination for each of `ranks`.
    fn destination_blocks(&self, ranks: usize) -> Option<Vec<Span>> {
        let blocks = self.destination.blocks(ranks);
        blocks.filter(|blocks| blocks.iter().all(|block| block.len() == self.call.bytes()))
    }

    /// What an exchange sends to each of `ranks`.
    fn sent(&self, ranks: usize) -> Option<Vec<Span>> {
        match &self.call.kind {
            Kind::AllToAllV { send, .. } => parts_of(self.source, send, ranks),
            _ => self.source_blocks(ranks),
        }
    }

    /// What an exchange receives from each of `ranks`.
    fn received(&self, ranks: usize) -> Option<Vec<Span>> {
        match &self.call.kind {
            Kind::AllToAllV { receive, .. } => parts_of(self.destination, receive, ranks),
            _ => self.destination_blocks(ranks),
        }
    }
}

/// The parts of a span that have these lengths, one for each of `ranks`.
fn parts_of(span: Span, lengths: &[usize], ranks: usize) -> Option<Vec<Span>> {
    span.cut(lengths.iter().copied()).filter(|parts| parts.len() == ranks)
}

/// Finds a rank that writes memory that another one uses: `(writer, user)`.
pub(crate) fn overlap(parts: &[Part]) -> Option<(usize, usize)> {
    let users = |part: &Part| [part.source, part.destination];
    let mut all: Vec<(Span, usize, bool)> = Vec::with_capacity(2 * parts.len());
    for (slot, part) in parts.iter().enumerate() {
        all.extend(users(part).into_iter().zip([false, true]).map(|(span, write)| (span, slot, write)));
    }
    all.retain(|(span, ..)| !span.is_empty());
    // By address: each is compared with those alone that begin within it.
    all.sort_by_key(|(span, ..)| span.address());
    let mut rest = &all[..];
    while let Some(((span, slot, write), after)) = rest.split_first() {
        rest = after;
        for (_, other, other_writes) in after.iter().take_while(|(other, ..)| span.overlaps(*other)) {
            if other != slot && (*write || *other_writes) {
                return Some(if *write { (*slot, *other) } else { (*other, *slot) });
            }
        }
    }
    None
}

/// A step of an operation. Its spans have one length.
#[derive(Debug)]
pub(crate) enum Move {
    Copy(CopySpans),
    Combine { function: Reduce, sources: Vec<Span>, destinations: Vec<Span> },
}

/// Plans the steps of an operation that all ranks have called. `Err` names a slot whose bytes are not those of its call:
/// then nothing is moved.
pub(crate) fn plan(parts: &[Part]) -> Result<Vec<Move>, usize> {
    let Some(Part { call, .. }) = parts.first() else { return Ok(Vec::new()) };
    match call.kind {
        Kind::AllReduce | Kind::Reduce { .. } | Kind::ReduceScatter => plan_reductions(call, parts),
        _ => plan_copies(call, parts),
    }
}

fn plan_reductions(call: &Call, parts: &[Part]) -> Result<Vec<Move>, usize> {
    let mut moves = Vec::new();
    match &call.kind {
        Kind::Reduce { root } => {
            let destination = parts.get(*root).ok_or(*root)?.destination;
            moves.extend(combine(call, whole_sources(parts)?, (*root, vec![destination]))?);
        }
        Kind::ReduceScatter => {
            let sources = each(parts, |part| part.source_blocks(parts.len()))?;
            for (rank, part) in parts.iter().enumerate() {
                let blocks = sources.iter().map(|blocks| blocks[rank]).collect();
                moves.extend(combine(call, blocks, (rank, vec![part.destination]))?);
            }
        }
        _ => {
            let destinations: Vec<Span> = parts.iter().map(|part| part.destination).collect();
            moves.extend(combine(call, whole_sources(parts)?, (0, destinations))?);
        }
    }
    Ok(moves)
}

fn plan_copies(call: &Call, parts: &[Part]) -> Result<Vec<Move>, usize> {
    let ranks = parts.len();
    let mut moves = Vec::new();
    let mut copy = |slot: usize, source: Span, destination: Span| -> Result<(), usize> {
        moves.push(Move::Copy(source.to(destination).ok_or(slot)?));
        Ok(())
    };
    match &call.kind {
        Kind::Broadcast { root } => {
            let source = parts.get(*root).ok_or(*root)?.source;
            for (slot, part) in parts.iter().enumerate() {
                // The root has the elements.
                if slot != *root || !part.destination.is_empty() {
                    copy(slot, source, part.destination)?;
                }
            }
        }
        Kind::AllGather => {
            for (slot, part) in parts.iter().enumerate() {
                let blocks = part.destination_blocks(ranks).ok_or(slot)?;
                for (from, block) in parts.iter().zip(blocks) {
                    copy(slot, from.source, block)?;
                }
            }
        }
        Kind::Gather { root } => {
            let blocks = parts.get(*root).and_then(|part| part.destination_blocks(ranks)).ok_or(*root)?;
            for (slot, (part, block)) in parts.iter().zip(blocks).enumerate() {
                copy(slot, part.source, block)?;
            }
        }
        Kind::Scatter { root } => {
            let blocks = parts.get(*root).and_then(|part| part.source_blocks(ranks)).ok_or(*root)?;
            for (slot, (part, block)) in parts.iter().zip(blocks).enumerate() {
                copy(slot, block, part.destination)?;
            }
        }
        Kind::AllToAll | Kind::AllToAllV { .. } => {
            let destinations = each(parts, |part| part.received(ranks))?;
            for (from, blocks) in each(parts, |part| part.sent(ranks))?.into_iter().enumerate() {
                for (to, block) in blocks.into_iter().enumerate() {
                    copy(from, block, destinations[to][from])?;
                }
            }
        }
        Kind::Send { .. } | Kind::Receive { .. } => {
            let [sender, receiver] = parts else { return Err(0) };
            copy(1, sender.source, receiver.destination)?;
        }
        _ => {}
    }
    Ok(moves)
}

/// One value of each part, or the slot that has none.
fn each<T>(parts: &[Part], of: impl Fn(&Part) -> Option<T>) -> Result<Vec<T>, usize> {
    parts.iter().enumerate().map(|(slot, part)| of(part).ok_or(slot)).collect()
}

fn whole_sources(parts: &[Part]) -> Result<Vec<Span>, usize> {
    each(parts, |part| Some(part.source).filter(|source| source.len() == part.call.bytes()))
}

/// A reduction over spans of the bytes of one rank, into those of the slots from `first` on. None without elements.
fn combine(
    call: &Call,
    sources: Vec<Span>,
    (first, destinations): (usize, Vec<Span>),
) -> Result<Option<Move>, usize> {
    let differs = |span: &Span| span.len() != call.bytes();
    if let Some(slot) = sources.iter().position(differs) {
        return Err(slot);
    }
    if let Some(slot) = destinations.iter().position(differs) {
        return Err(first + slot);
    }
    let computation = call.computation.filter(|_| call.bytes() > 0);
    Ok(computation.map(|computation| Move::Combine { function: computation.function, sources, destinations }))
}

/// Does the operation: all ranks wait until this returns, so their memory is valid, and no other code uses it.
pub(crate) fn run(moves: &[Move]) {
    for step in moves {
        match step {
            // SAFETY: both are valid and used by nothing else (see above).
            Move::Copy(spans) => unsafe { spans.copy() },
            Move::Combine { function, sources, destinations } => {
                // SAFETY: the memory is valid and used by nothing else (see above). The function is of the type that all
                // ranks have agreed on, and arrays of it are aligned. Spans of two ranks do not overlap where one is
                // written, and the two arrays of one rank are apart or the same: the submission has checked that.
                unsafe { function(sources, destinations) };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Sum;

    const BYTES: usize = 4;

    /// All spans of a few bytes.
    fn spans(memory: Span) -> Vec<Span> {
        (0..=BYTES)
            .flat_map(|start| (0..=BYTES - start).map(move |bytes| memory.part(start, bytes).unwrap()))
            .collect()
    }

    fn whole(memory: &mut [u8]) -> Span {
        // SAFETY: the bytes are there; each test keeps them.
        unsafe { Span::new(memory.as_mut_ptr().expose_provenance(), memory.len()) }
    }

    fn part(kind: Kind, count: usize, (source, destination): (Span, Span)) -> Part {
        Part {
            call: Call::new::<u8>(kind, count).computing::<u8, _>(Sum),
            queue: ("", 0, 0),
            source,
            destination,
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "looks at no memory, many times")]
    fn a_rank_that_writes_what_another_uses_is_found() {
        let mut memory = [0; BYTES];
        let all = spans(whole(&mut memory));
        // Three ranks: one of them reads and writes. Their own arrays may overlap.
        for (one, two, three) in
            all.iter().flat_map(|one| all.iter().flat_map(|two| all.iter().map(|three| (*one, *two, *three))))
        {
            for (read, written) in [(two, three), (three, two)] {
                let parts = [
                    part(Kind::Barrier, 0, (one, Span::default())),
                    part(Kind::Barrier, 0, (read, written)),
                    part(Kind::Barrier, 0, (Span::default(), one)),
                ];
                let clash = |writer: usize, user: usize| {
                    let (writer, user) = (&parts[writer], &parts[user]);
                    [user.source, user.destination].iter().any(|used| writer.destination.overlaps(*used))
                };
                match overlap(&parts) {
                    Some((writer, user)) => assert!(writer != user && clash(writer, user)),
                    None => {
                        let pairs = (0..3).flat_map(|writer| (0..3).map(move |user| (writer, user)));
                        assert!(pairs.filter(|(writer, user)| writer != user).all(|(w, u)| !clash(w, u)));
                    }
                }
            }
        }
    }

    #[test]
    fn a_seat_whose_bytes_are_not_those_of_its_call_is_named() {
        let mut memory = [0; 2 * BYTES];
        let all = whole(&mut memory);
        let (none, one, two) = (Span::default(), all.part(0, 1).unwrap(), all.part(2, 2).unwrap());
        let planned = |kind: Kind, places: [(Span, Span); 2]| {
            plan(&places.map(|place| part(kind.clone(), 1, place))).map(|moves| moves.len())
        };
        assert_eq!(planned(Kind::AllReduce, [(one, one), (one, one)]), Ok(1));
        assert_eq!(planned(Kind::AllReduce, [(one, one), (two, one)]), Err(1));
        assert_eq!(planned(Kind::AllReduce, [(one, one), (one, two)]), Err(1));
        assert_eq!(planned(Kind::Reduce { root: 1 }, [(one, none), (one, one)]), Ok(1));
        assert_eq!(planned(Kind::Reduce { root: 1 }, [(one, none), (one, two)]), Err(1));
        assert_eq!(planned(Kind::ReduceScatter, [(two, one), (two, one)]), Ok(2));
        assert_eq!(planned(Kind::ReduceScatter, [(two, one), (two, two)]), Err(1));
        assert_eq!(planned(Kind::ReduceScatter, [(two, one), (one, one)]), Err(1));
        assert_eq!(planned(Kind::Broadcast { root: 0 }, [(one, none), (none, one)]), Ok(1));
        assert_eq!(planned(Kind::Broadcast { root: 0 }, [(one, one), (none, one)]), Ok(2));
        assert_eq!(planned(Kind::Broadcast { root: 0 }, [(one, none), (none, two)]), Err(1));
        assert_eq!(planned(Kind::Broadcast { root: 0 }, [(one, none), (none, none)]), Err(1));
        assert_eq!(planned(Kind::AllGather, [(one, two), (one, two)]), Ok(4));
        assert_eq!(planned(Kind::AllGather, [(one, two), (one, one)]), Err(1));
        assert_eq!(planned(Kind::Gather { root: 0 }, [(one, two), (one, none)]), Ok(2));
        assert_eq!(planned(Kind::Gather { root: 0 }, [(one, two), (two, none)]), Err(1));
        assert_eq!(planned(Kind::Scatter { root: 1 }, [(none, one), (two, one)]), Ok(2));
        assert_eq!(planned(Kind::Scatter { root: 1 }, [(none, one), (one, one)]), Err(1));
        assert_eq!(planned(Kind::AllToAll, [(two, two), (two, two)]), Ok(4));
        assert_eq!(planned(Kind::AllToAll, [(two, two), (one, two)]), Err(1));
        let rows = |send: [usize; 2], receive: [usize; 2]| Kind::AllToAllV {
            send: send.into(),
            receive: receive.into(),
        };
        assert_eq!(planned(rows([1, 1], [1, 1]), [(two, two), (two, two)]), Ok(4));
        assert_eq!(planned(rows([1, 1], [1, 1]), [(two, two), (one, two)]), Err(1));
        assert_eq!(planned(rows([1, 0], [1, 1]), [(one, two), (one, two)]), Err(0));
        let short = Kind::AllToAllV { send: vec![2], receive: vec![1, 1] };
        assert_eq!(planned(short, [(two, two), (two, two)]), Err(0));
        assert_eq!(planned(Kind::Send { to: 1 }, [(two, none), (none, two)]), Ok(1));
        assert_eq!(planned(Kind::Send { to: 1 }, [(two, none), (none, one)]), Err(1));
        // Nothing is combined where there are no elements.
        let empty = [(none, none), (none, none)].map(|place| part(Kind::AllReduce, 0, place));
        assert_eq!(plan(&empty).map(|moves| moves.len()), Ok(0));
        assert_eq!(plan(&[]).map(|moves| moves.len()), Ok(0));
    }
}
