//! Numbers as elements.

use crate::{host, in_use::Use};
use gpumem::{ElementKind, ElementType};
use pyo3::prelude::*;

/// The bytes of a number of Python's or NumPy's as an element, if it is one.
pub(crate) fn bytes(element: ElementType, value: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
    // Other objects have their numbers in themselves.
    if host::is_of_numpy(value)? || host::is_scalar(value)? {
        host::wait_within(value, Use::Read)?;
    }
    macro_rules! bytes {
        ($type:ty) => {
            value.extract::<$type>()?.to_ne_bytes().to_vec()
        };
    }
    let part = |name| -> PyResult<f64> { value.getattr(name)?.extract() };
    let (kind, bytes) = (element.kind, element.bytes);
    Ok(match (kind, bytes) {
        (ElementKind::Bool, _) => vec![u8::from(value.is_truthy()?)],
        (ElementKind::Int, 1) => bytes!(i8),
        (ElementKind::Int, 2) => bytes!(i16),
        (ElementKind::Int, 4) => bytes!(i32),
        (ElementKind::Int, _) => bytes!(i64),
        (ElementKind::UInt, 1) => bytes!(u8),
        (ElementKind::UInt, 2) => bytes!(u16),
        (ElementKind::UInt, 4) => bytes!(u32),
        (ElementKind::UInt, _) => bytes!(u64),
        (ElementKind::Float, 2) => half::f16::from_f32(to_odd(value.extract()?)).to_ne_bytes().to_vec(),
        (ElementKind::BFloat, _) => half::bf16::from_f32(to_odd(value.extract()?)).to_ne_bytes().to_vec(),
        (ElementKind::Float, 4) => (value.extract::<f64>()? as f32).to_ne_bytes().to_vec(),
        (ElementKind::Float, _) => bytes!(f64),
        (_, 8) => [part("real")? as f32, part("imag")? as f32].map(f32::to_ne_bytes).concat(),
        _ => [part("real")?, part("imag")?].map(f64::to_ne_bytes).concat(),
    })
}

/// A float that rounds to the nearest element of two bytes, as the double does: `half` goes by way of a rounded float, or without the last
/// digits, and so does `ml_dtypes` before 0.7. So does the function of the same name on devices, in [`convert`](crate::array::convert).
fn to_odd(value: f64) -> f32 {
    let near = value as f32;
    let near_bits = near.to_bits();
    let apart = f64::from(near).abs() - value.abs();
    match apart {
        // A float that is not exact gets an odd last digit, by which the second rounding sees that it is none.
        _ if apart > 0.0 => f32::from_bits(near_bits.wrapping_sub(1) | 1),
        _ if apart < 0.0 => f32::from_bits(near_bits | 1),
        _ => near,
    }
}
