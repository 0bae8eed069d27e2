//! Taking the text of instructions apart.

use crate::isa::text::{Text, Written, integer};

fn written(line: &str) -> Vec<Written> {
    Text::parse(line).operands.iter().map(|operand| operand.written).collect()
}

#[test]
fn registers_and_constants() {
    use Written::{Accumulator, Float, Integer, Literal, Off, Scalar, Vector};
    assert_eq!(written("v_add_u32_e32 v1, 5, v255"), [Vector(1, 1), Integer(5), Vector(255, 1)]);
    assert_eq!(written("s_mov_b64 s[4:5], exec"), [Scalar(4, 2), Scalar(126, 2)]);
    assert_eq!(written("v_mov_b32_e32 v0, 0x3f800000"), [Vector(0, 1), Literal(0x3f80_0000)]);
    assert_eq!(
        written("v_fma_f64 v[0:1], v[2:3], 1.0, -4.0"),
        [Vector(0, 2), Vector(2, 2), Float(1.0), Float(-4.0)]
    );
    assert_eq!(written("s_load_dword s0, s[2:3], -0x4")[2], Integer(-4));
    assert_eq!(written("global_load_dword v1, v[2:3], off offset:-16")[2], Off);
    assert_eq!(written("v_accvgpr_read_b32 v0, a7")[1], Accumulator(7, 1));
    assert_eq!(written("s_and_b32 exec_lo, ttmp4, vcc_lo"), [Scalar(126, 1), Scalar(112, 1), Scalar(106, 1)]);
    assert_eq!(integer("-0x10"), Some(-16));
    assert_eq!(integer("ten"), None);
}

#[test]
fn signs_belong_to_operands() {
    let text = Text::parse("v_add_f32_e64 v0, -v1, |v2|");
    assert_eq!((text.name.as_str(), text.encoding), ("v_add_f32", "e64"));
    assert!(text.operands[1].negate && !text.operands[1].absolute);
    assert!(text.operands[2].absolute && !text.operands[2].negate);
    let both = Text::parse("v_mul_f32_e64 v0, -|v1|, neg(v2)");
    assert!(both.operands[1].absolute && both.operands[1].negate && both.operands[2].negate);
}

#[test]
fn modifiers_and_fields() {
    let text = Text::parse("ds_read2_b32 v[0:1], v2 offset0:1 offset1:0x10 // at 1234");
    assert_eq!((text.number("offset0"), text.number("offset1")), (Some(1), Some(16)));
    let text = Text::parse("s_waitcnt vmcnt(0) lgkmcnt(3)");
    assert_eq!(text.field("vmcnt"), Some(vec!["0"]));
    assert_eq!(text.field("lgkmcnt"), Some(vec!["3"]));
    assert_eq!(text.field("expcnt"), None);
    let text = Text::parse("s_getreg_b32 s4, hwreg(HW_REG_SH_MEM_BASES, 16, 16)");
    assert_eq!(text.field("hwreg"), Some(vec!["HW_REG_SH_MEM_BASES", "16", "16"]));
    let text = Text::parse("v_or_b32_sdwa v0, v1, sext(v2) dst_sel:DWORD src1_sel:BYTE_0");
    assert_eq!(text.encoding, "sdwa");
    assert!(text.operands[2].sign_extend);
    assert_eq!(text.modifiers.get("src1_sel").map(String::as_str), Some("BYTE_0"));
    let text = Text::parse("v_pk_mul_f32 v[0:1], v[2:3], v[4:5] op_sel_hi:[1,0]");
    assert_eq!(text.modifiers.get("op_sel_hi").map(String::as_str), Some("[1,0]"));
    assert_eq!(
        Text::parse("global_atomic_add v0, v1, v2, s[0:1] glc").modifiers.get("glc"),
        Some(&String::new())
    );
}
