//! Work that is written down instead of being enqueued: the recording of a graph.

use super::{Access, Admitted, Counters, DeviceContext, Submitted, Timeline, Work};
use gpumem_core::{
    Backend, CopyRegion, Error, ErrorKind, Fill, KernelArguments, LaunchConfig, NotRecorded, Result, Stream,
    StridedCopy,
};
use std::{
    cell::{Cell, RefCell},
    fmt,
    sync::Arc,
};

/// A generation that no device ever has: that of placeholder memory and of the streams of a recording. Checks for what is older than
/// a reset refuse both.
pub(super) const RECORDED: u64 = u64::MAX;

/// Where the calls of a piece of work go.
pub enum Sink<'a, B: Backend> {
    /// To the driver's stream.
    Stream(&'a B::Stream, &'a Calls<'a>),
    /// Into a recording.
    Recording(&'a RefCell<Vec<Command<B>>>),
}

/// The calls of one piece of work. Copies and fills are counted.
#[derive(Debug)]
pub struct Calls<'a> {
    counters: &'a Counters,
    has_begun: Cell<bool>,
}

impl<'a> Calls<'a> {
    /// None yet.
    pub fn new(counters: &'a Counters) -> Self {
        Self { counters, has_begun: Cell::new(false) }
    }

    /// Whether a copy, a fill or a launch has been enqueued.
    pub(super) fn has_begun(&self) -> bool {
        self.has_begun.get()
    }

    #[inline(always)]
    fn note(&self, called: Result<()>) -> Result<()> {
        if called.is_ok() {
            self.has_begun.set(true);
        }
        called
    }
}

/// A call of the driver that was recorded. Its addresses are those of placeholder memory, and each launch replaces them.
pub enum Command<B: Backend> {
    Copy(CopyRegion),
    CopyStrided(StridedCopy),
    Fill(Fill),
    Launch(Box<RecordedLaunch<B>>),
}

/// A launch of a kernel that was recorded.
pub struct RecordedLaunch<B: Backend> {
    pub kernel: B::Kernel,
    pub dims: LaunchConfig,
    pub arguments: KernelArguments,
    pub program: Arc<dyn Program<B>>,
}

/// A loaded program. It stays loaded while this lives, and until the last launch that was noted is done.
pub trait Program<B: Backend>: Send + Sync {
    /// The kernel's name.
    fn name(&self) -> &str;

    /// Notes a launch that is about to be enqueued. The caller holds the lock of the stream's queue, and
    /// [shortens the log](Self::shorten_log) afterwards if this returns true.
    fn note_launch(&self, timeline: &Arc<Timeline<B>>, submission: u64) -> bool;

    /// Asks the driver which launches are over. The caller has no lock.
    fn shorten_log(&self);
}

/// What the streams of a recording write to.
pub trait Recording<B: Backend>: Send + Sync {
    /// Checks that the recording has not ended, and that each access is to its own placeholder memory.
    /// Returns [`NotRecordable`](ErrorKind::NotRecordable) or [`OfRecording`](ErrorKind::OfRecording).
    fn admit(&self, work: Work, operation: &'static str, accesses: &[Access<'_, B>]) -> Result<()>;

    /// Writes one piece of work of a stream of the recording down, which has been admitted.
    fn record(
        &self,
        stream: u64,
        work: Work,
        operation: &'static str,
        accesses: &[Access<'_, B>],
        commands: Vec<Command<B>>,
    ) -> Result<()>;
}

impl<B: Backend> Sink<'_, B> {
    /// The driver's stream, for calls that no recording takes.
    /// Returns [`NotRecordable`](ErrorKind::NotRecordable) in a recording.
    #[inline(always)]
    pub fn stream(&self, operation: &'static str) -> Result<&B::Stream> {
        match self {
            Self::Stream(stream, _) => Ok(stream),
            Self::Recording(_) => Err(not_recordable(operation, NotRecorded::DriverStream)),
        }
    }

    /// As [`Stream::copy`].
    ///
    /// # Safety
    /// As for [`Stream::copy`]. In a recording that holds for the memory that each launch binds.
    #[inline(always)]
    pub unsafe fn copy(&self, region: &CopyRegion) -> Result<()> {
        match self {
            Self::Stream(stream, calls) => {
                calls.counters.count_copy();
                // SAFETY: the caller's promise.
                calls.note(unsafe { stream.copy(region) })
            }
            Self::Recording(commands) => push(commands, Command::Copy(*region)),
        }
    }

    /// As [`Stream::copy_strided`].
    ///
    /// # Safety
    /// As for [`Stream::copy_strided`], as in [`copy`](Self::copy).
    #[inline(always)]
    pub unsafe fn copy_strided(&self, copy: &StridedCopy) -> Result<()> {
        match self {
            Self::Stream(stream, calls) => {
                calls.counters.count_copy();
                // SAFETY: the caller's promise.
                calls.note(unsafe { stream.copy_strided(copy) })
            }
            Self::Recording(commands) => push(commands, Command::CopyStrided(copy.clone())),
        }
    }

    /// As [`Stream::fill`].
    ///
    /// # Safety
    /// As for [`Stream::fill`], as in [`copy`](Self::copy).
    #[inline(always)]
    pub unsafe fn fill(&self, fill: &Fill) -> Result<()> {
        match self {
            Self::Stream(stream, calls) => {
                calls.counters.count_fill();
                // SAFETY: the caller's promise.
                calls.note(unsafe { stream.fill(fill) })
            }
            Self::Recording(commands) => push(commands, Command::Fill(*fill)),
        }
    }

    /// As [`Stream::launch`]. `program` is called where a recording has to keep the program.
    ///
    /// # Safety
    /// As for [`Stream::launch`], as in [`copy`](Self::copy). Each access of the work to an array says which
    /// [argument](Access::argument) begins with its address.
    #[inline(always)]
    pub unsafe fn launch(
        &self,
        kernel: &B::Kernel,
        dims: &LaunchConfig,
        arguments: &KernelArguments,
        program: impl FnOnce() -> Arc<dyn Program<B>>,
    ) -> Result<()> {
        match self {
            // SAFETY: the caller's promise.
            Self::Stream(stream, calls) => calls.note(unsafe { stream.launch(kernel, dims, arguments) }),
            Self::Recording(commands) => {
                let (kernel, dims, arguments) = (kernel.clone(), *dims, arguments.clone());
                let launch = RecordedLaunch { kernel, dims, arguments, program: program() };
                push(commands, Command::Launch(Box::new(launch)))
            }
        }
    }
}

#[cold]
fn not_recordable(operation: &'static str, what: NotRecorded) -> Error {
    Error::new("", operation, ErrorKind::NotRecordable { what })
}

#[cold]
fn push<B: Backend>(commands: &RefCell<Vec<Command<B>>>, command: Command<B>) -> Result<()> {
    commands.borrow_mut().push(command);
    Ok(())
}

impl<B: Backend> Timeline<B> {
    /// Whether work is recorded, and not enqueued.
    #[inline(always)]
    pub fn is_recording(&self) -> bool {
        self.generation == RECORDED
    }

    /// What is wrong with the stream, whose generation is not that of the device: a graph does not record `what`, or the stream is
    /// stale.
    #[cold]
    pub(super) fn unusable(&self, operation: &'static str, what: NotRecorded) -> Error {
        match self.is_recording() {
            true => self.context.not_recordable(operation, what),
            false => super::queue::stale(&self.context, operation),
        }
    }
}

impl<B: Backend> DeviceContext<B> {
    /// The error of a call that a graph cannot record.
    #[cold]
    pub fn not_recordable(&self, operation: &'static str, what: NotRecorded) -> Error {
        self.error(operation, ErrorKind::NotRecordable { what })
    }
}

impl<B: Backend> Admitted<'_, '_, B> {
    /// [`submit`](Self::submit) in a recording.
    #[cold]
    pub(super) fn record<R>(
        self,
        enqueue: impl FnOnce(&Sink<'_, B>, u64) -> Result<R>,
    ) -> Result<Submitted<R>> {
        let Self { timeline, work, operation, accesses } = self;
        let Some(recording) = &timeline.recording else {
            return Err(timeline.unusable(operation, NotRecorded::DriverStream));
        };
        let commands = RefCell::default();
        let in_operation = |error: Error| timeline.context.place(error.in_operation(operation));
        let value = enqueue(&Sink::Recording(&commands), 0).map_err(in_operation)?;
        recording
            .record(timeline.id(), work, operation, accesses, commands.into_inner())
            .map_err(in_operation)?;
        // No submission: nothing has to be waited for.
        Ok(Submitted { submission: 0, value })
    }
}

// Not derived: a backend is not cloned.
impl<B: Backend> Clone for Command<B> {
    fn clone(&self) -> Self {
        match self {
            Self::Copy(region) => Self::Copy(*region),
            Self::CopyStrided(copy) => Self::CopyStrided(copy.clone()),
            Self::Fill(fill) => Self::Fill(*fill),
            Self::Launch(launch) => Self::Launch(launch.clone()),
        }
    }
}

impl<B: Backend> Clone for RecordedLaunch<B> {
    fn clone(&self) -> Self {
        let Self { kernel, dims, arguments, program } = self;
        let (kernel, arguments, program) = (kernel.clone(), arguments.clone(), program.clone());
        Self { kernel, dims: *dims, arguments, program }
    }
}

impl<B: Backend> fmt::Debug for Sink<'_, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Stream(..) => "Sink::Stream",
            Self::Recording(_) => "Sink::Recording",
        })
    }
}

impl<B: Backend> fmt::Debug for Command<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Copy(region) => region.fmt(f),
            Self::CopyStrided(copy) => copy.fmt(f),
            Self::Fill(fill) => fill.fmt(f),
            Self::Launch(launch) => {
                f.debug_struct("Launch").field("dims", &launch.dims).finish_non_exhaustive()
            }
        }
    }
}

impl<B: Backend> fmt::Debug for RecordedLaunch<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Launch").field("dims", &self.dims).finish_non_exhaustive()
    }
}
