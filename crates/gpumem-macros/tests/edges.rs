//! Every operator, comparison and cast on every type of numbers at edge values: each device gives the bits that Rust gives.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // helpers of tests

mod gpus;
#[allow(dead_code)] // others are tests of their own
mod operators;

use gpumem::{
    Backend, Element,
    generic::{Device, DeviceArray, Stream},
    host::Host,
    kernel::{Atomic, KernelDef, Numeric, Slice, SliceMut, ViewMut, config_for_items},
};
use gpus::{Check, on_each_gpu};
use half::{bf16, f16};
use ndarray::{Array1, Array2, Ix1};
use operators::{
    BITS, Half, ROWS, casts,
    edges::{Float, Integer, around_integers, pairs},
};
use std::fmt::Debug;

/// A kernel with a result of several rows.
type Unary<T, U> = KernelDef<(Slice<T>, ViewMut<U, 2>)>;
type Binary<T, U> = KernelDef<(Slice<T>, Slice<T>, ViewMut<T, 2>, ViewMut<U, 2>)>;
/// A kernel that compares pairs.
type Comparison<T> = KernelDef<(Slice<T>, Slice<T>, SliceMut<u32>)>;

/// Work-items of a group.
const GROUP: u32 = 64;

/// Checks the host, and each GPU.
fn everywhere(test: &str, check: &impl Check) {
    check.check(&host());
    on_each_gpu(test, check);
}

fn host() -> Device<Host> {
    Device::open("host").unwrap()
}

fn binary<B: Backend, T: Element, U: Element>(
    device: &Device<B>,
    kernel: &Binary<T, U>,
    pairs: &[(T, T)],
    rows: [usize; 2],
) -> (Array2<T>, Array2<U>) {
    let stream = device.stream().unwrap();
    let (a, b): (Vec<T>, Vec<T>) = pairs.iter().copied().unzip();
    let (x, y) = (stream.to_device(&a).unwrap(), stream.to_device(&b).unwrap());
    let mut out = stream.to_device(&Array2::from_elem((rows[0], a.len()), T::zeroed())).unwrap();
    let mut more = stream.to_device(&Array2::from_elem((rows[1], a.len()), U::zeroed())).unwrap();
    let dims = config_for_items([a.len(), 1, 1], [GROUP, 1, 1]);
    kernel.load(device).unwrap().launch(&stream, &dims, (&x, &y, &mut out, &mut more)).unwrap();
    let out = stream.copy_to_host(&out).unwrap().view().unwrap().to_owned();
    (out, stream.copy_to_host(&more).unwrap().view().unwrap().to_owned())
}

/// Rows of 64 bits for each element.
fn unary<B: Backend, T: Element>(device: &Device<B>, kernel: &Unary<T, u64>, values: &[T]) -> Array2<u64> {
    let stream = device.stream().unwrap();
    let x = stream.to_device(values).unwrap();
    let mut out = stream.to_device(&Array2::<u64>::zeros((casts::TARGETS, values.len()))).unwrap();
    let dims = config_for_items([values.len(), 1, 1], [GROUP, 1, 1]);
    kernel.load(device).unwrap().launch(&stream, &dims, (&x, &mut out)).unwrap();
    stream.copy_to_host(&out).unwrap().view().unwrap().to_owned()
}

#[track_caller]
fn same<T: Copy + Debug, K: PartialEq + Debug>(
    found: &Array2<T>,
    expected: &Array2<T>,
    key: impl Fn(T) -> K,
    of: &[impl Debug],
) {
    for ((row, column), value) in found.indexed_iter() {
        let expected = expected[[row, column]];
        assert_eq!(
            key(*value),
            key(expected),
            "row {row} of {:?}: {value:?}, in Rust {expected:?}",
            of[column]
        );
    }
}

/// The operators of integers: those that a debug build of the host checks for overflow, and the others.
struct Integers<T> {
    plain: Binary<T, u32>,
    overflowing: Binary<T, u32>,
}

impl<T: Integer> Check for Integers<T> {
    fn check<B: Backend>(&self, device: &Device<B>) {
        let pairs = pairs(&T::edges());
        let (found, bits) = binary(device, &self.plain, &pairs, [ROWS, BITS]);
        let (expected, expected_bits) = binary(&host(), &self.plain, &pairs, [ROWS, BITS]);
        same(&found, &expected, |n| n, &pairs);
        same(&bits, &expected_bits, |n| n, &pairs);
        if cfg!(debug_assertions) && B::NAME == "host" {
            return;
        }
        let (found, bits) = binary(device, &self.overflowing, &pairs, [8, 1]);
        for (column, (x, y)) in pairs.iter().copied().enumerate() {
            assert_eq!(found.column(column).to_vec(), T::wrapped(x, y), "{x:?} and {y:?}");
            assert_eq!(bits[[0, column]], 1u32.wrapping_shl(y.count()), "{y:?}");
        }
    }
}

macro_rules! integers {
    ($($test:ident $overflowing:ident;)*) => {$(
        #[test]
        fn $test() {
            let (plain, overflowing) = (operators::$test(), operators::$overflowing());
            everywhere(stringify!($test), &Integers { plain, overflowing });
        }
    )*};
}
integers! {
    integers_i8 overflowing_i8;
    integers_u8 overflowing_u8;
    integers_i16 overflowing_i16;
    integers_u16 overflowing_u16;
    integers_i32 overflowing_i32;
    integers_u32 overflowing_u32;
    integers_i64 overflowing_i64;
    integers_u64 overflowing_u64;
}

/// The methods of signed integers.
struct Signed<T>(Binary<T, u32>);

impl<T: Integer> Check for Signed<T> {
    fn check<B: Backend>(&self, device: &Device<B>) {
        let pairs = pairs(&T::edges());
        let (found, bits) = binary(device, &self.0, &pairs, [ROWS, BITS]);
        let (expected, expected_bits) = binary(&host(), &self.0, &pairs, [ROWS, BITS]);
        same(&found, &expected, |n| n, &pairs);
        same(&bits, &expected_bits, |n| n, &pairs);
    }
}

macro_rules! signed {
    ($($test:ident)*) => {$(
        #[test]
        fn $test() {
            everywhere(stringify!($test), &Signed(operators::$test()));
        }
    )*};
}
signed! { signed_i8 signed_i16 signed_i32 signed_i64 }

/// The operators of floats, and the functions that are exact. On the host they are Rust's own.
struct Floats<T>(Binary<T, T>);

impl<T: Float> Check for Floats<T> {
    fn check<B: Backend>(&self, device: &Device<B>) {
        let pairs = pairs(&T::edges());
        let (found, _) = binary(device, &self.0, &pairs, [ROWS, 5]);
        let (expected, _) = binary(&host(), &self.0, &pairs, [ROWS, 5]);
        same(&found, &expected, Float::key, &pairs);
    }
}

/// Adds `y` to `x` where it lies.
#[gpumem::kernel(unsafe)]
fn added<T: Numeric + Atomic>(x: SliceMut<T>, y: Slice<T>) {
    let i = global_id(0);
    if i < x.len() {
        x.atomic_add(i, y[i]);
    }
}

struct Sums;

impl Check for Sums {
    fn check<B: Backend>(&self, device: &Device<B>) {
        self.of::<f32, B>(device);
        self.of::<f64, B>(device);
    }
}

impl Sums {
    fn of<T, B: Backend>(&self, device: &Device<B>)
    where
        T: Float + Numeric + Atomic,
    {
        let stream = device.stream().unwrap();
        let pairs = pairs(&T::edges());
        let (x, y): (Vec<T>, Vec<T>) = pairs.iter().copied().unzip();
        let (mut sums, by) = (stream.to_device(&x).unwrap(), stream.to_device(&y).unwrap());
        let dims = config_for_items(x.len(), GROUP);
        added::<T>().load(device).unwrap().launch(&stream, &dims, (&mut sums, &by)).unwrap();
        for (found, (x, y)) in sums.copy_to_host().unwrap().iter().zip(&pairs) {
            assert_eq!(found.key(), (*x + *y).key(), "{x:?} and {y:?}");
        }
    }
}

#[test]
fn atomic_sums_are_those_of_floats() {
    everywhere("atomic_sums_are_those_of_floats", &Sums);
}

#[test]
fn floats_f32() {
    everywhere("floats_f32", &Floats(operators::floats_f32()));
}

#[test]
fn floats_f64() {
    everywhere("floats_f64", &Floats(operators::floats_f64()));
}

/// The operators of half precision, and all its numbers to single precision and back.
struct Halves<T>(fn(u16) -> T);

impl<T: Half + Float + Debug> Check for Halves<T> {
    fn check<B: Backend>(&self, device: &Device<B>) {
        let mut pairs = pairs(&T::edges());
        let whole = pairs.len().next_multiple_of(GROUP as usize);
        pairs.resize(whole, pairs[0]);
        let (expected, _) = halves(&host(), &pairs);
        same(&halves(device, &pairs).0, &expected, Float::key, &pairs);

        let all: Vec<T> = (0..=u16::MAX).map(self.0).collect();
        let stream = device.stream().unwrap();
        let x = stream.to_device(&all).unwrap();
        let mut wide = stream.to_device(&vec![0f32; all.len()]).unwrap();
        let mut back = stream.to_device(&vec![T::zeroed(); all.len()]).unwrap();
        let dims = config_for_items([all.len(), 1, 1], [GROUP, 1, 1]);
        casts::widened().load(device).unwrap().launch(&stream, &dims, (&x, &mut wide, &mut back)).unwrap();
        let (wide, back) = (vector(&stream, &wide), vector(&stream, &back));
        for ((x, wide), back) in all.iter().zip(wide).zip(back) {
            assert_eq!(wide.key(), x.to_f32().key(), "{x:?}");
            assert_eq!(back.key(), x.key(), "{x:?}");
        }

        // Halfway between two numbers, and beside it, for every exponent and sign.
        let ends = [0, 1, 0xfff, 0x1000, 0x1001, 0x7fff, 0x8000, 0x8001, 0xffff];
        let singles: Vec<f32> = (0..=u16::MAX)
            .step_by(7)
            .flat_map(|upper| ends.map(|lower| f32::from_bits(u32::from(upper) << 16 | lower)))
            .collect();
        let x = stream.to_device(&singles).unwrap();
        let mut out = stream.to_device(&vec![T::zeroed(); singles.len()]).unwrap();
        let dims = config_for_items([singles.len(), 1, 1], [GROUP, 1, 1]);
        casts::rounded().load(device).unwrap().launch(&stream, &dims, (&x, &mut out)).unwrap();
        for (x, found) in singles.iter().zip(vector(&stream, &out)) {
            assert_eq!(found.key(), T::from_f32(*x).key(), "{x:?}");
        }
    }
}

fn vector<T: Element, B: Backend>(stream: &Stream<B>, array: &DeviceArray<T, Ix1, B>) -> Vec<T> {
    stream.copy_to_host(array).unwrap().view().unwrap().to_vec()
}

fn halves<B: Backend, T: Half>(device: &Device<B>, pairs: &[(T, T)]) -> (Array2<T>, Array1<f32>) {
    let stream = device.stream().unwrap();
    let (a, b): (Vec<T>, Vec<T>) = pairs.iter().copied().unzip();
    let (x, y) = (stream.to_device(&a).unwrap(), stream.to_device(&b).unwrap());
    let mut out = stream.to_device(&Array2::from_elem((9, a.len()), T::zeroed())).unwrap();
    let mut wide = stream.to_device(&Array1::<f32>::zeros(a.len())).unwrap();
    let dims = config_for_items([a.len(), 1, 1], [GROUP, 1, 1]);
    operators::halves().load(device).unwrap().launch(&stream, &dims, (&x, &y, &mut out, &mut wide)).unwrap();
    let out = stream.copy_to_host(&out).unwrap().view().unwrap().to_owned();
    (out, stream.copy_to_host(&wide).unwrap().view().unwrap().to_owned())
}

#[test]
fn halves_f16() {
    everywhere("halves_f16", &Halves(f16::from_bits));
}

#[test]
fn halves_bf16() {
    everywhere("halves_bf16", &Halves(bf16::from_bits));
}

/// Casts of these values to all types.
struct Casts<T> {
    kernel: Unary<T, u64>,
    values: Vec<T>,
    expected: fn(T) -> [u64; casts::TARGETS],
}

impl<T: Element + Debug> Check for Casts<T> {
    fn check<B: Backend>(&self, device: &Device<B>) {
        let found = unary(device, &self.kernel, &self.values);
        for (column, value) in self.values.iter().enumerate() {
            let expected = (self.expected)(*value);
            for (row, expected) in expected.into_iter().enumerate() {
                let found = found[[row, column]];
                let both_nan = match row {
                    10 => f32::from_bits(found as u32).is_nan() && f32::from_bits(expected as u32).is_nan(),
                    11 => f64::from_bits(found).is_nan() && f64::from_bits(expected).is_nan(),
                    _ => false,
                };
                assert!(
                    found == expected || both_nan,
                    "row {row} of {value:?}: {found:#x}, in Rust {expected:#x}"
                );
            }
        }
    }
}

macro_rules! casts {
    ($($test:ident $expected:ident $values:expr;)*) => {$(
        #[test]
        fn $test() {
            let (kernel, expected) = (casts::$test(), casts::$expected);
            everywhere(stringify!($test), &Casts { kernel, expected, values: $values });
        }
    )*};
}
casts! {
    casts_i8 from_i8 (i8::MIN..=i8::MAX).collect();
    casts_u8 from_u8 (u8::MIN..=u8::MAX).collect();
    casts_i16 from_i16 (i16::MIN..=i16::MAX).collect();
    casts_u16 from_u16 (u16::MIN..=u16::MAX).collect();
    casts_i32 from_i32 whole().into_iter().map(|n| n as i32).collect();
    casts_u32 from_u32 whole().into_iter().map(|n| n as u32).collect();
    casts_i64 from_i64 whole();
    casts_u64 from_u64 whole().into_iter().map(|n| n as u64).collect();
    casts_isize from_isize whole();
    casts_usize from_usize whole().into_iter().map(|n| n as u64).collect();
    casts_f32 from_f32 around_integers().into_iter().map(|x| x as f32).collect();
    casts_f64 from_f64 around_integers();
    casts_bool from_bool vec![-1, 0, 1, 2];
}

/// Integers beside every power of two, and where floats round.
fn whole() -> Vec<i64> {
    let powers = (0..64).map(|power| 1i64.wrapping_shl(power));
    let odd =
        [0i64, 16_777_217, 33_554_435, (1 << 53) + 1, (1 << 54) + 3, 0x7fff_ff80, 0x7fff_ffff_ffff_fc00];
    powers
        .chain(odd)
        .flat_map(|n| [-1, 0, 1].map(|by| n.wrapping_add(by)))
        .flat_map(|n| [n, n.wrapping_neg()])
        .collect()
}

/// Comparisons of all pairs.
struct Comparisons<T> {
    kernel: Comparison<T>,
    values: Vec<T>,
    expected: fn((T, T)) -> u32,
}

impl<T: Element + Debug> Check for Comparisons<T> {
    fn check<B: Backend>(&self, device: &Device<B>) {
        let pairs = pairs(&self.values);
        let (a, b): (Vec<T>, Vec<T>) = pairs.iter().copied().unzip();
        let stream = device.stream().unwrap();
        let (x, y) = (stream.to_device(&a).unwrap(), stream.to_device(&b).unwrap());
        let mut out = stream.to_device(&vec![0u32; a.len()]).unwrap();
        let dims = config_for_items([a.len(), 1, 1], [GROUP, 1, 1]);
        self.kernel.load(device).unwrap().launch(&stream, &dims, (&x, &y, &mut out)).unwrap();
        for (pair, found) in pairs.iter().zip(vector(&stream, &out)) {
            assert_eq!(found, (self.expected)(*pair), "{pair:?}");
        }
    }
}

macro_rules! comparisons {
    ($($test:ident $expected:ident $type:ident $kind:ident;)*) => {$(
        #[test]
        fn $test() {
            let (kernel, expected) = (casts::$test(), casts::$expected);
            everywhere(stringify!($test), &Comparisons { kernel, expected, values: <$type as $kind>::edges() });
        }
    )*};
}
comparisons! {
    compare_i8 compared_i8 i8 Integer;
    compare_u8 compared_u8 u8 Integer;
    compare_i16 compared_i16 i16 Integer;
    compare_u16 compared_u16 u16 Integer;
    compare_i32 compared_i32 i32 Integer;
    compare_u32 compared_u32 u32 Integer;
    compare_i64 compared_i64 i64 Integer;
    compare_u64 compared_u64 u64 Integer;
    compare_f32 compared_f32 f32 Float;
    compare_f64 compared_f64 f64 Float;
    compare_f16 compared_f16 f16 Float;
    compare_bf16 compared_bf16 bf16 Float;
}
