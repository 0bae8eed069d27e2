//! The operations, each as a part of a group.

use crate::{
    Group, Reduction,
    blocks::{check_blocks, check_equal, check_rows, check_whole},
    call::{Call, Kind, Place, invalid},
    pack,
};
use gpumem_core::{Backend, Element, Result};
use gpumem_runtime::{ArrayBase, DeviceView, DeviceViewMut, Storage, StorageMut};
use ndarray::Dimension;

impl<'g, B: Backend> Group<'g, '_, B> {
    /// As [`Communicator::all_reduce`](crate::Communicator::all_reduce).
    ///
    /// # Errors
    /// As there.
    pub fn all_reduce<S, M, D, R>(
        &mut self,
        source: &'g ArrayBase<S, D>,
        destination: &'g mut ArrayBase<M, D>,
        reduction: R,
    ) -> Result<()>
    where
        S: Storage<Backend = B>,
        M: StorageMut<Backend = B, Elem = S::Elem>,
        D: Dimension,
        R: Reduction<S::Elem>,
    {
        let (operation, _) = ("all_reduce", reduction);
        check_equal(self.stream, operation, source.shape(), destination.shape())?;
        let call = Call::new::<S::Elem>(Kind::AllReduce, source.len()).computing::<S::Elem, R>();
        let from = pack::source(self.stream, operation, source)?;
        let (to, unpack) = pack::destination_of(self.stream, operation, destination, false)?;
        self.add(call, Some(from), Some(to), unpack)
    }

    /// As [`Communicator::all_reduce_in_place`](crate::Communicator::all_reduce_in_place).
    ///
    /// # Errors
    /// As there.
    pub fn all_reduce_in_place<M, D, R>(&mut self, array: &'g mut ArrayBase<M, D>, reduction: R) -> Result<()>
    where
        M: StorageMut<Backend = B>,
        D: Dimension,
        R: Reduction<M::Elem>,
    {
        let (operation, _) = ("all_reduce", reduction);
        let call = Call::new::<M::Elem>(Kind::AllReduce, array.len()).computing::<M::Elem, R>();
        let (to, unpack) = pack::destination_of(self.stream, operation, array, true)?;
        self.add_in_place(call, to.clone(), to, unpack)
    }

    /// As [`Communicator::reduce`](crate::Communicator::reduce).
    ///
    /// # Errors
    /// As there.
    pub fn reduce<S, D, R>(
        &mut self,
        source: &'g ArrayBase<S, D>,
        destination: Option<DeviceViewMut<'g, S::Elem, D, B>>,
        reduction: R,
        root: usize,
    ) -> Result<()>
    where
        S: Storage<Backend = B>,
        D: Dimension,
        R: Reduction<S::Elem>,
    {
        let (operation, _) = ("reduce", reduction);
        self.check_rank(operation, root)?;
        let destination = self.at_root(operation, destination, root)?;
        if let Some(destination) = &destination {
            check_equal(self.stream, operation, source.shape(), destination.shape())?;
        }
        let call = Call::new::<S::Elem>(Kind::Reduce { root }, source.len()).computing::<S::Elem, R>();
        let from = pack::source(self.stream, operation, source)?;
        let to =
            destination.map(|view| pack::destination(self.stream, operation, view, false)).transpose()?;
        let (to, unpack) = to.unzip();
        self.add(call, Some(from), to, unpack.flatten())
    }

    /// As [`Communicator::reduce_in_place`](crate::Communicator::reduce_in_place).
    ///
    /// # Errors
    /// As there.
    pub fn reduce_in_place<M, D, R>(
        &mut self,
        array: &'g mut ArrayBase<M, D>,
        reduction: R,
        root: usize,
    ) -> Result<()>
    where
        M: StorageMut<Backend = B>,
        D: Dimension,
        R: Reduction<M::Elem>,
    {
        let (operation, _) = ("reduce", reduction);
        self.check_rank(operation, root)?;
        let call = Call::new::<M::Elem>(Kind::Reduce { root }, array.len()).computing::<M::Elem, R>();
        if self.communicator.rank() != root {
            let from = pack::source(self.stream, operation, array)?;
            return self.add(call, Some(from), None, None);
        }
        let (to, unpack) = pack::destination_of(self.stream, operation, array, true)?;
        self.add_in_place(call, to.clone(), to, unpack)
    }

    /// As [`Communicator::broadcast`](crate::Communicator::broadcast).
    ///
    /// # Errors
    /// As there.
    pub fn broadcast<M, D>(&mut self, array: &'g mut ArrayBase<M, D>, root: usize) -> Result<()>
    where
        M: StorageMut<Backend = B>,
        D: Dimension,
    {
        let operation = "broadcast";
        self.check_rank(operation, root)?;
        let call = Call::new::<M::Elem>(Kind::Broadcast { root }, array.len());
        if self.communicator.rank() == root {
            let from = pack::source(self.stream, operation, array)?;
            return self.add(call, Some(from), None, None);
        }
        let (to, unpack) = pack::destination_of(self.stream, operation, array, false)?;
        self.add(call, None, Some(to), unpack)
    }

    /// As [`Communicator::all_gather`](crate::Communicator::all_gather).
    ///
    /// # Errors
    /// As there.
    pub fn all_gather<S, D, M, E>(
        &mut self,
        source: &'g ArrayBase<S, D>,
        destination: &'g mut ArrayBase<M, E>,
    ) -> Result<()>
    where
        S: Storage<Backend = B>,
        D: Dimension,
        M: StorageMut<Backend = B, Elem = S::Elem>,
        E: Dimension,
    {
        let operation = "all_gather";
        check_whole(self.stream, operation, (destination.shape(), source.shape()), self.size())?;
        let call = Call::new::<S::Elem>(Kind::AllGather, source.len());
        let from = pack::source(self.stream, operation, source)?;
        let (to, unpack) = pack::destination_of(self.stream, operation, destination, false)?;
        self.add(call, Some(from), Some(to), unpack)
    }

    /// As [`Communicator::all_gather_in_place`](crate::Communicator::all_gather_in_place).
    ///
    /// # Errors
    /// As there.
    pub fn all_gather_in_place<M, D>(&mut self, array: &'g mut ArrayBase<M, D>) -> Result<()>
    where
        M: StorageMut<Backend = B>,
        D: Dimension,
    {
        let operation = "all_gather";
        check_blocks(self.stream, operation, array.shape(), self.size())?;
        let call = Call::new::<M::Elem>(Kind::AllGather, array.len() / self.size());
        let (to, unpack) = pack::destination_of(self.stream, operation, array, true)?;
        let own = to.block(self.communicator.rank(), call.bytes());
        self.add_in_place(call, own, to, unpack)
    }

    /// As [`Communicator::reduce_scatter`](crate::Communicator::reduce_scatter).
    ///
    /// # Errors
    /// As there.
    pub fn reduce_scatter<S, D, M, E, R>(
        &mut self,
        source: &'g ArrayBase<S, D>,
        destination: &'g mut ArrayBase<M, E>,
        reduction: R,
    ) -> Result<()>
    where
        S: Storage<Backend = B>,
        D: Dimension,
        M: StorageMut<Backend = B, Elem = S::Elem>,
        E: Dimension,
        R: Reduction<S::Elem>,
    {
        let (operation, _) = ("reduce_scatter", reduction);
        check_whole(self.stream, operation, (source.shape(), destination.shape()), self.size())?;
        let call = Call::new::<S::Elem>(Kind::ReduceScatter, destination.len()).computing::<S::Elem, R>();
        let from = pack::source(self.stream, operation, source)?;
        let (to, unpack) = pack::destination_of(self.stream, operation, destination, false)?;
        self.add(call, Some(from), Some(to), unpack)
    }

    /// As [`Communicator::reduce_scatter_in_place`](crate::Communicator::reduce_scatter_in_place).
    ///
    /// # Errors
    /// As there.
    pub fn reduce_scatter_in_place<M, D, R>(
        &mut self,
        array: &'g mut ArrayBase<M, D>,
        reduction: R,
    ) -> Result<()>
    where
        M: StorageMut<Backend = B>,
        D: Dimension,
        R: Reduction<M::Elem>,
    {
        let (operation, _) = ("reduce_scatter", reduction);
        check_blocks(self.stream, operation, array.shape(), self.size())?;
        let count = array.len() / self.size();
        let call = Call::new::<M::Elem>(Kind::ReduceScatter, count).computing::<M::Elem, R>();
        let (all, unpack) = pack::destination_of(self.stream, operation, array, true)?;
        let own = all.block(self.communicator.rank(), call.bytes());
        self.add_in_place(call, all, own, unpack)
    }

    /// As [`Communicator::all_to_all`](crate::Communicator::all_to_all).
    ///
    /// # Errors
    /// As there.
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
        let operation = "all_to_all";
        check_equal(self.stream, operation, source.shape(), destination.shape())?;
        check_blocks(self.stream, operation, source.shape(), self.size())?;
        let call = Call::new::<S::Elem>(Kind::AllToAll, source.len() / self.size());
        let from = pack::source(self.stream, operation, source)?;
        let (to, unpack) = pack::destination_of(self.stream, operation, destination, false)?;
        self.add(call, Some(from), Some(to), unpack)
    }

    /// As [`Communicator::all_to_all_v`](crate::Communicator::all_to_all_v).
    ///
    /// # Errors
    /// As there.
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
        let from = pack::source(self.stream, operation, source)?;
        let (to, unpack) = pack::destination_of(self.stream, operation, destination, false)?;
        self.add(call, Some(from), Some(to), unpack)
    }

    /// As [`Communicator::gather`](crate::Communicator::gather).
    ///
    /// # Errors
    /// As there.
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
        let destination = self.at_root(operation, destination, root)?;
        if let Some(destination) = &destination {
            check_whole(self.stream, operation, (destination.shape(), source.shape()), self.size())?;
        }
        let call = Call::new::<S::Elem>(Kind::Gather { root }, source.len());
        let from = pack::source(self.stream, operation, source)?;
        let to =
            destination.map(|view| pack::destination(self.stream, operation, view, false)).transpose()?;
        let (to, unpack) = to.unzip();
        self.add(call, Some(from), to, unpack.flatten())
    }

    /// As [`Communicator::scatter`](crate::Communicator::scatter).
    ///
    /// # Errors
    /// As there.
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
        let source = self.at_root(operation, source, root)?;
        if let Some(source) = &source {
            check_whole(self.stream, operation, (source.shape(), destination.shape()), self.size())?;
        }
        let call = Call::new::<M::Elem>(Kind::Scatter { root }, destination.len());
        let from = source
            .map(|view| pack::source(self.stream, operation, &view).map(Place::into_owned))
            .transpose()?;
        let (to, unpack) = pack::destination_of(self.stream, operation, destination, false)?;
        self.add(call, from, Some(to), unpack)
    }

    /// As [`Communicator::send`](crate::Communicator::send).
    ///
    /// # Errors
    /// As there.
    pub fn send<S, D>(&mut self, source: &'g ArrayBase<S, D>, to: usize) -> Result<()>
    where
        S: Storage<Backend = B>,
        D: Dimension,
    {
        self.check_rank("send", to)?;
        let call = Call::new::<S::Elem>(Kind::Send { to }, source.len());
        let from = pack::source(self.stream, "send", source)?;
        self.add(call, Some(from), None, None)
    }

    /// As [`Communicator::receive`](crate::Communicator::receive).
    ///
    /// # Errors
    /// As there.
    pub fn receive<M, D>(&mut self, destination: &'g mut ArrayBase<M, D>, from: usize) -> Result<()>
    where
        M: StorageMut<Backend = B>,
        D: Dimension,
    {
        self.check_rank("receive", from)?;
        let call = Call::new::<M::Elem>(Kind::Receive { from }, destination.len());
        let (to, unpack) = pack::destination_of(self.stream, "receive", destination, false)?;
        self.add(call, None, Some(to), unpack)
    }

    /// As [`Communicator::barrier`](crate::Communicator::barrier).
    ///
    /// # Errors
    /// As there.
    pub fn barrier(&mut self) -> Result<()> {
        self.add(Call::new::<u8>(Kind::Barrier, 0), None, None, None)
    }

    /// The array that only the root has: it is required there, and left out elsewhere.
    fn at_root<T: Element, S: Storage<Elem = T, Backend = B>, D: Dimension>(
        &self,
        operation: &'static str,
        array: Option<ArrayBase<S, D>>,
        root: usize,
    ) -> Result<Option<ArrayBase<S, D>>> {
        if self.communicator.rank() != root {
            return Ok(None);
        }
        match array {
            Some(array) => Ok(Some(array)),
            None => Err(invalid(self.stream, operation, "the root needs the array of all ranks")),
        }
    }
}

impl<B: Backend> Place<'_, B> {
    /// The block of this number, of blocks of so many bytes.
    fn block(&self, number: usize, bytes: usize) -> Self {
        self.part(number * bytes, bytes)
    }

    /// So many bytes from that one on.
    pub(crate) fn part(&self, from: usize, bytes: usize) -> Self {
        let start = self.extent.start + from;
        Self { memory: self.memory.clone(), extent: start..start + bytes }
    }
}
