use gpumem::{DeviceArray, Result, Stream};

fn main() {}

fn read(array: &DeviceArray<f32>, stream: &Stream) -> Result<()> {
    let host = array.copy_to_host(stream)?;
    Ok(())
}
