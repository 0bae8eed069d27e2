//! Tests that all forms of a kernel agree.

use crate::{
    Device, Kernel, Stream,
    any::{AnyDevice, Typed},
};
use gpumem_core::{Backend, Result};
use gpumem_host::{Host, HostOptions};
use gpumem_kernel::{KernelDef, Parameters};
use std::fmt::Debug;

/// Runs a kernel in all of its forms, and returns the result if all agree. A test of one line for your own kernels.
///
/// The forms are the body for the host in waves of 32 and of 64, each once for speed and once in check mode, which looks for
/// races, and the program of every GPU of this machine. `run` launches the kernel on a stream and brings the answer back.
///
/// ```
/// use gpumem::{agreement, kernel::{In, InOut, config_for_items, prelude::*}};
///
/// #[gpumem::kernel]
/// fn saxpy(x: Slice<f32>, y: Own<f32>, a: f32) {
///     let i = global_id(0);
///     if i < y.len() {
///         y[own()] = a * x[i] + y[own()];
///     }
/// }
///
/// # fn main() -> gpumem::Result<()> {
/// let x: Vec<f32> = (0..1000).map(|i| i as f32).collect();
/// let answer = agreement(&saxpy(), |kernel, stream| {
///     let mut y = vec![1.0f32; 1000];
///     kernel.launch(stream, &config_for_items(1000, 256), (In(&x), InOut(&mut y), 2.0)).map(|()| y)
/// })?;
/// assert_eq!(answer[999], 1999.0);
/// # Ok(())
/// # }
/// ```
///
/// # Panics
/// Panics if two forms give different answers, and names them.
///
/// # Errors
/// Returns what `run` returns, the fault of a form, which names the work-item, and errors of a device.
#[track_caller]
pub fn agreement<P: Parameters, T: PartialEq + Debug>(
    declaration: &KernelDef<P>,
    run: impl Fn(&Kernel<P>, &Stream) -> Result<T>,
) -> Result<T> {
    let answer = |declaration: &KernelDef<P>, device: &Device| -> Result<T> {
        let (kernel, stream) = (declaration.load(device)?, device.stream()?);
        let answer = run(&kernel, &stream)?;
        // An answer that waits for nothing would leave a fault untold.
        stream.synchronize().map(|()| answer)
    };
    let host = |wave_size| -> Result<Device> {
        let raw = Host::open_with(&HostOptions::new().wave_size(wave_size))?;
        Ok(Device::from_raw(<AnyDevice as Typed<Host>>::from_typed(raw)))
    };
    let first = answer(declaration, &host(32)?)?;
    for wave_size in [32, 64] {
        for checks in [true, false] {
            let found = answer(&declaration.clone().race_checks(checks), &host(wave_size)?)?;
            let mode = if checks { ", in check mode" } else { "" };
            same(declaration, &first, &found, &format!("on the host in waves of {wave_size}{mode}"));
        }
    }
    for info in Device::list()?.into_iter().filter(|info| info.backend != Host::NAME) {
        let device = Device::select(&info)?;
        same(declaration, &first, &answer(declaration, &device)?, &format!("on {info}"));
    }
    Ok(first)
}

#[track_caller]
#[allow(clippy::panic, reason = "an assertion for tests, as `assert_eq` is one")]
fn same<P: Parameters, T: PartialEq + Debug>(declaration: &KernelDef<P>, first: &T, found: &T, place: &str) {
    if first != found {
        let name = declaration.name();
        panic!("`{name}` gives {first:?} on the host in waves of 32, and {found:?} {place}");
    }
}
