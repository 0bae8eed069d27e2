//! Blocking copies beside the same copy without gpumem; on a GPU, beside what the processor does in its own memory.
//!
//! All memory is touched before it is measured. Both sides share the caller's block, and use blocks of the same alignment
//! for the device's.

use crate::{Bench, Measure, Pair, Routine};
use gpumem::DeviceArray;
use ndarray::{Array1, Array2, Ix1, s};
use std::{cell::RefCell, hint::black_box, rc::Rc};

const SIZES: [(&str, usize); 8] = [
    ("4KiB", 4 << 10),
    ("16KiB", 16 << 10),
    ("64KiB", 64 << 10),
    ("256KiB", 256 << 10),
    ("1MiB", 1 << 20),
    ("16MiB", 16 << 20),
    ("64MiB", 64 << 20),
    ("256MiB", 256 << 20),
];

/// Copies so short that only what surrounds them counts: their time is told, in nanoseconds.
const SHORT: [(&str, usize); 2] = [("64B", 64), ("4KiB", 4 << 10)];

pub(super) fn all() -> Vec<Bench> {
    let mut benches = Vec::new();
    for (name, bytes) in SIZES {
        let measure = throughput(bytes);
        benches.extend([h2d(name, bytes, measure), d2h(name, bytes, measure), d2d(name, bytes, measure)]);
        benches.push(fill(name, bytes));
    }
    for (size, bytes) in SHORT {
        let name = format!("ns/{size}");
        benches.extend([
            h2d(&name, bytes, Measure::Latency),
            d2h(&name, bytes, Measure::Latency),
            d2d(&name, bytes, Measure::Latency),
        ]);
    }
    benches.extend([columns_h2d(), columns_d2h()]);
    benches
}

type Vector = DeviceArray<u8, Ix1>;

fn throughput(bytes: usize) -> Measure {
    Measure::Throughput { bytes: bytes as u64 }
}

fn touched(bytes: usize) -> Array1<u8> {
    Array1::from_shape_fn(bytes, |index| index as u8)
}

fn device(bytes: usize) -> anyhow::Result<Vector> {
    let mut array = crate::device()?.device_array(bytes)?;
    array.fill(1)?;
    Ok(array)
}

/// `bytes` bytes that start where device memory starts: on a cache line.
struct Aligned(Vec<u8>, usize);

impl Aligned {
    fn new(bytes: usize) -> Self {
        let block = vec![1; bytes + 64];
        let start = block.as_ptr().align_offset(64);
        Self(block, start)
    }

    fn bytes(&mut self) -> &mut [u8] {
        let end = self.0.len() - 64 + self.1;
        &mut self.0[self.1..end]
    }
}

fn h2d(name: &str, bytes: usize, measure: Measure) -> Bench {
    Bench::new(format!("copy/h2d/{name}"), "memcpy", measure, move || {
        let source = Rc::new(touched(bytes));
        let (mut ours, mut theirs, theirs_source) = (device(bytes)?, Aligned::new(bytes), source.clone());
        Ok(Pair {
            ours: Routine::call(move || Ok(ours.copy_to_device(&*source).map(drop)?)),
            reference: Routine::call(move || {
                black_box(theirs.bytes()).copy_from_slice(black_box(theirs_source.as_slice().unwrap_or(&[])));
                Ok(())
            }),
        })
    })
}

fn d2h(name: &str, bytes: usize, measure: Measure) -> Bench {
    Bench::new(format!("copy/d2h/{name}"), "memcpy", measure, move || {
        let destination = Rc::new(RefCell::new(touched(bytes)));
        let (ours, mut theirs, theirs_destination) =
            (device(bytes)?, Aligned::new(bytes), destination.clone());
        Ok(Pair {
            ours: Routine::call(move || {
                Ok(ours.copy_to_host_into(destination.borrow_mut().view_mut()).map(drop)?)
            }),
            reference: Routine::call(move || {
                let mut destination = theirs_destination.borrow_mut();
                black_box(destination.as_slice_mut().unwrap_or(&mut [])).copy_from_slice(theirs.bytes());
                Ok(())
            }),
        })
    })
}

fn d2d(name: &str, bytes: usize, measure: Measure) -> Bench {
    Bench::new(format!("copy/d2d/{name}"), "memcpy", measure, move || {
        let (source, mut destination) = (device(bytes)?, device(bytes)?);
        let (mut from, mut to) = (Aligned::new(bytes), Aligned::new(bytes));
        Ok(Pair {
            ours: Routine::call(move || Ok(destination.copy_to_device(&source).map(drop)?)),
            reference: Routine::call(move || {
                black_box(to.bytes()).copy_from_slice(black_box(from.bytes()));
                Ok(())
            }),
        })
    })
}

fn fill(name: &str, bytes: usize) -> Bench {
    Bench::new(format!("fill/{name}"), "memset", throughput(bytes), move || {
        let (mut ours, mut theirs) = (device(bytes)?, Aligned::new(bytes));
        Ok(Pair {
            ours: Routine::call(move || Ok(ours.fill(7)?)),
            reference: Routine::call(move || {
                black_box(theirs.bytes()).fill(black_box(7));
                Ok(())
            }),
        })
    })
}

const SIDE: usize = 2048;

/// Every second column of a matrix of `f32`, into packed memory of the device.
fn columns_h2d() -> Bench {
    let bytes = SIDE * SIDE / 2 * 4;
    Bench::new("copy/h2d/every second column/8MiB", "ndarray assign", throughput(bytes), || {
        let matrix = Rc::new(Array2::<f32>::ones((SIDE, SIDE)));
        let mut ours = crate::device()?.device_array((SIDE, SIDE / 2))?;
        ours.fill(1.0_f32)?;
        let (mut theirs, their_matrix) = (Array2::<f32>::ones((SIDE, SIDE / 2)), matrix.clone());
        Ok(Pair {
            ours: Routine::call(move || Ok(ours.copy_to_device(&matrix.slice(s![.., ..;2])).map(drop)?)),
            reference: Routine::call(move || {
                black_box(&mut theirs).assign(&black_box(&*their_matrix).slice(s![.., ..;2]));
                Ok(())
            }),
        })
    })
}

/// Packed memory of the device into every second column of a matrix.
fn columns_d2h() -> Bench {
    let bytes = SIDE * SIDE / 2 * 4;
    Bench::new("copy/d2h/every second column/8MiB", "ndarray assign", throughput(bytes), || {
        let matrix = Rc::new(RefCell::new(Array2::<f32>::ones((SIDE, SIDE))));
        let mut ours = crate::device()?.device_array((SIDE, SIDE / 2))?;
        ours.fill(1.0_f32)?;
        let (theirs, their_matrix) = (Array2::<f32>::ones((SIDE, SIDE / 2)), matrix.clone());
        Ok(Pair {
            ours: Routine::call(move || {
                Ok(ours.copy_to_host_into(matrix.borrow_mut().slice_mut(s![.., ..;2])).map(drop)?)
            }),
            reference: Routine::call(move || {
                their_matrix.borrow_mut().slice_mut(s![.., ..;2]).assign(black_box(&theirs));
                Ok(())
            }),
        })
    })
}
