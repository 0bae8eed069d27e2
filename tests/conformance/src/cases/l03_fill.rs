//! Fills.

use crate::{Lab, Level, Verdict};
use gpumem_core::{Backend, Element};
use half::f16;
use ndarray::{Array1, Array2, Array3, s};
use num_complex::Complex;
use std::fmt::Debug;

cases! { Level::Copy;
    patterns_of_every_length,
    strided_fills_touch_nothing_else,
    fills_in_stream_order,
}

/// Packed, strided and 2-D fills of one value.
fn filled<B: Backend, T: Element + PartialEq + Debug>(lab: &Lab<B>, value: T) -> Verdict {
    let zero = <T as bytemuck::Zeroable>::zeroed();
    for len in [1, 2, 3, 7, 64, 1000, 10_007] {
        let mut array = lab.device().device_array::<T, _>(len)?;
        array.fill(value)?;
        assert_eq!(array.copy_to_host()?, Array1::from_elem(len, value));
    }
    let mut array = lab.device().device_array::<T, _>((9, 10))?;
    array.slice_mut(s![1..8;2, 3..7])?.fill(value)?;
    let mut expected = Array2::from_elem((9, 10), zero);
    expected.slice_mut(s![1..8;2, 3..7]).fill(value);
    assert_eq!(array.copy_to_host()?, expected);
    Ok(())
}

fn patterns_of_every_length<B: Backend>(lab: &Lab<B>) -> Verdict {
    filled(lab, 0xA5u8)?;
    filled(lab, 0x1234u16)?;
    filled(lab, f16::from_f32(1.5))?;
    filled(lab, [1u8, 2, 3])?;
    filled(lab, 0xDEAD_BEEFu32)?;
    filled(lab, 1.25f32)?;
    filled(lab, [1u16, 2, 3])?;
    filled(lab, 0x0123_4567_89AB_CDEFu64)?;
    filled(lab, -1i64)?;
    filled(lab, 1.1f64)?;
    filled(lab, [1.0f32, 2.0, 3.0])?;
    filled(lab, Complex::new(1.5f64, -2.5))
}

fn strided_fills_touch_nothing_else<B: Backend>(lab: &Lab<B>) -> Verdict {
    let host = Array3::from_shape_fn((4, 5, 6), |(i, j, k)| (100 * i + 10 * j + k) as u32);
    let part = s![1..;2, ..;-2, 1..5;3];
    for value in [7, 0x0102_0304] {
        let mut array = lab.device().to_device(&host)?;
        array.slice_mut(part)?.fill(value)?;
        let mut expected = host.clone();
        expected.slice_mut(part).fill(value);
        assert_eq!(array.copy_to_host()?, expected);
        let mut transposed = lab.device().to_device(&host.t())?;
        transposed.index_axis_mut(1, 2)?.fill(value)?;
        let mut expected = host.t().to_owned();
        expected.index_axis_mut(ndarray::Axis(1), 2).fill(value);
        assert_eq!(transposed.copy_to_host()?, expected);
    }
    Ok(())
}

fn fills_in_stream_order<B: Backend>(lab: &Lab<B>) -> Verdict {
    let stream = lab.device().stream()?;
    let mut array = stream.device_array::<u64, _>(5000)?;
    lab.delay(&stream)?;
    for value in [1, u64::MAX, 0x0102_0304_0506_0708] {
        stream.fill(&mut array, value)?;
    }
    stream.fill(&mut array.slice_mut(s![..;2])?, 3)?;
    let expected = Array1::from_shape_fn(5000, |i| if i % 2 == 0 { 3 } else { 0x0102_0304_0506_0708 });
    assert_eq!(array.copy_to_host()?, expected);
    Ok(())
}
