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
/// let x: Vec<f32> = (0..1000).map(|i| i as f32).collect();
/// let answer = agreement(&saxpy(), |kernel, stream| {
///     let mut y = vec![1.0f32; 1000];
///     kernel.launch(stream, &config_for_items(1000, 256), (In(&x), InOut(&mut y), 2.0)).map(|()| y)
/// })?;
/// assert_eq!(answer[999], 1999.0);
/// # Ok::<(), gpumem::Error>(())
/// ```
///
/// Answers agree if they are equal. NaN agrees with NaN: answers that contain some are compared by their text of [`Debug`].
///
/// # Panics
/// Panics if two forms give different answers, and names them with the first value that differs.
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
    if first == found {
        return;
    }
    // In full, also where arrays leave out their middle.
    let (left, right) = (format!("{first:#?}"), format!("{found:#?}"));
    // NaN is not even what it is itself; so the texts are compared.
    let has_nan = !has_equal_itself(first) && !has_equal_itself(found);
    let name = declaration.name();
    match difference(&left, &right) {
        None if has_nan => {}
        Some((index, left, right)) => panic!(
            "`{name}` gives {left} on the host in waves of 32, and {right} {place}: value [{index}] of the answer is the \
             first that differs"
        ),
        None => panic!(
            "`{name}` gives {} on the host in waves of 32, and {} {place}",
            short(&left),
            short(&right)
        ),
    }
}

/// Whether a value is equal to itself: none is that contains NaN.
#[allow(clippy::eq_op, reason = "the question")]
fn has_equal_itself<T: PartialEq>(value: &T) -> bool {
    value == value
}

/// The first value that differs in two texts of `Debug`: how many values come before it, and what it is in each. As numbers,
/// zeros of both signs are the same, and NaN is NaN.
fn difference<'a>(left: &'a str, right: &'a str) -> Option<(usize, &'a str, &'a str)> {
    let values = |text: &'a str| {
        let parts = text.split(|c: char| !(c.is_alphanumeric() || "+-._".contains(c)));
        parts.filter(|part| !part.is_empty()).collect::<Vec<_>>()
    };
    let number = |text: &str| text.parse::<f64>().ok();
    let is_same = |left: &str, right: &str| {
        left == right
            || number(left).zip(number(right)).is_some_and(|(left, right)| left == 0.0 && right == 0.0)
    };
    let (left, right) = (values(left), values(right));
    // Names of types and fields are no values.
    let is_value = |text: &str| text == "true" || text == "false" || number(text).is_some();
    let at = left.iter().zip(&right).position(|(left, right)| !is_same(left, right));
    let at = match at {
        None if left.len() == right.len() => return None,
        None => left.len().min(right.len()),
        Some(at) => at,
    };
    let index = left[..at].iter().filter(|text| is_value(text)).count();
    let of = |values: &[&'a str]| values.get(at).copied().unwrap_or("nothing");
    Some((index, of(&left), of(&right)))
}

/// The beginning of a text, in one line.
fn short(text: &str) -> String {
    text.split_whitespace().flat_map(|word| [word, " "]).collect::<String>().chars().take(200).collect()
}
