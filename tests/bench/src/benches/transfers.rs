//! Memory of the caller and odd layouts, on any device, compared with the driver on page-locked or packed memory.
//!
//! References: `pinned` is the driver's own copy of as many bytes from or to page-locked memory, `driver` its copy
//! of the caller's ordinary memory, `packed` its copy of as many bytes within the device. All of them wait. So does
//! gpumem, apart from its short uploads, which return earlier.

use crate::{Bench, Measure, Pair, Routine, Unavailable};
use anyhow::Result;
use gpumem_core::{
    AllocationRequest, Backend, CopyRegion, DeviceBuffer, DriverDevice, MemoryKind, Space, Stream as _,
    StreamOptions,
};
use gpumem_runtime::{Device, DeviceArray, PinnedArray};
use ndarray::{Array1, Array2, Ix1, Ix2, s};
use std::{cell::RefCell, rc::Rc};

/// Sizes and names of the benches of one device.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sizes {
    /// Copies compared with `pinned`.
    pub(super) long: &'static [(&'static str, usize)],
    /// Copies compared with `driver`.
    pub(super) any: &'static [(&'static str, usize)],
    /// Side of a matrix of `f32`.
    pub(super) side: usize,
}

/// The objects for measuring a GPU.
#[cfg(feature = "cuda")]
pub(super) const FULL: Sizes = Sizes {
    long: &[
        ("1MiB", 1 << 20),
        ("4MiB", 4 << 20),
        ("16MiB", 16 << 20),
        ("64MiB", 64 << 20),
        ("256MiB", 256 << 20),
        ("1GiB", 1 << 30),
    ],
    any: &[
        ("1B", 1),
        ("256B", 256),
        ("4KiB", 4 << 10),
        ("16KiB", 16 << 10),
        ("64KiB", 64 << 10),
        ("256KiB", 256 << 10),
        ("512KiB", 512 << 10),
        ("1MiB", 1 << 20),
        ("2MiB", 2 << 20),
        ("4MiB", 4 << 20),
        ("16MiB", 16 << 20),
        ("64MiB", 64 << 20),
    ],
    side: 8192,
};

pub(super) fn of<B: Backend>(selector: &str, sizes: Sizes) -> Vec<Bench> {
    let mut benches = Vec::new();
    for &(name, bytes) in sizes.long {
        benches.push(upload::<B>(selector, name, bytes, true));
        benches.push(download::<B>(selector, name, bytes, true));
        benches.push(fresh::<B>(selector, name, bytes));
    }
    for &(name, bytes) in sizes.any {
        benches.push(upload::<B>(selector, name, bytes, false));
        benches.push(download::<B>(selector, name, bytes, false));
    }
    for step in [2, 16] {
        benches.extend([
            columns::<B>(selector, sizes.side, step),
            columns_down::<B>(selector, sizes.side, step),
        ]);
    }
    // Elements in each run and from one to the next.
    let steps = [[1, 2], [8, 16], [16, 32], [16, 48], [32, 64], [64, 128]];
    benches.extend(steps.map(|step| runs::<B>(selector, sizes.side, step)));
    benches.push(turned::<B>(selector, sizes.side));
    benches.push(transpose::<B>(selector, sizes.side));
    benches
}

fn open<B: Backend>(selector: &str) -> Result<Device<B>> {
    Device::open(selector).map_err(|error| Unavailable(error.to_string()).into())
}

fn throughput(bytes: usize) -> Measure {
    Measure::Throughput { bytes: bytes as u64 }
}

/// The driver's own copies on a stream of its own: between a block of the device and another one.
struct Raw<B: Backend> {
    stream: B::Stream,
    region: CopyRegion,
    /// Kept until the end of the process, as benches are.
    _blocks: (B::Buffer, Option<B::Buffer>),
}

impl<B: Backend> Raw<B> {
    fn new(device: &Device<B>, bytes: usize, other: Other, up: bool) -> Result<Self> {
        let allocate = |kind| {
            let request = AllocationRequest { bytes, align: 256, kind };
            // SAFETY: a valid request; the contents that are read are ignored.
            unsafe { device.raw().allocate(&request) }
        };
        let block = allocate(MemoryKind::Device)?;
        let here = (block.address(), Space::Device(device.info().ordinal));
        let second = match other {
            Other::Caller(_) => None,
            Other::Pinned => Some(allocate(MemoryKind::Pinned)?),
            Other::Device => Some(allocate(MemoryKind::Device)?),
        };
        let there = match (other, &second) {
            (Other::Caller(address), _) => (address, Space::Host),
            (Other::Pinned, Some(block)) => {
                (block.host_address().map_or(0, |host| host.as_ptr() as u64), Space::Host)
            }
            (_, Some(block)) => (block.address(), here.1),
            (_, None) => here,
        };
        let (from, to) = if up { (there, here) } else { (here, there) };
        let stream = device.raw().create_stream(&StreamOptions::default())?;
        Ok(Self { stream, region: CopyRegion::linear(from, to, bytes), _blocks: (block, second) })
    }

    fn routine(self) -> Routine {
        Routine::call(move || {
            // SAFETY: both sides live as long as the routine, are as long as the region, and are used by it alone.
            unsafe { self.stream.copy(&self.region)? };
            Ok(self.stream.synchronize()?)
        })
    }
}

/// Where the other side of a raw copy lies.
#[derive(Clone, Copy)]
enum Other {
    Pinned,
    Device,
    /// The caller's memory, which the caller keeps.
    Caller(u64),
}

fn touched(bytes: usize) -> Array1<u8> {
    Array1::from_shape_fn(bytes, |index| index as u8)
}

fn upload<B: Backend>(selector: &str, name: &str, bytes: usize, pinned: bool) -> Bench {
    let selector = selector.to_owned();
    let reference = if pinned { "pinned" } else { "driver" };
    let name = format!("transfer/{selector}/h2d/pageable/{name}/vs_{reference}");
    Bench::new(name, reference, throughput(bytes), move || {
        let device = open::<B>(&selector)?;
        let source = touched(bytes);
        let theirs = source.as_ptr().expose_provenance() as u64;
        let other = if pinned { Other::Pinned } else { Other::Caller(theirs) };
        let raw = Raw::<B>::new(&device, bytes, other, true)?.routine();
        let mut array: DeviceArray<u8, Ix1, B> = device.device_array(bytes)?;
        let stream = device.default_stream()?;
        let ours = Routine::call(move || {
            array.copy_to_device(&source)?;
            Ok(stream.synchronize()?)
        });
        Ok(Pair { ours, reference: raw })
    })
}

fn download<B: Backend>(selector: &str, name: &str, bytes: usize, pinned: bool) -> Bench {
    let selector = selector.to_owned();
    let reference = if pinned { "pinned" } else { "driver" };
    let name = format!("transfer/{selector}/d2h/pageable/{name}/vs_{reference}");
    Bench::new(name, reference, throughput(bytes), move || {
        let device = open::<B>(&selector)?;
        let mut destination = touched(bytes);
        let theirs = destination.as_mut_ptr().expose_provenance() as u64;
        let other = if pinned { Other::Pinned } else { Other::Caller(theirs) };
        let raw = Raw::<B>::new(&device, bytes, other, false)?.routine();
        let array: DeviceArray<u8, Ix1, B> = device.device_array(bytes)?;
        let ours = Routine::call(move || Ok(array.copy_to_host_into(destination.view_mut()).map(drop)?));
        Ok(Pair { ours, reference: raw })
    })
}

/// Into a new array, whose pages have not been touched, and which is freed each time.
fn fresh<B: Backend>(selector: &str, name: &str, bytes: usize) -> Bench {
    let selector = selector.to_owned();
    let name = format!("transfer/{selector}/d2h/untouched/{name}/vs_pinned");
    Bench::new(name, "pinned", throughput(bytes), move || {
        let device = open::<B>(&selector)?;
        let raw = Raw::<B>::new(&device, bytes, Other::Pinned, false)?.routine();
        let array: DeviceArray<u8, Ix1, B> = device.device_array(bytes)?;
        Ok(Pair { ours: Routine::call(move || Ok(array.copy_to_host()?)), reference: raw })
    })
}

/// Every `step`th column of an ordinary matrix of `f32`.
fn columns<B: Backend>(selector: &str, side: usize, step: usize) -> Bench {
    let selector = selector.to_owned();
    let bytes = side * side / step * 4;
    let name = format!("transfer/{selector}/h2d/pageable/one_column_of_{step}_of_{side}x{side}/vs_pinned");
    Bench::new(name, "pinned", throughput(bytes), move || {
        let device = open::<B>(&selector)?;
        let raw = Raw::<B>::new(&device, bytes, Other::Pinned, true)?.routine();
        let matrix = Array2::<f32>::ones((side, side));
        let mut array: DeviceArray<f32, Ix2, B> = device.device_array((side, side / step))?;
        let ours = Routine::call(move || {
            Ok(array.copy_to_device(&matrix.slice(s![.., ..;step as isize])).map(drop)?)
        });
        Ok(Pair { ours, reference: raw })
    })
}

fn columns_down<B: Backend>(selector: &str, side: usize, step: usize) -> Bench {
    let selector = selector.to_owned();
    let bytes = side * side / step * 4;
    let name = format!("transfer/{selector}/d2h/pageable/one_column_of_{step}_of_{side}x{side}/vs_pinned");
    Bench::new(name, "pinned", throughput(bytes), move || {
        let device = open::<B>(&selector)?;
        let raw = Raw::<B>::new(&device, bytes, Other::Pinned, false)?.routine();
        let matrix = Rc::new(RefCell::new(Array2::<f32>::ones((side, side))));
        let array: DeviceArray<f32, Ix2, B> = device.device_array((side, side / step))?;
        let ours = Routine::call(move || {
            let mut matrix = matrix.borrow_mut();
            Ok(array.copy_to_host_into(matrix.slice_mut(s![.., ..;step as isize])).map(drop)?)
        });
        Ok(Pair { ours, reference: raw })
    })
}

/// Runs of `run` elements in steps of `pitch`, from page-locked memory.
fn runs<B: Backend>(selector: &str, side: usize, [run, pitch]: [usize; 2]) -> Bench {
    let rows = side * side / (2 * run);
    let what = format!("runs_of_{}B_in_{}B_of_{side}x{side}", run * 4, pitch * 4);
    page_locked::<B>(selector, &what, (rows, run), [pitch as isize, 1])
}

/// Column-major in page-locked memory to row-major on the device.
fn turned<B: Backend>(selector: &str, side: usize) -> Bench {
    page_locked::<B>(selector, &format!("f_to_c_order_{side}x{side}"), (side, side), [1, side as isize])
}

/// An array of page-locked memory with these steps of its axes, in elements, to a packed one on the device.
fn page_locked<B: Backend>(
    selector: &str,
    what: &str,
    (rows, columns): (usize, usize),
    steps: [isize; 2],
) -> Bench {
    let selector = selector.to_owned();
    let bytes = rows * columns * 4;
    Bench::new(
        format!("transfer/{selector}/h2d/pinned/{what}/vs_pinned"),
        "pinned",
        throughput(bytes),
        move || {
            let device = open::<B>(&selector)?;
            let raw = Raw::<B>::new(&device, bytes, Other::Pinned, true)?.routine();
            let spec = gpumem_runtime::ArraySpec::new((rows, columns)).strides(&steps.map(|step| step * 4));
            let mut pinned: PinnedArray<f32, Ix2, B> = device.pinned_array(spec)?;
            // Written before, as any program's data is.
            pinned.view_mut()?.fill(1.0);
            let mut array: DeviceArray<f32, Ix2, B> = device.device_array((rows, columns))?;
            let stream = device.stream()?;
            let ours = Routine::call(move || {
                stream.copy_to_device(&mut array, &pinned)?;
                Ok(stream.synchronize()?)
            });
            Ok(Pair { ours, reference: raw })
        },
    )
}

/// Row-major to column-major within the device.
fn transpose<B: Backend>(selector: &str, side: usize) -> Bench {
    let selector = selector.to_owned();
    let bytes = side * side * 4;
    let name = format!("transfer/{selector}/d2d/c_to_f_order_{side}x{side}/vs_packed");
    Bench::new(name, "packed", throughput(bytes), move || {
        let device = open::<B>(&selector)?;
        let raw = Raw::<B>::new(&device, bytes, Other::Device, true)?.routine();
        let source: DeviceArray<f32, Ix2, B> = device.device_array((side, side))?;
        let mut array: DeviceArray<f32, Ix2, B> = device.device_array((side, side))?;
        let stream = device.stream()?;
        let ours = Routine::call(move || {
            stream.copy_to_device(&mut array, &source.t())?;
            Ok(stream.synchronize()?)
        });
        Ok(Pair { ours, reference: raw })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Effort, measure};
    use gpumem_host::Host;

    /// On the host they show nothing, but they run.
    #[test]
    fn every_bench_runs() {
        let sizes = Sizes { long: &[("64KiB", 64 << 10)], any: &[("1B", 1)], side: 64 };
        for bench in of::<Host>("host", sizes) {
            let row = measure(bench, Effort::QUICK).unwrap();
            assert!(row.ratio.is_some_and(|ratio| ratio > 0.0), "{row:?}");
        }
    }
}
