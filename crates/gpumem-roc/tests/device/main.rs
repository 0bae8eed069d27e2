//! Cases that the conformance suite cannot express through typed arrays: agents, pools and grain, registration by
//! agents, duties of the caller, and workarounds for faults of HIP 5.2.
//!
//! Runs on an AMD GPU where there is one, else on the simulated one; without ROCm every case is skipped, with the
//! reason.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a case fails by panicking")]

mod agents;
mod copies;
mod fills;
mod fixture;
mod graphs;
mod kernels;
mod memory;
mod process;
#[path = "../simulator/mod.rs"]
mod simulator;

use agents::*;
use copies::*;
use fills::*;
use fixture::{Case, Lab};
use graphs::*;
use kernels::*;
use memory::*;
use process::*;
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    process::ExitCode,
};

const CASES: &[Case] = &[
    ("agents_and_pools_are_found", agents_and_pools_are_found),
    ("memory_has_the_grain_that_it_says", memory_has_the_grain_that_it_says),
    ("pools_allocate_and_grant", pools_allocate_and_grant),
    ("registered_memory_is_locked_and_unlocked", registered_memory_is_locked_and_unlocked),
    ("a_failure_in_the_middle_undoes_the_earlier_ones", a_failure_in_the_middle_undoes_the_earlier_ones),
    ("a_scope_unlocks_in_a_panic_too", a_scope_unlocks_in_a_panic_too),
    ("the_device_address_is_queried", the_device_address_is_queried),
    ("short_fills_touch_nothing_else", short_fills_touch_nothing_else),
    ("rows_are_filled_with_gaps", rows_are_filled_with_gaps),
    ("any_two_layouts_are_copied_by_kernels", any_two_layouts_are_copied_by_kernels),
    ("kernels_and_copies_on_one_stream", kernels_and_copies_on_one_stream),
    ("threads_compile_at_the_same_time", threads_compile_at_the_same_time),
    ("graphs_are_hips_own_where_they_are_asked_for", graphs_are_hips_own_where_they_are_asked_for),
    ("other_architectures_are_refused", other_architectures_are_refused),
    ("launches_that_do_not_fit_are_refused", launches_that_do_not_fit_are_refused),
    ("the_callers_device_and_last_error_are_left_alone", the_callers_device_and_last_error_are_left_alone),
    ("a_capture_of_another_library_goes_on", a_capture_of_another_library_goes_on),
    ("memory_is_shared_with_another_process", memory_is_shared_with_another_process),
    ("pageable_memory_is_staged", pageable_memory_is_staged),
    ("waits_are_true_while_others_free", waits_are_true_while_others_free),
    ("a_leak_shows", a_leak_shows),
    ("exhausted_memory_can_be_allocated_again", exhausted_memory_can_be_allocated_again),
    ("memory_that_comes_back_late_is_waited_for", memory_that_comes_back_late_is_waited_for),
    ("a_reset_frees_everything", a_reset_frees_everything),
];

fn main() -> ExitCode {
    let ran_on = simulator::prepare();
    if let Ok(sent) = std::env::var(SENT) {
        return look_at(&sent);
    }
    if let Ok(task) = std::env::var(TASK) {
        return launch_graphs(&task);
    }
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let wanted: Vec<&String> = arguments.iter().filter(|argument| !argument.starts_with('-')).collect();
    let cases = CASES
        .iter()
        .filter(|(name, _)| wanted.is_empty() || wanted.iter().any(|part| name.contains(part.as_str())));
    if arguments.iter().any(|argument| argument == "--list") {
        cases.for_each(|(name, _)| println!("{name}: test"));
        return ExitCode::SUCCESS;
    }
    let lab = match Lab::open(ran_on) {
        Ok(lab) => lab,
        Err(error) => {
            println!("test result: ok. 0 passed; 0 failed; {} ignored; {error}", cases.count());
            return ExitCode::SUCCESS;
        }
    };
    println!("running on {:?} ({ran_on:?})", lab.device);
    let (mut passed, mut skipped, mut failed) = (0, 0, 0);
    for (name, case) in cases {
        match catch_unwind(AssertUnwindSafe(|| case(&lab))) {
            Ok(Ok(())) => {
                passed += 1;
                println!("test {name} ... ok");
            }
            Ok(Err(reason)) => {
                skipped += 1;
                println!("test {name} ... ignored, {reason}");
            }
            Err(_) => {
                failed += 1;
                println!("test {name} ... FAILED");
            }
        }
    }
    let verdict = if failed == 0 { "ok" } else { "FAILED" };
    println!(
        "\ntest result: {verdict}. {passed} passed; {failed} failed; {skipped} ignored; 0 measured; 0 filtered out"
    );
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
