//! Numbers and reductions in the library's words.

use crate::{call::Call, reduction::Number};
use gpumem_sys::nccl::{ncclDataType_t as Type, ncclRedOp_t as Operation};

/// What the library computes: the type, how many of them an element is, and the operation. `None` for what it cannot.
pub(super) fn computed(call: &Call) -> Option<(Type, usize, Operation)> {
    let (number, numbers) = match call.element.number? {
        Number::I8 => (Type::ncclInt8, 1),
        Number::U8 => (Type::ncclUint8, 1),
        Number::I32 => (Type::ncclInt32, 1),
        Number::U32 => (Type::ncclUint32, 1),
        Number::I64 => (Type::ncclInt64, 1),
        Number::U64 => (Type::ncclUint64, 1),
        Number::F16 => (Type::ncclFloat16, 1),
        Number::Bf16 => (Type::ncclBfloat16, 1),
        Number::F32 => (Type::ncclFloat32, 1),
        Number::F64 => (Type::ncclFloat64, 1),
        // The parts are added apart.
        Number::Complex32 => (Type::ncclFloat32, 2),
        Number::Complex64 => (Type::ncclFloat64, 2),
    };
    let operation = match call.computation?.name {
        "sum" => Operation::ncclSum,
        "average" => Operation::ncclAvg,
        "product" if numbers == 1 => Operation::ncclProd,
        "min" if numbers == 1 => Operation::ncclMin,
        "max" if numbers == 1 => Operation::ncclMax,
        _ => return None,
    };
    Some((number, numbers, operation))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Average, Max, Product, Reduction, Sum, call::Kind};
    use gpumem_core::Element;
    use half::bf16;
    use num_complex::Complex;

    fn of<T: Element>(reduction: impl Reduction<T>) -> Option<(Type, usize, Operation)> {
        computed(&Call::new::<T>(Kind::AllReduce, 1).computing::<T, _>(reduction))
    }

    #[test]
    fn complex_numbers_are_two_numbers() {
        assert_eq!(of::<Complex<f64>>(Sum), Some((Type::ncclFloat64, 2, Operation::ncclSum)));
        assert_eq!(of::<Complex<f32>>(Average), Some((Type::ncclFloat32, 2, Operation::ncclAvg)));
        assert_eq!(of::<bf16>(Max), Some((Type::ncclBfloat16, 1, Operation::ncclMax)));
        assert_eq!(of::<u8>(Product), Some((Type::ncclUint8, 1, Operation::ncclProd)));
    }
}
