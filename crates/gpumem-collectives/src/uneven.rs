//! Blocks of different lengths, to all ranks.

use crate::{
    Communicator, Group,
    blocks::{check_equal, check_rows},
    call::{Call, Kind},
    pack,
};
use gpumem_core::{Backend, Result};
use gpumem_runtime::{ArrayBase, Storage, StorageMut, Stream};
use ndarray::Dimension;

impl<B: Backend> Communicator<B> {
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
    ///     rank.all_gather_v(&stream, &own, (&mut all, &[1, 2]))?;
    ///     gathered.push(all);
    /// }
    /// assert_eq!(gathered[0].copy_to_host()?.to_vec(), [1, 2, 3]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// See [operations](#operations). Returns [`InvalidArgument`](gpumem_core::ErrorKind::InvalidArgument) if the numbers do
    /// not add up to the length of the destination's first axis.
    pub fn all_gather_v<S, M, D>(
        &self,
        stream: &Stream<B>,
        source: &ArrayBase<S, D>,
        destination: (&mut ArrayBase<M, D>, &[usize]),
    ) -> Result<()>
    where
        S: Storage<Backend = B>,
        M: StorageMut<Backend = B, Elem = S::Elem>,
        D: Dimension,
    {
        self.group(stream, |group| group.all_gather_v(source, destination))
    }
}

impl<'g, B: Backend> Group<'g, '_, B> {
    /// As [`Communicator::all_gather_v`].
    ///
    /// # Errors
    /// As there.
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
        let (operation, (destination, rows)) = ("all_gather_v", destination);
        let row = check_rows(self.stream, operation, destination.shape(), rows, self.size())?;
        let rank = self.communicator.rank();
        let own = [&rows[rank..=rank], &destination.shape()[1..]].concat();
        check_equal(self.stream, operation, source.shape(), &own)?;
        let from = pack::source(self.stream, operation, source)?;
        let (to, mut unpack) = pack::destination_of(self.stream, operation, destination, false)?;
        // One broadcast for each block: no library gathers blocks of different lengths.
        let mut before = 0;
        for (root, rows) in rows.iter().enumerate() {
            let call = Call::new::<S::Elem>(Kind::Broadcast { root }, rows * row);
            let block = to.part(before, call.bytes());
            before += call.bytes();
            let from = (root == rank).then(|| from.clone());
            // The elements are unpacked once, after all blocks.
            self.add(call, from, Some(block), unpack.take())?;
        }
        Ok(())
    }
}
