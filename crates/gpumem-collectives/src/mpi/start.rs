//! Starts an operation in the library.

use super::{
    Lent, Mpi, MpiError, Staging,
    abi::{self, BYTE, Count, IN_PLACE, Object},
    reduce::Made,
};
use crate::call::{Call, Kind};
use gpumem_sys::MissingSymbol;
use std::{
    ffi::c_int,
    ptr::{null_mut, without_provenance},
};

/// The tag of sends of the user.
pub(crate) const DATA: c_int = 0;
/// The tags of what the two sides of a send say before it.
pub(crate) const CHECK_SEND: c_int = 1;
pub(crate) const CHECK_RECEIVE: c_int = 3;
/// The tag of what ranks tell each other about themselves.
pub(crate) const CONTROL: c_int = 2;
/// The tags of splits. Open MPI 6 sends messages of its own with them, so they differ from those above.
pub(crate) const FIRST_SPLIT: c_int = 16;
/// How many tags splits take in turn. Every library has tags up to 32767.
pub(crate) const SPLITS: c_int = 0x7000;
const _: () = assert!(FIRST_SPLIT > CHECK_RECEIVE && FIRST_SPLIT + SPLITS <= 0x7fff);

/// Starts an operation between the buffers, which stay where they are until the request is done.
pub(crate) fn start(
    mpi: &Mpi,
    made: &mut Made,
    place: (Object, usize),
    call: &Call,
    staging: &mut Lent<Staging>,
) -> Result<Object, MpiError> {
    let mut request = abi::REQUEST_NULL;
    // SAFETY: the arguments were checked when the operation was called: roots and peers are ranks, counts fit the buffers
    // (`staging::plan`), which live until the request is done, and no other code uses them.
    let started = unsafe {
        match call.kind {
            Kind::AllReduce | Kind::Reduce { .. } | Kind::ReduceScatter => {
                start_reduction(mpi, made, place, call, staging, &mut request)?
            }
            _ => start_move(mpi, place.0, call, staging, &mut request)?,
        }
    };
    mpi.check(started)?;
    Ok(request)
}

/// What a function of MPI has returned, if the library has it.
type Answer = Result<c_int, MissingSymbol>;

/// Starts an operation that computes.
///
/// # Safety
/// The arguments fit the operation, and the buffers live until the request is done. No other code uses them.
unsafe fn start_reduction(
    mpi: &Mpi,
    made: &mut Made,
    (comm, rank): (Object, usize),
    call: &Call,
    staging: &mut Staging,
    request: &mut Object,
) -> Result<Answer, MpiError> {
    let in_place = without_provenance(IN_PLACE);
    let (own, send) = (staging.receive.as_mut_ptr(), staging.send.as_ptr());
    let count = call.count as Count;
    let (datatype, operation) = match &call.computation {
        Some(computation) => made.of(mpi, computation)?,
        None => (BYTE, abi::OP_NULL),
    };
    let functions = &mpi.functions;
    // SAFETY: the caller's promise. The types and operations are of the standard or were made for the elements.
    Ok(unsafe {
        match call.kind {
            Kind::Reduce { root } => {
                // In place at the root; the others have nowhere to receive.
                let (from, to) = if root == rank { (in_place, own) } else { (send, null_mut()) };
                let root = root as c_int;
                functions.MPI_Ireduce_c(from, to, count, datatype, operation, root, comm, request)
            }
            Kind::ReduceScatter => functions
                .MPI_Ireduce_scatter_block_c(in_place, own, count, datatype, operation, comm, request),
            _ => functions.MPI_Iallreduce_c(in_place, own, count, datatype, operation, comm, request),
        }
    })
}

/// Starts an operation that moves bytes.
///
/// # Safety
/// As for [`start_reduction`].
unsafe fn start_move(
    mpi: &Mpi,
    comm: Object,
    call: &Call,
    staging: &mut Staging,
    request: &mut Object,
) -> Result<Answer, MpiError> {
    let (own, send) = (staging.receive.as_mut_ptr(), staging.send.as_ptr());
    let bytes = call.bytes() as Count;
    let functions = &mpi.functions;
    // SAFETY: the caller's promise.
    Ok(unsafe {
        match call.kind {
            Kind::Broadcast { root } => {
                functions.MPI_Ibcast_c(own, bytes, BYTE, root as c_int, comm, request)
            }
            Kind::AllGather => {
                let in_place = without_provenance(IN_PLACE);
                functions.MPI_Iallgather_c(in_place, 0, BYTE, own, bytes, BYTE, comm, request)
            }
            Kind::Gather { root } => {
                functions.MPI_Igather_c(send, bytes, BYTE, own, bytes, BYTE, root as c_int, comm, request)
            }
            Kind::Scatter { root } => {
                functions.MPI_Iscatter_c(send, bytes, BYTE, own, bytes, BYTE, root as c_int, comm, request)
            }
            Kind::AllToAll => functions.MPI_Ialltoall_c(send, bytes, BYTE, own, bytes, BYTE, comm, request),
            Kind::AllToAllV { .. } => {
                let [send_counts, send_offsets, counts, offsets] = &*staging.parts else {
                    let message = "the operation has no numbers of rows".to_owned();
                    return Err(MpiError { message });
                };
                let (from, at) = (send_counts.as_ptr(), send_offsets.as_ptr());
                let (to, places) = (counts.as_ptr(), offsets.as_ptr());
                functions.MPI_Ialltoallv_c(send, from, at, BYTE, own, to, places, BYTE, comm, request)
            }
            Kind::Send { to } => functions.MPI_Isend_c(send, bytes, BYTE, to as c_int, DATA, comm, request),
            Kind::Receive { from } => {
                functions.MPI_Irecv_c(own, bytes, BYTE, from as c_int, DATA, comm, request)
            }
            _ => functions.MPI_Ibarrier(comm, request),
        }
    })
}
