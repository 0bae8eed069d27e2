//! Tests of the interpreter: of its parts, of instructions by themselves, and of the machine code of real kernels.
//!
//! Tests that need AMD's hipRTC or comgr are skipped if they are missing, with the reason; `ROCSIM_REQUIRE=1` makes
//! that a failure.

mod arithmetic;
mod checks;
mod coverage;
mod instructions;
mod kernels;
mod newer;
mod numbers;
mod object;
mod probes;
mod rig;
mod text;
