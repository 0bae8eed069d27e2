//! How often each byte occurs.

use crate::{ShippedKernel, histogram, inputs::bytes};
use gpumem_core::{Backend, LaunchConfig, Result};
use gpumem_kernel::{Kernel, KernelDef};
use gpumem_runtime::{PinnedArray, Stream};
use ndarray::{Array1, Ix1, s};

/// [`histogram`].
#[derive(Debug)]
pub struct Histogram;

/// Every `step`-th of so many bytes, by so many groups.
#[derive(Debug)]
pub struct Problem {
    len: usize,
    step: isize,
    groups: u32,
}

impl Problem {
    fn values(&self) -> Array1<u8> {
        // Small values are many, so that work-items meet.
        bytes(self.len).mapv(|byte| byte & byte.rotate_left(3))
    }
}

impl ShippedKernel for Histogram {
    type Parameters = histogram::Parameters;
    type Problem = Problem;
    type Elem = u32;
    type Shape = Ix1;

    fn declaration() -> KernelDef<histogram::Parameters> {
        histogram::histogram()
    }

    fn problems() -> Vec<Problem> {
        let sizes = [(0, 1, 1), (1, 1, 1), (3000, 1, 4), (3001, -1, 3), (2500, 7, 2), (777, -2, 4)];
        sizes.map(|(len, step, groups)| Problem { len, step, groups }).into()
    }

    fn reference(problem: &Problem) -> Vec<u32> {
        let mut totals = vec![0; 256];
        for value in problem.values().slice(s![..;problem.step]) {
            totals[usize::from(*value)] += 1;
        }
        totals
    }

    fn enqueue<B: Backend>(
        kernel: &Kernel<histogram::Parameters, B>,
        stream: &Stream<B>,
        problem: &Problem,
    ) -> Result<PinnedArray<u32, Ix1, B>> {
        let values = stream.to_device(&problem.values())?;
        let mut totals = stream.device_array::<u32, _>(256)?;
        let dims = LaunchConfig::linear(problem.groups, histogram::GROUP);
        kernel.launch(stream, &dims, (&values.slice(s![..;problem.step])?, &mut totals))?;
        stream.copy_to_host(&totals)
    }
}
