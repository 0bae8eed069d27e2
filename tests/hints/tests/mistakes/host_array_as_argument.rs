use gpumem::{Kernel, LaunchConfig, Result, Stream, kernel::{Slice, SliceMut}};

fn main() {}

fn double(kernel: &Kernel<(Slice<f32>, SliceMut<f32>)>, stream: &Stream, x: Vec<f32>, mut y: Vec<f32>) -> Result<()> {
    kernel.launch(stream, &LaunchConfig::linear(1, 32), (&x, &mut y))
}
