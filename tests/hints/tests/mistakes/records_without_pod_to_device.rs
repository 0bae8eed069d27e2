use gpumem::{Device, Result};

#[derive(Clone, Copy)]
#[repr(C)]
struct Pair {
    key: u32,
    value: f32,
}

fn main() {}

fn pairs(device: &Device) -> Result<()> {
    let pairs = device.to_device(&vec![Pair { key: 1, value: 2.0 }])?;
    Ok(())
}
