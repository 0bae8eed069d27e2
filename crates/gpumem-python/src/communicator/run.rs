//! How operations that were collected are enqueued.

use super::{Own, operation::Operation};
use crate::{
    error::raise,
    recording::{KEY, is_recorded},
    submissions::check_submissions,
    wait::MayWait,
};
use gpumem::{Error, ErrorKind, NotRecorded};
use pyo3::{exceptions::PyException, prelude::*};
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

/// The operations of one rank that are enqueued together.
pub(super) struct Part {
    pub(super) own: Arc<Own>,
    pub(super) stream: gpumem::Stream,
    pub(super) operations: Vec<Operation>,
    /// Whether all ranks of the communicator are known to have joined.
    pub(super) has_joined: Arc<AtomicBool>,
    /// The permission to wait, if this may wait.
    pub(super) wait: Option<MayWait>,
}

impl Part {
    /// The permission to wait, if the caller waits for the operations.
    fn waits(&self) -> Option<MayWait> {
        self.wait.filter(|_| self.operations.iter().any(Operation::is_of_host))
    }
}

/// Enqueues the operations of each rank as one piece of work. Waits if an array is one of the host, and copies the results there.
pub(super) fn run(py: Python<'_>, mut parts: Vec<Part>) -> PyResult<()> {
    let waits = |part: &&Part| part.waits().is_some();
    if parts.iter().filter(waits).any(|part| is_recorded(&part.stream)) {
        let what = NotRecorded::HostArguments;
        return Err(raise(Error::new("", "collective", ErrorKind::NotRecordable { what })));
    }
    let joining: Vec<_> = parts.iter().filter(|part| !part.has_joined.load(Ordering::Relaxed)).collect();
    if let Some(wait) = joining.iter().find_map(|part| part.wait) {
        let ranks: Vec<Arc<Own>> = joining.iter().map(|part| part.own.clone()).collect();
        // Nothing has been called yet: after a signal the program may call it again.
        let joined =
            wait.while_interruptible(py, move || ranks.iter().try_for_each(|rank| rank.wait_until_joined()))?;
        joined.map_err(raise)?;
        joining.iter().for_each(|part| part.has_joined.store(true, Ordering::Relaxed));
    }
    let submissions = py.detach(|| enqueue(&mut parts)).map_err(raise)?;
    let mut first = Ok(());
    for (part, submissions) in parts.iter().zip(&submissions) {
        let Some(wait) = part.waits() else { continue };
        wait.for_work(py, &part.stream)?;
        // The caller's arrays do not tell how all of it has ended: what is only sent has none, nor has what has no elements. Other work
        // of the stream is told of by a wait for that.
        first = first.and(check_submissions(&part.stream, submissions).map_err(raise));
    }
    // A result that is good is the caller's, also where another one is not.
    for operation in parts.iter().flat_map(|part| &part.operations) {
        match operation.copy_back(py) {
            // The keyboard's, say, ends the call at once.
            Err(error) if !error.is_instance_of::<PyException>(py) => return Err(error),
            copied => first = first.and(copied),
        }
    }
    first
}

/// Returns what each rank has enqueued on its stream.
fn enqueue(parts: &mut [Part]) -> gpumem::Result<Vec<Vec<u64>>> {
    if let [Part { own, stream, operations, .. }] = parts {
        let ((), submissions) = own
            .group_by(KEY, stream, |group| operations.iter_mut().try_for_each(|each| each.add(group)))?;
        return Ok(vec![submissions.into_vec()]);
    }
    let (mut ends, mut lists) = (Vec::new(), Vec::new());
    for Part { own, stream, operations, .. } in parts {
        ends.push((&**own, &*stream));
        lists.push(operations);
    }
    let ((), submissions) = Own::group_all_by(KEY, &ends, |groups| {
        let mut each = groups.iter_mut().zip(lists);
        each.try_for_each(|(group, list)| list.iter_mut().try_for_each(|operation| operation.add(group)))
    })?;
    Ok(submissions.into_iter().map(|submissions| submissions.into_vec()).collect())
}
