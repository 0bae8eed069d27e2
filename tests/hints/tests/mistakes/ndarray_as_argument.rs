use gpumem::{Kernel, LaunchConfig, Result, Stream, kernel::SliceMut, ndarray::Array1};

fn main() {}

fn fill(kernel: &Kernel<(SliceMut<f32>,)>, stream: &Stream, mut y: Array1<f32>) -> Result<()> {
    kernel.launch(stream, &LaunchConfig::linear(1, 32), (&mut y,))
}
