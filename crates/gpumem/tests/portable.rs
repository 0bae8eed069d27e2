//! A program as users write it: one source for every backend.

use gpumem::{DeviceArray, DeviceView, ndarray::Array2, ndarray::Ix2, s};

fn every_second(array: &DeviceArray<f32, Ix2>) -> gpumem::Result<DeviceView<'_, f32, Ix2>> {
    array.slice(s![..;2, ..;-1])
}

#[test]
fn one_source_runs_on_the_device_that_is_chosen() -> gpumem::Result<()> {
    let device = gpumem::Device::open_first_available()?;
    let host = Array2::from_shape_fn((6, 4), |(i, j)| (10 * i + j) as f32);
    let array = device.to_device(&host)?;
    let back = every_second(&array)?.copy_to_host()?;
    assert_eq!(back, host.slice(s![..;2, ..;-1]));
    let stream = device.stream()?;
    let mut out = Array2::zeros((6, 4));
    stream.scope(|scope| scope.copy_to_host(&array, out.view_mut()))??;
    assert_eq!(out, host);
    assert_eq!(back.sum(), 258.0);
    Ok(())
}
