//! Edge values of each number, and what Rust makes of them.

use half::{bf16, f16};

/// All pairs of these values.
pub(crate) fn pairs<T: Copy>(edges: &[T]) -> Vec<(T, T)> {
    edges.iter().flat_map(|a| edges.iter().map(move |b| (*a, *b))).collect()
}

/// A type of integers.
pub(crate) trait Integer: gpumem::Element + PartialEq + std::fmt::Debug {
    /// Numbers at which operators do something else than beside them.
    fn edges() -> Vec<Self>;

    /// The rows that the kernels of [`overflowing`](super) write, with arithmetic that wraps.
    fn wrapped(x: Self, y: Self) -> [Self; 8];

    /// The low bits of the number, by which 1 is shifted.
    fn count(self) -> u32;
}

macro_rules! integers {
    ($($type:ident)*) => {$(
        impl Integer for $type {
            fn edges() -> Vec<Self> {
                let (least, most) = ($type::MIN, $type::MAX);
                let near = [least, least + 1, least.wrapping_sub(1) / 2, 0, 1, 2, 3, 7, 100, most / 3, most - 1, most];
                near.into_iter().chain([0 as $type, 1].map(|n| n.wrapping_sub(2))).collect()
            }

            fn wrapped(x: Self, y: Self) -> [Self; 8] {
                let left = $type::MAX.wrapping_sub(x).wrapping_add(1);
                [
                    x.wrapping_add(y),
                    x.wrapping_sub(y),
                    x.wrapping_mul(y),
                    x.wrapping_shl(y as u32),
                    x.wrapping_shr(y as u32),
                    left.wrapping_sub(y.wrapping_sub(x).wrapping_mul(3)),
                    x.wrapping_add(y).wrapping_mul(y).wrapping_sub(100).wrapping_shl(y as u32),
                    $type::MAX.wrapping_add(y),
                ]
            }

            fn count(self) -> u32 {
                self as u32
            }
        }
    )*};
}
integers! { i8 u8 i16 u16 i32 u32 i64 u64 }

/// A type of floats. Each NaN has the same key, whatever its bits are, and each other number its bits.
pub(crate) trait Float: gpumem::Element + std::fmt::Debug {
    fn edges() -> Vec<Self>;

    fn key(self) -> Option<u64>;
}

macro_rules! floats {
    ($($type:ident: $from:expr, $more:expr;)*) => {$(
        impl Float for $type {
            fn edges() -> Vec<Self> {
                let plain = [0.0f32, -0.0, 0.5, -0.5, 1.0, -1.5, 2.5, 3.7, 1e-30, 1e10, -1e30, 0.1, 123.456];
                plain.map($from).into_iter().chain($more).collect()
            }

            fn key(self) -> Option<u64> {
                (!self.is_nan()).then(|| self.to_bits().into())
            }
        }
    )*};
}
floats! {
    f32: |x| x, [f32::MAX, f32::MIN_POSITIVE, f32::EPSILON, f32::MIN_POSITIVE / 8.0, f32::INFINITY, f32::NEG_INFINITY, f32::NAN];
    f64: f64::from, [f64::MAX, f64::MIN_POSITIVE, f64::EPSILON, f64::MIN_POSITIVE / 8.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN];
    f16: f16::from_f32, [f16::MAX, f16::MIN, f16::MIN_POSITIVE, f16::MIN_POSITIVE_SUBNORMAL, f16::MAX_SUBNORMAL, f16::EPSILON, f16::NAN];
    bf16: bf16::from_f32, [bf16::MAX, bf16::MIN, bf16::MIN_POSITIVE, bf16::MIN_POSITIVE_SUBNORMAL, bf16::MAX_SUBNORMAL, bf16::EPSILON, bf16::NAN];
}

/// Floats at and beside the ends of all types of integers.
pub(crate) fn around_integers() -> Vec<f64> {
    let ends = [0.5, 1.0, 127.0, 128.0, 255.0, 256.0, 32767.0, 32768.0, 65535.0, 65536.0];
    let wide = [31, 32, 53, 63, 64].map(|power| 2f64.powi(power));
    let all =
        ends.into_iter().chain(wide).flat_map(|x| [x, -x]).chain([0.0, -0.0, 16_777_217.0, 1e300, 1e39]);
    let beside = |x: f64| {
        let single = x as f32;
        [x, x.next_up(), x.next_down(), single.next_up().into(), single.next_down().into(), x + 0.5, x - 1.0]
    };
    all.flat_map(beside).chain(f64::edges()).chain(f32::edges().into_iter().map(f64::from)).collect()
}
