//! The errors of rustc and the attribute for wrong kernels, at the user's own tokens.
#![allow(clippy::unwrap_used, reason = "tests")]

use gpumem_hints::has_pinned_messages;

#[test]
fn errors_point_at_the_users_tokens() {
    let cases = trybuild::TestCases::new();
    cases.compile_fail("tests/kernels/*.rs");
    if has_pinned_messages() {
        cases.compile_fail("tests/kernels/rustc/*.rs");
    }
}

/// What an editor underlines for an error of a body is in the body: the first place that rustc gives, or the label beside it.
#[test]
fn errors_of_bodies_are_in_the_bodies() {
    let mut errors = 0;
    for case in ["subset", "rustc/types"] {
        let messages = std::fs::read_to_string(format!("tests/kernels/{case}.stderr")).unwrap();
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
