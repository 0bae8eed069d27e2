//! The requirements of a shipped kernel.

use gpumem_core::{Backend, Element, Result};
use gpumem_kernel::{Entry, Kernel, KernelDef, Parameters};
use gpumem_runtime::{PinnedArray, Stream};
use ndarray::Dimension;
use std::fmt::Debug;

/// A kernel with its expected results. Only `run` has a default: a kernel without problems or without a reference
/// cannot be registered.
pub trait ShippedKernel: 'static {
    /// The parameters of the kernel.
    type Parameters: Parameters;
    /// The input.
    type Problem: Debug;
    /// An element of the output.
    type Elem: Element + PartialEq + Debug;
    /// The indices of the output.
    type Shape: Dimension;

    /// The kernel.
    fn declaration() -> KernelDef<Self::Parameters>;

    /// Problems: sizes that do not divide, nothing at all, one element; views with strides and reversed, where the kernel
    /// takes views.
    fn problems() -> Vec<Self::Problem>;

    /// Computes the answer in plain loops over host memory. Every device must return the same bits.
    fn reference(problem: &Self::Problem) -> Vec<Self::Elem>;

    /// Enqueues the kernel, and waits for nothing: a graph can record it. Returns where the answer will be.
    ///
    /// # Errors
    /// Of the device.
    fn enqueue<B: Backend>(
        kernel: &Kernel<Self::Parameters, B>,
        stream: &Stream<B>,
        problem: &Self::Problem,
    ) -> Result<PinnedArray<Self::Elem, Self::Shape, B>>;

    /// The answer by the kernel, launched in the order of `stream`.
    ///
    /// # Errors
    /// Of the device.
    fn run<B: Backend>(
        kernel: &Kernel<Self::Parameters, B>,
        stream: &Stream<B>,
        problem: &Self::Problem,
    ) -> Result<Vec<Self::Elem>> {
        Ok(Self::enqueue(kernel, stream, problem)?.view()?.iter().copied().collect())
    }
}

/// A kernel without its tests, for compilers and for simulators of a GPU.
#[derive(Debug, Clone)]
pub struct Shipped {
    /// Its name: the symbol in the compiled image.
    pub name: String,
    text: fn(u32, bool) -> String,
    entry: fn(u32, usize, bool) -> Option<Entry>,
}

impl Shipped {
    /// The kernel `K`.
    pub fn of<K: ShippedKernel>() -> Self {
        Self {
            name: K::declaration().name().to_owned(),
            text: |wave_size, bounds| K::declaration().portable_text(wave_size, bounds).unwrap_or_default(),
            entry: |wave_size, shared, check| K::declaration().race_checks(check).entry(wave_size, shared),
        }
    }

    /// The text for a device's compiler: prelude, source, and the check that the source has the declared parameters.
    /// With `bounds`, an index past the end stops the kernel.
    pub fn text(&self, wave_size: u32, bounds: bool) -> String {
        (self.text)(wave_size, bounds)
    }

    /// The body for the host, for a device with these facts; in check mode if `check`.
    pub fn entry(&self, wave_size: u32, shared_memory: usize, check: bool) -> Option<Entry> {
        (self.entry)(wave_size, shared_memory, check)
    }
}
