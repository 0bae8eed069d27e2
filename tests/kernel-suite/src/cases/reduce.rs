//! Sums by tree and by wave.

use crate::{ShippedKernel, inputs::whole, reduce};
use gpumem_core::{Backend, Result};
use gpumem_kernel::{Kernel, KernelDef, config_for_items};
use gpumem_runtime::{DeviceArray, PinnedArray, Stream};
use ndarray::{Array1, Ix1, s};

/// [`reduce`].
#[derive(Debug)]
pub struct Reduce;

/// Every `step`-th of so many numbers, which the device packs before the launch.
#[derive(Debug)]
pub struct Problem {
    len: usize,
    step: isize,
}

impl Problem {
    fn numbers(&self) -> Array1<f32> {
        whole(self.len, 100)
    }
}

/// Launches the kernel on the previous results, until one is left.
fn reduce_all<B: Backend>(
    kernel: &Kernel<reduce::Parameters, B>,
    stream: &Stream<B>,
    mut left: DeviceArray<f32, Ix1, B>,
    by_wave: bool,
) -> Result<DeviceArray<f32, Ix1, B>> {
    loop {
        let dims = config_for_items([left.len(), 1, 1], [reduce::GROUP, 1, 1]);
        let groups = dims.groups[0] as usize;
        let (mut tree, mut wave) = (stream.device_array(groups)?, stream.device_array(groups)?);
        kernel.launch(stream, &dims, (&left, &mut tree, &mut wave))?;
        left = if by_wave { wave } else { tree };
        if left.len() == 1 {
            return Ok(left);
        }
    }
}

impl ShippedKernel for Reduce {
    type Parameters = reduce::Parameters;
    type Problem = Problem;
    type Elem = f32;
    type Shape = Ix1;

    fn declaration() -> KernelDef<reduce::Parameters> {
        reduce::reduce()
    }

    fn problems() -> Vec<Problem> {
        let sizes = [(0, 1), (1, 1), (256, 1), (257, 1), (1000, -1), (3000, 3)];
        sizes.map(|(len, step)| Problem { len, step }).into()
    }

    fn reference(problem: &Problem) -> Vec<f32> {
        let sum = problem.numbers().slice(s![..;problem.step]).iter().fold(0.0, |sum, number| sum + number);
        vec![sum, sum]
    }

    fn enqueue<B: Backend>(
        kernel: &Kernel<reduce::Parameters, B>,
        stream: &Stream<B>,
        problem: &Problem,
    ) -> Result<PinnedArray<f32, Ix1, B>> {
        let numbers = stream.to_device(&problem.numbers())?;
        let sum = |by_wave| {
            let x = stream.to_device(&numbers.slice(s![..;problem.step])?)?;
            reduce_all(kernel, stream, x, by_wave)
        };
        let mut both = stream.device_array::<f32, _>(2)?;
        stream.copy_to_device(&mut both.slice_mut(s![..1])?, &sum(false)?)?;
        stream.copy_to_device(&mut both.slice_mut(s![1..])?, &sum(true)?)?;
        stream.copy_to_host(&both)
    }
}
