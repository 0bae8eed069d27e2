//! Dead streams and arrays, foreign memory, and calls that must be harmless.

use super::tools::{fail, same};
use crate::{Lab, Level, Verdict, refused, refused_layout};
use gpumem_core::{Backend, DriverDevice, ErrorKind, LayoutError, Stream as _};
use gpumem_runtime::{ArraySpec, IpcArrayHandle, RawAccess};
use ndarray::{Array1, Array2, Ix1, s};
use std::{
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

cases! { Level::Fault;
    foreign_memory_keeps_its_owner,
    foreign_memory_is_checked,
    lending_the_stream_keeps_the_order,
    a_panic_while_lent_is_harmless,
    host_memory_forbids_a_reset,
    what_is_older_than_a_reset_is_dead,
    sharing_between_processes_is_described_or_refused,
}

const LEN: usize = 20_000;

/// Counts its drops.
struct Owner(Arc<AtomicUsize>);

impl Drop for Owner {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

fn foreign_memory_keeps_its_owner<B: Backend>(lab: &Lab<B>) -> Verdict {
    let device = lab.device();
    let base = device.to_device(&Array1::from_elem(LEN, 5u32))?;
    device.synchronize()?;
    let dropped = Arc::new(AtomicUsize::new(0));
    // SAFETY: `base` outlives the foreign array, and only this array uses it meanwhile.
    let mut array = unsafe {
        device.foreign_array::<u32, _>(base.address(), 4 * LEN, (LEN / 4, 4), Owner(dropped.clone()))?
    };
    assert_eq!(array.copy_to_host()?, Array2::from_elem((LEN / 4, 4), 5));
    let stream = device.stream()?;
    lab.delay(&stream)?;
    stream.fill(&mut array, 6)?;
    drop(array);
    device.flush()?;
    assert_eq!(dropped.load(Ordering::SeqCst), 1, "dropped exactly once");
    assert!(stream.query()?, "after its last use");
    assert_eq!(base.copy_to_host()?, Array1::from_elem(LEN, 6));
    Ok(())
}

fn foreign_memory_is_checked<B: Backend>(lab: &Lab<B>) -> Verdict {
    let device = lab.device();
    let base = device.device_array::<u64, _>(8)?;
    let address = base.address();
    let outside = |error: &LayoutError| matches!(error, LayoutError::OutOfBuffer { .. });
    let misaligned = |error: &LayoutError| matches!(error, LayoutError::Misaligned { .. });
    let dropped = Arc::new(AtomicUsize::new(0));
    let owner = || Owner(dropped.clone());
    // SAFETY: `base` outlives every use; nothing is made of the addresses that are wrong.
    unsafe {
        refused_layout(device.foreign_array::<u64, _>(address, 64, 9, owner()), outside)?;
        let strided = ArraySpec::new(4).strides(&[24]);
        refused_layout(device.foreign_array::<u64, _>(address, 64, strided, owner()), outside)?;
        refused_layout(device.foreign_array::<u64, _>(address + 4, 32, 4, owner()), misaligned)?;
        device.foreign_array::<u64, _>(address, 64, 8, owner())?.fill(3)?;
    }
    device.flush()?;
    assert_eq!(dropped.load(Ordering::SeqCst), 4, "a refused owner is dropped too");
    assert_eq!(base.copy_to_host()?.to_vec(), [3; 8]);
    Ok(())
}

fn lending_the_stream_keeps_the_order<B: Backend>(lab: &Lab<B>) -> Verdict {
    let device = lab.device();
    let (late, resource_id) = (device.stream()?, device.stream()?);
    let mut array = device.device_array::<u32, _>(LEN)?;
    let expected = [array.address()];
    lab.delay(&late)?;
    late.fill(&mut array, 1)?;
    let accesses = [RawAccess::write(&mut array)];
    // SAFETY: the enqueued work writes only the named array, on the scope's stream.
    let enqueued = unsafe {
        resource_id.raw_scope(&accesses, |parts| {
            assert_eq!(parts.addresses, expected);
            let raw = device.raw().wrap_stream(parts.stream)?;
            let (pattern, address) = (gpumem_core::Pattern::U32(2), parts.addresses[0]);
            raw.fill(&gpumem_core::Fill { address, pattern, count: LEN, rows: 1, pitch: 0 })
        })?
    };
    enqueued?;
    let read = late.copy_to_host(&array)?;
    same(read.view()?, Array1::from_elem(LEN, 2).view());
    Ok(())
}

fn a_panic_while_lent_is_harmless<B: Backend>(lab: &Lab<B>) -> Verdict {
    let stream = lab.device().stream()?;
    let mut array = lab.device().to_device(&[1u32, 2, 3])?;
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        let accesses = [RawAccess::write(&mut array)];
        // SAFETY: nothing is enqueued.
        unsafe { stream.raw_scope(&accesses, |_| -> () { resume_unwind(Box::new("on purpose")) }) }
    }));
    assert!(panicked.is_err());
    stream.fill(&mut array, 4)?;
    assert_eq!(array.copy_to_host()?.to_vec(), [4; 3]);
    Ok(())
}

fn host_memory_forbids_a_reset<B: Backend>(lab: &Lab<B>) -> Verdict {
    let device = lab.device();
    let array = device.to_device(&[1u8, 2, 3])?;
    let pinned = [device.pinned_array::<u8, _>(100)?, device.pinned_array::<u8, _>(100)?];
    let counts = |kind: &ErrorKind| matches!(kind, ErrorKind::HostMemoryInUse { count } if *count >= 2);
    // SAFETY: no other thread uses the device.
    refused(unsafe { device.reset() }, counts)?;
    // Nothing has happened.
    assert_eq!(array.copy_to_host()?.to_vec(), [1, 2, 3]);
    assert_eq!(pinned[1].view()?.sum(), 0);
    Ok(())
}

fn what_is_older_than_a_reset_is_dead<B: Backend>(lab: &Lab<B>) -> Verdict {
    let device = lab.device();
    let stream = device.stream()?;
    let mut array = device.to_device(&[1u8, 2, 3])?;
    let event = stream.record_event()?;
    lab.delay(&stream)?;
    lab.reset()?;
    let stale = |kind: &ErrorKind| matches!(kind, ErrorKind::Stale { .. });
    let dead_stream = |kind: &ErrorKind| matches!(kind, ErrorKind::Stale { what: "stream" });
    let mut fresh = device.to_device(&[4u8, 5, 6])?;
    // The staging block of the upload is of the new generation, and is freed now.
    device.flush()?;
    let before = device.counters();
    refused(stream.synchronize(), dead_stream)?;
    refused(stream.query(), dead_stream)?;
    refused(stream.record_event(), dead_stream)?;
    refused(stream.raw_handle(), dead_stream)?;
    refused(stream.fill(&mut fresh, 1), dead_stream)?;
    refused(stream.copy_to_device(&mut fresh, &[7u8; 3]), dead_stream)?;
    refused(stream.scope(|_| ()), dead_stream)?;
    refused(stream.add_callback(|_| ()), dead_stream)?;
    refused(event.synchronize(), stale)?;
    refused(device.stream()?.wait(&event), stale)?;
    refused(array.copy_to_host(), stale)?;
    refused(array.fill(9), stale)?;
    refused(fresh.copy_to_device(&array).map(drop), stale)?;
    refused(device.stream()?.fill(&mut array, 9), stale)?;
    let after = device.counters();
    assert_eq!((after.copies, after.fills), (before.copies, before.fills), "nothing was moved");
    drop((stream, array, event));
    device.flush()?;
    assert_eq!(device.counters().releases, before.releases, "the dead free nothing");
    if fresh.copy_to_host()?.to_vec() != [4, 5, 6] {
        return fail("an array of the new generation was touched");
    }
    Ok(())
}

fn sharing_between_processes_is_described_or_refused<B: Backend>(lab: &Lab<B>) -> Verdict {
    let device = lab.device();
    let mut array = device.ipc_array::<u32, _>(LEN)?;
    array.copy_to_device(&Array1::from_elem(LEN, 5u32))?;
    let (block, bytes) = array.driver_block();
    if block != array.address() || bytes % (2 << 20) != 0 {
        return fail("an array to be exported shares its block of memory");
    }
    // Memory of a pool would show its neighbours to the other process.
    let pooled = device.to_device(&[1u8; 3])?;
    if pooled.driver_block().1 > 4096 {
        // SAFETY: refused.
        refused(unsafe { pooled.ipc_handle() }, |kind| matches!(kind, ErrorKind::InvalidArgument { .. }))?;
    }
    let unsupported = |kind: &ErrorKind| matches!(kind, ErrorKind::Unsupported { .. });
    let empty = device.device_array::<u32, _>(0)?;
    // SAFETY: refused.
    refused(unsafe { empty.ipc_handle() }, |kind| matches!(kind, ErrorKind::InvalidArgument { .. }))?;
    // The other process could write what graphs take for constant.
    let frozen = device.ipc_array::<u32, _>(LEN)?.freeze().map_err(|(_, error)| error)?;
    // SAFETY: refused.
    refused(unsafe { frozen.ipc_handle() }, |kind| matches!(kind, ErrorKind::InvalidArgument { .. }))?;
    drop(frozen);
    // SAFETY: it is never opened.
    match unsafe { array.slice(s![100..;-2])?.ipc_handle() } {
        Ok(shared) => {
            let sent = IpcArrayHandle::<u32, Ix1>::from_bytes(&shared.to_bytes())?;
            assert_eq!(sent, shared);
            assert_eq!((sent.shape(), sent.strides()), (&[(LEN - 100) / 2][..], &[-8][..]));
            assert_eq!(sent.memory().len(), 4 * (LEN - 101));
            // More rows than there is memory for.
            let long = IpcArrayHandle::<u32, Ix1>::from_parts(*shared.memory(), array.layout())?;
            // SAFETY: refused before it is opened.
            let opened = unsafe { device.open_ipc(&long) };
            refused_layout(opened, |error| matches!(error, LayoutError::OutOfBuffer { .. }))?;
            // At another address, its work would not be ordered with that of the array.
            // SAFETY: refused.
            let opened = unsafe { device.open_ipc(&sent) };
            refused(opened.map(drop), |kind| matches!(kind, ErrorKind::InvalidArgument { .. }))?;
            let Err((_, error)) = array.freeze() else { return fail("what others may write was frozen") };
            assert!(matches!(error.kind(), ErrorKind::InvalidArgument { .. }), "{error}");
            Ok(())
        }
        Err(error) if unsupported(error.kind()) => {
            let bytes = [0u8; gpumem_core::IpcMemory::ENCODED_LEN];
            let memory = gpumem_core::IpcMemory::from_bytes(&bytes);
            // SAFETY: refused.
            let opened = unsafe { device.raw().open_memory(&memory) }.map(drop);
            // The backend itself knows no number of its device.
            let info = device.info();
            refused(opened.map_err(|error| error.on_device(info.backend, info.ordinal)), unsupported)
        }
        Err(error) => Err(error.into()),
    }
}
