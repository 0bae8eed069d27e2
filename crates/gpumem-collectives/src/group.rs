//! Several operations as one piece of work.

use crate::{
    Communicator,
    call::{Call, Place, Prepared, invalid},
    engine::RankCalls,
    pack::Unpack,
};
use gpumem_core::{Backend, Result};
use gpumem_runtime::Stream;
use smallvec::SmallVec;
use std::fmt;

/// Operations that are enqueued together at the end of a [`Communicator::group`]. Until then the arrays are borrowed.
pub struct Group<'g, 'c, B: Backend> {
    pub(crate) communicator: &'c Communicator<B>,
    pub(crate) stream: &'c Stream<B>,
    calls: SmallVec<[Prepared<'g, B>; 1]>,
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
        let mut group = Group { communicator: self, stream, calls: SmallVec::new(), unpack: Vec::new() };
        // An error of the body drops the group: nothing has been enqueued yet.
        let value = body(&mut group)?;
        if let Some(RankCalls { engine, stream, operation, calls }) = group.part()? {
            engine.enqueue(stream, operation, calls)?;
        }
        if !group.unpack.is_empty() {
            group.unpack()?;
        }
        Ok(value)
    }

    /// As [`group`](Self::group), for several ranks that one thread drives: `body` gets a group for each, in their order. On a
    /// GPU such a thread has to call operations in this way, because the call for one rank may wait for that of another.
    ///
    /// # Examples
    /// ```
    /// use gpumem_collectives::{Communicator, Sum};
    /// # use gpumem_host::Host;
    /// # type Device = gpumem_runtime::Device<Host>;
    /// # fn main() -> gpumem_core::Result<()> {
    /// # let device = Device::open("host")?;
    /// let ranks = Communicator::all(&[device.clone(), device.clone()])?;
    /// let streams = [device.stream()?, device.stream()?];
    /// let mut arrays = [streams[0].to_device(&[1, 5])?, streams[1].to_device(&[3, 2])?];
    /// let ends = [(&ranks[0], &streams[0]), (&ranks[1], &streams[1])];
    /// Communicator::group_all(&ends, |groups| {
    ///     let mut each = groups.iter_mut().zip(&mut arrays);
    ///     each.try_for_each(|(group, array)| group.all_reduce_in_place(array, Sum))
    /// })?;
    /// assert_eq!(arrays[1].copy_to_host()?.to_vec(), [4, 7]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As for [`group`](Self::group).
    pub fn group_all<'g, 'c, R>(
        ranks: &[(&'c Self, &'c Stream<B>)],
        body: impl FnOnce(&mut [Group<'g, 'c, B>]) -> Result<R>,
    ) -> Result<R> {
        let mut groups = Vec::with_capacity(ranks.len());
        for (communicator, stream) in ranks {
            communicator.check_stream(stream, "group_all")?;
            groups.push(Group { communicator, stream, calls: SmallVec::new(), unpack: Vec::new() });
        }
        let value = body(&mut groups)?;
        let parts = groups.iter().filter_map(|group| group.part().transpose());
        let parts: Vec<RankCalls<'_, B>> = parts.collect::<Result<_>>()?;
        let enqueued = parts.first().map(|first| first.engine.enqueue_all(&parts)).unwrap_or_default();
        drop(parts);
        // What a rank receives is copied where it belongs, also where the operations of another rank have failed.
        let called = groups.iter_mut().filter(|group| !group.calls.is_empty()).zip(&enqueued);
        let unpacked: Vec<Result<()>> =
            called.filter(|(_, enqueued)| enqueued.is_ok()).map(|(group, _)| group.unpack()).collect();
        enqueued.into_iter().collect::<Result<()>>()?;
        unpacked.into_iter().collect::<Result<()>>()?;
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
        source: Option<Place<'g, B>>,
        destination: Option<Place<'g, B>>,
        unpack: Option<Unpack<'g, B>>,
    ) -> Result<()> {
        let target = unpack.as_ref().map(|unpack| unpack.target);
        self.add_prepared(Prepared { call, source, destination, in_place: false, target }, unpack)
    }

    /// Adds an operation that reads and writes one array, or a part of it, in place.
    pub(crate) fn add_in_place(
        &mut self,
        call: Call,
        source: Place<'g, B>,
        destination: Place<'g, B>,
        unpack: Option<Unpack<'g, B>>,
    ) -> Result<()> {
        let target = unpack.as_ref().map(|unpack| unpack.target);
        let (source, destination) = (Some(source), Some(destination));
        self.add_prepared(Prepared { call, source, destination, in_place: true, target }, unpack)
    }

    fn add_prepared(&mut self, prepared: Prepared<'g, B>, unpack: Option<Unpack<'g, B>>) -> Result<()> {
        // Before it is added: a group holds only what can be enqueued on its stream.
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

    /// The operations as one piece of work; nothing if there are none.
    fn part(&self) -> Result<Option<RankCalls<'_, B>>> {
        let operation = match &*self.calls {
            [] => return Ok(None),
            [only] => only.call.kind.name(),
            _ => "group",
        };
        let Self { communicator, stream, calls, .. } = self;
        Ok(Some(RankCalls { engine: communicator.engine(operation)?, stream, operation, calls }))
    }

    /// Enqueues the copies after the operations.
    fn unpack(&mut self) -> Result<()> {
        let unpack = std::mem::take(&mut self.unpack).into_iter();
        // All are enqueued, even if one is refused because the operation has failed by now.
        let unpacked: Vec<Result<()>> = unpack.map(|unpack| (unpack.copy)(self.stream)).collect();
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
