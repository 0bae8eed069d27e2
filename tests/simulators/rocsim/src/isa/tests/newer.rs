//! Instructions that came with gfx942, gfx11 and gfx12, and the newer names of older ones.

use super::instructions::{run, run_with, vector, wave};
use crate::isa::{
    check::{Checks, Counters},
    comgr::Line,
    decode::{Shape, decode, is_known},
    instruction::Flow,
    names,
    text::{Half, Text, scalar},
    wave::{HIDDEN, Wave},
};

fn pair(wave: &Wave, register: usize, lane: usize) -> u64 {
    u64::from(vector(wave, register)[lane]) | u64::from(vector(wave, register + 1)[lane]) << 32
}

#[test]
fn newer_names_lead_to_older_ones() {
    for (newer, older) in [
        ("s_load_b128", "s_load_dwordx4"),
        ("global_load_d16_hi_u8", "global_load_ubyte_d16_hi"),
        ("flat_store_b64", "flat_store_dwordx2"),
        ("ds_load_2addr_stride64_b32", "ds_read2st64_b32"),
        ("ds_load_u8_d16", "ds_read_u8_d16"),
        ("ds_storexchg_rtn_b32", "ds_wrxchg_rtn_b32"),
        ("ds_bpermute_b32", "ds_bpermute_b32"),
        ("global_atomic_cmpswap_b64", "global_atomic_cmpswap_x2"),
        ("global_atomic_min_i32", "global_atomic_smin"),
        ("global_atomic_max_u64", "global_atomic_umax_x2"),
        ("global_atomic_add_f32", "global_atomic_add_f32"),
        ("global_atomic_min_num_f64", "global_atomic_min_f64"),
        ("s_and_not1_saveexec_b32", "s_andn2_saveexec_b32"),
        ("v_mul_f32", "v_mul_f32"),
    ] {
        assert_eq!(names::older(newer), older);
        // An older name stays.
        assert_eq!(names::older(older), older);
    }
}

#[test]
fn every_name_in_the_tables_is_known() {
    let shape = Shape { wave_size: 32, vectors: 64, accumulators: 64 };
    let known = |text: &str| is_known(&Line { text: text.to_owned(), bytes: 8, target: None }, shape);
    let operands = ["v0, v1", "v0, v1, v2", "v0, v1, v2, v3", "v[0:1], v[2:3], v[4:5]"];
    let wide = ["v[0:1], vcc_lo, v2, v3, v[4:5]", "v[0:3], v[4:5], off", "v[4:5], v[0:3], off"];
    let scalars = [
        "s0, s1",
        "s0, s1, s2",
        "s[0:1], s[2:3]",
        "s[0:1], s[2:3], s[4:5]",
        "s0, s[2:3]",
        "s0, s1, s2, 5",
        "s0, 5",
    ];
    let mut tried = 0;
    for name in names::all() {
        let written =
            operands.iter().chain(&wide).chain(&scalars).any(|list| known(&format!("{name} {list}")));
        let loads = known(&format!("s_{name} s[0:15], s[16:17], 0x0"));
        let moves = ["global", "flat"].iter().any(|memory| {
            let lists = ["v[0:3], v[4:5], off", "v[4:5], v[0:3], off", "v[0:3], v[4:5]", "v[4:5], v[0:3]"];
            lists.iter().any(|list| known(&format!("{memory}_{name} {list}")))
        });
        assert!(written || loads || moves, "{name} leads to a name that is not known");
        tried += 1;
    }
    assert!(tried > 60);
}

#[test]
fn halves_of_registers_are_operands() {
    let text = Text::parse("v_and_b16 v0.h, 0xff, v0.l op_sel:[0,0,1]");
    let halves: Vec<_> = text.operands.iter().map(|operand| operand.half).collect();
    assert_eq!(halves, [Some(Half::Upper), None, Some(Half::Lower)]);
    let mut w = wave();
    w.keeps_upper_half = true;
    run(&mut w, &["v_mov_b32_e32 v1, 0x12345678", "v_mov_b32_e32 v2, -1", "v_mov_b16_e32 v2.h, v1.l"]);
    assert_eq!(vector(&w, 2)[7], 0x5678_ffff);
    run(&mut w, &["v_and_b16 v2.l, 0xff, v1.h op_sel:[0,1,0]", "v_mov_b16_e32 v3.l, 1.0"]);
    assert_eq!((vector(&w, 2)[7], vector(&w, 3)[7] & 0xffff), (0x5678_0034, 0x3c00));
    run(&mut w, &["v_mad_u16 v4.h, v1.l, 2, v1.h op_sel:[0,0,1,1]", "v_lshrrev_b16 v5.l, 8, v1.h"]);
    assert_eq!((vector(&w, 4)[7] >> 16, vector(&w, 5)[7] & 0xffff), (0xac_f0 + 0x1234, 0x12));
    run(
        &mut w,
        &["v_cvt_f16_f32_e32 v6.h, 2.0", "v_cvt_f32_f16_e32 v7, v6.h", "v_cmp_eq_u16 vcc, v1.h, v1.l"],
    );
    assert_eq!((vector(&w, 7)[7], w.pair(scalar::VCC)), (2f32.to_bits(), 0));
    run(&mut w, &["s_mov_b64 s[0:1], 2", "v_cndmask_b16 v8.h, v1.l, v1.h, s[0:1]"]);
    assert_eq!((vector(&w, 8)[0] >> 16, vector(&w, 8)[1] >> 16), (0x5678, 0x1234));
    // Halves of instructions that know none are not ignored.
    let shape = Shape { wave_size: 32, vectors: 64, accumulators: 64 };
    let line = |text: &str| Line { text: text.to_owned(), bytes: 8, target: None };
    assert!(!is_known(&line("v_add_nc_u32_e32 v0.l, v1, v2"), shape));
    assert!(!is_known(&line("v_mov_b32_e32 v0, v1.h"), shape));
}

#[test]
fn two_instructions_in_one_read_before_they_write() {
    let mut w = wave();
    run(
        &mut w,
        &["v_mov_b32_e32 v1, 5", "v_mov_b32_e32 v2, 7", "v_dual_mov_b32 v1, v2 :: v_dual_mov_b32 v2, v1"],
    );
    assert_eq!((vector(&w, 1)[3], vector(&w, 2)[3]), (7, 5));
    // Lanes that do not take part keep both; a mask that is not written is `vcc`; one adds to its destination.
    run(&mut w, &["s_mov_b64 exec, 1", "s_mov_b64 vcc, 1", "v_mov_b32_e32 v4, 2.0", "v_mov_b32_e32 v3, 1.0"]);
    run(&mut w, &["v_dual_cndmask_b32 v1, v1, v2 :: v_dual_fmac_f32 v3, 0x40000000, v4"]);
    assert_eq!((vector(&w, 1)[0], vector(&w, 1)[1], vector(&w, 3)[0]), (5, 7, 5f32.to_bits()));
    let shape = Shape { wave_size: 32, vectors: 64, accumulators: 64 };
    for text in
        ["v_dual_mov_b32 v1, v2 :: v_dual_mov_b32 v1, v3", "v_dual_mov_b32 v1, v2 :: v_dual_surprise v2, v3"]
    {
        assert!(!is_known(&Line { text: text.to_owned(), bytes: 8, target: None }, shape), "{text}");
    }
    let line =
        Line { text: "v_dual_mov_b32 v1, v2 :: v_dual_mov_b32 v4, v3".to_owned(), bytes: 8, target: None };
    let uses: Vec<_> = decode(&line, 0, shape).uses.iter().map(|used| (used.register, used.writes)).collect();
    let vector = |register: usize| crate::isa::instruction::Value::Vector((HIDDEN + register) as u16);
    assert_eq!(uses, [(vector(1), true), (vector(2), false), (vector(4), true), (vector(3), false)]);
}

#[test]
fn scalars_compute_with_numbers_of_any_kind() {
    let mut w = wave();
    // Without any lane, too.
    run(&mut w, &["s_mov_b64 exec, 0", "s_mov_b32 s0, 7", "s_cvt_f32_u32 s1, s0", "s_mul_f32 s2, s1, 0.5"]);
    assert_eq!(f32::from_bits(w.scalars[2]), 3.5);
    run(
        &mut w,
        &["s_fmac_f32 s2, s1, 2.0", "s_trunc_f32 s3, s2", "s_cvt_u32_f32 s4, s3", "v_s_rcp_f32 s5, 4.0"],
    );
    assert_eq!((f32::from_bits(w.scalars[2]), w.scalars[4]), (17.5, 17));
    assert_eq!((f32::from_bits(w.scalars[5]), w.exec()), (0.25, 0));
    run(&mut w, &["s_cmp_lt_f32 s5, s2"]);
    assert!(w.scc() && w.exec() == 0);
    run(&mut w, &["s_mov_b32 s14, 0x7fc00000", "s_cmp_o_f32 s14, s2"]);
    assert!(!w.scc(), "NaN is in no order");
    run(&mut w, &["s_mov_b64 s[6:7], -1", "s_mov_b64 s[8:9], 3", "s_cmp_eq_u32 s0, s0"]);
    run(&mut w, &["s_mul_u64 s[10:11], s[6:7], s[8:9]", "s_add_nc_u64 s[12:13], s[6:7], s[8:9]"]);
    assert_eq!((w.pair(10), w.pair(12), w.scc()), (u64::MAX - 2, 2, true), "the condition is as it was");
}

#[test]
fn wide_vectors_shift_add_and_move() {
    let mut w = wave();
    run(
        &mut w,
        &["v_mov_b64_e32 v[2:3], -1", "v_mov_b32_e32 v1, 0", "v_lshl_add_u64 v[4:5], v[0:1], 3, v[2:3]"],
    );
    assert_eq!((pair(&w, 2, 9), pair(&w, 4, 9), pair(&w, 4, 0)), (u64::MAX, 71, u64::MAX));
    run(&mut w, &["v_mad_co_u64_u32 v[6:7], null, v0, 3, v[4:5]"]);
    assert_eq!(pair(&w, 6, 9), 98);
}

#[test]
fn a_groups_memory_compares_in_the_newer_order() {
    let (mut w, mut shared) = (wave(), [0; 64]);
    let mut go = |w: &mut Wave, lines: &[&str]| run_with(w, &mut shared, lines);
    go(&mut w, &["v_mov_b32_e32 v1, 0", "v_mov_b32_e32 v2, 9", "v_mov_b32_e32 v3, 0", "s_mov_b64 exec, 1"]);
    // The new value, then the one to compare with.
    go(
        &mut w,
        &["ds_cmpstore_rtn_b32 v4, v1, v2, v3", "ds_load_b32 v5, v1", "ds_cmpst_rtn_b32 v6, v1, v2, v3"],
    );
    assert_eq!((vector(&w, 4)[0], vector(&w, 5)[0], vector(&w, 6)[0]), (0, 9, 9));
    go(&mut w, &["ds_load_b32 v5, v1"]);
    assert_eq!(vector(&w, 5)[0], 0);
}

#[test]
fn a_barrier_has_two_halves() {
    let mut w = wave();
    assert_eq!(run_with(&mut w, &mut [], &["s_barrier_signal -1", "s_barrier_wait 0xffff"]), Flow::Barrier);
    assert_eq!(run_with(&mut w, &mut [], &["s_barrier_wait 0xffff"]), Flow::Stop);
    assert!(w.stop.take().unwrap().to_string().contains("has not signalled"));
    assert_eq!(run_with(&mut w, &mut [], &["s_barrier_signal 3"]), Flow::Stop);
}

#[test]
fn each_memory_has_its_counter_on_gfx12() {
    let checked = |lines: &[&str]| {
        let (mut checks, wave) = (Checks::new(1, Counters::of(12)), Wave::new(32, 64));
        let shape = Shape { wave_size: 32, vectors: 64, accumulators: 64 };
        lines.iter().all(|text| {
            let line = Line { text: (*text).to_owned(), bytes: 8, target: None };
            let i = decode(&line, 0, shape);
            let ok = checks.before(&wave, &i).is_ok();
            checks.after(&wave, &i);
            ok
        })
    };
    let loads = ["s_load_b32 s4, s[0:1], 0x0", "ds_load_b32 v1, v0", "global_load_b32 v2, v[6:7], off"];
    let [scalar, shared, global] = loads;
    let uses =
        [(scalar, "s_mov_b32 s5, s4"), (shared, "v_mov_b32_e32 v3, v1"), (global, "v_mov_b32_e32 v4, v2")];
    let waits = ["s_wait_kmcnt 0x0", "s_wait_dscnt 0x0", "s_wait_loadcnt 0x0"];
    for (right, (load, used)) in uses.into_iter().enumerate() {
        for (wait, text) in waits.iter().enumerate() {
            assert_eq!(checked(&[load, text, used]), wait == right, "{load}, {text}");
        }
        let both = checked(&[load, "s_wait_loadcnt_dscnt 0x0", used]);
        assert_eq!(both, right != 0, "{load}");
    }
    // The older half of two loads is there when one is left.
    let two = [global, "global_load_b32 v8, v[6:7], off", "s_wait_loadcnt_dscnt 0x100"];
    assert!(checked(&[two[0], two[1], two[2], "v_mov_b32_e32 v4, v2"]));
    assert!(!checked(&[two[0], two[1], two[2], "v_mov_b32_e32 v4, v8"]));
    assert!(!checked(&[shared, "s_wait_loadcnt_dscnt 0x3f", "v_mov_b32_e32 v3, v1"]));
}
