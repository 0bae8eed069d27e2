//! Element types by name, as descriptors carry them.

use crate::{Bool, DescriptorError, Element};
use half::{bf16, f16};
use num_complex::Complex;
use std::{any::TypeId, fmt, str::FromStr};

/// The meaning of an element's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ElementKind {
    /// A truth value of one byte ([`Bool`]).
    Bool,
    /// A signed integer.
    Int,
    /// An unsigned integer.
    UInt,
    /// A floating-point number of IEEE 754.
    Float,
    /// A number of the `bfloat16` format.
    BFloat,
    /// A complex number of two floats.
    Complex,
    /// Bytes without a meaning here: a record, a fixed-size array.
    Opaque,
}

/// An element type: the meaning and the number of its bytes. Always in the byte order of the processor.
///
/// Written and read as NumPy's type strings (`<f4`, `|u1`, `<c8`, `|V12`). `bfloat16`, which NumPy has no name for, is
/// written `<V2`, as its usual extension does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ElementType {
    /// The meaning of the bytes.
    pub kind: ElementKind,
    /// Bytes of one element.
    pub bytes: usize,
}

impl ElementType {
    /// An element type by its parts.
    pub const fn new(kind: ElementKind, bytes: usize) -> Self {
        Self { kind, bytes }
    }

    /// The name of `T`: a number where it is one, else so many opaque bytes.
    pub fn of<T: Element>() -> Self {
        let id = TypeId::of::<T>();
        let is = |other: TypeId| id == other;
        let kind = if is(TypeId::of::<f32>()) || is(TypeId::of::<f64>()) || is(TypeId::of::<f16>()) {
            ElementKind::Float
        } else if is(TypeId::of::<u8>())
            || is(TypeId::of::<u16>())
            || is(TypeId::of::<u32>())
            || is(TypeId::of::<u64>())
            || is(TypeId::of::<usize>())
        {
            ElementKind::UInt
        } else if is(TypeId::of::<i8>())
            || is(TypeId::of::<i16>())
            || is(TypeId::of::<i32>())
            || is(TypeId::of::<i64>())
            || is(TypeId::of::<isize>())
        {
            ElementKind::Int
        } else if is(TypeId::of::<Complex<f32>>()) || is(TypeId::of::<Complex<f64>>()) {
            ElementKind::Complex
        } else if is(TypeId::of::<Bool>()) {
            ElementKind::Bool
        } else if is(TypeId::of::<bf16>()) {
            ElementKind::BFloat
        } else {
            ElementKind::Opaque
        };
        Self::new(kind, size_of::<T>())
    }

    /// Whether elements that call themselves `other` can be taken as these.
    fn takes(self, other: Self) -> bool {
        // Some protocols have no name for bfloat16.
        let nameless = self.kind == ElementKind::BFloat && other.kind == ElementKind::Opaque;
        self.bytes == other.bytes && (self.kind == other.kind || nameless)
    }

    /// Checks that elements that call themselves `found` can be taken as `T`.
    ///
    /// # Errors
    /// Returns [`DescriptorError::ElementType`] if the types differ.
    pub fn check<T: Element>(found: Self) -> Result<(), DescriptorError> {
        let expected = Self::of::<T>();
        if expected.takes(found) {
            return Ok(());
        }
        Err(DescriptorError::ElementType { found: found.to_string(), expected: expected.to_string() })
    }
}

impl fmt::Display for ElementType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (order, letter) = match self.kind {
            ElementKind::Bool => ('|', 'b'),
            ElementKind::Int => (native(self.bytes), 'i'),
            ElementKind::UInt => (native(self.bytes), 'u'),
            ElementKind::Float => (native(self.bytes), 'f'),
            ElementKind::Complex => (native(self.bytes), 'c'),
            ElementKind::BFloat => (native(self.bytes), 'V'),
            ElementKind::Opaque => ('|', 'V'),
        };
        write!(f, "{order}{letter}{}", self.bytes)
    }
}

const NATIVE: char = if cfg!(target_endian = "little") { '<' } else { '>' };

fn native(bytes: usize) -> char {
    if bytes > 1 { NATIVE } else { '|' }
}

impl FromStr for ElementType {
    type Err = DescriptorError;

    fn from_str(text: &str) -> Result<Self, DescriptorError> {
        let bad = |why| DescriptorError::TypeName { text: text.chars().take(32).collect(), why };
        let mut rest = text.chars();
        let order = rest.next().ok_or_else(|| bad("it is empty"))?;
        if !matches!(order, '<' | '>' | '=' | '|') {
            return Err(bad("it begins with the byte order: <, > or |"));
        }
        let letter = rest.next().ok_or_else(|| bad("the letter of the kind is missing"))?;
        let digits = rest.as_str();
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(bad("the number of bytes follows the kind"));
        }
        let bytes: usize = digits.parse().map_err(|_| bad("the number of bytes is too large"))?;
        let (kind, sizes): (_, &[usize]) = match letter {
            'b' => (ElementKind::Bool, &[1]),
            'i' => (ElementKind::Int, &[1, 2, 4, 8]),
            'u' => (ElementKind::UInt, &[1, 2, 4, 8]),
            'f' => (ElementKind::Float, &[2, 4, 8]),
            'c' => (ElementKind::Complex, &[8, 16]),
            'V' => (ElementKind::Opaque, &[]),
            'O' => return Err(bad("Python objects are no plain data")),
            'm' | 'M' => return Err(bad("times and dates are not taken; view them as integers")),
            'S' | 'U' | 'a' => return Err(bad("texts are not taken; view them as bytes")),
            't' => return Err(bad("bit fields are not taken")),
            _ => return Err(bad("the kind is unknown")),
        };
        if !sizes.is_empty() && !sizes.contains(&bytes) {
            return Err(bad("there is no element of that kind and size"));
        }
        let foreign = matches!(order, '<' | '>') && order != NATIVE;
        if foreign && bytes > 1 && kind != ElementKind::Opaque {
            return Err(bad("the byte order is not that of this machine"));
        }
        Ok(Self::new(kind, bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_and_written() {
        for text in ["|u1", "|i1", "|b1", "<i2", "<u4", "<i8", "<f2", "<f4", "<f8", "<c8", "<c16", "|V12"] {
            assert_eq!(text.parse::<ElementType>().unwrap().to_string(), text);
        }
        for (text, same) in [("<u1", "|u1"), ("=f4", "<f4"), (">V3", "|V3"), ("|i4", "<i4"), (">b1", "|b1")] {
            assert_eq!(text.parse::<ElementType>().unwrap().to_string(), same);
        }
        for text in [
            "",
            "<",
            "<f",
            "f4",
            "<f3",
            "<f-4",
            "<f+4",
            "<f4 ",
            ">f4",
            "<c4",
            "<O8",
            "<M8",
            "<U3",
            "|S3",
            "<x4",
            "<u99999999999999999999",
            "é4",
            "<é4",
        ] {
            assert!(text.parse::<ElementType>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn every_number_has_its_name() {
        let names = [
            ElementType::of::<u8>(),
            ElementType::of::<i16>(),
            ElementType::of::<u64>(),
            ElementType::of::<f16>(),
            ElementType::of::<bf16>(),
            ElementType::of::<f64>(),
            ElementType::of::<Complex<f32>>(),
            ElementType::of::<Complex<f64>>(),
            ElementType::of::<Bool>(),
            ElementType::of::<[f32; 3]>(),
        ];
        let names: Vec<_> = names.iter().map(ToString::to_string).collect();
        assert_eq!(names, ["|u1", "<i2", "<u8", "<f2", "<V2", "<f8", "<c8", "<c16", "|b1", "|V12"]);
        assert!(ElementType::check::<bf16>("<V2".parse().unwrap()).is_ok());
        assert!(ElementType::check::<u8>("|b1".parse().unwrap()).is_err());
        assert!(ElementType::check::<f32>("<i4".parse().unwrap()).is_err());
        assert!(ElementType::check::<f16>("<V2".parse().unwrap()).is_err());
    }
}
