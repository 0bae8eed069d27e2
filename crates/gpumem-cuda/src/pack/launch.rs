//! The kernels of pack.cu, loaded once for each device, and how they are launched.

use crate::{
    NAME, api::DriverApi, device::CudaDevice, error::Status, packers::Functions, stream::CudaStream,
};
use gpumem_core::{Error, ErrorKind, Result, Stream, StridedCopy};
use gpumem_layout::pack::{Lowered, PackKernel, PackLaunch, UNITS};
use std::{ffi::CString, ptr::null_mut};

/// Compiled by build.py for every device since Maxwell; the driver translates it once and keeps the result on disk.
pub(super) const PTX: &str = include_str!("pack.ptx");

fn load(device: &CudaDevice) -> Result<Functions> {
    const OPERATION: &str = "copy_strided";
    let api = device.api();
    let unreadable = |log: &str| Error::new(NAME, OPERATION, ErrorKind::Build { log: log.to_owned() });
    let text = CString::new(PTX).map_err(|_| unreadable("the built-in PTX has a zero byte in it"))?;
    let mut module = null_mut();
    // SAFETY: a place for a handle; a text that ends with a zero; no options.
    let status =
        unsafe { api.cuModuleLoadDataEx(&mut module, text.as_ptr().cast(), 0, null_mut(), null_mut()) };
    if status.is_about_an_image() {
        return Err(unreadable(&format!("the built-in PTX: {status}")));
    }
    device.check(status, OPERATION)?;
    let find = || {
        let mut of = [[null_mut(); UNITS.len()]; PackKernel::ALL.len()];
        for (family, functions) in PackKernel::ALL.into_iter().zip(&mut of) {
            for (unit, function) in UNITS.into_iter().zip(functions) {
                let name = CString::new(family.symbol(unit)).map_err(|_| unreadable("a name"))?;
                // SAFETY: a place for a handle; the module is alive; the name ends with a zero.
                let status = unsafe { api.cuModuleGetFunction(function, module, name.as_ptr()) };
                device.check(status, OPERATION)?;
            }
        }
        Ok(Functions { generation: device.generation(), of })
    };
    find().inspect_err(|_| {
        // Not by a `CudaModule`: it keeps its device, which is to keep this one.
        // SAFETY: the module is ours, and nothing refers to it: none of its functions is given away.
        let _ = unsafe { api.cuModuleUnload(module) };
    })
}

/// # Safety
/// As for [`Stream::copy_strided`](gpumem_core::Stream::copy_strided).
pub(crate) unsafe fn copy_strided(stream: &CudaStream, copy: &StridedCopy) -> Result<()> {
    const OPERATION: &str = "copy_strided";
    let device = &stream.owner.device;
    let Some(lowered) = Lowered::new(copy) else { return device.check_alive(OPERATION) };
    let current = stream.owner.enter(OPERATION, "stream")?;
    let functions = device.inner().packers.get(device.generation(), || load(device))?;
    let mut launched = 0;
    let outcome = lowered.each(|work| {
        // SAFETY: both sides are valid for the copy, says the caller, and the kernels stay within it; the function takes
        // this structure.
        let status = unsafe { launch(device.api(), stream, &functions, &lowered, work) };
        launched += 1;
        device.check(status, OPERATION)
    });
    if outcome.is_err() && launched > 1 {
        drop(current);
        // The kernels before this one still run, and nothing may be in use after an error.
        stream.synchronize()?;
    }
    outcome
}

/// # Safety
/// The work is one of the copy, and in bounds.
unsafe fn launch(
    api: &DriverApi,
    stream: &CudaStream,
    functions: &Functions,
    lowered: &Lowered,
    work: &PackLaunch,
) -> Status {
    let unit = lowered.unit();
    let function = functions.of[work.family() as usize][unit.trailing_zeros() as usize];
    let [x, y] = work.group_size(unit);
    let mut arguments = [work.argument().cast_mut()];
    // SAFETY: one argument, the structure that the kernel takes by value; the driver copies it before it returns.
    unsafe {
        api.cuLaunchKernel(
            function,
            lowered.groups(work),
            1,
            1,
            x,
            y,
            1,
            0,
            stream.raw,
            arguments.as_mut_ptr(),
            null_mut(),
        )
    }
}
