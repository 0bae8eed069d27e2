//! The operations of the loom models in `tests/loom` on the ordering code. Compiled with `--cfg loom` only.
//!
//! Safe code cannot make two threads submit conflicting work to one array at the same moment: one of them would need
//! it mutably. Memory that is shared by splitting, by foreign owners or between the halves of a copy still meets in one
//! log, so the models go below the arrays.

use crate::{
    Device, Stream,
    device::{Allocation, AllocationRef},
    interchange::lend_on,
};
use gpumem_core::{Backend, ErrorKind, HostAccess, Result};
use gpumem_memory::track::{Access, Work};
use std::ops::Range;

/// A block of memory with its access log.
#[derive(Debug)]
pub struct Memory<B: Backend>(AllocationRef<B>);

impl<B: Backend> Clone for Memory<B> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<B: Backend> Memory<B> {
    /// Allocates, and frees dropped memory, as every allocation does.
    ///
    /// # Errors
    /// Returns [`Driver`](gpumem_core::ErrorKind::Driver) if the driver reports a failure.
    pub fn new(device: &Device<B>, bytes: usize) -> Result<Self> {
        Ok(Self(Allocation::new(device, "model", bytes, 1)?))
    }

    /// Address of the first byte.
    pub fn address(&self) -> u64 {
        self.0.address()
    }

    /// Waits until the host may read or write these bytes.
    ///
    /// # Errors
    /// Returns [`Driver`](gpumem_core::ErrorKind::Driver) if the driver reports a failure.
    pub fn wait_for_host(&self, extent: &Range<usize>, access: HostAccess) -> Result<()> {
        self.0.wait_for_host("model", extent, access)
    }
}

/// A use of memory by work: the bytes, and whether they are written.
pub type ModelAccess<'a, B> = (&'a Memory<B>, Range<usize>, bool);

fn accesses<'a, B: Backend>(uses: &[ModelAccess<'a, B>]) -> Vec<Access<'a, B>> {
    uses.iter().map(|(memory, extent, write)| Access::new(&memory.0, extent.clone(), *write)).collect()
}

/// Enqueues work after everything that it conflicts with.
///
/// # Errors
/// Returns [`Driver`](gpumem_core::ErrorKind::Driver) if the driver reports a failure, and the error of `enqueue`.
pub fn submit<B: Backend>(
    stream: &Stream<B>,
    uses: &[ModelAccess<'_, B>],
    enqueue: impl FnOnce(&B::Stream) -> Result<()>,
) -> Result<()> {
    stream.timeline().submit("model", &accesses(uses), |sink| enqueue(sink.stream("model")?)).map(drop)
}

/// As [`submit`], with a fault that the models must find: the logs are unlocked between the look for conflicts and the
/// note of the use.
///
/// # Errors
/// As for [`submit`].
pub fn submit_with_a_gap<B: Backend>(
    stream: &Stream<B>,
    uses: &[ModelAccess<'_, B>],
    enqueue: impl FnOnce(&B::Stream) -> Result<()>,
) -> Result<()> {
    let (timeline, accesses) = (stream.timeline(), accesses(uses));
    for access in &accesses {
        let needs: Vec<_> = access
            .memory
            .log()
            .conflicts(&access.extent, access.write)
            .map(|entry| (entry.by.clone(), entry.submission))
            .collect();
        for (by, submission) in needs {
            if by.id() != timeline.id() {
                by.wait_host(submission).result?;
            }
        }
    }
    let submission = timeline.submit("model", &[], |sink| enqueue(sink.stream("model")?))?.submission;
    for access in accesses {
        access.memory.log().note(access.extent, access.write, timeline, submission);
    }
    Ok(())
}

/// Notes that all work of the stream is being aborted, as a communicator does whose ranks do not come.
pub fn abort<B: Backend>(stream: &Stream<B>) {
    let timeline = stream.timeline();
    let error = timeline.context.error("model", ErrorKind::AsynchronousFault { what: "aborted".into() });
    timeline.context.note_aborted(timeline, 1, &error);
}

/// How the last work of the stream has ended, which is done.
///
/// # Errors
/// Returns its failure.
pub fn outcome<B: Backend>(stream: &Stream<B>) -> Result<()> {
    let timeline = stream.timeline();
    let last = timeline.last_submission();
    timeline.check_submissions(last..=last)
}

/// Lends the stream to `enqueue`, as `raw_scope` does: waits before, and notes the uses afterwards. The enqueued work
/// has no submission index.
///
/// # Errors
/// Returns the error of the driver or of `enqueue`.
pub fn lend<B: Backend>(
    stream: &Stream<B>,
    uses: &[ModelAccess<'_, B>],
    enqueue: impl FnOnce(&B::Stream) -> Result<()>,
) -> Result<()> {
    let (timeline, accesses) = (stream.timeline(), accesses(uses));
    let lent = timeline.admit(Work::Foreign, "model", &accesses)?.lend()?;
    timeline.with_raw_of_a_model(enqueue)?;
    lent.note().map(drop)
}

/// As [`lend`], with a fault that the models must find: the uses get their submission index before the work is
/// enqueued.
///
/// # Errors
/// Returns the error of the driver or of `enqueue`.
pub fn lend_with_an_early_index<B: Backend>(
    stream: &Stream<B>,
    uses: &[ModelAccess<'_, B>],
    enqueue: impl FnOnce(&B::Stream) -> Result<()>,
) -> Result<()> {
    stream.timeline().submit("model", &accesses(uses), |_| Ok(()))?;
    stream.timeline().with_raw_of_a_model(enqueue)
}

/// Lends bytes for writing to another library that works on the stream. Returns the number of the loan.
///
/// # Errors
/// Returns [`Driver`](gpumem_core::ErrorKind::Driver) if the driver reports a failure.
pub fn begin_loan<B: Backend>(stream: &Stream<B>, memory: &Memory<B>, extent: &Range<usize>) -> Result<u64> {
    lend_on(stream.timeline(), "model", &memory.0, extent, true).map(|(_, loan)| loan)
}

/// Enqueues the borrower's work, and ends the loan.
///
/// # Errors
/// Returns the error of `enqueue`.
pub fn end_loan<B: Backend>(
    stream: &Stream<B>,
    memory: &Memory<B>,
    loan: u64,
    enqueue: impl FnOnce(&B::Stream) -> Result<()>,
) -> Result<()> {
    stream.timeline().with_raw_of_a_model(enqueue)?;
    memory.0.end_loan(loan);
    Ok(())
}
