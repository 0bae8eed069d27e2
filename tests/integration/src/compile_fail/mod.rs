//! Programs that must not compile. Each stands beside a variant that compiles, so that it can only fail for its own
//! reason.

mod arguments;
mod backends;
mod elements;
mod graphs;
mod host_arrays;
mod locked;
mod raw;
mod scope;
mod uninit;
mod views;
