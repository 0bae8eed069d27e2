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
    } else {
        println!("skipped: the messages of {RUSTC}x are pinned");
    }
}

/// What an editor underlines for an error of a body is in the body: the first place that rustc gives, or the label beside it.
#[test]
fn errors_of_bodies_are_in_the_bodies() {
    let mut errors = 0;
    for case in ["subset", "rustc/types"] {
        let messages = std::fs::read_to_string(format!("tests/compile_fail/{case}.stderr")).unwrap();
        for message in messages.split("\n\n").filter(|message| message.starts_with("error")) {
            let lines: Vec<&str> = message.lines().collect();
            let is_marked = lines.windows(2).any(|pair| {
                let source = pair[0].split_once(" | ").map_or("", |(_, source)| source);
                source.starts_with("    ") && pair[1].contains(['^', '-'])
            });
            assert!(is_marked, "{message}");
            errors += 1;
        }
    }
    assert!(errors > 30, "{errors}");
}
