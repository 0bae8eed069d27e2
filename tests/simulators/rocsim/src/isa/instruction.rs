//! One decoded instruction, as the interpreter's loop sees it.

use super::{check::Begins, environment::Environment, wave::Wave};

/// Executes one instruction of a wave.
pub(super) type Op = fn(&mut Wave, &Instruction, &mut Environment<'_>) -> Flow;

/// Where a wave goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flow {
    /// With the next instruction.
    Next,
    /// With the target of the branch.
    Branch,
    /// At the address that the wave has put into [`Wave::goes_to`].
    Jump,
    /// With the next instruction, when all waves of its group have come as far.
    Barrier,
    /// With the next instruction, but others may go first.
    Yield,
    /// Nowhere: the wave has ended.
    End,
    /// Nowhere: [`Wave::stop`] says why.
    Stop,
}

/// Where an operand's value is. Vector registers are counted from the first of the wave's file, which begins with
/// [`HIDDEN`](super::wave::HIDDEN) registers that no program can name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Value {
    Vector(u16),
    Scalar(u8),
    Constant(u64),
    VccZero,
    ExecZero,
    /// There is no operand here, or it is `off`.
    Absent,
}

/// An operand, ready to be used.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Operand {
    pub(super) value: Value,
    pub(super) negate: bool,
    pub(super) absolute: bool,
}

impl Operand {
    pub(super) const ABSENT: Self = Self { value: Value::Absent, negate: false, absolute: false };

    /// The number of the vector register; a register that holds nothing if it is none.
    pub(super) fn vector(&self) -> usize {
        match self.value {
            Value::Vector(register) => usize::from(register),
            _ => 0,
        }
    }
}

/// The role of an operand: how constants are read, the number of its registers, and whether it is read or written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// So many registers are written.
    Out(u8),
    /// So many registers are read and written.
    Both(u8),
    /// A mask of lanes is written: as many registers as the wave needs.
    MaskOut,
    /// A mask of lanes is read.
    MaskIn,
    /// 32 bits or an integer of that size is read.
    B32,
    /// 64 bits or an integer of that size is read.
    B64,
    F16,
    F32,
    F64,
    /// Two floats of 32 bits in two registers are read.
    PackedF32,
    /// So many registers are read, and no constants.
    Registers(u8),
}

impl Kind {
    /// How many registers of 32 bits belong to it, for waves of that size.
    pub(super) fn words(self, wave_size: u32) -> u8 {
        match self {
            Kind::Out(words) | Kind::Both(words) | Kind::Registers(words) => words,
            Kind::MaskOut | Kind::MaskIn => (wave_size / 32) as u8,
            Kind::B32 | Kind::F16 | Kind::F32 => 1,
            Kind::B64 | Kind::F64 | Kind::PackedF32 => 2,
        }
    }

    pub(super) fn is_written(self) -> bool {
        matches!(self, Kind::Out(_) | Kind::Both(_) | Kind::MaskOut)
    }

    pub(super) fn is_read(self) -> bool {
        !matches!(self, Kind::Out(_) | Kind::MaskOut)
    }
}

/// Which modifiers an instruction understands. One that it does not understand makes it unknown.
pub(super) mod honours {
    pub(crate) const NOTHING: u8 = 0;
    /// Results are limited to 0..1.
    pub(crate) const CLAMP: u8 = 1;
    /// Results are multiplied by 2, 4 or 0.5.
    pub(crate) const SCALE: u8 = 2;
    /// Halves of registers are chosen.
    pub(crate) const HALVES: u8 = 4;
    /// Memory: offsets and whether the old value is returned.
    pub(crate) const MEMORY: u8 = 8;
    /// Signs of operands.
    pub(crate) const SIGNS: u8 = 16;
    pub(crate) const FLOAT: u8 = CLAMP | SCALE | SIGNS;
}

/// The description of a mnemonic.
#[derive(Clone, Copy)]
pub(super) struct Form {
    pub(super) op: Op,
    /// The operands in the order in which they are written.
    pub(super) kinds: &'static [Kind],
    pub(super) honours: u8,
}

impl Form {
    pub(super) fn new(kinds: &'static [Kind], op: Op) -> Self {
        Self { op, kinds, honours: honours::NOTHING }
    }

    pub(super) fn honouring(self, honours: u8) -> Self {
        Self { honours, ..self }
    }
}

/// The most operands that an instruction has.
pub(super) const OPERANDS: usize = 6;

/// Modifiers, ready to be used.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Modifiers {
    pub(super) offset: i64,
    pub(super) offsets: [u32; 2],
    pub(super) clamp: bool,
    /// 0: not at all, 1: times 2, 2: times 4, 3: half.
    pub(super) scale: u8,
    /// An atomic gives the old value back.
    pub(super) returns: bool,
    /// A store is visible to other groups: it goes past the caches.
    pub(super) past_caches: bool,
    /// A buffer instruction has an offset in each lane.
    pub(super) lane_offset: bool,
    pub(super) op_sel: [bool; 4],
    pub(super) op_sel_hi: [bool; 4],
    pub(super) neg_lo: [bool; 4],
    pub(super) neg_hi: [bool; 4],
}

/// Parts of registers, chosen by the encoding `sdwa`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Part {
    pub(super) shift: u32,
    pub(super) bits: u32,
    pub(super) sign_extend: bool,
}

/// The parts that the encoding `sdwa` adds to an instruction.
#[derive(Debug, Clone)]
pub(super) struct Subword {
    /// The instruction on whole registers, whose operands are hidden ones.
    pub(super) inner: Instruction,
    /// Where the sources are, and which parts of them are used.
    pub(super) sources: [Option<(usize, Part)>; 2],
    pub(super) destination: Part,
    pub(super) rest: Rest,
}

/// The effect on the rest of a register of which a part is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rest {
    Zero,
    Sign,
    Kept,
}

/// Which way an instruction uses a register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Use {
    pub(super) register: Value,
    pub(super) words: u8,
    pub(super) writes: bool,
}

/// One decoded instruction.
#[derive(Debug, Clone)]
pub(super) struct Instruction {
    pub(super) op: Op,
    pub(super) operands: [Operand; OPERANDS],
    pub(super) modifiers: Modifiers,
    /// Where a branch leads to, as an index into the program.
    pub(super) target: u32,
    /// A number that only this kind of instruction needs: bytes of an access, a counter's limits.
    pub(super) extra: u32,
    pub(super) address: u64,
    pub(super) bytes: u64,
    pub(super) subword: Option<Box<Subword>>,
    /// The instructions that it is made of, if it is made of others.
    pub(super) parts: Box<[Instruction]>,
    /// The text that comgr has printed.
    pub(super) text: Box<str>,
    pub(super) begins: Begins,
    /// Registers that are read and written, for the checks.
    pub(super) uses: Box<[Use]>,
}
