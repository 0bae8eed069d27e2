//! Helpers of the integration tests: kernels, and the restart of a device.
//!
//! The tests are in `tests/`: ordinary use of gpumem, and failures around it. `compile_fail` holds programs that must
//! not compile, beside ones that do.

#[cfg(doctest)]
mod compile_fail;
mod kernels;

pub use kernels::{
    by_changing_indices, calling, fill, holding, of_constants, reset, slow_copy, slow_fill, threaded_sum,
};
