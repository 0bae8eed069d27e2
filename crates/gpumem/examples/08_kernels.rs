//! Kernels: one declaration for every device. The folder `kernels` shows their source, and seven more.

#[path = "kernels/matmul.rs"]
#[allow(unreachable_pub, dead_code, reason = "a library compiles the file, too")]
mod matmul;
#[path = "kernels/saxpy.rs"]
#[allow(unreachable_pub, dead_code, reason = "a library compiles the file, too")]
mod saxpy;

use gpumem::{
    Device,
    kernel::config_for_items,
    ndarray::{Array1, Array2},
};

fn main() -> gpumem::Result<()> {
    run(&Device::open_default()?)
}

pub(crate) fn run(device: &Device) -> gpumem::Result<()> {
    let stream = device.stream()?;

    // Compiled for the device; where that is the processor, the kernel's body in Rust.
    let saxpy = saxpy::saxpy().load(device)?;
    let x = stream.to_device(&Array1::<f32>::range(0.0, 1000.0, 1.0))?;
    let mut y = stream.to_device(&Array1::<f32>::ones(1000))?;
    // Groups of 256 work-items, as many as it takes. The kernel reads `&` arguments and writes `&mut` arguments: a
    // launch is ordered like a copy.
    saxpy.launch(&stream, &config_for_items(y.len(), 256), (&x, &mut y, 2.0f32))?;
    assert_eq!(y.get(999)?, 2.0 * 999.0 + 1.0);

    // Views go in with their strides: the second matrix is transposed, and nothing is copied for it.
    let matmul = matmul::matmul().load(device)?;
    let a = Array2::from_shape_fn((50, 30), |(i, j)| (i + j) as f32);
    let b = Array2::from_shape_fn((40, 30), |(i, j)| (i * j % 7) as f32);
    let (left, right) = (stream.to_device(&a)?, stream.to_device(&b)?);
    let mut product = stream.device_array::<f32, _>((50, 40))?;
    let dims = config_for_items((40, 50), (matmul::TILE, matmul::TILE));
    matmul.launch(&stream, &dims, (&left, &right.view().reversed_axes(), &mut product))?;
    assert_eq!(product.copy_to_host()?, a.dot(&b.t()));
    Ok(())
}
