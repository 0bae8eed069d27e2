//! How much staging memory downloads inside scopes take.

use super::{
    BEYOND, BLOCK, BOUND, UNTOUCHED, WITHIN,
    common::{double, host, is_clean, packing_double},
    count_staging, numbers, options, peak, short_blocks, untouched,
};
use gpumem_core::{Backend, Error};
use gpumem_host::HostOptions;
use gpumem_integration::fill;
use gpumem_kernel::{Out, config_for_items};
use gpumem_runtime::{Device, memory::MemoryResource};
use host_double::{Double, DoubleOptions};
use ndarray::{Array1, Array2, s};
use std::thread;

/// Packed, backwards, every second column, and both: 4 MiB or a part of that through half a MiB.
fn takes_bounded_memory<B: Backend>(device: &Device<B>) {
    device.set_transfer_options(options());
    let base = Array2::from_shape_fn((1024, BEYOND / 1024), |(i, j)| (i * (BEYOND / 1024) + j) as u32);
    let array = device.to_device(&base).unwrap();
    let stream = device.stream().unwrap();
    for (rows, columns) in [(1, 1), (-1, 1), (1, 2), (-1, -2)] {
        let part = s![..;rows, ..;columns];
        let expected = base.slice(part);
        let mut packed = Array2::from_elem(expected.raw_dim(), UNTOUCHED);
        let mut wide = Array2::from_elem((expected.nrows(), 2 * expected.ncols()), UNTOUCHED);
        let counting = count_staging(device);
        stream
            .scope(|scope| {
                let source = array.slice(part)?;
                scope.copy_to_host(&source, packed.view_mut())?;
                scope.copy_to_host(&source, wide.slice_mut(s![.., ..;2]))
            })
            .unwrap()
            .unwrap();
        assert!(packed == expected && wide.slice(s![.., ..;2]) == expected, "{rows}, {columns}");
        assert!(wide.slice(s![.., 1..;2]).iter().all(|value| *value == UNTOUCHED), "{rows}, {columns}");
        assert!(peak(&counting) <= BOUND, "{rows}, {columns}: {} bytes", peak(&counting));
    }
}

#[test]
fn a_download_takes_bounded_staging_memory() {
    for seed in [None, Some(3), Some(8)] {
        let options = || seed.map_or_else(HostOptions::new, |seed| HostOptions::new().adversarial(seed));
        let (device, raw) = double(options());
        takes_bounded_memory(&device);
        is_clean(&device, raw.host());
        // The device packs strided elements, and the host copies the caller's memory itself.
        let (device, raw) = packing_double(options());
        takes_bounded_memory(&device);
        is_clean(&device, raw.host());
        let (device, raw) = host(options());
        takes_bounded_memory(&device);
        is_clean(&device, &raw);
    }
}

/// The same with no other page-locked memory: no request exceeds the limit.
#[test]
fn no_more_page_locked_memory_is_needed() {
    for page_locked in [BLOCK, 3 * BLOCK, BOUND] {
        let made = DoubleOptions { page_locked: page_locked as u64, ..DoubleOptions::default() };
        let raw = Double::open_with(&made).unwrap();
        let device = Device::<Double>::from_raw(raw.clone());
        device.set_transfer_options(options());
        let array = device.to_device(&numbers(BEYOND)).unwrap();
        device.flush().unwrap();
        let stream = device.stream().unwrap();
        let (mut first, mut second) = (untouched(BEYOND), untouched(100));
        stream
            .scope(|scope| {
                scope.copy_to_host(&array, first.view_mut())?;
                // All of the memory is in use by the first one.
                scope.copy_to_host(&array.slice(s![..100])?, second.view_mut())
            })
            .unwrap()
            .unwrap();
        assert!(first == numbers(BEYOND) && second == numbers(100), "{page_locked}");
        drop((array, stream));
        is_clean(&device, raw.host());
    }
}

#[test]
fn many_downloads_of_one_scope_take_bounded_staging_memory() {
    let (device, raw) = short_blocks(HostOptions::new());
    let array = device.to_device(&numbers(BEYOND)).unwrap();
    let stream = device.stream().unwrap();
    for len in [1, 5000, BLOCK / 4, BLOCK / 4 + 1, WITHIN] {
        let mut found: Vec<_> = (0..64).map(|_| untouched(len)).collect();
        let counting = count_staging(&device);
        stream
            .scope(|scope| {
                let mut parts = found.iter_mut().enumerate();
                parts.try_for_each(|(at, found)| {
                    scope.copy_to_host(&array.slice(s![at..at + len])?, found.view_mut())?;
                    assert!(counting.statistics().allocated <= BOUND, "{len}");
                    Ok::<_, Error>(())
                })
            })
            .unwrap()
            .unwrap();
        let is_right = |(at, found): (usize, &Array1<u32>)| *found == numbers(len) + at as u32;
        assert!(found.iter().enumerate().all(is_right), "{len}");
        assert!(peak(&counting) <= BOUND, "{len}: {} bytes", peak(&counting));
    }
    drop((array, stream));
    is_clean(&device, raw.host());
}

#[test]
fn an_array_of_the_host_that_a_kernel_writes_in_a_scope_takes_bounded_staging_memory() {
    let (device, raw) = short_blocks(HostOptions::new());
    let (kernel, stream) = (fill().load(&device).unwrap(), device.stream().unwrap());
    let mut out = vec![UNTOUCHED; BEYOND];
    let counting = count_staging(&device);
    let dims = config_for_items([BEYOND, 1, 1], [256, 1, 1]);
    stream.scope(|scope| kernel.launch_in(scope, &dims, (Out(&mut out), 7u32))).unwrap().unwrap();
    assert!(out.iter().all(|value| *value == 7));
    assert!(peak(&counting) <= BOUND, "{} bytes", peak(&counting));
    drop((kernel, stream));
    is_clean(&device, raw.host());
}

/// One bound for data staged between calls, and another one for each thread inside a call.
#[test]
fn scopes_of_two_threads_on_one_stream_share_the_bound() {
    let (device, raw) = short_blocks(HostOptions::new());
    let array = device.to_device(&numbers(BEYOND)).unwrap();
    let stream = device.stream().unwrap();
    let counting = count_staging(&device);
    thread::scope(|threads| {
        for _ in 0..2 {
            threads.spawn(|| {
                for round in 0..4 {
                    let (mut long, mut short) = (untouched(2 * WITHIN), untouched(WITHIN / 2));
                    let part = array.slice(s![round..round + 2 * WITHIN]).unwrap();
                    stream
                        .scope(|scope| {
                            scope.copy_to_host(&array.slice(s![..WITHIN / 2])?, short.view_mut())?;
                            scope.copy_to_host(&part, long.view_mut())
                        })
                        .unwrap()
                        .unwrap();
                    assert!(long == numbers(2 * WITHIN) + round as u32 && short == numbers(WITHIN / 2));
                }
            });
        }
    });
    assert!(peak(&counting) <= 3 * BOUND, "{} bytes", peak(&counting));
    drop((array, stream));
    is_clean(&device, raw.host());
}

/// Eight GiB, of which the device holds one row.
#[test]
#[ignore = "takes 9 GiB of memory and some minutes without optimisation"]
fn eight_gib_on_the_host_take_no_more_than_the_bound() {
    const ROW: usize = 1 << 20;
    let (device, raw) = host(HostOptions::new());
    let row = device.to_device(&numbers(ROW)).unwrap();
    let counting = count_staging(&device);
    let mut found = Array2::<u32>::zeros((2048, ROW));
    let stream = device.stream().unwrap();
    stream
        .scope(|scope| scope.copy_to_host(&row.broadcast((2048, ROW))?, found.view_mut()))
        .unwrap()
        .unwrap();
    let expected = numbers(ROW);
    assert!(found.rows().into_iter().all(|found| found == expected));
    let bound = device.transfer_options().scoped_staging_bytes();
    assert!(peak(&counting) <= bound, "{} bytes", peak(&counting));
    drop((row, stream));
    is_clean(&device, &raw);
}
