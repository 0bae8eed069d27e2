//! The engine for ranks of one process: their streams meet, and the last one moves the bytes.

mod agree;
mod attendee;
mod end;
mod family;
pub(crate) mod meeting;
mod open;
mod part;
mod shared;
mod split;

pub(crate) use end::{End, join, span};
pub(crate) use family::Family;
use meeting::Meeting;
use part::Move;
pub(crate) use part::Part;
use shared::Shared;
