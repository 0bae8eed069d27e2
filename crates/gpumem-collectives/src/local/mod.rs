//! The engine for ranks of one process: their streams meet, and the last one moves the bytes.

mod agree;
mod end;
mod open;
mod part;
mod participant;
pub(crate) mod pending;
mod shared;
mod split;

pub(crate) use end::{End, join, span};
use part::Move;
pub(crate) use part::Part;
use pending::PendingCollective;
use shared::Shared;
