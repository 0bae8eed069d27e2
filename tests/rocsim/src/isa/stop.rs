//! Why a wave has stopped before its end.

use crate::memory::Fault;
use std::fmt;

/// What has happened.
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
    /// What only the checks of a simulator find.
    Check(String),
}

/// Why a wave has stopped, and where.
#[derive(Debug)]
pub(crate) struct Stop {
    pub(crate) cause: Cause,
    pub(crate) lane: Option<u32>,
    /// Filled in by who knows them.
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
            Cause::Check(what) => f.write_str(what)?,
        }
        let Place { kernel, address, offset, text, group, wave } = &self.place;
        write!(f, ", by `{text}` at {address:#x} ({kernel}+{offset:#x}), group {group:?}, wave {wave}")?;
        match self.lane {
            Some(lane) => write!(f, ", lane {lane}"),
            None => Ok(()),
        }
    }
}
