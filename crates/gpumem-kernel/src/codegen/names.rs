//! How rustc proves which variable a name stands for: the expansion repeats the declarations and uses of a body, with numbers.

use super::Language;

/// The declaration of this number.
#[derive(Debug, Clone, Copy)]
pub struct Name<const N: usize>(());

mod sealed {
    pub trait Declared {}
    impl<const N: usize> Declared for super::Name<N> {}
}

/// The declaration that the code for GPUs has for a name.
#[diagnostic::on_unimplemented(
    message = "this name stands for one thing in Rust, and for another in the code for GPUs",
    label = "macros have written two names of these letters, which only rustc tells apart",
    note = "give one of them other letters"
)]
pub trait IsName<const N: usize>: Sized + sealed::Declared {}

#[diagnostic::do_not_recommend]
impl<const N: usize> IsName<N> for Name<N> {}

impl Language {
    /// Declares a name. Never called.
    pub fn name<const N: usize>() -> Name<N> {
        Name(())
    }

    /// Takes the name of this declaration.
    pub fn is_name<const N: usize, T: IsName<N>>(_: T) {}

    /// Gives a value to the label of this number. Never called.
    pub fn label<const N: usize, T: IsName<N>>() -> T {
        Self::given()
    }
}
