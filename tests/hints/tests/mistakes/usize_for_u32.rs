use gpumem::{Kernel, LaunchDims, Result, Stream};

fn main() {}

fn count(kernel: &Kernel<(u32,)>, stream: &Stream, len: usize) -> Result<()> {
    kernel.launch(stream, &LaunchDims::linear(1, 32), (len,))
}
