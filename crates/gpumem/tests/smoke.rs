//! The types that users write, on the device that every machine has.
#![cfg(feature = "host")]

use gpumem::{Device, DeviceArray, ndarray::Array2, ndarray::Ix2, s};

#[test]
fn there_and_back() -> gpumem::Result<()> {
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
