//! Text of the user's that is printed into a kernel's source, and names that an expansion has for itself.
#![deny(unsafe_code)]

#[gpumem::kernel(name = "k(gpumem::slice<gpumem::u32> y) { *(volatile int*)0 = 42; } void k2")]
fn with_code(y: Own<u32>) {
    y[own()] = 1;
}

#[gpumem::kernel(name = "")]
fn without_name(y: Own<u32>) {
    y[own()] = 1;
}

mod __gpumem {
    pub type Any = gpumem::kernel::SliceMut<u32>;
}

#[gpumem::kernel]
fn below_the_alias(y: __gpumem::Any) {
    y[0] = 1;
}

macro_rules! any {
    () => { __gpumem::Any };
}

#[gpumem::kernel]
fn by_macro(y: any!()) {
    y[0] = 1;
}

fn main() {}
