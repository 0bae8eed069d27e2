//! Communicators.

use crate::{CollectiveError, CollectiveRecord, CommunicatorId, Options, choose, engine::Engine};
use gpumem_core::{Backend, Error, ErrorKind, Result};
use gpumem_runtime::{Device, Stream, internal::may_block};
use std::{
    any::TypeId,
    fmt,
    panic::{RefUnwindSafe, UnwindSafe},
    sync::Arc,
};

/// One rank of a group of ranks that exchange data.
///
/// Every rank calls the same operations in the same order, each on a stream of its own device. A call returns at once;
/// the operation takes place when the streams of all ranks have come so far. Sends and receives concern two ranks only.
///
/// On the host, ranks live in one process: one thread may hold all communicators, or each thread one. On GPUs they may be
/// threads, processes or machines ([`join`](Self::join)), and the library of the GPU, NCCL or RCCL, does the work: there a thread with
/// several ranks calls their operations in [`group_all`](Self::group_all). On the host several ranks may share a device; then allocate with the streams of the ranks (`stream.to_device`), because an array of the device itself may get
/// memory that work of another rank still uses, and wait for it.
///
/// * **What waits for itself.** Between ranks of one process on the host, an operation fails at once if two of its ranks use one
///   stream of a device, or if the stream of a rank waits for work that follows the operation on another rank's
///   stream. Ranks whose arrays lie between each other's elements, as columns do, call it in [`group_all`](Self::group_all). All
///   else that waits for itself ends by [`Options::timeout`]: a circle through a third stream or through a thread that waits, and
///   any circle on GPUs and between processes.
/// * **What all agree on.** Operation, element type, number of elements, reduction and root are compared before anything is
///   moved; between processes on GPUs with [`Options::check`]. If they differ, every rank gets a [`CollectiveError`], which names
///   ranks that called something else, sixteen at most. The last rank gets it from the call, the others at the next wait for
///   their stream. On GPUs the communicator ends, unless it was the check that found it.
/// * **Failures.** A rank that comes later than [`Options::timeout`], gives its communicator up, or whose work fails, is an
///   error on all others. Then the destinations are [poisoned](ErrorKind::Poisoned): they cannot be read until they are written
///   anew.
/// * **Dropping** a communicator never waits. Its operations in flight go on. The other ranks get an error for those that it
///   has not called. A graph with its operations keeps the rank's part until it is dropped, too.
/// * **Graphs** record operations of one rank: `rank.on(stream)` and `rank.group(stream, ..)` with the stream of a recording. Each launch
///   calls them, and all ranks launch.
///
/// # Examples
/// ```
/// use gpumem_collectives::{Communicator, Sum};
/// # use gpumem_host::Host;
/// # type Device = gpumem_runtime::Device<Host>;
/// # fn main() -> gpumem_core::Result<()> {
/// let device = Device::open("host")?;
/// let ranks = Communicator::all(&[device.clone(), device.clone()])?;
/// let mut sums = Vec::new();
/// for rank in &ranks {
///     let stream = device.stream()?;
///     let source = stream.to_device(&[1.0, rank.rank() as f32])?;
///     let mut sum = stream.device_array::<f32, _>(2)?;
///     rank.on(&stream).all_reduce(&source, &mut sum, Sum)?; // returns at once
///     sums.push(sum);
/// }
/// for sum in sums {
///     assert_eq!(sum.copy_to_host()?.to_vec(), [2.0, 1.0]); // waits for all ranks
/// }
/// # Ok(())
/// # }
/// ```
pub struct Communicator<B: Backend> {
    handle: Arc<RankHandle<B>>,
    rank: usize,
    size: usize,
}

/// A rank's part in a communicator, which ends when the communicator and all graphs with its operations are dropped.
pub(crate) struct RankHandle<B: Backend> {
    engine: Arc<dyn Engine<B>>,
    device: Device<B>,
}

impl<B: Backend> RankHandle<B> {
    /// The engine; not in a forked child, where its locks may never be free again.
    pub(crate) fn engine(&self, operation: &'static str) -> Result<&dyn Engine<B>> {
        self.device.core_by(crate::KEY).check_process(operation)?;
        Ok(&*self.engine)
    }
}

impl<B: Backend> Drop for RankHandle<B> {
    fn drop(&mut self) {
        if let Ok(engine) = self.engine("drop") {
            engine.leave();
        }
    }
}

// As a device: a rank that unwinds is told of as one that did not take part.
impl<B: Backend> UnwindSafe for Communicator<B> {}
impl<B: Backend> RefUnwindSafe for Communicator<B> {}

impl<B: Backend> Communicator<B> {
    /// Makes a communicator for each device: rank 0 for the first one, and so on.
    ///
    /// # Errors
    /// Returns [`InvalidArgument`](ErrorKind::InvalidArgument) for no device, and
    /// [`Unsupported`](ErrorKind::Unsupported) for devices that no engine connects.
    pub fn all(devices: &[Device<B>]) -> Result<Vec<Self>> {
        Self::all_with(devices, &Options::default())
    }

    /// As [`all`](Self::all), with options.
    ///
    /// # Errors
    /// As for [`all`](Self::all).
    pub fn all_with(devices: &[Device<B>], options: &Options) -> Result<Vec<Self>> {
        if devices.is_empty() {
            let why = "a communicator needs a device";
            return Err(Error::new("", "all", ErrorKind::InvalidArgument { why }));
        }
        let joined = || -> Result<Vec<Self>> {
            let id = CommunicatorId::for_device(&devices[0])?;
            let join = |(rank, device)| Self::join(device, &id, rank, devices.len(), options);
            let all: Vec<Self> = devices.iter().enumerate().map(join).collect::<Result<_>>()?;
            // Only when all have joined: the first would wait for the last.
            all.iter().try_for_each(|rank| rank.engine("all")?.ready())?;
            Ok(all)
        };
        joined().map_err(|error| error.in_operation("all"))
    }

    /// Joins a communicator as one of `size` ranks. Returns at once: the other ranks may join later. On GPUs the first operation
    /// waits for them.
    ///
    /// # Examples
    /// ```
    /// use gpumem_collectives::{Communicator, CommunicatorId, Options};
    /// # use gpumem_host::Host;
    /// # type Device = gpumem_runtime::Device<Host>;
    /// let id = CommunicatorId::new();
    /// std::thread::scope(|scope| {
    ///     for rank in 0..4 {
    ///         scope.spawn(move || -> gpumem_core::Result<()> {
    ///             let device = Device::open("host")?;
    ///             let communicator = Communicator::join(&device, &id, rank, 4, &Options::default())?;
    ///             let stream = device.stream()?;
    ///             communicator.on(&stream).barrier()?;
    ///             stream.synchronize() // waits for the other threads
    ///         });
    ///     }
    /// });
    /// ```
    ///
    /// # Errors
    /// Returns [`InvalidArgument`](ErrorKind::InvalidArgument) for a rank that is taken or not below `size`, for another
    /// size or other options than those of the ranks that have joined (on GPUs, in this process), for an identity of another process or
    /// engine, and for more than 65536 ranks of one process. Returns
    /// [`Unsupported`](ErrorKind::Unsupported) for a device that no engine connects,
    /// [`NotRecordable`](ErrorKind::NotRecordable) for the device of a recording, and [`Load`](ErrorKind::Load) if the library of a GPU
    /// cannot be used.
    pub fn join(
        device: &Device<B>,
        id: &CommunicatorId,
        rank: usize,
        size: usize,
        options: &Options,
    ) -> Result<Self> {
        const OPERATION: &str = "join";
        device.core_by(crate::KEY).check(OPERATION)?;
        let engine = choose::join(device, id, rank, size, options)?;
        Ok(Self::of_engine(engine, device, (rank, size)))
    }

    /// A rank of an engine.
    pub(crate) fn of_engine(
        engine: Arc<dyn Engine<B>>,
        device: &Device<B>,
        (rank, size): (usize, usize),
    ) -> Self {
        Self { handle: Arc::new(RankHandle { engine, device: device.clone() }), rank, size }
    }

    /// Returns the number of this rank, from 0.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// Returns the number of ranks.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Returns the device of this rank.
    pub fn device(&self) -> &Device<B> {
        &self.handle.device
    }

    /// Forms communicators of the ranks that say the same `colour`, in the order of `key` and then of their ranks. A rank
    /// without a colour gets none. Waits until all ranks have called it: with one thread for all ranks, use
    /// [`split_all`](Self::split_all).
    ///
    /// The ranks must call operations of all these communicators in one order (see [`Options::concurrent`]).
    ///
    /// # Errors
    /// Returns [`Collective`](ErrorKind::Collective) if a rank does not call it in time or gives it up, and
    /// [`BlockingInCallback`](ErrorKind::BlockingInCallback) in a callback.
    pub fn split(&self, colour: Option<u64>, key: i64) -> Result<Option<Self>> {
        may_block("split")?;
        self.finish_split(self.engine("split")?.begin_split(colour, key)?)
    }

    /// Splits all communicators that this thread holds: `part` says the colour and the key of each. The results are in the
    /// order of `ranks`.
    ///
    /// # Examples
    /// ```
    /// use gpumem_collectives::Communicator;
    /// # use gpumem_host::Host;
    /// # type Device = gpumem_runtime::Device<Host>;
    /// # fn main() -> gpumem_core::Result<()> {
    /// # let device = Device::open("host")?;
    /// let ranks = Communicator::all(&vec![device; 4])?;
    /// let halves = Communicator::split_all(&ranks, |rank| (Some(rank.rank() as u64 / 2), 0))?;
    /// let third = halves[2].as_ref().expect("it has a colour");
    /// assert_eq!((third.rank(), third.size()), (0, 2));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As for [`split`](Self::split).
    pub fn split_all(
        ranks: &[Self],
        mut part: impl FnMut(&Self) -> (Option<u64>, i64),
    ) -> Result<Vec<Option<Self>>> {
        may_block("split")?;
        // Before any rank begins: after a panic of the caller's, the numbers of their splits are still the same.
        let parts: Vec<_> = ranks.iter().map(&mut part).collect();
        let begin = |(rank, (colour, key)): (&Self, _)| rank.engine("split")?.begin_split(colour, key);
        let begun: Vec<_> = ranks.iter().zip(parts).map(begin).collect::<Result<_>>()?;
        ranks.iter().zip(begun).map(|(rank, begun)| rank.finish_split(begun)).collect()
    }

    fn finish_split(&self, begun: Box<dyn crate::engine::Split<B>>) -> Result<Option<Self>> {
        let part = begun.finish().map_err(|error| self.device().core_by(crate::KEY).place(error))?;
        Ok(part.map(|(engine, rank, size)| Self::of_engine(engine, &self.handle.device, (rank, size))))
    }

    /// Waits until operations of this rank can be called: on GPUs, until all ranks have joined. The first operation waits for the
    /// same.
    ///
    /// # Errors
    /// Returns [`Collective`](ErrorKind::Collective) if a rank does not join in time, and
    /// [`BlockingInCallback`](ErrorKind::BlockingInCallback) in a callback.
    pub fn wait_until_joined(&self) -> Result<()> {
        may_block("join")?;
        self.engine("join")?.ready()
    }

    /// Returns the last failure of an operation of this rank, if one has failed. Nothing in a forked child.
    pub fn failure(&self) -> Option<CollectiveError> {
        self.engine("failure").ok()?.failure()
    }

    /// Returns the last 1024 operations that this rank has called, the oldest first. On GPUs a group counts its operations one by
    /// one, and all of them end together. None in a forked child.
    ///
    /// # Examples
    /// ```
    /// use gpumem_collectives::{CollectiveState, Communicator};
    /// # use gpumem_host::Host;
    /// # type Device = gpumem_runtime::Device<Host>;
    /// # fn main() -> gpumem_core::Result<()> {
    /// # let device = Device::open("host")?;
    /// let ranks = Communicator::all(&[device.clone()])?;
    /// let stream = device.stream()?;
    /// ranks[0].on(&stream).barrier()?;
    /// stream.synchronize()?;
    /// let recent = ranks[0].recent();
    /// assert_eq!((recent[0].call.operation, recent[0].state), ("barrier", CollectiveState::Done));
    /// # Ok(())
    /// # }
    /// ```
    pub fn recent(&self) -> Vec<CollectiveRecord> {
        self.engine("recent").map(|engine| engine.recent()).unwrap_or_default()
    }

    /// Fails all operations of all ranks that do not move bytes yet, and all later ones of this communicator. Never waits. On GPUs
    /// those of this rank fail; others learn of it from the library, or by their deadline. A forked child aborts nothing.
    pub fn abort(&self) {
        if let Ok(engine) = self.engine("abort") {
            engine.abort();
        }
    }

    /// Gives the communicator up, as dropping it does, and returns its last failure. Later launches of graphs with its operations
    /// fail. On GPUs it waits for its operations in flight and until the library has freed it: for the deadline or ten seconds at
    /// most.
    ///
    /// # Errors
    /// Returns [`Collective`](ErrorKind::Collective) if an operation of this rank has failed. Operations in flight may
    /// still fail later.
    pub fn destroy(self) -> Result<()> {
        let engine = self.engine("destroy")?;
        engine.leave();
        engine.finish();
        match self.failure() {
            Some(failure) => Err(self.device().core_by(crate::KEY).error("destroy", Box::new(failure))),
            None => Ok(()),
        }
    }

    /// The engine; not in a forked child, where its locks may never be free again.
    pub(crate) fn engine(&self, operation: &'static str) -> Result<&dyn Engine<B>> {
        self.handle.engine(operation)
    }

    /// The engine, whose ranks can be called together.
    pub(crate) fn engine_identity(&self) -> (TypeId, usize) {
        self.handle.engine.identity()
    }

    /// The rank's part, for a graph that needs it.
    pub(crate) fn handle(&self) -> &Arc<RankHandle<B>> {
        &self.handle
    }

    /// Checks that a stream belongs to the device of this rank.
    pub(crate) fn check_stream(&self, stream: &Stream<B>, operation: &'static str) -> Result<()> {
        let core = self.device().core_by(crate::KEY);
        core.check_same(operation, "stream", &stream.timeline_by(crate::KEY).context)
    }
}

impl<B: Backend> fmt::Debug for Communicator<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rank, size, .. } = self;
        f.debug_struct("Communicator")
            .field("rank", rank)
            .field("size", size)
            .field("device", &self.device().name())
            .finish()
    }
}
