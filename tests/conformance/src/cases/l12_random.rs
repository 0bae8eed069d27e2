//! Random numbers: the host's bits on every device, however an array is split or laid out.

use super::tools::same;
use crate::{Lab, Level, Stop, Verdict, skip};
use gpumem_core::{Backend, ErrorKind, Result};
use gpumem_host::Host;
use gpumem_ops::{Philox, RandomFloat};
use gpumem_runtime::{Device, Stream};
use ndarray::{Array1, Array2, ArrayView1, s};

cases! { Level::Kernel;
    random_numbers_have_the_bits_of_the_host,
    the_first_numbers_are_those_of_random123,
    parts_have_the_numbers_of_the_whole,
    any_layout_has_the_numbers_of_its_indices,
    fills_wait_for_late_readers_and_writers,
    no_elements_take_no_numbers,
}

/// Skips the case where the device takes no kernels.
fn done<T>(result: Result<T>) -> Verdict<T> {
    match result {
        Err(error) if matches!(error.kind(), ErrorKind::Unsupported { .. } | ErrorKind::Load(_)) => {
            skip(error)
        }
        result => result.map_err(Stop::from),
    }
}

/// Uniform and normal numbers.
fn numbers<T: RandomFloat, B: Backend>(
    stream: &Stream<B>,
    random: Philox,
    len: usize,
) -> Result<[Array1<T>; 2]> {
    let (uniform, normal) = (random.uniform(stream, len)?, random.normal(stream, len)?);
    Ok([uniform.copy_to_host()?, normal.copy_to_host()?])
}

fn bits<T: RandomFloat>(numbers: &[Array1<T>; 2]) -> Vec<u8> {
    numbers.iter().flatten().flat_map(bytemuck::bytes_of).copied().collect()
}

fn random_numbers_have_the_bits_of_the_host<B: Backend>(lab: &Lab<B>) -> Verdict {
    let (stream, host) = (lab.device().stream()?, Device::<Host>::open("host")?.stream()?);
    let len = if lab.is_slow() { 900 } else { 50_000 };
    // A seed and positions with bits in both halves; the second begins within a block, and the last wraps.
    let random = Philox::new(0x0123_4567_89ab_cdef);
    for random in [random, random.sequence(1 << 40 | 3).at((1 << 34) + 7), random.at(u64::MAX - 100)] {
        let found = done(numbers::<f32, B>(&stream, random, len))?;
        assert_eq!(bits(&found), bits(&numbers::<f32, Host>(&host, random, len)?), "f32 {random:?}");
        let found = numbers::<f64, B>(&stream, random, len)?;
        assert_eq!(bits(&found), bits(&numbers::<f64, Host>(&host, random, len)?), "f64 {random:?}");
    }
    Ok(())
}

fn the_first_numbers_are_those_of_random123<B: Backend>(lab: &Lab<B>) -> Verdict {
    let stream = lab.device().stream()?;
    let words = [0x6627_e8d5_u32, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8];
    let single = done(Philox::new(0).uniform::<f32, _, B>(&stream, 4))?.copy_to_host()?;
    same(single.view(), ArrayView1::from(&words).mapv(|word| (word >> 8) as f32 / 16_777_216.0).view());
    let double = Philox::new(0).uniform::<f64, _, B>(&stream, 2)?.copy_to_host()?;
    let pairs = [0xe169_c58d_6627_e8d5_u64, 0x9b00_dbd8_bc57_ac4c];
    let fractions = pairs.map(|pair| (pair >> 11) as f64 / (1u64 << 53) as f64);
    same(double.view(), ArrayView1::from(&fractions));
    Ok(())
}

fn parts_have_the_numbers_of_the_whole<B: Backend>(lab: &Lab<B>) -> Verdict {
    let (stream, len) = (lab.device().stream()?, if lab.is_slow() { 300 } else { 3000 });
    let random = Philox::new(5).sequence(2);
    let [single, _] = done(numbers::<f32, B>(&stream, random, len))?;
    let [_, double] = numbers::<f64, B>(&stream, random, len)?;
    let mut array = lab.device().device_array::<f32, _>(len)?;
    for start in [0, 1, 2, 3, 5, 258] {
        let random = random.at(start as u64);
        let mut part = array.slice_mut(s![start..start + 37])?;
        random.fill_uniform(&stream, &mut part)?;
        same(part.copy_to_host()?.view(), single.slice(s![start..start + 37]));
        let normal = random.normal::<f64, _, B>(&stream, len - start)?.copy_to_host()?;
        same(normal.view(), double.slice(s![start..]));
    }
    // Positions wrap.
    let last = random.at(u64::MAX - 4).uniform::<f32, _, B>(&stream, 12)?.copy_to_host()?;
    same(last.slice(s![5..]), single.slice(s![..7]));
    // Others have other numbers.
    for other in [Philox::new(6).sequence(2), Philox::new(5), random.at(len as u64)] {
        let found = other.uniform::<f32, _, B>(&stream, len)?.copy_to_host()?;
        assert!(single.iter().all(|number| found.iter().filter(|other| *other == number).count() < 3));
        assert_ne!(found, single);
    }
    Ok(())
}

fn any_layout_has_the_numbers_of_its_indices<B: Backend>(lab: &Lab<B>) -> Verdict {
    let (stream, random) = (lab.device().stream()?, Philox::new(9));
    let expected = done(random.uniform::<f32, _, B>(&stream, (13, 7)))?.copy_to_host()?;
    let mut array = lab.device().device_array::<f32, _>((13, 14))?;
    let mut odd = array.slice_mut(s![..;-1, 1..;2])?;
    random.fill_uniform(&stream, &mut odd)?;
    same(odd.copy_to_host()?.view(), expected.view());
    // What lies between is as it was.
    same(array.slice(s![.., ..;2])?.copy_to_host()?.view(), Array2::zeros((13, 7)).view());
    let mut turned = lab.device().device_array::<f32, _>((7, 13))?;
    let mut turned = turned.view_mut().reversed_axes();
    random.fill_uniform(&stream, &mut turned)?;
    same(turned.copy_to_host()?.view(), expected.view());
    Ok(())
}

fn fills_wait_for_late_readers_and_writers<B: Backend>(lab: &Lab<B>) -> Verdict {
    let (producer, consumer) = (lab.device().stream()?, lab.device().stream()?);
    let mut array = lab.device().device_array::<f64, _>(500)?;
    let mut copy = lab.device().device_array::<f64, _>(500)?;
    let expected = done(numbers::<f64, B>(&producer, Philox::new(1), 500))?;
    for value in 1..4 {
        lab.delay(&producer)?;
        producer.fill(&mut array, f64::from(value))?;
        producer.copy_to_device(&mut copy, &array)?;
        // After the fill and the copy, and before the reading.
        Philox::new(1).fill_normal(&consumer, &mut array)?;
        same(copy.copy_to_host()?.view(), Array1::from_elem(500, f64::from(value)).view());
        lab.delay(&consumer)?;
        Philox::new(1).fill_uniform(&consumer, &mut copy)?;
        producer.copy_to_device(&mut array.slice_mut(s![..250])?, &copy.slice(s![250..])?)?;
        let found = array.copy_to_host()?;
        same(found.slice(s![..250]), expected[0].slice(s![250..]));
        same(found.slice(s![250..]), expected[1].slice(s![250..]));
    }
    Ok(())
}

fn no_elements_take_no_numbers<B: Backend>(lab: &Lab<B>) -> Verdict {
    let stream = lab.device().stream()?;
    let empty = Philox::new(1).uniform::<f32, _, B>(&stream, (3, 0))?;
    assert_eq!(empty.shape(), [3, 0]);
    // One without axes.
    let one = done(Philox::new(1).uniform::<f32, _, B>(&stream, ()))?;
    let first = Philox::new(1).uniform::<f32, _, B>(&stream, 1)?;
    assert_eq!(one.read()?, first.get(0)?);
    Ok(())
}
