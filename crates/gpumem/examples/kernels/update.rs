//! Records that move on by one step of time, where they are. The step is a record, too.

use gpumem::kernel::prelude::*;

/// A thing on its way.
#[derive(Debug, Clone, Copy, PartialEq, gpumem::DeviceRecord)]
#[repr(C)]
pub struct Particle {
    /// Where it is.
    pub place: [f32; 2],
    /// How far it moves in one unit of time.
    pub speed: [f32; 2],
    /// Steps that it has made.
    pub steps: u32,
}

/// The change that applies to all of them.
#[derive(Debug, Clone, Copy, PartialEq, gpumem::DeviceRecord)]
#[repr(C)]
pub struct Step {
    /// Units of time.
    pub time: f32,
    /// What the speed gains in one of them.
    pub pull: [f32; 2],
}

/// The particles, in any layout, and the step.
pub type Parameters = (OwnView<Particle, 1>, Value<Step>);

/// The kernel, for groups of any size along x that cover the particles.
#[gpumem::kernel]
pub fn update(particles: OwnView<Particle, 1>, by: Value<Step>) {
    let at = own();
    if at[0] >= particles.extent(0) {
        return;
    }
    let mut p = particles[at];
    for axis in 0..2 {
        p.speed[axis] += by.pull[axis] * by.time;
        p.place[axis] += p.speed[axis] * by.time;
    }
    p.steps += 1;
    particles[at] = p;
}
