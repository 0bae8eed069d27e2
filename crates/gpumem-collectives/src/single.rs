//! The operations, each by itself.

use crate::{Communicator, Reduction, call::invalid};
use gpumem_core::{Backend, Result};
use gpumem_runtime::{ArrayBase, DeviceView, DeviceViewMut, Storage, StorageMut, Stream};
use ndarray::Dimension;

/// # Operations
///
/// All of them take arrays and views of any layout on the device of the stream, and return at once. They return these
/// errors, and have enqueued nothing then:
///
/// * [`ShapeMismatch`](gpumem_core::LayoutError::ShapeMismatch) if shapes do not fit;
/// * [`InvalidArgument`](gpumem_core::ErrorKind::InvalidArgument) for a root or a peer that is no rank, or an array that is
///   missing at the root;
/// * [`WrongDevice`](gpumem_core::ErrorKind::WrongDevice) if the stream or an array belongs to another device;
/// * [`Poisoned`](gpumem_core::ErrorKind::Poisoned) for a source that failed work was to write;
/// * [`Collective`](gpumem_core::ErrorKind::Collective) if the operation cannot succeed, as far as that is known already.
impl<B: Backend> Communicator<B> {
    /// Combines the elements of all ranks, and gives the result to each. `source` and `destination` have the same shape, on
    /// all ranks.
    ///
    /// # Errors
    /// See [operations](#operations).
    pub fn all_reduce<S, M, D, R>(
        &self,
        stream: &Stream<B>,
        source: &ArrayBase<S, D>,
        destination: &mut ArrayBase<M, D>,
        reduction: R,
    ) -> Result<()>
    where
        S: Storage<Backend = B>,
        M: StorageMut<Backend = B, Elem = S::Elem>,
        D: Dimension,
        R: Reduction<S::Elem>,
    {
        self.group(stream, |group| group.all_reduce(source, destination, reduction))
    }

    /// As [`all_reduce`](Self::all_reduce), and the result replaces the elements.
    ///
    /// # Examples
    /// ```
    /// use gpumem_collectives::{Communicator, Max};
    /// # use gpumem_host::Host;
    /// # type Device = gpumem_runtime::Device<Host>;
    /// # fn main() -> gpumem_core::Result<()> {
    /// # let device = Device::open("host")?;
    /// let ranks = Communicator::all(&[device.clone(), device.clone()])?;
    /// let (first, second) = (device.stream()?, device.stream()?); // one stream for each rank
    /// let mut arrays = [first.to_device(&[1, 5])?, second.to_device(&[3, 2])?];
    /// for ((rank, stream), array) in ranks.iter().zip([&first, &second]).zip(&mut arrays) {
    ///     rank.all_reduce_in_place(stream, array, Max)?;
    /// }
    /// assert_eq!(arrays[0].copy_to_host()?.to_vec(), [3, 5]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// See [operations](#operations).
    pub fn all_reduce_in_place<M, D, R>(
        &self,
        stream: &Stream<B>,
        array: &mut ArrayBase<M, D>,
        reduction: R,
    ) -> Result<()>
    where
        M: StorageMut<Backend = B>,
        D: Dimension,
        R: Reduction<M::Elem>,
    {
        self.group(stream, |group| group.all_reduce_in_place(array, reduction))
    }

    /// Combines the elements of all ranks, and gives the result to the root. Only the root needs a destination, of the
    /// source's shape; on other ranks it is left alone.
    ///
    /// # Errors
    /// See [operations](#operations).
    pub fn reduce<'a, S, D, R>(
        &self,
        stream: &Stream<B>,
        source: &'a ArrayBase<S, D>,
        destination: Option<DeviceViewMut<'a, S::Elem, D, B>>,
        reduction: R,
        root: usize,
    ) -> Result<()>
    where
        S: Storage<Backend = B>,
        D: Dimension,
        R: Reduction<S::Elem>,
    {
        self.group(stream, |group| group.reduce(source, destination, reduction, root))
    }

    /// As [`reduce`](Self::reduce), and the result replaces the elements of the root.
    ///
    /// # Errors
    /// See [operations](#operations).
    pub fn reduce_in_place<M, D, R>(
        &self,
        stream: &Stream<B>,
        array: &mut ArrayBase<M, D>,
        reduction: R,
        root: usize,
    ) -> Result<()>
    where
        M: StorageMut<Backend = B>,
        D: Dimension,
        R: Reduction<M::Elem>,
    {
        self.group(stream, |group| group.reduce_in_place(array, reduction, root))
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
    ///     rank.broadcast(&device.stream()?, array, 0)?;
    /// }
    /// assert_eq!(arrays[1].copy_to_host()?.to_vec(), [1, 2]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// See [operations](#operations).
    pub fn broadcast<M, D>(&self, stream: &Stream<B>, array: &mut ArrayBase<M, D>, root: usize) -> Result<()>
    where
        M: StorageMut<Backend = B>,
        D: Dimension,
    {
        self.group(stream, |group| group.broadcast(array, root))
    }

    /// Gives the elements of all ranks to each, in the order of the ranks: along the first axis, whose length is then that of
    /// all ranks together, or along a further axis before it, whose length is the number of ranks.
    ///
    /// # Errors
    /// See [operations](#operations).
    pub fn all_gather<S, D, M, E>(
        &self,
        stream: &Stream<B>,
        source: &ArrayBase<S, D>,
        destination: &mut ArrayBase<M, E>,
    ) -> Result<()>
    where
        S: Storage<Backend = B>,
        D: Dimension,
        M: StorageMut<Backend = B, Elem = S::Elem>,
        E: Dimension,
    {
        self.group(stream, |group| group.all_gather(source, destination))
    }

    /// As [`all_gather`](Self::all_gather), where each rank's own elements are in their place already: the block of its
    /// number along the first axis.
    ///
    /// # Errors
    /// See [operations](#operations).
    pub fn all_gather_in_place<M, D>(&self, stream: &Stream<B>, array: &mut ArrayBase<M, D>) -> Result<()>
    where
        M: StorageMut<Backend = B>,
        D: Dimension,
    {
        self.group(stream, |group| group.all_gather_in_place(array))
    }

    /// Combines the elements of all ranks, and gives each rank the block of its number. The shapes are those of
    /// [`all_gather`](Self::all_gather), the other way round.
    ///
    /// # Errors
    /// See [operations](#operations).
    pub fn reduce_scatter<S, D, M, E, R>(
        &self,
        stream: &Stream<B>,
        source: &ArrayBase<S, D>,
        destination: &mut ArrayBase<M, E>,
        reduction: R,
    ) -> Result<()>
    where
        S: Storage<Backend = B>,
        D: Dimension,
        M: StorageMut<Backend = B, Elem = S::Elem>,
        E: Dimension,
        R: Reduction<S::Elem>,
    {
        self.group(stream, |group| group.reduce_scatter(source, destination, reduction))
    }

    /// As [`reduce_scatter`](Self::reduce_scatter), and the result replaces the block of the rank's number along the first
    /// axis. The other blocks stay.
    ///
    /// # Errors
    /// See [operations](#operations).
    pub fn reduce_scatter_in_place<M, D, R>(
        &self,
        stream: &Stream<B>,
        array: &mut ArrayBase<M, D>,
        reduction: R,
    ) -> Result<()>
    where
        M: StorageMut<Backend = B>,
        D: Dimension,
        R: Reduction<M::Elem>,
    {
        self.group(stream, |group| group.reduce_scatter_in_place(array, reduction))
    }

    /// Sends a block to each rank, and gets one from each. The first axis has one block for each rank, in their order.
    ///
    /// # Errors
    /// See [operations](#operations). Returns [`InvalidArgument`](gpumem_core::ErrorKind::InvalidArgument) if the length of
    /// the first axis is no multiple of the number of ranks.
    pub fn all_to_all<S, M, D>(
        &self,
        stream: &Stream<B>,
        source: &ArrayBase<S, D>,
        destination: &mut ArrayBase<M, D>,
    ) -> Result<()>
    where
        S: Storage<Backend = B>,
        M: StorageMut<Backend = B, Elem = S::Elem>,
        D: Dimension,
    {
        self.group(stream, |group| group.all_to_all(source, destination))
    }

    /// As [`all_to_all`](Self::all_to_all), with blocks of different lengths: each array comes with its number of rows
    /// (indices of the first axis) for each rank.
    ///
    /// # Errors
    /// See [operations](#operations). Returns [`InvalidArgument`](gpumem_core::ErrorKind::InvalidArgument) if the numbers do
    /// not add up to the length of the first axis.
    pub fn all_to_all_v<S, M, D>(
        &self,
        stream: &Stream<B>,
        source: (&ArrayBase<S, D>, &[usize]),
        destination: (&mut ArrayBase<M, D>, &[usize]),
    ) -> Result<()>
    where
        S: Storage<Backend = B>,
        M: StorageMut<Backend = B, Elem = S::Elem>,
        D: Dimension,
    {
        self.group(stream, |group| group.all_to_all_v(source, destination))
    }

    /// Gives the elements of all ranks to the root, as [`all_gather`](Self::all_gather) does to all. Only the root needs a
    /// destination.
    ///
    /// # Errors
    /// See [operations](#operations).
    pub fn gather<'a, S, D>(
        &self,
        stream: &Stream<B>,
        source: &'a ArrayBase<S, D>,
        destination: Option<DeviceViewMut<'a, S::Elem, D, B>>,
        root: usize,
    ) -> Result<()>
    where
        S: Storage<Backend = B>,
        D: Dimension,
    {
        self.group(stream, |group| group.gather(source, destination, root))
    }

    /// Gives each rank its block of the root's elements. Only the root needs a source.
    ///
    /// # Errors
    /// See [operations](#operations).
    pub fn scatter<'a, M, D>(
        &self,
        stream: &Stream<B>,
        source: Option<DeviceView<'a, M::Elem, D, B>>,
        destination: &'a mut ArrayBase<M, D>,
        root: usize,
    ) -> Result<()>
    where
        M: StorageMut<Backend = B>,
        D: Dimension,
    {
        self.group(stream, |group| group.scatter(source, destination, root))
    }

    /// Sends elements to another rank. The stream goes on when they have been received: to send and receive at once, use
    /// a [`group`](Self::group). Sends from one rank to another are received in order.
    ///
    /// # Errors
    /// See [operations](#operations). Returns [`InvalidArgument`](gpumem_core::ErrorKind::InvalidArgument) for the rank
    /// itself, which can receive what it sends only in the same group.
    pub fn send<S, D>(&self, stream: &Stream<B>, source: &ArrayBase<S, D>, to: usize) -> Result<()>
    where
        S: Storage<Backend = B>,
        D: Dimension,
    {
        self.check_peer(stream, "send", to)?;
        self.group(stream, |group| group.send(source, to))
    }

    /// Receives as many elements as another rank sends. The shapes may differ.
    ///
    /// # Errors
    /// As for [`send`](Self::send).
    pub fn receive<M, D>(
        &self,
        stream: &Stream<B>,
        destination: &mut ArrayBase<M, D>,
        from: usize,
    ) -> Result<()>
    where
        M: StorageMut<Backend = B>,
        D: Dimension,
    {
        self.check_peer(stream, "receive", from)?;
        self.group(stream, |group| group.receive(destination, from))
    }

    /// Makes the stream wait until the streams of all ranks have come so far.
    ///
    /// # Errors
    /// See [operations](#operations).
    pub fn barrier(&self, stream: &Stream<B>) -> Result<()> {
        self.group(stream, |group| group.barrier())
    }

    fn check_peer(&self, stream: &Stream<B>, operation: &'static str, peer: usize) -> Result<()> {
        if peer != self.rank() {
            return Ok(());
        }
        Err(invalid(stream, operation, "a rank receives what it sends itself only in the same group"))
    }
}
