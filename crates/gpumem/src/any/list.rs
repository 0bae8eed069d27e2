//! The list of the backends, the enums made from it, and the matches over them.

/// Passes the backends, in their order of preference, to another macro after its own arguments.
macro_rules! backends {
    ($then:ident! $($arguments:tt)*) => { $then! {
        $($arguments)* =>
        #[cfg(feature = "cuda")] Cuda = gpumem_cuda::Cuda,
        #[cfg(feature = "roc")] Roc = gpumem_roc::Roc,
        #[cfg(feature = "host")] Host = gpumem_host::Host,
        #[cfg(test)] Double = host_double::Double,
    } };
}

/// Runs code on the value inside an enum: `on!(AnyDevice, device, B => { device.info() })`. In the braces `device` is
/// of the backend `B`.
macro_rules! on {
    ($any:ident, $own:ident, $b:ident => $call:tt) => {
        backends! { dispatch! $any $own $b $call }
    };
}

macro_rules! dispatch {
    ($any:ident $own:ident $b:ident $call:tt => $(#[$enabled:meta] $name:ident = $backend:ty,)*) => {
        match $own { $(
            #[$enabled]
            #[allow(dead_code, unused_braces, reason = "for calls that need neither `B` nor statements")]
            $any::$name($own) => {
                type $b = $backend;
                $call
            }
        )* }
    };
}

/// An enum over one associated type of the backends, and the conversions between it and each of them.
macro_rules! any {
    ($(#[$meta:meta])* $any:ident($kind:ident) => $(#[$enabled:meta] $name:ident = $backend:ty,)*) => {
        $(#[$meta])*
        #[derive(Debug)]
        #[non_exhaustive]
        #[allow(missing_docs, reason = "each variant is named after its backend")]
        pub enum $any { $(#[$enabled] $name(<$backend as Backend>::$kind)),* }

        impl $any {
            /// Name of the backend that this belongs to.
            #[inline]
            pub fn backend(&self) -> &'static str {
                match self { $(#[$enabled] $any::$name(_) => <$backend>::NAME),* }
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

        impl Named for $any {
            #[inline]
            fn backend(&self) -> &'static str {
                self.backend()
            }
        }

        $(#[$enabled]
        impl Typed<$backend> for $any {
            type Of = <$backend as Backend>::$kind;

            #[inline]
            fn from_typed(typed: Self::Of) -> Self {
                $any::$name(typed)
            }

            #[inline]
            fn as_typed(&self) -> Option<&Self::Of> {
                match self {
                    $any::$name(own) => Some(own),
                    #[allow(unreachable_patterns, reason = "with one backend there is no other")]
                    _ => None,
                }
            }

            #[inline]
            fn into_typed(self) -> Result<Self::Of, Self> {
                match self {
                    $any::$name(own) => Ok(own),
                    #[allow(unreachable_patterns, reason = "with one backend there is no other")]
                    other => Err(other),
                }
            }
        })*
    };
}
