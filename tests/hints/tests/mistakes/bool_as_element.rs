use gpumem::{Device, Result};

fn main() {}

fn flags(device: &Device) -> Result<()> {
    let flags = device.device_array::<bool, _>(3)?;
    Ok(())
}
