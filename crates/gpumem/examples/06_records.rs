//! Records: structs as elements, read and written whole or by field.

use bytemuck::{Pod, Zeroable};
use gpumem::{Device, DeviceArray, DeviceRecord, Scalar, field, ndarray::Array1};

/// Plain old data: `repr(C)` and no padding, which the derive checks.
#[derive(Debug, Clone, Copy, PartialEq, Pod, Zeroable)]
#[repr(C)]
struct Particle {
    position: [f32; 3],
    mass: f32,
}

fn main() -> gpumem::Result<()> {
    run(&Device::open_default()?)
}

pub(crate) fn run(device: &Device) -> gpumem::Result<()> {
    let particle = |mass: f32| Particle { position: [mass, 0.0, -mass], mass };

    // An array of records; a field of all of them is a strided view.
    let mut particles: DeviceArray<Particle> =
        device.to_device(&Array1::from_iter((0..8_u8).map(|mass| particle(mass.into()))))?;
    let masses = particles.field(field!(Particle, mass))?;
    assert_eq!((masses.strides(), masses.get(5)?), (&[16][..], 5.0));
    particles.field_mut(field!(Particle, mass))?.fill(1.0)?;
    assert_eq!(particles.get(5)?, Particle { mass: 1.0, ..particle(5.0) });

    // One record.
    let mut record: DeviceRecord<Particle> = device.to_device(&Scalar(particle(2.0)))?;
    record.field_mut(field!(Particle, mass))?.write(9.0)?;
    assert_eq!(record.read()?, Particle { mass: 9.0, ..particle(2.0) });
    particles.assign(&record)?; // broadcast to all eight
    assert_eq!(particles.get(7)?.mass, 9.0);
    Ok(())
}
