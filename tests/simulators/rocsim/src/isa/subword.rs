//! The encoding `sdwa`: instructions on parts of registers.

use super::{
    environment::Environment,
    instruction::{Flow, Instruction, Operand, Part, Rest, Subword, Value},
    text::{Text, TextOperand},
    wave::Wave,
};

/// Hidden registers for the parts of the sources, and for the result.
const SOURCES: [u16; 2] = [7, 8];
const RESULT: u16 = 9;

/// Takes the parts of the sources, runs the instruction on them, and puts the result into its part.
pub(super) fn run(wave: &mut Wave, i: &Instruction, environment: &mut Environment<'_>) -> Flow {
    let Some(subword) = &i.subword else { return Flow::Next };
    for (source, hidden) in subword.sources.iter().zip(SOURCES) {
        if let Some((index, part)) = *source {
            let register = wave.source(i, index);
            wave.vectors[usize::from(hidden)] = wave.vectors[register].map(|lane| extract(lane, part));
        }
    }
    let flow = (subword.inner.op)(wave, &subword.inner, environment);
    let Value::Vector(register) = i.operands[0].value else { return flow };
    let (part, register) = (subword.destination, usize::from(register));
    let mask = ones(part.bits) << part.shift;
    let (result, old) = (&wave.vectors[usize::from(RESULT)], &wave.vectors[register]);
    let mut out = [0; 64];
    for lane in 0..64 {
        let value = result[lane] << part.shift & mask;
        out[lane] = match subword.rest {
            Rest::Zero => value,
            Rest::Kept => old[lane] & !mask | value,
            Rest::Sign => extract(result[lane], Part { shift: 0, sign_extend: true, ..part }) << part.shift,
        };
    }
    wave.put(register, &out);
    flow
}

fn ones(count: u32) -> u32 {
    if count >= 32 { u32::MAX } else { (1 << count) - 1 }
}

fn extract(lane: u32, part: Part) -> u32 {
    let value = lane >> part.shift & ones(part.bits);
    match part.sign_extend && part.bits < 32 {
        true => ((value << (32 - part.bits)) as i32 >> (32 - part.bits)) as u32,
        false => value,
    }
}

fn part(name: &str, sign_extend: bool) -> Option<Part> {
    let (shift, bits) = match name {
        "DWORD" => (0, 32),
        "WORD_0" => (0, 16),
        "WORD_1" => (16, 16),
        "BYTE_0" => (0, 8),
        "BYTE_1" => (8, 8),
        "BYTE_2" => (16, 8),
        "BYTE_3" => (24, 8),
        _ => return None,
    };
    Some(Part { shift, bits, sign_extend })
}

/// The instruction in its encoding for parts of registers. `first` is the place of the first source.
pub(super) fn wrap(plain: Instruction, text: &Text, first: usize) -> Option<Instruction> {
    let modifier = |name: &str| text.modifiers.get(name).map(String::as_str);
    let mut inner = plain.clone();
    let mut sources = [None; 2];
    for (number, (source, hidden)) in sources.iter_mut().zip(SOURCES).enumerate() {
        let index = first + number;
        let Some(TextOperand { sign_extend, .. }) = text.operands.get(index) else { continue };
        let name = modifier(if number == 0 { "src0_sel" } else { "src1_sel" }).unwrap_or("DWORD");
        *source = Some((index, part(name, *sign_extend)?));
        let operand = inner.operands.get_mut(index)?;
        *operand = Operand { value: Value::Vector(hidden), ..*operand };
    }
    if let Operand { value: Value::Vector(_), .. } = inner.operands[0] {
        inner.operands[0].value = Value::Vector(RESULT);
    }
    let rest = match modifier("dst_unused").unwrap_or("UNUSED_PAD") {
        "UNUSED_PAD" => Rest::Zero,
        "UNUSED_SEXT" => Rest::Sign,
        "UNUSED_PRESERVE" => Rest::Kept,
        _ => return None,
    };
    let destination = part(modifier("dst_sel").unwrap_or("DWORD"), false)?;
    let subword = Some(Box::new(Subword { inner, sources, destination, rest }));
    let mut outer = Instruction { op: run, subword, ..plain };
    // Signs belong to the parts.
    outer.operands.iter_mut().for_each(|operand| (operand.negate, operand.absolute) = (false, false));
    Some(outer)
}
