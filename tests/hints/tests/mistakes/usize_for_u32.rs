use gpumem::{Kernel, LaunchConfig, Result, Stream};

fn main() {}

fn count(kernel: &Kernel<(u32,)>, stream: &Stream, len: usize) -> Result<()> {
    kernel.launch(stream, &LaunchConfig::linear(1, 32), (len,))
}
