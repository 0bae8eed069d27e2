//! Records: structures of the user with the same form in Rust and in C++.

use super::{DeviceType, Form, TypeInfo, print::member};
use gpumem_core::Element;
use std::{any::TypeId, fmt::Write, marker::PhantomData, ops::Deref};

/// A structure as C++ has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Its name in Rust.
    pub rust: &'static str,
    /// Stands for its name within `namespace records` until the source is complete.
    pub name: String,
    /// Its size and its alignment, in bytes.
    pub layout: [usize; 2],
    /// Its fields, in order.
    pub fields: Vec<RecordField>,
}

/// A field of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordField {
    /// Its name in Rust.
    pub name: &'static str,
    /// Its type in C++.
    pub ty: String,
    /// Where it begins, in bytes.
    pub offset: usize,
    /// Its size and its alignment, in bytes.
    pub layout: [usize; 2],
}

/// A field of the record `R`, as the structure itself has it.
#[derive(Debug)]
pub struct FieldOf<R> {
    name: &'static str,
    ty: fn() -> TypeInfo,
    offset: usize,
    layout: [usize; 2],
    record: PhantomData<fn(&R)>,
}

/// The type of a field, of which no value is made: it may be larger than the memory.
#[derive(Debug)]
pub struct FieldType<T>(PhantomData<fn(&T)>);

/// A field of a record: plain data, in device code too.
pub fn field<T: Element + DeviceType>(_: &T) -> FieldType<T> {
    FieldType(PhantomData)
}

/// A record without `Deref`, by which a field could be one of another structure. One with it has two implementations, and a check
/// that names neither does not compile.
pub trait WithoutDeref<Known> {}
impl<R> WithoutDeref<()> for R {}
impl<R: Deref> WithoutDeref<[(); 1]> for R {}

impl<R> FieldOf<R> {
    /// Does not compile for a record that implements `Deref`.
    pub const fn has_no_deref<Known>()
    where
        R: WithoutDeref<Known>,
    {
    }

    /// The field at `offset` that both functions borrow, of which the second needs one that kernels have.
    pub const fn new<T: DeviceType>(
        name: &'static str,
        offset: usize,
        field: fn(&R) -> &T,
        ty: fn(&R) -> FieldType<T>,
    ) -> Self {
        let (_, _) = (field, ty);
        let layout = [size_of::<T>(), align_of::<T>()];
        Self { name, ty: T::device_type, offset, layout, record: PhantomData }
    }

    /// Refuses, while the program is compiled, a record that is not its fields one after the other.
    #[allow(clippy::panic, clippy::indexing_slicing)] // in a constant
    pub const fn check(fields: &[Self], all: fn(&R)) {
        let _ = all;
        let (mut end, mut align, mut at) = (0, 1, 0);
        while at < fields.len() {
            let FieldOf { offset, layout: [size, of_field], .. } = &fields[at];
            assert!(
                *offset == end,
                "a record has no padding: order its fields by size, or add fields that fill it"
            );
            assert!(*size > 0, "a field of a record has bytes: C++ has no type without");
            end += *size;
            align = if *of_field > align { *of_field } else { align };
            at += 1;
        }
        assert!(
            align_of::<R>() == align,
            "a record has the alignment of its fields: C++ lays it out by `#[repr(C)]` alone"
        );
        assert!(
            size_of::<R>() == end,
            "a record has no padding: order its fields by size, or add fields that fill it"
        );
    }
}

/// Makes a structure a record: what `#[derive(DeviceRecord)]` expands to.
///
/// Nothing here rests on what the caller says. The types of the fields are those that a borrow of the structure has, all fields
/// are named, and the layout is the compiler's. So the macro is safe to call with anything, and the `unsafe` in it is bound to
/// these checks.
#[doc(hidden)]
#[macro_export]
macro_rules! __device_record {
    ($name:ident { $($field:ident)+ }) => {
        const _: () = {
            const FIELDS: &[$crate::codegen::FieldOf<$name>] = &[$($crate::codegen::FieldOf::new(
                $crate::codegen::rust::stringify!($field),
                $crate::codegen::rust::mem::offset_of!($name, $field),
                |&$name { $field: ref value, .. }| value,
                |&$name { $field: ref value, .. }| $crate::codegen::field(value),
            )),+];
            const _: () = $crate::codegen::FieldOf::check(FIELDS, |&$name { $($field: _),+ }| ());
            const _: () = $crate::codegen::FieldOf::<$name>::has_no_deref();

            // SAFETY: zeros are a value of each field, which is plain data.
            unsafe impl $crate::codegen::bytemuck::Zeroable for $name {}
            // SAFETY: its fields lie one after the other, without padding, and each is plain data.
            unsafe impl $crate::codegen::bytemuck::Pod for $name {}

            // SAFETY: the source declares a structure of these fields, and `check` has found that they are all.
            #[diagnostic::do_not_recommend]
            unsafe impl $crate::codegen::NamedFields for $name {}
            // SAFETY: the source declares a structure of these fields, whose layout the compiler compares.
            #[diagnostic::do_not_recommend]
            unsafe impl $crate::codegen::DeviceType for $name {
                fn device_type() -> $crate::codegen::TypeInfo {
                    $crate::codegen::TypeInfo::record(FIELDS, $crate::codegen::rust::stringify!($name))
                }
            }
        };
    };
}

/// Makes an enum a type of kernels: what `#[derive(DeviceRecord)]` expands to. Safe to call with anything, as
/// `__device_record`.
#[doc(hidden)]
#[macro_export]
macro_rules! __device_enum {
    ($name:ident $number:ident $first:ident { $($variant:ident)+ }) => {
        const _: () = {
            // All variants, and each as the number that device code has.
            const _: fn($name) = |value| match value {
                $($name::$variant => ()),+
            };
            const _: () = $crate::codegen::rust::assert!(
                $($name::$variant as $crate::codegen::rust::primitive::i128
                    == ($name::$variant as $crate::codegen::rust::primitive::$number)
                        as $crate::codegen::rust::primitive::i128)&&+,
                "an enum of kernels has the number of its `repr`"
            );
            // A pattern takes a constant only of a type that `derive(PartialEq)` compares.
            const FIRST: $name = $name::$first;
            const _: fn($name) -> $crate::codegen::rust::primitive::bool =
                |value| $crate::codegen::rust::matches!(value, FIRST);

            // SAFETY: `derive(PartialEq)` compares the numbers of the variants, as device code does.
            unsafe impl $crate::codegen::Comparable for $name {}
            // SAFETY: as above.
            #[diagnostic::do_not_recommend]
            unsafe impl $crate::codegen::Alike<$name> for $name {}

            // SAFETY: it is cast to this number, which is what device code has.
            #[diagnostic::do_not_recommend]
            unsafe impl $crate::codegen::DeviceType for $name {
                fn device_type() -> $crate::codegen::TypeInfo {
                    <$crate::codegen::rust::primitive::$number as $crate::codegen::DeviceType>::device_type()
                }
            }

            // SAFETY: the literal of the number.
            unsafe impl $crate::codegen::DeviceConst for $name {
                fn literal(&self) -> $crate::codegen::Text {
                    $crate::codegen::DeviceConst::literal(
                        &(*self as $crate::codegen::rust::primitive::$number),
                    )
                }
            }
        };
    };
}

impl TypeInfo {
    /// The record `R` of this name and these fields.
    pub fn record<R: Element>(fields: &[FieldOf<R>], rust: &'static str) -> Self {
        let name = format!("@{:?}@", TypeId::of::<R>());
        let mut records: Vec<Record> = Vec::new();
        let mut listed = Vec::new();
        for FieldOf { name, ty, offset, layout, .. } in fields {
            let Self { name: ty, records: within, .. } = ty();
            for record in within {
                if !records.contains(&record) {
                    records.push(record);
                }
            }
            listed.push(RecordField { name: plain(name), ty, offset: *offset, layout: *layout });
        }
        let layout = [size_of::<R>(), align_of::<R>()];
        records.push(Record { rust: plain(rust), name: name.clone(), layout, fields: listed });
        Self { name: format!("records::{name}"), form: Form::Record, records }
    }
}

/// The name without `r#`.
fn plain(name: &str) -> &str {
    name.strip_prefix("r#").unwrap_or(name)
}

impl Record {
    /// Declares it in C++, and lets the compiler compare the layouts.
    pub(super) fn declare(&self, out: &mut String) {
        let Self { name, layout: [size, align], fields, .. } = self;
        let _ = writeln!(out, "namespace records {{\nstruct {name} {{");
        for RecordField { name, ty, .. } in fields {
            let _ = writeln!(out, "    {ty} {};", member(name));
        }
        let _ = writeln!(
            out,
            "}};\nstatic_assert(sizeof({name}) == {size} && alignof({name}) == {align}, \"{name} has the layout of Rust\");"
        );
        // Fields of the same sizes and alignments lie at the same offsets: C++ and `repr(C)` count alike. NVRTC has no `offsetof`
        // in every version.
        let mut end = 0_usize;
        for RecordField { name: field, offset, layout: [size, align], .. } in fields {
            let is_in_order = end.next_multiple_of(*align) == *offset;
            end = offset + size;
            let field = member(field);
            let _ = writeln!(
                out,
                "static_assert({is_in_order} && sizeof({name}::{field}) == {size} && alignof(decltype({name}::{field})) == {align}, \
                 \"{name}::{field} lies where it does in Rust\");"
            );
        }
        out.push_str("}  // namespace records\n");
    }
}
