//! A value of the host.

use crate::{Communicator, InPlace, Reduction, choose::refuse_recording};
use gpumem_core::{Backend, CollectiveError, Element, Error, ErrorKind, NotRecorded, Result};
use gpumem_runtime::{Stream, internal::may_block};

impl<B: Backend> Communicator<B> {
    /// Combines a value of each rank, and returns the result to all. Waits for the other ranks, so each rank needs a thread of
    /// its own.
    ///
    /// # Examples
    /// ```
    /// use gpumem_collectives::{Communicator, CommunicatorId, InPlace, Max, Options};
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
    /// As for [`all_reduce`](crate::Operations::all_reduce). Returns [`Collective`](gpumem_core::ErrorKind::Collective) if the operation fails, and
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
        refuse_recording(OPERATION, stream.device(), NotRecorded::Wait)?;
        let in_operation = |error: Error| error.in_operation(OPERATION);
        let mut operations = self.on(stream);
        let mut array = operations.packed(stream.to_device(&[value])).map_err(in_operation)?;
        operations.all_reduce(InPlace, &mut array, reduction).map_err(in_operation)?;
        // On the rank's stream: those of the device would wait for other ranks that share it.
        let result = stream.copy_to_host(&array).and_then(|copy| Ok(copy.view()?[0]));
        result.map_err(|error| match cause(&error, || self.failure()) {
            Some(failure) => self.device().core_by(crate::KEY).error(OPERATION, Box::new(failure)),
            None => in_operation(error),
        })
    }
}

/// The failed operation behind an error of reading its result, if one is. The bytes know it. Who waits for the work itself is told
/// only that it failed, which is the rank's last failure.
#[cold]
fn cause(error: &Error, last: impl FnOnce() -> Option<CollectiveError>) -> Option<CollectiveError> {
    match error.kind() {
        ErrorKind::Poisoned { failure, .. } => failure.collective.as_deref().cloned(),
        ErrorKind::AsynchronousFault { .. } => last(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpumem_core::{CollectiveCause, Failure};
    use std::sync::Arc;

    #[test]
    fn only_a_failed_operation_is_the_cause_of_an_error() {
        let of = |sequence| {
            CollectiveError::new("all_reduce", sequence, (0, 2), CollectiveCause::Aborted { rank: 1 })
        };
        let found = |kind| cause(&Error::new("host", "copy_to_host", kind), || Some(of(1)));
        let poisoned = |failure| ErrorKind::Poisoned { bytes: 0..4, failure: Arc::new(failure) };
        assert_eq!(found(poisoned(Failure::of_collective("host:0", of(2)))), Some(of(2)), "its own");
        assert_eq!(found(poisoned(Failure::new("fill", "host:0", "why"))), None);
        assert_eq!(found(ErrorKind::AsynchronousFault { what: String::new() }), Some(of(1)));
        assert_eq!(found(ErrorKind::NotReady), None, "an error of the copy, after an earlier failure");
    }
}
