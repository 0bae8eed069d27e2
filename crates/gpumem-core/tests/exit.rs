//! The end of a process waits for threads of the library that are inside a driver.
#![cfg(all(unix, not(miri)))]
#![allow(clippy::unwrap_used)] // helpers of tests

use gpumem_core::process::{DriverUse, ProcessGuard, at_exit};
use std::{
    env,
    process::Command,
    sync::{
        OnceLock,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread,
    time::{Duration, Instant},
};

const CHILD: &str = "GPUMEM_TEST_EXIT";
static DONE: AtomicBool = AtomicBool::new(false);

/// Runs after the library's own handler, as a driver's clean-up does.
extern "C" fn driver_ends() {
    println!("{}", if DONE.load(Ordering::SeqCst) { "after the thread" } else { "before the thread" });
}

/// Starts a test again in a process of its own, and returns what that says.
fn child(test: &str) -> (String, Duration) {
    let begun = Instant::now();
    let output = Command::new(env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(CHILD, "1")
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    (String::from_utf8(output.stdout).unwrap(), begun.elapsed())
}

fn is_child() -> bool {
    env::var_os(CHILD).is_some()
}

/// Ends the process while a thread uses a driver for so long.
fn end_during(use_of_driver: Duration) -> ! {
    // A host device may be there before a driver.
    let host = ProcessGuard::current();
    // SAFETY: a function of this program. It is registered before the library's for the driver, and so runs after that.
    assert_eq!(unsafe { libc::atexit(driver_ends) }, 0);
    let guard = ProcessGuard::of_driver();
    assert_eq!(guard, host);
    let (sender, begun) = mpsc::channel();
    thread::spawn(move || {
        let _in_driver = DriverUse::new();
        assert!(guard.is_valid());
        sender.send(()).unwrap();
        thread::sleep(use_of_driver);
        DONE.store(true, Ordering::SeqCst);
    });
    begun.recv().unwrap();
    std::process::exit(0)
}

#[test]
fn the_end_waits_for_a_thread_inside_a_driver() {
    if is_child() {
        end_during(Duration::from_millis(300));
    }
    let (said, _) = child("the_end_waits_for_a_thread_inside_a_driver");
    assert!(said.contains("after the thread"), "{said}");
}

#[test]
fn a_driver_that_hangs_does_not_keep_the_process() {
    if is_child() {
        end_during(Duration::from_secs(600));
    }
    let (said, took) = child("a_driver_that_hangs_does_not_keep_the_process");
    assert!(said.contains("before the thread"), "{said}");
    assert!(took < Duration::from_secs(60));
}

static EARLY: OnceLock<ProcessGuard> = OnceLock::new();

/// Needs that the process is not said to end yet.
extern "C" fn early() {
    println!("valid: {}", EARLY.get().is_some_and(|guard| guard.is_valid()));
}

#[test]
fn functions_for_the_end_run_before_it_is_reported() {
    if is_child() {
        assert!(at_exit(early));
        assert!(EARLY.set(ProcessGuard::of_driver()).is_ok());
        std::process::exit(0);
    }
    let (said, _) = child("functions_for_the_end_run_before_it_is_reported");
    assert!(said.contains("valid: true"), "{said}");
}

#[test]
fn a_thread_inside_a_driver_may_end_the_process() {
    if is_child() {
        let _in_driver = DriverUse::new();
        assert!(at_exit(driver_ends));
        std::process::exit(0);
    }
    let (_, took) = child("a_thread_inside_a_driver_may_end_the_process");
    assert!(took < Duration::from_secs(60));
}
