//! What rustc says.

use gpumem::kernel::prelude::*;

#[gpumem::kernel(unsafe)]
fn mismatch(x: Slice<f32>, y: SliceMut<f32>, n: u32) {
    let i = global_id(0);
    y[i] = x[i] * n;
}

#[gpumem::kernel(unsafe)]
fn index(x: Slice<f32>, y: SliceMut<f32>) {
    let i = global_id(0);
    y[i] = x[3i32];
}

#[gpumem::kernel(unsafe)]
fn read_only(x: Slice<f32>) {
    x[global_id(0)] = 1.0;
}

#[gpumem::kernel(unsafe)]
fn immutable(y: SliceMut<f32>) {
    let sum = 0.0;
    sum += 1.0;
    y[0] = sum;
}

#[gpumem::kernel(unsafe)]
fn unknown(y: SliceMut<f32>) {
    y[0] = nothing;
}

#[gpumem::kernel(unsafe)]
fn host_type(y: SliceMut<f32>) {
    let wide = 1u128;
    y[0] = wide as f32;
}

#[gpumem::kernel(unsafe)]
fn rank(x: View<f32, 2>, y: SliceMut<f32>) {
    y[0] = x[[0, 1, 2]];
}

#[gpumem::kernel(unsafe)]
fn uninitialised(y: SliceMut<f32>) {
    let value: f32;
    if global_id(0) > 3 {
        value = 1.0;
    }
    y[0] = value;
}

#[gpumem::kernel(unsafe)]
fn local_without_mut(y: SliceMut<f32>) {
    let window = local::<f32>([3]);
    window[0] = 1.0;
    y[0] = window[0];
}

/// The whole call is marked, so that advice about it stands after it.
#[gpumem::kernel]
fn whole_call(y: Own<u32>) {
    y[own()] = global_id(0);
}

#[derive(Clone, Copy, PartialEq, gpumem::DeviceRecord)]
#[repr(u32)]
enum Mode {
    A = 0,
    B = 1,
}

/// The pattern would fit every value on a GPU.
#[gpumem::kernel]
fn variant_in_braces(y: Own<u32>) {
    let mode = if global_id(0) == 0 { Mode::A } else { Mode::B };
    y[own()] = match mode {
        Mode::B { .. } => 7,
        _ => 9,
    };
}

/// The value would be that of `A` on a GPU.
#[gpumem::kernel]
fn made_in_braces(y: Own<u32>) {
    y[own()] = Mode::B {} as u32;
}

/// The numbers would be zeros on a GPU.
#[gpumem::kernel]
fn constants_made_inside(y: Own<f32>) {
    let c = Constant { 0: [1.0f32, 2.0] };
    y[own()] = c[global_id(0) % 2];
}

fn main() {}
