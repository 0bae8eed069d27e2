//! Every instruction of all kernels of the project is known, for every architecture.

use super::{
    object::{Object, compile},
    probes,
    rig::{NODE, architectures},
};
use crate::{
    isa::{
        comgr::{Disassembler, LONGEST},
        decode::{Shape, is_known},
    },
    memory::span,
};
use gpumem_layout::pack;
use std::collections::BTreeSet;

/// The instructions of a code object that are not known, and how many names there are.
fn unknown(object: &Object, isa: &str, wave_size: u32, names: &mut BTreeSet<String>) -> BTreeSet<String> {
    let disassembler = Disassembler::new(isa).unwrap();
    let shape = Shape { wave_size, vectors: 512, accumulators: 256 };
    let mut found = BTreeSet::new();
    for (kernel, start, bytes) in object.functions() {
        let code = span(object.node, start, bytes).unwrap();
        // SAFETY: the span has that many bytes, which are not written.
        let code = unsafe { std::slice::from_raw_parts(code.as_ptr(), bytes as usize) };
        let mut at = 0;
        while at < code.len() {
            let rest = &code[at..code.len().min(at + LONGEST)];
            let line = disassembler.line(start + at as u64, rest).unwrap();
            names.insert(line.text.split(' ').next().unwrap().to_owned());
            if !is_known(&line, shape) {
                found.insert(format!("{isa}, {kernel}: {}", line.text));
            }
            at += line.bytes as usize;
        }
    }
    found
}

fn texts(wave: u32) -> Vec<(String, Vec<String>)> {
    let mut texts = vec![];
    for kernel in gpumem_kernel_suite::all() {
        texts.extend([true, false].map(|bounds| (kernel.text(wave, bounds), vec![])));
    }
    texts.extend(
        pack::UNITS.map(|unit| (pack::SOURCE.to_owned(), vec![format!("-DGPUMEM_PACK_UNIT={unit}")])),
    );
    texts
}

#[test]
fn every_instruction_of_the_kernels_is_known() {
    let (mut missing, mut names) = (BTreeSet::new(), BTreeSet::new());
    for (isa, _, wave) in architectures() {
        for (text, flags) in texts(wave) {
            let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
            let Some(code) = compile(&text, isa, &flags) else { return };
            missing.append(&mut unknown(&Object::load(NODE, &code), isa, wave, &mut names));
        }
        for bounds in [true, false] {
            let Some(code) = probes::code(isa, wave, bounds) else { return };
            missing.append(&mut unknown(&Object::load(NODE, &code), isa, wave, &mut names));
        }
    }
    println!("{} names", names.len());
    assert!(missing.is_empty(), "{} unknown: {missing:#?}", missing.len());
    assert!(names.len() > 200, "only {} names: are the kernels there?", names.len());
}

#[test]
fn unknown_instructions_are_not_guessed() {
    let shape = Shape { wave_size: 64, vectors: 24, accumulators: 24 };
    let line = |text: &str| crate::isa::comgr::Line { text: text.to_owned(), bytes: 4, target: None };
    for text in [
        "v_mfma_f32_32x32x1f32 a[0:31], v0, v1, a[0:31]",
        "v_add_f32_dpp v0, v1, v2 quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf",
        "image_load v[0:3], v[0:1], s[0:7] dmask:0xf unorm",
        "v_add_u32_e64 v0, v1, v2 surprise",
        "v_mul_lo_u32 v0, v1, v2 clamp",
        "v_mov_b32_e32 v24, v0",
        "v_add_f64 v[0:1], v[2:3]",
        "global_load_dword v0, v[1:2], off lds",
        "s_getreg_b32 s0, hwreg(HW_REG_HW_ID)",
    ] {
        assert!(!is_known(&line(text), shape), "{text}");
    }
    for text in [
        "v_mov_b32_e32 v23, v0",
        "v_sub_u32_e64 v0, v1, 1 clamp",
        "s_nop 0",
        "v_mul_f32_e64 v0, |v1|, s2 mul:2",
    ] {
        assert!(is_known(&line(text), shape), "{text}");
    }
}
