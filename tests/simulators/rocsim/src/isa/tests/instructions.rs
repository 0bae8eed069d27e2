//! Instructions by themselves, from their text.

use crate::isa::{
    comgr::Line,
    decode::{Shape, decode},
    environment::{DeviceMemory, Environment},
    instruction::Flow,
    mode::Mode,
    text::scalar,
    wave::{HIDDEN, SHARED_APERTURE, Wave},
};

const SHAPE: Shape = Shape { wave_size: 64, vectors: 64, accumulators: 32 };

/// A wave of 64 in which `v0` is the number of the lane, and denormal numbers count.
pub(super) fn wave() -> Wave {
    let mut wave = Wave::new(64, 64);
    wave.set_exec(u64::MAX);
    wave.mode = Mode::from_bits(0xf0);
    wave.set_pair(scalar::SHARED_BASE, u64::from(SHARED_APERTURE) << 32);
    wave.private_bytes = 64;
    wave.private = vec![0; 64 * 64];
    for lane in 0..64 {
        wave.vectors[HIDDEN][lane] = lane as u32;
    }
    wave
}

/// Runs instructions, and gives the last one's outcome.
pub(super) fn run_with(wave: &mut Wave, shared: &mut [u8], lines: &[&str]) -> Flow {
    let mut device = DeviceMemory::new(super::rig::NODE);
    let mut flow = Flow::Next;
    for text in lines {
        let line = Line { text: (*text).to_owned(), bytes: 4, target: None };
        let instruction = decode(&line, 0x1000, SHAPE);
        let mut environment = Environment { shared, device: &mut device, checks: None };
        flow = (instruction.op)(wave, &instruction, &mut environment);
        assert!(flow != Flow::Stop || lines.len() == 1, "{text}: {:?}", wave.stop);
    }
    flow
}

pub(super) fn run(wave: &mut Wave, lines: &[&str]) {
    assert_eq!(run_with(wave, &mut [0; 1024], lines), Flow::Next);
}

pub(super) fn vector(wave: &Wave, register: usize) -> [u32; 64] {
    wave.vectors[HIDDEN + register]
}

fn f32s(wave: &Wave, register: usize) -> [f32; 64] {
    vector(wave, register).map(f32::from_bits)
}

#[test]
fn scalar_arithmetic_sets_the_condition() {
    let mut w = wave();
    run(&mut w, &["s_mov_b32 s0, -1", "s_mov_b32 s1, 2", "s_add_u32 s2, s0, s1"]);
    assert_eq!((w.scalars[2], w.scc()), (1, true));
    run(&mut w, &["s_addc_u32 s3, s0, 0"]);
    assert_eq!((w.scalars[3], w.scc()), (0, true), "the carry goes in and comes out");
    run(&mut w, &["s_sub_u32 s2, s1, s0"]);
    assert_eq!((w.scalars[2], w.scc()), (3, true), "a borrow");
    run(&mut w, &["s_mov_b32 s4, 0x7fffffff", "s_add_i32 s5, s4, 1"]);
    assert_eq!((w.scalars[5], w.scc()), (0x8000_0000, true), "an overflow");
    run(&mut w, &["s_movk_i32 s6, 0x8000", "s_cmp_lt_i32 s6, 0"]);
    assert_eq!((w.scalars[6], w.scc()), (0xffff_8000, true));
    run(&mut w, &["s_cselect_b32 s7, 5, 6", "s_bfe_u32 s8, s4, 0x40004", "s_lshl_b64 s[10:11], s[4:5], 4"]);
    assert_eq!((w.scalars[7], w.scalars[8]), (5, 15));
    assert_eq!((w.scalars[10], w.scalars[11]), (0xffff_fff0, 7));
    run(&mut w, &["s_mul_hi_u32 s12, s0, s0", "s_bcnt1_i32_b64 s13, s[4:5]", "s_ff1_i32_b64 s14, s[4:5]"]);
    assert_eq!((w.scalars[12], w.scalars[13], w.scalars[14]), (0xffff_fffe, 32, 0));
    run(&mut w, &["s_mov_b32 s18, 0x80ff", "s_mov_b32 s19, 3"]);
    run(&mut w, &["s_bfe_i64 s[20:21], s[18:19], 0x100000", "s_bfe_i64 s[22:23], s[18:19], 0x200008"]);
    assert_eq!((w.pair(20), w.pair(22)), (0xffff_ffff_ffff_80ff, 0x0300_0080));
    // A value written to null is lost.
    run(&mut w, &["s_mov_b32 null, 7", "s_mov_b32 s15, null"]);
    assert_eq!(w.scalars[15], 0);
}

#[test]
fn inactive_lanes_keep_their_values() {
    let mut w = wave();
    run(&mut w, &["v_mov_b32_e32 v1, 7", "v_cmp_gt_u32_e32 vcc, 3, v0", "s_and_saveexec_b64 s[0:1], vcc"]);
    assert_eq!((w.exec(), w.pair(0), w.scc()), (7, u64::MAX, true));
    run(&mut w, &["v_add_u32_e32 v1, 1, v1", "v_cmp_ne_u32_e32 vcc, 0, v0", "s_mov_b64 exec, s[0:1]"]);
    assert!(vector(&w, 1).iter().enumerate().all(|(lane, value)| *value == if lane < 3 { 8 } else { 7 }));
    assert_eq!(w.pair(scalar::VCC), 6, "comparisons give nothing for lanes that do not take part");
}

#[test]
fn carries_go_from_lane_to_lane() {
    let mut w = wave();
    run(
        &mut w,
        &[
            "v_sub_u32_e32 v1, 0, v0",
            "v_add_co_u32_e32 v2, vcc, v0, v1",
            "v_addc_co_u32_e32 v3, vcc, 10, v0, vcc",
        ],
    );
    let expected: [u32; 64] = std::array::from_fn(|lane| lane as u32 + 10 + u32::from(lane != 0));
    assert_eq!((vector(&w, 2), vector(&w, 3), w.pair(scalar::VCC)), ([0; 64], expected, 0));
    run(&mut w, &["v_sub_u32_e64 v4, v0, 5 clamp", "v_subrev_u32_e32 v5, 5, v0"]);
    assert_eq!((vector(&w, 4)[3], vector(&w, 4)[9], vector(&w, 5)[3]), (0, 4, 0xffff_fffe));
    run(&mut w, &["v_mad_u64_u32 v[6:7], s[0:1], v5, v5, v[0:1]"]);
    let lane = 3;
    let product = 0xffff_fffe_u64 * 0xffff_fffe;
    let sum = product.wrapping_add(u64::from(vector(&w, 1)[lane]) << 32 | lane as u64);
    assert_eq!(u64::from(vector(&w, 7)[lane]) << 32 | u64::from(vector(&w, 6)[lane]), sum);
    assert_eq!(w.pair(0) >> lane & 1, 1, "the sum has 65 bits");
}

#[test]
fn bits_are_moved_and_picked() {
    let mut w = wave();
    run(&mut w, &["v_mov_b32_e32 v1, 0x80ff1234", "v_bfe_u32 v2, v1, 8, 8", "v_bfe_i32 v3, v1, 16, 8"]);
    assert_eq!((vector(&w, 2)[0], vector(&w, 3)[0]), (0x12, u32::MAX));
    run(&mut w, &["v_perm_b32 v4, v1, v0, 0x0c0d0b04", "v_alignbit_b32 v5, v1, v1, 8"]);
    assert_eq!((vector(&w, 4)[0], vector(&w, 5)[0]), (0x00ff_ff34, 0x3480_ff12));
    run(
        &mut w,
        &["v_mul_u32_u24_sdwa v6, v1, v0 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:BYTE_0 src1_sel:DWORD"],
    );
    assert_eq!(vector(&w, 6)[3], 3 * 0x34);
    run(&mut w, &["v_mul_hi_i32_i24_e32 v7, v1, v1", "v_mul_hi_i32_i24_e32 v8, v0, v1"]);
    // The lower 24 bits of v1 are -0xedcc.
    assert_eq!((vector(&w, 7)[0], vector(&w, 8)[0], vector(&w, 8)[3]), (0, 0, u32::MAX));
    run(
        &mut w,
        &[
            "v_mov_b32_e32 v7, -1",
            "v_or_b32_sdwa v7, v1, v0 dst_sel:WORD_1 dst_unused:UNUSED_PRESERVE src0_sel:WORD_0 src1_sel:DWORD",
        ],
    );
    assert_eq!(vector(&w, 7)[1], 0x1235_ffff);
    run(&mut w, &["v_lshrrev_b16_e32 v8, 4, v1"]);
    assert_eq!(vector(&w, 8)[0], 0x0123, "the upper half becomes zero");
    w.keeps_upper_half = true;
    run(&mut w, &["v_mov_b32_e32 v8, -1", "v_lshrrev_b16 v8, 4, v1"]);
    assert_eq!(vector(&w, 8)[0], 0xffff_0123, "the upper half stays");
    run(&mut w, &["v_accvgpr_write_b32 a3, v1", "v_accvgpr_read_b32 v9, a3"]);
    assert_eq!((vector(&w, 9)[5], vector(&w, 35)[5]), (0x80ff_1234, 0x80ff_1234));
}

#[test]
fn lanes_exchange_values() {
    let mut w = wave();
    run(&mut w, &["v_xor_b32_e32 v1, 1, v0", "v_lshlrev_b32_e32 v2, 2, v1", "v_add_u32_e32 v3, 100, v0"]);
    run(&mut w, &["ds_bpermute_b32 v4, v2, v3", "v_readlane_b32 s0, v3, 9", "v_readfirstlane_b32 s1, v3"]);
    assert_eq!((vector(&w, 4)[6], w.scalars[0], w.scalars[1]), (107, 109, 100));
    run(&mut w, &["v_mbcnt_lo_u32_b32 v5, -1, 0", "v_mbcnt_hi_u32_b32 v5, -1, v5"]);
    assert_eq!(vector(&w, 5), vector(&w, 0));
    // A lane that does not take part is read as zero.
    run(&mut w, &["s_mov_b64 exec, 0x3f", "ds_bpermute_b32 v4, v2, v3"]);
    run(&mut w, &["s_mov_b64 exec, 1", "ds_bpermute_b32 v4, v2, v3"]);
    assert_eq!((vector(&w, 4)[0], vector(&w, 4)[1]), (0, 100));
}

#[test]
fn floats_round_flush_and_clamp() {
    let mut w = wave();
    run(&mut w, &["v_cvt_f32_u32_e32 v1, v0", "v_fma_f32 v2, v1, 2.0, 0.5", "v_mul_f32_e64 v3, -v1, |v2|"]);
    assert_eq!((f32s(&w, 2)[10], f32s(&w, 3)[10]), (20.5, -205.0));
    run(&mut w, &["v_mul_f32_e64 v4, v1, 0.5 clamp", "v_add_f32_e64 v5, v1, v1 mul:4"]);
    assert_eq!((f32s(&w, 4)[1], f32s(&w, 4)[9], f32s(&w, 5)[3]), (0.5, 1.0, 24.0));
    // NaNs: an operand's, made quiet; and a positive one where there was none.
    run(&mut w, &["v_mov_b32_e32 v6, 0xff800001", "v_add_f32_e32 v7, v6, v1"]);
    assert_eq!(vector(&w, 7)[0], 0xffc0_0001);
    run(&mut w, &["v_mov_b32_e32 v6, 0x7f800000", "v_sub_f32_e32 v7, v6, v6", "v_max_f32_e32 v8, v7, v1"]);
    assert_eq!((vector(&w, 7)[0], f32s(&w, 8)[5]), (0x7fc0_0000, 5.0));
    // A denormal product, then without denormal numbers, and always so for the one that multiplies and adds.
    run(&mut w, &["v_mov_b32_e32 v9, 0x00800000", "v_mul_f32_e32 v10, 0.5, v9", "v_mad_f32 v11, v9, 0.5, 0"]);
    assert_eq!((vector(&w, 10)[0], vector(&w, 11)[0]), (0x0040_0000, 0));
    run(&mut w, &["s_denorm_mode 0xc", "v_mul_f32_e32 v10, 0.5, v9"]);
    assert_eq!(vector(&w, 10)[0], 0);
    // One and the least bit that it has: up or not.
    run(&mut w, &["s_denorm_mode 0xf", "v_mov_b32_e32 v12, 0x2f800000", "v_add_f32_e32 v13, 1.0, v12"]);
    run(&mut w, &["s_round_mode 1", "v_add_f32_e32 v14, 1.0, v12"]);
    assert_eq!((vector(&w, 13)[0], vector(&w, 14)[0]), (0x3f80_0000, 0x3f80_0001));
    run(&mut w, &["s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 2), 3", "v_sub_f32_e32 v15, 1.0, v12"]);
    assert_eq!(vector(&w, 15)[0], 0x3f7f_ffff);
    assert_eq!(w.mode, Mode::from_bits(0xf3));
    run(&mut w, &["s_getreg_b32 s0, hwreg(HW_REG_MODE, 0, 4)"]);
    assert_eq!(w.scalars[0], 3);
}

#[test]
fn halves_doubles_and_pairs() {
    let mut w = wave();
    run(&mut w, &["v_mov_b32_e32 v1, 0x3c00", "v_add_f16_e32 v2, 0.5, v1", "v_cvt_f32_f16_e32 v3, v2"]);
    assert_eq!((vector(&w, 2)[0], f32s(&w, 3)[0]), (0x3e00, 1.5));
    run(
        &mut w,
        &[
            "v_cvt_f64_u32_e32 v[4:5], v0",
            "v_fma_f64 v[6:7], v[4:5], v[4:5], 0.5",
            "v_cvt_i32_f64_e32 v8, -v[6:7]",
        ],
    );
    assert_eq!(vector(&w, 8)[9] as i32, -81);
    run(&mut w, &["v_ldexp_f64 v[10:11], 1.0, v0", "v_frexp_exp_i32_f64_e32 v12, v[10:11]"]);
    assert_eq!((vector(&w, 11)[3], vector(&w, 12)[3]), (0x4020_0000, 4));
    run(
        &mut w,
        &["v_cmp_class_f64_e64 s[0:1], v[10:11], 0x100", "v_mov_b32_e32 v13, 1.0", "v_mov_b32_e32 v14, 2.0"],
    );
    assert_eq!(w.pair(0), u64::MAX);
    run(&mut w, &["v_pk_add_f32 v[16:17], v[13:14], v[13:14] op_sel:[0,1] op_sel_hi:[1,0]"]);
    assert_eq!((f32s(&w, 16)[0], f32s(&w, 17)[0]), (3.0, 3.0));
    run(&mut w, &["v_pk_mov_b32 v[18:19], v[13:14], v[13:14] op_sel:[1,0]"]);
    assert_eq!((f32s(&w, 18)[0], f32s(&w, 19)[0]), (2.0, 1.0));
}

#[test]
fn memory_of_the_group_and_of_the_lane() {
    let (mut w, mut shared) = (wave(), [0xcc; 1024]);
    let mut go = |w: &mut Wave, lines: &[&str]| run_with(w, &mut shared, lines);
    go(
        &mut w,
        &[
            "v_lshlrev_b32_e32 v1, 2, v0",
            "ds_write_b32 v1, v0 offset:256",
            "ds_read2_b32 v[2:3], v1 offset0:64 offset1:65",
        ],
    );
    assert_eq!((vector(&w, 2)[5], vector(&w, 3)[5]), (5, 6));
    go(
        &mut w,
        &[
            "v_mov_b32_e32 v4, 0",
            "ds_write_b32 v4, v4",
            "v_mov_b32_e32 v5, 1",
            "ds_add_rtn_u32 v6, v4, v5",
            "ds_read_b32 v7, v4",
        ],
    );
    assert_eq!((vector(&w, 6), vector(&w, 7)[0]), (vector(&w, 0), 64), "lanes go one after the other");
    go(
        &mut w,
        &[
            "v_mov_b32_e32 v8, 64",
            "v_mov_b32_e32 v9, 9",
            "ds_cmpst_rtn_b32 v10, v4, v8, v9",
            "ds_read_u8 v11, v4",
        ],
    );
    assert_eq!((vector(&w, 10)[0], vector(&w, 10)[1], vector(&w, 11)[0]), (64, 9, 9));
    // Through an address that may be anywhere.
    go(&mut w, &["v_mov_b32_e32 v12, v1", "s_mov_b64 s[0:1], src_shared_base", "v_mov_b32_e32 v13, s1"]);
    go(
        &mut w,
        &[
            "flat_load_ushort v14, v[12:13] offset:256",
            "flat_store_byte v[12:13], v5 offset:257",
            "ds_read_i16 v15, v1 offset:256",
        ],
    );
    assert_eq!((vector(&w, 14)[7], vector(&w, 15)[7]), (7, 0x107));
    go(
        &mut w,
        &[
            "v_mov_b32_e32 v16, 8",
            "scratch_store_dword v16, v0, off offset:4",
            "scratch_load_dword v17, v16, off offset:4",
        ],
    );
    assert_eq!(vector(&w, 17), vector(&w, 0), "each lane has its own");
    let outcome = go(&mut w, &["ds_read_b32 v2, v1 offset:1000"]);
    let stop = w.stop.take().unwrap();
    assert_eq!((outcome, stop.lane), (Flow::Stop, Some(6)));
    assert!(stop.to_string().contains("the group has less"), "{stop}");
}

#[test]
fn traps_and_unknown_instructions_stop() {
    for (text, why) in [("s_trap 2", "a trap"), ("v_surprise_b32 v0, v1", "an unknown instruction")] {
        let mut w = wave();
        assert_eq!(run_with(&mut w, &mut [], &[text]), Flow::Stop);
        let stop = w.stop.take().unwrap().to_string();
        assert!(stop.contains(why), "{stop}");
    }
}

#[test]
fn three_numbers_of_16_bits_are_compared() {
    let mut w = wave();
    run(&mut w, &["v_mov_b32_e32 v1, 0x1fff0", "v_mov_b32_e32 v2, 5", "v_mov_b32_e32 v3, 7"]);
    for (name, expected) in [
        ("min3_u16", 5),
        ("med3_u16", 7),
        ("max3_u16", 0xfff0),
        ("min3_i16", 0xfff0),
        ("med3_i16", 5),
        ("max3_i16", 7),
    ] {
        run(&mut w, &[&format!("v_{name} v4, v1, v2, v3")]);
        assert_eq!(vector(&w, 4)[9] & 0xffff, expected, "{name}");
    }
}
