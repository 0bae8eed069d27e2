//! Kernels in which each work-item writes its own element need no `unsafe`, whatever lints the author asks for.
#![forbid(unsafe_code)]
#![deny(warnings)]

use gpumem::kernel::prelude::*;

#[derive(Clone, Copy, gpumem::DeviceRecord)]
#[repr(C)]
pub struct Particle {
    place: [f32; 3],
    mass: f32,
}

type Field = OwnView<f32, 3>;

#[gpumem::kernel]
pub fn saxpy(x: Slice<f32>, y: Own<f32>, a: f32) {
    let i = global_id(0);
    if i < y.len() {
        y[own()] = a * x[i] + y[own()];
    }
}

#[gpumem::kernel]
pub fn add<T: Numeric>(x: View<T, 2>, y: OwnView<T, 2>) {
    let at = own();
    if at[0] < y.extent(0) && at[1] < y.extent(1) {
        y[at] += x[at];
    }
}

#[gpumem::kernel]
pub fn lift(particles: Own<Particle>, by: Value<Particle>) {
    particles[own()].place[2] += by.mass / particles[own()].mass;
}

#[gpumem::kernel]
pub fn fill(field: Field, value: f32) {
    field[own()] = value;
}

#[gpumem::device]
fn twice(y: Own<f32>, at: OwnId<1>) -> f32 {
    y[at] * 2.0
}

/// Barriers and waves are there as well, where all work-items come to them.
#[gpumem::kernel]
pub fn doubled(y: Own<f32>, rounds: u32) {
    let at = own();
    for _ in 0..rounds {
        let sum = wave_sum(y[at]);
        barrier(Global);
        y[at] = twice(y, at) + sum;
    }
}
