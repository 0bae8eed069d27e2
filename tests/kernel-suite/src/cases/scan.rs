//! Prefix sums over many groups.

use crate::{ShippedKernel, inputs::words, scan};
use gpumem_core::{Backend, Result};
use gpumem_kernel::{Kernel, KernelDef, config_for_items};
use gpumem_runtime::{DeviceArray, PinnedArray, Stream};
use ndarray::{Array1, Ix1, s};

/// [`scan`].
#[derive(Debug)]
pub struct Scan;

/// Every `step`-th of so many numbers, which the device packs before the launch, by groups of that size.
#[derive(Debug)]
pub struct Problem {
    len: usize,
    step: isize,
    group: u32,
}

impl Problem {
    fn numbers(&self) -> Array1<u32> {
        words(self.len)
    }
}

/// The prefix sums of `x`, with as many levels as it takes.
fn scan_all<B: Backend>(
    kernel: &Kernel<scan::Parameters, B>,
    stream: &Stream<B>,
    x: &DeviceArray<u32, Ix1, B>,
    group: u32,
) -> Result<DeviceArray<u32, Ix1, B>> {
    let dims = config_for_items([x.len(), 1, 1], [group, 1, 1]);
    let groups = dims.groups[0] as usize;
    let empty = || stream.device_array::<u32, _>(0);
    let before = if groups > 1 {
        let mut totals = stream.device_array(groups)?;
        kernel.launch(stream, &dims, (x, &empty()?, &mut totals, &mut empty()?))?;
        scan_all(kernel, stream, &totals, group)?
    } else {
        empty()?
    };
    let mut out = stream.device_array(x.len())?;
    kernel.launch(stream, &dims, (x, &before, &mut empty()?, &mut out))?;
    Ok(out)
}

impl ShippedKernel for Scan {
    type Parameters = scan::Parameters;
    type Problem = Problem;
    type Elem = u32;
    type Shape = Ix1;

    fn declaration() -> KernelDef<scan::Parameters> {
        scan::scan()
    }

    fn problems() -> Vec<Problem> {
        // Groups of whole waves, of less than one, and of waves of which the last is not full; three levels.
        let sizes = [
            (0, 1, 256),
            (1, 1, 256),
            (256, 1, 256),
            (257, -1, 256),
            (2000, 3, 100),
            (300, 1, 7),
            (5000, 1, 64),
        ];
        sizes.map(|(len, step, group)| Problem { len, step, group }).into()
    }

    fn reference(problem: &Problem) -> Vec<u32> {
        let numbers = problem.numbers();
        let mut sum = 0u32;
        let next = |number: &u32| {
            sum = sum.wrapping_add(*number);
            sum
        };
        numbers.slice(s![..;problem.step]).iter().map(next).collect()
    }

    fn enqueue<B: Backend>(
        kernel: &Kernel<scan::Parameters, B>,
        stream: &Stream<B>,
        problem: &Problem,
    ) -> Result<PinnedArray<u32, Ix1, B>> {
        let numbers = stream.to_device(&problem.numbers())?;
        let x = stream.to_device(&numbers.slice(s![..;problem.step])?)?;
        stream.copy_to_host(&scan_all(kernel, stream, &x, problem.group)?)
    }
}
