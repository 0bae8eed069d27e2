//! Memory that is kept outside of this module and is freed when memory is out.

use std::{fmt, sync::OnceLock};

/// Frees idle memory that is kept for transfers. Set once, when the device is made.
#[derive(Default)]
pub struct TrimHook(OnceLock<Box<dyn Fn() + Send + Sync>>);

impl TrimHook {
    /// Sets the function that frees the memory. The first one stays.
    pub fn set(&self, trim: impl Fn() + Send + Sync + 'static) {
        let _ = self.0.set(Box::new(trim));
    }

    /// Gives the memory back.
    pub(super) fn run(&self) {
        if let Some(trim) = self.0.get() {
            trim();
        }
    }
}

impl fmt::Debug for TrimHook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TrimHook").finish_non_exhaustive()
    }
}
