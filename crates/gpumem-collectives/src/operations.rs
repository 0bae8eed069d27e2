//! The operations.

use crate::{
    Operations, Reduction,
    blocks::{check_blocks, check_equal, check_rows, check_whole},
    call::{Call, Computation, Kind, Place, Prepared, invalid},
    pack,
    source::{OfDimension, Source},
};
use gpumem_core::{Backend, Element, Result};
use gpumem_runtime::{ArrayBase, DeviceView, DeviceViewMut, Storage, StorageMut};
use ndarray::Dimension;

/// Which arrays have a block for each rank.
#[derive(Clone, Copy)]
enum Blocks {
    None,
    OfSource,
    OfDestination,
    OfBoth,
}

/// # Operations
///
/// All of them take arrays and views of any layout on the device of the stream, and return at once. They return these
/// errors, and have enqueued nothing then:
///
/// * [`ShapeMismatch`](gpumem_core::LayoutError::ShapeMismatch) if shapes do not fit;
/// * [`InvalidArgument`](gpumem_core::ErrorKind::InvalidArgument) for a root or a peer that is no rank, an array that is
///   missing at the root, and numbers of rows that do not add up to the length of the first axis;
/// * [`WrongDevice`](gpumem_core::ErrorKind::WrongDevice) if the stream or an array belongs to another device;
/// * [`Poisoned`](gpumem_core::ErrorKind::Poisoned) for a source that failed work was to write;
/// * [`Collective`](gpumem_core::ErrorKind::Collective) if the operation cannot succeed, as far as that is known already;
/// * [`OutOfMemory`](gpumem_core::ErrorKind::OutOfMemory) if there is no room for a packed copy of an array that is not contiguous. The
///   communicator has ended then: the other ranks call the operation, and each gets an error.
///
/// In a group, the third, fourth and fifth may also be errors of the group. A refused call is not counted: what one rank alone has called
/// wrongly, the others must not call. One with a poisoned source is counted on the host, where it fails on all ranks.
///
/// On the stream of a recording of a graph they are written down, and each launch calls them. Arrays from outside of it are
/// [`NotRecordable`](gpumem_core::ErrorKind::NotRecordable) there.
impl<'g, B: Backend> Operations<'g, '_, B> {
    /// Combines the elements of all ranks, and gives the result to each. `source` and `destination` have the same shape, on
    /// all ranks.
    ///
    /// # Examples
    /// ```
    /// use gpumem_collectives::{Communicator, InPlace, Max};
    /// # use gpumem_host::Host;
    /// # type Device = gpumem_runtime::Device<Host>;
    /// # fn main() -> gpumem_core::Result<()> {
    /// # let device = Device::open("host")?;
    /// let ranks = Communicator::all(&[device.clone(), device.clone()])?;
    /// let (first, second) = (device.stream()?, device.stream()?); // one stream for each rank
    /// let mut arrays = [first.to_device(&[1, 5])?, second.to_device(&[3, 2])?];
    /// for ((rank, stream), array) in ranks.iter().zip([&first, &second]).zip(&mut arrays) {
    ///     rank.on(stream).all_reduce(InPlace, array, Max)?;
    /// }
    /// assert_eq!(arrays[0].copy_to_host()?.to_vec(), [3, 5]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// See [operations](#operations).
    pub fn all_reduce<A, M, D, R>(
        &mut self,
        source: A,
        destination: &'g mut ArrayBase<M, D>,
        reduction: R,
    ) -> Result<()>
    where
        A: Source<'g, M::Elem, B> + OfDimension<D>,
        M: StorageMut<Backend = B>,
        D: Dimension,
        R: Reduction<M::Elem>,
    {
        let computation = Some(Computation::of::<M::Elem, R>(reduction));
        self.add_pair(Kind::AllReduce, computation, Blocks::None, source, destination)
    }

    /// Combines the elements of all ranks, and gives the result to the root. Only the root needs a destination, of the
    /// source's shape; on other ranks it is left alone. In place every rank gives its array as the destination.
    ///
    /// # Errors
    /// See [operations](#operations).
    pub fn reduce<A, T, D, R>(
        &mut self,
        source: A,
        destination: Option<DeviceViewMut<'g, T, D, B>>,
        reduction: R,
        root: usize,
    ) -> Result<()>
    where
        A: Source<'g, T, B> + OfDimension<D>,
        T: Element,
        D: Dimension + 'g,
        R: Reduction<T>,
    {
        let operation = "reduce";
        self.check_rank(operation, root)?;
        let (is_root, in_place) = (self.communicator.rank() == root, source.shape().is_none());
        let destination = self.needed(operation, destination, is_root || in_place)?;
        let shape = destination.as_ref().map(|to| to.shape());
        if let (Some(source), Some(destination)) = (source.shape(), shape) {
            check_equal(self.stream, operation, source, destination)?;
        }
        let count = source.shape().or(shape).unwrap_or_default().iter().product();
        let call = Call::new::<T>(Kind::Reduce { root }, count).computing::<T, R>(reduction);
        let from = self.packed(source.pack(self.stream, operation))?;
        match destination {
            Some(array) if is_root => {
                let to = self.packed(pack::destination(self.stream, operation, array, in_place))?;
                let from = from.unwrap_or_else(|| to.place().clone());
                self.add(call, Some(from), Some(to), in_place)
            }
            Some(array) => {
                let from = self.packed(pack::source(self.stream, operation, &array))?.into_owned();
                self.add(call, Some(from), None, false)
            }
            None => self.add(call, from, None, false),
        }
    }

    /// Copies the elements of the root to all ranks.
    ///
    /// # Examples
    /// ```
    /// use gpumem_collectives::Communicator;
    /// # use gpumem_host::Host;
    /// # type Device = gpumem_runtime::Device<Host>;
    /// # fn main() -> gpumem_core::Result<()> {
    /// # let device = Device::open("host")?;
    /// let ranks = Communicator::all(&[device.clone(), device.clone()])?;
    /// let mut arrays = [device.to_device(&[1, 2])?, device.to_device(&[0, 0])?];
    /// for (rank, array) in ranks.iter().zip(&mut arrays) {
    ///     rank.on(&device.stream()?).broadcast(array, 0)?;
    /// }
    /// assert_eq!(arrays[1].copy_to_host()?.to_vec(), [1, 2]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// See [operations](#operations).
    pub fn broadcast<M, D>(&mut self, array: &'g mut ArrayBase<M, D>, root: usize) -> Result<()>
    where
        M: StorageMut<Backend = B>,
        D: Dimension,
    {
        let operation = "broadcast";
        self.check_rank(operation, root)?;
        let call = Call::new::<M::Elem>(Kind::Broadcast { root }, array.len());
        if self.communicator.rank() == root {
            let from = self.packed(pack::source(self.stream, operation, array))?;
            return self.add(call, Some(from), None, false);
        }
        let to = self.packed(pack::destination_of(self.stream, operation, array, false))?;
        self.add(call, None, Some(to), false)
    }

    /// Gives the elements of all ranks to each, in the order of the ranks: along the first axis, whose length is then that of
    /// all ranks together, or along a further axis before it, whose length is the number of ranks. In place, a rank's own
    /// elements are those of the block of its number along the first axis.
    ///
    /// # Errors
    /// See [operations](#operations).
    pub fn all_gather<A, M, D>(&mut self, source: A, destination: &'g mut ArrayBase<M, D>) -> Result<()>
    where
        A: Source<'g, M::Elem, B>,
        M: StorageMut<Backend = B>,
        D: Dimension,
    {
        self.add_pair(Kind::AllGather, None, Blocks::OfDestination, source, destination)
    }

    /// As [`all_gather`](Self::all_gather) along the first axis, with blocks of different lengths: the destination comes with the
    /// number of rows (indices of the first axis) of each rank, equal on all ranks. It is a group of broadcasts, and errors
    /// call it so.
    ///
    /// # Examples
    /// ```
    /// use gpumem_collectives::Communicator;
    /// # use gpumem_host::Host;
    /// # type Device = gpumem_runtime::Device<Host>;
    /// # fn main() -> gpumem_core::Result<()> {
    /// # let device = Device::open("host")?;
    /// let ranks = Communicator::all(&[device.clone(), device.clone()])?;
    /// let mut gathered = Vec::new();
    /// for rank in &ranks {
    ///     let stream = device.stream()?;
    ///     let own = if rank.rank() == 0 { stream.to_device(&[1])? } else { stream.to_device(&[2, 3])? };
    ///     let mut all = stream.device_array::<i32, _>(3)?;
    ///     rank.on(&stream).all_gather_v(&own, (&mut all, &[1, 2]))?;
    ///     gathered.push(all);
    /// }
    /// assert_eq!(gathered[0].copy_to_host()?.to_vec(), [1, 2, 3]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// See [operations](#operations).
    pub fn all_gather_v<S, M, D>(
        &mut self,
        source: &'g ArrayBase<S, D>,
        destination: (&'g mut ArrayBase<M, D>, &[usize]),
    ) -> Result<()>
    where
        S: Storage<Backend = B>,
        M: StorageMut<Backend = B, Elem = S::Elem>,
        D: Dimension,
    {
        if !self.is_group() {
            // One broadcast for each block: no library gathers blocks of different lengths.
            let name = self.element_name.clone();
            return self.communicator.group(self.stream, |group| {
                group.name_elements(name);
                group.all_gather_v(source, destination)
            });
        }
        let (operation, (destination, rows)) = ("all_gather_v", destination);
        let row = check_rows(self.stream, operation, destination.shape(), rows, self.size())?;
        let rank = self.communicator.rank();
        let own = [&rows[rank..=rank], &destination.shape()[1..]].concat();
        check_equal(self.stream, operation, source.shape(), &own)?;
        let from = self.packed(pack::source(self.stream, operation, source))?;
        let to = self.packed(pack::destination_of(self.stream, operation, destination, false))?;
        let call = |(root, rows): (usize, &usize)| Call::new::<S::Elem>(Kind::Broadcast { root }, rows * row);
        let calls: Vec<Call> = rows.iter().enumerate().map(call).collect();
        let (blocks, unpack) = to.blocks(&calls.iter().map(Call::bytes).collect::<Vec<_>>());
        let target = unpack.as_ref().map(|unpack| unpack.target.clone());
        let prepared = |(root, (call, block)): (usize, (Call, Place<'g, B>))| Prepared {
            call,
            source: (root == rank).then(|| from.clone()),
            destination: Some(block),
            in_place: false,
            // The elements are unpacked once, after all blocks.
            target: target.clone().filter(|_| root == 0),
        };
        self.add_calls(calls.into_iter().zip(blocks).enumerate().map(prepared).collect(), unpack)
    }

    /// Combines the elements of all ranks, and gives each rank the block of its number. The shapes are those of
    /// [`all_gather`](Self::all_gather), the other way round. In place the result replaces that block along the first axis, and
    /// the other blocks stay.
    ///
    /// # Errors
    /// See [operations](#operations).
    pub fn reduce_scatter<A, M, D, R>(
        &mut self,
        source: A,
        destination: &'g mut ArrayBase<M, D>,
        reduction: R,
    ) -> Result<()>
    where
        A: Source<'g, M::Elem, B>,
        M: StorageMut<Backend = B>,
        D: Dimension,
        R: Reduction<M::Elem>,
    {
        let computation = Some(Computation::of::<M::Elem, R>(reduction));
        self.add_pair(Kind::ReduceScatter, computation, Blocks::OfSource, source, destination)
    }

    /// Sends a block to each rank, and gets one from each. The first axis has one block for each rank, in their order.
    ///
    /// # Errors
    /// See [operations](#operations). Returns [`InvalidArgument`](gpumem_core::ErrorKind::InvalidArgument) if the length of
    /// the first axis is no multiple of the number of ranks.
    pub fn all_to_all<S, M, D>(
        &mut self,
        source: &'g ArrayBase<S, D>,
        destination: &'g mut ArrayBase<M, D>,
    ) -> Result<()>
    where
        S: Storage<Backend = B>,
        M: StorageMut<Backend = B, Elem = S::Elem>,
        D: Dimension,
    {
        self.add_pair(Kind::AllToAll, None, Blocks::OfBoth, source, destination)
    }

    /// As [`all_to_all`](Self::all_to_all), with blocks of different lengths: each array comes with its number of rows
    /// (indices of the first axis) for each rank.
    ///
    /// # Errors
    /// See [operations](#operations).
    pub fn all_to_all_v<S, M, D>(
        &mut self,
        source: (&'g ArrayBase<S, D>, &[usize]),
        destination: (&'g mut ArrayBase<M, D>, &[usize]),
    ) -> Result<()>
    where
        S: Storage<Backend = B>,
        M: StorageMut<Backend = B, Elem = S::Elem>,
        D: Dimension,
    {
        let (operation, size) = ("all_to_all_v", self.size());
        let ((source, sent), (destination, received)) = (source, destination);
        let row = check_rows(self.stream, operation, source.shape(), sent, size)?;
        let received_row = check_rows(self.stream, operation, destination.shape(), received, size)?;
        if row != received_row {
            return Err(invalid(self.stream, operation, "the rows of the two arrays differ in length"));
        }
        let rank = self.communicator.rank();
        if sent.get(rank) != received.get(rank) {
            let why = "this rank sends another number of rows to itself than it receives from itself";
            return Err(invalid(self.stream, operation, why));
        }
        let bytes = |rows: &[usize]| rows.iter().map(|rows| rows * row * size_of::<S::Elem>()).collect();
        let kind = Kind::AllToAllV { send: bytes(sent), receive: bytes(received) };
        let call = Call::new::<S::Elem>(kind, source.len());
        let from = self.packed(pack::source(self.stream, operation, source))?;
        let to = self.packed(pack::destination_of(self.stream, operation, destination, false))?;
        self.add(call, Some(from), Some(to), false)
    }

    /// Gives the elements of all ranks to the root, as [`all_gather`](Self::all_gather) does to all. Only the root needs a
    /// destination.
    ///
    /// # Errors
    /// See [operations](#operations).
    pub fn gather<S, D>(
        &mut self,
        source: &'g ArrayBase<S, D>,
        destination: Option<DeviceViewMut<'g, S::Elem, D, B>>,
        root: usize,
    ) -> Result<()>
    where
        S: Storage<Backend = B>,
        D: Dimension,
    {
        let operation = "gather";
        self.check_rank(operation, root)?;
        let destination = self.needed(operation, destination, self.communicator.rank() == root)?;
        if let Some(destination) = &destination {
            check_whole(self.stream, operation, (destination.shape(), source.shape()), self.size())?;
        }
        let call = Call::new::<S::Elem>(Kind::Gather { root }, source.len());
        let from = self.packed(pack::source(self.stream, operation, source))?;
        let to = destination.map(|view| pack::destination(self.stream, operation, view, false));
        let to = self.packed(to.transpose())?;
        self.add(call, Some(from), to, false)
    }

    /// Gives each rank its block of the root's elements. Only the root needs a source.
    ///
    /// # Errors
    /// See [operations](#operations).
    pub fn scatter<M, D>(
        &mut self,
        source: Option<DeviceView<'g, M::Elem, D, B>>,
        destination: &'g mut ArrayBase<M, D>,
        root: usize,
    ) -> Result<()>
    where
        M: StorageMut<Backend = B>,
        D: Dimension,
    {
        let operation = "scatter";
        self.check_rank(operation, root)?;
        let source = self.needed(operation, source, self.communicator.rank() == root)?;
        if let Some(source) = &source {
            check_whole(self.stream, operation, (source.shape(), destination.shape()), self.size())?;
        }
        let call = Call::new::<M::Elem>(Kind::Scatter { root }, destination.len());
        let from = source.map(|view| pack::source(self.stream, operation, &view).map(Place::into_owned));
        let from = self.packed(from.transpose())?;
        let to = self.packed(pack::destination_of(self.stream, operation, destination, false))?;
        self.add(call, from, Some(to), false)
    }

    /// Sends elements to another rank. The stream goes on when they have been received: to send and receive at once, use
    /// a [`group`](crate::Communicator::group). Sends from one rank to another are received in order.
    ///
    /// # Errors
    /// See [operations](#operations). Returns [`InvalidArgument`](gpumem_core::ErrorKind::InvalidArgument) for the rank
    /// itself, which can receive what it sends only in the same group.
    pub fn send<S, D>(&mut self, source: &'g ArrayBase<S, D>, to: usize) -> Result<()>
    where
        S: Storage<Backend = B>,
        D: Dimension,
    {
        self.check_peer("send", to)?;
        let call = Call::new::<S::Elem>(Kind::Send { to }, source.len());
        let from = self.packed(pack::source(self.stream, "send", source))?;
        self.add(call, Some(from), None, false)
    }

    /// Receives as many elements as another rank sends. The shapes may differ.
    ///
    /// # Errors
    /// As for [`send`](Self::send).
    pub fn receive<M, D>(&mut self, destination: &'g mut ArrayBase<M, D>, from: usize) -> Result<()>
    where
        M: StorageMut<Backend = B>,
        D: Dimension,
    {
        self.check_peer("receive", from)?;
        let call = Call::new::<M::Elem>(Kind::Receive { from }, destination.len());
        let to = self.packed(pack::destination_of(self.stream, "receive", destination, false))?;
        self.add(call, None, Some(to), false)
    }

    /// Makes the stream wait until the streams of all ranks have come so far.
    ///
    /// # Errors
    /// See [operations](#operations).
    pub fn barrier(&mut self) -> Result<()> {
        self.add(Call::new::<u8>(Kind::Barrier, 0), None, None, false)
    }

    /// Adds an operation from one array to another, or in place.
    fn add_pair<A, M, D>(
        &mut self,
        kind: Kind,
        computation: Option<Computation>,
        blocks: Blocks,
        source: A,
        destination: &'g mut ArrayBase<M, D>,
    ) -> Result<()>
    where
        A: Source<'g, M::Elem, B>,
        M: StorageMut<Backend = B>,
        D: Dimension,
    {
        let (operation, stream, size) = (kind.name(), self.stream, self.size());
        let (shape, in_place) = (destination.shape(), source.shape().is_none());
        match (blocks, source.shape()) {
            (Blocks::None, None) => {}
            (_, None) => check_blocks(stream, operation, shape, size)?,
            (Blocks::OfSource, Some(source)) => check_whole(stream, operation, (source, shape), size)?,
            (Blocks::OfDestination, Some(source)) => check_whole(stream, operation, (shape, source), size)?,
            (Blocks::None, Some(source)) => check_equal(stream, operation, source, shape)?,
            (Blocks::OfBoth, Some(source)) => {
                check_equal(stream, operation, source, shape)?;
                check_blocks(stream, operation, shape, size)?;
            }
        }
        let is_block = matches!(blocks, Blocks::None) || matches!(blocks, Blocks::OfSource) && !in_place;
        let count = if is_block { destination.len() } else { destination.len() / size };
        let call = Call { computation, ..Call::new::<M::Elem>(kind, count) };
        let from = self.packed(source.pack(stream, operation))?;
        let to = self.packed(pack::destination_of(stream, operation, destination, in_place))?;
        let (whole, own) = (to.place().clone(), self.communicator.rank() * call.bytes());
        let (from, to) = match (from, blocks) {
            (Some(from), _) => (from, to),
            (None, Blocks::OfSource) => {
                let own = whole.part(own, call.bytes());
                (whole, to.with_part(own))
            }
            (None, Blocks::OfDestination) => (whole.part(own, call.bytes()), to),
            (None, _) => (whole, to),
        };
        self.add(call, Some(from), Some(to), in_place)
    }

    /// Ends the communicator where there is no memory to pack an array, or a value. Whether there is differs from rank to rank: the others call
    /// the operation all the same, and would meet the next one of this rank.
    pub(crate) fn packed<T>(&self, packed: Result<T>) -> Result<T> {
        packed.inspect_err(|error| {
            if error.is_out_of_memory() {
                self.communicator.abort();
            }
        })
    }

    /// The array that only some ranks have: it is required there, and left out elsewhere.
    fn needed<S: Storage, D: Dimension>(
        &self,
        operation: &'static str,
        array: Option<ArrayBase<S, D>>,
        is_needed: bool,
    ) -> Result<Option<ArrayBase<S, D>>> {
        match array.filter(|_| is_needed) {
            None if is_needed => {
                Err(invalid(self.stream, operation, "the root needs the array of all ranks"))
            }
            array => Ok(array),
        }
    }
}
