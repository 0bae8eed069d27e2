//! Atomic operations on memory, and other operations that only a group's memory has.

use super::{
    check::Access,
    environment::Environment,
    instruction::{Flow, Instruction, Op},
    memory::{lanes, locate, shared, slot, space, stop},
    stop::Cause,
    wave::Wave,
};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// The bits of a number, of which atomics know two widths.
trait Word: Copy + PartialEq {
    const WORDS: usize;
    fn get(wave: &Wave, register: usize, lane: usize) -> Self;
    fn set(self, wave: &mut Wave, register: usize, lane: usize);
    /// # Safety
    /// The pointer leads to a word of this type, on a boundary of its size.
    unsafe fn update(at: *mut u8, change: impl Fn(Self) -> Self) -> Self;
}

macro_rules! word {
    ($word:ty, $atomic:ty, $words:literal, $get:expr, $set:expr) => {
        impl Word for $word {
            const WORDS: usize = $words;
            fn get(wave: &Wave, register: usize, lane: usize) -> Self {
                $get(wave, register, lane)
            }
            fn set(self, wave: &mut Wave, register: usize, lane: usize) {
                $set(self, wave, register, lane)
            }
            unsafe fn update(at: *mut u8, change: impl Fn(Self) -> Self) -> Self {
                // SAFETY: the caller's promise; other users of the word access it as memory that changes.
                let word = unsafe { <$atomic>::from_ptr(at.cast()) };
                let order = Ordering::SeqCst;
                word.fetch_update(order, order, |old| Some(change(old))).unwrap_or_else(|old| old)
            }
        }
    };
}

word!(
    u32,
    AtomicU32,
    1,
    |wave: &Wave, register: usize, lane: usize| wave.vectors[register][lane],
    |value: u32, wave: &mut Wave, register: usize, lane: usize| wave.vectors[register][lane] = value
);
word!(
    u64,
    AtomicU64,
    2,
    |wave: &Wave, register: usize, lane: usize| {
        u64::from(wave.vectors[register][lane]) | u64::from(wave.vectors[register + 1][lane]) << 32
    },
    |value: u64, wave: &mut Wave, register: usize, lane: usize| {
        wave.vectors[register][lane] = value as u32;
        wave.vectors[register + 1][lane] = (value >> 32) as u32;
    }
);

/// Changes a word of memory in each lane, and gives the old one back where that is asked for. `change` gets the old
/// word and the two operands.
fn update<T: Word, const SPACE: u8>(
    wave: &mut Wave,
    i: &Instruction,
    environment: &mut Environment<'_>,
    change: impl Fn(T, T, T) -> T,
) -> Flow {
    let bytes = T::WORDS as u64 * 4;
    let data = i.operands[slot::DATA].vector();
    // Memory of the GPU takes both in one row of registers, that of the group in two.
    let second = if SPACE == space::SHARED { i.operands[slot::SECOND].vector() } else { data + T::WORDS };
    let compares = i.extra != 0;
    for lane in lanes(wave.exec()) {
        let host = match locate::<SPACE>(wave, i, environment, lane, bytes, Access::Atomic) {
            Ok(host) if (host as u64).is_multiple_of(bytes) => host,
            Ok(_) => {
                let why = "an atomic that is not aligned";
                let cause = Cause::BadAddress { space: "private", address: 0, bytes, why };
                return stop(wave, cause, lane);
            }
            Err(cause) => return stop(wave, cause, lane),
        };
        let first = T::get(wave, data, lane);
        let other = if compares { T::get(wave, second, lane) } else { first };
        // SAFETY: the word was looked up and lies on a boundary of its size.
        let old = unsafe { T::update(host, |old| change(old, first, other)) };
        if i.modifiers.returns {
            old.set(wave, i.operands[slot::RESULT].vector(), lane);
        }
    }
    Flow::Next
}

fn smaller(x: f64, y: f64) -> bool {
    x < y || x == y && x.is_sign_negative()
}

/// An atomic: how wide its words are, and whether it takes two.
pub(super) struct Atomic {
    pub(super) op: Op,
    pub(super) words: u8,
    pub(super) compares: bool,
}

macro_rules! atomic {
    ($space:ident, $word:ty, $change:expr) => {
        Atomic {
            op: |wave, i, environment| update::<$word, $space>(wave, i, environment, $change),
            words: <$word as Word>::WORDS as u8,
            compares: false,
        }
    };
}

macro_rules! integers {
    ($space:ident, $name:expr, $word:ty, $signed:ty) => {
        match $name {
            "swap" => atomic!($space, $word, |_, x, _| x),
            "add" => atomic!($space, $word, |old: $word, x, _| old.wrapping_add(x)),
            "sub" => atomic!($space, $word, |old: $word, x, _| old.wrapping_sub(x)),
            "rsub" => atomic!($space, $word, |old: $word, x: $word, _| x.wrapping_sub(old)),
            "smin" => atomic!($space, $word, |old, x, _| (old as $signed).min(x as $signed) as $word),
            "umin" => atomic!($space, $word, |old: $word, x, _| old.min(x)),
            "smax" => atomic!($space, $word, |old, x, _| (old as $signed).max(x as $signed) as $word),
            "umax" => atomic!($space, $word, |old: $word, x, _| old.max(x)),
            "and" => atomic!($space, $word, |old, x, _| old & x),
            "or" => atomic!($space, $word, |old, x, _| old | x),
            "xor" => atomic!($space, $word, |old, x, _| old ^ x),
            "inc" => atomic!($space, $word, |old, x, _| if old >= x { 0 } else { old + 1 }),
            "dec" => atomic!($space, $word, |old, x, _| if old == 0 || old > x { x } else { old - 1 }),
            // New value, then the one to compare with; the other way round in the memory of a group before gfx11.
            "cmpswap" => Atomic {
                compares: true,
                ..atomic!($space, $word, |old, new, compare| if old == compare { new } else { old })
            },
            "cmpst" => Atomic {
                compares: true,
                ..atomic!($space, $word, |old, compare, new| if old == compare { new } else { old })
            },
            _ => return None,
        }
    };
}

/// The atomic of that name, by the names of instructions that reach memory of the GPU.
pub(super) fn find<const SPACE: u8>(name: &str) -> Option<Atomic> {
    Some(match name {
        "add_f32" => atomic!(SPACE, u32, |old, x, _| (f32::from_bits(old) + f32::from_bits(x)).to_bits()),
        "add_f64" => atomic!(SPACE, u64, |old, x, _| (f64::from_bits(old) + f64::from_bits(x)).to_bits()),
        "min_f64" => atomic!(SPACE, u64, |old, x, _| {
            if smaller(f64::from_bits(x), f64::from_bits(old)) { x } else { old }
        }),
        "max_f64" => atomic!(SPACE, u64, |old, x, _| {
            if smaller(f64::from_bits(old), f64::from_bits(x)) { x } else { old }
        }),
        "min_f32" => atomic!(SPACE, u32, |old, x, _| {
            if smaller(f32::from_bits(x).into(), f32::from_bits(old).into()) { x } else { old }
        }),
        "max_f32" => atomic!(SPACE, u32, |old, x, _| {
            if smaller(f32::from_bits(old).into(), f32::from_bits(x).into()) { x } else { old }
        }),
        _ => match name.strip_suffix("_x2") {
            Some(name) => integers!(SPACE, name, u64, i64),
            None => integers!(SPACE, name, u32, i32),
        },
    })
}

/// The atomic on a group's memory of that name, and whether it gives the old value back.
pub(super) fn find_shared(name: &str) -> Option<(Atomic, bool)> {
    let (name, returns) = match name.split_once("_rtn_") {
        Some((name, kind)) => (format!("{name}_{kind}"), true),
        None => (name.to_owned(), false),
    };
    let (operation, kind) = name.rsplit_once('_')?;
    let (letter, bits) = kind.split_at_checked(1)?;
    let operation = match (operation, letter) {
        ("min" | "max", "i") => format!("s{operation}"),
        ("min" | "max", "u") => format!("u{operation}"),
        ("cmpstore", "b") => "cmpswap".to_owned(),
        ("wrxchg", "b") => "swap".to_owned(),
        ("add" | "min" | "max", "f") => format!("{operation}_{kind}"),
        (_, "f") => return None,
        _ => operation.to_owned(),
    };
    let wide = if bits == "64" && letter != "f" { "_x2" } else { "" };
    Some((find::<{ space::SHARED }>(&format!("{operation}{wide}"))?, returns))
}

/// Reads or writes two words, or two pairs of them, `STEP` bytes times each offset from the address.
fn two<const WORDS: usize, const STEP: u32, const WRITES: bool>(
    wave: &mut Wave,
    i: &Instruction,
    environment: &mut Environment<'_>,
) -> Flow {
    let registers = if WRITES {
        [i.operands[slot::DATA].vector(), i.operands[slot::SECOND].vector()]
    } else {
        let first = i.operands[slot::RESULT].vector();
        [first, first + WORDS]
    };
    let access = if WRITES { Access::Write } else { Access::Read };
    for lane in lanes(wave.exec()) {
        // Both addresses are taken before a result is written, which may be in the register of the address.
        let start = wave.vectors[i.operands[slot::ADDRESS].vector()][lane];
        let mut hosts = [std::ptr::null_mut(); 2];
        for (host, offset) in hosts.iter_mut().zip(i.modifiers.offsets) {
            let address = u64::from(start.wrapping_add(offset * STEP));
            match shared(wave, i, environment, lane, address, WORDS as u64 * 4, access) {
                Ok(found) => *host = found,
                Err(cause) => return stop(wave, cause, lane),
            }
        }
        for (host, register) in hosts.into_iter().zip(registers) {
            for word in 0..WORDS {
                // SAFETY: the words of this lane were looked up.
                unsafe {
                    let at = host.cast::<u32>().add(word);
                    if WRITES {
                        at.write_unaligned(wave.vectors[register + word][lane]);
                    } else {
                        wave.vectors[register + word][lane] = at.read_unaligned();
                    }
                }
            }
        }
    }
    Flow::Next
}

/// Describes an instruction that reads or writes in two places: its words, and whether it reads.
pub(super) struct Two {
    pub(super) op: Op,
    pub(super) words: u8,
    pub(super) loads: bool,
}

/// The instruction of that name.
pub(super) fn find_two(name: &str) -> Option<Two> {
    let of = |op, words, loads| Two { op, words, loads };
    Some(match name {
        "read2_b32" => of(two::<1, 4, false>, 1, true),
        "read2_b64" => of(two::<2, 8, false>, 2, true),
        "read2st64_b32" => of(two::<1, 256, false>, 1, true),
        "read2st64_b64" => of(two::<2, 512, false>, 2, true),
        "write2_b32" => of(two::<1, 4, true>, 1, false),
        "write2_b64" => of(two::<2, 8, true>, 2, false),
        "write2st64_b32" => of(two::<1, 256, true>, 1, false),
        "write2st64_b64" => of(two::<2, 512, true>, 2, false),
        _ => return None,
    })
}
