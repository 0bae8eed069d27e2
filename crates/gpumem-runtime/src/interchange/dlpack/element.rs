//! DLPack's codes of element types.

use super::abi::DLDataType;
use gpumem_core::{DescriptorError, ElementKind, ElementType};

const CODES: [(u8, ElementKind); 6] = [
    (0, ElementKind::Int),
    (1, ElementKind::UInt),
    (2, ElementKind::Float),
    (4, ElementKind::BFloat),
    (5, ElementKind::Complex),
    (6, ElementKind::Bool),
];

pub(super) fn read(dtype: DLDataType) -> Result<ElementType, DescriptorError> {
    let DLDataType { code, bits, lanes } = dtype;
    let bad =
        |why| DescriptorError::TypeName { text: format!("code {code}, {bits} bits, {lanes} lanes"), why };
    if lanes != 1 {
        return Err(bad("elements of several lanes are not taken"));
    }
    if bits == 0 || bits % 8 != 0 {
        return Err(bad("elements are whole bytes"));
    }
    match CODES.iter().find(|(known, _)| *known == code) {
        Some((_, kind)) => Ok(ElementType::new(*kind, usize::from(bits / 8))),
        None => Err(bad("the code is unknown")),
    }
}

pub(super) fn write(element: ElementType) -> Result<DLDataType, DescriptorError> {
    let code = CODES.iter().find(|(_, kind)| *kind == element.kind);
    match (code, element.bytes.checked_mul(8).and_then(|bits| u8::try_from(bits).ok())) {
        (Some((code, _)), Some(bits)) => Ok(DLDataType { code: *code, bits, lanes: 1 }),
        _ => Err(DescriptorError::Inexpressible { protocol: "DLPack", what: "elements that are no numbers" }),
    }
}
