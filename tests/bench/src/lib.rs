//! Side-by-side benches: gpumem compared with references.
//!
//! A [`Bench`] is two routines that do the same. They take turns in short rounds, so that drift (clock rates,
//! temperature, neighbours) hits both; the medians of the rounds are compared. The program prints a table and writes
//! JSON; benches are listed in [`benches::all`].
//!
//! The meaning of the ratio of gpumem to the reference depends on the [`Measure`]:
//!
//! | measure | unit | good |
//! |---|---|---|
//! | [`Measure::Throughput`] | GB/s (10⁹ bytes) | high |
//! | [`Measure::Latency`] | ns for one call | low |
//! | [`Measure::Count`] | things, for example events made | low |
//! | [`Measure::Scaling`] | ns for one call, ours with much and the reference with little of what must not matter | near 1 |

mod bench;
pub mod benches;
pub mod collectives;
mod device;
mod environment;
mod measure;
mod report;
mod statistics;

pub use bench::{Bench, Measure, Pair, Routine, Unavailable};
pub use device::{device, use_device};
pub use environment::Environment;
pub use measure::{Effort, measure};
pub use report::{Report, Row, table, write_json};
