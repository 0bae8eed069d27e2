//! Records that move on by one step of time, where they are. The step is a record, too.

use gpumem::kernel::{KernelDef, Value, ViewMut, WorkItemIds};

/// A thing on its way.
#[derive(Debug, Clone, Copy, PartialEq, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub struct Particle {
    /// Where it is.
    pub place: [f32; 2],
    /// How far it moves in one unit of time.
    pub speed: [f32; 2],
    /// Steps that it has made.
    pub steps: u32,
}

/// What happens to all of them.
#[derive(Debug, Clone, Copy, PartialEq, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub struct Step {
    /// Units of time.
    pub time: f32,
    /// What the speed gains in one of them.
    pub pull: [f32; 2],
}

/// The particles, in any layout, and the step.
pub type Parameters = (ViewMut<Particle, 1>, Value<Step>);

const SOURCE: &str = "using namespace gpumem;
struct particle { float place[2], speed[2]; u32 steps; };
struct step { float time, pull[2]; };
GPUMEM_KERNEL update(view<particle, 1> particles, step by) {
    u64 i = global_id(0);
    if (i >= particles.extent(0)) return;
    particle& p = particles(i);
    for (int axis = 0; axis < 2; ++axis) {
        p.speed[axis] += by.pull[axis] * by.time;
        p.place[axis] += p.speed[axis] * by.time;
    }
    p.steps += 1;
}";

/// The kernel, for groups of any size along x that cover the particles.
pub fn declaration() -> KernelDef<Parameters> {
    // SAFETY: each work-item uses its own record.
    unsafe { KernelDef::new("update") }.source(SOURCE).host_loop(
        |ids: &WorkItemIds<'_>, (particles, by): &Parameters| {
            let (i, by) = (ids.global_id(0), by.0);
            if i >= particles.extent(0) {
                return;
            }
            let mut p = particles.get(i);
            for axis in 0..2 {
                p.speed[axis] += by.pull[axis] * by.time;
                p.place[axis] += p.speed[axis] * by.time;
            }
            p.steps += 1;
            particles.set(i, p);
        },
    )
}
