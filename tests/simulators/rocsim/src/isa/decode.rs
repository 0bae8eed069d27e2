//! Decodes the text of an instruction into the form that the loop runs.

use super::{
    atomics,
    check::Begins,
    comgr::Line,
    compare, compound, control, convert, division, double, float,
    instruction::{Flow, Form, Instruction, Kind, Modifiers, OPERANDS, Operand, Use, Value, honours},
    memory::{self, slot, space},
    memory_scalar, names, scalar, soft,
    stop::{Cause, Stop},
    subword,
    text::{Half, Text, TextOperand, Written, scalar as register},
    two_over_pi, vector, vector_wide,
    wave::HIDDEN,
};

/// The context for reading operands: the waves of a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shape {
    pub(super) wave_size: u32,
    /// Vector registers of a wave, accumulation registers included.
    pub(super) vectors: u16,
    /// The first accumulation register among them.
    pub(super) accumulators: u16,
}

/// The instruction that a line of the disassembler is. One that is not known stops the wave that comes to it.
pub(super) fn decode(line: &Line, address: u64, shape: Shape) -> Instruction {
    let mut instruction = Instruction {
        op: unknown,
        operands: [Operand::ABSENT; OPERANDS],
        modifiers: Modifiers::default(),
        target: 0,
        extra: 0,
        address,
        bytes: line.bytes,
        subword: None,
        parts: Box::new([]),
        text: line.text.as_str().into(),
        begins: Begins::Nothing,
        uses: Box::new([]),
    };
    let found = match line.text.split_once(" :: ") {
        Some((first, second)) => dual(first, second, &instruction, shape),
        None => known(&Text::parse(&line.text), instruction.clone(), shape),
    };
    if let Some(known) = found {
        instruction = known;
    }
    instruction
}

/// Whether the line is an instruction that can be run.
pub(super) fn is_known(line: &Line, shape: Shape) -> bool {
    let address = 0;
    !std::ptr::fn_addr_eq(decode(line, address, shape).op, unknown as super::instruction::Op)
}

fn unknown(
    wave: &mut super::wave::Wave,
    _: &Instruction,
    _: &mut super::environment::Environment<'_>,
) -> Flow {
    wave.stop = Some(Stop::new(Cause::Unknown("an unknown instruction"), None));
    Flow::Stop
}

/// Two instructions in one.
fn dual(first: &str, second: &str, blank: &Instruction, shape: Shape) -> Option<Instruction> {
    let part = |line: &str| {
        let mut text = Text::parse(&format!("v_{}", line.trim().strip_prefix("v_dual_")?));
        if text.name == "v_cndmask_b32" && text.operands.len() == 3 {
            text.operands.push(TextOperand::plain(Written::Scalar(register::VCC, 1)));
        }
        plain(&text, blank.clone(), shape)
    };
    compound::dual(part(first)?, part(second)?, blank.clone())
}

fn known(text: &Text, blank: Instruction, shape: Shape) -> Option<Instruction> {
    if let Some(vector) = names::in_one_lane(&text.name) {
        let text = Text { name: vector.to_owned(), ..text.clone() };
        return compound::in_one_lane(plain(&text, blank, shape)?);
    }
    if let Some(name) = names::compares_in_one_lane(&text.name) {
        let mut text = Text { name, ..text.clone() };
        text.operands.insert(0, TextOperand::plain(Written::Scalar(register::OUTCOME, 2)));
        return compound::compared_in_one_lane(plain(&text, blank, shape)?);
    }
    if control::is_about_caches(&text.name) {
        return plain(text, blank, shape);
    }
    let (family, rest) = text.name.split_once('_')?;
    match family {
        "flat" => moved::<{ space::FLAT }>(text, rest, blank, shape),
        "global" => moved::<{ space::GLOBAL }>(text, rest, blank, shape),
        "scratch" => moved::<{ space::SCRATCH }>(text, rest, blank, shape),
        "buffer" => moved::<{ space::BUFFER }>(text, rest, blank, shape),
        "ds" if !rest.contains("permute") => moved::<{ space::SHARED }>(text, rest, blank, shape),
        _ => plain(text, blank, shape),
    }
}

fn form(text: &Text) -> Option<Form> {
    let name = text.name.as_str();
    if name.starts_with("s_") || control::is_about_caches(name) {
        return control::find(name).or_else(|| scalar::find(name)).or_else(|| memory_scalar::find(name));
    }
    if text.modifiers.contains_key("clamp")
        && let Some(form) = vector::find_clamped(name).or_else(|| vector_wide::find_clamped(name))
    {
        return Some(form.honouring(honours::CLAMP));
    }
    vector::find(name)
        .or_else(|| vector_wide::find(name))
        .or_else(|| compare::find(name))
        .or_else(|| float::find(name))
        .or_else(|| double::find(name))
        .or_else(|| convert::find(name))
        .or_else(|| division::find(name))
        .or_else(|| two_over_pi::find(name))
}

/// An instruction whose operands are where they are written.
fn plain(text: &Text, blank: Instruction, shape: Shape) -> Option<Instruction> {
    let form = form(text).filter(|_| control::is_answered(text))?;
    let mut instruction = Instruction { op: form.op, modifiers: modifiers(text, form.honours)?, ..blank };
    instruction.extra = match text.name.as_str() {
        name if control::is_wait(name) => control::wait_limits(text)?,
        "s_getreg_b32" | "s_setreg_b32" | "s_setreg_imm32_b32" => control::hardware_bits(text)?,
        _ => 0,
    };
    instruction.begins = match text.name.as_str() {
        name if control::is_wait(name) => Begins::Wait,
        name if name.starts_with("s_load_") => Begins::Scalar,
        "ds_bpermute_b32" | "ds_permute_b32" => Begins::Shared,
        _ => Begins::Nothing,
    };
    // Numbers of branches, waits and the like are not needed.
    if form.kinds.is_empty() {
        return Some(instruction);
    }
    // From gfx10 on, some comparisons write nothing but the execution mask.
    let first = usize::from(text.name.starts_with("v_cmpx_") && text.operands.len() == 2);
    if form.kinds.len() != text.operands.len() + first {
        return None;
    }
    let mut uses = Vec::new();
    for (index, kind) in form.kinds.iter().enumerate().skip(first) {
        let written = text.operands.get(index - first)?;
        if let Some(half) = written.half {
            // The result's half is chosen after those of all sources.
            let place = if index == 0 { form.kinds.len() } else { index } - 1;
            *instruction.modifiers.op_sel.get_mut(place)? |= half == Half::Upper;
        }
        let operand = resolve(written, *kind, shape, form.honours)?;
        note(&mut uses, &operand, *kind, shape);
        *instruction.operands.get_mut(index)? = operand;
    }
    if let Some(register) = control::implied(&text.name) {
        uses.push(Use { register, words: Kind::MaskIn.words(shape.wave_size), writes: false });
    }
    instruction.uses = uses.into();
    if text.encoding == "sdwa" {
        let sources =
            form.kinds.iter().position(|kind| !kind.is_written() || matches!(kind, Kind::Both(_)))?;
        return subword::wrap(instruction, text, sources);
    }
    (!text.encoding.starts_with("dpp")).then_some(instruction)
}

/// Adds the registers that an operand reads and writes.
fn note(uses: &mut Vec<Use>, operand: &Operand, kind: Kind, shape: Shape) {
    let (register, words) = (operand.value, kind.words(shape.wave_size));
    if words == 0 || !matches!(register, Value::Vector(_) | Value::Scalar(_)) {
        return;
    }
    if kind.is_read() {
        uses.push(Use { register, words, writes: false });
    }
    if kind.is_written() {
        uses.push(Use { register, words, writes: true });
    }
}

/// An instruction on memory.
fn moved<const SPACE: u8>(text: &Text, name: &str, blank: Instruction, shape: Shape) -> Option<Instruction> {
    let modifiers = modifiers(text, honours::MEMORY)?;
    let mut instruction = Instruction { modifiers, ..blank };
    // The kinds of result, data and second data.
    let (mut result, mut data, mut second) = (None, None, None);
    let loads;
    if let Some(found) = memory::find::<SPACE>(name) {
        (instruction.op, instruction.extra, loads) = (found.op, found.bytes, found.loads);
        match (found.loads, found.keeps) {
            (true, false) => result = Some(Kind::Out(found.words)),
            (true, true) => result = Some(Kind::Both(found.words)),
            (false, _) => data = Some(Kind::Registers(found.words)),
        }
    } else if let Some(found) = (SPACE == space::SHARED).then(|| atomics::find_two(name)).flatten() {
        (instruction.op, loads) = (found.op, found.loads);
        if found.loads {
            result = Some(Kind::Out(2 * found.words));
        } else {
            (data, second) = (Some(Kind::Registers(found.words)), Some(Kind::Registers(found.words)));
        }
    } else {
        let (found, returns) = match SPACE {
            space::SHARED => atomics::find_shared(name)?,
            space::FLAT | space::GLOBAL => {
                (atomics::find::<SPACE>(name.strip_prefix("atomic_")?)?, modifiers.returns)
            }
            _ => return None,
        };
        let both = if found.compares && SPACE != space::SHARED { 2 * found.words } else { found.words };
        instruction.op = found.op;
        instruction.extra = u32::from(found.compares);
        instruction.modifiers.returns = returns;
        loads = returns;
        result = returns.then_some(Kind::Out(found.words));
        data = Some(Kind::Registers(both));
        second = (found.compares && SPACE == space::SHARED).then_some(Kind::Registers(found.words));
    }
    instruction.begins = match (SPACE, loads) {
        (space::SHARED, _) => Begins::Shared,
        (space::FLAT, true) => Begins::FlatLoad,
        (space::FLAT, false) => Begins::FlatStore,
        (_, true) => Begins::Load,
        (_, false) => Begins::Store,
    };
    // The base comes last, and says how long the address of each lane is.
    let based = SPACE == space::GLOBAL && matches!(text.operands.last()?.written, Written::Scalar(..));
    let address = Kind::Registers(match SPACE {
        space::FLAT | space::GLOBAL if !based => 2,
        _ => 1,
    });
    let mut order = vec![];
    order.extend(result.map(|kind| (slot::RESULT, kind)));
    match SPACE {
        space::BUFFER => {
            order.extend(data.map(|kind| (slot::DATA, kind)));
            order.extend([
                (slot::ADDRESS, address),
                (slot::BUFFER, Kind::Registers(4)),
                (slot::BASE, Kind::B32),
            ]);
        }
        _ => {
            order.push((slot::ADDRESS, address));
            order.extend(data.map(|kind| (slot::DATA, kind)));
            order.extend(second.map(|kind| (slot::SECOND, kind)));
            let base = if SPACE == space::SCRATCH { Kind::B32 } else { Kind::B64 };
            if matches!(SPACE, space::GLOBAL | space::SCRATCH) {
                order.push((slot::BASE, base));
            }
        }
    }
    if order.len() != text.operands.len() {
        return None;
    }
    let mut uses = Vec::new();
    for ((slot, kind), written) in order.into_iter().zip(&text.operands) {
        let operand = resolve(written, kind, shape, honours::NOTHING)?;
        note(&mut uses, &operand, kind, shape);
        *instruction.operands.get_mut(slot)? = operand;
    }
    instruction.uses = uses.into();
    Some(instruction)
}

/// An operand as the instruction reads it. `None` if it cannot be that.
fn resolve(text: &TextOperand, kind: Kind, shape: Shape, honoured: u8) -> Option<Operand> {
    let TextOperand { written, negate, absolute, sign_extend, half } = *text;
    if half.is_some() && honoured & honours::HALVES == 0 {
        return None;
    }
    let signs = negate || absolute || sign_extend;
    if signs && honoured & honours::SIGNS == 0 && !sign_extend {
        return None;
    }
    let words = kind.words(shape.wave_size);
    let vector = |first: u16, count: u8| {
        let enough = count >= words && u32::from(first) + u32::from(words) <= u32::from(shape.vectors);
        enough.then_some(Value::Vector(first + HIDDEN as u16))
    };
    let value = match written {
        Written::Vector(first, count) => vector(first, count)?,
        Written::Accumulator(first, count) => vector(first.checked_add(shape.accumulators)?, count)?,
        Written::Scalar(first, _) => Value::Scalar(first),
        Written::VccZero => Value::VccZero,
        Written::ExecZero => Value::ExecZero,
        Written::Off => Value::Absent,
        Written::Integer(_) | Written::Literal(_) | Written::Float(_) => {
            Value::Constant(constant(written, kind)?)
        }
    };
    Some(Operand { value, negate, absolute })
}

/// The bits of a constant, which depend on the kind of the operand.
fn constant(written: Written, kind: Kind) -> Option<u64> {
    let single = |number: f64| u64::from((number as f32).to_bits());
    Some(match (kind, written) {
        (Kind::F64, Written::Literal(upper)) => u64::from(upper) << 32,
        (_, Written::Literal(bits)) => bits.into(),
        (Kind::F64 | Kind::B64, Written::Float(number)) => number.to_bits(),
        (Kind::F16, Written::Float(number)) => {
            soft::convert(soft::F64, soft::F16, number.to_bits(), super::mode::Arithmetic::IEEE)
        }
        (Kind::F32 | Kind::B32 | Kind::PackedF32, Written::Float(number)) => single(number),
        (Kind::Out(_) | Kind::Both(_) | Kind::MaskOut | Kind::Registers(_), _) => return None,
        (_, Written::Integer(number)) => number as u64,
        _ => return None,
    })
}

/// Modifiers that say how caches are used. Memory here has none.
const ABOUT_CACHES: &[&str] = &["slc", "dlc", "scc", "nt", "th"];
/// Modifiers of the encoding `sdwa`, which are read elsewhere.
const ABOUT_PARTS: &[&str] = &["dst_sel", "dst_unused", "src0_sel", "src1_sel"];

/// The modifiers, if the instruction understands all of them.
fn modifiers(text: &Text, honoured: u8) -> Option<Modifiers> {
    let mut modifiers = Modifiers { op_sel_hi: [true; 4], ..Modifiers::default() };
    for (key, value) in &text.modifiers {
        let number = || text.number(key);
        let needs = match key.as_str() {
            "offset" => {
                modifiers.offset = number()?;
                honours::MEMORY
            }
            "offset0" | "offset1" => {
                modifiers.offsets[usize::from(key == "offset1")] = number()? as u32;
                honours::MEMORY
            }
            "glc" | "sc0" => {
                (modifiers.returns, modifiers.past_caches) = (true, true);
                honours::MEMORY
            }
            "th" if value.starts_with("TH_ATOMIC_") && value.contains("RETURN") => {
                modifiers.returns = true;
                honours::MEMORY
            }
            "sc1" | "scope" => {
                modifiers.past_caches = true;
                honours::NOTHING
            }
            "offen" => {
                modifiers.lane_offset = true;
                honours::MEMORY
            }
            "clamp" => {
                modifiers.clamp = true;
                honours::CLAMP
            }
            "mul" => {
                modifiers.scale = if number()? == 2 { 1 } else { 2 };
                honours::SCALE
            }
            "div" => {
                modifiers.scale = 3;
                honours::SCALE
            }
            "op_sel" => {
                modifiers.op_sel = list(value);
                honours::HALVES
            }
            "op_sel_hi" => {
                modifiers.op_sel_hi = list(value);
                honours::HALVES
            }
            "neg_lo" => {
                modifiers.neg_lo = list(value);
                honours::HALVES
            }
            "neg_hi" => {
                modifiers.neg_hi = list(value);
                honours::HALVES
            }
            key if ABOUT_CACHES.contains(&key) => honours::NOTHING,
            key if text.encoding == "sdwa" && ABOUT_PARTS.contains(&key) => honours::NOTHING,
            // The numbers of instructions whose operands do not matter.
            _ if text.name.starts_with("s_") => honours::NOTHING,
            _ => return None,
        };
        if needs & !honoured != 0 {
            return None;
        }
    }
    Some(modifiers)
}

/// `[0,1]` as flags; missing ones are not set.
fn list(text: &str) -> [bool; 4] {
    let mut flags = text.trim_matches(['[', ']']).split(',').map(|flag| flag.trim() == "1");
    std::array::from_fn(|_| flags.next().unwrap_or(false))
}
