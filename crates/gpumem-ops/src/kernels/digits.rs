//! The digits of four bits by which arrays are sorted: those of a number from bit `shift` on, as the first of `by` says it, in a key
//! whose order is that of the numbers.
#![allow(
    unreachable_pub,
    missing_debug_implementations,
    reason = "types of a public trait, which no other crate can name"
)]

use gpumem_macros::device;
use half::{bf16, f16};

/// The digit of the number of the line in which a place lies.
#[device(crate = crate)]
pub fn digit_of_line(place: u64, by: (u32, u64, u64)) -> u32 {
    let (shift, length, inner) = by;
    let line = place / (length * inner) * inner + place % inner;
    ((line >> shift) & 15) as u32
}

macro_rules! digits {
    (unsigned $($name:ident: $number:ident;)*) => {$(
        #[device(crate = crate)]
        pub fn $name(x: $number, by: (u32, u64, u64)) -> u32 {
            let (shift, _, _) = by;
            ((x >> shift) & 15) as u32
        }
    )*};
    // The sign is turned over.
    (signed $($name:ident: $number:ident, $bits:ident, $sign:literal;)*) => {$(
        #[device(crate = crate)]
        pub fn $name(x: $number, by: (u32, u64, u64)) -> u32 {
            let (shift, _, _) = by;
            (((x as $bits ^ $sign) >> shift) & 15) as u32
        }
    )*};
    // Of negative numbers all bits are turned over, of others the sign. Each NaN is the largest key.
    (float $($name:ident: $number:ident, $bits:ident, $sign:literal;)*) => {$(
        #[allow(clippy::eq_op)] // a NaN differs from itself
        #[device(crate = crate)]
        pub fn $name(x: $number, by: (u32, u64, u64)) -> u32 {
            let (shift, _, _) = by;
            let bits = x.to_bits();
            let mut key = if bits >= $sign { !bits } else { bits | $sign };
            if x != x {
                key = $bits::MAX;
            }
            ((key >> shift) & 15) as u32
        }
    )*};
}
digits! { unsigned digit_u8: u8; digit_u16: u16; digit_u32: u32; digit_u64: u64; }
digits! { signed
    digit_i8: i8, u8, 0x80;
    digit_i16: i16, u16, 0x8000;
    digit_i32: i32, u32, 0x8000_0000;
    digit_i64: i64, u64, 0x8000_0000_0000_0000;
}
digits! { float
    digit_f16: f16, u16, 0x8000;
    digit_bf16: bf16, u16, 0x8000;
    digit_f32: f32, u32, 0x8000_0000;
    digit_f64: f64, u64, 0x8000_0000_0000_0000;
}
