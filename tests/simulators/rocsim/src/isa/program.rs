//! The decoded code of a kernel: everything that can be reached from its first instruction, decoded once.

use super::{
    comgr::{Disassembler, LONGEST, Line, Missing},
    control,
    decode::{Shape, decode, is_known},
    instruction::Instruction,
};
use crate::{
    config::trace,
    memory::{self, Fault},
    stats::stats,
};
use parking_lot::Mutex;
use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, LazyLock},
};

/// The decoded code of a kernel.
#[derive(Debug)]
pub(super) struct Program {
    /// In the order of their addresses: each instruction is followed by the next one.
    pub(super) instructions: Vec<Instruction>,
    pub(super) entry: u32,
    indices: HashMap<u64, u32>,
    /// The first address, and the bytes that were there.
    code: (u64, Box<[u8]>),
    shape: Shape,
}

/// Programs by their GPU and their first address.
type Programs = Mutex<HashMap<(u32, u64), Arc<Program>>>;

static PROGRAMS: LazyLock<Programs> = LazyLock::new(Mutex::default);

/// Why there is no program.
#[derive(Debug)]
pub(crate) enum Undecoded {
    Missing(Missing),
    Fault(Fault),
}

impl From<Fault> for Undecoded {
    fn from(fault: Fault) -> Self {
        Undecoded::Fault(fault)
    }
}

impl Program {
    /// Where the instruction at an address is.
    pub(super) fn index(&self, address: u64) -> Option<u32> {
        self.indices.get(&address).copied()
    }

    /// The program that begins at an address, decoded now or before.
    pub(super) fn get(
        node: u32,
        isa: (u32, u32, u32),
        entry: u64,
        shape: Shape,
    ) -> Result<Arc<Self>, Undecoded> {
        let known = PROGRAMS.lock().get(&(node, entry)).cloned();
        // Another program may have taken the place of one that was unloaded.
        if let Some(known) = known.filter(|known| known.shape == shape && known.is_still_there(node)) {
            return Ok(known);
        }
        let program = Arc::new(Self::decode(node, isa, entry, shape)?);
        PROGRAMS.lock().insert((node, entry), Arc::clone(&program));
        Ok(program)
    }

    /// Whether memory holds the code that was decoded.
    fn is_still_there(&self, node: u32) -> bool {
        let (start, bytes) = &self.code;
        memory::span(node, *start, bytes.len() as u64).is_ok_and(|span| {
            // SAFETY: the span has that many bytes; code is not written while it runs.
            let now = unsafe { std::slice::from_raw_parts(span.as_ptr(), span.bytes()) };
            now == &**bytes
        })
    }

    fn decode(
        node: u32,
        (major, minor, stepping): (u32, u32, u32),
        entry: u64,
        shape: Shape,
    ) -> Result<Self, Undecoded> {
        let isa = format!("gfx{major}{minor}{stepping:x}");
        let disassembler = Disassembler::new(&isa).map_err(Undecoded::Missing)?;
        let mut lines: BTreeMap<u64, Line> = BTreeMap::new();
        let mut reached = vec![entry];
        while let Some(address) = reached.pop() {
            if lines.contains_key(&address) {
                continue;
            }
            let code = read(node, address)?;
            let line = disassembler.line(address, &code).unwrap_or_else(|| Line {
                text: format!("(no instruction: {:x?})", code.get(..4).unwrap_or(&code)),
                bytes: 4,
                target: None,
            });
            let name = line.text.split_whitespace().next().unwrap_or_default();
            let (branches, goes_on) = control::leads(name);
            reached.extend(line.target.filter(|_| branches));
            // Bytes that are no instruction stop the wave.
            reached.extend((goes_on && !name.starts_with('(')).then_some(address + line.bytes));
            lines.insert(address, line);
        }
        let indices: HashMap<u64, u32> =
            lines.keys().enumerate().map(|(index, address)| (*address, index as u32)).collect();
        let mut instructions: Vec<Instruction> =
            lines.iter().map(|(address, line)| decode(line, *address, shape)).collect();
        for (instruction, line) in instructions.iter_mut().zip(lines.values()) {
            instruction.target =
                line.target.and_then(|target| indices.get(&target).copied()).unwrap_or(u32::MAX);
        }
        for line in lines.values().filter(|line| !is_known(line, shape)) {
            trace!("`{}` of {isa} is not known", line.text);
            stats().unknown_instructions.add(1);
        }
        let end = lines.last_key_value().map_or(entry, |(address, line)| address + line.bytes);
        let start = lines.first_key_value().map_or(entry, |(address, _)| *address);
        let code = (start, bytes_at(node, start, end - start)?);
        let entry = indices.get(&entry).copied().unwrap_or(u32::MAX);
        Ok(Self { instructions, entry, indices, code, shape })
    }
}

/// The bytes at an address, as many as the longest instruction has, or fewer where the memory ends.
fn read(node: u32, address: u64) -> Result<Box<[u8]>, Fault> {
    let lengths = [LONGEST as u64, 12, 8];
    let found = lengths.iter().find_map(|bytes| bytes_at(node, address, *bytes).ok());
    found.map_or_else(|| bytes_at(node, address, 4), Ok)
}

/// So many bytes at an address.
fn bytes_at(node: u32, address: u64, bytes: u64) -> Result<Box<[u8]>, Fault> {
    let span = memory::span(node, address, bytes)?;
    // SAFETY: the span has that many bytes; code is not written while it runs.
    Ok(unsafe { std::slice::from_raw_parts(span.as_ptr(), span.bytes()) }.into())
}
