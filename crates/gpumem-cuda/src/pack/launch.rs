//! The kernels of pack.cu, loaded once for each device, and how they are launched.

use super::lower::{Lowered, Work, tile};
use crate::{NAME, api::DriverApi, device::CudaDevice, error::Status, stream::CudaStream};
use cudarc::driver::sys::CUfunction;
use gpumem_core::{Error, ErrorKind, Result, Stream, StridedCopy};
use parking_lot::Mutex;
use std::{
    ffi::{CString, c_void},
    ptr::null_mut,
};

/// Compiled by build.py for every device since Maxwell; the driver translates it once and keeps the result on disk.
pub(super) const PTX: &str = include_str!("pack.ptx");

/// Units that one thread moves, about.
const UNITS: u64 = 4;
const THREADS: u32 = 256;
const ROWS: u32 = 8;
/// Most groups of a launch: enough for every device, and threads count their units in 32 bits up to 2 GiU.
const MOST_GROUPS: u64 = 1 << 20;
/// Fewer units than this are counted in 32 bits: the index of the last thread's next unit does not overflow.
const FAR: u64 = 1 << 31;

/// The functions of one generation of a device: for units of 1, 2, 4, 8 and 16 bytes.
#[derive(Debug, Clone, Copy)]
struct Functions {
    generation: u64,
    walk: [CUfunction; 5],
    walk_far: [CUfunction; 5],
    turn: [CUfunction; 5],
}

// SAFETY: function handles are names that the driver takes from any thread.
unsafe impl Send for Functions {}

/// The kernels of a device, once they have been needed. The module is never unloaded: it goes with the context.
#[derive(Debug, Default)]
pub(crate) struct Packers(Mutex<Option<Functions>>);

impl Packers {
    /// The functions, loaded now if they are not. The device's context is current.
    fn get(&self, device: &CudaDevice) -> Result<Functions> {
        let mut slot = self.0.lock();
        if let Some(functions) = slot.filter(|functions| functions.generation == device.generation()) {
            return Ok(functions);
        }
        let functions = load(device)?;
        *slot = Some(functions);
        Ok(functions)
    }
}

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
    let find = |family: &str| -> Result<[CUfunction; 5]> {
        let mut found = [null_mut(); 5];
        for (slot, bytes) in found.iter_mut().zip([1, 2, 4, 8, 16]) {
            let name = CString::new(format!("gpumem_{family}_{bytes}")).map_err(|_| unreadable("a name"))?;
            // SAFETY: a place for a handle; the module is alive; the name ends with a zero.
            device.check(unsafe { api.cuModuleGetFunction(slot, module, name.as_ptr()) }, OPERATION)?;
        }
        Ok(found)
    };
    let generation = device.generation();
    Ok(Functions { generation, walk: find("walk")?, walk_far: find("walk_far")?, turn: find("turn")? })
}

/// # Safety
/// As for [`Backend::copy_strided`](gpumem_core::Backend::copy_strided).
pub(crate) unsafe fn copy_strided(stream: &CudaStream, copy: &StridedCopy) -> Result<()> {
    const OPERATION: &str = "copy_strided";
    let device = &stream.owner.device;
    let Some(lowered) = Lowered::new(copy) else { return device.check_alive(OPERATION) };
    let current = stream.owner.enter(OPERATION, "stream")?;
    let functions = device.inner().packers.get(device)?;
    let index = lowered.unit.trailing_zeros() as usize;
    let mut launched = 0;
    let outcome = lowered.each(|work| {
        // SAFETY: both sides are valid for the copy, says the caller, and the kernels stay within it; the function takes
        // this structure.
        let status = unsafe { launch(device.api(), stream, &functions, index, work) };
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
/// The work is of the unit that `index` names, and in bounds.
unsafe fn launch(
    api: &DriverApi,
    stream: &CudaStream,
    functions: &Functions,
    index: usize,
    work: &Work,
) -> Status {
    let (function, argument, groups, block) = match work {
        Work::Walk(walk) => {
            let family = if walk.total < FAR { &functions.walk } else { &functions.walk_far };
            let groups = walk.total.div_ceil(u64::from(THREADS) * UNITS);
            (family[index], std::ptr::from_ref(walk).cast::<c_void>(), groups, [THREADS, 1])
        }
        Work::Turn(turn) => {
            let argument = std::ptr::from_ref(turn).cast::<c_void>();
            (functions.turn[index], argument, turn.tiles, [tile(1 << index) as u32, ROWS])
        }
    };
    let groups = groups.clamp(1, MOST_GROUPS) as u32;
    let mut arguments = [argument.cast_mut()];
    // SAFETY: one argument, the structure that the kernel takes by value; the driver copies it before it returns.
    unsafe {
        api.cuLaunchKernel(
            function,
            groups,
            1,
            1,
            block[0],
            block[1],
            1,
            0,
            stream.raw,
            arguments.as_mut_ptr(),
            null_mut(),
        )
    }
}
