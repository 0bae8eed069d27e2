//! The driver's graphs: one for each set of addresses that a graph was launched with lately.

use super::{
    capture::capture,
    launch::{Base, Values},
};
use crate::{
    Device,
    device::{Allocation, AllocationRef},
    key::Key,
};
use gpumem_core::{Backend, ExecutableGraph, GraphNode, Result};
use gpumem_memory::{memory::DeferredFree, sync::UnrankedMutex as Mutex, track::Command};
use std::{any::Any, sync::Arc};

/// Most of them: in a loop the same blocks of memory come back, and each takes memory of the driver.
/// A model has two sets of addresses.
const MOST: usize = if cfg!(loom) { 1 } else { 16 };

type Shared<B> = Arc<Mutex<Launchable<B>>>;

/// A graph of the driver with the numbers that it has now.
#[derive(Debug)]
pub(super) struct Launchable<B: Backend> {
    pub(super) graph: Box<dyn ExecutableGraph<B>>,
    /// Each call with numbers among its arguments, by its place among all calls, in their order.
    nodes: Vec<(usize, GraphNode)>,
    /// One after the other. `None` if a part of them was not taken.
    numbers: Option<Vec<u8>>,
}

impl<B: Backend> Launchable<B> {
    /// Gives the numbers of a launch to the driver, if they are others.
    /// Returns the error of the driver, which has taken a part of them.
    pub(super) fn set_numbers(&mut self, values: &Values<'_, B>) -> Result<()> {
        let given = || values.numbers.iter().copied().flatten();
        if self.nodes.is_empty() || self.numbers.as_ref().is_some_and(|numbers| numbers.iter().eq(given())) {
            return Ok(());
        }
        self.numbers = None;
        let mut nodes = self.nodes.iter().peekable();
        for (at, call) in values.calls().enumerate() {
            let node = nodes.next_if(|(own, _)| *own == at);
            let (Some((_, node)), Command::Launch(launch)) = (node, &call.command) else { continue };
            let arguments = values.arguments(launch, &call.relocations);
            // SAFETY: the node is that of this launch, and the arguments differ from those that were captured in numbers.
            unsafe { self.graph.set_launch(*node, &launch.kernel, &launch.dims, &arguments)? };
        }
        self.numbers = Some(given().copied().collect());
        Ok(())
    }
}

/// A graph of the driver.
#[derive(Debug)]
pub(super) struct Executable<B: Backend> {
    bases: Box<[Base]>,
    /// The count of [`Arrivals`](gpumem_memory::memory::Arrivals) when it was made; 0 if it is bound to no allocation.
    arrivals: u64,
    /// The driver's graphs are not synchronised.
    pub(super) graph: Shared<B>,
    /// Owns the graph as that of a kernel owns a loaded program: it is destroyed when its last launch is done, by the deferred queue.
    /// After the other reference: that one is never the last.
    pub(super) program: AllocationRef<B>,
}

#[derive(Debug)]
pub(super) struct Executables<B: Backend> {
    kept: Mutex<Kept<B>>,
}

#[derive(Debug)]
struct Kept<B: Backend> {
    /// The one that was used last comes last.
    all: Vec<Arc<Executable<B>>>,
    /// Why there are none, if the backend makes no graphs or could not make this one.
    replayed: Option<&'static str>,
}

impl<B: Backend> Executables<B> {
    pub(super) fn new() -> Self {
        Self { kept: Mutex::new(Kept { all: Vec::new(), replayed: None }) }
    }

    /// How many there are, and why there are none.
    pub(super) fn report(&self) -> (usize, Option<&'static str>) {
        let kept = self.kept.lock();
        (kept.all.len(), kept.replayed)
    }

    /// Forgets a graph that has not taken the numbers of a launch: the next one makes another.
    pub(super) fn forget(&self, refused: &Arc<Executable<B>>) {
        let mut kept = self.kept.lock();
        let gone: Vec<_> = kept.all.extract_if(.., |one| Arc::ptr_eq(one, refused)).collect();
        drop(kept);
        drop(gone);
    }

    /// The driver's graph for these addresses. `None` if the calls have to be enqueued one by one.
    pub(super) fn get(&self, device: &Device<B>, values: &Values<'_, B>) -> Option<Arc<Executable<B>>> {
        if values.steps.is_empty() {
            return None;
        }
        // CUDA's copies and fills refer to allocations: where another one has the address now, a launch crashes in the driver. A
        // kernel's arguments are numbers.
        let is_bound = values.plan.report.copies + values.plan.report.fills > 0;
        let arrivals = if is_bound { device.core().arrivals.count() } else { 0 };
        // Dropped after the lock.
        let mut outdated = Vec::new();
        let mut kept = self.kept.lock();
        if kept.replayed.is_some() {
            return None;
        }
        outdated.extend(kept.all.extract_if(.., |one| one.arrivals != arrivals));
        if let Some(at) = kept.all.iter().position(|one| *one.bases == *values.bases) {
            kept.all[at..].rotate_left(1);
            return kept.all.last().cloned();
        }
        drop(kept);
        // Not under the lock: the driver takes a while. Two threads may both make one.
        let made = make(device, values, arrivals).unwrap_or_else(|error| {
            gpumem_core::tell!(warn: %error, "a graph is enqueued call by call, because the driver could not make one");
            Err("the driver could not make a graph of these calls")
        });
        let mut kept = self.kept.lock();
        let made = match made {
            Ok(made) => Arc::new(made),
            Err(why) => {
                kept.replayed = Some(why);
                return None;
            }
        };
        let given = made.clone();
        kept.all.push(made);
        let oldest = (kept.all.len() > MOST).then(|| kept.all.remove(0));
        drop(kept);
        drop(oldest);
        Some(given)
    }
}

/// The driver's graph of the calls, or why the backend makes none.
fn make<B: Backend>(
    device: &Device<B>,
    values: &Values<'_, B>,
    arrivals: u64,
) -> Result<Result<Executable<B>, &'static str>> {
    let core = device.core();
    let retire = |stream| core.deferred_frees.add(DeferredFree::Stream(Arc::new(stream)), core.generation());
    let captured = core.note_loss(capture(&core.raw, values, retire));
    // A launch allocates nothing: the streams would wait for an allocation to be destroyed.
    core.deferred_frees.sweep(core);
    let (graph, nodes) = match captured? {
        Ok(captured) => captured,
        Err(why) => return Ok(Err(why)),
    };
    let numbers = Some(values.numbers.iter().copied().flatten().copied().collect());
    let graph = Launchable { graph, nodes, numbers };
    let graph: Shared<B> = Arc::new(Mutex::new(graph));
    // The programs of its kernels are loaded for as long as it is. They keep no device open, as what waits in a queue of the device
    // must not.
    let kernels: Vec<B::Kernel> = values.kernels().cloned().collect();
    let owned: Box<dyn Any + Send + Sync> = Box::new((graph.clone(), kernels));
    // SAFETY: a launch notes itself in the program's log.
    let key = unsafe { Key::new() };
    let program = Allocation::program(key, device, owned, true);
    Ok(Ok(Executable { bases: values.bases.into(), arrivals, graph, program }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{graph::Plan, reads, writes};
    use gpumem_core::Backend;
    use gpumem_host::Host;

    #[derive(Debug)]
    struct Nothing;

    // SAFETY: nothing launches it.
    unsafe impl ExecutableGraph<Host> for Nothing {
        unsafe fn launch(&mut self, _: &<Host as Backend>::Stream) -> Result<()> {
            Ok(())
        }
    }

    /// Whether a graph that was made before `change` is used after it. Otherwise another one is in its place.
    fn is_kept(device: &Device<Host>, plan: &Plan<Host>, change: impl FnOnce()) -> bool {
        let executables = Executables::new();
        let arrivals = device.core().arrivals.count() * u64::from(plan.report.copies > 0);
        let launchable = Launchable { graph: Box::new(Nothing), nodes: Vec::new(), numbers: None };
        let graph: Shared<Host> = Arc::new(Mutex::new(launchable));
        // SAFETY: nothing launches it.
        let program = Allocation::program(unsafe { Key::new() }, device, Box::new(()), true);
        let bases = [Base::default()].into();
        executables.kept.lock().all.push(Arc::new(Executable {
            bases,
            arrivals,
            graph: graph.clone(),
            program,
        }));
        change();
        let values = Values { plan, steps: &(0..plan.steps.len()), bases: &[Base::default()], numbers: &[] };
        let (found, (count, _)) = (executables.get(device, &values), executables.report());
        assert_eq!(count, 1);
        found.is_some_and(|found| Arc::ptr_eq(&found.graph, &graph))
    }

    #[test]
    fn copies_are_made_again_when_memory_has_come_in() {
        let device = Device::<Host>::open("host").unwrap();
        let forms = (reads::<u8, _>(64), writes::<u8, _>(64));
        let graph = device.record(forms, |stream, (x, mut y)| stream.copy_to_device(&mut y, &x)).unwrap();
        let plan = &graph.inner.plan;
        drop(device.uninit_array::<u8, _>(64).unwrap());
        assert!(is_kept(&device, plan, || drop(device.uninit_array::<u8, _>(64))), "of the pool");
        assert!(is_kept(&device, plan, || drop(device.to_device(&[1u8; 64]))), "of the pool");
        let mut bytes = ndarray::Array1::<u8>::zeros(64);
        let address = bytes.as_ptr() as u64;
        assert!(!is_kept(&device, plan, || drop(device.uninit_array::<u8, _>(1 << 28))), "of the driver");
        let lock = || device.pinned((bytes.view_mut(),), |_| ()).unwrap();
        assert!(!is_kept(&device, plan, lock), "of the caller");
        // SAFETY: nothing uses it.
        let import = || drop(unsafe { device.foreign_array::<u8, _>(address, 64, 64, ()) });
        assert!(!is_kept(&device, plan, import), "of another library");
    }
}
