//! HIP's functions. HIP's documentation describes each; comments here note where CUDA differs.
#![allow(clippy::missing_safety_doc, reason = "the contract of each function is that of HIP's headers")]
#![allow(non_snake_case, clippy::too_many_arguments, reason = "names and parameters are HIP's")]

pub(crate) mod copy;
pub(crate) mod device;
pub(crate) mod event;
pub(crate) mod fill;
pub(crate) mod graph;
pub(crate) mod hiprtc;
pub(crate) mod host;
pub(crate) mod ipc;
pub(crate) mod managed;
pub(crate) mod memory;
pub(crate) mod module;
pub(crate) mod peer;
pub(crate) mod pointer;
pub(crate) mod status;
pub(crate) mod stream;

/// Name and types of an exported function, as in the source.
#[derive(Debug, Clone, Copy)]
pub struct Signature {
    /// The symbol.
    pub name: &'static str,
    /// The return type.
    pub result: &'static str,
    /// The parameters.
    pub parameters: &'static [&'static str],
}

/// Defines functions under HIP's names, and a table of their signatures for the comparison with HIP's headers.
macro_rules! exports {
    ($($(#[$meta:meta])* fn $name:ident($($argument:ident: $type:ty),* $(,)?) -> $result:ty $body:block)*) => {
        $(
            $(#[$meta])*
            #[doc = concat!("See HIP's `", stringify!($name), "`.")]
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name($($argument: $type),*) -> $result $body
        )*

        /// The functions of this module.
        pub(crate) const SIGNATURES: &[$crate::exports::Signature] = &[$($crate::exports::Signature {
            name: stringify!($name),
            result: stringify!($result),
            parameters: &[$(stringify!($type)),*],
        }),*];
    };
}
use exports;

/// All exported functions.
#[must_use]
pub fn signatures() -> Vec<Signature> {
    [
        copy::SIGNATURES,
        device::SIGNATURES,
        event::SIGNATURES,
        fill::SIGNATURES,
        graph::SIGNATURES,
        hiprtc::SIGNATURES,
        host::SIGNATURES,
        ipc::SIGNATURES,
        managed::SIGNATURES,
        memory::SIGNATURES,
        module::SIGNATURES,
        peer::SIGNATURES,
        pointer::SIGNATURES,
        status::SIGNATURES,
        stream::SIGNATURES,
    ]
    .concat()
}
