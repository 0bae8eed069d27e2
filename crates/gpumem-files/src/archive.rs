//! Zip archives, as far as npz files need them. The directory is read once, from the end of the file, and only a directory that is
//! there is allocated: whatever the archive says of itself, opening it takes no longer than that. What is written is stored, with
//! lengths in 64 bits, whatever they are.

use crate::{broken, header};
use gpumem_core::{FileError, FileFailure};
use gpumem_runtime::DataFile;
use std::collections::BTreeMap;

/// The end of a directory, without the comment that follows it.
const END: u64 = 22;
const MOST_COMMENT: u64 = u16::MAX as u64;
/// Where the end in 64 bits is, directly before the end.
const LOCATOR: u64 = 20;
const END_64: u64 = 56;
/// An entry of the directory, and the header before a member, both without the name and what follows it.
const ENTRY: usize = 46;
const LOCAL: u64 = 30;
/// The number of the extra field with lengths in 64 bits.
const ZIP64: usize = 1;
/// What stands for a number in 64 bits, elsewhere.
const ELSEWHERE: u64 = u32::MAX as u64;

/// A file in the archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Member {
    pub(crate) is_encrypted: bool,
    /// How it is compressed: [`STORED`] or another number of the format.
    pub(crate) method: u64,
    pub(crate) checksum: u32,
    /// Its bytes in the archive, and unpacked.
    pub(crate) packed: u64,
    pub(crate) bytes: u64,
    /// Where the header before it begins.
    header: u64,
}

pub(crate) const STORED: u64 = 0;
pub(crate) const DEFLATED: u64 = 8;

/// The members, with their place in the directory. Of two members of one name the later one counts.
pub(crate) fn members(file: &DataFile) -> Result<BTreeMap<String, (usize, Member)>, FileError> {
    let (start, bytes, count) = directory(file)?;
    let directory = header::read(file, start, ("the directory", bytes, header::MOST_JSON))?;
    let wrong = |why| broken(file, start, why);
    let (mut members, mut rest, mut number) = (BTreeMap::new(), &*directory, 0);
    while !rest.is_empty() {
        let (name, member, after) =
            entry(rest).ok_or_else(|| wrong("an entry of the directory is not one of a zip archive"))?;
        members.insert(name, (number, member));
        (rest, number) = (after, number + 1);
    }
    if number as u64 != count {
        return Err(wrong("the directory has another number of members than it says"));
    }
    Ok(members)
}

/// Where the directory is, how long, and how many members it has.
fn directory(file: &DataFile) -> Result<(u64, u64, u64), FileError> {
    let tail_bytes = file.len().min(END + MOST_COMMENT);
    let begin = file.len() - tail_bytes;
    let tail = header::read(file, begin, ("the end", tail_bytes, tail_bytes))?;
    // The last one whose comment ends with the file.
    let is_end = |at: &usize| {
        let end = tail.get(*at..).unwrap_or_default();
        end.starts_with(b"PK\x05\x06") && number(end, 20, 2) == Some((end.len() as u64).wrapping_sub(END))
    };
    let Some(at) = (0..tail.len()).rev().find(is_end) else {
        return Err(broken(file, file.len(), "it does not end as a zip archive"));
    };
    let end = tail.get(at..).unwrap_or_default();
    let at = begin + at as u64;
    let wrong = |why| broken(file, at, why);
    let numbers = |from: &[u8], at: [usize; 4], bytes: [usize; 4]| -> Option<[u64; 4]> {
        let [a, b, c, d] = [0, 1, 2, 3].map(|n: usize| number(from, at[n], bytes[n]));
        Some([a?, b?, c?, d?])
    };
    // The disks, the number of members, the length and the place.
    let short = numbers(end, [4, 10, 12, 16], [4, 2, 4, 4]);
    let mut found = short.ok_or_else(|| wrong("its end is too short"))?;
    let [_, count, bytes, start] = found;
    if count == u64::from(u16::MAX) || bytes == ELSEWHERE || start == ELSEWHERE {
        let more = |at, what, bytes| header::read(file, at, (what, bytes, bytes));
        let locator = match at.checked_sub(LOCATOR) {
            Some(at) => more(at, "the locator", LOCATOR)?,
            None => Vec::new(),
        };
        // Without one, the numbers are what they are.
        if locator.starts_with(b"PK\x06\x07") {
            let place = number(&locator, 8, 8).ok_or_else(|| wrong("its locator is too short"))?;
            let end = more(place, "the end", END_64)?;
            let long = numbers(&end, [16, 32, 40, 48], [8; 4]).filter(|_| end.starts_with(b"PK\x06\x06"));
            found = long.ok_or_else(|| wrong("its end in 64 bits is not there"))?;
        }
    }
    let [disks, count, bytes, start] = found;
    match (disks, start.checked_add(bytes)) {
        (0, Some(end)) if end <= at => Ok((start, bytes, count)),
        (0, _) => Err(wrong("its directory is not before its end")),
        _ => Err(wrong("it is one of several files")),
    }
}

/// The first entry of a directory, and what follows it.
fn entry(from: &[u8]) -> Option<(String, Member, &[u8])> {
    let (head, rest) = from.split_at_checked(ENTRY)?;
    let short = |at| number(head, at, 2);
    let long = |at| number(head, at, 4);
    let length = |at| usize::try_from(short(at)?).ok();
    let (name, rest) = rest.split_at_checked(length(28)?)?;
    let (extra, rest) = rest.split_at_checked(length(30)?)?;
    let (_, rest) = rest.split_at_checked(length(32)?)?;
    let mut numbers = zip64(extra).unwrap_or_default();
    // In this order, those that are elsewhere.
    let mut whole = |short: u64| match short {
        ELSEWHERE => {
            let (own, others) = numbers.split_at_checked(8)?;
            numbers = others;
            number(own, 0, 8)
        }
        short => Some(short),
    };
    let (bytes, packed, header) = (whole(long(24)?)?, whole(long(20)?)?, whole(long(42)?)?);
    let checksum = u32::try_from(long(16)?).ok()?;
    let member =
        Member { is_encrypted: short(8)? & 1 != 0, method: short(10)?, checksum, packed, bytes, header };
    let is_entry = head.starts_with(b"PK\x01\x02");
    is_entry.then(|| (String::from_utf8_lossy(name).into_owned(), member, rest))
}

/// The extra field with numbers in 64 bits.
fn zip64(mut extra: &[u8]) -> Option<&[u8]> {
    loop {
        let (head, rest) = extra.split_at_checked(4)?;
        let (field, rest) = rest.split_at_checked(usize::try_from(number(head, 2, 2)?).ok()?)?;
        if number(head, 0, 2)? == ZIP64 as u64 {
            return Some(field);
        }
        extra = rest;
    }
}

impl Member {
    /// Where its bytes begin: behind a header, which has a name of its own.
    pub(crate) fn start(&self, file: &DataFile) -> Result<u64, FileError> {
        let wrong = |why| broken(file, self.header, why);
        let head = header::read(file, self.header, ("the header of a member", LOCAL, LOCAL))?;
        let lengths = number(&head, 26, 2).zip(number(&head, 28, 2));
        match lengths.filter(|_| head.starts_with(b"PK\x03\x04")) {
            // The header is in the file, and these are short.
            Some((name, extra)) => Ok(self.header + LOCAL + name + extra),
            None => Err(wrong("a member is not where the directory says")),
        }
    }

    /// Why it cannot be read, if it cannot.
    pub(crate) fn refused(&self, file: &DataFile) -> Option<FileError> {
        let message = match self.method {
            _ if self.is_encrypted => "the member is encrypted".to_owned(),
            STORED | DEFLATED => return None,
            other => format!("the member is compressed by method {other}, and only deflate is unpacked"),
        };
        Some(file.error(FileFailure::Refused { message }))
    }
}

/// A member that is written.
#[derive(Debug)]
pub(crate) struct NewMember {
    pub(crate) name: String,
    pub(crate) checksum: u32,
    pub(crate) bytes: u64,
    /// Where its header begins.
    pub(crate) header: u64,
}

/// Names are UTF-8.
const UTF8: u64 = 1 << 11;
/// The version of the format that has lengths in 64 bits.
const VERSION: u64 = 45;
/// The first day that the format has: the same arrays make the same file.
const DAY: u64 = 0x21;

/// Bytes of the field with lengths in 64 bits: before a member, and in the directory, where it also has the place.
const LOCAL_EXTRA: u64 = 20;
const ENTRY_EXTRA: u64 = 28;

impl NewMember {
    /// Bytes of the header before its own.
    pub(crate) fn header_bytes(name: &str) -> u64 {
        LOCAL + name.len() as u64 + LOCAL_EXTRA
    }

    /// The numbers that both headers have.
    fn numbers(&self, extra: u64) -> Vec<(u64, usize)> {
        let numbers = [(VERSION, 2), (UTF8, 2), (STORED, 2), (0, 2), (DAY, 2), (self.checksum.into(), 4)];
        let lengths = [(ELSEWHERE, 4), (ELSEWHERE, 4), (self.name.len() as u64, 2), (extra, 2)];
        [&numbers[..], &lengths].concat()
    }

    /// The header before its bytes. Its length is at most [`MOST_NAME`].
    pub(crate) fn local(&self) -> Vec<u8> {
        let mut header = record(b"PK\x03\x04", &self.numbers(LOCAL_EXTRA));
        header.extend(self.name.as_bytes());
        header.extend(record(&[], &[(ZIP64 as u64, 2), (16, 2), (self.bytes, 8), (self.bytes, 8)]));
        header
    }

    /// Its entry in the directory.
    fn entry(&self) -> Vec<u8> {
        // No comment, the first disk, no attributes.
        let rest = [(0, 2), (0, 2), (0, 2), (0, 4), (ELSEWHERE, 4)];
        let numbers = [&[(VERSION, 2)], &self.numbers(ENTRY_EXTRA)[..], &rest].concat();
        let mut entry = record(b"PK\x01\x02", &numbers);
        entry.extend(self.name.as_bytes());
        let extra = [(ZIP64 as u64, 2), (24, 2), (self.bytes, 8), (self.bytes, 8), (self.header, 8)];
        entry.extend(record(&[], &extra));
        entry
    }
}

/// The longest name of a member.
pub(crate) const MOST_NAME: usize = u16::MAX as usize;

/// Bytes of the directory of members with these names, and of its end.
pub(crate) fn directory_bytes<'a>(names: impl Iterator<Item = &'a str>) -> u64 {
    let entries = names.map(|name| ENTRY as u64 + name.len() as u64 + ENTRY_EXTRA);
    match entries.sum() {
        0 => END,
        bytes => bytes + END_64 + LOCATOR + END,
    }
}

/// The directory, which begins at `start`, and its end.
pub(crate) fn new_directory(members: &[NewMember], start: u64) -> Vec<u8> {
    let mut directory: Vec<u8> = members.iter().flat_map(NewMember::entry).collect();
    if members.is_empty() {
        // Numbers in 64 bits would hide from some readers that it is an archive.
        return record(b"PK\x05\x06", &[(0, 8), (0, 8), (0, 2)]);
    }
    let (bytes, count) = (directory.len() as u64, members.len() as u64);
    let versions = [(44, 8), (VERSION, 2), (VERSION, 2), (0, 4), (0, 4)];
    let place = [(count, 8), (count, 8), (bytes, 8), (start, 8)];
    directory.extend(record(b"PK\x06\x06", &[&versions[..], &place].concat()));
    directory.extend(record(b"PK\x06\x07", &[(0, 4), (start + bytes, 8), (1, 4)]));
    let all = u64::from(u16::MAX);
    let end = [(0, 2), (0, 2), (all, 2), (all, 2), (ELSEWHERE, 4), (ELSEWHERE, 4), (0, 2)];
    directory.extend(record(b"PK\x05\x06", &end));
    directory
}

/// A record of numbers, each of so many bytes.
fn record(signature: &[u8], numbers: &[(u64, usize)]) -> Vec<u8> {
    let bytes = numbers.iter().flat_map(|(number, bytes)| number.to_le_bytes().into_iter().take(*bytes));
    signature.iter().copied().chain(bytes).collect()
}

/// A number of so many bytes.
fn number(from: &[u8], at: usize, bytes: usize) -> Option<u64> {
    let own = from.get(at..at + bytes)?;
    Some(own.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
}
