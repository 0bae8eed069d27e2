//! Traces that other libraries have written.

mod pickle;
mod rmm;
mod tables;
#[cfg(test)]
mod tests;
mod torch;
mod value;

pub use torch::FreeTime;
