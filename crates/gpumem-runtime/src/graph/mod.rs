//! Graphs: work that is recorded once and launched often.
//!
//! * [`recording`](crate::recording): what a body enqueues is written down, over placeholder memory.
//! * [`plan`]: what each launch does; [`arena`]: where the temporaries lie.
//! * [`launch`]: binds the arguments, and enqueues everything as one piece of work; [`executables`] are the driver's graphs.
//! * [`arguments`], [`results`]: what comes in, and what comes out.

mod arguments;
mod capture;
mod executables;
mod launch;
mod memory;
mod nested;
mod pinned;
mod plan;
mod ranks;
mod results;
mod schedule;
mod varying;

mod sealed {
    /// The types of arguments and results of graphs.
    pub trait Sealed {}
}
use sealed::Sealed;

pub use arguments::{
    GraphArgument, GraphArguments, GraphParameter, GraphParameters, PinnedReadForm, PinnedWriteForm,
    ReadForm, Reads, WriteForm, Writes, reads, writes,
};
pub use memory::GraphMemory;
pub use pinned::PinnedView;
pub use ranks::{BoundUse, RankWork};
use results::Binder;
pub use results::GraphResults;
pub use varying::{UntypedNumber, UntypedValue, Value, Varying};

use crate::{Device, Stream, recording::GraphRecording};
use arguments::{Places, Recorder, Signature};
use executables::Executables;
use gpumem_core::{Backend, ErrorKind, NotRecorded, Result};
use gpumem_memory::track::Timeline;
use plan::Plan;
use schedule::Schedule;
use smallvec::SmallVec;
use std::{
    fmt,
    marker::PhantomData,
    panic::{RefUnwindSafe, UnwindSafe},
    sync::Arc,
};

/// Work that was recorded once and is launched often, with other arrays each time: [`Device::record`]. Cloning it is cheap and gives
/// the same graph.
///
/// It keeps one block of memory for its temporaries, or shares [one](GraphMemory), so its launches run one after the other, on
/// whichever streams. Each launch of a graph with operations of several ranks takes memory of its own. Dropping it never waits.
#[must_use = "a graph does nothing before it is launched"]
pub struct Graph<P, R, B: Backend> {
    inner: Arc<Inner<R, B>>,
    parameters: PhantomData<fn(P)>,
}

struct Inner<R, B: Backend> {
    plan: Plan<B>,
    /// Those of each segment of the plan.
    executables: Vec<Executables<B>>,
    /// What the body returned, over placeholder memory.
    results: R,
    /// Which result of the plan each of them is, those without bytes left out.
    numbers: Vec<usize>,
    device: Device<B>,
    generation: u64,
}

// As a device. Of the results nothing is used but their layouts.
impl<R, B: Backend> UnwindSafe for Inner<R, B> {}
impl<R, B: Backend> RefUnwindSafe for Inner<R, B> {}

/// What a graph consists of: [`Graph::report`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub struct GraphReport {
    /// Pieces of work, as the body has enqueued them.
    pub nodes: usize,
    /// Pairs of nodes of which the second runs after the first: it is the next one on its stream of the body, or uses bytes that the
    /// first one uses on another stream, one of the two writing them, or one of the two is an operation of several ranks. Pairs that
    /// follow from others are not counted.
    pub edges: usize,
    /// Launches of kernels.
    pub launches: usize,
    /// Calls of the driver that copy.
    pub copies: usize,
    /// Calls of the driver that fill.
    pub fills: usize,
    /// Operations of several ranks, a group of them as one.
    pub collectives: usize,
    /// Bytes of the block with the temporaries.
    pub arena_bytes: usize,
    /// Bytes of all temporaries together: those that are never alive at the same time share bytes of the arena.
    pub temporary_bytes: usize,
    /// Bytes of the host that the body uploaded, and that the graph keeps on the device.
    pub constant_bytes: usize,
    /// Graphs of the driver that are kept: one for each set of arrays of the last launches, at most 16. A graph with operations of
    /// several ranks has as many for each segment before, between and after these.
    pub driver_graphs: usize,
    /// Why launches enqueue all calls one by one, if they do. Known from the first launch on.
    pub replayed: Option<&'static str>,
}

impl fmt::Display for GraphReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { nodes, edges, launches, copies, fills, collectives, .. } = self;
        write!(f, "{nodes} nodes and {edges} edges: {launches} launches, {copies} copies and {fills} fills")?;
        if *collectives > 0 {
            write!(f, ", and {collectives} operations of several ranks")?;
        }
        writeln!(f)?;
        let Self { arena_bytes, temporary_bytes, constant_bytes, driver_graphs, replayed, .. } = self;
        writeln!(
            f,
            "{temporary_bytes} bytes of temporaries in {arena_bytes}, and {constant_bytes} bytes of constants"
        )?;
        match replayed {
            Some(why) => write!(f, "enqueued call by call: {why}"),
            None => write!(f, "{driver_graphs} graphs of the driver"),
        }
    }
}

impl<B: Backend> Device<B> {
    /// Runs `body` once and records what it enqueues on its stream. Nothing of that is done before the graph is
    /// [launched](Graph::launch).
    ///
    /// `like` has the shapes and strides of the arrays that each launch gets, as a tuple of `&array`, `&mut array`,
    /// [`reads`](crate::reads) and [`writes`](crate::writes); also numbers that each launch gives anew, and vectors. `body` gets views
    /// and [`Varying`] numbers in their places. It may use these, arrays that it makes through its stream or its device, arrays that
    /// [are never written](crate::ArrayBase::freeze), other graphs, and values: these are recorded as they are, and so are elements
    /// that it uploads from the host. What it returns are arrays of each launch.
    ///
    /// ```
    /// # use gpumem_runtime::{reads, writes}; let device = gpumem_runtime::Device::<gpumem_host::Host>::open("host")?;
    /// let stream = device.stream()?;
    /// let shift = device.record((reads::<f32, _>(4), writes::<f32, _>(4)), |stream, (from, mut to)| {
    ///     stream.copy_to_device(&mut to.slice_mut(ndarray::s![1..])?, &from.slice(ndarray::s![..3])?)?;
    ///     stream.copy_to_host(&to)
    /// })?;
    /// let (from, mut to) = (device.to_device(&[1.0, 2.0, 3.0, 4.0f32])?, device.device_array::<f32, _>(4)?);
    /// let host = shift.launch(&stream, (&from, &mut to))?; // returns at once
    /// assert_eq!(host.view()?.to_vec(), [0.0, 1.0, 2.0, 3.0]); // waits for this launch
    /// # Ok::<(), gpumem_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns the error of `body`. Work that a graph cannot record returns [`NotRecordable`](gpumem_core::ErrorKind::NotRecordable)
    /// there: waits and looks of the host, other arrays than those above, work of other libraries. Returns
    /// [`OutOfMemory`](gpumem_core::ErrorKind::OutOfMemory) if the device has no room for the temporaries.
    pub fn record<A: GraphParameters<B>, R: GraphResults<B>>(
        &self,
        like: A,
        body: impl for<'g> FnOnce(&'g Stream<B>, A::Inside<'g>) -> Result<R>,
    ) -> Result<Graph<A::Form, R, B>> {
        self.record_with(None, like, body)
    }

    /// As [`record`](Self::record), with the temporaries in memory that several graphs share: it is as large as the largest of them
    /// needs, and launches of these graphs run one after the other.
    ///
    /// ```
    /// # use gpumem_runtime::{GraphMemory, reads}; let device = gpumem_runtime::Device::<gpumem_host::Host>::open("host")?;
    /// let memory = GraphMemory::new(&device);
    /// let reversed = |len: usize| {
    ///     device.record_in(&memory, (reads::<u32, _>(len),), |stream, (x,)| {
    ///         let inside = stream.to_device(&x.slice(ndarray::s![..;-1])?)?;
    ///         stream.copy_to_host(&inside)
    ///     })
    /// };
    /// let (short, long) = (reversed(3)?, reversed(1000)?); // 4000 bytes for both
    /// # let (stream, x) = (device.stream()?, device.to_device(&[1, 2, 3u32])?);
    /// assert_eq!(short.launch(&stream, (&x,))?.view()?.to_vec(), [3, 2, 1]);
    /// # drop(long); Ok::<(), gpumem_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`record`](Self::record), and [`WrongDevice`](gpumem_core::ErrorKind::WrongDevice) for memory of another device.
    pub fn record_in<A: GraphParameters<B>, R: GraphResults<B>>(
        &self,
        memory: &GraphMemory<B>,
        like: A,
        body: impl for<'g> FnOnce(&'g Stream<B>, A::Inside<'g>) -> Result<R>,
    ) -> Result<Graph<A::Form, R, B>> {
        self.record_with(Some(memory), like, body)
    }

    fn record_with<A: GraphParameters<B>, R: GraphResults<B>>(
        &self,
        memory: Option<&GraphMemory<B>>,
        like: A,
        body: impl for<'g> FnOnce(&'g Stream<B>, A::Inside<'g>) -> Result<R>,
    ) -> Result<Graph<A::Form, R, B>> {
        const OPERATION: &str = "record";
        let core = self.core();
        core.check(OPERATION)?;
        if self.recording().is_some() {
            let what = NotRecorded::AnotherRecording;
            return Err(core.error(OPERATION, ErrorKind::NotRecordable { what }));
        }
        memory.map_or(Ok(()), |memory| memory.check(OPERATION, self))?;
        let generation = core.generation();
        let recording = GraphRecording::new(core.context());
        // Also where the body fails or panics: its stream may be kept.
        let recording = Closing(recording);
        let timeline = Timeline::in_recording(core.context(), recording.0.clone());
        let inside = self.for_recording(&timeline, &recording.0);
        let stream = Stream::own(&inside, timeline);
        let signature = Signature::default();
        let mut recorder = Recorder { device: &inside, recording: &recording.0, signature, position: 0 };
        let views = like.record(&mut recorder)?;
        let signature = recorder.signature;
        let results = body(&stream, views)?;
        // In a forked child nothing was recorded.
        core.check(OPERATION)?;
        let recorded = recording.0.close();
        let (mut regions, mut numbers) = (Vec::new(), Vec::new());
        results.bind(&mut Binder(&mut |memory| {
            if memory.len() == 0 {
                return Ok(memory.clone());
            }
            let region = recorded.numbers.get(&memory.id()).filter(|region| !signature.has(**region));
            let Some(region) = region else {
                let what = NotRecorded::ResultNotMade;
                return Err(core.error(OPERATION, ErrorKind::NotRecordable { what }));
            };
            let known = regions.iter().position(|known| known == region);
            numbers.push(known.unwrap_or(regions.len()));
            if known.is_none() {
                regions.push(*region);
            }
            Ok(memory.clone())
        }))?;
        let plan = Plan::new(self, recorded, signature, &regions, memory)?;
        let executables = plan.segments.iter().map(|_| Executables::new()).collect();
        let inner = Inner { plan, executables, results, numbers, device: self.share(), generation };
        Ok(Graph { inner: Arc::new(inner), parameters: PhantomData })
    }
}

/// Ends a recording.
struct Closing<B: Backend>(Arc<GraphRecording<B>>);

impl<B: Backend> Drop for Closing<B> {
    fn drop(&mut self) {
        // Programs of kernels are dropped, without the lock.
        drop(self.0.close());
    }
}

impl<P, R: GraphResults<B>, B: Backend> Graph<P, R, B> {
    /// Returns what the graph consists of.
    pub fn report(&self) -> GraphReport {
        let Inner { plan, executables, device, .. } = &*self.inner;
        // In a forked child a thread of the parent may hold the lock for ever.
        let (mut driver_graphs, mut replayed) = (0, None);
        for executables in executables.iter().filter(|_| device.core().origin.is_valid()) {
            let (kept, why) = executables.report();
            driver_graphs += kept;
            replayed = replayed.or(why);
        }
        let edges = Schedule::of(plan, 0..plan.steps.len()).edges();
        GraphReport { edges, driver_graphs, replayed, ..plan.report }
    }

    /// Returns a picture of the graph in the language of Graphviz (`dot -Tsvg`): its nodes, and the [`edges`](GraphReport::edges)
    /// between them.
    ///
    /// ```
    /// # use gpumem_runtime::writes; let device = gpumem_runtime::Device::<gpumem_host::Host>::open("host")?;
    /// let graph = device.record((writes::<f32, _>(4),), |stream, (mut x,)| {
    ///     stream.fill(&mut x, 1.0)?;
    ///     stream.to_device(&x)
    /// })?;
    /// assert!(graph.dot().contains("s0 -> s1"));
    /// # Ok::<(), gpumem_core::Error>(())
    /// ```
    pub fn dot(&self) -> String {
        let plan = &self.inner.plan;
        Schedule::of(plan, 0..plan.steps.len()).dot(plan)
    }

    /// Returns the device that the graph was recorded on.
    pub fn device(&self) -> &Device<B> {
        &self.inner.device
    }

    /// Enqueues everything that was recorded, as one piece of work, or as those before, between and after operations of several
    /// ranks, which it calls in their places, with these arrays: after all work on any stream that conflicts
    /// with them, as a kernel's launch. Returns the results of this launch, whose contents come in stream order.
    ///
    /// If a part fails, the next wait returns [`AsynchronousFault`](ErrorKind::AsynchronousFault), and uses of what it was to write
    /// return [`Poisoned`](ErrorKind::Poisoned), as for work that is enqueued by itself. No part that depends on it runs then.
    ///
    /// # Errors
    /// Returns one of these, most of which name the argument. Nothing has been enqueued then, but for the last.
    /// * [`LayoutMismatch`](gpumem_core::LayoutError::LayoutMismatch) for an array with other shape or strides than were recorded,
    ///   [`Misaligned`](gpumem_core::LayoutError::Misaligned) for one whose address has another rest modulo 16, or modulo the alignment of the
    ///   elements if that is more
    /// * [`WrongDevice`](ErrorKind::WrongDevice) for an array or a stream of another device, [`Stale`](ErrorKind::Stale) after a reset
    /// * [`Overlap`](ErrorKind::Overlap) and [`Poisoned`](ErrorKind::Poisoned) as for a kernel's launch: an array that failed work was
    ///   to write, and that the graph reads or writes
    /// * [`InvalidArgument`](ErrorKind::InvalidArgument) for a vector that is not as long as the recorded one
    /// * [`OutOfMemory`](ErrorKind::OutOfMemory) if there is no room for the results, or for the temporaries of a graph with operations
    ///   of several ranks
    /// * [`Collective`](ErrorKind::Collective) if such an operation cannot succeed, as far as that is known already. What comes before it
    ///   may have been enqueued
    /// * [`Unsupported`](ErrorKind::Unsupported) if another library captures the stream, and the backend launches graphs of the driver
    /// * [`Driver`](ErrorKind::Driver) if the driver reports a failure
    pub fn launch<A: GraphArguments<B, Form = P>>(&self, stream: &Stream<B>, arguments: A) -> Result<R> {
        let mut places =
            Places { arrays: SmallVec::new(), numbers: SmallVec::new(), lengths: SmallVec::new() };
        arguments.bind(&mut places);
        launch::launch(&self.inner, stream, &places)
    }
}

impl<P, R, B: Backend> Clone for Graph<P, R, B> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone(), parameters: PhantomData }
    }
}

impl<P, R, B: Backend> fmt::Debug for Graph<P, R, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Graph").field("report", &self.inner.plan.report).finish_non_exhaustive()
    }
}
