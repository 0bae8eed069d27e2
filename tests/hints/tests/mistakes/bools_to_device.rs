use gpumem::{Device, Result};

fn main() {}

fn flags(device: &Device) -> Result<()> {
    let flags = device.to_device(&[true, false])?;
    Ok(())
}
