//! Kernels whose parameters are known when the program runs: for bindings of other languages.

use super::{
    Kernel,
    arguments::{ArgumentCollector, HostArrays},
    definition::Declaration,
    source::text_of,
};
use crate::simt::ParameterInfo;
use gpumem_core::{Backend, Error, ErrorKind, HostFunction, LaunchConfig, Result};
use gpumem_runtime::{ArrayBase, Device, Storage, StorageMut, Stream, Varying};
use ndarray::Dimension;
use std::{fmt, sync::Arc};

/// A kernel as it is written, with a list of parameters where [`KernelDef`](super::KernelDef) has types.
#[derive(Clone)]
pub struct UntypedKernelDef {
    inner: Declaration,
    parameters: Vec<ParameterInfo>,
}

impl UntypedKernelDef {
    /// A kernel of this name with these parameters, still without source and body. None of them lies in constant memory. With a
    /// source, the name is an identifier of C++; [`load`](Self::load) refuses others.
    ///
    /// # Safety
    /// The conditions of [`KernelDef::new`](super::KernelDef::new), for the source and for the host's function.
    pub unsafe fn new(name: &str, parameters: Vec<ParameterInfo>) -> Self {
        Self { inner: Declaration::new(name), parameters }
    }

    /// With a portable source, as [`KernelDef::source`](super::KernelDef::source). The device's
    /// compiler checks that it has these parameters.
    #[must_use]
    pub fn source(mut self, source: &str) -> Self {
        self.inner.source = Some(source.to_owned());
        self
    }

    /// With a function of the host, which runs once for a whole launch in the order of its stream.
    #[must_use]
    pub fn host_body(mut self, function: HostFunction) -> Self {
        self.inner.host = Some(Arc::new(move |_| function.clone()));
        self
    }

    /// With an option in the words of the device's compiler.
    #[must_use]
    pub fn compiler_flag(mut self, flag: &str) -> Self {
        self.inner.flags.push(flag.to_owned());
        self
    }

    /// Whether a GPU's compiler may contract `a * b + c` into one operation with one rounding, as
    /// [`KernelDef::contract`](super::KernelDef::contract).
    #[must_use]
    pub fn contract(mut self, contract: bool) -> Self {
        self.inner.contract = contract;
        self
    }

    /// Whether an index past the end stops the kernel on a GPU.
    #[must_use]
    pub fn bounds_checks(mut self, bounds: bool) -> Self {
        self.inner.bounds = bounds.into();
        self
    }

    /// The kernel of a device, compiled now or earlier.
    ///
    /// # Errors
    /// As for [`KernelDef::load`](super::KernelDef::load).
    pub fn load<B: Backend>(&self, device: &Device<B>) -> Result<UntypedKernel<B>> {
        let loaded = self.inner.load_on(device, &self.parameters, true);
        let kernel =
            loaded.map_err(|error| device.core_by(crate::KEY).place(error).in_kernel(&self.inner.name))?;
        Ok(UntypedKernel { kernel, sizes: self.parameters.iter().map(|parameter| parameter.size).collect() })
    }

    /// The source as the compiler of a device gets it. `None` without a source.
    pub fn portable_text(&self, wave_size: u32) -> Option<String> {
        let source = self.inner.source.as_ref()?;
        Some(text_of(&self.parameters, source, &self.inner.name, wave_size, self.inner.bounds, None, 0))
    }
}

/// A kernel of a device that takes [`UntypedArguments`]. Cloning it is cheap.
pub struct UntypedKernel<B: Backend> {
    kernel: Kernel<(), B>,
    sizes: Arc<[usize]>,
}

/// The arguments of a launch, one after the other.
#[derive(Debug)]
pub struct UntypedArguments<'a, B: Backend> {
    collected: ArgumentCollector<'a, B>,
    stream: &'a Stream<B>,
}

impl<'a, B: Backend> UntypedArguments<'a, B> {
    /// No arguments, for a launch on `stream`.
    pub fn new(stream: &'a Stream<B>) -> Self {
        Self { collected: ArgumentCollector::new(HostArrays::waiting(stream), None), stream }
    }

    /// Adds the device, and which argument it was.
    #[cold]
    fn explain(&self, error: Error) -> Error {
        self.stream
            .timeline_by(crate::KEY)
            .context
            .place(error)
            .at_argument(self.collected.arguments.len() + 1)
    }

    /// A plain value, by its bytes.
    ///
    /// # Errors
    /// Returns [`InvalidArgument`](gpumem_core::ErrorKind::InvalidArgument) for more than 4096 bytes.
    pub fn value(&mut self, bytes: &[u8]) -> Result<()> {
        let collected = self.collected.bytes(bytes);
        collected.map_err(|error| self.explain(error))
    }

    /// A number of each launch of the graph that is being recorded.
    ///
    /// # Errors
    /// As for [`value`](Self::value).
    pub fn varying<T>(&mut self, number: &'a Varying<T, B>) -> Result<()> {
        let collected = self.collected.varying(number);
        collected.map_err(|error| self.explain(error))
    }

    /// A packed array that is read.
    ///
    /// # Errors
    /// Returns [`NeedsCopy`](gpumem_core::LayoutError::NeedsCopy) if the array is not packed.
    pub fn slice<S: Storage<Backend = B>, D: Dimension>(&mut self, array: &'a ArrayBase<S, D>) -> Result<()> {
        let collected = self.collected.slice(array, false);
        collected.map_err(|error| self.explain(error))
    }

    /// A packed array that is written.
    ///
    /// # Errors
    /// As for [`slice`](Self::slice).
    pub fn slice_mut<S: StorageMut<Backend = B>, D: Dimension>(
        &mut self,
        array: &'a mut ArrayBase<S, D>,
    ) -> Result<()> {
        let collected = self.collected.slice(array, true);
        collected.map_err(|error| self.explain(error))
    }

    /// An array of `rank` axes and any strides that is read.
    ///
    /// # Errors
    /// Returns [`RankMismatch`](gpumem_core::LayoutError::RankMismatch) for an array of another rank.
    pub fn view<S: Storage<Backend = B>, D: Dimension>(
        &mut self,
        array: &'a ArrayBase<S, D>,
        rank: usize,
    ) -> Result<()> {
        let collected = self.collected.view(array, rank, false);
        collected.map_err(|error| self.explain(error))
    }

    /// An array of `rank` axes and any strides that is written.
    ///
    /// # Errors
    /// As for [`view`](Self::view).
    pub fn view_mut<S: StorageMut<Backend = B>, D: Dimension>(
        &mut self,
        array: &'a mut ArrayBase<S, D>,
        rank: usize,
    ) -> Result<()> {
        let collected = self.collected.view(array, rank, true);
        collected.map_err(|error| self.explain(error))
    }
}

impl<B: Backend> UntypedKernel<B> {
    /// Enqueues the kernel, ordered as every launch.
    ///
    /// # Safety
    /// The arguments are of the kinds and of the element types that the declaration lists, in its order.
    ///
    /// # Errors
    /// Returns [`InvalidArgument`](gpumem_core::ErrorKind::InvalidArgument) for another number of arguments, or
    /// another size of one. Otherwise as [`Kernel::launch`].
    pub unsafe fn launch<'a>(
        &'a self,
        dims: &LaunchConfig,
        mut arguments: UntypedArguments<'a, B>,
    ) -> Result<()> {
        let given = arguments.collected.arguments.iter().map(<[u8]>::len);
        if !given.eq(self.sizes.iter().copied()) {
            let why = "the arguments are not those of the kernel's declaration";
            let error = arguments
                .stream
                .timeline_by(crate::KEY)
                .context
                .error("launch", ErrorKind::InvalidArgument { why });
            return Err(error.in_kernel(self.kernel.name()));
        }
        let stream = arguments.stream;
        self.kernel.launch_collected(stream, dims, &mut arguments.collected)
    }
}

impl fmt::Debug for UntypedKernelDef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, parameters) = (&self.inner.name, &self.parameters);
        f.debug_struct("UntypedKernelDef").field("name", name).field("parameters", parameters).finish()
    }
}

impl<B: Backend> Clone for UntypedKernel<B> {
    fn clone(&self) -> Self {
        Self { kernel: self.kernel.clone(), sizes: self.sizes.clone() }
    }
}

impl<B: Backend> fmt::Debug for UntypedKernel<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.kernel.fmt(f)
    }
}
