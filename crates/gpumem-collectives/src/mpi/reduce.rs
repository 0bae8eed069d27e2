//! Reductions as MPI's types and operations.

use super::{
    Mpi, MpiError,
    abi::{self, Count, Object},
};
use crate::call::Computation;
use num_complex::Complex;
use std::{any::TypeId, collections::BTreeMap};

/// The types and operations that were made for reductions that the standard lacks.
#[derive(Debug, Default)]
pub(crate) struct Made {
    types: BTreeMap<usize, Object>,
    operations: BTreeMap<usize, Object>,
}

impl Made {
    /// The type and the operation of a reduction.
    pub(crate) fn of(&mut self, mpi: &Mpi, computation: &Computation) -> Result<(Object, Object), MpiError> {
        let step = (computation.step)();
        if let Some(known) = standard(step.element, computation.name) {
            return Ok(known);
        }
        let datatype = match self.types.get(&step.bytes) {
            Some(made) => *made,
            None => {
                let (bytes, mut made) = (step.bytes as Count, abi::DATATYPE_NULL);
                // SAFETY: a place for the type.
                mpi.check(unsafe { mpi.functions.MPI_Type_contiguous_c(bytes, abi::BYTE, &mut made) })?;
                // SAFETY: the type was made above.
                mpi.check(unsafe { mpi.functions.MPI_Type_commit(&mut made) })?;
                *self.types.entry(step.bytes).or_insert(made)
            }
        };
        let function = step.combine as usize;
        let operation = match self.operations.get(&function) {
            Some(made) => *made,
            None => {
                let mut made = abi::OP_NULL;
                // SAFETY: a place for the operation. The function has the standard's signature, does not unwind, and is
                // called with elements of its type, because the operation is used with those alone.
                mpi.check(unsafe { mpi.functions.MPI_Op_create_c(step.combine, 1, &mut made) })?;
                *self.operations.entry(function).or_insert(made)
            }
        };
        Ok((datatype, operation))
    }
}

/// The standard's type and operation, where it computes what the library promises. The standard does not say what the
/// smallest of a number and a NaN is.
fn standard(element: TypeId, reduction: &str) -> Option<(Object, Object)> {
    let integers = [
        (TypeId::of::<i8>(), abi::INT8_T),
        (TypeId::of::<u8>(), abi::UINT8_T),
        (TypeId::of::<i32>(), abi::INT32_T),
        (TypeId::of::<u32>(), abi::UINT32_T),
        (TypeId::of::<i64>(), abi::INT64_T),
        (TypeId::of::<u64>(), abi::UINT64_T),
    ];
    let numbers = [(TypeId::of::<f32>(), abi::FLOAT), (TypeId::of::<f64>(), abi::DOUBLE)];
    let complex = [
        (TypeId::of::<Complex<f32>>(), abi::C_FLOAT_COMPLEX),
        (TypeId::of::<Complex<f64>>(), abi::C_DOUBLE_COMPLEX),
    ];
    let find =
        |all: &[(TypeId, Object)]| all.iter().find(|(id, _)| *id == element).map(|(_, handle)| *handle);
    let integer = find(&integers);
    let number = integer.or_else(|| find(&numbers));
    match reduction {
        "sum" | "average" => Some((number.or_else(|| find(&complex))?, abi::SUM)),
        "product" => Some((number?, abi::PROD)),
        "min" => Some((integer?, abi::MIN)),
        "max" => Some((integer?, abi::MAX)),
        _ => None,
    }
}
