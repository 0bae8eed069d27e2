//! The kernels of pack.cu, compiled once for each device and unit, and how they are launched.

use crate::{device::RocDevice, error::Status, module::RocModule, packers::Functions, stream::RocStream};
use gpumem_core::{CompileOptions, DriverModule, KernelSource, Result, Stream, StridedCopy};
use gpumem_layout::pack::{Lowered, PackKernel, PackLaunch, SOURCE};
use std::{ptr::null_mut, sync::Arc};

fn compile(device: &RocDevice, unit: usize) -> Result<Functions> {
    let generation = device.generation();
    let options = CompileOptions { flags: vec![format!("-DGPUMEM_PACK_UNIT={unit}")], ..Default::default() };
    let module = RocModule::compile(device, &KernelSource::Text(SOURCE.to_owned()), &options)?;
    let find = |family: PackKernel| module.kernel(&family.symbol(unit)).map(|kernel| kernel.function());
    let [walk, far, turn] = PackKernel::ALL;
    let of = [find(walk)?, find(far)?, find(turn)?];
    Ok(Functions { generation, of, _module: Arc::new(module) })
}

/// # Safety
/// As for [`Stream::copy_strided`](gpumem_core::Stream::copy_strided).
pub(crate) unsafe fn copy_strided(stream: &RocStream, copy: &StridedCopy) -> Result<()> {
    const OPERATION: &str = "copy_strided";
    let device = &stream.owner.device;
    let Some(lowered) = Lowered::new(copy) else { return device.check_alive(OPERATION) };
    let unit = lowered.unit();
    let functions = device.inner().packers.get(unit, device.generation(), || compile(device, unit))?;
    let turn = device.enqueue_lock().shared();
    let current = stream.owner.enter(OPERATION, "stream")?;
    let mut launched = 0;
    let outcome = lowered.each(|work| {
        // SAFETY: both sides are valid for the copy, says the caller, and the kernels stay within it.
        let status = unsafe { launch(stream, &functions, &lowered, work) };
        launched += 1;
        device.check(status, OPERATION)
    });
    if outcome.is_err() && launched > 1 {
        drop((current, turn));
        // The kernels before this one still run, and nothing may be in use after an error.
        stream.synchronize()?;
    }
    outcome
}

/// # Safety
/// The work is one of the copy, and in bounds. The stream's device is current.
unsafe fn launch(stream: &RocStream, functions: &Functions, lowered: &Lowered, work: &PackLaunch) -> Status {
    let unit = lowered.unit();
    let function = functions.of[work.family() as usize];
    let [x, y] = work.group_size(unit);
    let mut arguments = [work.argument().cast_mut()];
    // SAFETY: one argument, the structure that the kernel takes by value; HIP copies it before it returns.
    let answer = unsafe {
        stream.owner.device.hip().hipModuleLaunchKernel(
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
    };
    answer.into()
}
