//! Heat that spreads.

use crate::{ShippedKernel, inputs::whole, stencil};
use gpumem_core::{Backend, Result};
use gpumem_kernel::{Kernel, KernelDef, config_for_items};
use gpumem_runtime::{PinnedArray, Stream};
use ndarray::{Array2, ArrayView2, Ix2, s};

/// [`stencil`].
#[derive(Debug)]
pub struct Stencil;

/// The plate is every second column, from the last to the first, of an array with twice as many; the columns between
/// must not change. Three steps.
#[derive(Debug)]
pub struct Problem {
    height: usize,
    width: usize,
}

const STEPS: usize = 3;

impl Problem {
    fn array(&self) -> Array2<f32> {
        whole((self.height, self.width * 2), 1000)
    }
}

/// One step, in plain loops.
fn step(before: ArrayView2<'_, f32>) -> Array2<f32> {
    let (height, width) = before.dim();
    let mut after = before.to_owned();
    for y in 1..height.saturating_sub(1) {
        for x in 1..width.saturating_sub(1) {
            let sum = (before[[y - 1, x]] + before[[y + 1, x]]) + (before[[y, x - 1]] + before[[y, x + 1]]);
            after[[y, x]] = sum / 4.0;
        }
    }
    after
}

impl ShippedKernel for Stencil {
    type Parameters = stencil::Parameters;
    type Problem = Problem;
    type Elem = f32;
    type Shape = Ix2;

    fn declaration() -> KernelDef<stencil::Parameters> {
        stencil::stencil()
    }

    fn problems() -> Vec<Problem> {
        let sizes = [(0, 0), (0, 5), (4, 0), (1, 1), (2, 2), (3, 3), (16, 16), (37, 21), (5, 70)];
        sizes.map(|(height, width)| Problem { height, width }).into()
    }

    fn reference(problem: &Problem) -> Vec<f32> {
        let mut array = problem.array();
        for _ in 0..STEPS {
            let after = step(array.slice(s![.., ..;-2]));
            array.slice_mut(s![.., ..;-2]).assign(&after);
        }
        array.iter().copied().collect()
    }

    /// To and fro between the views of two arrays.
    fn enqueue<B: Backend>(
        kernel: &Kernel<stencil::Parameters, B>,
        stream: &Stream<B>,
        problem: &Problem,
    ) -> Result<PinnedArray<f32, Ix2, B>> {
        let mut plates = [stream.to_device(&problem.array())?, stream.to_device(&problem.array())?];
        let dims = config_for_items([problem.width, problem.height, 1], [16, 8, 1]);
        for _ in 0..STEPS {
            let [before, after] = &mut plates;
            let arguments = (&before.slice(s![.., ..;-2])?, &mut after.slice_mut(s![.., ..;-2])?);
            kernel.launch(stream, &dims, arguments)?;
            plates.swap(0, 1);
        }
        stream.copy_to_host(&plates[0])
    }
}
