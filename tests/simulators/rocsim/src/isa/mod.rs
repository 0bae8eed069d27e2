//! AMD's machine code, executed.
//!
//! There is no decoder of machine code here: AMD's own disassembler ([`comgr`]) prints an instruction. Its text is
//! parsed ([`text`]) and decoded into a form that runs ([`decode`]), once for every instruction that a kernel can reach
//! ([`program`]). Waves execute in lockstep over all their lanes ([`wave`], [`lanes`]); a launch's groups run several
//! at a time ([`run`]).

mod atomics;
mod check;
mod comgr;
mod compare;
mod compound;
mod control;
mod convert;
mod decode;
mod division;
mod double;
mod environment;
mod float;
mod instruction;
mod lanes;
mod launch;
mod memory;
mod memory_scalar;
mod mode;
mod names;
mod program;
mod run;
mod scalar;
mod soft;
mod stop;
mod subword;
#[cfg(test)]
mod tests;
mod text;
mod two_over_pi;
mod vector;
mod vector_wide;
mod wave;

pub(crate) use launch::Launch;
pub(crate) use program::Undecoded;
pub(crate) use run::{Failure, run};
pub(crate) use stop::Cause;
