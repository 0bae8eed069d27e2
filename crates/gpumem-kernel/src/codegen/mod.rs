//! Translates Rust functions to the C++ of a GPU. The code that `#[kernel]` generates calls it; not for other uses.
//!
//! A procedural macro sees tokens and no types. So the macro writes the body once more, into a closure that is never
//! called, and passes values through a [`Witness`] there. rustc's own inference gives the witness its type, and
//! [`Language::type_of`] its name in C++. The body is also there as a `static` tree ([`S`], [`E`]), whose nodes name witnesses by
//! number. `PrintedProgram::source` prints the tree when the kernel is declared.
//!
//! * Types, literals, shadowing, generics and associated constants are so exactly Rust's; nothing here infers a type.
//! * Constants are values: each path that is no variable is evaluated when the kernel is declared, and printed as a literal.
//! * Integer arithmetic that C++ leaves undefined, or does in other types, goes through the functions of `arithmetic.hpp`.

mod constant;
mod function;
mod lengths;
mod methods;
mod names;
mod order;
mod origin;
mod parameter;
mod print;
mod record;
mod tree;
mod types;
mod witness;

pub use super::{HostForm, KernelDef};
pub use crate::simt::{
    Change, Fault, Load, LocalArray, Phases, Position, Private, Store, StoreLocal, WorkItem, WorkItemIds,
};
pub use crate::{__device_enum as device_enum, __device_record as device_record};
pub use bytemuck;
pub use constant::{DeviceConst, PrintedConstant};
pub use function::{BinaryFunction, Calls, DeviceFunction, UnaryFunction};
pub use gpumem_core::Element;
pub use lengths::{Grid, Row};
pub use methods::{Alike, Comparable, Convertible, Methods, NamedFields, Natural, Real, Whole};
pub use names::{IsName, Name};
pub use order::Ordered;
pub use origin::{Language, Origin};
pub use parameter::{RaceFree, Unpack};
pub use print::{PrintedParameter, PrintedProgram};
pub use record::{FieldOf, FieldType, Record, RecordField, WithoutDeref, field};
/// The standard library, whatever the user's crate calls by its name.
pub use std as rust;
pub type Text = String;
pub use tree::{E, S};
pub use types::{DeviceType, Form, Numeric, TypeInfo};
pub use witness::{NewComplex, Witness};
