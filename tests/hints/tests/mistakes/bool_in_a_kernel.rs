use gpumem::kernel::{KernelDeclaration, SliceMut};

fn main() {
    // SAFETY: it does nothing.
    let declaration = unsafe { KernelDeclaration::<(SliceMut<bool>,)>::new("clear") };
}
