//! Where operations are called: on a stream, or in a group of operations.

use crate::{
    Communicator,
    batch::{Batch, Calls, Submissions},
    call::{Call, Place, Prepared, invalid},
    choose::refuse_recording,
    engine::RankCalls,
    pack::{Destination, Unpack},
};
use gpumem_core::{Backend, ErrorKind, NotRecorded, Result};
use gpumem_runtime::{Stream, internal::Key};
use smallvec::smallvec;
use std::{fmt, sync::Arc};

/// The operations of a rank on a stream: each by itself ([`Communicator::on`]), or as parts of a group
/// ([`Communicator::group`]), which borrows the arrays until its end.
pub struct Operations<'g, 'c, B: Backend> {
    pub(crate) communicator: &'c Communicator<B>,
    pub(crate) stream: &'c Stream<B>,
    /// No value, so that nothing borrows the arrays after the last call.
    group: Option<&'c mut Batch<'g, B>>,
    pub(crate) element_name: Option<Arc<str>>,
}

impl<B: Backend> Communicator<B> {
    /// Returns the operations of this rank on a stream: `rank.on(&stream).barrier()`.
    pub fn on<'g, 'c>(&'c self, stream: &'c Stream<B>) -> Operations<'g, 'c, B> {
        Operations { communicator: self, stream, group: None, element_name: None }
    }

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
        body: impl FnOnce(&mut Operations<'g, '_, B>) -> Result<R>,
    ) -> Result<R> {
        self.group_by(crate::KEY, stream, body).map(|(value, _)| value)
    }

    /// As [`group`](Self::group), and returns what was enqueued on the stream, for the other crates of gpumem.
    ///
    /// # Errors
    /// As there.
    #[doc(hidden)]
    pub fn group_by<'g, R>(
        &self,
        _: Key,
        stream: &Stream<B>,
        body: impl FnOnce(&mut Operations<'g, '_, B>) -> Result<R>,
    ) -> Result<(R, Submissions)> {
        let mut group = Batch::new();
        // An error of the body drops the group: nothing has been enqueued yet.
        let group_of = Some(&mut group);
        let value =
            body(&mut Operations { communicator: self, stream, group: group_of, element_name: None })?;
        Ok((value, group.enqueue(self, stream)?))
    }

    /// As [`group`](Self::group), for several ranks that one thread drives: `body` gets a group for each, in their order. On a
    /// GPU such a thread has to call operations in this way, because the call for one rank may wait for that of another.
    ///
    /// # Examples
    /// ```
    /// use gpumem_collectives::{Communicator, InPlace, Sum};
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
    ///     each.try_for_each(|(group, array)| group.all_reduce(InPlace, array, Sum))
    /// })?;
    /// assert_eq!(arrays[1].copy_to_host()?.to_vec(), [4, 7]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As for [`group`](Self::group).
    pub fn group_all<'g, R>(
        ranks: &[(&Self, &Stream<B>)],
        body: impl FnOnce(&mut [Operations<'g, '_, B>]) -> Result<R>,
    ) -> Result<R> {
        Self::group_all_by(crate::KEY, ranks, body).map(|(value, _)| value)
    }

    /// As [`group_all`](Self::group_all), and returns what was enqueued on the stream of each rank, for the other crates of gpumem.
    ///
    /// # Errors
    /// As there.
    #[doc(hidden)]
    pub fn group_all_by<'g, R>(
        _: Key,
        ranks: &[(&Self, &Stream<B>)],
        body: impl FnOnce(&mut [Operations<'g, '_, B>]) -> Result<R>,
    ) -> Result<(R, Vec<Submissions>)> {
        if let [(first, _), others @ ..] = ranks {
            let engine = first.engine_identity();
            if let Some((other, _)) = others.iter().find(|(other, _)| other.engine_identity() != engine) {
                let why = "the ranks belong to different engines";
                return Err(other
                    .device()
                    .core_by(crate::KEY)
                    .error("group_all", ErrorKind::InvalidArgument { why }));
            }
        }
        // Before the body: it packs arrays.
        ranks.iter().try_for_each(|(_, stream)| {
            refuse_recording("group_all", stream.device(), NotRecorded::SeveralRanks)
        })?;
        let mut groups: Vec<Batch<'g, B>> = ranks.iter().map(|_| Batch::new()).collect();
        let each = ranks.iter().zip(&mut groups);
        let each = each.map(|((communicator, stream), group)| Operations {
            communicator,
            stream,
            group: Some(group),
            element_name: None,
        });
        let value = body(&mut each.collect::<Vec<_>>())?;
        let parts = ranks.iter().zip(&groups);
        let parts =
            parts.filter_map(|((communicator, stream), group)| group.part(communicator, stream).transpose());
        let parts: Vec<RankCalls<'_, B>> = parts.collect::<Result<_>>()?;
        let enqueued = parts.first().map(|first| first.engine.enqueue_all(&parts)).unwrap_or_default();
        drop(parts);
        let mut enqueued = enqueued.into_iter();
        // What a rank receives is copied where it belongs, also where the operations of another rank have failed.
        let ends = ranks.iter().zip(groups).map(|((_, stream), group)| {
            // Nothing was enqueued for a rank without operations.
            let enqueued = if group.is_empty() { None } else { enqueued.next() };
            enqueued.map_or(Ok(Submissions::new()), |enqueued| group.unpack(stream, enqueued?))
        });
        // All of them, before the first failure is returned.
        let ends: Vec<Result<Submissions>> = ends.collect();
        Ok((value, ends.into_iter().collect::<Result<_>>()?))
    }
}

impl<'g, B: Backend> Operations<'g, '_, B> {
    /// Number of ranks.
    pub(crate) fn size(&self) -> usize {
        self.communicator.size()
    }

    pub(crate) fn is_group(&self) -> bool {
        self.group.is_some()
    }

    /// Names the elements of the operations that follow, where their type does not say what they are: records that are held as bytes,
    /// say. Ranks whose names differ disagree about the operation. `None` stands for the type's own name.
    pub fn name_elements(&mut self, name: Option<Arc<str>>) {
        self.element_name = name;
    }

    /// Enqueues an operation, or adds it to the group. `in_place` says whether the source may be in the destination, or the other
    /// way round.
    pub(crate) fn add(
        &mut self,
        call: Call,
        source: Option<Place<'g, B>>,
        destination: Option<Destination<'g, B>>,
        in_place: bool,
    ) -> Result<()> {
        let (destination, unpack) = destination.map(Destination::whole).unzip();
        let unpack = unpack.flatten();
        let target = unpack.as_ref().map(|unpack| unpack.target.clone());
        self.add_calls(smallvec![Prepared { call, source, destination, in_place, target }], unpack)
    }

    /// As [`add`](Self::add), for an operation of one call or several: it is added as a whole.
    pub(crate) fn add_calls(&mut self, mut calls: Calls<'g, B>, unpack: Option<Unpack<'g, B>>) -> Result<()> {
        for call in &mut calls {
            call.call.element_name = self.element_name.clone();
            // Before it is added: a group holds only what can be enqueued on its stream.
            self.communicator.check_stream(self.stream, call.call.kind.name())?;
        }
        if let Some(group) = &mut self.group {
            return group.add(self.stream, calls, unpack);
        }
        let mut alone = Batch::new();
        alone.add(self.stream, calls, unpack)?;
        alone.enqueue(self.communicator, self.stream).map(drop)
    }

    /// Checks that a number names a rank.
    pub(crate) fn check_rank(&self, operation: &'static str, rank: usize) -> Result<()> {
        if rank < self.size() {
            return Ok(());
        }
        Err(invalid(self.stream, operation, "the root or peer is not below the number of ranks"))
    }

    /// As [`check_rank`](Self::check_rank), for the other side of a send.
    pub(crate) fn check_peer(&self, operation: &'static str, peer: usize) -> Result<()> {
        if !self.is_group() && peer == self.communicator.rank() {
            let why = "a rank receives what it sends itself only in the same group";
            return Err(invalid(self.stream, operation, why));
        }
        self.check_rank(operation, peer)
    }
}

impl<B: Backend> fmt::Debug for Operations<'_, '_, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Operations").field("communicator", self.communicator).finish_non_exhaustive()
    }
}
