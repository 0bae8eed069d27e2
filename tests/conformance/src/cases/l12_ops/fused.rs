//! The sum of a function in one pass, beside a map and a sum.

use super::{
    done,
    layouts::{Dice, Layout},
    same,
};
use crate::{Lab, Verdict};
use gpumem_core::Backend;
use gpumem_ops::ArrayOps;
use half::f16;
use ndarray::Array1;

/// A function of a float, whose sum depends on the order of additions.
#[gpumem_macros::device(crate = super::facade)]
fn third(x: i64) -> f32 {
    x as f32 / 3.0
}

/// A function of elements that are no numbers.
#[gpumem_macros::device(crate = super::facade)]
fn weight(x: [f32; 2]) -> f16 {
    f16::from_f32(x[0] * x[1])
}

#[gpumem_macros::device(crate = super::facade)]
fn scaled(x: i64, y: u8) -> f64 {
    x as f64 / 7.0 * f64::from(y)
}

pub(super) fn functions_are_summed_with_the_bits_of_two_steps<B: Backend>(lab: &Lab<B>) -> Verdict {
    let mut dice = Dice(11);
    for _ in 0..if lab.is_slow() { 3 } else { 20 } {
        let layout = Layout::roll(&mut dice, 2500);
        let (array, host) = (layout.upload::<i64, B>(lab.device())?, layout.host());
        let view = layout.view(&array)?;
        let mapped = done(view.map::<third>())?;
        assert_eq!(view.map_sum::<third>()?.to_bits(), mapped.sum()?.to_bits(), "{:?}", host.shape());
        // One of another order of axes.
        let other = lab.device().to_device(&host.t().mapv(|value| value as u8))?;
        let other = other.t();
        let zipped = view.zip_map::<scaled, _>(&other)?;
        let found = view.zip_map_sum::<scaled, _>(&other)?;
        assert_eq!(found.to_bits(), zipped.sum()?.to_bits(), "{:?}", host.shape());
        let exact: i64 = host.iter().map(|x| x * x).sum();
        assert!((found - exact as f64 / 7.0).abs() <= 1e-12 * exact as f64, "{found} is not {exact} / 7");
        for axis in 0..host.ndim() {
            same(
                view.map_sum_axis::<third>(axis)?.copy_to_host()?.view(),
                mapped.sum_axis(axis)?.copy_to_host()?.view(),
            );
            same(
                view.zip_map_sum_axis::<scaled, _>(&other, axis)?.copy_to_host()?.view(),
                zipped.sum_axis(axis)?.copy_to_host()?.view(),
            );
        }
    }
    let pairs = lab.device().to_device(&[[3.0f32, 0.5], [2.0, 4.0]])?;
    let pairs = pairs.into_elements::<[f32; 2], _>(2)?;
    assert_eq!(pairs.map_sum::<weight>()?, f16::from_f32(9.5));
    let empty = lab.device().device_array::<i64, _>((3, 0))?;
    assert_eq!(empty.map_sum::<third>()?.to_bits(), 0);
    assert_eq!(empty.map_sum_axis::<third>(1)?.copy_to_host()?, Array1::<f32>::zeros(3));
    Ok(())
}
