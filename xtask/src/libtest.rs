//! Reads the output of Rust's test harness.

use crate::summary::Summary;

/// Adds up all `test result:` lines of the output of `cargo test`. Ignored tests count as skipped; filtered tests do
/// not count.
pub(crate) fn counts(output: &str) -> Summary {
    let mut sum = Summary::default();
    for line in output.lines() {
        if let Some(rest) = line.strip_prefix("test result: ") {
            sum += Summary {
                passed: number_before(rest, " passed"),
                failed: number_before(rest, " failed"),
                skipped: number_before(rest, " ignored"),
            };
        }
    }
    sum
}

fn number_before(line: &str, word: &str) -> u64 {
    let before = line.split(word).next().unwrap_or_default();
    before.rsplit(' ').next().and_then(|digits| digits.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_of_several_programs_add_up() {
        let output = "\
running 14 tests
test result: ok. 12 passed; 0 failed; 2 ignored; 0 measured; 5 filtered out; finished in 0.00s
   Doc-tests gpumem_core
test result: FAILED. 3 passed; 4 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.30s
a test that prints `test result: ok. 9 passed; 9 failed` in the middle of a line";
        assert_eq!(counts(output), Summary { passed: 15, failed: 4, skipped: 2 });
    }

    #[test]
    fn output_without_results_counts_nothing() {
        assert_eq!(counts("error: could not compile\ntest result: "), Summary::default());
    }
}
