//! Reductions, scans and maps. On a GPU compared with copies in its memory that move as many bytes as the operation must; on the
//! host with a plain loop on one thread.

use crate::{Bench, Measure, Pair, Routine};
use anyhow::Result;
use gpumem::{DeviceArray, Stream, ops::Philox, prelude::*};
use ndarray::Array2;
use std::{hint::black_box, rc::Rc};

/// Elements along both axes.
const SIZES: [(&str, [usize; 2]); 3] =
    [("4MiB", [1 << 10, 1 << 10]), ("64MiB", [1 << 12, 1 << 12]), ("1GiB", [1 << 14, 1 << 14])];

type Matrix = DeviceArray<f32, ndarray::Ix2>;

/// An operation: whether it also writes as many bytes as it reads, how it is called, and a loop that does the same.
struct Operation {
    name: &'static str,
    writes: bool,
    call: fn(&Stream, &Matrix) -> gpumem::Result<()>,
    plain: fn(&[f32], usize, &mut [f32]),
}

#[gpumem::device]
fn half_of(x: f32) -> f32 {
    x * 0.5
}

#[gpumem::device]
fn product(x: f32, y: f32) -> f32 {
    x * y
}

/// Results are dropped at once: their memory is used again in the order of the stream.
const OPERATIONS: [Operation; 10] = [
    Operation {
        name: "sum",
        writes: false,
        call: |stream, x| x.on(stream).sum().map(drop),
        plain: |x, _, out| out[0] = x.iter().sum(),
    },
    Operation {
        name: "max",
        writes: false,
        call: |stream, x| x.on(stream).max().map(drop),
        plain: |x, _, out| out[0] = x.iter().copied().fold(f32::MIN, f32::max),
    },
    Operation {
        name: "argmax",
        writes: false,
        call: |stream, x| x.on(stream).argmax().map(drop),
        plain: |x, _, out| {
            let mut best = 0;
            x.iter().enumerate().for_each(|(at, value)| best = if *value > x[best] { at } else { best });
            out[0] = best as f32;
        },
    },
    Operation {
        name: "sum_rows",
        writes: false,
        call: |stream, x| x.on(stream).sum_axis(1).map(drop),
        plain: |x, columns, out| {
            x.chunks(columns).zip(out).for_each(|(row, out)| *out = row.iter().sum());
        },
    },
    Operation {
        name: "sum_columns",
        writes: false,
        call: |stream, x| x.on(stream).sum_axis(0).map(drop),
        plain: |x, columns, out| {
            out[..columns].fill(0.0);
            x.chunks(columns).for_each(|row| out.iter_mut().zip(row).for_each(|(out, x)| *out += x));
        },
    },
    Operation {
        name: "inclusive_scan",
        writes: true,
        call: |stream, x| x.ravel(Order::C)?.on(stream).inclusive_scan(0).map(drop),
        plain: |x, _, out| {
            let mut sum = 0.0;
            x.iter().zip(out).for_each(|(x, out)| {
                sum += x;
                *out = sum;
            });
        },
    },
    Operation {
        name: "map",
        writes: true,
        call: |stream, x| x.on(stream).map::<half_of>().map(drop),
        plain: |x, _, out| x.iter().zip(out).for_each(|(x, out)| *out = x * 0.5),
    },
    // Both operands are one array, which is read once from memory and once from the cache.
    Operation {
        name: "zip_map_sum",
        writes: false,
        call: |stream, x| x.on(stream).zip_map_sum::<product, _>(x).map(drop),
        plain: |x, _, out| out[0] = x.iter().zip(x).map(|(x, y)| x * y).sum(),
    },
    Operation {
        name: "sort",
        writes: true,
        call: |stream, x| x.ravel(Order::C)?.on(stream).sort(0).map(drop),
        plain: |x, _, out| {
            out.copy_from_slice(x);
            out.sort_by(f32::total_cmp);
        },
    },
    // It writes as many bytes as a sum reads.
    Operation {
        name: "fill_normal",
        writes: false,
        call: |stream, x| Philox::new(1).normal::<f32, _, _>(stream, x.raw_dim()).map(drop),
        plain: |x, _, out| out.copy_from_slice(x),
    },
];

/// The benches for a device.
pub(super) fn of(device: &str) -> Vec<Bench> {
    let on_host = device.split(':').next() == Some("host");
    let mut benches = Vec::new();
    for operation in OPERATIONS {
        for (size, shape) in SIZES.into_iter().take(if on_host { 2 } else { 3 }) {
            benches.push(bench(&operation, size, shape, on_host));
        }
    }
    benches
}

fn bench(operation: &Operation, size: &str, shape: [usize; 2], on_host: bool) -> Bench {
    let Operation { name, writes, call, plain } = *operation;
    let bytes = shape[0] * shape[1] * size_of::<f32>();
    let moved = if writes { 2 * bytes } else { bytes };
    let reference = if on_host { "a loop on one thread" } else { "copies of as many bytes" };
    let measure = Measure::Throughput { bytes: moved as u64 };
    Bench::new(format!("ops/{name}/f32/{size}"), reference, measure, move || {
        let device = crate::device()?;
        let stream = Rc::new(device.stream()?);
        let host = Array2::from_shape_fn(shape, |(row, column)| ((row * 31 + column * 7) % 64) as f32);
        let array = stream.to_device(&host)?;
        call(&stream, &array)?;
        stream.synchronize()?;
        let reference = match on_host {
            true => loops(host, plain),
            false => copies(&stream, moved / 2)?,
        };
        let ours = Routine::batch(move |iterations| {
            for _ in 0..iterations {
                call(&stream, &array)?;
            }
            Ok(stream.synchronize()?)
        });
        Ok(Pair { ours, reference })
    })
}

fn loops(host: Array2<f32>, plain: fn(&[f32], usize, &mut [f32])) -> Routine {
    let (columns, x) = (host.ncols(), host.into_raw_vec_and_offset().0);
    let mut out = vec![0f32; x.len()];
    Routine::call(move || {
        plain(black_box(&x), columns, &mut out);
        black_box(&mut out);
        Ok(())
    })
}

/// Copies within the device's memory, each of which reads and writes so many bytes.
fn copies(stream: &Rc<Stream>, bytes: usize) -> Result<Routine> {
    let from = stream.device_array::<u8, _>(bytes)?;
    let mut to = stream.device_array::<u8, _>(bytes)?;
    stream.synchronize()?;
    let stream = stream.clone();
    Ok(Routine::batch(move |iterations| {
        for _ in 0..iterations {
            stream.copy_to_device(&mut to, &from)?;
        }
        Ok(stream.synchronize()?)
    }))
}
