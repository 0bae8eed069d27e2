//! What the integration tests share: a backend that behaves as a GPU's driver does, and that can be made to fail.
//!
//! The tests themselves are in `tests/`: what a user does with gpumem, and what goes wrong around it. What must not
//! compile stands in `gpumem-runtime`, beside what does.

mod double;
mod kernels;
mod script;

pub use double::{Double, DoubleDevice, DoubleEvent, DoubleOptions, DoubleStream};
pub use kernels::{by_changing_indices, calling, fill, holding, reset, slow_copy, slow_fill, threaded_sum};
pub use script::{Script, Trouble};
