//! The choice among the enabled backends while the program runs.
//!
//! [`AnyBackend`] is a backend whose device, stream, buffer and the rest are enums over those of the enabled backends.
//! Code that is generic over [`Backend`] therefore works with a backend that is chosen at run time, and no interface is
//! repeated here.
//!
//! * One list, the macro `backends!`, names the backends in their order of preference. The enums and every match over them
//!   are made from it (`any!`, `on!`).
//! * A copy or a wait for an event may join two backends. Any other call with objects of two returns
//!   [`ErrorKind::BackendMismatch`](crate::ErrorKind::BackendMismatch).
//! * With one backend enabled each enum has one variant, is as large as its content, and its matches compile to
//!   nothing.

#[macro_use]
mod list;

mod backend;
mod choose;
mod typed;
mod values;

#[cfg(feature = "host")]
#[cfg(test)]
mod tests;

pub use backend::AnyBackend;
pub use typed::Typed;
pub use values::{AnyBarrier, AnyBuffer, AnyDevice, AnyEvent, AnyKernel, AnyModule, AnyStream};

use crate::select::Candidate;
use gpumem_core::{Backend, CompileOptions, Result};

/// The candidates, as data for the rules in [`select`](crate::select).
macro_rules! candidates {
    (=> $(#[$enabled:meta] $name:ident = $backend:ty,)*) => {
        pub(crate) const CANDIDATES: &[Candidate<AnyDevice>] = &[$(
            #[$enabled]
            Candidate {
                name: <$backend>::NAME,
                probe: <$backend>::probe,
                devices: <$backend>::devices,
                open: |selector| <$backend>::open(selector).map(Typed::<$backend>::from_typed),
            }
        ),*];

        /// The functions that compile for an architecture by its name.
        pub(crate) const COMPILERS: &[ArchitectureCompiler] = &[$(#[$enabled] <$backend>::compile_for),*];
    };
}

/// [`Backend::compile_for`].
pub(crate) type ArchitectureCompiler = fn(&str, &dyn Fn(u32) -> String, &CompileOptions) -> Result<Vec<u8>>;

backends! { candidates! }
