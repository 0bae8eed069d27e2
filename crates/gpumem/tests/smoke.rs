//! The types that users write, on the device that every machine has.
#![cfg(feature = "host")]

use gpumem::{
    Device, DeviceArray, DeviceView, DeviceViewMut,
    ndarray::{Array2, Dimension, Ix2},
    s,
};

#[test]
fn an_array_goes_to_the_device_and_back() -> gpumem::Result<()> {
    let device = Device::open("host")?;
    let host = Array2::from_shape_fn((64, 48), |(i, j)| (i * 48 + j) as f32);
    let array: DeviceArray<f32, Ix2> = device.to_device(&host)?;
    assert_eq!(array.copy_to_host()?, host);
    let view = array.slice(s![..;-2, 3..])?;
    assert_eq!(view.copy_to_host()?, host.slice(s![..;-2, 3..]));
    let stream = device.stream()?;
    let twice = stream.to_device(&view)?;
    let pinned = stream.copy_to_host(&twice)?;
    assert_eq!(pinned.view()?, host.slice(s![..;-2, 3..]));
    let mut out = Array2::zeros((64, 48));
    stream.scope(|scope| scope.copy_to_host(&array, out.view_mut()))??;
    assert_eq!(out, host);
    device.synchronize()?;
    Ok(())
}

/// Reads an array or a view.
fn read<'a, D: Dimension>(view: impl Into<DeviceView<'a, f32, D>>) -> gpumem::Result<Vec<f32>> {
    Ok(view.into().copy_to_host()?.iter().copied().collect())
}

/// Writes into an array or a view.
fn clear<'a, D: Dimension>(view: impl Into<DeviceViewMut<'a, f32, D>>) -> gpumem::Result<()> {
    view.into().fill(0.0)
}

#[test]
fn functions_take_arrays_and_views() -> gpumem::Result<()> {
    let device = Device::open("host")?;
    let mut array: DeviceArray<f32> = device.to_device(&[1.0, 2.0, 3.0])?;
    assert_eq!(read(&array)?, [1.0, 2.0, 3.0]);
    assert_eq!(read(array.slice(s![1..])?)?, [2.0, 3.0]);
    clear(array.slice_mut(s![..1])?)?;
    assert_eq!(read(&array)?, [0.0, 2.0, 3.0]);
    clear(&mut array)?;
    assert_eq!(read(&array)?, [0.0; 3]);
    Ok(())
}
