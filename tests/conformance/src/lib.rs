//! The conformance suite: the requirements of every backend of gpumem, as cases that run on any of them.
//!
//! A backend's whole test is a program of a few lines (`harness = false`):
//!
//! ```no_run,standalone_crate
//! use gpumem_conformance::{RanOn, Suite};
//! use gpumem_host::Host;
//!
//! fn main() -> std::process::ExitCode {
//!     Suite::<Host>::new("host", RanOn::Host).main()
//! }
//! ```
//!
//! * A [`Case`] is a plain function over a [`Lab`], which holds the device under test. It passes, fails (by an error or
//!   by a panic) or is skipped, with the reason.
//! * Cases stand on [`Level`]s that build on each other. A new backend is brought up with `--level 1`, then `--level 2`
//!   and so on; a failure on a low level explains those above it.
//! * Known failures of a backend are data: [`Expectations`]. A known failure that passes is a failure, so that the list
//!   cannot go stale.
//! * After every case the runner waits for the device, flushes it, and checks that all memory went back and that no
//!   error was left that no call could return.
//! * The case of a kernel is made of a [`ShippedKernel`](gpumem_kernel_suite::ShippedKernel) by [`Case::kernel`], which holds
//!   the device against the host's body and both against a plain reference. There is no other way to one.
//! * [`compare`] runs one computation on the host backend and on the device under test.
//!
//! The program takes `--report FILE`, `--device SELECTOR`, `--level N`, `--list` and a part of a name; see `--help`.

#[macro_use]
mod case;

mod cases;
mod compare;
mod expectations;
mod fixture;
mod panics;
mod program;
mod refusal;
mod report;
mod suite;

pub use case::{Case, Level, Stop, Verdict, skip};
pub use cases::all;
pub use compare::{Computation, compare};
pub use expectations::Expectations;
pub use fixture::Lab;
pub use refusal::{refused, refused_layout};
pub use report::{Outcome, RanOn, Report};
pub use suite::{Selection, Suite};
