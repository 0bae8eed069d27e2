//! How operations that were collected are enqueued.

use super::{Own, operation::Operation};
use crate::{error::raise, wait::MayWait};
use pyo3::prelude::*;
use std::sync::Arc;

/// The operations of one rank that are enqueued together.
pub(super) struct Part {
    pub(super) own: Arc<Own>,
    pub(super) stream: gpumem::Stream,
    pub(super) operations: Vec<Operation>,
    /// Whether the communicator has called no operation before.
    pub(super) is_first: bool,
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
    let streams: Vec<_> = parts.iter().map(|part| part.waits().map(|_| part.stream.clone())).collect();
    let record =
        |stream: &Option<gpumem::Stream>| stream.as_ref().map(|stream| stream.record_event()).transpose();
    let before =
        py.detach(|| streams.iter().map(record).collect::<gpumem::Result<Vec<_>>>()).map_err(raise)?;
    let first = parts.iter().find(|part| part.is_first).and_then(|part| part.wait);
    let call = move || (enqueue(&mut parts), parts);
    let (called, parts) = match first {
        Some(wait) => wait.while_interruptible(py, call)?,
        None => py.detach(call),
    };
    called.map_err(raise)?;
    for (part, before) in parts.iter().zip(before) {
        let (Some(wait), Some(before)) = (part.waits(), before) else { continue };
        let after = wait.for_work(py, &part.stream)?;
        // The caller's arrays do not tell how all of it has ended: what is only sent has none, nor has what has no elements. A failure
        // from before is told by a wait for that.
        if before.query().is_ok() {
            wait.for_event(py, &after)?;
        }
    }
    parts.iter().flat_map(|part| &part.operations).try_for_each(|operation| operation.copy_back(py))
}

fn enqueue(parts: &mut [Part]) -> gpumem::Result<()> {
    if let [Part { own, stream, operations, .. }] = parts {
        return own.group(stream, |group| operations.iter_mut().try_for_each(|each| each.add(group)));
    }
    let (mut ends, mut lists) = (Vec::new(), Vec::new());
    for Part { own, stream, operations, .. } in parts {
        ends.push((&**own, &*stream));
        lists.push(operations);
    }
    Own::group_all(&ends, |groups| {
        let mut each = groups.iter_mut().zip(lists);
        each.try_for_each(|(group, list)| list.iter_mut().try_for_each(|operation| operation.add(group)))
    })
}
