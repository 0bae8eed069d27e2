//! Operations that are enqueued as one piece of work.

use crate::{Communicator, call::Prepared, engine::RankCalls, pack::Unpack};
use gpumem_core::{Backend, Result};
use gpumem_runtime::Stream;
use smallvec::SmallVec;

/// The calls of one operation. Together they write all of its destination, or their failure keeps it from being read.
pub(crate) type Calls<'g, B> = SmallVec<[Prepared<'g, B>; 1]>;

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
    pub(crate) fn enqueue(self, communicator: &Communicator<B>, stream: &Stream<B>) -> Result<()> {
        if let Some(RankCalls { stream, operation, calls, .. }) = self.part(communicator, stream)? {
            communicator.enqueue(stream, operation, calls)?;
        }
        self.unpack(stream)
    }

    /// Enqueues the copies after the operations, which have been enqueued.
    pub(crate) fn unpack(self, stream: &Stream<B>) -> Result<()> {
        // All are enqueued, even if one is refused because the operation has failed by now.
        let unpacked: Vec<Result<()>> = self.unpack.into_iter().map(|unpack| unpack.copy(stream)).collect();
        unpacked.into_iter().collect()
    }
}
