use gpumem::{Device, Result};

#[derive(Clone, Copy)]
#[repr(C)]
struct Pair {
    key: u32,
    value: f32,
}

fn main() {}

fn pairs(device: &Device) -> Result<()> {
    let pairs = device.device_array::<Pair, _>(3)?;
    Ok(())
}
