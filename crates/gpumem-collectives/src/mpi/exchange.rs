//! What ranks say to each other before an operation.

use super::{
    Buffer, Comm, Lent, Mpi, MpiError, Operation,
    abi::{self, BYTE, Count, Object},
    operation::Sequence,
    start,
};
use crate::fingerprint::{Fingerprint, disagreement_of_bytes};
use gpumem_core::CollectiveCause;
use std::ffi::c_int;

/// The buffers of an exchange.
#[derive(Debug)]
pub(crate) struct Exchange {
    mine: Buffer,
    theirs: Buffer,
}

impl Exchange {
    /// What all ranks say reaches all.
    pub(crate) fn of_all(mpi: &Mpi, comm: &Comm, mine: &[u8]) -> Result<(Lent<Self>, Vec<Object>), MpiError> {
        let (_, size) = comm.place();
        let mut exchange = Lent::new(Self { mine: Buffer::of(mine), theirs: Buffer::new(size * mine.len()) });
        let (bytes, mut request) = (mine.len() as Count, abi::REQUEST_NULL);
        let (from, to) = (exchange.mine.as_ptr(), exchange.theirs.as_mut_ptr());
        // SAFETY: the buffers have so many bytes, for this rank and for all, and are kept until the request is done.
        let started = unsafe {
            mpi.functions.MPI_Iallgather_c(from, bytes, BYTE, to, bytes, BYTE, comm.raw, &mut request)
        };
        mpi.check(started)?;
        Ok((exchange, vec![request]))
    }

    /// The ranks of an operation say what they have called, or why they cannot take part.
    pub(crate) fn of_call(
        mpi: &Mpi,
        operation: &Operation,
        lost: Option<String>,
    ) -> Result<(Lent<Self>, Vec<Object>), MpiError> {
        let (_, size) = operation.comm.place();
        let mut mine = operation.fingerprint.clone();
        mine.lost = lost;
        let mine = mine.to_bytes(size);
        match operation.of {
            Sequence::OfAll => Self::of_all(mpi, &operation.comm, &mine),
            // Tags of their own: two ranks that send to each other exchange twice, at the same time.
            Sequence::SendTo(to) => {
                Self::of_two(mpi, operation, &mine, to, (start::CHECK_SEND, start::CHECK_RECEIVE))
            }
            Sequence::ReceiveFrom(from) => {
                Self::of_two(mpi, operation, &mine, from, (start::CHECK_RECEIVE, start::CHECK_SEND))
            }
        }
    }

    fn of_two(
        mpi: &Mpi,
        operation: &Operation,
        mine: &[u8],
        peer: usize,
        (my_tag, their_tag): (c_int, c_int),
    ) -> Result<(Lent<Self>, Vec<Object>), MpiError> {
        let mut exchange = Lent::new(Self { mine: Buffer::of(mine), theirs: Buffer::new(mine.len()) });
        let (bytes, peer, raw) = (mine.len() as Count, peer as c_int, operation.comm.raw);
        let mut requests = vec![abi::REQUEST_NULL; 2];
        let (from, to) = (exchange.mine.as_ptr(), exchange.theirs.as_mut_ptr());
        // SAFETY: the buffers have so many bytes, and are kept until the requests are done.
        unsafe {
            mpi.check(mpi.functions.MPI_Irecv_c(to, bytes, BYTE, peer, their_tag, raw, &mut requests[0]))?;
            mpi.check(mpi.functions.MPI_Isend_c(from, bytes, BYTE, peer, my_tag, raw, &mut requests[1]))?;
        }
        Ok((exchange, requests))
    }

    /// Whether all ranks have said the same.
    pub(crate) fn is_unanimous(&self) -> bool {
        self.theirs.as_slice().chunks_exact(self.mine.len()).all(|said| said == self.mine.as_slice())
    }

    /// What the others have said.
    pub(crate) fn theirs(&self) -> &[u8] {
        self.theirs.as_slice()
    }

    /// Why the operation of these calls does not take place, for this rank.
    pub(crate) fn verdict(&self, operation: &Operation) -> Option<CollectiveCause> {
        let (rank, size) = operation.comm.place();
        let (ranks, said): (Vec<usize>, Vec<&[u8]>) = match operation.of {
            Sequence::OfAll => {
                let all = self.theirs.as_slice().chunks_exact(Fingerprint::len(size));
                ((0..size).collect(), all.collect())
            }
            Sequence::SendTo(to) => (vec![rank, to], vec![self.mine.as_slice(), self.theirs.as_slice()]),
            Sequence::ReceiveFrom(from) => {
                (vec![from, rank], vec![self.theirs.as_slice(), self.mine.as_slice()])
            }
        };
        let slot = match operation.of {
            Sequence::OfAll => rank,
            Sequence::SendTo(_) => 0,
            Sequence::ReceiveFrom(_) => 1,
        };
        disagreement_of_bytes(&ranks, &said, size, slot)
    }
}
