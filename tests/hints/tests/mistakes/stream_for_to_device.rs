use gpumem::{Device, Result, Stream};

fn main() {}

fn write(device: &Device, stream: &Stream) -> Result<()> {
    let array = device.to_device(&[1.0f32, 2.0], stream)?;
    Ok(())
}
