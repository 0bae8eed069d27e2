//! Blocking copies, compared with the same copy without gpumem; on a GPU, with a copy by the processor in its own
//! memory.
//!
//! All memory is touched before it is measured. Both sides share the caller's block, and on the host the device's too: which
//! pages two blocks lie on decides how they share the caches, by half of the time at some sizes.

use crate::{Bench, Measure, Pair, Routine};
use gpumem::DeviceArray;
use gpumem_core::Backend as _;
use gpumem_host::Host;
use ndarray::{Array1, Array2, Ix1, s};
use std::{cell::RefCell, hint::black_box, rc::Rc};

const SIZES: [(&str, usize); 6] = [
    ("64KiB", 64 << 10),
    ("256KiB", 256 << 10),
    ("1MiB", 1 << 20),
    ("16MiB", 16 << 20),
    ("64MiB", 64 << 20),
    ("256MiB", 256 << 20),
];

/// Copies so short that their overhead counts: reported in nanoseconds, not as a bandwidth.
const SHORT: [(&str, usize); 3] = [("64B", 64), ("4KiB", 4 << 10), ("16KiB", 16 << 10)];

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

fn shared(bytes: usize) -> anyhow::Result<SharedVector> {
    let mut array = crate::device()?.device_array(bytes)?;
    array.fill(1)?;
    Ok(Rc::new(RefCell::new(array)))
}

/// An array that both sides of a bench have.
type SharedVector = Rc<RefCell<Vector>>;

/// The reference's stand-in for a device's memory.
enum Block {
    /// The memory of an array on the host, and where that is.
    Shared(SharedVector, *mut u8),
    /// A block of host memory as the counterpart of an array on a GPU, aligned to a cache line.
    Own(Vec<u8>, usize),
}

impl Block {
    const LINE: usize = 64;

    fn beside(array: &SharedVector) -> anyhow::Result<Self> {
        let of = array.borrow();
        if of.device()?.info().backend == Host::NAME {
            let start = std::ptr::with_exposed_provenance_mut(of.address().try_into()?);
            return Ok(Self::Shared(array.clone(), start));
        }
        let block = vec![1; of.len() + Self::LINE];
        let start = block.as_ptr().align_offset(Self::LINE);
        Ok(Self::Own(block, start))
    }

    fn with<R>(&mut self, act: impl FnOnce(&mut [u8]) -> R) -> R {
        match self {
            Self::Shared(array, start) => {
                let array = array.borrow_mut();
                // SAFETY: all bytes of the array, which have been written. There is no other reference to it, and
                // nothing that was enqueued is left: every call of the other side has blocked.
                act(unsafe { std::slice::from_raw_parts_mut(*start, array.len()) })
            }
            Self::Own(block, start) => {
                let end = block.len() - Self::LINE + *start;
                act(&mut block[*start..end])
            }
        }
    }
}

fn h2d(name: &str, bytes: usize, measure: Measure) -> Bench {
    Bench::new(format!("copy/h2d/{name}"), "memcpy", measure, move || {
        let (source, array) = (Rc::new(touched(bytes)), shared(bytes)?);
        let (mut theirs, theirs_source) = (Block::beside(&array)?, source.clone());
        Ok(Pair {
            ours: Routine::call(move || Ok(array.borrow_mut().copy_to_device(&*source).map(drop)?)),
            reference: Routine::call(move || {
                let source = black_box(theirs_source.as_slice().unwrap_or(&[]));
                theirs.with(|to| black_box(to).copy_from_slice(source));
                Ok(())
            }),
        })
    })
}

fn d2h(name: &str, bytes: usize, measure: Measure) -> Bench {
    Bench::new(format!("copy/d2h/{name}"), "memcpy", measure, move || {
        let (destination, array) = (Rc::new(RefCell::new(touched(bytes))), shared(bytes)?);
        let (mut theirs, theirs_destination) = (Block::beside(&array)?, destination.clone());
        Ok(Pair {
            ours: Routine::call(move || {
                Ok(array.borrow().copy_to_host_into(destination.borrow_mut().view_mut()).map(drop)?)
            }),
            reference: Routine::call(move || {
                let mut destination = theirs_destination.borrow_mut();
                let to = black_box(destination.as_slice_mut().unwrap_or(&mut []));
                theirs.with(|from| to.copy_from_slice(black_box(from)));
                Ok(())
            }),
        })
    })
}

fn d2d(name: &str, bytes: usize, measure: Measure) -> Bench {
    Bench::new(format!("copy/d2d/{name}"), "memcpy", measure, move || {
        let (source, destination) = (shared(bytes)?, shared(bytes)?);
        let (mut from, mut to) = (Block::beside(&source)?, Block::beside(&destination)?);
        Ok(Pair {
            ours: Routine::call(move || {
                Ok(destination.borrow_mut().copy_to_device(&*source.borrow()).map(drop)?)
            }),
            reference: Routine::call(move || {
                from.with(|from| to.with(|to| black_box(to).copy_from_slice(black_box(from))));
                Ok(())
            }),
        })
    })
}

fn fill(name: &str, bytes: usize) -> Bench {
    Bench::new(format!("fill/{name}"), "memset", throughput(bytes), move || {
        let array = shared(bytes)?;
        let mut theirs = Block::beside(&array)?;
        Ok(Pair {
            ours: Routine::call(move || Ok(array.borrow_mut().fill(7)?)),
            reference: Routine::call(move || {
                theirs.with(|bytes| black_box(bytes).fill(black_box(7)));
                Ok(())
            }),
        })
    })
}

const SIDE: usize = 2048;

/// Every second column of a matrix of `f32`, into packed memory of the device.
fn columns_h2d() -> Bench {
    let bytes = SIDE * SIDE / 2 * 4;
    Bench::new("copy/h2d/every_second_column/8MiB", "ndarray assign", throughput(bytes), || {
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
    Bench::new("copy/d2h/every_second_column/8MiB", "ndarray assign", throughput(bytes), || {
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
