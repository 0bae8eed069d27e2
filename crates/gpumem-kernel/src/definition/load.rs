//! From a declaration to the kernel of a device, and to compiled images.

use super::{Declaration, KernelDef};
use crate::simt::{Executor, ParameterInfo, Parameters};
use crate::{
    Kernel,
    arguments::Constants,
    cache,
    identifier::check_name,
    source::{MOST_CONSTANT_BYTES, text_of, uses_constants},
};
use gpumem_core::{
    Backend, Barrier, BarrierPoint, CompileOptions, DriverDevice, DriverModule, Error, ErrorKind,
    KernelSource, Lowering, Result,
};
use gpumem_runtime::{Device, internal::Key};
use std::any::TypeId;

impl<P: Parameters> KernelDef<P> {
    /// Loads the kernel on a device: its body where the device is the host; else a compiled program that fits
    /// ([`image`](Self::image), then [`fatbin`](Self::fatbin), then [`ptx`](Self::ptx)); else the source, compiled
    /// now or earlier.
    ///
    /// Compiled images are kept in memory and on disk. The key is everything that decides the image: source, prelude,
    /// options, architecture, compiler. `GPUMEM_CACHE_DIR` names the directory (default: `gpumem` in the user's
    /// directory for caches; `off`: none), `GPUMEM_CACHE_BYTES` the bytes that it may hold (default: 256 MiB). Sources
    /// that include files are always compiled.
    ///
    /// # Errors
    /// Returns [`Build`](gpumem_core::ErrorKind::Build) with the compiler's message and the source's own lines, and on every device
    /// if functions in Rust call each other in a circle, or their variables, constants or shared arrays have no room,
    /// [`NoProgram`](gpumem_core::ErrorKind::NoProgram) if there are programs and none is for this device,
    /// [`Unsupported`](gpumem_core::ErrorKind::Unsupported) without a source or a body for this kind of device,
    /// [`InvalidArgument`](gpumem_core::ErrorKind::InvalidArgument) if a [sealed](Self::sealed) program, body, flag or bound was
    /// replaced or the name is no identifier, [`Load`](gpumem_core::ErrorKind::Load) if the compiler is
    /// missing, and [`Driver`](gpumem_core::ErrorKind::Driver) if the driver reports a failure.
    pub fn load<B: Backend>(&self, device: &Device<B>) -> Result<Kernel<P, B>> {
        self.load_on(device, true)
            .map_err(|error| device.core_by(crate::KEY).place(error).in_kernel(self.inner.shown()))
    }

    /// Returns the kernel that the device keeps under `key`, or loads what `declare` returns, and keeps that.
    #[doc(hidden)] // for the library's own kernels
    pub fn load_once_by<B: Backend>(
        access: Key,
        device: &Device<B>,
        key: TypeId,
        declare: impl FnOnce() -> Self,
    ) -> Result<Kernel<P, B>>
    where
        P: 'static,
    {
        device.kept_by(access, key, || {
            let declaration = declare();
            let loaded = declaration.load_on(device, false);
            loaded
                .map_err(|error| device.core_by(crate::KEY).place(error).in_kernel(declaration.inner.shown()))
        })
    }

    fn load_on<B: Backend>(&self, device: &Device<B>, keeps_open: bool) -> Result<Kernel<P, B>> {
        let parameters = P::list();
        self.inner.check(&parameters)?;
        self.inner.load_on(device, &parameters, keeps_open)
    }

    /// Compiles the source for the architecture of a device, to be shipped as an [`image`](Self::image).
    ///
    /// # Errors
    /// Returns [`Unsupported`](gpumem_core::ErrorKind::Unsupported) on the host. Otherwise as [`load`](Self::load).
    pub fn compile<B: Backend>(&self, device: &Device<B>) -> Result<Vec<u8>> {
        let core = device.core_by(crate::KEY);
        core.check("compile")?;
        self.inner.check(&P::list())?;
        let barrier = device.barrier();
        let what = match (barrier.lowering(BarrierPoint::Wave), &self.inner.source) {
            (Lowering::Suspend, _) => "compiling for the host, whose kernels are bodies in Rust",
            (Lowering::Source(_), None) => "compiling a kernel without source for a GPU",
            (Lowering::Source(_), Some(source)) => {
                let text = self.inner.text(&P::list(), source, device);
                core.counters.count_compilation();
                let image = core.note_loss(core.raw.compile_image(&text, &self.inner.options()));
                return image.map_err(|error| error.in_kernel(self.inner.shown()));
            }
        };
        Err(core.error("compile", ErrorKind::Unsupported { what }).in_kernel(self.inner.shown()))
    }

    /// Compiles the source for an architecture of the backend `B`, by its name; this machine needs no such device. This
    /// checks a kernel, and the result can be shipped as an [`image`](Self::image).
    ///
    /// # Errors
    /// Returns [`Build`](gpumem_core::ErrorKind::Build) with the compiler's message, also for an architecture that it
    /// does not know, [`Unsupported`](gpumem_core::ErrorKind::Unsupported) for a name that is not of this backend,
    /// and without a source, and [`Load`](gpumem_core::ErrorKind::Load) if the compiler is missing.
    pub fn compile_with<B: Backend>(&self, architecture: &str) -> Result<Vec<u8>> {
        let in_kernel = |error: Error| error.in_kernel(self.inner.shown());
        self.inner.check(&P::list()).map_err(in_kernel)?;
        let Some(source) = &self.inner.source else {
            let what = "compiling a kernel without source for a GPU";
            return Err(in_kernel(Error::new(B::NAME, "compile_for", ErrorKind::Unsupported { what })));
        };
        let text = |wave_size| self.inner.text_for(&P::list(), source, wave_size, MOST_CONSTANT_BYTES);
        B::compile_for(architecture, &text, &self.inner.options()).map_err(in_kernel)
    }
}

impl Declaration {
    /// The kernel of a device, whose parameters `P` are these or unknown.
    pub(crate) fn load_on<P: Parameters, B: Backend>(
        &self,
        device: &Device<B>,
        parameters: &[ParameterInfo],
        keeps_open: bool,
    ) -> Result<Kernel<P, B>> {
        let missing = |what| device.core_by(crate::KEY).error("load", ErrorKind::Unsupported { what });
        let core = device.core_by(crate::KEY);
        core.check("load")?;
        let barrier = device.barrier();
        let (module, symbol) = match barrier.lowering(BarrierPoint::Wave) {
            Lowering::Suspend => {
                let body =
                    self.host.as_ref().ok_or_else(|| missing("a kernel without a body for the host"))?;
                let shared = device.capabilities().shared_memory;
                let executor = Executor::new(barrier.wave_size(), shared).race_checks(self.is_checked());
                let source = KernelSource::Host(vec![(self.shown().to_owned(), body(executor))]);
                (core.note_loss(core.raw.compile(&source, &self.options()))?, self.shown())
            }
            Lowering::Source(_) => match (self.images.load(core, &self.name)?, &self.source) {
                (Ok(module), _) => (module, self.name.as_str()),
                (Err(_), Some(source)) => {
                    check_name(&self.name)?;
                    let text = self.text(parameters, source, device);
                    (cache::program(core, text, &self.options())?, self.name.as_str())
                }
                (Err(Some(error)), None) => return Err(error),
                (Err(None), None) => return Err(missing("a kernel without source for a GPU")),
            },
        };
        let raw = core.note_loss(module.kernel(symbol))?;
        let outside = device.outside_recording_by(crate::KEY);
        let constants = match uses_constants(parameters) {
            false => None,
            true if matches!(barrier.lowering(BarrierPoint::Wave), Lowering::Suspend) => Some(
                Constants::on_host(&outside, self.constant_bytes_of(device.capabilities().constant_memory))?,
            ),
            true => Some(Constants::of_module(&outside, &module, &raw)?),
        };
        let most_items = self.launch_bounds.map(|bounds| bounds.items);
        Ok(Kernel::new(device, raw, self.shown(), (self.shared_bytes, most_items), constants, keeps_open))
    }

    fn text<B: Backend>(&self, parameters: &[ParameterInfo], source: &str, device: &Device<B>) -> String {
        self.text_for(parameters, source, device.barrier().wave_size(), device.capabilities().constant_memory)
    }

    /// The text for a device with waves of this size and so many bytes of constant memory.
    fn text_for(
        &self,
        parameters: &[ParameterInfo],
        source: &str,
        wave_size: u32,
        constant_memory: usize,
    ) -> String {
        let constants = self.constant_bytes_of(constant_memory);
        text_of(parameters, source, &self.name, wave_size, self.bounds, self.launch_bounds, constants)
    }

    /// Bytes of constant memory for its parameters, on a device that has so many in all.
    pub(super) fn constant_bytes_of(&self, constant_memory: usize) -> usize {
        let left = constant_memory.min(MOST_CONSTANT_BYTES).saturating_sub(self.needs.tables);
        self.constant_bytes.min(left)
    }

    fn options(&self) -> CompileOptions {
        CompileOptions { flags: self.flags.clone(), contract: self.contract }
    }
}
