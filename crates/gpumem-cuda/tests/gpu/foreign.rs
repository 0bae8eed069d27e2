//! Contexts, streams and memory of other libraries: cudarc's safe types, and plain driver handles.

use crate::{Case, Skip, fixture::Lab};
use cudarc::driver::{CudaContext, DevicePtr, sys};
use gpumem_core::{CopyRegion, DeviceBuffer, DriverDevice, ErrorKind, MemoryKind, Stream};
use gpumem_cuda::{Cuda, CudaExt};
use std::ptr::null_mut;

pub(crate) const CASES: &[Case] = &[
    ("context_stream_and_slice_of_cudarc_are_wrapped", of_cudarc),
    ("a_context_that_is_not_primary_is_wrapped", own_context),
    ("addresses_are_looked_up", addresses),
];

fn of_cudarc(lab: &Lab) -> Result<(), Skip> {
    let theirs = CudaContext::new(0).unwrap();
    // SAFETY: cudarc keeps the context alive.
    let device = unsafe { Cuda::from_context(theirs.cu_ctx()) }.unwrap();
    assert_eq!(Cuda::context(&device), Cuda::context(&lab.device));
    let stream = theirs.new_stream().unwrap();
    let data: Vec<u8> = (0..=255).collect();
    let slice = stream.clone_htod(&data).unwrap();
    {
        let (address, _guard) = slice.device_ptr(&stream);
        // SAFETY: stream and slice outlive their wrappers here.
        let (wrapped, memory) = unsafe {
            (
                Cuda::wrap_cuda_stream(&device, stream.cu_stream()).unwrap(),
                Cuda::wrap_memory(&device, address, data.len()),
            )
        };
        assert_eq!((memory.address(), memory.len(), memory.host_address()), (address, data.len(), None));
        let ours = lab.allocate(MemoryKind::Device, data.len());
        let ends = [memory.address(), ours.address()].map(|address| (address, lab.here()));
        lab.copy(&wrapped, &CopyRegion::linear(ends[0], ends[1], data.len()));
        wrapped.synchronize().unwrap();
        assert_eq!(lab.read(ours.address(), data.len()), data);
        // Reversed by us, read by them.
        let reversed: Vec<u8> = data.iter().rev().copied().collect();
        lab.write(ours.address(), &reversed);
        lab.copy(&wrapped, &CopyRegion::linear(ends[1], ends[0], data.len()));
        wrapped.synchronize().unwrap();
        // SAFETY: released once; that does nothing to memory that is not ours.
        unsafe { device.release(memory) }.unwrap();
        drop(wrapped);
    }
    assert!(stream.clone_dtoh(&slice).unwrap().iter().rev().eq(&data));
    Ok(())
}

fn own_context(lab: &Lab) -> Result<(), Skip> {
    let mut raw = null_mut();
    // SAFETY: a place for a handle. The new context is current afterwards, which is undone.
    unsafe {
        sys::cuCtxCreate_v2(&mut raw, 0, 0).result().unwrap();
        sys::cuCtxSetCurrent(null_mut()).result().unwrap();
    }
    {
        // SAFETY: the context is destroyed below, after its last use.
        let device = unsafe { Cuda::from_context(raw) }.unwrap();
        assert_eq!((Cuda::context(&device), device.info()), (raw, lab.device.info()));
        let foreign = Lab::on(device.clone());
        let block = foreign.allocate(MemoryKind::Device, 1000);
        foreign.write(block.address(), &[5; 1000]);
        assert_eq!(foreign.read(block.address(), 1000), [5; 1000]);
        // SAFETY: nothing is reset.
        let error = unsafe { device.reset() }.unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Unsupported { .. }), "{error}");
    }
    // SAFETY: this test owns it and no longer uses it.
    unsafe { sys::cuCtxDestroy_v2(raw).result().unwrap() };
    // SAFETY: refused before it is used.
    let error = unsafe { Cuda::from_context(null_mut()) }.unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::InvalidArgument { .. }), "{error}");
    Ok(())
}

fn addresses(lab: &Lab) -> Result<(), Skip> {
    let block = lab.allocate(MemoryKind::Device, 3 << 20);
    let (base, bytes) = Cuda::allocation_of(&lab.device, block.address() + (1 << 20)).unwrap();
    assert_eq!(base, block.address());
    assert!(bytes >= block.len());
    assert_eq!(Cuda::ordinal_of(&lab.device, block.address() + 5).unwrap(), Some(0));
    let plain = Box::new([0u8; 64]);
    let address = plain.as_ptr().expose_provenance() as u64;
    assert_eq!(Cuda::ordinal_of(&lab.device, address).unwrap(), None);
    let error = Cuda::allocation_of(&lab.device, address).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::InvalidArgument { .. }), "{error}");
    Ok(())
}
