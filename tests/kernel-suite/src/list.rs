//! The list of shipped kernels, all of which are tested everywhere.

use crate::{Shipped, ShippedKernel, cases::*, from_source::*};

/// Does something with every kernel. A trait, because closures cannot be generic.
pub trait Visitor {
    /// One kernel.
    fn visit<K: ShippedKernel>(&mut self);
}

macro_rules! kernels {
    ($($kernel:ident)*) => {
        /// Shows every kernel to a visitor, from the simplest up.
        pub fn visit(visitor: &mut impl Visitor) {
            $(visitor.visit::<$kernel>();)*
        }
    };
}

kernels! {
    Saxpy Update Stencil Transpose Matmul Reduce Scan Histogram Convolution TransposeFromSource ConvolutionFromSource
}

/// Every kernel, by name, source and body.
pub fn all() -> Vec<Shipped> {
    struct List(Vec<Shipped>);
    impl Visitor for List {
        fn visit<K: ShippedKernel>(&mut self) {
            self.0.push(Shipped::of::<K>());
        }
    }
    let mut list = List(Vec::new());
    visit(&mut list);
    list.0
}
