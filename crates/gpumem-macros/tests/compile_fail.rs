//! The errors of rustc and the attribute for wrong kernels, at the user's own tokens.
#![allow(clippy::unwrap_used)] // helpers of tests

use std::process::Command;

/// The compiler whose messages `tests/compile_fail/rustc` pins. Other versions word them differently.
const RUSTC: &str = "rustc 1.95.";

#[test]
fn errors_point_at_the_users_tokens() {
    let cases = trybuild::TestCases::new();
    cases.pass("tests/compile_pass/*.rs");
    cases.compile_fail("tests/compile_fail/*.rs");
    let version = Command::new("rustc").arg("--version").output().unwrap();
    if version.stdout.starts_with(RUSTC.as_bytes()) {
        cases.compile_fail("tests/compile_fail/rustc/*.rs");
    }
}
