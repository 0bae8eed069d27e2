//! What the integration tests share: kernels, and the restart of a device.
//!
//! The tests themselves are in `tests/`: what a user does with gpumem, and what goes wrong around it. What must not
//! compile stands in `compile_fail`, beside what does.

#[cfg(doctest)]
mod compile_fail;
mod kernels;

pub use kernels::{by_changing_indices, calling, fill, holding, reset, slow_copy, slow_fill, threaded_sum};
