//! Tables of functions that are looked up at run time.

/// A function that the library does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
#[error("{0} is missing in the library")]
pub struct MissingSymbol(
    /// Its name.
    pub &'static str,
);

/// Declares a table of functions of a C library: a structure that is filled from a loaded library, with one method for
/// each function. A function that the library lacks is [`MissingSymbol`] when it is called, and only then.
///
/// `#[guard]` before a function calls the table's method `guard` before it, and keeps what that returns until the function has returned.
///
/// ```
/// use core::ffi::c_int;
///
/// gpumem_sys::functions! {
///     /// A part of the C library.
///     C {
///         fn abs(value: c_int) -> c_int;
///         fn no_such_function() -> ();
///     }
/// }
///
/// # #[cfg(target_os = "linux")] {
/// // SAFETY: the C library's initialisers have run already, and its functions have these signatures.
/// let c = unsafe { C::resolve(&gpumem_sys::libloading::Library::new("libc.so.6")?) };
/// assert_eq!(unsafe { c.abs(-7) }, Ok(7));
/// assert_eq!(unsafe { c.no_such_function() }.unwrap_err().0, "no_such_function");
/// assert_eq!(c.missing().collect::<Vec<_>>(), ["no_such_function"]);
/// # }
/// # Ok::<(), gpumem_sys::libloading::Error>(())
/// ```
#[macro_export]
macro_rules! functions {
    ($(#[$meta:meta])* $table:ident {
        $($(#[$guard:ident])? fn $name:ident($($argument:ident: $type:ty),* $(,)?) -> $result:ty;)*
    }) => {
        $(#[$meta])*
        #[allow(non_snake_case, reason = "the names of the library")]
        #[derive(Debug, Clone, Copy)]
        pub struct $table {
            $($name: Option<unsafe extern "C" fn($($type),*) -> $result>,)*
        }

        #[allow(non_snake_case, clippy::too_many_arguments, reason = "the functions of the library")]
        impl $table {
            /// Looks every function up.
            ///
            /// # Safety
            /// The library is the one that the table is for, and stays loaded for as long as a function is called.
            pub unsafe fn resolve(library: &$crate::libloading::Library) -> Self {
                Self {
                    $(
                        // SAFETY: the caller vouches for the signature.
                        $name: unsafe {
                            library.get::<unsafe extern "C" fn($($type),*) -> $result>(
                                concat!(stringify!($name), "\0").as_bytes(),
                            )
                        }
                        .ok()
                        .map(|function| *function),
                    )*
                }
            }

            /// The functions that the library lacks.
            pub fn missing(&self) -> impl Iterator<Item = &'static str> + use<> {
                [$((stringify!($name), self.$name.is_none())),*]
                    .into_iter()
                    .filter_map(|(name, missing)| missing.then_some(name))
            }

            $(
                #[doc = concat!("Calls `", stringify!($name), "`.")]
                ///
                /// # Safety
                /// The call meets the conditions in the library's documentation.
                ///
                /// # Errors
                /// Returns an error if the library lacks the function.
                #[inline]
                pub unsafe fn $name(&self, $($argument: $type),*) -> Result<$result, $crate::MissingSymbol> {
                    match self.$name {
                        Some(function) => {
                            $(let _guard = self.$guard();)?
                            // SAFETY: passed on to the caller.
                            Ok(unsafe { function($($argument),*) })
                        }
                        None => Err($crate::MissingSymbol(stringify!($name))),
                    }
                }
            )*
        }
    };
}
