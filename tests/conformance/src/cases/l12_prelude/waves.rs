//! Operations of the work-items of a wave: they exchange values, vote, and reduce.

use super::{Parameters, Probe, case, random};
use crate::Case;
use gpumem_core::{Backend, Element, LaunchConfig};
use gpumem_kernel::{KernelDef, Number, WorkItem};
use half::{bf16, f16};
use num_complex::Complex;
use std::{fmt::Debug, marker::PhantomData};

pub(super) fn cases<B: Backend>() -> Vec<Case<B>> {
    vec![
        case::<Shuffles<u8>, B>(),
        case::<Shuffles<i16>, B>(),
        case::<Shuffles<u32>, B>(),
        case::<Shuffles<u64>, B>(),
        case::<Shuffles<f32>, B>(),
        case::<Shuffles<f64>, B>(),
        case::<Shuffles<f16>, B>(),
        case::<Shuffles<bf16>, B>(),
        case::<Shuffles<Complex<f32>>, B>(),
        case::<Shuffles<Complex<f64>>, B>(),
        case::<Shuffles<Triple>, B>(),
        case::<Votes, B>(),
        case::<Reductions<u32>, B>(),
        case::<Reductions<i32>, B>(),
        case::<Reductions<u64>, B>(),
        case::<Reductions<i64>, B>(),
        case::<Reductions<f32>, B>(),
        case::<Reductions<f64>, B>(),
    ]
}

/// An element whose name in device code is known.
trait Named: Element + Debug {
    /// In device code.
    const TYPE: &'static str;
    /// As part of a name.
    const NAME: &'static str;
}

macro_rules! named {
    ($($element:ty: $device:literal $name:literal;)*) => {$(
        impl Named for $element {
            const TYPE: &'static str = $device;
            const NAME: &'static str = $name;
        }
    )*};
}
named! {
    u8: "u8" "u8"; i16: "i16" "i16"; u32: "u32" "u32"; i32: "i32" "i32"; u64: "u64" "u64"; i64: "i64" "i64";
    f32: "float" "f32"; f64: "double" "f64"; f16: "f16" "f16"; bf16: "bf16" "bf16";
    Complex<f32>: "complex<float>" "c64"; Complex<f64>: "complex<double>" "c128"; Triple: "triple" "record";
}

/// A record whose size is no power of two.
#[derive(Debug, Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
struct Triple {
    a: u32,
    b: u32,
    c: u32,
}

/// The lanes of item `at`'s wave, as positions in the group, and its own lane.
fn wave_of(at: usize, items: usize, wave: usize) -> (std::ops::Range<usize>, usize) {
    let start = at / wave * wave;
    (start..items.min(start + wave), at - start)
}

#[derive(Debug, Clone, Copy)]
enum Exchange {
    From(u64),
    Up(u64),
    Down(u64),
    Xor(u64),
}
use Exchange::{Down, From, Up, Xor};

/// Small ones, those that leave the wave, and those whose sum with a lane wraps in 32 bits or needs more.
const EXCHANGES: [Exchange; 22] = [
    From(0),
    From(31),
    From(63),
    From(0x4000_0001),
    From(0xffff_ffff),
    From(0x1_0000_0001),
    Up(0),
    Up(5),
    Up(70),
    Up(0xffff_ffff),
    Up(0x1_0000_0000),
    Down(0),
    Down(5),
    Down(70),
    Down(0xffff_ffc1),
    Down(0xffff_ffff),
    Down(0x1_0000_0000),
    Xor(1),
    Xor(9),
    Xor(33),
    Xor(0xffff_ffff),
    Xor(0x1_0000_0002),
];

/// The values of other lanes; one's own of a lane that there is not.
struct Shuffles<T>(PhantomData<T>);

impl<T: Named> Probe for Shuffles<T> {
    type In = T;
    type Out = T;

    fn declaration() -> KernelDef<Parameters<Self>> {
        let lines: String = EXCHANGES
            .iter()
            .enumerate()
            .map(|(row, exchange)| {
                let call = match exchange {
                    From(lane) => format!("shuffle(value, {lane:#x}ull)"),
                    Up(distance) => format!("shuffle_up(value, {distance:#x}ull)"),
                    Down(distance) => format!("shuffle_down(value, {distance:#x}ull)"),
                    Xor(mask) => format!("shuffle_xor(value, {mask:#x}ull)"),
                };
                format!("    y[{row} * x.size() + i] = {call};\n")
            })
            .collect();
        let (name, element) = (format!("shuffles_{}", T::NAME), T::TYPE);
        let source = format!(
            "using namespace gpumem;
struct triple {{ u32 a, b, c; }};
GPUMEM_KERNEL {name}(slice<const {element}> x, slice<{element}> y) {{
    u32 i = local_linear();
    {element} value = x[i];
{lines}}}"
        );
        // SAFETY: each work-item writes its own elements.
        unsafe { KernelDef::new(&name) }.source(&source).host_body(
            async |item: WorkItem<'_>, (x, y): &Parameters<Self>| {
                let i = item.local_linear();
                let value = x.get(i);
                for (row, exchange) in EXCHANGES.into_iter().enumerate() {
                    let found = match exchange {
                        From(lane) => item.shuffle(value, lane as usize).await,
                        Up(distance) => item.shuffle_up(value, distance as usize).await,
                        Down(distance) => item.shuffle_down(value, distance as usize).await,
                        Xor(mask) => item.shuffle_xor(value, mask as usize).await,
                    };
                    y.set(row * x.len() + i, found);
                }
            },
        )
    }

    fn input(items: usize) -> Vec<T> {
        super::super::tools::elements(items)
    }

    fn before(items: usize) -> Vec<T> {
        vec![T::zeroed(); EXCHANGES.len() * items]
    }

    fn after(input: &[T], _: &LaunchConfig, wave: usize) -> Vec<T> {
        let of = |exchange: Exchange, at: usize| {
            let (lanes, lane) = wave_of(at, input.len(), wave);
            let lane = lane as u64;
            let other = match exchange {
                From(other) => Some(other),
                Up(distance) => lane.checked_sub(distance),
                Down(distance) => lane.checked_add(distance),
                Xor(mask) => Some(lane ^ mask),
            };
            let other = other.filter(|other| *other < lanes.len() as u64);
            other.map_or(input[at], |other| input[lanes.start + other as usize])
        };
        let items = 0..input.len();
        EXCHANGES.iter().flat_map(|exchange| items.clone().map(move |at| of(*exchange, at))).collect()
    }
}

/// Votes, and the bits of the voters.
struct Votes;

const QUESTIONS: usize = 4;

impl Probe for Votes {
    type In = u32;
    type Out = u64;

    fn declaration() -> KernelDef<Parameters<Self>> {
        let source = "using namespace gpumem;
GPUMEM_KERNEL votes(slice<const u32> x, slice<u64> y) {
    u32 i = local_linear(), value = x[i];
    y[4 * i] = wave_ballot(value & 1);
    y[4 * i + 1] = wave_ballot(true);
    y[4 * i + 2] = (u64)wave_any(value == 77) | (u64)wave_any(value > 1000) << 1 | (u64)wave_any(true) << 2;
    y[4 * i + 3] = (u64)wave_all(value < 1000) | (u64)wave_all(value != 77) << 1 | (u64)wave_all(false) << 2;
}";
        // SAFETY: each work-item writes its own elements.
        unsafe { KernelDef::new("votes") }.source(source).host_body(
            async |item: WorkItem<'_>, (x, y): &Parameters<Self>| {
                let i = item.local_linear();
                let value = x.get(i);
                y.set(QUESTIONS * i, item.wave_ballot(value & 1 != 0).await);
                y.set(QUESTIONS * i + 1, item.wave_ballot(true).await);
                let any = [
                    item.wave_any(value == 77).await,
                    item.wave_any(value > 1000).await,
                    item.wave_any(true).await,
                ];
                y.set(QUESTIONS * i + 2, bits(any));
                let all = [
                    item.wave_all(value < 1000).await,
                    item.wave_all(value != 77).await,
                    item.wave_all(false).await,
                ];
                y.set(QUESTIONS * i + 3, bits(all));
            },
        )
    }

    fn input(items: usize) -> Vec<u32> {
        random(items).map(|number| (number % 200) as u32).collect()
    }

    fn before(items: usize) -> Vec<u64> {
        vec![0; QUESTIONS * items]
    }

    fn after(input: &[u32], _: &LaunchConfig, wave: usize) -> Vec<u64> {
        let of = |at: usize| {
            let values = &input[wave_of(at, input.len(), wave).0];
            let ballot = |holds: fn(&u32) -> bool| {
                values.iter().enumerate().fold(0, |all, (lane, value)| all | u64::from(holds(value)) << lane)
            };
            let any = [values.contains(&77), values.iter().any(|value| *value > 1000), true];
            let all = [values.iter().all(|value| *value < 1000), !values.contains(&77), false];
            [ballot(|value| value & 1 != 0), ballot(|_| true), bits(any), bits(all)]
        };
        (0..input.len()).flat_map(of).collect()
    }
}

fn bits(answers: [bool; 3]) -> u64 {
    answers.into_iter().rev().fold(0, |all, answer| all << 1 | u64::from(answer))
}

/// A number with values that are hard to reduce.
trait Hard: Named + Number {
    /// From random bits, to be added up. No sum of two is exact where numbers have a fraction.
    fn summand(random: u64) -> Self;
    /// From random bits, to be compared.
    fn compared(random: u64) -> Self;
}

macro_rules! integers {
    ($($type:ty)*) => {$(
        impl Hard for $type {
            fn summand(random: u64) -> Self { random as $type }
            fn compared(random: u64) -> Self { random as $type }
        }
    )*};
}
integers!(u32 i32 u64 i64);

macro_rules! floats {
    ($($type:ty)*) => {$(
        impl Hard for $type {
            fn summand(random: u64) -> Self {
                match random % 16 {
                    0 => <$type>::MIN_POSITIVE / 8.0,
                    sixteenth => (random >> 12) as $type / 3.0 * (10.0 as $type).powi(sixteenth as i32 - 20),
                }
            }
            fn compared(random: u64) -> Self {
                match random % 5 {
                    0 => <$type>::NAN,
                    1 => -<$type>::MIN_POSITIVE / (random % 64 + 2) as $type,
                    _ => (random as i64) as $type,
                }
            }
        }
    )*};
}
floats!(f32 f64);

/// Sum, smallest, largest and prefix sums: the same bits as the tree that the prelude describes.
struct Reductions<T>(PhantomData<T>);

impl<T: Hard> Probe for Reductions<T> {
    type In = T;
    type Out = T;

    fn declaration() -> KernelDef<Parameters<Self>> {
        let (name, element) = (format!("reductions_{}", T::NAME), T::TYPE);
        let source = format!(
            "using namespace gpumem;
GPUMEM_KERNEL {name}(slice<const {element}> x, slice<{element}> y) {{
    u64 i = local_linear(), n = x.size() / 2;
    y[i] = wave_sum(x[i]);
    y[n + i] = wave_scan(x[i]);
    y[2 * n + i] = wave_min(x[n + i]);
    y[3 * n + i] = wave_max(x[n + i]);
}}"
        );
        // SAFETY: each work-item writes its own elements.
        unsafe { KernelDef::new(&name) }.source(&source).host_body(
            async |item: WorkItem<'_>, (x, y): &Parameters<Self>| {
                let (i, n) = (item.local_linear(), x.len() / 2);
                y.set(i, item.wave_sum(x.get(i)).await);
                y.set(n + i, item.wave_scan(x.get(i)).await);
                y.set(2 * n + i, item.wave_min(x.get(n + i)).await);
                y.set(3 * n + i, item.wave_max(x.get(n + i)).await);
            },
        )
    }

    fn input(items: usize) -> Vec<T> {
        random(items).map(T::summand).chain(random(2 * items).skip(items).map(T::compared)).collect()
    }

    fn before(items: usize) -> Vec<T> {
        vec![T::zeroed(); 4 * items]
    }

    fn after(input: &[T], _: &LaunchConfig, wave: usize) -> Vec<T> {
        let (summands, compared) = input.split_at(input.len() / 2);
        let in_waves = |values: &[T], of: &dyn Fn(&[T]) -> Vec<T>| -> Vec<T> {
            values.chunks(wave).flat_map(of).collect()
        };
        let reduced = |op: fn(T, T) -> T| {
            move |values: &[T]| {
                let mut lanes = values.to_vec();
                let mut distance = wave / 2;
                while distance > 0 {
                    let before = lanes.clone();
                    for (lane, other) in (distance..before.len()).enumerate() {
                        lanes[lane] = op(before[lane], before[other]);
                    }
                    distance /= 2;
                }
                vec![lanes[0]; values.len()]
            }
        };
        let scanned = |values: &[T]| {
            let mut lanes = values.to_vec();
            let mut distance = 1;
            while distance < wave {
                let before = lanes.clone();
                for lane in distance..before.len() {
                    lanes[lane] = before[lane - distance].plus(before[lane]);
                }
                distance *= 2;
            }
            lanes
        };
        let parts = [
            in_waves(summands, &reduced(T::plus)),
            in_waves(summands, &scanned),
            in_waves(compared, &reduced(T::least)),
            in_waves(compared, &reduced(T::greatest)),
        ];
        parts.concat()
    }
}
