//! Splits: the ranks say where they go, and those of one part make a communicator.

use super::{
    Comm, Mpi, MpiEnd, MpiError,
    abi::{self, Object},
    comm::Unclaimed,
};
use crate::engine::{Joined, Split};
use gpumem_core::{Backend, CollectiveCause, CollectiveError, Error, Result};
use std::{
    ffi::c_int,
    sync::{
        Arc,
        mpsc::{Receiver, Sender, channel},
    },
    time::Duration,
};

/// Bytes that each rank says.
pub(crate) const BYTES: usize = 24;
/// How much longer than the deadline a caller waits: the engine's thread ends the split at the deadline.
const GRACE: Duration = Duration::from_secs(5);

pub(crate) type Answer = Result<Option<Unclaimed>, CollectiveCause>;

/// What a rank says, and where it waits for its part.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) colour: Option<u64>,
    pub(crate) key: i64,
    answer: Sender<Answer>,
}

impl Request {
    pub(crate) fn answer(&self, answer: Answer) {
        // The caller may have stopped waiting.
        let _ = self.answer.send(answer);
    }

    pub(crate) fn to_bytes(&self) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        let numbers = [u64::from(self.colour.is_some()), self.colour.unwrap_or(0), self.key.cast_unsigned()];
        for (place, number) in bytes.chunks_exact_mut(8).zip(numbers) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        bytes
    }

    /// The ranks of this rank's part, in their order there, from what all have said.
    pub(crate) fn part(&self, all: &[u8]) -> Option<Vec<usize>> {
        let own = self.colour?;
        let said = all.chunks_exact(BYTES).enumerate().filter_map(|(rank, bytes)| {
            let number =
                |at: usize| Some(u64::from_le_bytes(bytes.get(8 * at..8 * at + 8)?.try_into().ok()?));
            let is_in = number(0)? != 0 && number(1)? == own;
            is_in.then_some((number(2)?.cast_signed(), rank))
        });
        let mut part: Vec<(i64, usize)> = said.collect();
        // By key, then by rank: alike on every rank of the part.
        part.sort_unstable();
        Some(part.into_iter().map(|(_, rank)| rank).collect())
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
    number: u64,
    answer: Receiver<Answer>,
}

impl MpiSplit {
    pub(crate) fn new(comm: &Arc<Comm>, colour: Option<u64>, key: i64) -> Result<Self, Box<CollectiveError>> {
        let (answer, receiver) = channel();
        let number = comm.split(Request { colour, key, answer })?;
        Ok(Self { comm: comm.clone(), number, answer: receiver })
    }
}

impl<B: Backend> Split<B> for MpiSplit {
    fn finish(self: Box<Self>) -> Result<Option<Joined<B>>> {
        let after = self.comm.options.timeout;
        // Longer than the deadline of the engine, whose error says more.
        let answer = self.answer.recv_timeout(after.saturating_add(GRACE));
        let late = CollectiveCause::Timeout { after, missing: Vec::new() };
        match answer.unwrap_or(Err(late)) {
            Ok(part) => Ok(part.map(Unclaimed::claim).map(|part| -> Joined<B> {
                let (rank, size) = part.place();
                (Arc::new(MpiEnd::new(part)), rank, size)
            })),
            Err(cause) => {
                let failed = CollectiveError::new("split", self.number, self.comm.place(), cause);
                Err(Error::new("", "split", Box::new(failed)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_of_one_colour_are_ordered_by_key_and_rank() {
        let say = |colour, key| Request { colour, key, answer: channel().0 };
        let all = [say(Some(1), 5), say(Some(0), 0), say(None, 0), say(Some(1), -3), say(Some(1), 5)];
        let bytes: Vec<u8> = all.iter().flat_map(Request::to_bytes).collect();
        assert_eq!(all[0].part(&bytes), Some(vec![3, 0, 4]));
        assert_eq!(all[1].part(&bytes), Some(vec![1]));
        assert_eq!(all[2].part(&bytes), None);
    }
}
