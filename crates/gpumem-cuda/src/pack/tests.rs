use super::launch::PTX;
use gpumem_layout::pack::{PackKernel, SOURCE, StridedKernel, TransposeKernel, UNITS};

/// After a change of pack.cu, run build.py.
#[test]
fn the_compiled_text_belongs_to_the_source() {
    let sum = SOURCE
        .bytes()
        .fold(0xCBF2_9CE4_8422_2325_u64, |sum, byte| (sum ^ u64::from(byte)).wrapping_mul(0x100_0000_01B3));
    let head = PTX.lines().next().unwrap();
    assert!(head.contains(&format!("{sum:016x}")), "run build.py: {head}");
    assert!(PTX.contains(".version 8.0\n"), "a driver of CUDA 12.0 reads nothing newer");
    for unit in UNITS {
        for family in PackKernel::ALL {
            assert!(PTX.contains(&format!(".entry {}(", family.symbol(unit))));
        }
    }
    // As large as the compiler sees them.
    assert!(PTX.contains(&format!("gpumem_walk_4_param_0[{}]", size_of::<StridedKernel>())));
    assert!(PTX.contains(&format!("gpumem_turn_4_param_0[{}]", size_of::<TransposeKernel>())));
}
