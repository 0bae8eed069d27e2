//! The product of two matrices.

use crate::{ShippedKernel, inputs::whole, matmul};
use gpumem_core::{Backend, Result};
use gpumem_kernel::{Kernel, KernelDef, config_for_items};
use gpumem_runtime::{PinnedArray, Stream};
use ndarray::{Array2, Ix2, s};

/// [`matmul`].
#[derive(Debug)]
pub struct Matmul;

/// Rows of `a`, columns of `b`, and their common length. With `views`, `a` is every second row of a larger matrix from
/// the last to the first, and `b` is transposed.
#[derive(Debug)]
pub struct Problem {
    rows: usize,
    depth: usize,
    columns: usize,
    views: bool,
}

impl Problem {
    fn matrices(&self) -> (Array2<f32>, Array2<f32>) {
        // Sums of so few products of such small numbers are exact.
        if self.views {
            (whole((self.rows * 2, self.depth), 100), whole((self.columns, self.depth), 99))
        } else {
            (whole((self.rows, self.depth), 100), whole((self.depth, self.columns), 99))
        }
    }
}

impl ShippedKernel for Matmul {
    type Parameters = matmul::Parameters;
    type Problem = Problem;
    type Elem = f32;
    type Shape = Ix2;

    fn declaration() -> KernelDef<matmul::Parameters> {
        matmul::matmul()
    }

    fn problems() -> Vec<Problem> {
        let sizes = [(0, 3, 2), (3, 0, 2), (1, 1, 1), (16, 16, 16), (17, 33, 5), (5, 20, 19)];
        let problem = |views| move |(rows, depth, columns)| Problem { rows, depth, columns, views };
        sizes.map(problem(false)).into_iter().chain(sizes.map(problem(true))).collect()
    }

    fn reference(problem: &Problem) -> Vec<f32> {
        let (a, b) = problem.matrices();
        let (a, b) = if problem.views { (a.slice(s![..;-2, ..]), b.t()) } else { (a.view(), b.view()) };
        let mut c = Vec::new();
        for row in a.rows() {
            for column in b.columns() {
                c.push(row.iter().zip(column).fold(0.0, |sum, (a, b)| sum + a * b));
            }
        }
        c
    }

    fn enqueue<B: Backend>(
        kernel: &Kernel<matmul::Parameters, B>,
        stream: &Stream<B>,
        problem: &Problem,
    ) -> Result<PinnedArray<f32, Ix2, B>> {
        let (a, b) = problem.matrices();
        let (a, b) = (stream.to_device(&a)?, stream.to_device(&b)?);
        let mut c = stream.device_array::<f32, _>((problem.rows, problem.columns))?;
        let dims = config_for_items([problem.columns, problem.rows, 1], [matmul::TILE, matmul::TILE, 1]);
        if problem.views {
            kernel.launch(stream, &dims, (&a.slice(s![..;-2, ..])?, &b.view().reversed_axes(), &mut c))?;
        } else {
            kernel.launch(stream, &dims, (&a, &b, &mut c))?;
        }
        stream.copy_to_host(&c)
    }
}
