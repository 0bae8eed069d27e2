//! Hostile input: the environment, too little address space, files of traces.
#![cfg(all(unix, feature = "host"))]
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod address_space;
mod environment;
mod traces;

use std::{
    env,
    process::{Command, Output},
};

/// Set in the child process, to its task.
const CHILD: &str = "GPUMEM_TEST_SUBPROCESS";

/// The child's last line.
const DONE: &str = "the child has come to its end";

/// The task of this process as a child. A child that hangs ends by a signal.
fn task_of_child(seconds: u32) -> Option<String> {
    let task = env::var(CHILD).ok()?;
    // SAFETY: asks for a signal.
    unsafe { libc::alarm(seconds) };
    Some(task)
}

/// A process that runs one test of this program as a child.
fn child(test: &str, task: &str) -> Command {
    let mut child = Command::new(env::current_exe().unwrap());
    child.args(["--exact", test, "--nocapture", "--test-threads=1"]).env(CHILD, task);
    child.env("RUST_BACKTRACE", "0");
    child
}

/// Whether the child has come to its end, without a panic on any thread.
fn is_done(output: &Output) -> bool {
    let said = |bytes: &[u8], what| String::from_utf8_lossy(bytes).contains(what);
    output.status.success() && said(&output.stdout, DONE) && !said(&output.stderr, "panicked at")
}
