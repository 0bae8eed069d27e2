//! Instructions that are made of others: two vector instructions in one, and scalar arithmetic on numbers.

use super::{
    environment::Environment,
    instruction::{Flow, Instruction, Operand, Value},
    text::scalar,
    wave::Wave,
};

/// The hidden register for results of scalar arithmetic.
const RESULT: u16 = 9;

/// Both read their sources before one of them writes its result.
fn both(wave: &mut Wave, i: &Instruction, environment: &mut Environment<'_>) -> Flow {
    let [first, second] = &*i.parts else { return Flow::Next };
    let register = first.operands[0].vector();
    let before = wave.vectors[register];
    (first.op)(wave, first, environment);
    let result = std::mem::replace(&mut wave.vectors[register], before);
    let flow = (second.op)(wave, second, environment);
    wave.vectors[register] = result;
    flow
}

/// One instruction out of two, which write to different vector registers.
pub(super) fn dual(first: Instruction, second: Instruction, blank: Instruction) -> Option<Instruction> {
    let [one, other] = [&first, &second].map(|instruction| instruction.operands[0].value);
    if one == other || !matches!((one, other), (Value::Vector(_), Value::Vector(_))) {
        return None;
    }
    let uses = first.uses.iter().chain(&second.uses).copied().collect();
    Some(Instruction { op: both, uses, parts: Box::new([first, second]), ..blank })
}

fn in_first_lane(wave: &mut Wave, i: &Instruction, environment: &mut Environment<'_>) -> Flow {
    let [inner] = &*i.parts else { return Flow::Next };
    let (exec, to) = (wave.exec(), i.operands[0]);
    // Some add to what their destination holds.
    wave.vectors[usize::from(RESULT)][0] = wave.read(&to);
    wave.set_exec(1);
    let flow = (inner.op)(wave, inner, environment);
    wave.set_exec(exec);
    let result = wave.vectors[usize::from(RESULT)][0];
    wave.write(&to, result);
    flow
}

/// Whether scalar arithmetic may be done in one lane: the execution mask is not among its operands.
fn fits_one_lane(vector: &Instruction) -> bool {
    let is_exec =
        |operand: &Operand| matches!(operand.value, Value::Scalar(scalar::EXEC | scalar::EXEC_HIGH));
    matches!(vector.operands[0].value, Value::Scalar(_)) && !vector.operands.iter().any(is_exec)
}

fn condition_of_first_lane(wave: &mut Wave, i: &Instruction, environment: &mut Environment<'_>) -> Flow {
    let [inner] = &*i.parts else { return Flow::Next };
    let exec = wave.exec();
    wave.set_exec(1);
    let flow = (inner.op)(wave, inner, environment);
    wave.set_exec(exec);
    wave.set_scc(wave.scalars[usize::from(scalar::OUTCOME)] & 1 == 1);
    flow
}

/// A scalar comparison: the vector comparison into a register that no program can name, in one lane.
pub(super) fn compared_in_one_lane(vector: Instruction) -> Option<Instruction> {
    let parts = Box::new([vector.clone()]);
    fits_one_lane(&vector).then_some(Instruction { op: condition_of_first_lane, parts, ..vector })
}

/// Scalar arithmetic: the vector instruction, which has scalar operands here, in one lane.
pub(super) fn in_one_lane(vector: Instruction) -> Option<Instruction> {
    if !fits_one_lane(&vector) {
        return None;
    }
    let mut inner = vector.clone();
    inner.operands[0].value = Value::Vector(RESULT);
    Some(Instruction { op: in_first_lane, parts: Box::new([inner]), ..vector })
}
