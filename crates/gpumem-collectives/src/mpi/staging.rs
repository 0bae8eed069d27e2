//! Memory of the engine between the arrays and the library.

use crate::{
    call::{Call, Kind},
    span::Span,
};
use std::{
    alloc::{Layout, alloc_zeroed},
    ffi::c_void,
    mem::ManuallyDrop,
    ops::{Deref, DerefMut},
    ptr::NonNull,
};

/// Why an operation fails whose array does not have its bytes.
pub(crate) const BYTES_DIFFER: &str = "its array does not have the bytes of the operation that it called";
/// Why an operation fails for whose elements there is no room.
const NO_MEMORY: &str = "it has no memory for the elements of the operation";

/// Zeroed bytes, aligned for every element.
#[derive(Debug, Default)]
pub(crate) struct Buffer {
    words: Vec<u128>,
    bytes: usize,
}

impl Buffer {
    pub(crate) fn new(bytes: usize) -> Self {
        Self { words: vec![0; bytes.div_ceil(size_of::<u128>())], bytes }
    }

    /// As [`new`](Self::new), for as many bytes as arrays have. `None` if there is no memory.
    fn try_new(bytes: usize) -> Option<Self> {
        let count = bytes.div_ceil(size_of::<u128>());
        if count == 0 {
            return Some(Self::default());
        }
        // SAFETY: there are words.
        let words = NonNull::new(unsafe { alloc_zeroed(Layout::array::<u128>(count).ok()?) })?;
        // SAFETY: so many words of Rust's own allocator, which are zeros.
        let words = unsafe { Vec::from_raw_parts(words.as_ptr().cast(), count, count) };
        Some(Self { words, bytes })
    }

    pub(crate) fn of(bytes: &[u8]) -> Self {
        let mut buffer = Self::new(bytes.len());
        buffer.as_mut_slice().copy_from_slice(bytes);
        buffer
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes
    }

    pub(crate) fn as_ptr(&self) -> *const c_void {
        self.words.as_ptr().cast()
    }

    pub(crate) fn as_mut_ptr(&mut self) -> *mut c_void {
        self.words.as_mut_ptr().cast()
    }

    pub(crate) fn as_slice(&self) -> &[u8] {
        // SAFETY: the words have at least so many bytes, all of them initialised.
        unsafe { std::slice::from_raw_parts(self.words.as_ptr().cast(), self.bytes) }
    }

    fn as_mut_slice(&mut self) -> &mut [u8] {
        // SAFETY: as in `as_slice`, and borrowed alone.
        unsafe { std::slice::from_raw_parts_mut(self.words.as_mut_ptr().cast(), self.bytes) }
    }
}

/// What the library reads or writes from the call that is given it until a request is done. Dropped before, it stays where it is for
/// ever: a call that reports an error may have begun to use it.
#[derive(Debug)]
pub(crate) struct Lent<T>(ManuallyDrop<T>);

impl<T> Lent<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(ManuallyDrop::new(value))
    }

    /// The library is done with it.
    pub(crate) fn back(self) -> T {
        ManuallyDrop::into_inner(self.0)
    }
}

impl<T> Deref for Lent<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> DerefMut for Lent<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

/// What one rank gives and gets in an operation, and the arrays of numbers that the library reads meanwhile.
#[derive(Debug, Default)]
pub(crate) struct Staging {
    /// What is sent, where it is not taken from `receive`.
    pub(crate) send: Buffer,
    pub(crate) receive: Buffer,
    /// Bytes to each rank and from each rank, and where they begin.
    pub(crate) parts: Vec<Vec<i64>>,
}

/// How a kind of operation uses the buffers of a rank.
struct Plan {
    send: usize,
    receive: usize,
    /// Where the source goes: into `receive`, from this byte on, or into `send`.
    source_at: Option<usize>,
    /// Bytes of the source.
    source: usize,
    /// Bytes of the destination, if the rank has one.
    destination: usize,
}

fn plan(call: &Call, rank: usize, ranks: usize) -> Plan {
    let (bytes, all) = (call.bytes(), call.bytes().saturating_mul(ranks));
    let apart = |send, receive| Plan { send, receive, source_at: None, source: send, destination: receive };
    let inside = |receive, start, source, destination| Plan {
        send: 0,
        receive,
        source_at: Some(start),
        source,
        destination,
    };
    match &call.kind {
        // In place where MPI can: one buffer less to write.
        Kind::AllReduce => inside(bytes, 0, bytes, bytes),
        Kind::Reduce { root } if *root == rank => inside(bytes, 0, bytes, bytes),
        Kind::Broadcast { root } => inside(bytes, 0, if *root == rank { bytes } else { 0 }, bytes),
        Kind::AllGather | Kind::Split => inside(all, rank * bytes, bytes, all),
        Kind::ReduceScatter => inside(all, 0, all, bytes),
        Kind::AllToAll => apart(all, all),
        Kind::AllToAllV { send, receive } => apart(send.iter().sum(), receive.iter().sum()),
        Kind::Gather { root } if *root == rank => apart(bytes, all),
        Kind::Scatter { root } if *root == rank => apart(all, bytes),
        Kind::Scatter { .. } | Kind::Receive { .. } => apart(0, bytes),
        Kind::Reduce { .. } | Kind::Gather { .. } | Kind::Send { .. } => apart(bytes, 0),
        Kind::Barrier => apart(0, 0),
    }
}

impl Staging {
    /// Buffers for an operation, with the bytes of the source. Returns why there are none: the source does not have the bytes
    /// of the operation, or there is no memory.
    ///
    /// # Safety
    /// The source is valid for reads, and not written meanwhile.
    pub(crate) unsafe fn fill(
        call: &Call,
        (rank, ranks): (usize, usize),
        source: Span,
    ) -> Result<Self, &'static str> {
        let Plan { send, receive, source_at, source: bytes, .. } = plan(call, rank, ranks);
        let room = |bytes| Buffer::try_new(bytes).ok_or(NO_MEMORY);
        let mut staging = Self { send: room(send)?, receive: room(receive)?, parts: Vec::new() };
        let to = match source_at {
            Some(start) => {
                staging.receive.as_mut_slice().get_mut(start..start + bytes).ok_or(BYTES_DIFFER)?
            }
            None => staging.send.as_mut_slice(),
        };
        // SAFETY: passed on to the caller. The buffer is apart from the source.
        if !unsafe { source.copy_to_slice(to) } {
            return Err(BYTES_DIFFER);
        }
        if let Kind::AllToAllV { send, receive } = &call.kind {
            let counts = |all: &[usize]| all.iter().map(|bytes| *bytes as i64).collect::<Vec<_>>();
            let offsets = |all: &[usize]| {
                let starts = all.iter().scan(0, |next, bytes| {
                    *next += *bytes as i64;
                    Some(*next - *bytes as i64)
                });
                starts.collect::<Vec<i64>>()
            };
            staging.parts = vec![counts(send), offsets(send), counts(receive), offsets(receive)];
        }
        Ok(staging)
    }

    /// Copies what was received to the destination, if the rank has one. `false`, and nothing is copied, if it does not have
    /// the bytes of the operation.
    ///
    /// # Safety
    /// The destination is valid for writes, and no other code uses it meanwhile. The call is the one of `fill`.
    #[must_use]
    pub(crate) unsafe fn empty(
        mut self,
        call: &Call,
        (rank, ranks): (usize, usize),
        destination: Span,
    ) -> bool {
        if destination.is_empty() {
            return true;
        }
        let bytes = plan(call, rank, ranks).destination;
        if destination.len() != bytes || self.receive.len() < bytes {
            return false;
        }
        if let Some(computation) = &call.computation {
            // SAFETY: the buffer is aligned for every element, and has at least those of the destination.
            unsafe { (computation.step)().finish(self.receive.as_mut_ptr(), call.count, ranks) };
        }
        // SAFETY: passed on to the caller. The buffer is apart from the destination.
        unsafe { destination.copy_from_slice(0, &self.receive.as_slice()[..bytes]) };
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operation_without_memory_is_refused() {
        let call = Call::new::<u8>(Kind::AllGather, isize::MAX as usize);
        for ranks in [1, 2, usize::MAX] {
            // SAFETY: there is no source.
            let filled = unsafe { Staging::fill(&call, (0, ranks), Span::default()) };
            assert_eq!(filled.err(), Some(NO_MEMORY));
        }
        let empty = Call::new::<u8>(Kind::AllGather, 0);
        // SAFETY: there is no source.
        assert!(unsafe { Staging::fill(&empty, (1, 2), Span::default()) }.is_ok());
    }
}
