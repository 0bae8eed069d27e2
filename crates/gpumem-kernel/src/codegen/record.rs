//! Records: structures of the user with the same form in Rust and in C++.

use super::{DeviceType, Form, TypeInfo};
use gpumem_core::Element;
use std::fmt::Write;

/// A structure as C++ has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Its name in C++, within `namespace records`.
    pub name: String,
    /// Its size and its alignment, in bytes.
    pub layout: [usize; 2],
    /// Its fields, in order.
    pub fields: Vec<RecordField>,
}

/// A field of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordField {
    /// Its name in C++.
    pub name: &'static str,
    /// Its type in C++.
    pub ty: String,
    /// Where it begins, in bytes.
    pub offset: usize,
    /// Its size and its alignment, in bytes.
    pub layout: [usize; 2],
}

/// Collects the fields of a record. `#[derive(DeviceRecord)]` calls it.
#[derive(Debug, Default)]
pub struct Fields {
    fields: Vec<RecordField>,
    records: Vec<Record>,
}

impl Fields {
    /// With the next field.
    #[must_use]
    pub fn field<T: DeviceType>(mut self, name: &'static str, offset: usize) -> Self {
        let TypeInfo { name: ty, records, .. } = T::device_type();
        for record in records {
            if !self.records.contains(&record) {
                self.records.push(record);
            }
        }
        self.fields.push(RecordField { name, ty, offset, layout: [size_of::<T>(), align_of::<T>()] });
        self
    }

    /// The type of the record `T`, which is declared in `module`.
    pub fn record<T: Element>(self, module: &str, name: &str) -> TypeInfo {
        let name = format!("{}_{name}", module.replace("::", "_").replace("__", "_u_"));
        let mut records = self.records;
        let layout = [size_of::<T>(), align_of::<T>()];
        records.push(Record { name: name.clone(), layout, fields: self.fields });
        TypeInfo { name: format!("records::{name}"), form: Form::Record, records }
    }
}

impl Record {
    /// Declares it in C++, and lets the compiler compare the layouts.
    pub(super) fn declare(&self, out: &mut String) {
        let Self { name, layout: [size, align], fields } = self;
        let _ = writeln!(out, "namespace records {{\nstruct {name} {{");
        for RecordField { name, ty, .. } in fields {
            let _ = writeln!(out, "    {ty} {name};");
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
            let _ = writeln!(
                out,
                "static_assert({is_in_order} && sizeof({name}::{field}) == {size} && alignof(decltype({name}::{field})) == {align}, \
                 \"{name}::{field} lies where it does in Rust\");"
            );
        }
        out.push_str("}  // namespace records\n");
    }
}
