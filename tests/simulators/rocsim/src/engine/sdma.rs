//! The DMA engine: packets of the system DMA ring, as the runtime writes them for GFX9 and GFX10.

use super::{Patience, clock, halt, queue::Queue};
use crate::{
    config::Config,
    events,
    memory::{Fault, Span, span},
    stats::stats,
};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

mod op {
    pub(super) const NOP: u32 = 0;
    pub(super) const COPY: u32 = 1;
    pub(super) const FENCE: u32 = 5;
    pub(super) const TRAP: u32 = 6;
    pub(super) const POLL_REGMEM: u32 = 8;
    pub(super) const ATOMIC: u32 = 10;
    pub(super) const CONST_FILL: u32 = 11;
    pub(super) const TIMESTAMP: u32 = 13;
    pub(super) const GCR: u32 = 17;
    /// Sub-operations of a copy.
    pub(super) const LINEAR: u32 = 0;
    pub(super) const LINEAR_RECT: u32 = 4;
    /// The one atomic that the runtime uses.
    pub(super) const ADD_64: u32 = 47;
    /// Comparisons of a poll.
    pub(super) const POLL_EQUAL: u32 = 3;
    pub(super) const POLL_GREATER_EQUAL: u32 = 5;
}

/// The longest packet, in words of four bytes.
const MAX_WORDS: usize = 13;

enum Stop {
    NotNow,
    Fault(Fault),
    UnknownPacket,
}

impl From<Fault> for Stop {
    fn from(fault: Fault) -> Self {
        Stop::Fault(fault)
    }
}

/// Runs packets up to the write pointer. Both pointers count bytes and are never reduced.
pub(super) fn run(queue: &Queue) -> bool {
    while queue.may_run() {
        let position = queue.read_index().load(Ordering::Relaxed);
        if position >= queue.write_index().load(Ordering::Acquire) {
            return false;
        }
        let words = fetch(queue, position);
        match execute(queue, &words) {
            Ok(length) => {
                stats().sdma_packets.add(1);
                queue.read_index().store(position + length * 4, Ordering::Release);
            }
            Err(Stop::NotNow) => return true,
            Err(Stop::Fault(fault)) => {
                halt(&fault, "SDMA");
                return false;
            }
            Err(Stop::UnknownPacket) => {
                eprintln!("rocsim: unknown SDMA packet {:#010x}, the engine stops", words[0]);
                let fault = Fault {
                    node: queue.node,
                    address: queue.ring.as_ptr() as u64 + position % queue.ring.bytes() as u64,
                    bytes: 4,
                    cause: crate::memory::Cause::Unknown,
                };
                halt(&fault, "SDMA");
                return false;
            }
        }
    }
    true
}

/// The words at a position of the ring. Packets do not wrap around its end, but reading ahead may.
fn fetch(queue: &Queue, position: u64) -> [u32; MAX_WORDS] {
    let ring_bytes = queue.ring.bytes() as u64;
    std::array::from_fn(|index| {
        let offset = (position + 4 * index as u64) % ring_bytes;
        // SAFETY: the offset lies in the ring, which the producers have written up to the write pointer; words
        // beyond it are fetched but not used.
        unsafe { queue.ring.as_ptr().wrapping_add(offset as usize).cast::<u32>().read_volatile() }
    })
}

/// Runs one packet; gives its length in words.
fn execute(queue: &Queue, words: &[u32; MAX_WORDS]) -> Result<u64, Stop> {
    let node = queue.node;
    let address = |low: usize| address(words, low);
    let isa = Config::get().model.isa;
    match (words[0] & 0xff, words[0] >> 8 & 0xff) {
        (op::NOP, _) => Ok(1),
        (op::COPY, op::LINEAR) => {
            let bytes = length(isa, words[1])? + 1;
            let source = span(node, address(3), bytes)?;
            span(node, address(5), bytes)?.copy_from(&source);
            stats().sdma_copies.add(1);
            stats().sdma_copied_bytes.add(bytes);
            Ok(7)
        }
        (op::COPY, op::LINEAR_RECT) => {
            let rectangles = Rectangles::of(isa.0);
            let [from, to] = [1, 6].map(|low| rectangles.side(words, low));
            copy_rect(node, &from, &to, rectangles.size(words), words[0] >> 29)?;
            Ok(13)
        }
        (op::FENCE, _) => {
            let word = word(node, address(1), 4)?;
            // SAFETY: an aligned word of the span that is only used as an atomic.
            unsafe { AtomicU32::from_ptr(word.as_ptr().cast()) }.store(words[3], Ordering::Release);
            Ok(4)
        }
        (op::TRAP, _) => {
            // A number of an event that is gone is an interrupt without a listener.
            events::set(words[1] & 0x0fff_ffff, true);
            Ok(2)
        }
        (op::POLL_REGMEM, _) => {
            // Without the memory bit it flushes the host's write buffers, which there are none of.
            if words[0] >> 31 != 0 {
                poll(queue, address(1), words[3], words[4], words[0] >> 28 & 7)?;
            }
            Ok(6)
        }
        (op::ATOMIC, _) if words[0] >> 25 == op::ADD_64 => {
            let word = word(node, address(1), 8)?;
            // SAFETY: an aligned word of the span that is only used as an atomic.
            unsafe { AtomicU64::from_ptr(word.as_ptr().cast()) }.fetch_add(address(3), Ordering::AcqRel);
            Ok(8)
        }
        (op::CONST_FILL, _) => {
            // The count is in bytes, less one word; fills are in whole words.
            let bytes = (length(isa, words[4])? + 4) & !3;
            span(node, address(1), bytes)?.fill(&words[3].to_ne_bytes());
            stats().sdma_fills.add(1);
            Ok(5)
        }
        (op::TIMESTAMP, _) => {
            let word = word(node, address(1), 8)?;
            // SAFETY: eight bytes of the span; readers wait for the signal that follows.
            unsafe { word.as_ptr().cast::<u64>().write_volatile(clock()) };
            Ok(3)
        }
        // Cache maintenance of GFX10.
        (op::GCR, _) => Ok(5),
        _ => Err(Stop::UnknownPacket),
    }
}

/// The address in two words of a packet.
fn address(words: &[u32; MAX_WORDS], low: usize) -> u64 {
    u64::from(words[low]) | u64::from(words[low + 1]) << 32
}

/// Some bits of a word of a packet.
fn field(words: &[u32; MAX_WORDS], word: usize, shift: u32, bits: u32) -> u64 {
    u64::from(words[word] >> shift) & ((1u64 << bits) - 1)
}

/// The number of bytes in a word of a packet. Bits beyond those that the GPU looks at are a mistake of the runtime's.
fn length(isa: (u32, u32, u32), word: u32) -> Result<u64, Stop> {
    // SDMA 4.4, 5.2 and newer have 30 bits, older ones 22.
    let bits = if matches!(isa, (9, 0, 0..=8) | (10, 1, _)) { 22 } else { 30 };
    if word >> bits != 0 { Err(Stop::UnknownPacket) } else { Ok(word.into()) }
}

/// A word that is used as an atomic; an address that is not aligned is no packet of the runtime's.
fn word(node: u32, address: u64, bytes: u64) -> Result<Span, Stop> {
    if !address.is_multiple_of(bytes) {
        return Err(Stop::UnknownPacket);
    }
    Ok(span(node, address, bytes)?)
}

/// How many bits the fields of a rectangle copy have: places and lengths within a row and rows, those across slices, and the
/// distances between rows and between slices.
struct Rectangles {
    row: u32,
    depth: u32,
    pitch: u32,
    slice: u32,
}

impl Rectangles {
    /// Those of the instruction sets of that major version.
    fn of(major: u32) -> Self {
        match major {
            12.. => Self { row: 16, depth: 14, pitch: 16, slice: 32 },
            _ => Self { row: 14, depth: 11, pitch: 19, slice: 28 },
        }
    }

    /// The side whose address begins at a word of the packet.
    fn side(&self, words: &[u32; MAX_WORDS], low: usize) -> Side {
        Side {
            address: address(words, low),
            x: field(words, low + 2, 0, self.row),
            y: field(words, low + 2, 16, self.row),
            z: field(words, low + 3, 0, self.depth),
            pitch: field(words, low + 3, 32 - self.pitch, self.pitch) + 1,
            slice: field(words, low + 4, 0, self.slice) + 1,
        }
    }

    /// The size along the three axes.
    fn size(&self, words: &[u32; MAX_WORDS]) -> [u64; 3] {
        [(11, 0, self.row), (11, 16, self.row), (12, 0, self.depth)]
            .map(|(word, shift, bits)| field(words, word, shift, bits) + 1)
    }
}

/// One side of a rectangle copy; everything but the address counts elements.
struct Side {
    address: u64,
    x: u64,
    y: u64,
    z: u64,
    pitch: u64,
    slice: u64,
}

impl Side {
    fn row(&self, y: u64, z: u64, element_log2: u32) -> u64 {
        let elements = self.x + (self.y + y) * self.pitch + (self.z + z) * self.slice;
        self.address + (elements << element_log2)
    }
}

fn copy_rect(node: u32, from: &Side, to: &Side, size: [u64; 3], element_log2: u32) -> Result<(), Fault> {
    let bytes = size[0] << element_log2;
    for z in 0..size[2] {
        for y in 0..size[1] {
            let source = span(node, from.row(y, z, element_log2), bytes)?;
            span(node, to.row(y, z, element_log2), bytes)?.copy_from(&source);
        }
    }
    stats().sdma_copies.add(1);
    stats().sdma_copied_bytes.add(bytes * size[1] * size[2]);
    Ok(())
}

fn poll(queue: &Queue, address: u64, reference: u32, mask: u32, function: u32) -> Result<(), Stop> {
    let word = word(queue.node, address, 4)?;
    // SAFETY: an aligned word of the span that is only used as an atomic.
    let word = unsafe { AtomicU32::from_ptr(word.as_ptr().cast()) };
    let mut patience = Patience::default();
    loop {
        let value = word.load(Ordering::Acquire) & mask;
        let holds = match function {
            op::POLL_EQUAL => value == reference,
            op::POLL_GREATER_EQUAL => value >= reference,
            _ => return Err(Stop::UnknownPacket),
        };
        if holds {
            return Ok(());
        }
        if !queue.may_run() {
            return Err(Stop::NotNow);
        }
        patience.pause();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_have_as_many_bits_as_the_engine_has() {
        let old = [(9, 0, 0), (9, 0, 6), (9, 0, 8), (10, 1, 0)].map(|isa| (isa, 22));
        let new = [(9, 0, 10), (9, 4, 2), (10, 3, 0), (11, 0, 0), (12, 0, 1)].map(|isa| (isa, 30));
        for (isa, bits) in old.into_iter().chain(new) {
            assert!(matches!(length(isa, (1 << bits) - 1), Ok(bytes) if bytes == (1 << bits) - 1), "{isa:?}");
            assert!(matches!(length(isa, 1 << bits), Err(Stop::UnknownPacket)), "{isa:?}");
        }
    }

    #[test]
    fn rectangles_have_wider_fields_since_gfx12() {
        let mut words = [0; MAX_WORDS];
        // Place, distance between rows, distance between slices, and the size.
        (words[3], words[4], words[5]) = (0x4003_c005, 0x0009_0007, 0x1000_0000);
        (words[11], words[12]) = (0x4001_c002, 3 | 1 << 11);
        let of = |major| {
            let rectangles = Rectangles::of(major);
            let Side { x, y, z, pitch, slice, .. } = rectangles.side(&words, 1);
            ([x, y, z], [pitch, slice], rectangles.size(&words))
        };
        assert_eq!(of(9), ([5, 3, 7], [(0x9_0000 >> 13) + 1, 1], [3, 2, 4]));
        assert_eq!(of(11), of(9));
        assert_eq!(of(12), ([0xc005, 0x4003, 7], [10, 0x1000_0001], [0xc003, 0x4002, 4 + (1 << 11)]));
    }
}
