//! The cases, one file a level or part of one.

mod l01_probe;
mod l02_allocate;
mod l03_fill;

use crate::Case;
use gpumem_core::Backend;

/// Every case, from the lowest level up.
pub fn all<B: Backend>() -> Vec<Case<B>> {
    [l01_probe::cases(), l02_allocate::cases(), l03_fill::cases()].into_iter().flatten().collect()
}
