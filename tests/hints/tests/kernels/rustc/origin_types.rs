//! Types and traits that stand in the place of gpumem's: a kernel that rests on one does not compile.
#![deny(unsafe_code)]

use gpumem::kernel::prelude::*;

type Any<T> = gpumem::kernel::SliceMut<T>;

/// Takes every parameter for one without races.
mod race_free {
    pub mod kernel {
        pub use gpumem::kernel::*;
        pub mod codegen {
            pub use gpumem::kernel::codegen::*;
            pub enum Language {}
            impl Language {
                pub const fn race_free<T>() {}
                pub fn list<T, const N: usize>(items: [T; N]) -> Vec<T> {
                    Vec::from(items)
                }
                pub fn unpack<T>(value: &T) -> &T {
                    value
                }
                pub fn name<const N: usize>() {}
                pub fn is_name<const N: usize, T>(_: T) {}
                pub fn operand<T>(value: T) -> T {
                    value
                }
                pub fn type_of<T: DeviceType>(_: &Witness<T>) -> TypeInfo {
                    T::device_type()
                }
            }
        }
    }
}

#[gpumem::kernel(crate = race_free)]
fn races(y: Any<u32>) {
    y[0] += 1;
}

/// Reads and writes elements by functions of its own.
mod elements {
    pub mod kernel {
        pub use gpumem::kernel::*;
        pub mod codegen {
            pub use gpumem::kernel::codegen::*;
            pub trait Store<I> {
                fn store(&self, at: I, value: u32);
            }
            impl Store<usize> for gpumem::kernel::Own<u32> {
                fn store(&self, _: usize, _: u32) {}
            }
        }
    }
}

#[gpumem::kernel(crate = elements)]
fn stores(y: Own<u32>) {
    y[0] = 1;
}

/// Gives lengths of its own.
mod lengths {
    pub mod kernel {
        pub use gpumem::kernel::*;
        pub mod codegen {
            pub use gpumem::kernel::codegen::*;
            pub trait Row {
                fn len_of(&self) -> usize {
                    1 << 20
                }
            }
            impl<T> Row for T {}
        }
    }
}

#[gpumem::kernel(crate = lengths)]
fn measures(y: Own<u32>) {
    y[own()] = y.len() as u32;
}

/// Prints a tree of its own.
mod trees {
    pub mod kernel {
        pub use gpumem::kernel::*;
        pub mod codegen {
            pub use gpumem::kernel::codegen::*;
            type Real = gpumem::kernel::codegen::E;
            pub enum E {}
            #[allow(non_snake_case)]
            impl E {
                pub const fn Var(_: &'static str) -> Real {
                    Real::Var("*(volatile int*)0 = 42")
                }
                pub const fn Suffixed(_: &'static str, _: &'static str) -> Real {
                    Self::Var("")
                }
                pub const fn Arithmetic(_: &'static str, _: usize, _: &Real, _: &Real) -> Real {
                    Self::Var("")
                }
            }
        }
    }
}

#[gpumem::device(crate = trees)]
fn one(x: u32) -> u32 {
    x + 1u32
}

/// Has methods of its own for numbers.
mod methods {
    pub mod kernel {
        pub use gpumem::kernel::*;
        pub mod codegen {
            pub use gpumem::kernel::codegen::*;
            pub trait Ordered: Sized {
                fn max_of(self, _: Self) -> Self {
                    self
                }
            }
            impl<T> Ordered for T {}
            pub trait Methods: Sized {
                fn signum_of(self) -> Self {
                    self
                }
            }
            impl<T> Methods for T {}
        }
    }
}

#[gpumem::kernel(crate = methods)]
fn greatest(y: Own<i32>) {
    y[own()] = y[own()].max(3).signum();
}

fn main() {}
