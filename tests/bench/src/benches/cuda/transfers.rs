//! Copies and fills. Both sides use the same memory, because where a block lies shows in its speed.

use super::{
    KIB, MIB, device,
    raw::{Context, check},
    size,
};
use crate::{Bench, Measure, Pair, Routine};
use anyhow::Result;
use cudarc::driver::sys;
use gpumem_core::Element;
use gpumem_cuda::Cuda;
use gpumem_runtime::{Device, DeviceArray, PinnedArray, Stream};
use ndarray::{Array1, Ix1};
use std::{cell::RefCell, rc::Rc};

/// Copies of pageable memory, compared with the driver's blocking calls.
const PAGEABLE: [usize; 16] = [
    1,
    256,
    4 * KIB,
    16 * KIB,
    32 * KIB,
    64 * KIB,
    128 * KIB,
    256 * KIB,
    512 * KIB,
    MIB,
    2 * MIB,
    4 * MIB,
    8 * MIB,
    16 * MIB,
    64 * MIB,
    256 * MIB,
];

pub(super) fn all() -> Vec<Bench> {
    let mut benches = Vec::new();
    for bytes in [4 * KIB, 64 * KIB, MIB, 16 * MIB, 64 * MIB, 512 * MIB] {
        benches.extend([pinned_up(bytes), pinned_down(bytes)]);
    }
    for bytes in PAGEABLE {
        benches.extend([pageable_up(bytes), pageable_down(bytes)]);
    }
    for bytes in [4 * KIB, MIB, 64 * MIB, 512 * MIB] {
        benches.extend([within(bytes), fill("u8", bytes, 7_u8), fill("u32", bytes, 7_u32)]);
    }
    benches
}

type Shared<T> = Rc<RefCell<T>>;
type Page = PinnedArray<u8, Ix1, Cuda>;

fn shared<T>(value: T) -> Shared<T> {
    Rc::new(RefCell::new(value))
}

fn throughput(bytes: usize) -> Measure {
    Measure::Throughput { bytes: bytes as u64 }
}

/// A device array, its device, a stream of gpumem and the driver's context.
struct Bed {
    device: Device<Cuda>,
    array: Shared<DeviceArray<u8, Ix1, Cuda>>,
    address: u64,
    stream: Stream<Cuda>,
    context: Context,
}

impl Bed {
    fn new(bytes: usize) -> Result<Self> {
        let device = device()?;
        let array: DeviceArray<u8, Ix1, Cuda> = device.device_array(bytes)?;
        let (address, stream, context) = (array.address(), device.stream()?, Context::of(&device));
        Ok(Self { array: shared(array), address, stream, context, device })
    }

    /// Page-locked memory whose pages are there.
    fn pinned(&self, bytes: usize) -> Result<(Shared<Page>, *mut u8)> {
        let mut array: Page = self.device.pinned_array(bytes)?;
        let pointer = {
            let mut view = array.view_mut()?;
            view.fill(1);
            view.as_mut_ptr()
        };
        Ok((shared(array), pointer))
    }
}

fn pinned_up(bytes: usize) -> Bench {
    let name = format!("cuda/pinned/h2d/{}", size(bytes));
    Bench::new(name, "cuMemcpyHtoDAsync, cuStreamSynchronize", throughput(bytes), move || {
        let bed = Bed::new(bytes)?;
        let (pinned, pointer) = bed.pinned(bytes)?;
        let (array, stream, raw) = (bed.array.clone(), bed.stream.clone(), bed.context.stream()?);
        let (held, held_array, source) = (pinned.clone(), bed.array.clone(), pinned);
        let ours = Routine::batch(move |calls| {
            for _ in 0..calls {
                stream.copy_to_device(&mut *array.borrow_mut(), &*source.borrow())?;
                stream.synchronize()?;
            }
            Ok(())
        });
        let reference = Routine::clocked(move |calls| {
            let _alive = (&held, &held_array);
            bed.context.time(|| {
                for _ in 0..calls {
                    // SAFETY: both blocks are alive and as long as the copy; gpumem has no pending work on them.
                    let status =
                        unsafe { sys::cuMemcpyHtoDAsync_v2(bed.address, pointer.cast(), bytes, raw.raw) };
                    check(status, "cuMemcpyHtoDAsync")?;
                    raw.synchronize()?;
                }
                Ok(())
            })
        });
        Ok(Pair { ours, reference })
    })
}

fn pinned_down(bytes: usize) -> Bench {
    let name = format!("cuda/pinned/d2h/{}", size(bytes));
    Bench::new(name, "cuMemcpyDtoHAsync, cuStreamSynchronize", throughput(bytes), move || {
        let bed = Bed::new(bytes)?;
        let (pinned, pointer) = bed.pinned(bytes)?;
        let (array, stream, raw) = (bed.array.clone(), bed.stream.clone(), bed.context.stream()?);
        let (held, held_array, destination) = (pinned.clone(), bed.array.clone(), pinned);
        let ours = Routine::batch(move |calls| {
            for _ in 0..calls {
                stream.copy_to_host_into(&*array.borrow(), &mut *destination.borrow_mut())?;
                stream.synchronize()?;
            }
            Ok(())
        });
        let reference = Routine::clocked(move |calls| {
            let _alive = (&held, &held_array);
            bed.context.time(|| {
                for _ in 0..calls {
                    // SAFETY: both blocks are alive and as long as the copy; gpumem has no pending work on them.
                    let status =
                        unsafe { sys::cuMemcpyDtoHAsync_v2(pointer.cast(), bed.address, bytes, raw.raw) };
                    check(status, "cuMemcpyDtoHAsync")?;
                    raw.synchronize()?;
                }
                Ok(())
            })
        });
        Ok(Pair { ours, reference })
    })
}

/// Both return when the elements have left the caller's memory, and are on their way if they are few: of `cuMemcpyHtoD` the
/// driver's manual says so in "API synchronization behavior".
fn pageable_up(bytes: usize) -> Bench {
    let name = format!("cuda/pageable/h2d/{}", size(bytes));
    Bench::new(name, "cuMemcpyHtoD", throughput(bytes), move || {
        let bed = Bed::new(bytes)?;
        let host = Rc::new(Array1::from_elem(bytes, 1_u8));
        let (array, held_array, source) = (bed.array.clone(), bed.array.clone(), host.clone());
        let ours = Routine::call(move || {
            Ok(array.borrow_mut().copy_to_device(&*source).map(|array| array.len())?)
        });
        let reference = Routine::clocked(move |calls| {
            let _alive = &held_array;
            bed.context.time(|| {
                for _ in 0..calls {
                    // SAFETY: both blocks are alive and as long as the copy; gpumem has no pending work on them.
                    let status = unsafe { sys::cuMemcpyHtoD_v2(bed.address, host.as_ptr().cast(), bytes) };
                    check(status, "cuMemcpyHtoD")?;
                }
                Ok(())
            })
        });
        Ok(Pair { ours, reference })
    })
}

fn pageable_down(bytes: usize) -> Bench {
    let name = format!("cuda/pageable/d2h/{}", size(bytes));
    Bench::new(name, "cuMemcpyDtoH", throughput(bytes), move || {
        let bed = Bed::new(bytes)?;
        let host = shared(Array1::from_elem(bytes, 1_u8));
        let (array, held_array, destination) = (bed.array.clone(), bed.array.clone(), host.clone());
        let ours = Routine::call(move || {
            Ok(array.borrow().copy_to_host_into(destination.borrow_mut().view_mut()).map(drop)?)
        });
        let reference = Routine::clocked(move |calls| {
            let _alive = &held_array;
            bed.context.time(|| {
                for _ in 0..calls {
                    let pointer = host.borrow_mut().as_mut_ptr();
                    // SAFETY: both blocks are alive and as long as the copy; gpumem has no pending work on them.
                    let status = unsafe { sys::cuMemcpyDtoH_v2(pointer.cast(), bed.address, bytes) };
                    check(status, "cuMemcpyDtoH")?;
                }
                Ok(())
            })
        });
        Ok(Pair { ours, reference })
    })
}

/// From one block of the device to another.
fn within(bytes: usize) -> Bench {
    let name = format!("cuda/d2d/{}", size(bytes));
    Bench::new(name, "cuMemcpyDtoDAsync, cuStreamSynchronize", throughput(bytes), move || {
        let (bed, from) = (Bed::new(bytes)?, Bed::new(bytes)?);
        let (array, stream, raw) = (bed.array.clone(), bed.stream.clone(), bed.context.stream()?);
        let (source, held_array) = (from.array.clone(), bed.array.clone());
        let ours = Routine::batch(move |calls| {
            for _ in 0..calls {
                stream.copy_to_device(&mut *array.borrow_mut(), &*source.borrow())?;
                stream.synchronize()?;
            }
            Ok(())
        });
        let reference = Routine::clocked(move |calls| {
            let _alive = &held_array;
            bed.context.time(|| {
                for _ in 0..calls {
                    // SAFETY: both blocks are alive and as long as the copy; gpumem has no pending work on them.
                    let status =
                        unsafe { sys::cuMemcpyDtoDAsync_v2(bed.address, from.address, bytes, raw.raw) };
                    check(status, "cuMemcpyDtoDAsync")?;
                    raw.synchronize()?;
                }
                Ok(())
            })
        });
        Ok(Pair { ours, reference })
    })
}

/// One fill of one element's size.
fn fill<T: Element + Into<u32>>(element: &str, bytes: usize, value: T) -> Bench {
    let name = format!("cuda/fill/{element}/{}", size(bytes));
    let reference_name = match size_of::<T>() {
        1 => "cuMemsetD8Async, cuStreamSynchronize",
        _ => "cuMemsetD32Async, cuStreamSynchronize",
    };
    Bench::new(name, reference_name, throughput(bytes), move || {
        let device = device()?;
        let count = bytes / size_of::<T>();
        let array = shared(device.device_array::<T, _>(count)?);
        let (address, held_array) = (array.borrow().address(), array.clone());
        let (stream, context) = (device.stream()?, Context::of(&device));
        let raw = context.stream()?;
        let ours = Routine::batch(move |calls| {
            for _ in 0..calls {
                stream.fill(&mut *array.borrow_mut(), value)?;
                stream.synchronize()?;
            }
            Ok(())
        });
        let reference = Routine::clocked(move |calls| {
            let (_alive, pattern) = (&held_array, value.into());
            context.time(|| {
                for _ in 0..calls {
                    // SAFETY: the block is alive and as long as the fill; gpumem has no pending work on them.
                    let status = unsafe {
                        match size_of::<T>() {
                            1 => sys::cuMemsetD8Async(address, pattern as u8, count, raw.raw),
                            _ => sys::cuMemsetD32Async(address, pattern, count, raw.raw),
                        }
                    };
                    check(status, "cuMemsetAsync")?;
                    raw.synchronize()?;
                }
                Ok(())
            })
        });
        Ok(Pair { ours, reference })
    })
}
