//! The types of device code, and their names there.

use super::Record;
use crate::simt::{
    Constant, ConstantArray, LocalArray, Number, Own, OwnId, OwnView, Parameter, Shared, Slice, SliceMut,
    Value, View, ViewMut,
};
use gpumem_core::Element;
use half::{bf16, f16};
use num_complex::Complex;

/// How expressions of a type are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// `f32`, `f64`: C++ has Rust's arithmetic.
    Float,
    /// `f16`, `bf16`: each operation is one of `float`, rounded.
    Half,
    /// `u32`, `u64`: `+`, `-` and `*` of C++ wrap.
    Wrapping,
    /// Other integers: C++ promotes them, or leaves their overflow undefined.
    Integer,
    Bool,
    /// A complex number: the functions of `arithmetic.hpp` have its operators.
    Complex,
    /// Indexed as `x[i]`.
    Row,
    /// Indexed as `x(i, j)`.
    Grid,
    /// An array of the work-item itself, indexed as `x(i, j)`, made as `{{a, b}}`.
    Local,
    /// A record, whose fields are those of the last of [`TypeInfo::records`].
    Record,
    Other,
}

/// A type of device code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypeInfo {
    /// Its name in C++.
    pub name: String,
    /// How its expressions are printed.
    pub form: Form,
    /// The records in it, each after those that it is made of.
    pub records: Vec<Record>,
}

impl TypeInfo {
    fn new(name: impl Into<String>, form: Form) -> Self {
        Self { name: name.into(), form, records: Vec::new() }
    }

    /// A type that is made of others.
    fn made_of(name: String, form: Form, parts: &[TypeInfo]) -> Self {
        let mut records: Vec<Record> = Vec::new();
        for record in parts.iter().flat_map(|part| &part.records) {
            if !records.contains(record) {
                records.push(record.clone());
            }
        }
        Self { name, form, records }
    }

    /// How many elements an array of one axis has.
    pub(super) fn len(&self) -> usize {
        let count =
            self.name.rsplit_once(", ").and_then(|(_, count)| count.trim_end_matches('>').parse().ok());
        count.unwrap_or_default()
    }
}

/// A type that kernels have on every device.
///
/// # Safety
/// Device code has a type of this name and form. Where the type is an [`Element`], that has the same size and alignment.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no type of kernels",
    label = "this has the type `{Self}`, which a GPU does not know",
    note = "kernels know numbers, `bool`, tuples and arrays of them, and types with `#[derive(DeviceRecord)]`"
)]
pub unsafe trait DeviceType {
    /// Its name and form in device code.
    fn device_type() -> TypeInfo
    where
        Self: Sized;
}

macro_rules! plain {
    ($($type:ty => $name:literal $form:ident;)*) => {$(
        // SAFETY: the prelude, and the kernels' own part of it, have these types.
        #[diagnostic::do_not_recommend]
        unsafe impl DeviceType for $type {
            fn device_type() -> TypeInfo {
                TypeInfo::new($name, Form::$form)
            }
        }
    )*};
}
plain! {
    f32 => "float" Float; f64 => "double" Float; f16 => "f16" Half; bf16 => "bf16" Half;
    u8 => "u8" Integer; i8 => "i8" Integer; u16 => "u16" Integer; i16 => "i16" Integer;
    u32 => "u32" Wrapping; i32 => "i32" Integer; u64 => "u64" Wrapping; i64 => "i64" Integer;
    usize => "u64" Wrapping; isize => "i64" Integer; bool => "bool" Bool; () => "void" Other;
}

// SAFETY: the prelude has this type; it is a constant only.
#[diagnostic::do_not_recommend]
unsafe impl DeviceType for gpumem_core::BarrierScope {
    fn device_type() -> TypeInfo {
        TypeInfo::new("barrier_scope", Form::Other)
    }
}

/// Kernels count in 64 bits on every device, also on the host.
const _: () = assert!(size_of::<usize>() == 8, "kernels need a host of 64 bits");

// SAFETY: as above; both are one byte, of which 0 is false.
#[diagnostic::do_not_recommend]
unsafe impl DeviceType for gpumem_runtime::Bool {
    fn device_type() -> TypeInfo {
        TypeInfo::new("boolean", Form::Other)
    }
}

// SAFETY: as above.
#[diagnostic::do_not_recommend]
unsafe impl<T: DeviceType, const N: usize> DeviceType for [T; N] {
    fn device_type() -> TypeInfo {
        let element = T::device_type();
        TypeInfo::made_of(format!("array<{}, {N}>", element.name), Form::Local, &[element])
    }
}

/// Refuses a type that has another size in C++, while the program is compiled.
/// ```
/// # use gpumem_kernel::{DeviceType, Slice};
/// let name = <Slice<[f32; 1]> as DeviceType>::device_type().name;
/// ```
/// ```compile_fail
/// # use gpumem_kernel::{DeviceType, Slice};
/// let name = <Slice<[f32; 0]> as DeviceType>::device_type().name;
/// ```
#[allow(clippy::panic)] // in a constant
const fn has_bytes<T>() {
    assert!(
        size_of::<T>() > 0,
        "an element of a kernel's arrays, and a value that it is given, have bytes: C++ has no type without"
    );
}

macro_rules! arrays {
    ($([$($generics:tt)*] $type:ty => $form:ident, $name:literal;)*) => {$(
        // SAFETY: as above.
        #[diagnostic::do_not_recommend]
        unsafe impl<T: DeviceType, $($generics)*> DeviceType for $type {
            fn device_type() -> TypeInfo {
                const { has_bytes::<T>() };
                let element = T::device_type();
                TypeInfo::made_of(format!($name, element.name), Form::$form, &[element])
            }
        }
    )*};
}
arrays! {
    [] Slice<T> => Row, "slice<const {}>";
    [] SliceMut<T> => Row, "slice<{}>";
    [const N: usize] View<T, N> => Grid, "view<const {}, {N}>";
    [const N: usize] ViewMut<T, N> => Grid, "view<{}, {N}>";
    [] Own<T> => Row, "slice<{}>";
    [const N: usize] OwnView<T, N> => Grid, "view<{}, {N}>";
    [const LEN: usize] Constant<T, LEN> => Row, "constant<{}, {LEN}>";
    [const N: usize] ConstantArray<T, N> => Grid, "constant_array<{}, {N}>";
    [const N: usize] Shared<'_, T, N> => Grid, "{}";
    [const X: usize] LocalArray<[T; X], 1> => Local, "array<{}, {X}>";
    [const X: usize, const Y: usize] LocalArray<[[T; X]; Y], 2> => Local, "array<{}, {Y}, {X}>";
    [const X: usize, const Y: usize, const Z: usize] LocalArray<[[[T; X]; Y]; Z], 3> => Local, "array<{}, {Z}, {Y}, {X}>";
    [const X: usize, const Y: usize, const Z: usize, const W: usize]
        LocalArray<[[[[T; X]; Y]; Z]; W], 4> => Local, "array<{}, {W}, {Z}, {Y}, {X}>";
    [const X: usize, const Y: usize, const Z: usize, const W: usize, const V: usize]
        LocalArray<[[[[[T; X]; Y]; Z]; W]; V], 5> => Local, "array<{}, {V}, {W}, {Z}, {Y}, {X}>";
    [const X: usize, const Y: usize, const Z: usize, const W: usize, const V: usize, const U: usize]
        LocalArray<[[[[[[T; X]; Y]; Z]; W]; V]; U], 6> => Local, "array<{}, {U}, {V}, {W}, {Z}, {Y}, {X}>";
}

macro_rules! complex {
    ($($part:ty => $name:literal;)*) => {$(
        // SAFETY: as above.
        #[diagnostic::do_not_recommend]
        unsafe impl DeviceType for Complex<$part> {
            fn device_type() -> TypeInfo {
                TypeInfo::new($name, Form::Complex)
            }
        }
    )*};
}
// C++ computes with the parts as with these. Integers would not wrap.
complex! { f32 => "complex<float>"; f64 => "complex<double>"; }

// SAFETY: as above.
#[diagnostic::do_not_recommend]
unsafe impl<T: DeviceType> DeviceType for Value<T> {
    fn device_type() -> TypeInfo {
        const { has_bytes::<T>() };
        T::device_type()
    }
}

// SAFETY: as above; it is a variable only.
#[diagnostic::do_not_recommend]
unsafe impl<const N: usize> DeviceType for OwnId<'_, N> {
    fn device_type() -> TypeInfo {
        TypeInfo::new(format!("array<u64, {N}>"), Form::Local)
    }
}

macro_rules! tuples {
    ($(($($name:ident)*))*) => {$(
        // SAFETY: as above.
        #[diagnostic::do_not_recommend]
        unsafe impl<$($name: DeviceType),*> DeviceType for ($($name,)*) {
            fn device_type() -> TypeInfo {
                let parts = [$($name::device_type()),*];
                let names: Vec<&str> = parts.iter().map(|part| part.name.as_str()).collect();
                TypeInfo::made_of(format!("rust::tuple<{}>", names.join(", ")), Form::Other, &parts)
            }
        }
    )*};
}
tuples! { (A) (A B) (A B C) (A B C D) (A B C D E) (A B C D E F) }

/// A number of generic kernels: what all number types of kernels have in common. It is an argument for itself, so that a
/// generic function launches a generic kernel with it.
pub trait Numeric:
    Element
    + Number
    + DeviceType
    + super::DeviceConst
    + Parameter
    + crate::NumberArgument
    + super::Methods
    + super::Ordered
    + super::RaceFree
    + std::fmt::Debug
    + PartialOrd
    + std::ops::Add<Output = Self>
    + std::ops::Sub<Output = Self>
    + std::ops::Mul<Output = Self>
    + std::ops::Div<Output = Self>
    + std::ops::Rem<Output = Self>
    + std::ops::AddAssign
    + std::ops::SubAssign
    + std::ops::MulAssign
    + std::ops::DivAssign
    + std::ops::RemAssign
{
    const ZERO: Self;
    const ONE: Self;
}

macro_rules! numeric {
    ($($type:ty: $zero:expr, $one:expr;)*) => {$(
        impl Numeric for $type {
            const ZERO: Self = $zero;
            const ONE: Self = $one;
        }
    )*};
}
numeric! {
    u8: 0, 1; i8: 0, 1; u16: 0, 1; i16: 0, 1; u32: 0, 1; i32: 0, 1; u64: 0, 1; i64: 0, 1;
    f16: f16::ZERO, f16::ONE; bf16: bf16::ZERO, bf16::ONE; f32: 0.0, 1.0; f64: 0.0, 1.0;
}
