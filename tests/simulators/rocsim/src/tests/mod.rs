//! Tests of the parts by themselves: they need nothing of AMD's.
//!
//! Nodes that only one test uses keep the tests apart, because a GPU that has faulted stands still.

mod engines;
mod events;
mod kfd;
mod memory;
