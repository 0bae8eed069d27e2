//! The command processor: packets of the Architected Queuing Language.

use super::{
    clock, halt,
    queue::Queue,
    signal::{self, Condition, Signal},
};
use crate::{
    abi::{AmdQueue, BarrierPacket, BarrierValuePacket, DispatchPacket, amd_format, packet},
    events,
    kernels::{self, ProcessGuard, Refusal},
    memory::{self, Fault},
    stats::stats,
};
use std::{
    mem::offset_of,
    sync::atomic::{AtomicU16, AtomicU64, Ordering},
};

const PACKET_BYTES: u64 = 64;

/// Codes by which the command processor says through the queue's signal why it has stopped.
#[derive(Debug, Clone, Copy)]
#[repr(u32)]
enum QueueError {
    InvalidCodeObject = 0x8,
    InvalidPacket = 0x20,
    Trap = 0x8000_0000,
}

impl QueueError {
    /// The bit of the exception in the kernel driver's mask: one less than its `KFD_EC` code.
    fn exception(self) -> u64 {
        1 << match self {
            QueueError::Trap => 1,
            QueueError::InvalidCodeObject => 17,
            QueueError::InvalidPacket => 19,
        }
    }
}

/// Why a packet has not been completed.
enum Stop {
    /// The queue is to stand still; the packet stays.
    NotNow,
    Fault(Fault),
    Error(QueueError),
}

impl From<Fault> for Stop {
    fn from(fault: Fault) -> Self {
        Stop::Fault(fault)
    }
}

/// Runs packets in order until one is not there yet. Kernels run one after the other, so that the packets' barrier
/// bits are always obeyed.
pub(super) fn run(queue: &Queue) -> bool {
    let count = queue.ring.bytes() as u64 / PACKET_BYTES;
    while queue.may_run() {
        let index = queue.read_index().load(Ordering::Acquire);
        let slot = queue.ring.as_ptr().wrapping_add((index % count * PACKET_BYTES) as usize);
        // SAFETY: the slot lies in the ring, and producers publish a packet by writing its header last, atomically.
        let header = unsafe { AtomicU16::from_ptr(slot.cast()) };
        let kind = header.load(Ordering::Acquire) & 0xff;
        if queue.write_index().load(Ordering::Acquire) <= index || kind == packet::INVALID {
            return false;
        }
        // SAFETY: a published packet is not written until the read index has passed it.
        let bytes: [u64; 8] = unsafe { slot.cast::<[u64; 8]>().read() };
        let start = clock();
        match execute(queue, index % count, kind, bytes) {
            Ok(()) => {}
            Err(Stop::NotNow) => return true,
            Err(Stop::Error(error)) => {
                report(queue, error);
                return false;
            }
            Err(Stop::Fault(fault)) => {
                halt(&fault, &format!("AQL packet {index}"));
                return false;
            }
        }
        stats().aql_packets.add(1);
        header.store(packet::INVALID, Ordering::Release);
        queue.read_index().store(index + 1, Ordering::Release);
        // The last word of every kind of packet is its completion signal.
        let completion = bytes[7];
        if completion != 0 {
            let done =
                Signal::open(queue.node, completion).and_then(|signal| signal.complete(start, clock()));
            if let Err(fault) = done {
                halt(&fault, &format!("the completion signal of AQL packet {index}"));
                return false;
            }
        }
    }
    true
}

fn execute(queue: &Queue, slot: u64, kind: u16, bytes: [u64; 8]) -> Result<(), Stop> {
    let proceed = |fulfilled| if fulfilled { Ok(()) } else { Err(Stop::NotNow) };
    match kind {
        packet::KERNEL_DISPATCH => {
            // SAFETY: both are 64 bytes of plain integers.
            let dispatch: DispatchPacket = unsafe { std::mem::transmute(bytes) };
            let origin =
                ProcessGuard { packet: queue.ring_address + slot * PACKET_BYTES, queue: structure(queue) };
            kernels::dispatch(queue.node, &dispatch, origin, &|| !queue.may_run()).map_err(|refusal| {
                match refusal {
                    Refusal::Fault(fault) => Stop::Fault(fault),
                    Refusal::Stopped => Stop::NotNow,
                    Refusal::Unknown => Stop::Error(QueueError::InvalidCodeObject),
                    Refusal::Trap => Stop::Error(QueueError::Trap),
                }
            })
        }
        packet::BARRIER_AND => {
            // SAFETY: both are 64 bytes of plain integers.
            let barrier: BarrierPacket = unsafe { std::mem::transmute(bytes) };
            for handle in barrier.dep_signal {
                proceed(signal::wait(queue, handle, Condition::Equal, 0, -1)?)?;
            }
            Ok(())
        }
        packet::BARRIER_OR => {
            // SAFETY: both are 64 bytes of plain integers.
            let barrier: BarrierPacket = unsafe { std::mem::transmute(bytes) };
            proceed(signal::wait_any(queue, &barrier.dep_signal)?)
        }
        packet::VENDOR_SPECIFIC => {
            // SAFETY: both are 64 bytes of plain integers.
            let barrier: BarrierValuePacket = unsafe { std::mem::transmute(bytes) };
            match barrier.amd_format {
                amd_format::PM4_IB => Ok(()),
                amd_format::BARRIER_VALUE => {
                    let invalid = Stop::Error(QueueError::InvalidPacket);
                    let condition = Condition::from_hsa(barrier.cond).ok_or(invalid)?;
                    let BarrierValuePacket { signal, value, mask, .. } = barrier;
                    proceed(signal::wait(queue, signal, condition, value, mask)?)
                }
                _ => Err(Stop::Error(QueueError::InvalidPacket)),
            }
        }
        _ => Err(Stop::Error(QueueError::InvalidPacket)),
    }
}

/// The address of the queue's structure.
fn structure(queue: &Queue) -> u64 {
    queue.write_pointer_address() - offset_of!(AmdQueue, write_dispatch_id) as u64
}

/// Stops the queue and tells the runtime why, through the signal that it has put into the queue's structure, or as the
/// kernel driver tells exceptions.
fn report(queue: &Queue, error: QueueError) {
    eprintln!("rocsim: a queue of node {} stops: {error:?}", queue.node);
    queue.stand_still();
    let told = match queue.exceptions {
        Some((address, event)) => raise_exception(queue.node, address, event, error),
        None => raise_signal(queue, error),
    };
    if let Err(fault) = told {
        halt(&fault, "the structure of a queue");
    }
}

fn raise_signal(queue: &Queue, error: QueueError) -> Result<(), Fault> {
    let span = memory::span(queue.node, structure(queue), size_of::<AmdQueue>() as u64)?;
    let handle = span.as_ptr().wrapping_add(offset_of!(AmdQueue, queue_inactive_signal));
    // SAFETY: the word lies in the span; the runtime writes it before it publishes the queue.
    let handle = unsafe { handle.cast::<u64>().read_volatile() };
    Signal::open(queue.node, handle)?.raise(i64::from(error as u32))
}

fn raise_exception(node: u32, address: u64, event: u32, error: QueueError) -> Result<(), Fault> {
    let word = memory::span(node, address & !7, 8)?;
    // SAFETY: an aligned word of the span that is only used as an atomic.
    unsafe { AtomicU64::from_ptr(word.as_ptr().cast()) }.fetch_or(error.exception(), Ordering::AcqRel);
    events::set(event, true);
    Ok(())
}
