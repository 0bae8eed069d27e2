//! Several operations as one piece of work.

use crate::{
    Communicator,
    call::{Call, Place, Prepared, invalid},
    pack::Unpack,
};
use gpumem_core::{Backend, Result};
use gpumem_runtime::Stream;
use std::fmt;

/// Operations that are enqueued together at the end of a [`Communicator::group`]. Until then the arrays are borrowed.
pub struct Group<'g, 'c, B: Backend> {
    pub(crate) communicator: &'c Communicator<B>,
    pub(crate) stream: &'c Stream<B>,
    calls: Vec<Prepared<B>>,
    unpack: Vec<Unpack<'g, B>>,
}

impl<B: Backend> Communicator<B> {
    /// Collects the operations that `body` calls, and enqueues them as one piece of work: none of them waits for another. An
    /// exchange with neighbours needs that, because a send alone waits for its receive.
    ///
    /// # Examples
    /// ```
    /// use gpumem_collectives::Communicator;
    /// # use gpumem_host::Host;
    /// # type Device = gpumem_runtime::Device<Host>;
    /// # fn main() -> gpumem_core::Result<()> {
    /// # let device = Device::open("host")?;
    /// let ranks = Communicator::all(&vec![device.clone(); 3])?;
    /// let mut received = Vec::new();
    /// for communicator in &ranks {
    ///     let (rank, stream) = (communicator.rank(), device.stream()?);
    ///     let own = stream.to_device(&[rank as i32])?;
    ///     let mut left = stream.device_array::<i32, _>(1)?;
    ///     communicator.group(&stream, |group| {
    ///         group.send(&own, (rank + 1) % 3)?;
    ///         group.receive(&mut left, (rank + 2) % 3)
    ///     })?;
    ///     received.push(left);
    /// }
    /// let received: Vec<i32> = received.iter().map(|left| left.get(0)).collect::<Result<_, _>>()?;
    /// assert_eq!(received, [2, 0, 1]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Returns the error of `body`: then none of the operations takes place. Otherwise the errors of the operations.
    pub fn group<'g, R>(
        &self,
        stream: &Stream<B>,
        body: impl FnOnce(&mut Group<'g, '_, B>) -> Result<R>,
    ) -> Result<R> {
        self.check_stream(stream, "group")?;
        let mut group = Group { communicator: self, stream, calls: Vec::new(), unpack: Vec::new() };
        let value = body(&mut group)?;
        group.enqueue()?;
        Ok(value)
    }
}

impl<'g, B: Backend> Group<'g, '_, B> {
    /// Number of ranks.
    pub(crate) fn size(&self) -> usize {
        self.communicator.size()
    }

    /// Adds an operation.
    pub(crate) fn add(
        &mut self,
        call: Call,
        source: Option<Place<B>>,
        destination: Option<Place<B>>,
        unpack: Option<Unpack<'g, B>>,
    ) -> Result<()> {
        let prepared = Prepared { call, source, destination };
        prepared.check(self.stream)?;
        self.calls.push(prepared);
        self.unpack.extend(unpack);
        Ok(())
    }

    /// Checks that a number names a rank.
    pub(crate) fn check_rank(&self, operation: &'static str, rank: usize) -> Result<()> {
        if rank < self.size() {
            return Ok(());
        }
        Err(invalid(self.stream, operation, "the root or peer is not below the number of ranks"))
    }

    fn enqueue(self) -> Result<()> {
        let Self { communicator, stream, calls, unpack } = self;
        let operation = match &*calls {
            [] => return Ok(()),
            [only] => only.call.kind.name(),
            _ => "group",
        };
        communicator.engine.enqueue(stream, operation, &calls)?;
        // All are enqueued, even if one is refused because the operation has failed by now.
        let unpacked: Vec<Result<()>> = unpack.into_iter().map(|unpack| unpack(stream)).collect();
        unpacked.into_iter().collect()
    }
}

impl<B: Backend> fmt::Debug for Group<'_, '_, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Group")
            .field("communicator", self.communicator)
            .field("calls", &self.calls.len())
            .finish()
    }
}
