//! The host backend as the reference.

use crate::{Lab, Stop, Verdict};
use gpumem_core::{Backend, Element, Result};
use gpumem_host::{Host, HostOptions};
use gpumem_runtime::Device;
use ndarray::{Array, Dimension};
use std::fmt::Debug;

/// Something to compute on any device. A trait, because closures cannot be generic over the backend.
pub trait Computation {
    /// Element of the result.
    type Elem: Element + Into<f64> + PartialEq + Debug;
    /// Rank of the result.
    type Dim: Dimension;

    /// Computes on a device, and brings the result home.
    ///
    /// # Errors
    /// Of the device.
    fn run<X: Backend>(&self, device: &Device<X>) -> Result<Array<Self::Elem, Self::Dim>>;
}

/// Runs the computation on a fresh host device and on the device under test, and compares shape and elements. Elements
/// may differ by `tolerance`; 0 wants them equal.
///
/// # Errors
/// Where they differ, with the first index; of either device.
#[track_caller]
pub fn compare<B: Backend, C: Computation>(lab: &Lab<B>, computation: &C, tolerance: f64) -> Verdict {
    let reference = Device::<Host>::from_raw(Host::open_with(&HostOptions::new())?);
    let expected = computation.run(&reference)?;
    let found = computation.run(lab.device())?;
    if expected.shape() != found.shape() {
        let text = format!("the shapes differ: {:?} on the host, {:?} here", expected.shape(), found.shape());
        return Err(Stop::Failed(text));
    }
    let is_close =
        |left: C::Elem, right: C::Elem| left == right || (left.into() - right.into()).abs() <= tolerance;
    let mut pairs = expected.iter().zip(&found).enumerate();
    match pairs.find(|(_, (left, right))| !is_close(**left, **right)) {
        None => Ok(()),
        Some((at, (left, right))) => {
            Err(Stop::Failed(format!("element {at} differs: {left:?} on the host, {right:?} here")))
        }
    }
}
