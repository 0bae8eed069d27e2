//! `y = a * x + y`.

use crate::{ShippedKernel, inputs::whole, saxpy};
use gpumem_core::{Backend, Result};
use gpumem_kernel::{Kernel, KernelDef, config_for_items};
use gpumem_runtime::{PinnedArray, Stream};
use ndarray::{Array2, Ix1, s};

/// [`saxpy`].
#[derive(Debug)]
pub struct Saxpy;

/// `x` and `y` are every `step`-th row of so many, which the device packs before the launch, because the kernel takes
/// packed arrays.
#[derive(Debug)]
pub struct Problem {
    len: usize,
    step: isize,
}

impl Problem {
    fn wide(&self) -> Array2<f32> {
        whole((self.len * self.step.unsigned_abs(), 2), 1000)
    }
}

/// Not a whole number, and yet its products with whole ones are exact.
const A: f32 = 2.5;

impl ShippedKernel for Saxpy {
    type Parameters = saxpy::Parameters;
    type Problem = Problem;
    type Elem = f32;
    type Shape = Ix1;

    fn declaration() -> KernelDef<saxpy::Parameters> {
        saxpy::saxpy()
    }

    fn problems() -> Vec<Problem> {
        let sizes =
            [(0, 1), (1, 1), (255, 1), (256, 1), (257, 1), (5000, 1), (0, -1), (1, -3), (700, 2), (701, -3)];
        sizes.map(|(len, step)| Problem { len, step }).into()
    }

    fn reference(problem: &Problem) -> Vec<f32> {
        let wide = problem.wide();
        let [x, y] = [0, 1].map(|column| wide.slice(s![..;problem.step, column]));
        x.iter().zip(y).map(|(x, y)| A * x + y).collect()
    }

    fn enqueue<B: Backend>(
        kernel: &Kernel<saxpy::Parameters, B>,
        stream: &Stream<B>,
        problem: &Problem,
    ) -> Result<PinnedArray<f32, Ix1, B>> {
        let wide = stream.to_device(&problem.wide())?;
        let x = stream.to_device(&wide.slice(s![..;problem.step, 0])?)?;
        let mut y = stream.to_device(&wide.slice(s![..;problem.step, 1])?)?;
        kernel.launch(stream, &config_for_items([problem.len, 1, 1], [256, 1, 1]), (&x, &mut y, A))?;
        stream.copy_to_host(&y)
    }
}
