//! Barriers, atomics, memory of the group and of a work-item, views, constants.

use super::{CONSTANT_BYTES, ITEMS, Probes, compare, each};
use crate::{
    isa::{
        Cause,
        tests::rig::{Arguments, Array, NODE, Shape},
    },
    memory::span,
};
use std::fmt::Debug;

#[test]
fn barriers_hold_for_shared_memory() {
    let values: Vec<u32> = (0..ITEMS as u32).map(|i| i * 7 + 1).collect();
    each(false, |probes| {
        let (from, out) = (Array::new(&values), Array::new(&[0u32; ITEMS]));
        let shape = Shape { group: super::GROUP, dynamic_bytes: 512, ..Shape::line(1, 1) };
        probes.run("turned", &shape, Arguments::default().array(&from).array(&out))?;
        let sum = |i: usize| values[ITEMS - 1 - i] + 3 * values[(i + 40) % ITEMS];
        let expected: Vec<u32> = (0..ITEMS).map(|i| sum(ITEMS - 1 - i)).collect();
        compare("turned", &out.get(), &expected)
    });
}

#[test]
fn barriers_hold_for_global_memory() {
    each(false, |probes| {
        let (data, out) = (Array::new(&[0u32; ITEMS]), Array::new(&[0u32; ITEMS]));
        probes.group("in_global_memory", Arguments::default().array(&data).array(&out))?;
        let expected: Vec<u32> = (0..ITEMS as u32).rev().map(|i| i * 5 + 1).collect();
        compare("in_global_memory", &out.get(), &expected)
    });
}

#[test]
fn barriers_hold_within_waves() {
    let values: Vec<u32> = (0..ITEMS as u32).collect();
    each(false, |probes| {
        let (from, out) = (Array::new(&values), Array::new(&[0u32; ITEMS]));
        probes.group("within_waves", Arguments::default().array(&from).array(&out))?;
        let of_wave = |(first, items)| (0..items).map(move |lane| (first + (lane + 1) % items) as u32);
        let expected: Vec<u32> = probes.waves().flat_map(of_wave).collect();
        compare("within_waves", &out.get(), &expected)
    });
}

#[test]
fn fences_come_before_counts() {
    each(false, |probes| {
        let (data, count) = (Array::new(&[0u32; ITEMS]), Array::new(&[0u32]));
        probes.group("fenced", Arguments::default().array(&data).array(&count))?;
        compare("fenced", &data.get(), &[7; ITEMS])?;
        compare("fenced", &count.get(), &[ITEMS as u32])
    });
}

/// Adds, minima and maxima in global and in shared memory. Old values of additions to one number are all different.
fn counted<T: bytemuck::Pod + PartialOrd + Debug>(
    kind: &str,
    [most, least]: [T; 2],
    nth: impl Fn(usize) -> T,
    number: impl Fn(u8) -> T,
) {
    let name = format!("counted_{kind}");
    let values: Vec<T> = (0..ITEMS).map(nth).collect();
    let smallest = values.iter().copied().fold(most, |a, b| if b < a { b } else { a });
    let greatest = values.iter().copied().fold(least, |a, b| if b > a { b } else { a });
    // Each of three numbers is added to by a third of the work-items.
    let third = number((ITEMS / 3) as u8);
    let results = [third, third, third, smallest, greatest];
    let ascending: Vec<T> = (0..(ITEMS / 3) as u8).map(&number).collect();
    each(false, |probes| {
        let mut numbers = vec![number(0); 10];
        (numbers[3], numbers[4]) = (most, least);
        let (from, global, old) = (Array::new(&values), Array::new(&numbers), Array::new(&[number(0); 512]));
        let arguments = Arguments::default().array(&from).array(&global).array(&old).with(most).with(least);
        probes.group(&name, arguments)?;
        compare(&name, &global.get(), &[results, results].concat())?;
        let old = old.get();
        for first in [0, 256] {
            for third in 0..3 {
                let mut old: Vec<T> =
                    old[first..first + ITEMS].iter().copied().skip(third).step_by(3).collect();
                old.sort_by(|a, b| a.partial_cmp(b).unwrap());
                compare(&name, &old, &ascending)?;
            }
        }
        Ok(())
    });
}

#[test]
fn atomics_of_integers() {
    let mix = |i: usize| (i as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    counted("u32", [u32::MAX, 0], |i| mix(i) as u32, u32::from);
    counted("i32", [i32::MAX, i32::MIN], |i| mix(i) as i32, i32::from);
    counted("u64", [u64::MAX, 0], mix, u64::from);
    counted("i64", [i64::MAX, i64::MIN], |i| mix(i) as i64, i64::from);
}

#[test]
fn atomics_of_floating_point_numbers() {
    let limits = [f32::INFINITY, f32::NEG_INFINITY];
    counted("f32", limits, |i| if i == 5 { f32::NAN } else { i as f32 - 50.5 }, f32::from);
    let limits = [f64::INFINITY, f64::NEG_INFINITY];
    counted("f64", limits, |i| if i == 5 { f64::NAN } else { i as f64 - 50.5 }, f64::from);
}

#[test]
fn atomic_updates_lose_nothing() {
    each(false, |probes| {
        let number = Array::new(&[1u64]);
        probes.run("updated", &Shape::line(1, 20), Arguments::default().array(&number))?;
        let expected = (0..20).fold(1u64, |old, _| old.wrapping_mul(3).wrapping_add(1));
        compare("updated", &number.get(), &[expected])
    });
}

#[test]
fn private_memory_is_of_the_work_item() {
    let values: Vec<u32> = (0..64u32).map(|i| i * 29 + 7).collect();
    let expected: Vec<u32> = (0..64)
        .map(|i| {
            let array: Vec<u32> = (0..20).map(|k| values[(i + k) % 64]).collect();
            let at = |k: usize| values[(i * 3 + k) % 64] % 4 * 5 + values[(i + 2 * k) % 64] % 5;
            (0..20).fold(0u32, |sum, k| sum.wrapping_mul(31).wrapping_add(array[at(k) as usize]))
        })
        .collect();
    each(false, |probes| {
        let (from, out) = (Array::new(&values), Array::new(&[0u32; 64]));
        probes.run(
            "in_private_memory",
            &Shape::line(1, 64),
            Arguments::default().array(&from).array(&out),
        )?;
        compare("in_private_memory", &out.get(), &expected)
    });
}

/// Whether a probe ends in a trap that names it.
fn traps(probes: &Probes, name: &str, arguments: Arguments) -> bool {
    match probes.launch(name, &Shape::line(1, 64), arguments) {
        Ok(()) => false,
        Err(stop) => {
            assert!(matches!(stop.cause, Cause::Trap), "{}: {stop}", probes.isa);
            assert_eq!(stop.place.kernel, name);
            assert!(stop.place.text.starts_with("s_trap"), "{stop}");
            true
        }
    }
}

#[test]
fn an_index_past_the_end_of_a_slice_traps() {
    each(true, |probes| {
        for (first, expected) in [(0u32, false), (36, false), (37, true), (1000, true), (u32::MAX, true)] {
            let array = Array::new(&[0u32; 100]);
            let trap = traps(probes, "past_a_slice", Arguments::default().slice(&array).with(first));
            assert_eq!(trap, expected, "{}: from {first} on", probes.isa);
        }
        Ok(())
    });
}

#[test]
fn an_index_past_the_end_of_an_axis_traps() {
    each(true, |probes| {
        for (row, expected) in [(2u32, false), (3, true)] {
            let array = Array::new(&[0u32; 3 * 64]);
            let trap = traps(probes, "past_a_view", Arguments::default().view(&array, [3, 64]).with(row));
            assert_eq!(trap, expected, "{}: row {row}", probes.isa);
        }
        Ok(())
    });
}

#[test]
fn views_may_run_backwards() {
    let values: Vec<u16> = (0..35).collect();
    each(false, |probes| {
        let (from, to) = (Array::new(&values), Array::new(&[0u16; 70]));
        let last = from.address + 34 * 2;
        let backwards = Arguments::default().with(last).with([5u64, 7]).with([-14i64, -2]);
        let arguments = backwards.with(to.address).with([5u64, 7]).with([28i64, 4]);
        let shape = Shape { group: [8, 8, 1], ..Shape::line(1, 1) };
        probes.run("viewed", &shape, arguments)?;
        let expected: Vec<u16> =
            (0..70).map(|i| if i % 2 == 0 { 34 - i / 14 * 7 - i % 14 / 2 } else { 0 }).collect();
        compare("viewed", &to.get(), &expected)
    });
}

#[test]
fn values_of_every_size_are_passed() {
    each(false, |probes| {
        let out = Array::new(&[0i64]);
        let arguments = Arguments::default().with([1.5f32, 2.5, 3.5, 4.5, 5.5]).with([1u32, 2, 3]);
        let arguments = arguments.array(&out).with(3u32).with(200u8).with(-7.9f64);
        probes.run("by_value", &Shape::line(1, 64), arguments)?;
        compare("by_value", &out.get(), &[45 + 3 + 200 - 7])
    });
}

#[test]
fn constant_memory_is_found_by_its_name() {
    let weights: Vec<f32> = (0..12).map(|i| i as f32 + 0.5).collect();
    each(false, |probes| {
        let constants = probes.object.symbol("gpumem_constant_memory");
        let memory = span(NODE, constants, CONSTANT_BYTES.into()).unwrap();
        let mut bytes = [0u8; CONSTANT_BYTES as usize];
        bytes[16..64].copy_from_slice(bytemuck::cast_slice(&weights));
        bytes[64..72].copy_from_slice(&2f64.to_le_bytes());
        // SAFETY: the span is as long as the bytes, and no kernel runs.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), memory.as_ptr(), bytes.len()) };
        let out = Array::new(&[0f32; 64]);
        // Address, which is not used, and place; extents and strides.
        let rows = Arguments::default().with([0u64, 16]).with([3u64, 4]).with([16i64, 4]);
        let arguments = rows.with([0u64, 64]).array(&out);
        probes.run("weighted", &Shape::line(1, 64), arguments)?;
        let expected: Vec<f32> = (0..64).map(|i| weights[6] * 2.0 + weights[i % 3 * 4]).collect();
        compare("weighted", &out.get(), &expected)
    });
}
