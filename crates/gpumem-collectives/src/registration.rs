//! Arrays that the library of a GPU knows.

use crate::{Communicator, call::Place};
use gpumem_core::{Backend, ErrorKind, Result};
use gpumem_runtime::{ArrayBase, Storage};
use ndarray::Dimension;

impl<B: Backend> Communicator<B> {
    /// Tells the library of a GPU of the memory of an array, so that it may move the bytes without buffers of its own. All ranks
    /// register the arrays of an operation, or none does. Calls count. On the host there is nothing to do.
    ///
    /// The memory is held until it is [taken back](Self::deregister) as often or the communicator has ended, also if the array is
    /// dropped.
    ///
    /// # Errors
    /// Returns [`WrongDevice`](ErrorKind::WrongDevice) for an array of another device, [`Collective`](ErrorKind::Collective) if the
    /// communicator has failed, [`Unsupported`](ErrorKind::Unsupported) for memory that is page-locked for a scope and for a library
    /// older than NCCL 2.19, and [`Driver`](ErrorKind::Driver) if it reports a failure.
    pub fn register<S, D>(&self, array: &ArrayBase<S, D>) -> Result<()>
    where
        S: Storage<Backend = B>,
        D: Dimension,
    {
        self.engine("register")?.register(self.own_place("register", array)?)
    }

    /// Takes back a registration. The last one of the array waits until the rank's operations under way are done.
    ///
    /// # Errors
    /// Returns [`InvalidArgument`](ErrorKind::InvalidArgument) on GPUs if the array is not registered,
    /// [`BlockingInCallback`](ErrorKind::BlockingInCallback) in a callback, and otherwise as [`register`](Self::register).
    pub fn deregister<S, D>(&self, array: &ArrayBase<S, D>) -> Result<()>
    where
        S: Storage<Backend = B>,
        D: Dimension,
    {
        self.engine("deregister")?.deregister(&self.own_place("deregister", array)?)
    }

    fn own_place<'a, S, D>(&self, operation: &'static str, array: &'a ArrayBase<S, D>) -> Result<Place<'a, B>>
    where
        S: Storage<Backend = B>,
        D: Dimension,
    {
        let (place, core) = (Place::of(array), self.device().core_by(crate::KEY));
        place.memory.check(operation)?;
        core.check_same(operation, "array", place.memory.context())?;
        if place.memory.is_of_scope() {
            // The library would know it after the scope, when the addresses may be those of other memory.
            let what = "a registration of memory that is locked for a scope";
            return Err(core.error(operation, ErrorKind::Unsupported { what }));
        }
        Ok(place)
    }
}
