//! Kernels in which each work-item writes its own element.

use gpumem::{Bool, kernel::prelude::*};

#[derive(Clone, Copy, Debug, PartialEq, gpumem::DeviceRecord)]
#[repr(C)]
pub(crate) struct Particle {
    pub(crate) place: [f32; 3],
    pub(crate) mass: f32,
}

type Cube = OwnView<u32, 3>;

#[gpumem::kernel]
pub(crate) fn scale<T: Numeric>(x: Slice<T>, y: Own<T>, by: T) {
    let i = global_id(0);
    if i < y.len() && !y.is_empty() {
        y[own()] = by * x[i] + y[own()];
    }
}

/// Writes where an element is, through the index as a variable, and its positions one by one.
#[gpumem::kernel]
pub(crate) fn mark(before: View<u32, 2>, image: OwnView<u32, 2>) {
    let at = own();
    let mut axis = 0;
    while axis < 2 {
        if at[axis] >= image.extent(axis) {
            return;
        }
        axis += 1;
    }
    image[at] += before[own()] + (at[0] * 100 + at[1]) as u32;
}

#[gpumem::kernel]
pub(crate) fn volume(cube: Cube) {
    let (x, y, z) = (global_id(0), global_id(1), global_id(2));
    if x < cube.extent(2) && y < cube.extent(1) && z < cube.extent(0) {
        cube[own()] = (x + 10 * y + 100 * z) as u32;
    }
}

#[gpumem::device]
fn lightest(particles: Own<Particle>, at: OwnId<1>, least: f32) -> f32 {
    if particles[at].mass < least { least } else { particles[at].mass }
}

#[gpumem::kernel]
pub(crate) fn accelerate(particles: Own<Particle>, by: Value<Particle>) {
    let at = own();
    if at[0] < particles.len() {
        let mass = lightest(particles, at, by.mass);
        particles[at].place[1] += by.place[1] / mass;
        particles[own()].mass = mass;
    }
}

/// Keeps its index across barriers and operations of its wave.
#[gpumem::kernel]
pub(crate) fn settle(y: Own<u32>, rounds: u32) {
    let at = own();
    for _ in 0..rounds {
        let all = wave_sum(y[at]);
        barrier(Global);
        y[at] = all % 1000;
    }
}

#[gpumem::kernel]
pub(crate) fn negate(x: Slice<Bool>, y: Own<Bool>) {
    y[own()] = Bool::from(!bool::from(x[global_id(0)]));
}
