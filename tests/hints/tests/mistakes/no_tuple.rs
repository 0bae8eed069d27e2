use gpumem::{DeviceArray, Kernel, LaunchConfig, Result, Stream, kernel::SliceMut};

fn main() {}

fn fill(kernel: &Kernel<(SliceMut<f32>,)>, stream: &Stream, mut y: DeviceArray<f32>) -> Result<()> {
    kernel.launch(stream, &LaunchConfig::linear(1, 32), &mut y)
}
