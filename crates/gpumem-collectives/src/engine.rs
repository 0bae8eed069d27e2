//! What carries out the operations of a rank.

use crate::call::Prepared;
use gpumem_core::{Backend, CollectiveError, Result};
use gpumem_runtime::Stream;
use std::{fmt::Debug, sync::Arc};

/// One rank's end of an engine. A call never waits for another rank, except [`split`](Self::split).
pub(crate) trait Engine<B: Backend>: Debug + Send + Sync {
    /// Waits until this rank can take part. [`Communicator::all`](crate::Communicator::all) calls it when all ranks have
    /// joined.
    fn ready(&self) -> Result<()> {
        Ok(())
    }

    /// Enqueues operations as one piece of work of the stream. Their arrays are packed, and belong to the stream's
    /// device.
    fn enqueue(&self, stream: &Stream<B>, operation: &'static str, calls: &[Prepared<B>]) -> Result<()>;

    /// The last failure of an operation of this rank.
    fn failure(&self) -> Option<CollectiveError>;

    /// Fails all operations of all ranks that have not begun to move bytes, and all later ones.
    fn abort(&self);

    /// Ends this rank's part. Its operations in flight go on.
    fn leave(&self);

    /// Says into which part this rank goes.
    fn begin_split(&self, colour: Option<u64>, key: i64) -> Result<Box<dyn Split<B>>>;
}

/// A rank's end of a part, with its rank and the number of ranks there.
pub(crate) type Joined<B> = (Arc<dyn Engine<B>>, usize, usize);

/// A split that has begun.
pub(crate) trait Split<B: Backend> {
    /// Waits until all ranks have begun it, and returns this rank's end of its part, with rank and size there.
    fn finish(self: Box<Self>) -> Result<Option<Joined<B>>>;
}
