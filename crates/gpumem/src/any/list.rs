//! The list of the backends, and the enums made from it.
//!
//! `enum_dispatch` writes the functions of a trait beside the enum, with the types as the trait spells them. Each enum
//! therefore stands in the file of its trait.

/// The backends in their order of preference, handed to another macro behind its own arguments.
macro_rules! backends {
    ($then:ident! $($arguments:tt)*) => { $then! {
        $($arguments)* =>
        #[cfg(feature = "cuda")] Cuda = gpumem_cuda::Cuda,
        #[cfg(feature = "roc")] Roc = gpumem_roc::Roc,
        #[cfg(feature = "host")] Host = gpumem_host::Host,
        #[cfg(test)] Left = crate::any::fake::Fake<0>,
        #[cfg(test)] Right = crate::any::fake::Fake<1>,
    } };
}

/// An enum over one associated type of the backends, and the ways between it and each of them.
macro_rules! any {
    (
        $(#[$meta:meta])* $any:ident($on:ident, $kind:ident): $($ops:ident),+ =>
        $(#[$enabled:meta] $name:ident = $backend:ty,)*
    ) => {
        $(#[$meta])*
        #[enum_dispatch($($ops),+)]
        #[derive(Debug)]
        #[non_exhaustive]
        #[allow(missing_docs, reason = "each variant is named after its backend")]
        pub enum $any { $(#[$enabled] $name($on<$backend>)),* }

        impl $any {
            /// Name of the backend that this belongs to.
            #[inline]
            pub fn backend(&self) -> &'static str {
                Named::backend(self)
            }

            /// The backend's own value, or `None` if this belongs to another backend.
            #[inline]
            pub fn typed<B: Backend>(&self) -> Option<&<Self as Typed<B>>::Of>
            where
                Self: Typed<B>,
            {
                self.as_typed()
            }
        }

        $(#[$enabled]
        impl Typed<$backend> for $any {
            type Of = <$backend as Backend>::$kind;

            #[inline]
            fn from_typed(typed: Self::Of) -> Self {
                $any::$name($on(typed))
            }

            #[inline]
            fn as_typed(&self) -> Option<&Self::Of> {
                match self {
                    $any::$name(on) => Some(&on.0),
                    #[allow(unreachable_patterns, reason = "with one backend there is no other")]
                    _ => None,
                }
            }

            #[inline]
            fn into_typed(self) -> Result<Self::Of, Self> {
                match self {
                    $any::$name(on) => Ok(on.0),
                    #[allow(unreachable_patterns, reason = "with one backend there is no other")]
                    other => Err(other),
                }
            }
        })*
    };
}
