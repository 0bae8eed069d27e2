//! What must not compile. Each case stands beside the variant that does, so that a case can only fail for its own reason.

mod arguments;
mod backends;
mod elements;
mod host_arrays;
mod locked;
mod raw;
mod scope;
mod uninit;
mod views;
