//! From a body to a launch.

use crate::simt::{
    Fault, Parameters, Phases, WorkItem, WorkItemIds, checker::Checker, group::Group, group_batch::Batch,
    no_barrier, phases, pool, run,
};
use gpumem_core::{HostFunction, HostLaunch, LaunchConfig};
use std::sync::Arc;

/// How bodies are run: the facts of the device that they run on behalf of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Executor {
    wave_size: u32,
    shared_memory: usize,
    check: bool,
}

impl Executor {
    /// An executor for waves of `wave_size` work-items, 1 to 64, and `shared_memory` bytes for each group.
    pub fn new(wave_size: u32, shared_memory: usize) -> Self {
        Self { wave_size: wave_size.clamp(1, 64), shared_memory, check: false }
    }

    /// In check mode: launches find races between work-items, in shared and in global memory, and reads of shared memory
    /// that was never written. They run on one thread, some hundred times slower.
    ///
    /// A barrier whose scope includes the memory orders two accesses of one group; a wavebarrier orders those of one
    /// wave; nothing orders those of two groups. Atomic changes do not conflict with each other.
    #[must_use]
    pub fn race_checks(mut self, check: bool) -> Self {
        self.check = check;
        self
    }

    /// A body as a function that a backend can launch, for the parameters `P`.
    ///
    /// # Safety
    /// * The function is called only with arguments for `P`. Their memory is valid until it returns. No other code uses
    ///   it meanwhile, apart from reads of memory that the function only reads.
    /// * Work-items of different groups do not race: no element is written by one and used by another, other than
    ///   atomically by both.
    pub unsafe fn function<P, F>(self, body: F) -> HostFunction
    where
        P: Parameters,
        F: for<'g, 'p> AsyncFn(WorkItem<'g>, &'p P) + Send + Sync + 'static,
    {
        // SAFETY: the caller's promise.
        unsafe { self.shared_function::<P, F>(Arc::new(body)) }
    }

    /// As [`function`](Self::function), for a body that several executors run.
    ///
    /// # Safety
    /// As for [`function`](Self::function).
    pub unsafe fn shared_function<P, F>(self, body: Arc<F>) -> HostFunction
    where
        P: Parameters,
        F: for<'g, 'p> AsyncFn(WorkItem<'g>, &'p P) + Send + Sync + 'static,
    {
        // SAFETY: the caller's promise.
        HostFunction::new(move |launch| unsafe {
            self.bound(launch, |arguments: &P, dims, checker| self.run(&dims, arguments, &*body, checker))
        })
    }

    /// As [`function`](Self::function), for a body without barriers: it becomes a plain loop.
    ///
    /// # Safety
    /// As for [`function`](Self::function).
    pub unsafe fn flat_function<P, F>(self, body: F) -> HostFunction
    where
        P: Parameters,
        F: Fn(&WorkItemIds<'_>, &P) + Send + Sync + 'static,
    {
        // SAFETY: the caller's promise.
        unsafe { self.shared_flat_function::<P, F>(Arc::new(body)) }
    }

    /// As [`flat_function`](Self::flat_function), for a body that several executors run.
    ///
    /// # Safety
    /// As for [`function`](Self::function).
    pub unsafe fn shared_flat_function<P, F>(self, body: Arc<F>) -> HostFunction
    where
        P: Parameters,
        F: Fn(&WorkItemIds<'_>, &P) + Send + Sync + 'static,
    {
        // SAFETY: the caller's promise.
        HostFunction::new(move |launch| unsafe {
            self.bound(launch, |arguments: &P, dims, checker| {
                self.run_flat(&dims, arguments, &*body, checker)
            })
        })
    }

    /// As [`function`](Self::function), for a body that is split at its barriers. There is no check mode for it.
    ///
    /// # Safety
    /// As for [`function`](Self::function).
    pub unsafe fn shared_split_function<P, F>(self, body: Arc<F>) -> HostFunction
    where
        P: Parameters,
        F: Fn(&mut Phases<'_>, &P) -> Result<(), Fault> + Send + Sync + 'static,
    {
        // SAFETY: the caller's promise.
        HostFunction::new(move |launch| unsafe {
            self.bound(launch, |arguments: &P, dims, _| self.run_split(&dims, arguments, &*body))
        })
    }

    /// Whether it runs bodies in check mode.
    pub fn checks(&self) -> bool {
        self.check
    }

    /// # Safety
    /// As for [`function`](Self::function).
    unsafe fn bound<P: Parameters>(
        &self,
        launch: HostLaunch<'_>,
        run: impl FnOnce(&P, LaunchConfig, Option<&Checker>) -> Result<(), Fault>,
    ) -> Result<(), String> {
        let checker = self.check.then(Checker::default);
        // SAFETY: the caller's promise; the parameters live as long as the checker.
        let arguments = unsafe { P::bind(launch.arguments, checker.as_ref()) };
        let arguments = arguments.ok_or("the arguments are not those that the kernel declares")?;
        run(&arguments, launch.dims, checker.as_ref()).map_err(|fault| fault.to_string())
    }

    fn run<P: Parameters>(
        &self,
        dims: &LaunchConfig,
        arguments: &P,
        body: &(impl AsyncFn(WorkItem<'_>, &P) + Sync),
        checker: Option<&Checker>,
    ) -> Result<(), Fault> {
        let part = |numbers: &mut Batch, checker: Option<&Checker>| {
            let group = Group::new(*dims, self.wave_size as usize, self.shared_memory, checker)?;
            let seats = group.seats()?;
            run::run(&group, &seats, numbers, |item| body(item, arguments))
        };
        match checker {
            Some(_) => part(&mut Batch::all(0..groups(dims)), checker),
            None => pool::run(groups(dims), |numbers| part(numbers, None)),
        }
    }

    fn run_split<P: Parameters>(
        &self,
        dims: &LaunchConfig,
        arguments: &P,
        body: &(impl Fn(&mut Phases<'_>, &P) -> Result<(), Fault> + Sync),
    ) -> Result<(), Fault> {
        pool::run(groups(dims), |numbers| {
            let group = Group::new(*dims, self.wave_size as usize, self.shared_memory, None)?;
            phases::run(&group, numbers, arguments, body)
        })
    }

    fn run_flat<P: Parameters>(
        &self,
        dims: &LaunchConfig,
        arguments: &P,
        body: &(impl Fn(&WorkItemIds<'_>, &P) + Sync),
        checker: Option<&Checker>,
    ) -> Result<(), Fault> {
        let part = |numbers: &mut Batch, checker: Option<&Checker>| {
            let group = Group::flat(*dims, self.wave_size as usize, checker);
            no_barrier::run(&group, dims, numbers, arguments, body)
        };
        match checker {
            Some(_) => part(&mut Batch::all(0..groups(dims)), checker),
            None => pool::run(groups(dims), |numbers| part(numbers, None)),
        }
    }
}

fn groups(dims: &LaunchConfig) -> u64 {
    // A launch of more groups than this would never end.
    dims.groups.iter().fold(1, |product: u64, size| product.saturating_mul(u64::from(*size)))
}
