//! Division, square roots and conversions as AMD's compiler writes them, against the host's.

use super::{
    numbers::{EDGES32, EDGES64, Random, same32, same64},
    object::{Object, compile},
    rig::{Arguments, Array, NODE, Shape, architectures, launch},
};

const SOURCE: &str = r#"
#define ITEM blockIdx.x * blockDim.x + threadIdx.x
extern "C" __global__ void divide32(const float* a, const float* b, float* q, float* r) {
    unsigned i = ITEM; q[i] = a[i] / b[i]; r[i] = __builtin_sqrtf(a[i]);
}
extern "C" __global__ void divide64(const double* a, const double* b, double* q, double* r) {
    unsigned i = ITEM; q[i] = a[i] / b[i]; r[i] = __builtin_sqrt(a[i]);
}
extern "C" __global__ void convert(const float* a, const double* b, int* i32, unsigned* u32, float* narrow,
                                   double* wide, unsigned short* half, float* whole) {
    unsigned i = ITEM; float x = a[i]; double y = b[i];
    bool fits = x >= -2147483648.0f && x < 2147483648.0f;
    i32[i] = fits ? (int)x : 0;
    u32[i] = y >= 0.0 && y < 4294967296.0 ? (unsigned)y : 0;
    narrow[i] = (float)y; wide[i] = (double)x;
    half[i] = __builtin_bit_cast(unsigned short, (_Float16)x);
    whole[i] = (float)__builtin_bit_cast(int, x) + (float)__builtin_bit_cast(unsigned, x);
}
"#;

const COUNT: usize = 1 << 20;

/// All pairs of edge values, then random ones: any bits, and numbers whose quotients are often denormal or large.
fn pairs<T: Copy>(edges: &[T], negated: impl Fn(T) -> T, random: impl Fn(&mut Random) -> T) -> [Vec<T>; 2] {
    let all: Vec<T> = edges.iter().flat_map(|bits| [*bits, negated(*bits)]).collect();
    let (mut a, mut b) = (vec![], vec![]);
    for x in &all {
        for y in &all {
            a.push(*x);
            b.push(*y);
        }
    }
    let mut source = Random(7);
    while a.len() < COUNT {
        a.push(random(&mut source));
        b.push(random(&mut source));
    }
    [a, b]
}

fn singles() -> [Vec<u32>; 2] {
    pairs(&EDGES32, |bits| bits | 1 << 31, |random| random.next() as u32)
}

fn doubles() -> [Vec<u64>; 2] {
    pairs(&EDGES64, |bits| bits | 1 << 63, Random::next)
}

fn each(test: impl Fn(&Object, (u32, u32, u32))) {
    for (isa, version, _) in architectures() {
        let Some(code) = compile(SOURCE, isa, &["-ffp-contract=off"]) else { return };
        test(&Object::load(NODE, &code), version);
    }
}

#[test]
fn single_division_and_square_root_are_exact() {
    let [a, b] = singles();
    each(|object, isa| {
        let arrays =
            [Array::new(&a), Array::new(&b), Array::new(&vec![0u32; COUNT]), Array::new(&vec![0u32; COUNT])];
        let arguments = arrays.iter().fold(Arguments::default(), Arguments::array);
        launch(object, isa, "divide32", &Shape::line(COUNT / 256, 256), arguments).unwrap();
        let (quotients, roots) = (arrays[2].get(), arrays[3].get());
        for i in 0..COUNT {
            let (x, y) = (f32::from_bits(a[i]), f32::from_bits(b[i]));
            assert!(same32(quotients[i], (x / y).to_bits()), "{isa:?}: {x:e} / {y:e} = {:x}", quotients[i]);
            assert!(same32(roots[i], x.sqrt().to_bits()), "{isa:?}: root of {x:e} is {:x}", roots[i]);
        }
    });
}

#[test]
fn double_division_and_square_root_are_exact() {
    let [a, b] = doubles();
    each(|object, isa| {
        let arrays =
            [Array::new(&a), Array::new(&b), Array::new(&vec![0u64; COUNT]), Array::new(&vec![0u64; COUNT])];
        let arguments = arrays.iter().fold(Arguments::default(), Arguments::array);
        launch(object, isa, "divide64", &Shape::line(COUNT / 256, 256), arguments).unwrap();
        let (quotients, roots) = (arrays[2].get(), arrays[3].get());
        for i in 0..COUNT {
            let (x, y) = (f64::from_bits(a[i]), f64::from_bits(b[i]));
            assert!(same64(quotients[i], (x / y).to_bits()), "{isa:?}: {x:e} / {y:e} = {:x}", quotients[i]);
            assert!(same64(roots[i], x.sqrt().to_bits()), "{isa:?}: root of {x:e} is {:x}", roots[i]);
        }
    });
}

#[test]
fn conversions_are_exact() {
    let ([a, _], [b, _]) = (singles(), doubles());
    // Numbers that are integers of 32 bits, or nearly: random ones hardly ever are.
    let near = |i: usize| f64::from((i as u32).wrapping_mul(4099)) + f64::from((i % 9) as u32) / 8.0 - 1.0;
    let b: Vec<u64> =
        b.iter().enumerate().map(|(i, b)| if i % 2 == 0 { *b } else { near(i).to_bits() }).collect();
    let a: Vec<u32> = a
        .iter()
        .enumerate()
        .map(|(i, a)| if i % 2 == 0 { *a } else { (near(i) as f32 - 1e9).to_bits() })
        .collect();
    each(|object, isa| {
        let (x, y) = (Array::new(&a), Array::new(&b));
        let words = || Array::new(&vec![0u32; COUNT]);
        let (i32s, u32s, narrow, whole) = (words(), words(), words(), words());
        let (wide, half) = (Array::new(&vec![0u64; COUNT]), Array::new(&vec![0u16; COUNT]));
        let arguments = Arguments::default().array(&x).array(&y).array(&i32s).array(&u32s).array(&narrow);
        let arguments = arguments.array(&wide).array(&half).array(&whole);
        launch(object, isa, "convert", &Shape::line(COUNT / 256, 256), arguments).unwrap();
        let [i32s, u32s, narrow, whole] = [i32s, u32s, narrow, whole].map(|array| array.get());
        let (wide, half) = (wide.get(), half.get());
        for i in 0..COUNT {
            let (x, y) = (f32::from_bits(a[i]), f64::from_bits(b[i]));
            let fits = (-2147483648.0..2147483648.0).contains(&x);
            assert_eq!(i32s[i] as i32, if fits { x as i32 } else { 0 }, "{isa:?}: {x:e}");
            let fits = (0.0..4294967296.0).contains(&y);
            assert_eq!(u32s[i], if fits { y as u32 } else { 0 }, "{isa:?}: {y:e}");
            assert!(same32(narrow[i], (y as f32).to_bits()), "{isa:?}: {y:e}");
            assert!(same64(wide[i], f64::from(x).to_bits()), "{isa:?}: {x:e}");
            assert_eq!(half[i], expected_half(x), "{isa:?}: {x:e}");
            assert_eq!(whole[i], (a[i] as i32 as f32 + a[i] as f32).to_bits(), "{isa:?}: {:x}", a[i]);
        }
    });
}

/// The nearest number of 16 bits, found by steps of exact arithmetic in 64 bits.
pub(super) fn expected_half(x: f32) -> u16 {
    let sign = if x.is_sign_negative() { 0x8000 } else { 0 };
    let value = f64::from(x.abs());
    if value.is_nan() {
        // The upper bits of the fraction, made quiet.
        return sign | 0x7e00 | (x.to_bits() >> 13 & 0x3ff) as u16;
    }
    if value >= 65520.0 {
        return sign | 0x7c00;
    }
    let exponent = (value.log2().floor() as i32).max(-14);
    // Logarithms are not exact near powers of two.
    let exponent = if value >= 2f64.powi(exponent + 1) { exponent + 1 } else { exponent };
    let units = (value / 2f64.powi(exponent - 10)).round_ties_even() as u16;
    if units < 0x400 { sign | units } else { sign | (units + ((exponent + 14) as u16) * 0x400) }
}
