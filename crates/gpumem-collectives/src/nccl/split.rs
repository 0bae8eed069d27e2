//! Splits: the ranks tell each other their colours, and the first of each colour makes an identity for its part.

use super::{
    LibraryEnd, Link,
    enqueue::{self, OwnCalls},
    join,
};
use crate::{
    CommunicatorId,
    call::Kind,
    engine::{Joined, Split},
    split_key::SplitKey,
};
use gpumem_core::{Backend, CollectiveCause, CollectiveError, ErrorKind, Result};
use std::{
    sync::{Arc, atomic::Ordering},
    thread::{self, JoinHandle},
};

/// A split that has begun, on a thread of its own: one thread may split several ranks.
pub(super) struct SplitThread<B: Backend> {
    link: Arc<Link<B>>,
    number: u64,
    thread: JoinHandle<Result<Option<OwnPart<B>>>>,
}

/// A rank's end of its part, its rank and the number of ranks there.
type OwnPart<B> = (LibraryEnd<B>, usize, usize);

/// Begins a split.
pub(super) fn begin<B: Backend>(link: &Arc<Link<B>>, said: SplitKey) -> Result<SplitThread<B>> {
    // Relaxed: the number is for messages; the library orders splits by their calls.
    let number = link.splits.fetch_add(1, Ordering::Relaxed);
    let own = link.clone();
    let thread = thread::Builder::new()
        .name("gpumem:split".to_owned())
        .spawn(move || run(&own, said))
        .map_err(|error| {
            let why = format!("no thread could be started: {error}");
            link.give_up(&why);
            link.error("split", number, CollectiveCause::Library { why })
        })?;
    Ok(SplitThread { link: link.clone(), number, thread })
}

const OPERATION: &str = "split";

/// Where a rank goes: the identity of its part, its rank and the number of ranks there.
type Part = (CommunicatorId, usize, usize);

fn run<B: Backend>(link: &Arc<Link<B>>, said: SplitKey) -> Result<Option<OwnPart<B>>> {
    let found = find_part(link, said).inspect_err(|error| {
        // A comparison tells all ranks alike, and goes on.
        let is_told = |failure: &CollectiveError| matches!(failure.cause, CollectiveCause::Mismatch { .. });
        if !matches!(error.kind(), ErrorKind::Collective(failure) if is_told(failure)) {
            link.give_up(&error.to_string());
        }
    })?;
    let Some((id, rank, size)) = found else { return Ok(None) };
    let end = join::join(&link.device, &id, (rank, size), &link.options, link.kind)?;
    // The caller may use it at once.
    end.0.wait_ready(OPERATION)?;
    Ok(Some((end, rank, size)))
}

/// The ranks say where they go.
fn find_part<B: Backend>(link: &Arc<Link<B>>, said: SplitKey) -> Result<Option<Part>> {
    // All ranks call it, also those without a colour: the library wants every rank.
    let all = all_gather(link, &said.to_bytes())?;
    let members = said.part(&all);
    let first = members.as_ref().and_then(|members| members.first().copied());
    let mut id = [0; CommunicatorId::LEN];
    // One rank of each part makes the identity; the others get it from the next exchange.
    if first == Some(link.rank) {
        id = join::identity(OPERATION, &link.device, link.kind)?.to_bytes();
    }
    let ids = all_gather(link, &id)?;
    let (Some(members), Some(first)) = (members, first) else { return Ok(None) };
    let id = ids.chunks_exact(CommunicatorId::LEN).nth(first).unwrap_or_default();
    let id = CommunicatorId::from_bytes(id)?;
    let rank = members.iter().position(|rank| *rank == link.rank).unwrap_or_default();
    Ok(Some((id, rank, members.len())))
}

/// Gives the bytes of each rank to all, in the order of the ranks. Waits for them.
fn all_gather<B: Backend>(link: &Arc<Link<B>>, own: &[u8]) -> Result<Vec<u8>> {
    let mut buffers = link.buffers(own)?;
    let (stream, calls) = (&buffers.stream, [buffers.gather(Kind::Split)]);
    enqueue::enqueue_one(OwnCalls { link, stream, operation: OPERATION, calls: &calls, counts: false })?;
    buffers.read().map_err(|error| error.in_operation(OPERATION))
}

impl<B: Backend> Split<B> for SplitThread<B> {
    fn finish(self: Box<Self>) -> Result<Option<Joined<B>>> {
        let Self { link, number, thread, .. } = *self;
        match thread.join() {
            Ok(part) => Ok(part?.map(|(end, rank, size)| -> Joined<B> { (Arc::new(end), rank, size) })),
            Err(_) => {
                let why = "the thread of the split panicked".to_owned();
                link.give_up(&why);
                Err(link.error("split", number, CollectiveCause::Library { why }))
            }
        }
    }
}
