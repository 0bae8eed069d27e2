//! The cases, one file a level or part of one.

mod l01_probe;
mod l02_allocate;
mod l02_memory;
mod l03_copy;
mod l03_elements;
mod l03_fill;
mod l03_pairs;
mod l04_view;
mod l05_completion;
mod l05_order;
mod l05_recordings;
mod l05_stream;
mod l06_pinned;
mod l06_reuse;
mod l07_managed;
mod l08_register;
mod l09_fault;
mod l10_devices;
mod l11_imports;
mod l11_loans;
mod l12_arguments;
mod l12_constants;
mod l12_kernel;
mod l12_ops;
mod l12_prelude;
mod l12_programs;
mod l12_random;
mod l12_sizes;
mod l13_failures;
mod l14_arguments;
mod l14_driver;
mod l14_failures;
mod l14_graphs;
mod l14_kernels;
mod l14_memory;
mod l14_pinned;
mod l14_refusals;
mod l15_files;
mod l16_chunks;
mod l17_spill;
mod tools;

use crate::Case;
use gpumem_core::Backend;

/// Every case, from the lowest level up.
pub fn all<B: Backend>() -> Vec<Case<B>> {
    let lists = [
        l01_probe::cases(),
        l02_allocate::cases(),
        l02_memory::cases(),
        l03_copy::cases(),
        l03_elements::cases(),
        l03_fill::cases(),
        l03_pairs::cases(),
        l04_view::cases(),
        l05_stream::cases(),
        l05_order::cases(),
        l05_completion::cases(),
        l05_recordings::cases(),
        l06_pinned::cases(),
        l06_reuse::cases(),
        l07_managed::cases(),
        l08_register::cases(),
        l09_fault::cases(),
        l10_devices::cases(),
        l11_imports::cases(),
        l11_loans::cases(),
        l12_kernel::cases(),
        l12_ops::cases(),
        l12_prelude::cases(),
        l12_arguments::cases(),
        l12_constants::cases(),
        l12_programs::cases(),
        l12_random::cases(),
        l12_sizes::cases(),
        l13_failures::cases(),
        l14_graphs::cases(),
        l14_memory::cases(),
        l14_failures::cases(),
        l14_arguments::cases(),
        l14_kernels::cases(),
        l14_driver::cases(),
        l14_pinned::cases(),
        l14_refusals::cases(),
        l15_files::cases(),
        l16_chunks::cases(),
        l17_spill::cases(),
    ];
    lists.into_iter().flatten().collect()
}
