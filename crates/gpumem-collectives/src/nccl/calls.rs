//! Operations as calls of the library.

use super::numbers;
use crate::call::{Call, Kind, Place, Prepared};
use gpumem_core::Backend;
use gpumem_sys::nccl::{
    Failure, Library, MissingSymbol, cudaStream_t, ncclComm_t, ncclDataType_t as Type, ncclRedOp_t,
    ncclResult_t,
};
use std::{
    ffi::{c_int, c_void},
    ptr::with_exposed_provenance_mut,
};

/// Where calls of the library go.
#[derive(Clone, Copy)]
pub(super) struct Target {
    pub(super) library: &'static Library,
    pub(super) communicator: ncclComm_t,
    pub(super) stream: cudaStream_t,
    pub(super) rank: usize,
    pub(super) size: usize,
    /// A byte of the device for barriers.
    pub(super) barrier: u64,
}

/// Runs calls between `ncclGroupStart` and `ncclGroupEnd`, which is called in any case.
pub(super) fn group(
    library: &'static Library,
    body: impl FnOnce() -> Result<(), Failure>,
) -> Result<(), Failure> {
    // SAFETY: the group ends on this thread, below.
    library.check(unsafe { library.ncclGroupStart() })?;
    let called = body();
    // SAFETY: it ends the group that was begun above.
    let ended = library.check(unsafe { library.ncclGroupEnd() });
    called.and(ended)
}

/// Elements as bytes: nothing is computed.
const BYTE: Type = Type::ncclUint8;

pub(super) fn pointer(address: u64) -> *mut c_void {
    with_exposed_provenance_mut(address as usize)
}

fn address<B: Backend>(place: Option<&Place<'_, B>>) -> u64 {
    place.map_or(0, Place::address)
}

/// Whether an operation is several calls of the library.
fn is_several<B: Backend>(target: &Target, prepared: &Prepared<'_, B>) -> bool {
    match prepared.call.kind {
        Kind::AllToAll | Kind::AllToAllV { .. } => true,
        Kind::Gather { root } | Kind::Scatter { root } => target.rank == root,
        _ => false,
    }
}

/// Operations of a rank in the order in which the library gets them: those of two ranks last. Others may consist of sends, too, and the
/// library pairs the sends and receives of two ranks in their order, where in a group none waits for another.
pub(super) fn in_order<'a, B: Backend>(
    calls: &'a [Prepared<'a, B>],
) -> impl Iterator<Item = &'a Prepared<'a, B>> {
    let of_pairs =
        |wanted: bool| calls.iter().filter(move |prepared| prepared.call.kind.is_of_pair() == wanted);
    of_pairs(false).chain(of_pairs(true))
}

/// Whether operations have to be called as a group.
pub(super) fn needs_group<B: Backend>(target: &Target, calls: &[Prepared<'_, B>]) -> bool {
    calls.len() > 1 || calls.iter().any(|prepared| is_several(target, prepared))
}

impl Target {
    fn check(&self, outcome: Result<ncclResult_t, MissingSymbol>) -> Result<(), Failure> {
        self.library.check(outcome)
    }

    /// Calls the library for one operation.
    ///
    /// # Safety
    /// The communicator and the stream are alive. The places of the operation are valid until the stream has done it, and
    /// nothing else uses them meanwhile.
    pub(super) unsafe fn call<B: Backend>(&self, prepared: &Prepared<'_, B>) -> Result<(), Failure> {
        let Self { library, communicator: ranks, stream, rank, size, .. } = *self;
        let Prepared { call, source, destination, .. } = prepared;
        let bytes = call.bytes();
        let (from, to) = (address(source.as_ref()), address(destination.as_ref()));
        // The other ranks come to a barrier without elements, and may have some where blocks differ in length.
        if bytes == 0 && !matches!(call.kind, Kind::Barrier | Kind::AllToAllV { .. }) {
            return Ok(());
        }
        let (number, count, operation) = reduced(call)?;
        let (own, all) = (pointer(from), pointer(to));
        let block = |address: u64, peer: usize| address + (peer * bytes) as u64;
        // SAFETY: the caller's promise, for each call of the library.
        let called = unsafe {
            match &call.kind {
                Kind::AllReduce => library.ncclAllReduce(own, all, count, number, operation, ranks, stream),
                Kind::Reduce { root } => {
                    library.ncclReduce(own, all, count, number, operation, *root as c_int, ranks, stream)
                }
                Kind::ReduceScatter => {
                    library.ncclReduceScatter(own, all, count, number, operation, ranks, stream)
                }
                Kind::Broadcast { root } => {
                    // Without a destination the root's elements stay where they are; the others have no source.
                    let from = if rank == *root { own } else { all };
                    let to = if all.is_null() { own } else { all };
                    library.ncclBroadcast(from, to, bytes, BYTE, *root as c_int, ranks, stream)
                }
                Kind::AllGather | Kind::Split => library.ncclAllGather(own, all, bytes, BYTE, ranks, stream),
                Kind::Barrier => {
                    let (byte, sum) = (pointer(self.barrier), ncclRedOp_t::ncclSum);
                    library.ncclAllReduce(byte, byte, 1, BYTE, sum, ranks, stream)
                }
                Kind::AllToAll => return self.exchange(from, to, bytes),
                Kind::AllToAllV { send, receive } => return self.exchange_parts((from, send), (to, receive)),
                Kind::Gather { root } => {
                    if rank == *root {
                        (0..size).try_for_each(|peer| self.receive(block(to, peer), bytes, peer))?;
                    }
                    return self.send(from, bytes, *root);
                }
                Kind::Scatter { root } => {
                    if rank == *root {
                        (0..size).try_for_each(|peer| self.send(block(from, peer), bytes, peer))?;
                    }
                    return self.receive(to, bytes, *root);
                }
                Kind::Send { to: peer } => return self.send(from, bytes, *peer),
                Kind::Receive { from: peer } => return self.receive(to, bytes, *peer),
            }
        };
        self.check(called)
    }

    /// Exchanges a block of `bytes` bytes with every rank.
    ///
    /// # Safety
    /// As for [`call`](Self::call).
    unsafe fn exchange(&self, from: u64, to: u64, bytes: usize) -> Result<(), Failure> {
        let Self { library, communicator, stream, size, .. } = *self;
        let (own, all) = (pointer(from), pointer(to));
        let block = |address: u64, peer: usize| address + (peer * bytes) as u64;
        // SAFETY: the caller's promise, for each call of the library.
        unsafe {
            // NVIDIA and AMD spell it differently, and older libraries have neither.
            let called = library
                .ncclAlltoAll(own, all, bytes, BYTE, communicator, stream)
                .or_else(|_| library.rccl.ncclAllToAll(own, all, bytes, BYTE, communicator, stream));
            if called.is_ok() {
                return self.check(called);
            }
            (0..size).try_for_each(|peer| {
                self.send(block(from, peer), bytes, peer)?;
                self.receive(block(to, peer), bytes, peer)
            })
        }
    }

    /// Exchanges blocks of these lengths with every rank.
    ///
    /// # Safety
    /// As for [`call`](Self::call).
    unsafe fn exchange_parts(
        &self,
        (mut from, send): (u64, &[usize]),
        (mut to, receive): (u64, &[usize]),
    ) -> Result<(), Failure> {
        for (peer, (send, receive)) in send.iter().zip(receive).enumerate() {
            // SAFETY: the caller's promise.
            unsafe {
                self.send(from, *send, peer)?;
                self.receive(to, *receive, peer)?;
            }
            (from, to) = (from + *send as u64, to + *receive as u64);
        }
        Ok(())
    }

    /// # Safety
    /// As for [`call`](Self::call).
    unsafe fn send(&self, from: u64, bytes: usize, peer: usize) -> Result<(), Failure> {
        if bytes == 0 {
            return Ok(());
        }
        // SAFETY: the caller's promise.
        self.check(unsafe {
            self.library.ncclSend(pointer(from), bytes, BYTE, peer as c_int, self.communicator, self.stream)
        })
    }

    /// # Safety
    /// As for [`call`](Self::call).
    unsafe fn receive(&self, to: u64, bytes: usize, peer: usize) -> Result<(), Failure> {
        if bytes == 0 {
            return Ok(());
        }
        // SAFETY: the caller's promise.
        self.check(unsafe {
            self.library.ncclRecv(pointer(to), bytes, BYTE, peer as c_int, self.communicator, self.stream)
        })
    }
}

/// The type, the count and the operation of a reduction; of bytes where nothing is computed.
fn reduced(call: &Call) -> Result<(Type, usize, ncclRedOp_t), Failure> {
    let Some(computation) = &call.computation else { return Ok((BYTE, call.bytes(), ncclRedOp_t::ncclSum)) };
    match numbers::computed(call) {
        Some((number, numbers, operation)) => Ok((number, call.count * numbers, operation)),
        // The traits of reductions take no other numbers.
        None => Err(Failure::Status {
            status: ncclResult_t::ncclInvalidArgument,
            message: format!("there is no {} of {}", computation.name, call.element.name),
        }),
    }
}
