//! Pickles of plain values, in the protocols 2 to 5. An instruction that would name or call code is refused.

use super::value::{Value, Values};
use crate::trace::TraceError;
use std::collections::HashMap;

/// Returns the values of a pickle, and the index of the outermost.
///
/// # Errors
/// Returns [`TraceError::Import`] with the byte at which it ends early, or is no plain value.
pub(super) fn read(bytes: &[u8]) -> Result<(Values, u32), TraceError> {
    let mut machine = Machine {
        bytes,
        at: 0,
        values: Values::default(),
        stack: Vec::new(),
        marks: Vec::new(),
        memo: HashMap::new(),
    };
    loop {
        let at = machine.at;
        let wrong = |why| TraceError::Import { what: "byte", index: at as u64, why };
        if let Some(outermost) = machine.step().map_err(wrong)? {
            return Ok((machine.values, outermost));
        }
    }
}

type Step<T> = Result<T, &'static str>;

struct Machine<'a> {
    bytes: &'a [u8],
    at: usize,
    values: Values,
    stack: Vec<u32>,
    /// Lengths of the stack at the marks on it.
    marks: Vec<usize>,
    memo: HashMap<u32, u32>,
}

impl Machine<'_> {
    /// Does an instruction. Returns the outermost value at the end.
    fn step(&mut self) -> Step<Option<u32>> {
        let [instruction] = self.array()?;
        match instruction {
            // The protocol, and the length of a frame, which repeat what the rest says.
            0x80 => drop(self.array::<1>()?),
            0x95 => drop(self.array::<8>()?),
            b'.' => return self.pop().map(Some),
            b'N' | 0x88 | 0x89 => self.push(Value::Other),
            b'G' => {
                self.array::<8>()?;
                self.push(Value::Other);
            }
            b'J' => {
                let number = i32::from_le_bytes(self.array()?);
                self.push(Value::Number(number.into()));
            }
            b'K' | b'M' => {
                let number = self.length(if instruction == b'K' { 1 } else { 2 })?;
                self.push(Value::Number(number as i128));
            }
            0x8a => self.long(1)?,
            0x8b => self.long(4)?,
            0x8c => self.text(1)?,
            b'X' => self.text(4)?,
            0x8d => self.text(8)?,
            b'C' => self.skip(1)?,
            b'B' => self.skip(4)?,
            0x8e | 0x96 => self.skip(8)?,
            b']' | b')' => self.push(Value::List(Vec::new())),
            b'}' => self.push(Value::Record(Vec::new())),
            b'(' => self.marks.push(self.stack.len()),
            b't' => {
                let items = self.items()?;
                self.push(Value::List(items));
            }
            0x85..=0x87 => {
                let count = usize::from(instruction - 0x84);
                let first = self.stack.len().checked_sub(count).filter(|first| *first >= self.floor());
                let items = self.stack.split_off(first.ok_or(SHORT)?);
                self.push(Value::List(items));
            }
            b'a' => {
                let item = self.pop()?;
                self.append(&[item])?;
            }
            b'e' => {
                let items = self.items()?;
                self.append(&items)?;
            }
            b's' => {
                let value = self.pop()?;
                let key = self.pop()?;
                self.enter(&[key, value])?;
            }
            b'u' => {
                let items = self.items()?;
                self.enter(&items)?;
            }
            b'q' | b'r' => {
                let slot = self.length(if instruction == b'q' { 1 } else { 4 })?;
                self.memo.insert(slot as u32, self.top()?);
            }
            0x94 => {
                let slot = self.memo.len() as u32;
                self.memo.insert(slot, self.top()?);
            }
            b'h' | b'j' => {
                let slot = self.length(if instruction == b'h' { 1 } else { 4 })?;
                let value = self.memo.get(&(slot as u32)).ok_or("it takes a value that was not kept")?;
                self.stack.push(*value);
            }
            _ => return Err("the pickle has an instruction for more than plain values"),
        }
        Ok(None)
    }

    fn take(&mut self, length: u64) -> Step<&[u8]> {
        let rest = &self.bytes[self.at..];
        let length = usize::try_from(length).ok().filter(|length| *length <= rest.len());
        let length = length.ok_or("the pickle ends early")?;
        self.at += length;
        Ok(&rest[..length])
    }

    fn array<const N: usize>(&mut self) -> Step<[u8; N]> {
        let taken = self.take(N as u64)?;
        taken.try_into().map_err(|_| SHORT)
    }

    /// An unsigned number of so many bytes.
    fn length(&mut self, bytes: u64) -> Step<u64> {
        let taken = self.take(bytes)?;
        Ok(taken.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    /// A signed number, with the length of its length.
    fn long(&mut self, bytes: u64) -> Step<()> {
        let length = self.length(bytes)?;
        let taken = self.take(length)?;
        let sign = taken.last().map_or(0, |last| if *last >= 128 { -1 } else { 0 });
        let number = taken.iter().rev().fold(sign, |number: i128, byte| number << 8 | i128::from(*byte));
        let value = if taken.len() <= 16 { Value::Number(number) } else { Value::Other };
        self.push(value);
        Ok(())
    }

    fn text(&mut self, bytes: u64) -> Step<()> {
        let length = self.length(bytes)?;
        let text = String::from_utf8_lossy(self.take(length)?).into_owned();
        self.push(Value::Text(text));
        Ok(())
    }

    fn skip(&mut self, bytes: u64) -> Step<()> {
        let length = self.length(bytes)?;
        self.take(length)?;
        self.push(Value::Other);
        Ok(())
    }

    fn push(&mut self, value: Value) {
        let index = self.values.add(value);
        self.stack.push(index);
    }

    fn floor(&self) -> usize {
        self.marks.last().copied().unwrap_or(0)
    }

    fn top(&self) -> Step<u32> {
        let top = self.stack.last().filter(|_| self.stack.len() > self.floor());
        top.copied().ok_or(SHORT)
    }

    fn pop(&mut self) -> Step<u32> {
        let top = self.top()?;
        self.stack.pop();
        Ok(top)
    }

    /// What lies above the last mark.
    fn items(&mut self) -> Step<Vec<u32>> {
        let mark = self.marks.pop().ok_or("the pickle lacks a mark")?;
        Ok(self.stack.split_off(mark))
    }

    fn append(&mut self, items: &[u32]) -> Step<()> {
        let top = self.top()?;
        match &mut self.values.0[top as usize] {
            Value::List(list) => list.extend(items),
            _ => return Err("it appends to what is no list"),
        }
        Ok(())
    }

    fn enter(&mut self, items: &[u32]) -> Step<()> {
        let (pairs, rest) = items.as_chunks::<2>();
        let top = self.top()?;
        match &mut self.values.0[top as usize] {
            Value::Record(fields) if rest.is_empty() => {
                fields.extend(pairs.iter().map(|[key, value]| (*key, *value)));
            }
            _ => return Err("it enters fields into what is no record, or half a field"),
        }
        Ok(())
    }
}

const SHORT: &str = "the pickle takes a value that is not there";
