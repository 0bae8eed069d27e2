//! Operations of the lanes of a wave.

use super::{ITEMS, Probes, compare, compiled, each, text};
use crate::isa::tests::{
    object::Object,
    rig::{Arguments, Array, NODE, architectures},
};
use gpumem_kernel_suite::kernel::PRELUDE;
use std::fmt::Debug;

/// The lanes that the exchanges of a lane take their values from, in a wave of so many work-items.
fn sources(lane: u64, items: u64, wave: u64) -> [u64; 10] {
    let from = |source: u64| if source < items { source } else { lane };
    [
        from((lane * 7 + 3) % (wave + 5)),
        if lane < 5 { lane } else { lane - 5 },
        from(lane + 5),
        from(lane ^ 9),
        if lane < 70 { lane } else { lane - 70 },
        from(lane + 70),
        from(lane ^ 33),
        from(0xffff_ffff),
        from(lane + 0xffff_ffff),
        from(0x4000_0001),
    ]
}

/// Exchanges values of so many bytes, and names the first lane that got another lane's.
fn exchanged(probes: &Probes, kind: &str, size: usize) -> Result<(), String> {
    let name = format!("exchange_{kind}");
    let values: Vec<u8> = (0..ITEMS * size).map(|i| (i * 37 + i / 256 + 11) as u8).collect();
    let (from, out) = (Array::new(&values), Array::new(&vec![0u8; 10 * ITEMS * size]));
    probes.group(&name, Arguments::default().array(&from).array(&out))?;
    let found = out.get();
    for (first, items) in probes.waves() {
        for lane in 0..items {
            let sources = sources(lane as u64, items as u64, probes.wave as u64);
            for (exchange, source) in sources.into_iter().enumerate() {
                let found = &found[(exchange * ITEMS + first + lane) * size..][..size];
                let expected = &values[(first + source as usize) * size..][..size];
                if found != expected {
                    let wave = first / probes.wave;
                    return Err(format!(
                        "{name}: exchange {exchange} gave {found:?} to lane {lane} of wave {wave}, and not {expected:?} of lane {source}"
                    ));
                }
            }
        }
    }
    Ok(())
}

#[test]
fn lanes_exchange_values_of_every_type() {
    let kinds = [
        ("u8", 1),
        ("i16", 2),
        ("f16", 2),
        ("bf16", 2),
        ("u32", 4),
        ("f32", 4),
        ("f64", 8),
        ("u64", 8),
        ("c64", 8),
        ("triple", 12),
        ("c128", 16),
    ];
    for (kind, size) in kinds {
        each(false, |probes| exchanged(probes, kind, size));
    }
}

/// A mistake in the prelude that gives a lane its neighbour's value.
#[test]
fn a_wrong_lane_is_found_and_named() {
    let right = "lane() - (u32)distance)";
    assert!(PRELUDE.contains(right), "the prelude has changed");
    let wrong = PRELUDE.replace(right, "lane() - (u32)distance + 1)");
    for (isa, version, wave) in architectures() {
        let Some(code) = compiled(&text(&wrong, wave, false), isa) else { return };
        let probes = Probes { isa, version, wave: wave as usize, object: Object::load(NODE, &code) };
        let found = exchanged(&probes, "u32", 4).unwrap_err();
        assert!(found.starts_with("exchange_u32: exchange 1 gave"), "{isa}: {found}");
        assert!(found.contains("to lane 5 of wave 0") && found.ends_with("of lane 0"), "{isa}: {found}");
    }
}

#[test]
fn waves_vote() {
    let values: Vec<u32> = (0..ITEMS as u32).map(|i| i * 13 % 101).collect();
    assert!(values.contains(&77));
    each(false, |probes| {
        let (from, out) = (Array::new(&values), Array::new(&vec![0u64; ITEMS * 4]));
        probes.group("votes", Arguments::default().array(&from).array(&out))?;
        let mut expected = vec![];
        for (first, items) in probes.waves() {
            let wave = &values[first..first + items];
            let ballot = |holds: &dyn Fn(u32) -> bool| {
                wave.iter().enumerate().fold(0, |bits, (lane, value)| bits | u64::from(holds(*value)) << lane)
            };
            let has = u64::from(wave.contains(&77));
            let answers = [ballot(&|value| value % 2 == 1), ballot(&|_| true), has | 4, 1 | (1 - has) << 1];
            expected.extend(std::iter::repeat_n(answers, items).flatten());
        }
        compare("votes", &out.get(), &expected)
    });
}

/// A type of numbers that waves reduce.
trait Number: bytemuck::Pod + PartialOrd + Debug {
    const NAME: &'static str;
    fn nth(index: usize) -> Self;
    fn plus(self, other: Self) -> Self;
}

macro_rules! number {
    ($type:ty, |$index:ident| $nth:expr, $plus:expr) => {
        impl Number for $type {
            const NAME: &'static str = stringify!($type);
            fn nth($index: usize) -> Self {
                $nth
            }
            fn plus(self, other: Self) -> Self {
                let plus: fn(Self, Self) -> Self = $plus;
                plus(self, other)
            }
        }
    };
}
number!(u32, |i| (i as u32).wrapping_mul(0x9e37_79b9), u32::wrapping_add);
number!(i32, |i| (i as i32).wrapping_mul(0x1e37_79b9), i32::wrapping_add);
number!(u64, |i| (i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15), u64::wrapping_add);
number!(i64, |i| (i as i64).wrapping_mul(0x1e37_79b9_7f4a_7c15), i64::wrapping_add);
// Sums are not exact: their order shows. One number is denormal.
number!(f32, |i| if i == 40 { f32::from_bits(1) } else { 1.0 / (i as f32 + 0.3) - 0.4 }, |a, b| a + b);
number!(f64, |i| if i == 60 { -0.0 } else { 1.0 / (i as f64 + 0.3) }, |a, b| a + b);

/// Values joined as a wave joins them: over half a wave first, then over half of that.
fn tree<T: Number>(values: &[T], wave: usize, join: impl Fn(T, T) -> T) -> T {
    let mut values = values.to_vec();
    let mut distance = wave / 2;
    while distance > 0 {
        let before = values.clone();
        for (lane, value) in values.iter_mut().enumerate() {
            if let Some(other) = before.get(lane + distance) {
                *value = join(*value, *other);
            }
        }
        distance /= 2;
    }
    values[0]
}

/// The sums of the lanes up to each, in the order in which a wave adds.
fn sums<T: Number>(values: &[T], wave: usize) -> Vec<T> {
    let mut values = values.to_vec();
    let mut distance = 1;
    while distance < wave {
        let before = values.clone();
        for lane in distance..values.len() {
            values[lane] = before[lane - distance].plus(before[lane]);
        }
        distance *= 2;
    }
    values
}

fn reduced<T: Number>() {
    let values: Vec<T> = (0..ITEMS).map(T::nth).collect();
    let name = format!("reduced_{}", T::NAME);
    each(false, |probes| {
        let (from, out) = (Array::new(&values), Array::new(&[T::zeroed(); 4 * ITEMS]));
        probes.group(&name, Arguments::default().array(&from).array(&out))?;
        let mut expected = [const { vec![] }; 4];
        for (first, items) in probes.waves() {
            let wave = &values[first..first + items];
            let results = [
                tree(wave, probes.wave, T::plus),
                tree(wave, probes.wave, |a, b| if b < a { b } else { a }),
                tree(wave, probes.wave, |a, b| if b > a { b } else { a }),
            ];
            for (expected, result) in expected.iter_mut().zip(results) {
                expected.extend(vec![result; items]);
            }
            expected[3].extend(sums(wave, probes.wave));
        }
        compare(&name, &out.get(), &expected.concat())
    });
}

#[test]
fn waves_reduce_integers() {
    reduced::<u32>();
    reduced::<i32>();
    reduced::<u64>();
    reduced::<i64>();
}

#[test]
fn waves_reduce_floating_point_numbers_in_one_order() {
    reduced::<f32>();
    reduced::<f64>();
}

#[test]
fn a_number_wins_over_a_nan() {
    let values: Vec<f32> = (0..ITEMS).map(|i| if i % 3 == 0 { f32::NAN } else { i as f32 }).collect();
    each(false, |probes| {
        let (from, out) = (Array::new(&values), Array::new(&vec![0f32; 4 * ITEMS]));
        probes.group("reduced_f32", Arguments::default().array(&from).array(&out))?;
        let mut expected = [vec![], vec![]];
        for (first, items) in probes.waves() {
            let numbers = values[first..first + items].iter().copied().filter(|value| !value.is_nan());
            let least = numbers.clone().fold(f32::INFINITY, f32::min);
            let greatest = numbers.fold(f32::NEG_INFINITY, f32::max);
            expected[0].extend(vec![least; items]);
            expected[1].extend(vec![greatest; items]);
        }
        compare("least and greatest of NaNs", &out.get()[ITEMS..3 * ITEMS], &expected.concat())
    });
}
