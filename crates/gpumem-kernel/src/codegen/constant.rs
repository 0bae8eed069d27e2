//! Constants: values of the host, printed as literals of C++.

use super::{DeviceType, Form, TypeInfo, Witness};
use crate::source::MOST_CONSTANT_BYTES;
use gpumem_core::BarrierScope;
use half::{bf16, f16};
use num_complex::Complex;

/// A constant of a kernel, as its value was when the kernel was declared.
#[derive(Debug, Clone)]
pub struct PrintedConstant {
    pub info: TypeInfo,
    /// Its value in C++.
    pub literal: String,
    /// Its bytes in C++.
    pub bytes: usize,
}

impl PrintedConstant {
    /// The text of a constant that no device has room for is not made: it would fill the memory.
    pub fn new<T: DeviceConst>(value: &T) -> Self {
        let literal = if T::BYTES > MOST_CONSTANT_BYTES { String::new() } else { value.literal() };
        Self { info: T::device_type(), literal, bytes: T::BYTES }
    }

    /// The constant of this value, which has the type that a witness has seen.
    pub fn seen<T: DeviceConst>(_: &Witness<T>, value: &T) -> Self {
        Self::new(value)
    }

    /// Whether it is an array, which stands once before the kernel.
    pub fn is_table(&self) -> bool {
        self.info.form == Form::Local
    }
}

/// A value that may be a constant of a kernel.
///
/// # Safety
/// The literal is one expression of C++, of the type's name in device code, without effects: it is printed into the source of
/// every kernel that names the constant.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no constant of kernels",
    label = "a constant of the type `{Self}`, which a GPU does not know",
    note = "constants of kernels are numbers, `bool`, enums, and arrays of them"
)]
pub unsafe trait DeviceConst: DeviceType + Sized {
    /// Its bytes in C++, where an array without elements has one.
    const BYTES: usize = size_of::<Self>();

    /// The value as C++ has it.
    fn literal(&self) -> String;
}

macro_rules! integers {
    ($($type:ty)*) => {$(
        // SAFETY: a literal of the type.
        unsafe impl DeviceConst for $type {
            fn literal(&self) -> String {
                // C++ has no negative literals: that of the least number is too long for its type. Smaller types are cast.
                match *self == <$type>::MIN && *self as i128 != 0 && size_of::<$type>() > 2 {
                    true => format!("({} - 1)", integer(&(self + 1).to_string(), &<$type>::device_type().name)),
                    false => integer(&self.to_string(), &<$type>::device_type().name),
                }
            }
        }
    )*};
}
integers!(u8 i8 u16 i16 u32 i32 u64 i64 usize isize);

/// An integer with its type.
pub(super) fn integer(digits: &str, name: &str) -> String {
    let text = match name {
        "u64" => format!("{digits}ull"),
        "i64" => format!("{digits}ll"),
        "u32" => format!("{digits}u"),
        "i32" => digits.to_owned(),
        _ => format!("({name}){digits}"),
    };
    if digits.starts_with('-') { format!("({text})") } else { text }
}

// SAFETY: a literal of the type.
unsafe impl DeviceConst for f32 {
    fn literal(&self) -> String {
        match self.is_finite() {
            true => signed(format!("{self:?}f")),
            false => format!("detail::bits<float>({}u)", self.to_bits()),
        }
    }
}

// SAFETY: a literal of the type.
unsafe impl DeviceConst for f64 {
    fn literal(&self) -> String {
        match self.is_finite() {
            true => signed(format!("{self:?}")),
            false => format!("detail::bits<double>((u64){}ull)", self.to_bits()),
        }
    }
}

fn signed(text: String) -> String {
    if text.starts_with('-') { format!("({text})") } else { text }
}

// SAFETY: a literal of the type.
unsafe impl DeviceConst for f16 {
    fn literal(&self) -> String {
        format!("detail::bits<f16>((u16){})", self.to_bits())
    }
}

// SAFETY: a literal of the type.
unsafe impl DeviceConst for bf16 {
    fn literal(&self) -> String {
        format!("detail::bits<bf16>((u16){})", self.to_bits())
    }
}

// SAFETY: a literal of the type.
unsafe impl DeviceConst for bool {
    fn literal(&self) -> String {
        self.to_string()
    }
}

// SAFETY: a literal of the type.
unsafe impl<T: DeviceConst> DeviceConst for Complex<T>
where
    Self: DeviceType,
{
    fn literal(&self) -> String {
        format!("{}({}, {})", Self::device_type().name, self.re.literal(), self.im.literal())
    }
}

// SAFETY: a literal of the type.
unsafe impl<T: DeviceConst, const N: usize> DeviceConst for [T; N] {
    const BYTES: usize = T::BYTES.saturating_mul(if N == 0 { 1 } else { N });

    fn literal(&self) -> String {
        let elements: Vec<String> = self.iter().map(T::literal).collect();
        format!("{{{{{}}}}}", elements.join(", "))
    }
}

// SAFETY: a literal of the type.
unsafe impl DeviceConst for BarrierScope {
    fn literal(&self) -> String {
        let name = match self {
            Self::Local => "LOCAL",
            Self::Global => "GLOBAL",
            Self::Both => "BOTH",
        };
        name.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_have_the_type_and_the_value_of_the_constant() {
        let texts = [
            7u8.literal(),
            (-7i16).literal(),
            i8::MIN.literal(),
            i32::MIN.literal(),
            i64::MIN.literal(),
            u64::MAX.literal(),
            0u32.literal(),
            1.5f32.literal(),
            (-0.0f64).literal(),
            1e-30f32.literal(),
            f32::INFINITY.literal(),
            f64::NAN.literal(),
            true.literal(),
            [1i8, -2].literal(),
            f16::from_f32(1.0).literal(),
        ];
        let expected = [
            "(u8)7",
            "((i16)-7)",
            "((i8)-128)",
            "((-2147483647) - 1)",
            "((-9223372036854775807ll) - 1)",
            "18446744073709551615ull",
            "0u",
            "1.5f",
            "(-0.0)",
            "1e-30f",
            "detail::bits<float>(2139095040u)",
            "detail::bits<double>((u64)9221120237041090560ull)",
            "true",
            "{{(i8)1, ((i8)-2)}}",
            "detail::bits<f16>((u16)15360)",
        ];
        assert_eq!(texts.each_ref().map(String::as_str), expected);
    }
}
