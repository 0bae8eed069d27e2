//! A value of the host.

use crate::{Communicator, Reduction};
use gpumem_core::{Backend, Element, Result};
use gpumem_runtime::{Stream, internal::may_block};

impl<B: Backend> Communicator<B> {
    /// Combines a value of each rank, and returns the result to all. Waits for the other ranks, so each rank needs a thread of
    /// its own.
    ///
    /// # Examples
    /// ```
    /// use gpumem_collectives::{Communicator, CommunicatorId, Max, Options};
    /// # use gpumem_host::Host;
    /// # type Device = gpumem_runtime::Device<Host>;
    /// let id = CommunicatorId::new();
    /// std::thread::scope(|scope| {
    ///     for rank in 0..2 {
    ///         scope.spawn(move || -> gpumem_core::Result<()> {
    ///             let device = Device::open("host")?;
    ///             let communicator = Communicator::join(&device, &id, rank, 2, &Options::default())?;
    ///             let largest = communicator.all_reduce_scalar(&device.stream()?, rank as f64, Max)?;
    ///             assert_eq!(largest, 1.0);
    ///             Ok(())
    ///         });
    ///     }
    /// });
    /// ```
    ///
    /// # Errors
    /// See [operations](#operations). Returns [`Collective`](gpumem_core::ErrorKind::Collective) if the operation fails, and
    /// [`BlockingInCallback`](gpumem_core::ErrorKind::BlockingInCallback) in a callback.
    pub fn all_reduce_scalar<T: Element, R: Reduction<T>>(
        &self,
        stream: &Stream<B>,
        value: T,
        reduction: R,
    ) -> Result<T> {
        const OPERATION: &str = "all_reduce_scalar";
        may_block(OPERATION)?;
        self.check_stream(stream, OPERATION)?;
        let in_operation = |error: gpumem_core::Error| error.in_operation(OPERATION);
        let mut array = stream.to_device(&[value]).map_err(in_operation)?;
        self.all_reduce_in_place(stream, &mut array, reduction).map_err(in_operation)?;
        // On the rank's stream: those of the device would wait for other ranks that share it.
        let result = stream.copy_to_host(&array).and_then(|copy| Ok(copy.view()?[0]));
        result.map_err(|error| match self.failure() {
            Some(failure) => self.device().core_by(crate::KEY).error(OPERATION, Box::new(failure)),
            None => in_operation(error),
        })
    }
}
