//! HSA signals as the engines use them: decrement, timestamps, interrupt, wait.

use super::{Patience, queue::Queue};
use crate::{
    abi::AmdSignal,
    events,
    memory::{self, Cause, Fault, Span},
};
use std::{
    mem::offset_of,
    sync::atomic::{AtomicI64, AtomicU64, Ordering},
};

/// How a value of a signal is compared.
#[derive(Debug, Clone, Copy)]
pub(super) enum Condition {
    Equal,
    NotEqual,
    Less,
    GreaterOrEqual,
}

impl Condition {
    /// As `hsa_signal_condition_t`.
    pub(super) fn from_hsa(code: u32) -> Option<Self> {
        Some(match code {
            0 => Self::Equal,
            1 => Self::NotEqual,
            2 => Self::Less,
            3 => Self::GreaterOrEqual,
            _ => return None,
        })
    }

    fn holds(self, value: i64, reference: i64) -> bool {
        match self {
            Self::Equal => value == reference,
            Self::NotEqual => value != reference,
            Self::Less => value < reference,
            Self::GreaterOrEqual => value >= reference,
        }
    }
}

/// A signal that a GPU may use.
#[derive(Debug)]
pub(super) struct Signal {
    span: Span,
    node: u32,
}

impl Signal {
    /// Returns the signal of a handle that is not zero.
    pub(super) fn open(node: u32, handle: u64) -> Result<Self, Fault> {
        let bytes = size_of::<AmdSignal>() as u64;
        if !handle.is_multiple_of(bytes) {
            return Err(Fault { node, address: handle, bytes, cause: Cause::Unknown });
        }
        let span = memory::span(node, handle, bytes)?;
        Ok(Self { span, node })
    }

    fn word(&self, offset: usize) -> *mut u64 {
        debug_assert!(offset + 8 <= size_of::<AmdSignal>());
        self.span.as_ptr().wrapping_add(offset).cast()
    }

    fn value(&self) -> &AtomicI64 {
        // SAFETY: the word lies in the span, is aligned as handles are, and everybody uses it as an atomic.
        unsafe { AtomicI64::from_ptr(self.word(offset_of!(AmdSignal, value)).cast()) }
    }

    pub(super) fn load(&self) -> i64 {
        self.value().load(Ordering::Acquire)
    }

    /// Marks work as done: the times, one less, and the interrupt if a thread sleeps on it.
    pub(super) fn complete(&self, start: u64, end: u64) -> Result<(), Fault> {
        // SAFETY: both words lie in the span; readers wait for the value first.
        unsafe {
            self.word(offset_of!(AmdSignal, start_ts)).write_volatile(start);
            self.word(offset_of!(AmdSignal, end_ts)).write_volatile(end);
        }
        self.value().fetch_sub(1, Ordering::AcqRel);
        self.interrupt()
    }

    /// Sets bits of the value and interrupts.
    pub(super) fn raise(&self, bits: i64) -> Result<(), Fault> {
        self.value().fetch_or(bits, Ordering::AcqRel);
        self.interrupt()
    }

    fn interrupt(&self) -> Result<(), Fault> {
        // SAFETY: the words lie in the span and do not change after the signal was made.
        let (mailbox, event) = unsafe {
            let id = self.word(offset_of!(AmdSignal, event_id)).cast::<u32>().read_volatile();
            (self.word(offset_of!(AmdSignal, event_mailbox_ptr)).read_volatile(), id)
        };
        if mailbox == 0 || !mailbox.is_multiple_of(8) {
            return Ok(());
        }
        let word = memory::span(self.node, mailbox, 8)?;
        // SAFETY: the mailbox is an aligned word of the span that is only used as an atomic.
        unsafe { AtomicU64::from_ptr(word.as_ptr().cast()) }.store(u64::from(event), Ordering::Release);
        events::set(event, true);
        Ok(())
    }
}

/// Waits until a signal's value, masked, fulfils the condition. False if the queue was stopped meanwhile. The handle
/// zero is fulfilled.
pub(super) fn wait(
    queue: &Queue,
    handle: u64,
    condition: Condition,
    reference: i64,
    mask: i64,
) -> Result<bool, Fault> {
    if handle == 0 {
        return Ok(true);
    }
    let signal = Signal::open(queue.node, handle)?;
    let mut patience = Patience::default();
    while !condition.holds(signal.load() & mask, reference) {
        if !queue.may_run() {
            return Ok(false);
        }
        patience.pause();
    }
    Ok(true)
}

/// Waits until one of the signals is zero. False if the queue was stopped meanwhile. Without any signal it is
/// fulfilled.
pub(super) fn wait_any(queue: &Queue, handles: &[u64]) -> Result<bool, Fault> {
    let signals: Vec<Signal> = handles
        .iter()
        .filter(|handle| **handle != 0)
        .map(|handle| Signal::open(queue.node, *handle))
        .collect::<Result<_, _>>()?;
    let mut patience = Patience::default();
    while !signals.is_empty() && signals.iter().all(|signal| signal.load() != 0) {
        if !queue.may_run() {
            return Ok(false);
        }
        patience.pause();
    }
    Ok(true)
}
