//! Why a wave has stopped before its end.

use crate::memory::Fault;
use std::fmt;

/// The cause of the stop.
#[derive(Debug)]
pub(crate) enum Cause {
    /// The instruction is not known, or used in a way that is not known.
    Unknown(&'static str),
    /// The wave has executed a trap.
    Trap,
    /// Memory of the GPU that is not there.
    Fault(Fault),
    /// An access beyond the memory of the group or of the lane, or one that is not aligned.
    BadAddress { space: &'static str, address: u64, bytes: u64, why: &'static str },
    /// A register is used before the wait for its load: one of the findings of `ROCSIM_CHECK`, as the next two.
    NotWaitedFor { register: String, verb: &'static str, load: Box<str> },
    /// Two waves use a byte between the same two barriers, and one of them writes it.
    Race { space: &'static str, address: u64, verb: &'static str, wave: u32, lane: u32, by: u64 },
    /// Shared memory is read that was never written.
    Unwritten { address: u64 },
    /// The wave has executed as many instructions as it may and has not ended.
    Endless { instructions: u64 },
}

/// Why a wave has stopped, and where.
#[derive(Debug)]
pub(crate) struct Stop {
    pub(crate) cause: Cause,
    pub(crate) lane: Option<u32>,
    /// Filled in by the code that knows them.
    pub(crate) place: Place,
}

/// A place in a kernel.
#[derive(Debug, Default)]
pub(crate) struct Place {
    pub(crate) kernel: String,
    pub(crate) address: u64,
    /// Bytes from the start of the kernel.
    pub(crate) offset: u64,
    pub(crate) text: String,
    pub(crate) group: [u32; 3],
    pub(crate) wave: u32,
}

impl Stop {
    pub(super) fn new(cause: Cause, lane: Option<u32>) -> Box<Self> {
        Box::new(Self { cause, lane, place: Place::default() })
    }
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.cause {
            Cause::Unknown(why) => write!(f, "{why}")?,
            Cause::Trap => f.write_str("a trap")?,
            Cause::Fault(fault) => write!(f, "{fault}")?,
            Cause::BadAddress { space, address, bytes, why } => {
                write!(f, "{bytes} bytes at {address:#x} of {space} memory: {why}")?;
            }
            Cause::NotWaitedFor { register, verb, load } => {
                write!(f, "{register} is {verb} before `{load}` was waited for")?;
            }
            Cause::Race { space, address, verb, wave, lane, by } => write!(
                f,
                "a race in {space} memory: byte {address:#x} was {verb} by wave {wave}, lane {lane} at {by:#x} since \
                 the same barrier"
            )?,
            Cause::Unwritten { address } => {
                write!(f, "byte {address:#x} of shared memory was never written")?
            }
            Cause::Endless { instructions } => write!(
                f,
                "the wave has not ended after {instructions} instructions (ROCSIM_MOST_INSTRUCTIONS allows more)"
            )?,
        }
        let Place { kernel, address, offset, text, group, wave } = &self.place;
        write!(f, ", by `{text}` at {address:#x} ({kernel}+{offset:#x}), group {group:?}, wave {wave}")?;
        match self.lane {
            Some(lane) => write!(f, ", lane {lane}"),
            None => Ok(()),
        }
    }
}
