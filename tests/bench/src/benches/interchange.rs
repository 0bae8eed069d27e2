//! The cost of importing foreign memory and of lending memory: descriptors, no copies. The clock runs during the calls,
//! and stops while their work is waited for.

use crate::{Bench, Measure, Pair, Routine};
use anyhow::{Result, anyhow};
use gpumem_core::{
    Backend, DlpackDevice, DriverDevice, EventOptions, MemoryKind, Stream as _, StreamOptions,
};
use gpumem_host::Host;
use gpumem_runtime::{
    Device, DeviceArray, DlpackTensor, ImportedArray, InterchangeStream, Stream,
    dlpack::abi::DLManagedTensorVersioned,
};
use ndarray::Ix2;
use std::{
    any::Any,
    hint::black_box,
    ptr::NonNull,
    rc::Rc,
    time::{Duration, Instant},
};

/// Calls between two waits: too few to fill a driver's queue, in which case a call would wait for the device.
const BATCH: u64 = 64;

/// A body with the caller's clock, run as the library is to find the thread.
pub(super) type Around = Box<dyn FnMut(&mut dyn FnMut() -> Result<Duration>) -> Result<Duration>>;

type Call<B> = Box<dyn FnMut(&mut Subject<B>) -> Result<()>>;

/// The parts that depend on the backend.
pub(super) struct Parts<B: Backend> {
    pub(super) device: Device<B>,
    /// A foreign stream, and its owner.
    pub(super) foreign: (InterchangeStream, Rc<dyn Any>),
    /// The least cost of ordering by events: one recorded, one waited for.
    pub(super) edge: Routine,
    pub(super) around: Around,
}

pub(super) fn all() -> Vec<Bench> {
    of("interchange", "", "an event and a wait", Rc::new(host))
}

fn host() -> Result<Parts<Host>> {
    let device = Device::<Host>::open("host")?;
    let stream = || device.raw().create_stream(&StreamOptions::default());
    let (foreign, one, other) = (stream()?, stream()?, stream()?);
    let event = device.raw().create_event(EventOptions::default())?;
    let handle = InterchangeStream::Handle(foreign.raw());
    let edge = Routine::call(move || {
        one.record(&event)?;
        Ok(other.wait(&event)?)
    });
    Ok(Parts { device, foreign: (handle, Rc::new(foreign)), edge, around: Box::new(|body| body()) })
}

/// The rows of a backend. Their names begin with `group` and end with `how`.
pub(super) fn of<B: Backend>(
    group: &str,
    how: &str,
    reference: &'static str,
    parts: Rc<dyn Fn() -> Result<Parts<B>>>,
) -> Vec<Bench> {
    let row = |name: &str, make: fn(&Subject<B>) -> Result<Call<B>>| {
        let parts = parts.clone();
        Bench::new(format!("{group}/{name}{how}"), reference, Measure::Latency, move || {
            let Parts { device, foreign: (foreign, alive), edge, mut around } = parts()?;
            let (stream, array) = (device.stream()?, device.device_array::<f32, _>((64, 64))?);
            device.synchronize()?;
            let mut subject = Subject { device, stream, foreign, array, _alive: alive };
            let mut call = make(&subject)?;
            let ours = Routine::clocked(move |calls| around(&mut || batches(calls, &mut subject, &mut call)));
            Ok(Pair { ours, reference: edge })
        })
    };
    vec![
        row("lend/cuda_array", |_| {
            Ok(Box::new(|of| {
                black_box(of.array.lend(&of.stream)?.describe());
                Ok(())
            }))
        }),
        row("lend/foreign_stream", |_| {
            Ok(Box::new(|of| {
                // SAFETY: the stream lives as long as the subject.
                black_box(unsafe { of.array.lend_to_handle(of.foreign)? }.describe());
                Ok(())
            }))
        }),
        row("lend_mut/foreign_stream", |_| {
            Ok(Box::new(|of| {
                // SAFETY: as above.
                black_box(unsafe { of.array.lend_mut_to_handle(of.foreign)? }.describe());
                Ok(())
            }))
        }),
        row("lend/dlpack", |_| {
            Ok(Box::new(|of| {
                black_box(of.tensor()?);
                Ok(())
            }))
        }),
        row("dlpack_round_trip", |_| Ok(Box::new(|of| of.tensor_and_back(false)))),
        row("dlpack_round_trip_with_stream", |_| Ok(Box::new(|of| of.tensor_and_back(true)))),
        row("import_dlpack", |of| of.import_tensor(false)),
        row("import_dlpack_with_stream", |of| of.import_tensor(true)),
        row("import_cai", |of| of.import(false)),
        row("import_cai_with_stream", |of| of.import(true)),
    ]
}

/// The objects that the calls of a row use.
struct Subject<B: Backend> {
    device: Device<B>,
    stream: Stream<B>,
    foreign: InterchangeStream,
    array: DeviceArray<f32, Ix2, B>,
    _alive: Rc<dyn Any>,
}

impl<B: Backend> Subject<B> {
    /// A DLPack tensor. Readers of DLPack's host memory know no streams.
    fn tensor(&self) -> Result<DlpackTensor> {
        let place = self.device.raw().dlpack_device(MemoryKind::Device);
        let on_host = place.is_some_and(|place| place.device_type == DlpackDevice::CPU);
        let loan = if on_host { self.array.lend_to_host()? } else { self.array.lend(&self.stream)? };
        Ok(loan.into_dlpack()?)
    }

    fn tensor_and_back(&self, waits: bool) -> Result<()> {
        let stream = waits.then_some(&self.stream);
        let taken: ImportedArray<f32, Ix2, B> = self.device.from_dlpack(self.tensor()?, stream)?;
        black_box(taken.len());
        Ok(())
    }

    /// A tensor imported and dropped. Its producer does no work, so that making and deleting the tensor is not
    /// measured.
    fn import_tensor(&self, waits: bool) -> Result<Call<B>> {
        let kept = Rc::new(Kept::new(self.tensor()?)?);
        Ok(Box::new(move |of| {
            let stream = waits.then_some(&of.stream);
            let taken: ImportedArray<f32, Ix2, B> = of.device.from_dlpack(kept.tensor(), stream)?;
            black_box(taken.len());
            Ok(())
        }))
    }

    /// A descriptor imported as an array and dropped, with and without a foreign stream to wait for.
    fn import(&self, waits: bool) -> Result<Call<B>> {
        let mut descriptor = self.array.lend(&self.stream)?.describe();
        descriptor.stream = waits.then_some(self.foreign.number());
        Ok(Box::new(move |of| {
            // SAFETY: the array and the stream outlive the import.
            let taken: ImportedArray<f32, Ix2, B> =
                unsafe { of.device.from_cuda_array_interface(&descriptor, ())? };
            black_box(taken.len());
            Ok(())
        }))
    }
}

/// A tensor that is exported again and again, by a producer whose deleter does nothing.
struct Kept {
    tensor: NonNull<DLManagedTensorVersioned>,
    deleter: Option<unsafe extern "C" fn(*mut DLManagedTensorVersioned)>,
}

impl Kept {
    fn new(tensor: DlpackTensor) -> Result<Self> {
        unsafe extern "C" fn nothing(_: *mut DLManagedTensorVersioned) {}
        let tensor = tensor.into_versioned().map_err(|_| anyhow!("a tensor of the older form"))?;
        // SAFETY: the tensor is ours until its deleter is called, which `drop` does.
        let deleter = unsafe { (*tensor.as_ptr()).deleter.replace(nothing) };
        Ok(Self { tensor, deleter })
    }

    fn tensor(&self) -> DlpackTensor {
        // SAFETY: valid while this lives, and its exports are dropped before; the deleter may be called for each.
        unsafe { DlpackTensor::from_versioned(self.tensor) }
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        if let Some(deleter) = self.deleter {
            // SAFETY: the tensor's own deleter, once.
            unsafe { deleter(self.tensor.as_ptr()) };
        }
    }
}

fn batches<B: Backend>(
    calls: u64,
    subject: &mut Subject<B>,
    call: &mut dyn FnMut(&mut Subject<B>) -> Result<()>,
) -> Result<Duration> {
    let (mut left, mut spent) = (calls, Duration::ZERO);
    while left > 0 {
        let now = left.min(BATCH);
        let start = Instant::now();
        for _ in 0..now {
            call(subject)?;
        }
        spent += start.elapsed();
        subject.device.raw().synchronize()?;
        left -= now;
    }
    Ok(spent)
}
