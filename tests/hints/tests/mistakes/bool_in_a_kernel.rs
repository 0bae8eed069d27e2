use gpumem::kernel::{KernelDef, SliceMut};

fn main() {
    // SAFETY: it does nothing.
    let declaration = unsafe { KernelDef::<(SliceMut<bool>,)>::new("clear") };
}
