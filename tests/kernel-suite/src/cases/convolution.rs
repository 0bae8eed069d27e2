//! Blurring and sharpening.

use crate::{
    ShippedKernel,
    convolution::{self, BLUR, GROUP, SHARPEN},
    inputs::bytes,
};
use gpumem_core::{Backend, Result};
use gpumem_kernel::{Constant, Kernel, KernelDef, config_for_items};
use gpumem_runtime::{PinnedArray, Stream};
use ndarray::{Array3, Ix3, s};

/// [`convolution`].
#[derive(Debug)]
pub struct Convolution;

/// An image of these extents: every second row from the last to the first, and the channels in the other order, of a larger
/// one.
#[derive(Debug)]
pub struct Problem {
    extents: (usize, usize, usize),
    weights: (Constant<i32, 25>, u32),
}

impl Problem {
    fn whole(&self) -> Array3<u8> {
        let (height, width, channels) = self.extents;
        bytes((height * 2, width, channels))
    }
}

/// Weights that are not the same when they are turned or mirrored, some of which take pixels out of the range.
fn crooked() -> (Constant<i32, 25>, u32) {
    let mut weights = [0; 25];
    for (at, weight) in (-9..).zip(&mut weights) {
        *weight = at * 3;
    }
    (Constant(weights), 5)
}

impl ShippedKernel for Convolution {
    type Parameters = convolution::Parameters;
    type Problem = Problem;
    type Elem = u8;
    type Shape = Ix3;

    fn declaration() -> KernelDef<convolution::Parameters> {
        convolution::convolution()
    }

    fn problems() -> Vec<Problem> {
        let identity = (Constant(std::array::from_fn(|at| i32::from(at == 12))), 0);
        let problems = [
            ((0, 0, 3), BLUR),
            ((0, 5, 3), BLUR),
            ((5, 0, 1), SHARPEN),
            ((5, 5, 0), SHARPEN),
            ((1, 1, 1), BLUR),
            ((1, 1, 3), SHARPEN),
            ((8, 32, 1), crooked()),
            ((9, 33, 1), identity),
            ((11, 45, 2), crooked()),
            ((13, 40, 1), BLUR),
            ((3, 70, 3), SHARPEN),
        ];
        problems.map(|(extents, weights)| Problem { extents, weights }).into()
    }

    fn reference(problem: &Problem) -> Vec<u8> {
        let whole = problem.whole();
        let image = whole.slice(s![..;-2, .., ..;-1]);
        let (height, width, _) = problem.extents;
        let (Constant(weights), shift) = problem.weights;
        let pixel = |y: usize, x: usize, channel: usize| {
            // Half of the unit is added, so that the result is rounded.
            let mut sum = (1 << shift) / 2;
            for (at, weight) in weights.iter().enumerate() {
                let at_y = (y + at / 5).max(2) - 2;
                let at_x = (x + at % 5).max(2) - 2;
                sum += weight * i32::from(image[[at_y.min(height - 1), at_x.min(width - 1), channel]]);
            }
            sum.div_euclid(1 << shift).clamp(0, 255) as u8
        };
        let indices = ndarray::indices(problem.extents).into_iter();
        indices.map(|(y, x, channel)| pixel(y, x, channel)).collect()
    }

    fn enqueue<B: Backend>(
        kernel: &Kernel<convolution::Parameters, B>,
        stream: &Stream<B>,
        problem: &Problem,
    ) -> Result<PinnedArray<u8, Ix3, B>> {
        let whole = stream.to_device(&problem.whole())?;
        let mut result = stream.device_array::<u8, _>(problem.extents)?;
        let (height, width, channels) = problem.extents;
        let (weights, shift) = problem.weights;
        let image = whole.slice(s![..;-2, .., ..;-1])?;
        kernel.launch(
            stream,
            &config_for_items([width, height, channels], GROUP),
            (&image, &mut result, weights, shift),
        )?;
        stream.copy_to_host(&result)
    }
}
