//! Declaring a kernel, once, for every device.

mod declaration;
mod load;
mod room;

pub(crate) use declaration::Declaration;
pub use declaration::ENV_RACE_CHECKS;
pub(crate) use room::Needs;

use crate::simt::{Entry, Executor, Fault, Parameters, Phases, WorkItem, WorkItemIds};
use crate::{
    HostForm,
    images::Image,
    source::{Bounds, LaunchBounds, MOST_CONSTANT_BYTES, text_of},
};
use declaration::{HostBody, Seal};
use std::{borrow::Cow, fmt, marker::PhantomData, sync::Arc};

/// A kernel as it is written: a name, parameters `P`, a portable source for GPUs, a body for the host. [`load`](Self::load)
/// makes it a [`Kernel`](crate::Kernel) of a device.
pub struct KernelDef<P> {
    inner: Declaration,
    parameters: PhantomData<fn(P)>,
}

impl<P: Parameters> KernelDef<P> {
    /// Declares a kernel of this name, still without source and body. The name is an identifier of C++;
    /// [`load`](Self::load) refuses others.
    /// ```
    /// # use gpumem_kernel::{KernelDef, SliceMut, WorkItemIds};
    /// // SAFETY: each work-item writes its own element.
    /// let def = unsafe { KernelDef::<(SliceMut<f32>, f32)>::new("add") }
    ///     .source("using namespace gpumem;
    ///         GPUMEM_KERNEL add(slice<float> x, float value) {
    ///             u64 i = global_id(0);
    ///             if (i < x.size()) x[i] += value;
    ///         }");
    /// assert_eq!(def.name(), "add");
    /// ```
    ///
    /// # Safety
    /// Of every launch with arguments for `P`, in the source as well as in the body:
    /// * it stays within its arguments (the host's body does so by itself), and writes only `SliceMut` and `ViewMut`;
    /// * a compiled image has a kernel of this name with the parameters `P`, as the source would be checked for;
    /// * work-items do not race: an element that one writes is used by another only after a barrier of the same group, or
    ///   atomically by both.
    ///
    /// This holds for every program, flag and body that any code sets. So [seal](Self::sealed) a declaration before you give it to
    /// code that you do not know.
    pub unsafe fn new(name: &str) -> Self {
        Self { inner: Declaration::new(name), parameters: PhantomData }
    }

    /// Fixes programs, bodies, compiler flags and bounds: [`load`](Self::load) refuses a declaration in which one is set later.
    /// Declarations of `#[gpumem::kernel]` are sealed.
    /// ```
    /// # use {gpumem_host::Host, gpumem_kernel::{KernelDef, SliceMut, WorkItemIds}, gpumem_runtime::Device};
    /// type Clear = (SliceMut<f32>,);
    ///
    /// // SAFETY: each work-item writes its own element.
    /// let clear = unsafe { KernelDef::<Clear>::new("clear") }
    ///     .host_loop(|ids: &WorkItemIds<'_>, (x,): &Clear| x.set(ids.global_id(0), 0.0))
    ///     .sealed();
    /// let device = Device::<Host>::open("host")?;
    /// assert!(clear.load(&device).is_ok());
    /// assert!(clear.host_loop(|_, (x,)| x.set(0, 1.0)).load(&device).is_err());
    /// # Ok::<(), gpumem_core::Error>(())
    /// ```
    #[must_use]
    pub fn sealed(mut self) -> Self {
        if self.inner.seal == Seal::Open {
            self.inner.seal = Seal::Sealed;
        }
        self
    }

    /// Allows programs, bodies, compiler flags and bounds to be set again.
    ///
    /// # Safety
    /// The conditions of [`new`](Self::new), for everything that is set from now on.
    #[must_use]
    pub unsafe fn unsealed(mut self) -> Self {
        self.inner.seal = Seal::Open;
        self
    }

    /// Sets the source, in the portable subset of CUDA C++ and HIP C++, to be compiled after
    /// [`PRELUDE`](super::PRELUDE). The compiler checks that the parameters are `P`.
    /// ```
    /// # use gpumem_kernel::{KernelDef, SliceMut, WorkItemIds};
    /// // SAFETY: each work-item writes its own element.
    /// let def = unsafe { KernelDef::<(SliceMut<f32>, f32)>::new("add") }
    ///     .source("using namespace gpumem;
    ///         GPUMEM_KERNEL add(slice<float> x, float value) {
    ///             u64 i = global_id(0);
    ///             if (i < x.size()) x[i] += value;
    ///         }");
    /// assert!(def.source_text().is_some());
    /// ```
    #[must_use]
    pub fn source(mut self, source: &str) -> Self {
        self.inner.note_replaced();
        self.inner.source = Some(source.to_owned());
        self
    }

    /// Notes a function that leads to a call of itself, and what the kernel needs.
    pub(crate) fn with_needs(mut self, circle: Option<&'static str>, needs: Needs) -> Self {
        (self.inner.circle, self.inner.needs, self.inner.shared_bytes) = (circle, needs, needs.shared);
        self
    }

    /// Adds a compiled program for one architecture: a cubin for `sm_80` (which runs on its later minors, too), for
    /// `sm_90a` (on that one alone); a code object for `gfx90a`, or for `gfx90a:xnack-`, which the driver looks at.
    /// Any number of them; [`compile`](Self::compile) makes one. A machine that has a fitting one needs no compiler.
    #[must_use]
    pub fn image(mut self, architecture: &str, bytes: impl Into<Cow<'static, [u8]>>) -> Self {
        self.inner.note_replaced();
        self.inner.images.add(Image::Binary { architecture: architecture.to_owned(), bytes: bytes.into() });
        self
    }

    /// Adds several compiled programs in one file: a fat binary of CUDA, a bundle of code objects of ROCm. The driver
    /// chooses among them.
    #[must_use]
    pub fn fatbin(mut self, bytes: impl Into<Cow<'static, [u8]>>) -> Self {
        self.inner.note_replaced();
        self.inner.images.add(Image::Bundle(bytes.into()));
        self
    }

    /// Adds NVIDIA's intermediate text, which the driver compiles for the devices from its `.target` on.
    #[must_use]
    pub fn ptx(mut self, text: impl Into<Cow<'static, str>>) -> Self {
        self.inner.note_replaced();
        self.inner.images.add(Image::Ptx(text.into()));
        self
    }

    /// Sets a body for the host, whose barriers are awaited.
    ///
    /// A fault, such as an index outside an array, unwinds the body. A second fault in a `Drop` meanwhile ends the process, as a
    /// second panic does in Rust.
    /// ```
    /// # use {gpumem_kernel::{KernelDef, SliceMut, WorkItem}, gpumem_core::BarrierScope::Global};
    /// // SAFETY: each work-item writes its own element, and reads that of its neighbour after the barrier.
    /// let def = unsafe { KernelDef::<(SliceMut<f32>,)>::new("shift") }.host_body(
    ///     async |item: WorkItem<'_>, (x,): &(SliceMut<f32>,)| {
    ///         let (i, next) = (item.global_id(0), (item.global_id(0) + 1) % x.len());
    ///         let value = x.get(next);
    ///         item.barrier(Global).await;
    ///         x.set(i, value);
    ///     },
    /// );
    /// assert!(def.host_form().is_some());
    /// ```
    #[must_use]
    pub fn host_body<F>(mut self, body: F) -> Self
    where
        F: for<'g, 'p> AsyncFn(WorkItem<'g>, &'p P) + Send + Sync + 'static,
    {
        self.inner.note_replaced();
        let body = Arc::new(body);
        // SAFETY: the promise of `new`; the runtime launches it with arguments for `P` only.
        self.inner.host =
            Some(Arc::new(move |executor| unsafe { executor.shared_function::<P, F>(body.clone()) }));
        self.inner.form = Some(HostForm::WorkItems);
        self
    }

    /// With a body for the host that is split at its barriers, and the one that awaits them, which check mode runs.
    #[doc(hidden)] // for `#[kernel]`, which makes one of the other
    #[must_use]
    pub fn host_split<F, S>(mut self, body: F, split: S) -> Self
    where
        F: for<'g, 'p> AsyncFn(WorkItem<'g>, &'p P) + Send + Sync + 'static,
        S: Fn(&mut Phases<'_>, &P) -> Result<(), Fault> + Send + Sync + 'static,
    {
        self.inner.note_replaced();
        let (body, split) = (Arc::new(body), Arc::new(split));
        self.inner.host = Some(Arc::new(move |executor| match executor.checks() {
            // SAFETY: as in `host_body`.
            true => unsafe { executor.shared_function::<P, F>(body.clone()) },
            // SAFETY: as in `host_body`.
            false => unsafe { executor.shared_split_function::<P, S>(split.clone()) },
        }));
        self.inner.form = Some(HostForm::Phases);
        self
    }

    /// With a body for the host that takes a group at once, beside the one that awaits its barriers, which check mode runs.
    #[doc(hidden)] // for the library's own kernels
    #[must_use]
    pub fn host_groups<S>(mut self, groups: S) -> Self
    where
        S: Fn(&mut Phases<'_>, &P) -> Result<(), Fault> + Send + Sync + 'static,
    {
        self.inner.note_replaced();
        let groups = Arc::new(groups);
        self.inner.host = self.inner.host.map(|body| -> Arc<HostBody> {
            Arc::new(move |executor| match executor.checks() {
                true => body(executor),
                // SAFETY: as in `host_body`.
                false => unsafe { executor.shared_split_function::<P, S>(groups.clone()) },
            })
        });
        self
    }

    /// Sets a body for the host without barriers: a plain loop.
    /// ```
    /// # use {gpumem_host::Host, gpumem_kernel::config_for_items, gpumem_runtime::Device};
    /// # use gpumem_kernel::{KernelDef, SliceMut, WorkItemIds};
    /// // SAFETY: each work-item writes its own element.
    /// let def = unsafe { KernelDef::<(SliceMut<f32>, f32)>::new("add") }
    ///     .host_loop(|ids: &WorkItemIds<'_>, (x, value): &(SliceMut<f32>, f32)| {
    ///         let i = ids.global_id(0);
    ///         if i < x.len() {
    ///             x.set(i, x.get(i) + value);
    ///         }
    ///     });
    ///
    /// let device = Device::<Host>::open("host")?;
    /// let stream = device.stream()?;
    /// let mut x = stream.to_device(&[1.0, 2.0])?;
    /// def.load(&device)?.launch(&stream, &config_for_items(2, 256), (&mut x, 0.5))?;
    /// assert_eq!(x.get(1)?, 2.5);
    /// # Ok::<(), gpumem_core::Error>(())
    /// ```
    #[must_use]
    pub fn host_loop<F>(mut self, body: F) -> Self
    where
        F: Fn(&WorkItemIds<'_>, &P) + Send + Sync + 'static,
    {
        self.inner.note_replaced();
        let body = Arc::new(body);
        // SAFETY: as in `host_body`.
        self.inner.host =
            Some(Arc::new(move |executor| unsafe { executor.shared_flat_function::<P, F>(body.clone()) }));
        self.inner.form = Some(HostForm::Loop);
        self
    }

    /// Sets the bytes of static shared memory: a launch on a device that has less is refused. With a number that is too small, the
    /// device itself refuses the launch, or ends it with a fault on the host. NVIDIA's compiler takes at most 48 KiB; all that a device
    /// has is there as dynamic shared memory.
    #[must_use]
    pub fn shared_bytes(mut self, bytes: usize) -> Self {
        self.inner.shared_bytes = bytes;
        self
    }

    /// Sets the bytes of constant memory for its [`ConstantArray`](super::ConstantArray)s, instead of all that a module
    /// has (at most 64 KiB, together with the constants of a function in Rust that are arrays): the rest is for the source's own
    /// `__constant__` declarations.
    #[must_use]
    pub fn constant_bytes(mut self, bytes: usize) -> Self {
        self.inner.constant_bytes = bytes;
        self
    }

    /// Adds an option in the words of the device's compiler.
    #[must_use]
    pub fn compiler_flag(mut self, flag: &str) -> Self {
        self.inner.note_replaced();
        self.inner.flags.push(flag.to_owned());
        self
    }

    /// Sets whether a GPU's compiler may contract `a * b + c` into one operation with one rounding. It may not by
    /// default, so that a GPU and the host compute the same bits. Contracting is faster where arithmetic takes most of
    /// the time. A single such operation can be written as `fmaf` in the source and as [`f32::mul_add`] in the body.
    #[must_use]
    pub fn contract(mut self, contract: bool) -> Self {
        self.inner.contract = contract;
        self
    }

    /// Sets the most work-items of a group, and how many such groups a multiprocessor of an NVIDIA GPU is to hold (0: as its compiler
    /// decides), as CUDA's `__launch_bounds__`. The compiler gives a work-item the registers that this leaves. Launches of larger groups
    /// are refused on every device.
    #[must_use]
    pub fn launch_bounds(mut self, items: u32, groups: u32) -> Self {
        self.inner.launch_bounds = Some(LaunchBounds { items, groups });
        self
    }

    /// Sets whether an index past the end stops the kernel on a GPU, too. On the host it always does.
    #[must_use]
    pub fn bounds_checks(mut self, bounds: bool) -> Self {
        if !bounds {
            self.inner.note_replaced();
        }
        self.inner.bounds = bounds.into();
        self
    }

    /// Has a GPU check all but the indices of slices and views: those of a kernel of the library, which gives the functions of its
    /// caller's nothing but elements.
    #[doc(hidden)] // for the library's own kernels
    #[must_use]
    pub fn checks_functions_by(mut self, _: gpumem_runtime::internal::Key) -> Self {
        self.inner.bounds = Bounds::Functions;
        self
    }

    /// Sets the name that errors give the kernel, where that is not its symbol: a function in Rust may have a name that C++ does
    /// not allow.
    #[must_use]
    pub fn shown_as(mut self, name: &str) -> Self {
        self.inner.shown = Some(name.to_owned());
        self
    }

    /// Sets whether the host runs the kernel in check mode: it looks for races between work-items, in shared and in global
    /// memory, and for reads of shared memory that was never written. Each is a fault that names both accesses. Such a launch
    /// runs on one thread, some hundred times slower.
    ///
    /// For all kernels of a program of which this says nothing, the environment variable `GPUMEM_RACE_CHECKS` decides: `1`
    /// turns check mode on. It is read once.
    #[must_use]
    pub fn race_checks(mut self, check: bool) -> Self {
        self.inner.check = Some(check);
        self
    }
}

impl<P: Parameters> KernelDef<P> {
    /// Returns the kernel's name: its symbol in the compiled image.
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// Returns how the host runs the body. `None` without a body.
    pub fn host_form(&self) -> Option<HostForm> {
        self.inner.form
    }

    /// Returns the source for GPUs, without the prelude: of a kernel that is written in Rust the C++ that is
    /// generated from it.
    pub fn source_text(&self) -> Option<&str> {
        self.inner.source.as_deref()
    }

    /// Returns the body for the host, for simulators that run it instead of the compiled source: a simulated GPU finds
    /// it by [`name`](Self::name) when the launch arrives. `wave_size` and `shared_memory` (in bytes) are those of the
    /// simulated GPU. `None` without a body.
    pub fn entry(&self, wave_size: u32, shared_memory: usize) -> Option<Entry> {
        let executor = Executor::new(wave_size, shared_memory).race_checks(self.inner.is_checked());
        self.inner.host.as_ref().map(|body| Entry::new::<P>(body(executor)))
    }

    /// Returns the source as the compiler of a device gets it ([`portable_text`](crate::portable_text)), for compiling without a device.
    /// `None` without a source.
    pub fn portable_text(&self, wave_size: u32, bounds: bool) -> Option<String> {
        let Declaration { source, name, .. } = &self.inner;
        let constants = self.inner.constant_bytes_of(MOST_CONSTANT_BYTES);
        Some(text_of(&P::list(), source.as_ref()?, name, wave_size, bounds.into(), None, constants))
    }
}

impl<P> Clone for KernelDef<P> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone(), parameters: PhantomData }
    }
}

impl<P> fmt::Debug for KernelDef<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parameters = std::any::type_name::<P>();
        f.debug_struct("KernelDef")
            .field("name", &self.inner.name)
            .field("parameters", &parameters)
            .field("bounds", &self.inner.bounds)
            .finish()
    }
}
