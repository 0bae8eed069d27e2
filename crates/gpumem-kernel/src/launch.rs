//! Launching a kernel in stream order.

use super::arguments::{ArgumentCollector, Arguments, Constants, HostArrays, ScopedArgument};
use crate::simt::Parameters;
use gpumem_core::{
    Backend, Capabilities, DriverDevice, Error, ErrorKind, KernelArguments, LaunchConfig, Result,
};
use gpumem_runtime::{
    Device, Scope, Stream,
    internal::{Access, Allocation, AllocationRef, DeviceContext, Program, Sink, Timeline, Work},
};
use std::{
    cell::Cell,
    fmt,
    marker::PhantomData,
    panic::{RefUnwindSafe, UnwindSafe},
    sync::Arc,
};

const OPERATION: &str = "launch";
const GROUPS: [&str; 3] = ["groups along x", "groups along y", "groups along z"];
/// Groups along an axis that any device takes: one more stands for all numbers that do not fit
/// ([`config_for_items`](crate::config_for_items)).
const MOST_GROUPS: u32 = u32::MAX - 1;
const ITEMS: [&str; 3] =
    ["work-items of a group along x", "work-items of a group along y", "work-items of a group along z"];

/// A kernel of a device, with the parameters `P`. Cloning it is cheap and gives the same kernel.
///
/// Dropping it never waits: its program is unloaded when its last launch is done.
pub struct Kernel<P, B: Backend> {
    loaded: Loaded<B>,
    parameters: PhantomData<fn(P)>,
}

/// A kernel, whatever its parameters are: one code launches all that are.
struct Loaded<B: Backend> {
    raw: B::Kernel,
    /// Owns the program as an array owns its memory. Its log has the last launch on each stream, so that it is unloaded
    /// when the last one is done, by the deferred queue.
    program: AllocationRef<B>,
    /// Of which device, and between which of its resets: as the program's memory says, nearer to where launches look.
    context: Arc<DeviceContext<B>>,
    generation: u64,
    limits: Limits,
    constants: Option<Arc<Constants<B>>>,
    name: Arc<str>,
}

// As a device.
impl<B: Backend> UnwindSafe for Loaded<B> {}
impl<B: Backend> RefUnwindSafe for Loaded<B> {}

/// The limits of a launch's sizes: the capabilities of the device that every launch reads.
#[derive(Debug, Clone, Copy)]
struct Limits {
    grid: [u32; 3],
    group: [u32; 3],
    group_size: u32,
    /// As `group_size`, also where the declared bytes are too many.
    most_items: u32,
    /// Bytes of shared memory in addition to the kernel's own declarations.
    shared: usize,
    /// Bytes of shared memory that the kernel declares itself.
    declared: usize,
    /// Axes with more than one work-item: fewer than three if each work-item has its own element.
    axes: usize,
}

impl Limits {
    /// Of a kernel that declares so many bytes of shared memory itself and perhaps the most work-items of a group, for launches of so
    /// many axes. If those bytes are too many, no launch fits.
    fn of(has: &Capabilities, (declared, most_items): (usize, Option<u32>), axes: usize) -> Self {
        let shared = has.shared_memory.checked_sub(declared);
        let most_items = most_items.map_or(has.max_group_size, |most| most.min(has.max_group_size));
        let group_size = if shared.is_some() { most_items } else { 0 };
        let along = |most: [u32; 3]| {
            let mut most = most.map(|most| most.min(MOST_GROUPS));
            most.iter_mut().skip(axes).for_each(|most| *most = 1);
            most
        };
        Self {
            grid: along(has.max_grid_dims),
            group: along(has.max_group_dims),
            group_size,
            most_items,
            shared: shared.unwrap_or_default(),
            declared,
            axes,
        }
    }

    #[inline]
    fn fits(&self, dims: &LaunchConfig) -> bool {
        let within = |sizes: [u32; 3], limits: [u32; 3]| {
            sizes.iter().zip(limits).all(|(size, most)| size.wrapping_sub(1) < most)
        };
        let [x, y, z] = dims.group_size.map(u64::from);
        within(dims.groups, self.grid)
            && within(dims.group_size, self.group)
            && x.saturating_mul(y).saturating_mul(z) <= u64::from(self.group_size)
            && dims.shared_bytes as usize <= self.shared
    }
}

impl<P: Parameters, B: Backend> Kernel<P, B> {
    pub(super) fn new(
        device: &Device<B>,
        raw: B::Kernel,
        name: &str,
        sizes: (usize, Option<u32>),
        constants: Option<Constants<B>>,
        keeps_open: bool,
    ) -> Self {
        let constants = constants.map(Arc::new);
        let program = Allocation::program(crate::KEY, device, Box::new(raw.clone()), keeps_open);
        let (context, generation) = (program.context().clone(), program.generation());
        let (limits, name) = (Limits::of(context.raw.capabilities(), sizes, P::OWN_AXES), name.into());
        let loaded = Loaded { raw, program, context, generation, limits, constants, name };
        Self { loaded, parameters: PhantomData }
    }

    /// Returns the kernel's name.
    pub fn name(&self) -> &str {
        &self.loaded.name
    }

    /// Enqueues the kernel after all work on any stream that conflicts with its arrays, as copies are. If the kernel
    /// fails, the next wait returns [`AsynchronousFault`](ErrorKind::AsynchronousFault). Uses of the memory that it was
    /// to write return [`Poisoned`](ErrorKind::Poisoned), until that is written anew.
    ///
    /// ```no_run
    /// # use {gpumem_kernel::{Kernel, Slice, SliceMut, config_for_items}, gpumem_runtime::{DeviceArray, Stream}};
    /// # fn example<B: gpumem_core::Backend>(
    /// #     stream: &Stream<B>, saxpy: &Kernel<(Slice<f32>, SliceMut<f32>, f32), B>,
    /// #     x: &DeviceArray<f32, ndarray::Ix1, B>, y: &mut DeviceArray<f32, ndarray::Ix1, B>,
    /// # ) -> gpumem_core::Result<()> {
    /// saxpy.launch(stream, &config_for_items([x.len(), 1, 1], [256, 1, 1]), (x, y, 2.5f32))?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// With arrays of the host among the arguments ([`In`](super::In), [`Out`](super::Out), [`InOut`](super::InOut))
    /// the call waits for the launch. When it returns, the results are in the arrays; if the kernel has failed, it
    /// returns the error.
    ///
    /// # Errors
    /// Returns one of these, which names the kernel and the argument. But for the last, nothing has been launched
    /// then.
    /// * [`LaunchTooLarge`](gpumem_core::ErrorKind::LaunchTooLarge) for sizes that the device does not have,
    ///   [`InvalidArgument`](gpumem_core::ErrorKind::InvalidArgument) for a size of zero, and for more axes than an
    ///   [`Own`](super::Own) or [`OwnView`](super::OwnView) among the parameters has
    /// * [`WrongDevice`](gpumem_core::ErrorKind::WrongDevice) for an array or a stream of another device
    /// * [`RankMismatch`](gpumem_core::LayoutError::RankMismatch) for an array of another rank,
    ///   [`NeedsCopy`](gpumem_core::LayoutError::NeedsCopy) for one that is not packed where a slice is wanted
    /// * [`Overlap`](gpumem_core::ErrorKind::Overlap) for an array that is written and, by a second handle that an import has
    ///   made, given as another argument too
    /// * [`Poisoned`](gpumem_core::ErrorKind::Poisoned) for an array that failed work was to write, given for writing
    ///   too, because a kernel may leave elements as they are
    /// * [`Driver`](gpumem_core::ErrorKind::Driver) if the driver reports a failure
    /// * with arrays of the host also [`AsynchronousFault`](gpumem_core::ErrorKind::AsynchronousFault) if the kernel
    ///   or a copy failed; nothing has been copied back then
    pub fn launch<A: Arguments<P, B>>(
        &self,
        stream: &Stream<B>,
        dims: &LaunchConfig,
        mut arguments: A,
    ) -> Result<()> {
        let mut collected =
            ArgumentCollector::new(HostArrays::waiting(stream), self.loaded.constants.as_deref());
        let loaded = &self.loaded;
        loaded.check(stream, dims)?;
        arguments.collect(&mut collected).map_err(|error| loaded.explain(error))?;
        loaded.submit(stream, dims, &mut collected)
    }

    /// As [`launch`](Self::launch), without waiting for arrays of the host: their results are there after a wait for
    /// the scope's stream, at the latest when the scope ends.
    ///
    /// ```no_run
    /// # use gpumem_kernel::{In, InOut, Kernel, Slice, SliceMut, config_for_items};
    /// # use gpumem_runtime::{DeviceArray, Stream};
    /// # fn example<B: gpumem_core::Backend>(
    /// #     stream: &Stream<B>, saxpy: &Kernel<(Slice<f32>, SliceMut<f32>, f32), B>,
    /// #     x: &ndarray::Array1<f32>, y: &mut ndarray::Array1<f32>,
    /// # ) -> gpumem_core::Result<()> {
    /// let dims = config_for_items([x.len(), 1, 1], [256, 1, 1]);
    /// stream.scope(|scope| saxpy.launch_in(scope, &dims, (In(x), InOut(y), 2.5f32)))??;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As for [`launch`](Self::launch) with arrays of the device. A failure of the kernel is an error of the scope,
    /// and nothing is copied back.
    pub fn launch_in<'scope, 'env, A: Arguments<P, B> + ScopedArgument<'env>>(
        &self,
        scope: &'scope Scope<'scope, 'env, B>,
        dims: &LaunchConfig,
        mut arguments: A,
    ) -> Result<()> {
        let mut collected =
            ArgumentCollector::new(HostArrays::in_scope(scope), self.loaded.constants.as_deref());
        let loaded = &self.loaded;
        loaded.check(scope.stream(), dims)?;
        arguments.collect(&mut collected).map_err(|error| loaded.explain(error))?;
        loaded.submit(scope.stream(), dims, &mut collected)
    }

    /// As [`launch`](Self::launch), with arguments that have been collected and checked already.
    pub(super) fn launch_collected<'a>(
        &'a self,
        stream: &Stream<B>,
        dims: &LaunchConfig,
        collected: &mut ArgumentCollector<'a, B>,
    ) -> Result<()> {
        self.loaded.check(stream, dims)?;
        self.loaded.submit(stream, dims, collected)
    }
}

impl<B: Backend> Loaded<B> {
    /// Whether the kernel can be launched there in this size, before any array moves.
    #[inline]
    fn check(&self, stream: &Stream<B>, dims: &LaunchConfig) -> Result<()> {
        let timeline = stream.timeline_by(crate::KEY);
        let context = &timeline.context;
        // Whether the stream is stale is asked when the launch is submitted.
        if !(Arc::ptr_eq(&self.context, context) && self.generation == timeline.generation) {
            self.check_program(context)?;
        }
        if self.limits.fits(dims) { Ok(()) } else { Err(self.misfit(dims)) }
    }

    #[cold]
    fn check_program(&self, context: &Arc<DeviceContext<B>>) -> Result<()> {
        let program = &self.program;
        let same = context.check_same(OPERATION, "kernel", program.context());
        same.and_then(|()| program.check_beside(context, OPERATION)).map_err(|error| self.explain(error))
    }

    /// Adds the kernel and the device to an error of a launch.
    #[cold]
    #[inline(never)]
    fn explain(&self, error: Error) -> Error {
        self.context.place(error).in_kernel(&self.name)
    }

    /// Returns what is wrong with the sizes of a launch.
    #[cold]
    fn misfit(&self, dims: &LaunchConfig) -> Error {
        let has = self.context.raw.capabilities();
        if dims.groups.contains(&0) || dims.group_size.contains(&0) {
            let why = "a launch has at least one group and one work-item along every axis";
            return self.explain(self.context.error(OPERATION, ErrorKind::InvalidArgument { why }));
        }
        let mut beyond = dims.groups.iter().zip(&dims.group_size).skip(self.limits.axes);
        if beyond.any(|(groups, group_size)| *groups > 1 || *group_size > 1) {
            let why = "each work-item writes its own element: the launch has one work-item along the axes beyond those of \
                       the `Own` or `OwnView`";
            return self.explain(self.context.error(OPERATION, ErrorKind::InvalidArgument { why }));
        }
        let items = dims.group_size.iter().fold(1, |items: u64, size| items.saturating_mul(u64::from(*size)));
        let along = |names: [&'static str; 3], sizes: [u32; 3], limits: [u32; 3]| {
            let mut axes = names.into_iter().zip(sizes.into_iter().zip(limits));
            let found = axes.find(|(_, (size, most))| size > most);
            found.map(|(what, (size, most))| (what, u64::from(size), u64::from(most)))
        };
        let (declared, dynamic) = (self.limits.declared as u64, u64::from(dims.shared_bytes));
        let too_large = along(GROUPS, dims.groups, has.max_grid_dims.map(|most| most.min(MOST_GROUPS)))
            .or_else(|| along(ITEMS, dims.group_size, has.max_group_dims))
            .or_else(|| {
                let most = u64::from(self.limits.most_items);
                (items > most).then_some(("work-items of a group", items, most))
            });
        let (what, requested, most) = too_large.unwrap_or_else(|| {
            ("bytes of shared memory of a group", declared.saturating_add(dynamic), has.shared_memory as u64)
        });
        self.explain(self.context.error(OPERATION, ErrorKind::LaunchTooLarge { what, requested, most }))
    }

    #[inline(never)] // one for kernels of all parameters
    fn submit<'a>(
        &'a self,
        stream: &Stream<B>,
        dims: &LaunchConfig,
        collected: &mut ArgumentCollector<'a, B>,
    ) -> Result<()> {
        let timeline = stream.timeline_by(crate::KEY);
        let launched = if collected.is_of_device() {
            let ArgumentCollector { arguments, accesses, .. } = &*collected;
            self.submit_admitted(timeline, accesses, dims, arguments).map(drop)
        } else {
            self.submit_moved(timeline, dims, collected)
        };
        launched.map_err(|error| self.explain(of_argument(error, timeline, collected)))
    }

    /// As [`submit`](Self::submit), where something is to be moved to the device before.
    #[inline(never)]
    fn submit_moved<'a>(
        &'a self,
        timeline: &Arc<Timeline<B>>,
        dims: &LaunchConfig,
        collected: &mut ArgumentCollector<'a, B>,
    ) -> Result<()> {
        let ArgumentCollector { arguments, accesses, host, constants } = collected;
        // Until the launch is enqueued no other thread may write other constants.
        let written = match constants.fill() {
            Some(fill) => Some(fill.write(host.device(), timeline, accesses)?),
            None => None,
        };
        host.launch(accesses, |accesses| {
            let launched = self.submit_admitted(timeline, accesses, dims, arguments);
            // Not while the kernel is waited for.
            drop(written);
            launched
        })
    }

    /// Enqueues the launch, with all uses of memory. Returns its submission index.
    #[inline(always)]
    fn submit_admitted(
        &self,
        timeline: &Arc<Timeline<B>>,
        accesses: &[Access<'_, B>],
        dims: &LaunchConfig,
        arguments: &KernelArguments,
    ) -> Result<u64> {
        let admitted = timeline.admit(Work::Launch, OPERATION, accesses)?;
        let is_long = Cell::new(false);
        let enqueue = |sink: &Sink<'_, B>, submission| {
            if !timeline.is_recording() {
                is_long.set(note_launch(&self.program, timeline, submission));
            }
            self.enqueue(sink, dims, arguments)
        };
        let submission = admitted.submit(enqueue)?.submission;
        if is_long.get() {
            self.program.shorten_log();
        }
        Ok(submission)
    }

    #[inline]
    fn enqueue(&self, sink: &Sink<'_, B>, dims: &LaunchConfig, arguments: &KernelArguments) -> Result<()> {
        // SAFETY: the arguments are those of the kernel's declaration. The access logs keep their memory alive and
        // order its uses. The author of the declaration promised how the kernel uses them.
        unsafe { sink.launch(&self.raw, dims, arguments, || self.recorded()) }
    }

    #[cold]
    fn recorded(&self) -> Arc<dyn Program<B>> {
        Arc::new(RecordedProgram { program: self.program.clone(), name: self.name.clone() })
    }
}

/// Notes a launch of a program, under the lock of the stream's queue. Returns whether the log is long.
#[inline]
fn note_launch<B: Backend>(program: &AllocationRef<B>, timeline: &Arc<Timeline<B>>, submission: u64) -> bool {
    // Nothing conflicts with a launch but the unloading, which no launch is left to meet. So nothing else locks this
    // log meanwhile, and launches do not look it up.
    program.log().note_others(&(0..1), false, timeline, submission)
}

/// The program of a launch that a graph has recorded.
struct RecordedProgram<B: Backend> {
    program: AllocationRef<B>,
    name: Arc<str>,
}

impl<B: Backend> Program<B> for RecordedProgram<B> {
    fn name(&self) -> &str {
        &self.name
    }

    fn note_launch(&self, timeline: &Arc<Timeline<B>>, submission: u64) -> bool {
        note_launch(&self.program, timeline, submission)
    }

    fn shorten_log(&self) {
        self.program.shorten_log();
    }
}

/// Adds the argument's position to errors that are found when all arguments are there.
#[cold]
fn of_argument<B: Backend>(
    error: Error,
    timeline: &Timeline<B>,
    collected: &ArgumentCollector<'_, B>,
) -> Error {
    let is_wrong = |access: &&Access<'_, B>| match error.kind() {
        ErrorKind::WrongDevice { what: "array", .. } => !access.memory.context().is_same(&timeline.context),
        ErrorKind::Stale { what: "array" } => !access.memory.is_fresh(),
        ErrorKind::Overlap { destination_bytes, .. } => {
            access.write && access.memory.has_other_handles() && access.extent == *destination_bytes
        }
        ErrorKind::Poisoned { .. } => access.memory.is_poisoned(&access.extent),
        _ => false,
    };
    match collected.accesses.iter().find(is_wrong).and_then(Access::argument) {
        Some(position) => error.at_argument(position + 1),
        None => error,
    }
}

impl<P, B: Backend> Clone for Kernel<P, B> {
    fn clone(&self) -> Self {
        let Loaded { raw, program, context, generation, limits, constants, name } = &self.loaded;
        let loaded = Loaded {
            raw: raw.clone(),
            program: program.clone(),
            context: context.clone(),
            generation: *generation,
            limits: *limits,
            constants: constants.clone(),
            name: name.clone(),
        };
        Self { loaded, parameters: PhantomData }
    }
}

impl<P, B: Backend> fmt::Debug for Kernel<P, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kernel").field("name", &self.loaded.name).finish_non_exhaustive()
    }
}
