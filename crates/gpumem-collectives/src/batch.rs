//! Operations that are enqueued as one piece of work.

use crate::{Communicator, call::Prepared, engine::RankCalls, pack::Unpack};
use gpumem_core::{Backend, Result};
use gpumem_runtime::Stream;
use smallvec::SmallVec;
use std::iter;

/// The calls of one operation. Together they write all of its destination, or their failure keeps it from being read.
pub(crate) type Calls<'g, B> = SmallVec<[Prepared<'g, B>; 1]>;

/// What a rank has enqueued on its stream: the operations, and the copies after them. The copies before them are not listed: if one fails,
/// so does the operation that reads its result.
pub(crate) type Submissions = SmallVec<[u64; 2]>;

/// Operations in their order, each of them whole: a copy after an operation is here only beside all calls of that operation.
pub(crate) struct Batch<'g, B: Backend> {
    calls: Calls<'g, B>,
    unpack: Vec<Unpack<'g, B>>,
}

impl<'g, B: Backend> Batch<'g, B> {
    pub(crate) fn new() -> Self {
        Self { calls: SmallVec::new(), unpack: Vec::new() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// Adds an operation. If one of its calls cannot be enqueued on the stream, nothing of it is added.
    pub(crate) fn add(
        &mut self,
        stream: &Stream<B>,
        calls: Calls<'g, B>,
        unpack: Option<Unpack<'g, B>>,
    ) -> Result<()> {
        calls.iter().try_for_each(|call| call.check(stream))?;
        match self.is_empty() {
            true => self.calls = calls,
            false => self.calls.extend(calls),
        }
        self.unpack.extend(unpack);
        Ok(())
    }

    /// The operations as one piece of work; nothing if there are none.
    pub(crate) fn part<'a>(
        &'a self,
        communicator: &'a Communicator<B>,
        stream: &'a Stream<B>,
    ) -> Result<Option<RankCalls<'a, B>>> {
        let operation = match &*self.calls {
            [] => return Ok(None),
            [only] => only.call.kind.name(),
            _ => "group",
        };
        Ok(Some(RankCalls { engine: communicator.engine(operation)?, stream, operation, calls: &self.calls }))
    }

    /// Enqueues the operations, and then the copies after them.
    pub(crate) fn enqueue(self, communicator: &Communicator<B>, stream: &Stream<B>) -> Result<Submissions> {
        let Some(RankCalls { operation, calls, .. }) = self.part(communicator, stream)? else {
            return Ok(Submissions::new());
        };
        let submission = communicator.enqueue(stream, operation, calls)?;
        self.unpack(stream, submission)
    }

    /// Enqueues the copies after the operations, which have been enqueued as that submission. Returns all submissions.
    pub(crate) fn unpack(self, stream: &Stream<B>, submission: u64) -> Result<Submissions> {
        // All are enqueued, even if one is refused because the operation has failed by now.
        let copies = self.unpack.into_iter().map(|unpack| unpack.copy(stream));
        let all: SmallVec<[Result<u64>; 2]> = iter::once(Ok(submission)).chain(copies).collect();
        all.into_iter().collect()
    }
}
