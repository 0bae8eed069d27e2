//! Loads and stores.

use super::{
    check::{Access, Space as Checked},
    environment::Environment,
    instruction::{Flow, Instruction, Op, Value},
    stop::{Cause, Stop},
    wave::{PRIVATE_APERTURE, SHARED_APERTURE, Wave},
};

/// Which memory an instruction reaches, and how it says the address.
pub(super) mod space {
    pub(crate) const FLAT: u8 = 0;
    pub(crate) const GLOBAL: u8 = 1;
    pub(crate) const SHARED: u8 = 2;
    pub(crate) const SCRATCH: u8 = 3;
    pub(crate) const BUFFER: u8 = 4;
}

/// Where the operands of memory instructions are after decoding, whatever the order in which they are written.
pub(super) mod slot {
    pub(crate) const RESULT: usize = 0;
    pub(crate) const ADDRESS: usize = 1;
    pub(crate) const DATA: usize = 2;
    /// A second value, of instructions that compare or that write in two places.
    pub(crate) const SECOND: usize = 3;
    /// The base address, or the offset of a buffer instruction.
    pub(crate) const BASE: usize = 4;
    pub(crate) const BUFFER: usize = 5;
}

/// The lanes that are set in a mask.
pub(super) fn lanes(mut mask: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let lane = mask.trailing_zeros();
        mask &= mask.wrapping_sub(1);
        (lane < 64).then_some(lane as usize)
    })
}

/// Ends the wave with the fault of a lane.
#[cold]
pub(super) fn stop(wave: &mut Wave, cause: Cause, lane: usize) -> Flow {
    wave.stop = Some(Stop::new(cause, Some(lane as u32)));
    Flow::Stop
}

/// A flat or global address: of the lane, or of the wave with an offset in each lane.
#[inline(always)]
fn flat_address(wave: &Wave, i: &Instruction, lane: usize) -> u64 {
    let register = i.operands[slot::ADDRESS].vector();
    let low = u64::from(wave.vectors[register][lane]);
    let address = match i.operands[slot::BASE].value {
        Value::Scalar(base) => wave.pair(base).wrapping_add(low),
        _ => low | u64::from(wave.vectors[register + 1][lane]) << 32,
    };
    address.wrapping_add_signed(i.modifiers.offset)
}

/// Returns the host address of the memory that an instruction reaches in a lane.
#[inline(always)]
pub(super) fn locate<const SPACE: u8>(
    wave: &mut Wave,
    i: &Instruction,
    environment: &mut Environment<'_>,
    lane: usize,
    bytes: u64,
    access: Access,
) -> Result<*mut u8, Cause> {
    match SPACE {
        space::FLAT | space::GLOBAL => {
            let address = flat_address(wave, i, lane);
            if SPACE == space::FLAT {
                match (address >> 32) as u32 {
                    SHARED_APERTURE => {
                        return shared(wave, i, environment, lane, address & 0xffff_ffff, bytes, access);
                    }
                    PRIVATE_APERTURE => return private(wave, lane, address & 0xffff_ffff, bytes),
                    _ => {}
                }
            }
            global(wave, environment, i, lane, address, bytes, access)
        }
        space::SHARED => {
            let address = u64::from(wave.vectors[i.operands[slot::ADDRESS].vector()][lane]);
            // The sum wraps: an address may be negative by as much as the offset.
            let address = u64::from((address as u32).wrapping_add(i.modifiers.offset as u32));
            shared(wave, i, environment, lane, address, bytes, access)
        }
        space::SCRATCH => {
            let lane_offset = match i.operands[slot::ADDRESS].value {
                Value::Vector(register) => wave.vectors[usize::from(register)][lane],
                _ => 0,
            };
            let base = wave.read(&i.operands[slot::BASE]);
            let offset = lane_offset.wrapping_add(base).wrapping_add(i.modifiers.offset as u32);
            private(wave, lane, u64::from(offset), bytes)
        }
        _ => {
            let Value::Scalar(buffer) = i.operands[slot::BUFFER].value else {
                return Err(Cause::Unknown("a buffer instruction without a descriptor"));
            };
            let lane_offset = match i.operands[slot::ADDRESS].value {
                Value::Vector(register) if i.modifiers.lane_offset => {
                    wave.vectors[usize::from(register)][lane]
                }
                _ => 0,
            };
            let offset = lane_offset.wrapping_add(i.modifiers.offset as u32);
            let base = wave.read(&i.operands[slot::BASE]);
            let flags = wave.scalars[usize::from(buffer.wrapping_add(3))];
            if flags & ADD_LANE != 0 {
                // Private memory is spread over the lanes: the wave's own offset counts the bytes of all of them.
                return private(wave, lane, u64::from(offset.wrapping_add(base / wave.size)), bytes);
            }
            let start = wave.pair(buffer) & 0xffff_ffff_ffff;
            let address = start.wrapping_add(u64::from(offset)).wrapping_add(u64::from(base));
            global(wave, environment, i, lane, address, bytes, access)
        }
    }
}

/// The bit of a buffer's descriptor that adds the lane's number to the address: only private memory has it.
pub(super) const ADD_LANE: u32 = 1 << 23;

#[inline(always)]
fn global(
    wave: &Wave,
    environment: &mut Environment<'_>,
    i: &Instruction,
    lane: usize,
    address: u64,
    bytes: u64,
    access: Access,
) -> Result<*mut u8, Cause> {
    let host = environment.device.host(address, bytes)?;
    aligned("global", address, bytes, access)?;
    if let Some(checks) = &mut environment.checks {
        checks.access(wave, i, lane, Checked::Global, address, bytes, access)?;
    }
    Ok(host)
}

/// Loads and stores may be anywhere, as AMD's runtime sets its GPUs up; atomics may not.
#[inline(always)]
fn aligned(space: &'static str, address: u64, bytes: u64, access: Access) -> Result<(), Cause> {
    if access == Access::Atomic && !address.is_multiple_of(bytes) {
        let why = "an atomic that is not aligned";
        return Err(Cause::BadAddress { space, address, bytes, why });
    }
    Ok(())
}

/// Where the host finds bytes of the group's memory.
#[inline(always)]
pub(super) fn shared(
    wave: &Wave,
    i: &Instruction,
    environment: &mut Environment<'_>,
    lane: usize,
    address: u64,
    bytes: u64,
    access: Access,
) -> Result<*mut u8, Cause> {
    let size = environment.shared.len() as u64;
    if address + bytes > size {
        let why = "the group has less";
        return Err(Cause::BadAddress { space: "shared", address, bytes, why });
    }
    aligned("shared", address, bytes, access)?;
    if let Some(checks) = &mut environment.checks {
        checks.access(wave, i, lane, Checked::Shared, address, bytes, access)?;
    }
    Ok(environment.shared.as_mut_ptr().wrapping_add(address as usize))
}

#[inline(always)]
fn private(wave: &mut Wave, lane: usize, offset: u64, bytes: u64) -> Result<*mut u8, Cause> {
    if offset + bytes > wave.private_bytes as u64 {
        let why = "the lane has less";
        return Err(Cause::BadAddress { space: "private", address: offset, bytes, why });
    }
    Ok(wave.private.as_mut_ptr().wrapping_add(lane * wave.private_bytes + offset as usize))
}

/// Where the lanes of a whole wave access memory one after the other in one page, the host's address of the first.
#[inline(always)]
fn contiguous<const SPACE: u8>(
    wave: &Wave,
    i: &Instruction,
    environment: &mut Environment<'_>,
    bytes: u64,
) -> Option<*mut u8> {
    if SPACE != space::GLOBAL || wave.exec() != u64::MAX || environment.checks.is_some() {
        return None;
    }
    let register = i.operands[slot::ADDRESS].vector();
    let low = &wave.vectors[register];
    let mut differs = 0;
    for (lane, address) in low.iter().enumerate() {
        differs |= address.wrapping_sub(low[0]) ^ (lane as u32 * bytes as u32);
    }
    if !matches!(i.operands[slot::BASE].value, Value::Scalar(_)) {
        let high = &wave.vectors[register + 1];
        differs |= high.iter().fold(0, |differs, half| differs | (half ^ high[0]));
    }
    // The last lane's address must not wrap.
    if differs != 0 || low[0].checked_add(64 * bytes as u32).is_none() {
        return None;
    }
    let address = flat_address(wave, i, 0);
    ((address & 0xfff) + 64 * bytes <= 0x1000).then(|| environment.device.host(address, 64 * bytes).ok())?
}

/// Loads so many words into as many registers.
fn load<const SPACE: u8, const WORDS: usize>(
    wave: &mut Wave,
    i: &Instruction,
    environment: &mut Environment<'_>,
) -> Flow {
    let to = i.operands[slot::RESULT].vector();
    let bytes = WORDS as u64 * 4;
    if let Some(host) = contiguous::<SPACE>(wave, i, environment, bytes) {
        for word in 0..WORDS {
            let register = &mut wave.vectors[to + word];
            for (lane, value) in register.iter_mut().enumerate() {
                // SAFETY: all lanes' words lie in the page that was looked up; other engines may write there as
                // on hardware.
                *value = unsafe { host.cast::<u32>().add(lane * WORDS + word).read_unaligned() };
            }
        }
        return Flow::Next;
    }
    for lane in lanes(wave.exec()) {
        match locate::<SPACE>(wave, i, environment, lane, bytes, Access::Read) {
            Ok(host) => {
                for word in 0..WORDS {
                    // SAFETY: the words of this lane were looked up.
                    wave.vectors[to + word][lane] = unsafe { host.cast::<u32>().add(word).read_unaligned() };
                }
            }
            Err(cause) => return stop(wave, cause, lane),
        }
    }
    Flow::Next
}

/// Loads one or two bytes into a register: all of it, or one of its halves.
fn load_part<const SPACE: u8, const BYTES: usize, const SIGNED: bool, const HALF: u8>(
    wave: &mut Wave,
    i: &Instruction,
    environment: &mut Environment<'_>,
) -> Flow {
    let to = i.operands[slot::RESULT].vector();
    for lane in lanes(wave.exec()) {
        let host = match locate::<SPACE>(wave, i, environment, lane, BYTES as u64, Access::Read) {
            Ok(host) => host,
            Err(cause) => return stop(wave, cause, lane),
        };
        // SAFETY: the bytes of this lane were looked up.
        let value = unsafe {
            match (BYTES, SIGNED) {
                (1, false) => u32::from(host.read()),
                (1, true) => i32::from(host.cast::<i8>().read()) as u32,
                (_, false) => u32::from(host.cast::<u16>().read_unaligned()),
                (_, true) => i32::from(host.cast::<i16>().read_unaligned()) as u32,
            }
        };
        let register = &mut wave.vectors[to][lane];
        *register = match HALF {
            WHOLE => value,
            LOWER => *register & 0xffff_0000 | value & 0xffff,
            _ => *register & 0xffff | value << 16,
        };
    }
    Flow::Next
}

const WHOLE: u8 = 0;
const LOWER: u8 = 1;
const UPPER: u8 = 2;

/// Stores so many words of as many registers.
fn store<const SPACE: u8, const WORDS: usize>(
    wave: &mut Wave,
    i: &Instruction,
    environment: &mut Environment<'_>,
) -> Flow {
    let from = i.operands[slot::DATA].vector();
    let bytes = WORDS as u64 * 4;
    if let Some(host) = contiguous::<SPACE>(wave, i, environment, bytes) {
        for word in 0..WORDS {
            for (lane, value) in wave.vectors[from + word].iter().enumerate() {
                // SAFETY: all lanes' words lie in the page that was looked up.
                unsafe { host.cast::<u32>().add(lane * WORDS + word).write_unaligned(*value) };
            }
        }
        return Flow::Next;
    }
    for lane in lanes(wave.exec()) {
        match locate::<SPACE>(wave, i, environment, lane, bytes, Access::Write) {
            Ok(host) => {
                for word in 0..WORDS {
                    let value = wave.vectors[from + word][lane];
                    // SAFETY: the words of this lane were looked up.
                    unsafe { host.cast::<u32>().add(word).write_unaligned(value) };
                }
            }
            Err(cause) => return stop(wave, cause, lane),
        }
    }
    Flow::Next
}

/// Stores one or two bytes of a half of a register.
fn store_part<const SPACE: u8, const BYTES: usize, const HALF: u8>(
    wave: &mut Wave,
    i: &Instruction,
    environment: &mut Environment<'_>,
) -> Flow {
    let from = i.operands[slot::DATA].vector();
    for lane in lanes(wave.exec()) {
        let host = match locate::<SPACE>(wave, i, environment, lane, BYTES as u64, Access::Write) {
            Ok(host) => host,
            Err(cause) => return stop(wave, cause, lane),
        };
        let value = wave.vectors[from][lane] >> if HALF == UPPER { 16 } else { 0 };
        // SAFETY: the bytes of this lane were looked up.
        unsafe {
            match BYTES {
                1 => host.write(value as u8),
                _ => host.cast::<u16>().write_unaligned(value as u16),
            }
        }
    }
    Flow::Next
}

/// Describes a load or store: how many registers it moves, and how.
pub(super) struct Move {
    pub(super) op: Op,
    pub(super) words: u8,
    pub(super) bytes: u32,
    pub(super) loads: bool,
    /// Half of the register stays as it is.
    pub(super) keeps: bool,
}

/// The load or store of that name, without the name of its space.
pub(super) fn find<const SPACE: u8>(name: &str) -> Option<Move> {
    let whole = |op, words: u8, loads| Move { op, words, bytes: u32::from(words) * 4, loads, keeps: false };
    let part = |op, bytes, loads, keeps| Move { op, words: 1, bytes, loads, keeps };
    Some(match name {
        "load_dword" | "read_b32" => whole(load::<SPACE, 1>, 1, true),
        "load_dwordx2" | "read_b64" => whole(load::<SPACE, 2>, 2, true),
        "load_dwordx3" | "read_b96" => whole(load::<SPACE, 3>, 3, true),
        "load_dwordx4" | "read_b128" => whole(load::<SPACE, 4>, 4, true),
        "load_ubyte" | "read_u8" => part(load_part::<SPACE, 1, false, WHOLE>, 1, true, false),
        "load_sbyte" | "read_i8" => part(load_part::<SPACE, 1, true, WHOLE>, 1, true, false),
        "load_ushort" | "read_u16" => part(load_part::<SPACE, 2, false, WHOLE>, 2, true, false),
        "load_sshort" | "read_i16" => part(load_part::<SPACE, 2, true, WHOLE>, 2, true, false),
        "load_short_d16" | "read_u16_d16" => part(load_part::<SPACE, 2, false, LOWER>, 2, true, true),
        "load_short_d16_hi" | "read_u16_d16_hi" => part(load_part::<SPACE, 2, false, UPPER>, 2, true, true),
        "load_ubyte_d16" | "read_u8_d16" => part(load_part::<SPACE, 1, false, LOWER>, 1, true, true),
        "load_ubyte_d16_hi" | "read_u8_d16_hi" => part(load_part::<SPACE, 1, false, UPPER>, 1, true, true),
        "load_sbyte_d16" | "read_i8_d16" => part(load_part::<SPACE, 1, true, LOWER>, 1, true, true),
        "load_sbyte_d16_hi" | "read_i8_d16_hi" => part(load_part::<SPACE, 1, true, UPPER>, 1, true, true),
        "store_dword" | "write_b32" => whole(store::<SPACE, 1>, 1, false),
        "store_dwordx2" | "write_b64" => whole(store::<SPACE, 2>, 2, false),
        "store_dwordx3" | "write_b96" => whole(store::<SPACE, 3>, 3, false),
        "store_dwordx4" | "write_b128" => whole(store::<SPACE, 4>, 4, false),
        "store_byte" | "write_b8" => part(store_part::<SPACE, 1, LOWER>, 1, false, false),
        "store_short" | "write_b16" => part(store_part::<SPACE, 2, LOWER>, 2, false, false),
        "store_byte_d16_hi" | "write_b8_d16_hi" => part(store_part::<SPACE, 1, UPPER>, 1, false, false),
        "store_short_d16_hi" | "write_b16_d16_hi" => part(store_part::<SPACE, 2, UPPER>, 2, false, false),
        _ => return None,
    })
}
