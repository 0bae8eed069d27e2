//! Rows become columns.

use crate::{ShippedKernel, inputs::whole, transpose};
use gpumem_core::{Backend, Result};
use gpumem_kernel::{Kernel, KernelDef, config_for_items};
use gpumem_runtime::{PinnedArray, Stream};
use ndarray::{Array2, Ix2, s};

/// [`transpose`].
#[derive(Debug)]
pub struct Transpose;

/// The matrix is every `step`-th row of so many, with its columns the other way round where `step` is negative.
#[derive(Debug)]
pub struct Problem {
    rows: usize,
    columns: usize,
    step: isize,
}

impl Problem {
    fn array(&self) -> Array2<f32> {
        whole((self.rows * self.step.unsigned_abs(), self.columns), 1 << 20)
    }

    /// The part of the array that is the input.
    fn slice(&self) -> (isize, isize) {
        (self.step, self.step.signum())
    }
}

impl ShippedKernel for Transpose {
    type Parameters = transpose::Parameters;
    type Problem = Problem;
    type Elem = f32;
    type Shape = Ix2;

    fn declaration() -> KernelDef<transpose::Parameters> {
        transpose::transpose()
    }

    fn problems() -> Vec<Problem> {
        let sizes =
            [(0, 0, 1), (0, 7, 1), (7, 0, -2), (1, 1, 1), (16, 16, 1), (13, 37, 1), (13, 37, -2), (70, 5, 3)];
        sizes.map(|(rows, columns, step)| Problem { rows, columns, step }).into()
    }

    fn reference(problem: &Problem) -> Vec<f32> {
        let (array, (rows, columns)) = (problem.array(), problem.slice());
        let input = array.slice(s![..;rows, ..;columns]);
        let mut output = Vec::new();
        for column in input.columns() {
            output.extend(column);
        }
        output
    }

    /// The output is every third column of a wider array.
    fn enqueue<B: Backend>(
        kernel: &Kernel<transpose::Parameters, B>,
        stream: &Stream<B>,
        problem: &Problem,
    ) -> Result<PinnedArray<f32, Ix2, B>> {
        let whole = stream.to_device(&problem.array())?;
        let (rows, columns) = problem.slice();
        let mut wide = stream.device_array::<f32, _>((problem.columns, problem.rows * 3))?;
        let mut output = wide.slice_mut(s![.., ..;3])?;
        let dims =
            config_for_items([problem.columns, problem.rows, 1], [transpose::TILE, transpose::TILE, 1]);
        kernel.launch(stream, &dims, (&whole.slice(s![..;rows, ..;columns])?, &mut output))?;
        stream.copy_to_host(&output)
    }
}
