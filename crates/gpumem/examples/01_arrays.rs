//! Arrays: to a device and back.
//!
//! `cargo run --example 01_arrays`; set `GPUMEM_DEVICE` to choose the device.

use gpumem::{ArraySpec, Device, DeviceArray, Order, ndarray::Array2, ndarray::Ix2};

fn main() -> gpumem::Result<()> {
    run(&Device::open_default()?)
}

pub(crate) fn run(device: &Device) -> gpumem::Result<()> {
    let host = Array2::from_shape_fn((3, 4), |(row, column)| (10 * row + column) as f32);

    // Blocking: on return `host` is yours again. Any ndarray array or view will do as a source.
    let mut array: DeviceArray<f32, Ix2> = device.to_device(&host)?;
    println!("{array:?} holds {} bytes", array.byte_len());
    assert_eq!(array.copy_to_host()?, host);

    // Zeros in column-major order, and the same shape again.
    let zeros = device.device_array::<f32, _>(ArraySpec::new((3, 4)).order(Order::F))?;
    assert!(zeros.is_f_contiguous() && device.device_array_like(&zeros)?.is_f_contiguous());

    // Between arrays any two layouts of equal shape will do, and strides count bytes.
    array.copy_to_device(&zeros)?;
    assert_eq!((array.strides(), zeros.strides()), (&[16, 4][..], &[4, 12][..]));
    array.fill(2.5)?;
    array.set((1, 2), 7.0)?;
    assert_eq!((array.get((1, 2))?, array.get((0, 0))?), (7.0, 2.5));

    // A source of another shape is an error that says so; nothing has been moved.
    if let Err(error) = array.copy_to_device(&Array2::zeros((2, 4))) {
        println!("as it should: {error}");
    }
    assert_eq!(array.get((1, 2))?, 7.0);
    Ok(())
}
