//! Traces that other libraries have written.

mod pickle;
mod rmm;
mod tables;
// Safe code alone: Miri has nothing to find in it, and takes half an hour for the large files.
#[cfg(test)]
#[cfg(not(any(miri, loom)))]
mod tests;
mod torch;
mod value;

pub use torch::FreeTime;
