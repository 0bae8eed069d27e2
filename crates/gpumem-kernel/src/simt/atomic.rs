//! Elements that can be changed atomically in global memory.

use crate::simt::Number;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

mod sealed {
    pub trait SealedAtomic {}
}

/// A number of four or eight bytes, which every GPU can change atomically.
pub trait Atomic: Number + sealed::SealedAtomic {
    /// Replaces the value at `address` by `change` of it and gives the old one, relaxed.
    ///
    /// # Safety
    /// The address is valid for reads and writes and aligned to the size of the number; other code that uses it at the
    /// same time does so atomically.
    #[doc(hidden)]
    unsafe fn update(address: *mut Self, change: impl Fn(Self) -> Self) -> Self;
}

macro_rules! atomic {
    ($($type:ty, $bits:ty, $atomic:ty, $from:expr, $to:expr;)*) => {$(
        impl sealed::SealedAtomic for $type {}
        impl Atomic for $type {
            unsafe fn update(address: *mut Self, change: impl Fn(Self) -> Self) -> Self {
                // SAFETY: the caller's promise.
                let cell = unsafe { <$atomic>::from_ptr(address.cast::<$bits>()) };
                let next = |bits: $bits| Some($to(change($from(bits))));
                let (Ok(old) | Err(old)) = cell.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
                $from(old)
            }
        }
    )*};
}
atomic! {
    u32, u32, AtomicU32, |bits: u32| bits, |value: u32| value;
    i32, u32, AtomicU32, |bits: u32| bits as i32, |value: i32| value as u32;
    f32, u32, AtomicU32, f32::from_bits, f32::to_bits;
    u64, u64, AtomicU64, |bits: u64| bits, |value: u64| value;
    i64, u64, AtomicU64, |bits: u64| bits as i64, |value: i64| value as u64;
    f64, u64, AtomicU64, f64::from_bits, f64::to_bits;
}
