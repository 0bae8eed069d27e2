//! The table: what a graph does with each call.

use super::{Case, LEN, Pinned, Row};
use Row::{Recorded, Refused, Returned};
use gpumem::{
    collectives::{Communicator, CommunicatorId, InPlace, Options, Sum},
    ops::{self, ArrayOps as _, Philox},
};
use gpumem_core::{
    Attach, HostFunction, LaunchConfig, Location, MappedOptions, RawStream, Result, StreamOptions,
};
use gpumem_host::Host;
use gpumem_kernel::{
    KernelDef, Parameters as _, Slice, SliceMut, UntypedArguments, UntypedKernelDef, WorkItemIds,
    config_for_items,
};
use gpumem_runtime::{
    ArrayBase, Chunks, DataFile, DeviceArray, FileView, GraphMemory, InterchangeStream, Order, SpillManager,
    SpillOptions, Spillable, Storage,
    memory::PoolOptions,
    trace::{RecorderOptions, ReplayOptions, Trace},
    writes,
};
use ndarray::{Array1, Dimension, Ix0, Ix1, s};
use std::{
    ops::ControlFlow,
    pin::pin,
    task::{Context, Poll, Waker},
};

pub(crate) type Parameters = (Slice<f32>, SliceMut<f32>);

/// `y = 2 * x`.
pub(crate) fn doubled() -> KernelDef<Parameters> {
    // SAFETY: each work-item writes its own element.
    unsafe { KernelDef::<Parameters>::new("doubled") }.host_loop(
        |ids: &WorkItemIds<'_>, (x, y): &Parameters| {
            y.set(ids.global_id(0), 2.0 * x.get(ids.global_id(0)));
        },
    )
}

/// As [`doubled`], for the first element, without the types.
fn untyped() -> UntypedKernelDef {
    let body = |launch: gpumem_core::HostLaunch<'_>| {
        let address = |at| {
            launch.arguments.get(at).and_then(|bytes| bytes.first_chunk()).map(|one| u64::from_ne_bytes(*one))
        };
        let (Some(x), Some(y)) = (address(0), address(1)) else { return Err("no arguments".to_owned()) };
        // SAFETY: they begin with the addresses of arrays, which the launch reads and writes.
        unsafe { *(y as *mut f32) = 2.0 * *(x as *const f32) };
        Ok(())
    };
    // SAFETY: the function takes these parameters.
    unsafe { UntypedKernelDef::new("untyped", Parameters::list()) }.host_body(HostFunction::new(body))
}

#[gpumem::device]
fn squared(x: f32) -> f32 {
    x * x
}

#[gpumem::device]
fn product(x: f32, y: f32) -> f32 {
    x * y
}

fn grid() -> LaunchConfig {
    config_for_items([LEN, 1, 1], [LEN as u32, 1, 1])
}

impl Case<'_, '_> {
    /// Writes a result to the first elements of `y`, as numbers of its type.
    fn put<S, D>(&mut self, result: &ArrayBase<S, D>) -> Result<()>
    where
        S: Storage<Backend = Host, Elem: gpumem::ops::CastTo<f32>>,
        D: Dimension,
    {
        let numbers = result.on(self.stream).cast::<f32>()?;
        let numbers = numbers.reshape(numbers.len())?;
        self.stream.copy_to_device(&mut self.y.slice_mut(s![..numbers.len()])?, &numbers)
    }

    /// A page-locked array of the recording.
    fn pinned(&self) -> Result<Pinned> {
        self.stream.device().pinned_array::<f32, _>(LEN)
    }

    fn uninit(&self) -> Result<gpumem_runtime::UninitArray<f32, Ix1, Host>> {
        self.stream.uninit_array::<f32, _>(LEN)
    }

    fn device(&self) -> &super::Device {
        self.stream.device()
    }

    /// An array of a manager, from outside.
    fn spilled(&self, spilling: &SpillManager<Host>) -> Result<Spillable<f32, Ix1, Host>> {
        spilling.add(self.outside.device.to_device(&[1.0_f32; LEN])?).map_err(|(_, error)| error)
    }

    /// A trace of one allocation.
    fn trace(&self) -> Result<Trace> {
        let device = &self.outside.device;
        let recording = device.record_memory(RecorderOptions::default())?;
        drop(device.device_array::<f32, _>(LEN)?);
        Ok(recording.finish())
    }

    /// Calls `use_it` with the stream and an array that has left the device.
    fn with_spilled(
        self,
        use_it: impl FnOnce(&super::Stream, Spillable<f32, Ix1, Host>) -> Result<()>,
    ) -> Result<()> {
        let array = self.spilled(&SpillManager::new(&self.outside.device, SpillOptions::new())?)?;
        assert!(array.evict()?);
        use_it(self.stream, array)
    }
}

pub(crate) fn rows() -> Vec<(&'static str, Row)> {
    [streams(), devices(), arrays(), host_arrays(), kernels(), operations(), ranks()]
        .into_iter()
        .flatten()
        .collect()
}

fn streams() -> Vec<(&'static str, Row)> {
    vec![
        ("Stream::fill", Recorded(|mut c| c.stream.fill(&mut c.y, 3.0))),
        ("Stream::assign", Recorded(|mut c| c.stream.assign(&mut c.y, &c.x.slice(s![..1])?))),
        ("Stream::copy_to_device", Recorded(|mut c| c.stream.copy_to_device(&mut c.y, &c.x))),
        ("Stream::copy_to_host", Returned(|c| c.stream.copy_to_host(&c.x))),
        (
            "Stream::copy_to_host_into",
            Returned(|c| {
                let mut host = c.pinned()?;
                c.stream.copy_to_host_into(&c.x, &mut host)?;
                Ok(host)
            }),
        ),
        (
            "Stream::device_array",
            Recorded(|mut c| {
                let zeros = c.stream.device_array::<f32, _>(LEN)?;
                c.put(&zeros)
            }),
        ),
        (
            "Stream::to_device",
            Recorded(|mut c| {
                let both = (c.stream.to_device(&[5.0_f32, 6.0])?, c.stream.to_device(&c.x)?);
                c.put(&both.1)?;
                c.put(&both.0)
            }),
        ),
        (
            "Stream::to_device_all",
            Recorded(|mut c| {
                let file = tempfile::NamedTempFile::new().unwrap();
                std::fs::write(file.path(), [3, 4, 5]).unwrap();
                let view = FileView::<u8, _>::new(&DataFile::open(file.path())?, 1, 2)?;
                c.put(&c.stream.to_device_all(&[view])?[0].view())
            }),
        ),
        (
            "Stream::to_device_all_with_progress",
            Recorded(|mut c| {
                let file = tempfile::NamedTempFile::new().unwrap();
                std::fs::write(file.path(), [3, 4, 5]).unwrap();
                let view = FileView::<u8, _>::new(&DataFile::open(file.path())?, 1, 2)?;
                let all = |_| std::ops::ControlFlow::Continue(());
                c.put(&c.stream.to_device_all_with_progress(&[view], all)?[0].view())
            }),
        ),
        (
            "Stream::uninit_array",
            Recorded(|mut c| {
                // SAFETY: the fill writes every element.
                let mut array = unsafe { c.uninit()?.assume_init() };
                c.stream.fill(&mut array, 7.0)?;
                c.put(&array)
            }),
        ),
        ("Stream::add_callback", Refused(|c| c.stream.add_callback(|_| {}))),
        (
            "Stream::completed",
            Refused(|c| match pin!(c.stream.completed()).poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(result) => result,
                Poll::Pending => Ok(()),
            }),
        ),
        ("Stream::query", Refused(|c| c.stream.query().map(drop))),
        ("Stream::raw_handle", Refused(|c| c.stream.raw_handle().map(drop))),
        ("Stream::record_event", Refused(|c| c.stream.record_event().map(drop))),
        ("Stream::record_timed_event", Refused(|c| c.stream.record_timed_event().map(drop))),
        ("Stream::synchronize", Refused(|c| c.stream.synchronize())),
        ("Stream::wait", Refused(|c| c.stream.wait(&c.outside.stream.record_event()?))),
        // SAFETY: nothing is done there.
        ("Stream::raw_scope", Refused(|c| unsafe { c.stream.raw_scope(&[], |_| ()) })),
        ("Stream::scope", Refused(|c| c.stream.scope(|_| ()))),
        (
            "Scope::copy_to_host",
            Refused(|c| {
                let mut host = Array1::zeros(LEN);
                c.outside.stream.scope(|scope| scope.copy_to_host(&c.x, host.view_mut()))?
            }),
        ),
    ]
}

fn devices() -> Vec<(&'static str, Row)> {
    vec![
        ("Device::stream", Recorded(|mut c| c.device().stream()?.fill(&mut c.y, 1.0))),
        (
            "Device::stream_with",
            Recorded(|mut c| c.device().stream_with(StreamOptions::default())?.fill(&mut c.y, 2.0)),
        ),
        ("Device::default_stream", Recorded(|mut c| c.device().default_stream()?.fill(&mut c.y, 3.0))),
        ("Device::legacy_stream", Refused(|c| c.device().legacy_stream().map(drop))),
        ("Device::per_thread_stream", Refused(|c| c.device().per_thread_stream().map(drop))),
        (
            "Device::external_stream",
            // SAFETY: it is not used.
            Refused(|c| unsafe { c.device().external_stream(RawStream(0), ()) }.map(drop)),
        ),
        (
            "Device::device_array",
            Recorded(|mut c| {
                let zeros = c.device().device_array::<f32, _>(LEN)?;
                c.put(&zeros)
            }),
        ),
        (
            "Device::device_array_like",
            Recorded(|mut c| {
                let zeros = c.device().device_array_like(&c.x)?;
                c.put(&zeros)
            }),
        ),
        (
            "Device::uninit_array",
            Recorded(|mut c| {
                // SAFETY: the fill writes every element.
                let mut array = unsafe { c.device().uninit_array::<f32, _>(LEN)?.assume_init() };
                c.stream.fill(&mut array, 7.0)?;
                c.put(&array)
            }),
        ),
        ("Device::pinned_array", Returned(|c| c.device().pinned_array(LEN))),
        (
            "Device::uninit_pinned_array",
            Returned(|c| {
                // SAFETY: the copy writes every element.
                let mut host = unsafe { c.device().uninit_pinned_array(LEN)?.assume_init() };
                c.stream.copy_to_host_into(&c.x, &mut host)?;
                Ok(host)
            }),
        ),
        (
            "Device::mapped_array",
            Refused(|c| c.device().mapped_array::<f32, _>(4, MappedOptions::default()).map(drop)),
        ),
        (
            "Device::managed_array",
            Refused(|c| c.device().managed_array::<f32, _>(4, Attach::Global).map(drop)),
        ),
        (
            "Device::uninit_mapped_array",
            Refused(|c| c.device().uninit_mapped_array::<f32, _>(4, MappedOptions::default()).map(drop)),
        ),
        (
            "Device::uninit_managed_array",
            Refused(|c| c.device().uninit_managed_array::<f32, _>(4, Attach::Global).map(drop)),
        ),
        (
            "Device::from_dlpack",
            Refused(|c| {
                let other = c.outside.device.device_array::<f32, _>(LEN)?;
                let tensor = other.lend_to_host()?.into_dlpack()?;
                c.device().from_dlpack::<f32, Ix1>(tensor, Some(c.stream)).map(drop)
            }),
        ),
        ("Device::to_device", Refused(|c| c.device().to_device(&[1.0_f32]).map(drop))),
        (
            "Device::chunks",
            Recorded(|mut c| {
                let device = c.device().clone();
                device.chunks(&[5.0_f32, 6.0, 7.0], Chunks::rows(2))?.try_for_each(|chunk| c.put(&chunk?.1))
            }),
        ),
        (
            "Device::map_chunks",
            Refused(|c| {
                let mut output = [0.0_f32; 2];
                c.device().map_chunks(&[5.0_f32, 6.0], &mut output, Chunks::rows(1), |_, _, array| Ok(array))
            }),
        ),
        ("Device::synchronize", Refused(|c| c.device().synchronize())),
        ("Device::record", Refused(|c| c.device().record((), |_, ()| Ok(())).map(drop))),
        (
            "Device::record_in",
            Refused(|c| c.device().record_in(&GraphMemory::new(c.device()), (), |_, ()| Ok(())).map(drop)),
        ),
        (
            "Device::replay_memory",
            Refused(|c| {
                let resource = |kind| c.outside.device.memory_resource(kind);
                c.device().replay_memory(&c.trace()?, ReplayOptions::default(), resource).map(drop)
            }),
        ),
        (
            "Device::simulate_memory",
            Refused(|c| c.device().simulate_memory(&c.trace()?, PoolOptions::device(256)).map(drop)),
        ),
        ("SpillManager::new", Refused(|c| SpillManager::new(c.device(), SpillOptions::new()).map(drop))),
        (
            "SpillManager::wake",
            Refused(|c| {
                let spilling = SpillManager::new(&c.outside.device, SpillOptions::new())?;
                let _array = c.spilled(&spilling)?;
                spilling.sleep()?;
                spilling.wake(c.stream).map(drop)
            }),
        ),
        ("Spillable::get", Refused(|c| c.with_spilled(|stream, array| array.get(stream).map(drop)))),
        (
            "Spillable::get_mut",
            Refused(|c| c.with_spilled(|stream, mut array| array.get_mut(stream).map(drop))),
        ),
        ("Spillable::prefetch", Refused(|c| c.with_spilled(|stream, array| array.prefetch(stream)))),
        (
            "Spillable::into_array",
            Refused(|c| {
                c.with_spilled(|stream, array| array.into_array(stream).map(drop).map_err(|(_, error)| error))
            }),
        ),
        (
            "Graph::launch",
            Recorded(|mut c| {
                let inner = (c.outside.device)
                    .record((writes::<f32, _>(LEN),), |stream, (mut y,)| stream.fill(&mut y, 5.0))?;
                inner.launch(c.stream, (&mut c.y,))
            }),
        ),
    ]
}

fn arrays() -> Vec<(&'static str, Row)> {
    vec![
        ("ArrayBase::synchronize", Refused(|c| c.y.synchronize())),
        ("ArrayBase::copy_to_host", Refused(|c| c.x.copy_to_host().map(drop))),
        (
            "ArrayBase::copy_to_host_into",
            Refused(|c| c.x.copy_to_host_into(&mut Array1::zeros(LEN)).map(drop)),
        ),
        (
            "ArrayBase::copy_to_host_with_progress",
            Refused(|c| {
                c.x.copy_to_host_with_progress(&mut Array1::zeros(LEN), |_| ControlFlow::Continue(()))
                    .map(drop)
            }),
        ),
        ("ArrayBase::get", Refused(|c| c.x.get(0).map(drop))),
        ("ArrayBase::read", Refused(|c| c.x.index_axis(0, 0)?.read().map(drop))),
        ("ArrayBase::write", Refused(|mut c| c.y.index_axis_mut(0, 0)?.write(1.0))),
        ("ArrayBase::set", Refused(|mut c| c.y.set(0, 1.0))),
        ("ArrayBase::fill", Refused(|mut c| c.y.fill(1.0))),
        ("ArrayBase::assign", Refused(|mut c| c.y.assign(&c.x))),
        ("ArrayBase::copy_to_device", Refused(|mut c| c.y.copy_to_device(&c.x).map(drop))),
        (
            "ArrayBase::copy_to_device_with_progress",
            Refused(|mut c| c.y.copy_to_device_with_progress(&c.x, |_| ControlFlow::Continue(())).map(drop)),
        ),
        ("ArrayBase::flatten", Refused(|c| c.x.flatten(Order::C).map(drop))),
        ("ArrayBase::reshape_copy", Refused(|c| c.x.reshape_copy((4, 4), Order::F).map(drop))),
        ("ArrayBase::to_order", Refused(|c| c.x.to_order(Order::F).map(drop))),
        ("ArrayBase::lend", Refused(|c| c.x.lend(c.stream).map(drop))),
        ("ArrayBase::lend_mut", Refused(|mut c| c.y.lend_mut(c.stream).map(drop))),
        // SAFETY: no work is done there.
        ("ArrayBase::lend_to_handle", Refused(|c| unsafe { c.x.lend_to_handle(handle(&c)?) }.map(drop))),
        (
            "ArrayBase::lend_mut_to_handle",
            Refused(|mut c| {
                let handle = handle(&c)?;
                // SAFETY: as above.
                unsafe { c.y.lend_mut_to_handle(handle) }.map(drop)
            }),
        ),
        ("ArrayBase::lend_to_host", Refused(|c| c.x.lend_to_host().map(drop))),
        ("ArrayBase::lend_mut_to_host", Refused(|mut c| c.y.lend_mut_to_host().map(drop))),
        // SAFETY: it is not read.
        ("ArrayBase::try_clone", Refused(|c| unsafe { c.uninit()?.assume_init() }.try_clone().map(drop))),
        ("UninitArray::copy_from", Refused(|c| c.uninit()?.copy_from(&c.x).map(drop))),
        ("UninitArray::fill", Refused(|c| c.uninit()?.fill(1.0).map(drop))),
    ]
}

/// A stream of another library.
fn handle(c: &Case<'_, '_>) -> Result<InterchangeStream> {
    let array: DeviceArray<f32, Ix0, Host> = c.outside.device.device_array(())?;
    Ok(array.lend(&c.outside.stream)?.stream().unwrap())
}

fn host_arrays() -> Vec<(&'static str, Row)> {
    vec![
        ("HostArray::view", Refused(|c| c.pinned()?.view().map(drop))),
        ("HostArray::view_mut", Refused(|c| c.pinned()?.view_mut().map(drop))),
        ("HostArray::copy_to_host", Refused(|c| c.pinned()?.copy_to_host().map(drop))),
        ("HostArray::copy_from", Refused(|c| c.pinned()?.copy_from(&c.x))),
        ("HostArray::lend_to_host", Refused(|c| c.pinned()?.lend_to_host().map(drop))),
        ("HostArray::lend_mut_to_host", Refused(|c| c.pinned()?.lend_mut_to_host().map(drop))),
        (
            "HostArray::prefetch",
            Refused(|c| {
                c.outside
                    .device
                    .managed_array::<f32, _>(LEN, Attach::Global)?
                    .prefetch(c.stream, Location::Host)
            }),
        ),
        (
            "UninitHostArray::assign",
            Refused(|c| {
                c.device().uninit_pinned_array::<f32, _>(LEN)?.assign(Array1::zeros(LEN).view()).map(drop)
            }),
        ),
        (
            "UninitHostArray::copy_from",
            Refused(|c| c.device().uninit_pinned_array::<f32, _>(LEN)?.copy_from(&c.x).map(drop)),
        ),
        (
            "UninitHostArray::fill",
            Refused(|c| c.device().uninit_pinned_array::<f32, _>(LEN)?.fill(1.0).map(drop)),
        ),
    ]
}

fn kernels() -> Vec<(&'static str, Row)> {
    vec![
        ("Kernel::launch", Recorded(|mut c| c.outside.kernel.launch(c.stream, &grid(), (&c.x, &mut c.y)))),
        (
            "Kernel::launch_in",
            Refused(|mut c| {
                let kernel = &c.outside.kernel;
                c.outside.stream.scope(|scope| kernel.launch_in(scope, &grid(), (&c.x, &mut c.y)))?
            }),
        ),
        (
            "KernelDef::load",
            Recorded(|mut c| doubled().load(c.device())?.launch(c.stream, &grid(), (&c.x, &mut c.y))),
        ),
        ("UntypedKernelDef::load", Recorded(launch_untyped)),
        ("UntypedKernel::launch", Recorded(launch_untyped)),
    ]
}

fn launch_untyped(mut c: Case<'_, '_>) -> Result<()> {
    let kernel = untyped().load(c.device())?;
    let mut arguments = UntypedArguments::new(c.stream);
    arguments.slice(&c.x)?;
    arguments.slice_mut(&mut c.y)?;
    // SAFETY: the arguments are those of the declaration.
    unsafe { kernel.launch(&grid(), arguments) }
}

macro_rules! operations {
    ($c:ident; $($waiting:literal $on_stream:literal: $call:ident$(::<$($of:ty),*>)?($($argument:expr),*);)*) => {
        vec![$(
            ($waiting, Refused(|$c| $c.x.$call$(::<$($of),*>)?($($argument),*).map(drop))),
            ($on_stream, Recorded(|mut $c| {
                let result = $c.x.on($c.stream).$call$(::<$($of),*>)?($($argument),*)?;
                $c.put(&result)
            })),
        )*]
    };
}

fn operations() -> Vec<(&'static str, Row)> {
    let mut all = operations! { c;
        "ArrayOps::argmax" "OnStream::argmax": argmax();
        "ArrayOps::argmax_axis" "OnStream::argmax_axis": argmax_axis(0);
        "ArrayOps::argmin" "OnStream::argmin": argmin();
        "ArrayOps::argmin_axis" "OnStream::argmin_axis": argmin_axis(0);
        "ArrayOps::argsort" "OnStream::argsort": argsort(0);
        "ArrayOps::cast" "OnStream::cast": cast::<i32>();
        "ArrayOps::exclusive_scan" "OnStream::exclusive_scan": exclusive_scan(0);
        "ArrayOps::inclusive_scan" "OnStream::inclusive_scan": inclusive_scan(0);
        "ArrayOps::map" "OnStream::map": map::<squared>();
        "ArrayOps::map_sum" "OnStream::map_sum": map_sum::<squared>();
        "ArrayOps::map_sum_axis" "OnStream::map_sum_axis": map_sum_axis::<squared>(0);
        "ArrayOps::max" "OnStream::max": max();
        "ArrayOps::max_axis" "OnStream::max_axis": max_axis(0);
        "ArrayOps::mean" "OnStream::mean": mean();
        "ArrayOps::mean_axis" "OnStream::mean_axis": mean_axis(0);
        "ArrayOps::min" "OnStream::min": min();
        "ArrayOps::min_axis" "OnStream::min_axis": min_axis(0);
        "ArrayOps::prod" "OnStream::prod": prod();
        "ArrayOps::prod_axis" "OnStream::prod_axis": prod_axis(0);
        "ArrayOps::sort" "OnStream::sort": sort(0);
        "ArrayOps::sum" "OnStream::sum": sum();
        "ArrayOps::sum_axis" "OnStream::sum_axis": sum_axis(0);
        "ArrayOps::zip_map" "OnStream::zip_map": zip_map::<product, _>(&c.x);
        "ArrayOps::zip_map_sum" "OnStream::zip_map_sum": zip_map_sum::<product, _>(&c.x);
        "ArrayOps::zip_map_sum_axis" "OnStream::zip_map_sum_axis": zip_map_sum_axis::<product, _>(&c.x, 0);
    };
    all.extend([
        ("Philox::fill_normal", Recorded(|mut c| Philox::new(1).fill_normal(c.stream, &mut c.y)) as Row),
        ("Philox::fill_uniform", Recorded(|mut c| Philox::new(1).fill_uniform(c.stream, &mut c.y))),
        (
            "Philox::normal",
            Recorded(|mut c| {
                let numbers = Philox::new(1).normal::<f64, _, _>(c.stream, (3, 2))?;
                c.put(&numbers)
            }),
        ),
        (
            "Philox::uniform",
            Recorded(|mut c| {
                let numbers = Philox::new(1).uniform::<f64, _, _>(c.stream, (3, 2))?;
                c.put(&numbers)
            }),
        ),
    ]);
    all.push(("gpumem_ops::concatenate", Refused(|c| ops::concatenate(0, &[&c.x, &c.x]).map(drop))));
    all.push((
        "gpumem_ops::concatenate_on",
        Recorded(|mut c| {
            let parts = (c.x.slice(s![..3])?, c.x.slice(s![8..])?);
            let all = ops::concatenate_on(c.stream, 0, &[&parts.1, &parts.0])?;
            c.put(&all)
        }),
    ));
    all
}

macro_rules! of_rank {
    ($c:ident; $($name:literal: $call:ident($($argument:expr),*);)*) => {
        vec![$(($name, Recorded(|#[allow(unused_mut, reason = "some only read")] mut $c| $c.outside.rank.on($c.stream).$call($($argument),*)))),*]
    };
}

/// A rank receives what it sends itself only in one group.
fn exchange(mut c: Case<'_, '_>) -> Result<()> {
    c.outside.rank.group(c.stream, |group| {
        group.send(&c.x, 0)?;
        group.receive(&mut c.y, 0)
    })
}

fn ranks() -> Vec<(&'static str, Row)> {
    let mut all = of_rank! { c;
        "Operations::all_gather": all_gather(&c.x, &mut c.y);
        "Operations::all_gather_v": all_gather_v(&c.x, (&mut c.y, &[LEN]));
        "Operations::all_reduce": all_reduce(InPlace, &mut c.y, Sum);
        "Operations::all_to_all": all_to_all(&c.x, &mut c.y);
        "Operations::all_to_all_v": all_to_all_v((&c.x, &[LEN]), (&mut c.y, &[LEN]));
        "Operations::barrier": barrier();
        "Operations::broadcast": broadcast(&mut c.y, 0);
        "Operations::gather": gather(&c.x, Some(c.y.view_mut()), 0);
        "Operations::reduce": reduce(&c.x, Some(c.y.view_mut()), Sum, 0);
        "Operations::reduce_scatter": reduce_scatter(&c.x, &mut c.y, Sum);
        "Operations::scatter": scatter(Some(c.x.view()), &mut c.y, 0);
    };
    all.extend([
        ("Operations::send", Recorded(|c: Case<'_, '_>| exchange(c)) as Row),
        ("Operations::receive", Recorded(exchange)),
        ("Communicator::all", Refused(|c| Communicator::all(std::slice::from_ref(c.device())).map(drop))),
        (
            "Communicator::all_with",
            Refused(|c| Communicator::all_with(std::slice::from_ref(c.device()), &Options::new()).map(drop)),
        ),
        (
            "Communicator::all_reduce_scalar",
            Refused(|c| c.outside.rank.all_reduce_scalar(c.stream, 1, Sum).map(drop)),
        ),
        ("Communicator::deregister", Refused(|c| c.outside.rank.deregister(&c.x))),
        ("Communicator::register", Refused(|c| c.outside.rank.register(&c.x))),
        ("Communicator::from_environment", Refused(|c| Communicator::from_environment(c.device()).map(drop))),
        (
            "Communicator::from_environment_with",
            Refused(|c| Communicator::from_environment_with(c.device(), &Options::new()).map(drop)),
        ),
        ("Communicator::group", Recorded(exchange)),
        (
            "Communicator::group_all",
            Refused(|c| {
                Communicator::group_all(&[(&c.outside.rank, c.stream)], |groups| groups[0].barrier())
            }),
        ),
        (
            "Communicator::join",
            Refused(|c| {
                Communicator::join(c.device(), &CommunicatorId::new(), 0, 1, &Options::new()).map(drop)
            }),
        ),
        ("CommunicatorId::for_device", Refused(|c| CommunicatorId::for_device(c.device()).map(drop))),
    ]);
    all
}
