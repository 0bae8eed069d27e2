//! Slicing, reshaping and the rest of the layout algebra: the cost does not depend on the number of elements.

use crate::{Bench, Measure, Pair, Routine};
use anyhow::Result;
use gpumem::{DeviceArray, Layout, Order};
use ndarray::{Ix2, s};

pub(super) fn all() -> Vec<Bench> {
    let mut benches = vec![
        layouts("views/layout/slice", |layout| {
            Ok(layout.slice(s![1..;2, ..;-1].as_ref()).map(|view| view.len())?)
        }),
        layouts("views/layout/reshape", |layout| {
            let shape = [layout.shape()[0] as isize / 2, 2, -1];
            Ok(layout.reshape(&shape, Order::C).map(|view| view.len())?)
        }),
        layouts("views/layout/transpose", |layout| Ok(layout.transpose(&[1, 0])?.len())),
    ];
    benches.extend([
        arrays("views/array/slice", |array| Ok(array.slice(s![1..;2, ..;-1])?.len())),
        arrays("views/array/reshape", |array| {
            let [rows, columns] = [array.shape()[0], array.shape()[1]];
            Ok(array.reshape((rows / 2, 2 * columns))?.len())
        }),
    ]);
    benches
}

/// 4 · 10⁹ elements compared with 1000. Layouts need no memory.
fn layouts(name: &str, act: impl Fn(&Layout) -> Result<usize> + Copy + 'static) -> Bench {
    Bench::new(format!("{name}/4e9"), "the same of 1000", Measure::Scaling, move || {
        let side = |shape: [usize; 2]| -> Result<Routine> {
            let layout = Layout::packed(&shape, 4, Order::C)?;
            Ok(Routine::call(move || act(std::hint::black_box(&layout))))
        };
        Ok(Pair { ours: side([2_000_000, 2_000])?, reference: side([20, 50])? })
    })
}

type Matrix = DeviceArray<f32, Ix2>;

/// 64 MiB on the device compared with 1 KiB.
fn arrays(name: &str, act: impl Fn(&Matrix) -> Result<usize> + Copy + 'static) -> Bench {
    Bench::new(format!("{name}/64MiB"), "the same of 1 KiB", Measure::Scaling, move || {
        let side = |shape: (usize, usize)| -> Result<Routine> {
            let array: Matrix = crate::device()?.device_array(shape)?;
            Ok(Routine::call(move || act(std::hint::black_box(&array))))
        };
        Ok(Pair { ours: side((4096, 4096))?, reference: side((16, 16))? })
    })
}
