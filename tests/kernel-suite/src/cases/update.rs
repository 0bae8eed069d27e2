//! Records that move on.

use crate::{
    ShippedKernel,
    inputs::whole,
    kernel::Value,
    update::{self, Particle, Step},
};
use gpumem_core::{Backend, Result};
use gpumem_kernel::{Kernel, KernelDef, config_for_items};
use gpumem_runtime::{PinnedArray, Stream};
use ndarray::{Array1, Ix1, s};

/// [`update`].
#[derive(Debug)]
pub struct Update;

/// Every `step`-th of so many particles moves on twice; those between them must stay as they are.
#[derive(Debug)]
pub struct Problem {
    len: usize,
    step: isize,
}

/// Powers of two: whole numbers times these are exact.
const BY: Step = Step { time: 0.5, pull: [0.25, -8.0] };

impl Problem {
    fn particles(&self) -> Array1<Particle> {
        let numbers = whole((self.len, 4), 1000);
        let particle = |at: usize| {
            let [x, y, u, v] = [0, 1, 2, 3].map(|column| numbers[[at, column]]);
            Particle { place: [x, y], speed: [u, v], steps: at as u32 }
        };
        Array1::from_shape_fn(self.len, particle)
    }
}

impl ShippedKernel for Update {
    type Parameters = update::Parameters;
    type Problem = Problem;
    type Elem = Particle;
    type Shape = Ix1;

    fn declaration() -> KernelDef<update::Parameters> {
        update::update()
    }

    fn problems() -> Vec<Problem> {
        let sizes = [(0, 1), (1, 1), (300, 1), (301, 2), (400, -3), (1, -1), (0, -2)];
        sizes.map(|(len, step)| Problem { len, step }).into()
    }

    fn reference(problem: &Problem) -> Vec<Particle> {
        let mut particles = problem.particles();
        for _ in 0..2 {
            for p in particles.slice_mut(s![..;problem.step]) {
                for ((place, speed), pull) in p.place.iter_mut().zip(&mut p.speed).zip(BY.pull) {
                    *speed += pull * BY.time;
                    *place += *speed * BY.time;
                }
                p.steps += 1;
            }
        }
        particles.to_vec()
    }

    fn enqueue<B: Backend>(
        kernel: &Kernel<update::Parameters, B>,
        stream: &Stream<B>,
        problem: &Problem,
    ) -> Result<PinnedArray<Particle, Ix1, B>> {
        let mut particles = stream.to_device(&problem.particles())?;
        let mut moving = particles.slice_mut(s![..;problem.step])?;
        let dims = config_for_items([moving.len(), 1, 1], [128, 1, 1]);
        for _ in 0..2 {
            kernel.launch(stream, &dims, (&mut moving, Value(BY)))?;
        }
        stream.copy_to_host(&particles)
    }
}
