//! A device that cannot be used any more, and why.

use crate::{Error, ErrorKind, Result};
use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicBool, Ordering},
};

/// The first failure that made a device unusable, which a backend keeps with its device. A driver reports such a
/// failure in all later calls, in other words each time; callers get the first report.
#[derive(Debug, Default)]
#[repr(C)] // what every call reads comes first
pub struct LostState {
    is_lost: AtomicBool,
    cause: Mutex<Option<String>>,
}

impl LostState {
    /// Whether the device is lost.
    #[inline]
    pub fn is_lost(&self) -> bool {
        self.is_lost.load(Ordering::Acquire)
    }

    /// Whether the device may be used.
    ///
    /// # Errors
    /// Returns [`ErrorKind::DeviceLost`] with the first cause.
    #[inline]
    pub fn check(&self, backend: &'static str, operation: &'static str) -> Result<()> {
        if self.is_lost() { Err(self.error(backend, operation, String::new)) } else { Ok(()) }
    }

    /// The error of a lost device. It is lost from now on, and `cause` is why if it is the first.
    #[cold]
    pub fn error(
        &self,
        backend: &'static str,
        operation: &'static str,
        cause: impl FnOnce() -> String,
    ) -> Error {
        let mut first = self.cause.lock().unwrap_or_else(PoisonError::into_inner);
        let cause = first.get_or_insert_with(cause).clone();
        self.is_lost.store(true, Ordering::Release);
        Error::new(backend, operation, ErrorKind::DeviceLost { cause })
    }

    /// The device can be used again: a reset has mended it.
    pub fn forget(&self) {
        let mut first = self.cause.lock().unwrap_or_else(PoisonError::into_inner);
        *first = None;
        self.is_lost.store(false, Ordering::Release);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn every_later_error_reports_the_first_cause() {
        let loss = LostState::default();
        assert_eq!(loss.check("test", "a"), Ok(()));
        let first = loss.error("test", "b", || "the first".to_owned());
        assert!(first.is_device_lost() && loss.is_lost());
        assert_eq!(loss.error("test", "c", || "the second".to_owned()).kind(), first.kind());
        let told = loss.check("test", "d").unwrap_err();
        assert_eq!((told.kind(), told.operation()), (first.kind(), "d"));
        loss.forget();
        assert_eq!(loss.check("test", "e"), Ok(()));
        let next = loss.error("test", "f", || "another".to_owned());
        assert_eq!(next.kind(), &ErrorKind::DeviceLost { cause: "another".to_owned() });
    }
}
