//! Declaring a kernel, once, for every device.

use super::{Kernel, portable_text};
use crate::Device;
use gpumem_core::{
    Backend, Barrier, BarrierPoint, CompileOptions, Error, ErrorKind, HostFunction, KernelSource, Lowering,
    Result,
};
use gpumem_simt::{Executor, Ids, Parameters, WorkItem};
use std::{fmt, marker::PhantomData, sync::Arc};

type HostBody = dyn Fn(Executor) -> HostFunction + Send + Sync;

/// A kernel as it is written: a name, parameters `P`, a portable source for GPUs, a body for the host. [`load`](Self::load)
/// makes it a [`Kernel`] of a device.
pub struct KernelDeclaration<P> {
    name: String,
    source: Option<String>,
    host: Option<Arc<HostBody>>,
    shared_bytes: usize,
    flags: Vec<String>,
    bounds: bool,
    check: bool,
    parameters: PhantomData<fn(P)>,
}

impl<P: Parameters> KernelDeclaration<P> {
    /// A kernel of this name, still without source and body.
    ///
    /// # Safety
    /// Of every launch with arguments for `P`, in the source as well as in the body:
    /// * it stays within its arguments (the host's body does so by itself), and writes only `SliceMut` and `ViewMut`;
    /// * work-items do not race: an element that one writes is used by another only behind a barrier of the same group, or
    ///   atomically by both;
    /// * `shared_bytes` says what the source declares.
    pub unsafe fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            source: None,
            host: None,
            shared_bytes: 0,
            flags: Vec::new(),
            bounds: false,
            check: false,
            parameters: PhantomData,
        }
    }

    /// With a source in the portable subset of CUDA C++ and HIP C++, behind [`PRELUDE`](super::PRELUDE). The compiler
    /// checks that the parameters are `P`.
    #[must_use]
    pub fn portable(mut self, source: &str) -> Self {
        self.source = Some(source.to_owned());
        self
    }

    /// With a body for the host, whose barriers are awaited.
    #[must_use]
    pub fn host<F>(mut self, body: F) -> Self
    where
        F: for<'g, 'p> AsyncFn(WorkItem<'g>, &'p P) + Send + Sync + 'static,
    {
        let body = Arc::new(body);
        // SAFETY: the promise of `new`; the runtime launches it with arguments for `P` only.
        self.host = Some(Arc::new(move |executor| unsafe { executor.shared_function::<P, F>(body.clone()) }));
        self
    }

    /// With a body for the host without barriers: a plain loop.
    #[must_use]
    pub fn host_flat<F>(mut self, body: F) -> Self
    where
        F: Fn(&Ids<'_>, &P) + Send + Sync + 'static,
    {
        let body = Arc::new(body);
        // SAFETY: as in `host`.
        self.host =
            Some(Arc::new(move |executor| unsafe { executor.shared_flat_function::<P, F>(body.clone()) }));
        self
    }

    /// With this much static shared memory, in bytes: a launch on a device that has less is refused.
    #[must_use]
    pub fn shared_bytes(mut self, bytes: usize) -> Self {
        self.shared_bytes = bytes;
        self
    }

    /// With an option in the words of the device's compiler.
    #[must_use]
    pub fn flag(mut self, flag: &str) -> Self {
        self.flags.push(flag.to_owned());
        self
    }

    /// Whether an index past the end stops the kernel on a GPU, too. On the host it always does.
    #[must_use]
    pub fn bounds(mut self, bounds: bool) -> Self {
        self.bounds = bounds;
        self
    }

    /// Whether the host looks for races between work-items and for reads of shared memory that nobody wrote
    /// ([`Executor::check`]).
    #[must_use]
    pub fn check(mut self, check: bool) -> Self {
        self.check = check;
        self
    }

    /// Compiles the kernel for a device, or wraps its body where the device is the host.
    ///
    /// # Errors
    /// [`Build`](ErrorKind::Build) with the compiler's words and the source's own lines;
    /// [`Unsupported`](ErrorKind::Unsupported) without a source or a body for this kind of device; of the driver.
    pub fn load<B: Backend>(&self, device: &Device<B>) -> Result<Kernel<P, B>> {
        let missing = |what| Error::new(B::NAME, "load", ErrorKind::Unsupported { what });
        device.core().check("load")?;
        let capabilities = device.capabilities();
        let barrier = device.barrier();
        let source = match barrier.lowering(BarrierPoint::Wave) {
            Lowering::Suspend => {
                let body =
                    self.host.as_ref().ok_or_else(|| missing("a kernel without a body for the host"))?;
                let executor =
                    Executor::new(barrier.wave_size(), capabilities.shared_memory).check(self.check);
                KernelSource::Host(vec![(self.name.clone(), body(executor))])
            }
            Lowering::Source(_) => {
                let source =
                    self.source.as_ref().ok_or_else(|| missing("a kernel without source for a GPU"))?;
                KernelSource::Text(portable_text::<P>(source, &self.name, barrier.wave_size(), self.bounds))
            }
        };
        let options = CompileOptions { flags: self.flags.clone() };
        let core = device.core();
        let module = core.note_loss(B::compile(device.raw(), &source, &options))?;
        let raw = core.note_loss(B::kernel(&module, &self.name))?;
        Ok(Kernel::new(device, raw, &self.name, self.shared_bytes))
    }
}

impl<P> Clone for KernelDeclaration<P> {
    fn clone(&self) -> Self {
        Self {
            name: self.name.clone(),
            source: self.source.clone(),
            host: self.host.clone(),
            shared_bytes: self.shared_bytes,
            flags: self.flags.clone(),
            bounds: self.bounds,
            check: self.check,
            parameters: PhantomData,
        }
    }
}

impl<P> fmt::Debug for KernelDeclaration<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parameters = std::any::type_name::<P>();
        f.debug_struct("KernelDeclaration")
            .field("name", &self.name)
            .field("parameters", &parameters)
            .finish()
    }
}
