//! The run-time choice as a backend: its types, and what belongs to no value of them.

use super::{
    AnyBarrier, AnyBuffer, AnyDevice, AnyEvent, AnyKernel, AnyModule, AnyStream, ArchitectureCompiler,
    CANDIDATES, COMPILERS,
};
use crate::select;
use gpumem_core::{Backend, CompileOptions, DeviceInfo, DeviceSelector, Error, ErrorKind, LoadError, Result};

/// The enabled backends as one: the program chooses the backend of a device at run time.
///
/// Its own name, `any`, selects nothing; a [`DeviceSelector`] names one of the [enabled](AnyBackend::enabled) backends.
/// A call with objects of two backends returns [`ErrorKind::BackendMismatch`](crate::ErrorKind::BackendMismatch); `release`
/// returns the buffer with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct AnyBackend;

/// Whether one of the backends wants to be told about memory that is not in use, and telling each that does.
macro_rules! poisoning {
    (=> $(#[$enabled:meta] $name:ident = $backend:ty,)*) => {
        const WANTS_POISONING: bool = {
            let mut is_wanted = false;
            $(#[$enabled] {
                is_wanted |= <$backend>::WANTS_POISONING;
            })*
            is_wanted
        };

        unsafe fn set_poisoned(address: u64, bytes: usize, is_lent: bool) {
            $(#[$enabled]
            if <$backend>::WANTS_POISONING {
                // SAFETY: the caller's promise. The backends that the memory does not belong to do nothing.
                unsafe { <$backend>::set_poisoned(address, bytes, is_lent) };
            })*
        }
    };
}

// SAFETY: every call is forwarded to an enabled backend.
#[deny(clippy::missing_trait_methods, reason = "a default would not ask the backend")]
unsafe impl Backend for AnyBackend {
    const NAME: &'static str = "any";

    type Device = AnyDevice;
    type Buffer = AnyBuffer;
    type Stream = AnyStream;
    type Event = AnyEvent;
    type Barrier = AnyBarrier;
    type Module = AnyModule;
    type Kernel = AnyKernel;

    /// Tells whether one of the enabled backends can be used.
    fn probe() -> Result<(), LoadError> {
        select::probe(CANDIDATES)
    }

    /// The devices of all enabled backends, the preferred backend's first. A backend that cannot be used adds none;
    /// [`unavailable`](AnyBackend::unavailable) says why.
    fn devices() -> Result<Vec<DeviceInfo>> {
        Ok(select::devices(CANDIDATES).0)
    }

    fn open(selector: &DeviceSelector) -> Result<AnyDevice> {
        select::open(CANDIDATES, selector)
    }

    #[inline]
    fn open_default() -> Result<AnyDevice> {
        AnyBackend::open_default()
    }

    fn open_first_available() -> Result<AnyDevice> {
        Ok(AnyBackend::open_first_available()?.0)
    }

    backends! { poisoning! }

    /// Uses the enabled backend that has the architecture.
    fn compile_for(
        architecture: &str,
        text: &dyn Fn(u32) -> String,
        options: &CompileOptions,
    ) -> Result<Vec<u8>> {
        compile_by(COMPILERS, architecture, text, options)
    }
}

/// Compiles by the first of these functions that knows the architecture.
pub(super) fn compile_by(
    compilers: &[ArchitectureCompiler],
    architecture: &str,
    text: &dyn Fn(u32) -> String,
    options: &CompileOptions,
) -> Result<Vec<u8>> {
    let is_other = |image: &Result<Vec<u8>>| {
        image.as_ref().is_err_and(|error| matches!(error.kind(), ErrorKind::Unsupported { .. }))
    };
    let mut images = compilers.iter().map(|compile_for| compile_for(architecture, text, options));
    images.find(|image| !is_other(image)).unwrap_or_else(|| {
        let what = "an architecture of this name by the enabled backends, which know `sm_90` and `gfx90a`";
        Err(Error::new(AnyBackend::NAME, "compile_for", ErrorKind::Unsupported { what }))
    })
}
