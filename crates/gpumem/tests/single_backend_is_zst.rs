//! With one backend enabled the run-time choice takes no room, so that no tag is there to be compared.
#![cfg(any(
    all(feature = "host", not(feature = "cuda"), not(feature = "roc")),
    all(feature = "cuda", not(feature = "host"), not(feature = "roc")),
    all(feature = "roc", not(feature = "host"), not(feature = "cuda")),
))]

use gpumem::{AnyBackend, Backend};

#[cfg(feature = "cuda")]
type Only = gpumem::cuda::Cuda;
#[cfg(feature = "host")]
type Only = gpumem::host::Host;
#[cfg(feature = "roc")]
type Only = gpumem::roc::Roc;

fn sizes<B: Backend>() -> [(&'static str, usize, usize); 7] {
    fn of<T>(name: &'static str) -> (&'static str, usize, usize) {
        (name, size_of::<T>(), align_of::<T>())
    }
    [
        of::<B::Device>("device"),
        of::<B::Buffer>("buffer"),
        of::<B::Stream>("stream"),
        of::<B::Event>("event"),
        of::<B::Barrier>("barrier"),
        of::<B::Module>("module"),
        of::<B::Kernel>("kernel"),
    ]
}

#[test]
fn each_enum_is_as_large_as_what_it_holds() {
    assert_eq!(sizes::<AnyBackend>(), sizes::<Only>());
}

#[test]
fn the_one_backend_is_the_only_choice() {
    assert_eq!(AnyBackend::enabled(), [Only::NAME]);
    assert_eq!(AnyBackend::probe(), Only::probe());
    assert_eq!(AnyBackend::devices().unwrap(), Only::devices().unwrap_or_default());
}
