//! What a launch of a graph returns.

use super::Sealed;
use crate::{ArrayBase, Exclusive, HostArray, Owned, Pinned, device::AllocationRef};
use gpumem_core::{Backend, Element, Result};
use ndarray::Dimension;

/// Finds the memory of a launch for memory that was recorded.
pub struct Binder<'a, B: Backend>(
    pub(super) &'a mut dyn FnMut(&AllocationRef<B>) -> Result<AllocationRef<B>>,
);

impl<B: Backend> std::fmt::Debug for Binder<'_, B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Binder")
    }
}

/// What a body returns and each launch makes anew: device arrays and page-locked arrays that were made in the recording, nothing,
/// and tuples, arrays, vectors and options of results.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no result of a graph",
    note = "a body returns device arrays and page-locked arrays that it has made, or a tuple or a vector of them; no views"
)]
pub trait GraphResults<B: Backend>: Sealed + Sized {
    /// These results over the memory of a launch.
    #[doc(hidden)]
    fn bind(&self, memory: &mut Binder<'_, B>) -> Result<Self>;
}

impl<T: Element, D: Dimension, B: Backend> Sealed for ArrayBase<Owned<T, B>, D> {}
impl<T: Element, D: Dimension, B: Backend> GraphResults<B> for ArrayBase<Owned<T, B>, D> {
    fn bind(&self, memory: &mut Binder<'_, B>) -> Result<Self> {
        Ok(ArrayBase::over((memory.0)(&self.memory)?, self.layout.clone()))
    }
}

// A view for ever: of an array that is kept for ever, or one of a binding of another language.
impl<T: Element, D: Dimension, B: Backend> Sealed for ArrayBase<Exclusive<'static, T, B>, D> {}
impl<T: Element, D: Dimension, B: Backend> GraphResults<B> for ArrayBase<Exclusive<'static, T, B>, D> {
    fn bind(&self, memory: &mut Binder<'_, B>) -> Result<Self> {
        Ok(ArrayBase::over((memory.0)(&self.memory)?, self.layout.clone()))
    }
}

impl<T: Element, D: Dimension, B: Backend> Sealed for HostArray<Pinned, T, D, B> {}
impl<T: Element, D: Dimension, B: Backend> GraphResults<B> for HostArray<Pinned, T, D, B> {
    fn bind(&self, memory: &mut Binder<'_, B>) -> Result<Self> {
        self.with_memory((memory.0)(self.place().memory)?)
    }
}

impl<R: Sealed> Sealed for Vec<R> {}
impl<B: Backend, R: GraphResults<B>> GraphResults<B> for Vec<R> {
    fn bind(&self, memory: &mut Binder<'_, B>) -> Result<Self> {
        self.iter().map(|one| one.bind(memory)).collect()
    }
}

impl<R: Sealed> Sealed for Option<R> {}
impl<B: Backend, R: GraphResults<B>> GraphResults<B> for Option<R> {
    fn bind(&self, memory: &mut Binder<'_, B>) -> Result<Self> {
        self.as_ref().map(|one| one.bind(memory)).transpose()
    }
}

macro_rules! tuples {
    ($(($($one:ident)*))*) => {$(
        #[diagnostic::do_not_recommend]
        impl<BE: Backend, $($one: GraphResults<BE>),*> GraphResults<BE> for ($($one,)*) {
            #[allow(non_snake_case, unused_variables, clippy::unused_unit)]
            fn bind(&self, memory: &mut Binder<'_, BE>) -> Result<Self> {
                let ($($one,)*) = self;
                Ok(($($one.bind(memory)?,)*))
            }
        }
    )*};
}
tuples! { () (R1) (R1 R2) (R1 R2 R3) (R1 R2 R3 R4) (R1 R2 R3 R4 R5) (R1 R2 R3 R4 R5 R6) (R1 R2 R3 R4 R5 R6 R7) (R1 R2 R3 R4 R5 R6 R7 R8) }
