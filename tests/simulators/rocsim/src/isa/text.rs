//! The text of one instruction, taken apart: mnemonic, operands, modifiers.

use super::names;
use std::collections::BTreeMap;

/// The number of the first of the named scalar registers, as the hardware numbers them where it does.
pub(super) mod scalar {
    pub(crate) const VCC: u8 = 106;
    pub(crate) const TTMP: u8 = 108;
    pub(crate) const M0: u8 = 124;
    pub(crate) const NULL: u8 = 125;
    pub(crate) const EXEC: u8 = 126;
    pub(crate) const EXEC_HIGH: u8 = 127;
    // Numbers of our own, beyond the ordinary registers.
    pub(crate) const SHARED_BASE: u8 = 200;
    pub(crate) const SHARED_LIMIT: u8 = 202;
    pub(crate) const PRIVATE_BASE: u8 = 204;
    pub(crate) const PRIVATE_LIMIT: u8 = 206;
    pub(crate) const FLAT_SCRATCH: u8 = 208;
    pub(crate) const XNACK_MASK: u8 = 210;
    /// What a scalar instruction has compared, as a mask of lanes.
    pub(crate) const OUTCOME: u8 = 212;
    pub(crate) const SCC: u8 = 253;
}

/// An operand as it is written.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Written {
    /// So many vector registers from the first.
    Vector(u16, u8),
    /// So many accumulation registers from the first.
    Accumulator(u16, u8),
    /// So many scalar registers from the first.
    Scalar(u8, u8),
    /// A small number, or an offset.
    Integer(i64),
    /// A constant of 32 bits.
    Literal(u32),
    /// A floating-point number that the instruction set has a code for.
    Float(f64),
    /// Whether the vector condition code is zero.
    VccZero,
    /// Whether the execution mask is zero.
    ExecZero,
    /// The word `off`: no address here.
    Off,
}

/// An operand with its modifiers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct TextOperand {
    pub(super) written: Written,
    pub(super) negate: bool,
    pub(super) absolute: bool,
    pub(super) sign_extend: bool,
    /// The lower (`v1.l`) or the upper (`v1.h`) half of a vector register.
    pub(super) half: Option<Half>,
}

impl TextOperand {
    /// An operand without modifiers.
    pub(super) fn plain(written: Written) -> Self {
        Self { written, negate: false, absolute: false, sign_extend: false, half: None }
    }
}

/// A half of a register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Half {
    Lower,
    Upper,
}

/// One instruction, taken apart.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Text {
    /// The mnemonic without the suffix of its encoding; the older one of an instruction that has two.
    pub(super) name: String,
    /// The suffix: `e32`, `e64`, `sdwa`, `dpp`, or nothing.
    pub(super) encoding: &'static str,
    pub(super) operands: Vec<TextOperand>,
    /// Modifiers and their values; no value for those that are words alone.
    pub(super) modifiers: BTreeMap<String, String>,
    /// Text in the place of an operand that is none: `vmcnt(0)`, `hwreg(HW_REG_MODE, 0, 4)`.
    pub(super) fields: Vec<String>,
}

impl Text {
    /// Takes a line of the disassembler apart.
    pub(super) fn parse(line: &str) -> Self {
        let line = line.split("//").next().unwrap_or_default().trim();
        let (mnemonic, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let (name, encoding) = ["e32", "e64", "sdwa", "dpp", "dpp8"]
            .into_iter()
            .find_map(|suffix| Some((mnemonic.strip_suffix(suffix)?.strip_suffix('_')?, suffix)))
            .unwrap_or((mnemonic, ""));
        let mut text = Self { name: names::older(name), encoding, ..Self::default() };
        for piece in pieces(rest) {
            // An operand may be followed by modifiers, which are separated by blanks only.
            for (index, word) in piece.split_whitespace().enumerate() {
                match operand(word) {
                    Some(operand) if index == 0 => text.operands.push(operand),
                    _ => text.modifier(word),
                }
            }
        }
        text
    }

    fn modifier(&mut self, word: &str) {
        match word.split_once(':') {
            Some((key, value)) => self.modifiers.insert(key.to_owned(), value.to_owned()),
            None if word.contains('(') => {
                self.fields.push(word.to_owned());
                None
            }
            None => self.modifiers.insert(word.to_owned(), String::new()),
        };
    }

    /// The number that a modifier is set to.
    pub(super) fn number(&self, key: &str) -> Option<i64> {
        integer(self.modifiers.get(key)?)
    }

    /// The arguments of a field, such as the number in `vmcnt(0)`.
    pub(super) fn field(&self, name: &str) -> Option<Vec<&str>> {
        let found = |field: &'_ String| field.split_once('(').is_some_and(|(key, _)| key == name);
        let (_, arguments) = self.fields.iter().find(|field| found(field))?.split_once('(')?;
        Some(arguments.trim_end_matches(')').split(',').collect())
    }
}

/// Splits at commas outside of brackets, and takes blanks inside of brackets away.
fn pieces(rest: &str) -> Vec<String> {
    let mut pieces = vec![String::new()];
    let mut depth = 0i32;
    for character in rest.chars() {
        depth += i32::from(matches!(character, '[' | '(')) - i32::from(matches!(character, ']' | ')'));
        match (character, pieces.last_mut()) {
            (',', _) if depth == 0 => pieces.push(String::new()),
            (' ', _) if depth > 0 => {}
            (_, Some(piece)) => piece.push(character),
            (_, None) => {}
        }
    }
    pieces
}

/// A decimal or hexadecimal number, negative or not.
pub(super) fn integer(text: &str) -> Option<i64> {
    let (negative, digits) = text.strip_prefix('-').map_or((false, text), |digits| (true, digits));
    let number = match digits.strip_prefix("0x") {
        Some(digits) => i64::from_str_radix(digits, 16).ok()?,
        None => digits.parse().ok()?,
    };
    Some(if negative { -number } else { number })
}

fn operand(word: &str) -> Option<TextOperand> {
    // A negative number is a number, and not a negated one.
    if let Some(written) = constant(word) {
        return Some(TextOperand::plain(written));
    }
    let mut word = word;
    let mut strip = |before: &str, after: &str| {
        let inner = word.strip_prefix(before).and_then(|inner| inner.strip_suffix(after));
        word = inner.unwrap_or(word);
        inner.is_some()
    };
    let negate = strip("neg(", ")") | strip("-", "");
    let absolute = strip("abs(", ")") | strip("|", "|");
    let sign_extend = strip("sext(", ")");
    let halves = [("v", ".l", Half::Lower), ("v", ".h", Half::Upper)];
    let half = halves.into_iter().find_map(|(before, after, half)| {
        word = word.strip_suffix(after).filter(|word| word.starts_with(before))?;
        Some(half)
    });
    let written = constant(word).or_else(|| named(word)).or_else(|| register(word))?;
    Some(TextOperand { written, negate, absolute, sign_extend, half })
}

fn constant(word: &str) -> Option<Written> {
    let word = word.strip_prefix("lit(").and_then(|word| word.strip_suffix(')')).unwrap_or(word);
    if let Some(digits) = word.strip_prefix("0x") {
        return u32::from_str_radix(digits, 16).ok().map(Written::Literal);
    }
    if let Some(number) = integer(word) {
        return Some(Written::Integer(number));
    }
    let is_number = word.bytes().all(|byte| byte.is_ascii_digit() || b"-.e".contains(&byte));
    if is_number { word.parse().ok().map(Written::Float) } else { None }
}

fn named(word: &str) -> Option<Written> {
    use Written::{ExecZero, Off, Scalar, VccZero};
    Some(match word {
        "vcc" => Scalar(scalar::VCC, 2),
        "vcc_lo" => Scalar(scalar::VCC, 1),
        "vcc_hi" => Scalar(scalar::VCC + 1, 1),
        "exec" => Scalar(scalar::EXEC, 2),
        "exec_lo" => Scalar(scalar::EXEC, 1),
        "exec_hi" => Scalar(scalar::EXEC + 1, 1),
        "m0" => Scalar(scalar::M0, 1),
        "null" => Scalar(scalar::NULL, 2),
        "scc" | "src_scc" => Scalar(scalar::SCC, 1),
        "flat_scratch" => Scalar(scalar::FLAT_SCRATCH, 2),
        "flat_scratch_lo" => Scalar(scalar::FLAT_SCRATCH, 1),
        "flat_scratch_hi" => Scalar(scalar::FLAT_SCRATCH + 1, 1),
        "xnack_mask" => Scalar(scalar::XNACK_MASK, 2),
        "xnack_mask_lo" => Scalar(scalar::XNACK_MASK, 1),
        "xnack_mask_hi" => Scalar(scalar::XNACK_MASK + 1, 1),
        "src_shared_base" => Scalar(scalar::SHARED_BASE, 2),
        "src_shared_limit" => Scalar(scalar::SHARED_LIMIT, 2),
        "src_private_base" => Scalar(scalar::PRIVATE_BASE, 2),
        "src_private_limit" => Scalar(scalar::PRIVATE_LIMIT, 2),
        "src_vccz" => VccZero,
        "src_execz" => ExecZero,
        "off" => Off,
        _ => return None,
    })
}

fn register(word: &str) -> Option<Written> {
    if let Some((first, count)) = word.strip_prefix("ttmp").and_then(range) {
        return Some(Written::Scalar(u8::try_from(first).ok()?.checked_add(scalar::TTMP)?, count));
    }
    let (first, count) = range(word.get(1..)?)?;
    match word.get(..1)? {
        "v" if first < 256 => Some(Written::Vector(first, count)),
        "a" if first < 256 => Some(Written::Accumulator(first, count)),
        "s" if first < u16::from(scalar::VCC) => Some(Written::Scalar(first as u8, count)),
        _ => None,
    }
}

/// `7` or `[4:7]`, as the first number and how many there are.
fn range(text: &str) -> Option<(u16, u8)> {
    let Some(inner) = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')) else {
        return Some((text.parse().ok()?, 1));
    };
    let (first, last) = inner.split_once(':').unwrap_or((inner, inner));
    let (first, last): (u16, u16) = (first.parse().ok()?, last.parse().ok()?);
    Some((first, u8::try_from(last.checked_sub(first)? + 1).ok()?))
}
