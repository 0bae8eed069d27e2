//! Every element type, assignment, single elements and records.

use super::tools::{elements, same};
use crate::{Lab, Level, Verdict, refused_layout};
use gpumem_core::{Backend, Element, LayoutError};
use gpumem_runtime::{DeviceRecord, Scalar, field};
use half::{bf16, f16};
use ndarray::{Array1, Array2, Axis, aview0, s};
use num_complex::Complex;

cases! { Level::Copy;
    every_element_type,
    assignment_broadcasts,
    bad_assignments_move_nothing,
    single_elements,
    records_whole_and_by_field,
    record_arrays_by_field,
}

fn round_trip<B: Backend, T: Element>(lab: &Lab<B>) -> Verdict {
    let Ok(host) = Array2::from_shape_vec((7, 9), elements::<T>(63)) else { return Ok(()) };
    let array = lab.device().to_device(&host)?;
    assert_eq!(array.byte_len(), 63 * size_of::<T>());
    same(array.copy_to_host()?.view(), host.view());
    let part = s![1..;2, ..;-3];
    same(array.slice(part)?.copy_to_host()?.view(), host.slice(part));
    same(lab.device().to_device(&host.slice(part))?.copy_to_host()?.view(), host.slice(part));
    let mut other = lab.device().device_array::<T, _>((9, 7))?;
    other.copy_to_device(&array.t())?;
    same(other.copy_to_host()?.view(), host.t());
    Ok(())
}

fn every_element_type<B: Backend>(lab: &Lab<B>) -> Verdict {
    round_trip::<B, u8>(lab)?;
    round_trip::<B, u16>(lab)?;
    round_trip::<B, u32>(lab)?;
    round_trip::<B, u64>(lab)?;
    round_trip::<B, u128>(lab)?;
    round_trip::<B, i8>(lab)?;
    round_trip::<B, i16>(lab)?;
    round_trip::<B, i32>(lab)?;
    round_trip::<B, i64>(lab)?;
    round_trip::<B, f32>(lab)?;
    round_trip::<B, f64>(lab)?;
    round_trip::<B, f16>(lab)?;
    round_trip::<B, bf16>(lab)?;
    round_trip::<B, Complex<f32>>(lab)?;
    round_trip::<B, Complex<f64>>(lab)?;
    round_trip::<B, [f32; 3]>(lab)?;
    round_trip::<B, [u8; 5]>(lab)?;
    round_trip::<B, Particle>(lab)
}

fn assignment_broadcasts<B: Backend>(lab: &Lab<B>) -> Verdict {
    let device = lab.device();
    let mut array = device.device_array::<f32, _>((3, 4))?;
    let row = Array1::from_iter([1.0f32, 2.0, 3.0, 4.0]);
    array.assign(&row)?;
    let mut expected = Array2::zeros((3, 4));
    expected.assign(&row);
    same(array.copy_to_host()?.view(), expected.view());
    let column = row.slice(s![..;-1]).slice_move(s![..3]).insert_axis(Axis(1));
    array.assign(&device.to_device(&column)?)?;
    expected.assign(&column);
    same(array.copy_to_host()?.view(), expected.view());
    array.assign(&Scalar(9.0f32))?;
    expected.fill(9.0);
    same(array.copy_to_host()?.view(), expected.view());
    array.slice_mut(s![.., ..;2])?.assign(&aview0(&-1.0f32))?;
    expected.slice_mut(s![.., ..;2]).fill(-1.0);
    same(array.copy_to_host()?.view(), expected.view());
    let stream = device.stream()?;
    lab.delay(&stream)?;
    stream.assign(&mut array, &device.to_device(&row)?)?;
    expected.assign(&row);
    same(array.copy_to_host()?.view(), expected.view());
    Ok(())
}

fn bad_assignments_move_nothing<B: Backend>(lab: &Lab<B>) -> Verdict {
    let host = Array2::from_elem((3, 4), 5i32);
    let mut array = lab.device().to_device(&host)?;
    let wrong = |error: &LayoutError| matches!(error, LayoutError::CannotBroadcast { .. });
    refused_layout(array.assign(&Array1::<i32>::zeros(3)), wrong)?;
    refused_layout(array.assign(&Array2::<i32>::zeros((2, 4))), wrong)?;
    refused_layout(array.assign(&lab.device().device_array::<i32, _>((1, 3, 4))?), wrong)?;
    refused_layout(lab.device().stream()?.assign(&mut array, &Array1::<i32>::zeros(0)), wrong)?;
    same(array.copy_to_host()?.view(), host.view());
    Ok(())
}

fn single_elements<B: Backend>(lab: &Lab<B>) -> Verdict {
    let mut array =
        lab.device().to_device(&Array2::from_shape_fn((3, 4), |(i, j)| 10 * i as i64 + j as i64))?;
    assert_eq!((array.get((0, 0))?, array.get([2, 3])?), (0, 23));
    assert_eq!(array.slice(s![..;-1, 1..])?.get((0, 2))?, 23);
    array.set((1, 2), -5)?;
    array.view_mut().inverted_axis(0)?.set((0, 0), -6)?;
    assert_eq!(array.copy_to_host()?.row(1).to_vec(), [10, 11, -5, 13]);
    assert_eq!(array.get((2, 0))?, -6);
    let outside = |error: &LayoutError| matches!(error, LayoutError::IndexOutOfBounds { .. });
    refused_layout(array.get((3, 0)), outside)?;
    refused_layout(array.set((0, 4), 1), outside)?;
    refused_layout(array.get((usize::MAX, 0)), outside)
}

/// A record with fields of several sizes and no padding.
#[derive(Debug, Clone, Copy, PartialEq, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
struct Particle {
    position: [f32; 3],
    mass: f32,
    id: u32,
    charge: i16,
    spin: f16,
}

impl Particle {
    fn new(n: usize) -> Self {
        let x = n as f32;
        Particle {
            position: [x, x + 0.25, -x],
            mass: 2.0 * x,
            id: n as u32,
            charge: -(n as i16),
            spin: f16::ONE,
        }
    }
}

fn records_whole_and_by_field<B: Backend>(lab: &Lab<B>) -> Verdict {
    let device = lab.device();
    let mut record: DeviceRecord<Particle, B> = device.to_device(&Scalar(Particle::new(3)))?;
    assert_eq!(record.read()?, Particle::new(3));
    record.field_mut(field!(Particle, mass))?.write(8.5)?;
    record.field_mut(field!(Particle, charge))?.fill(77)?;
    let expected = Particle { mass: 8.5, charge: 77, ..Particle::new(3) };
    assert_eq!(record.read()?, expected);
    assert_eq!(record.field(field!(Particle, position))?.read()?, expected.position);
    let other = device.to_device(&Scalar(Particle::new(6)))?;
    record.field_mut(field!(Particle, id))?.copy_to_device(&other.field(field!(Particle, id))?)?;
    assert_eq!(record.read()?, Particle { id: 6, ..expected });
    record.write(Particle::new(9))?;
    let stream = device.stream()?;
    lab.delay(&stream)?;
    stream.fill(&mut record.field_mut(field!(Particle, spin))?, f16::NEG_ONE)?;
    let read = stream.copy_to_host(&record)?;
    assert_eq!(read.copy_to_host()?.into_scalar(), Particle { spin: f16::NEG_ONE, ..Particle::new(9) });
    Ok(())
}

fn record_arrays_by_field<B: Backend>(lab: &Lab<B>) -> Verdict {
    let host = Array1::from_iter((0..40).map(Particle::new));
    let mut array = lab.device().to_device(&host)?;
    assert_eq!(array.field(field!(Particle, mass))?.copy_to_host()?, host.mapv(|particle| particle.mass));
    let masses = Array1::from_iter((0..40).map(|n| n as f32 * 0.5));
    array.field_mut(field!(Particle, mass))?.copy_to_device(&masses.slice(s![..;-1]))?;
    let charges = array.field_mut(field!(Particle, charge))?.slice_mut(s![..;2])?.fill(-1);
    charges?;
    let mut expected = host;
    for (n, particle) in expected.iter_mut().enumerate() {
        particle.mass = masses[39 - n];
        particle.charge = if n % 2 == 0 { -1 } else { particle.charge };
    }
    assert_eq!(array.copy_to_host()?, expected);
    Ok(())
}
