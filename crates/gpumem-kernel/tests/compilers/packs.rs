//! The kernels that copy between any two layouts, which every GPU backend has.

use crate::{AMD, NVIDIA, compiler as load, compiler::Flavour};
use gpumem_layout::pack::{PackKernel, SOURCE, UNITS};

/// The source as the backend that compiles it at run time asks for it.
fn of_unit(unit: usize) -> String {
    format!("#define GPUMEM_PACK_UNIT {unit}\n{SOURCE}")
}

/// Whether a code object has the kernel, and not only one whose name begins like it.
fn has(code: &[u8], symbol: &str) -> bool {
    let name = format!("{symbol}.kd\0");
    code.windows(name.len()).any(|part| part == name.as_bytes())
}

#[test]
fn hiprtc_compiles_the_kernels_of_each_unit() {
    let Some(compiler) = load(Flavour::Hiprtc) else { return };
    for (architecture, _) in AMD {
        for unit in UNITS {
            let code = compiler.compile(&of_unit(unit), architecture).unwrap();
            for (other, family) in
                UNITS.iter().flat_map(|other| PackKernel::ALL.map(|family| (*other, family)))
            {
                let symbol = family.symbol(other);
                assert_eq!(has(&code, &symbol), other == unit, "{symbol} for {unit} on {architecture}");
            }
        }
    }
}

#[test]
fn nvrtc_compiles_the_kernels() {
    let Some(compiler) = load(Flavour::Nvrtc) else { return };
    for architecture in NVIDIA {
        let ptx = String::from_utf8(compiler.compile(SOURCE, architecture).unwrap()).unwrap();
        for (unit, family) in UNITS.iter().flat_map(|unit| PackKernel::ALL.map(|family| (*unit, family))) {
            assert!(ptx.contains(&format!(".entry {}(", family.symbol(unit))), "{architecture}");
        }
    }
}
