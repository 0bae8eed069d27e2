//! Splits: the ranks say where they go, and those of one part make a communicator.

use super::{
    Comm, Mpi, MpiEnd, MpiError, Operation,
    abi::{self, Object},
    comm::Unclaimed,
};
use crate::{
    engine::{Joined, Split},
    split_key::SplitKey,
};
use gpumem_core::{Backend, CollectiveCause, CollectiveError, Error, Result};
use std::{
    ffi::c_int,
    sync::{
        Arc,
        mpsc::{Receiver, Sender, channel},
    },
    time::Duration,
};

/// How much longer than the deadline a caller waits: the engine's thread ends the split at the deadline.
const GRACE: Duration = Duration::from_secs(5);

pub(crate) type Answer = Result<Option<Unclaimed>, CollectiveCause>;

/// What a rank says, and where it waits for its part.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) said: SplitKey,
    answer: Sender<Answer>,
}

impl Request {
    pub(crate) fn answer(&self, answer: Answer) {
        // The caller may have stopped waiting.
        let _ = self.answer.send(answer);
    }
}

/// Makes the library's communicator of a part. Waits for its other ranks, which all have begun it.
pub(crate) fn make(mpi: &Mpi, parent: Object, ranks: &[usize], tag: c_int) -> Result<Object, MpiError> {
    let ranks: Vec<c_int> = ranks.iter().map(|rank| *rank as c_int).collect();
    let (mut all, mut group, mut made) = (abi::GROUP_NULL, abi::GROUP_NULL, abi::COMM_NULL);
    let functions = &mpi.functions;
    // SAFETY: the communicator is not freed while a split of it is under way; places for the objects. The ranks are ranks of
    // it, each named once.
    unsafe {
        mpi.check(functions.MPI_Comm_group(parent, &mut all))?;
        mpi.check(functions.MPI_Group_incl(all, ranks.len() as c_int, ranks.as_ptr(), &mut group))?;
        // Only the ranks of the part call it: the others need not wait.
        mpi.check(functions.MPI_Comm_create_group(parent, group, tag, &mut made))?;
        mpi.check(functions.MPI_Group_free(&mut group))?;
        mpi.check(functions.MPI_Group_free(&mut all))?;
        // The default ends the process at the first error.
        mpi.check(functions.MPI_Comm_set_errhandler(made, abi::ERRORS_RETURN))?;
    }
    Ok(made)
}

/// A split that this rank has begun.
pub(crate) struct MpiSplit {
    comm: Arc<Comm>,
    operation: Arc<Operation>,
    answer: Receiver<Answer>,
}

impl MpiSplit {
    pub(crate) fn new(comm: &Arc<Comm>, colour: Option<u64>, key: i64) -> Result<Self, Box<CollectiveError>> {
        let (answer, receiver) = channel();
        let operation = comm.split(Request { said: SplitKey { colour, key }, answer })?;
        Ok(Self { comm: comm.clone(), operation, answer: receiver })
    }
}

impl<B: Backend> Split<B> for MpiSplit {
    fn finish(self: Box<Self>) -> Result<Option<Joined<B>>> {
        let after = self.comm.options.timeout;
        // Longer than the deadline of the engine, whose error says more.
        let answer = self.answer.recv_timeout(after.saturating_add(GRACE));
        let late = CollectiveCause::Timeout { after, missing: Vec::new() };
        let (part, outcome) = match answer.unwrap_or(Err(late)) {
            Ok(part) => (part, Ok(())),
            Err(cause) => (None, Err(cause)),
        };
        self.operation.note(outcome).map_err(|failed| Error::new("", "split", failed))?;
        Ok(part.map(Unclaimed::claim).map(|part| -> Joined<B> {
            let (rank, size) = part.place();
            (Arc::new(MpiEnd::new(part)), rank, size)
        }))
    }
}
