//! Tests of the framework: passes, failures, skips, and the names of cases.

use crate::alone;
use gpumem_conformance::{
    Case, Expectations, Lab, Level, Outcome, RanOn, Report, Selection, Suite, Verdict, all, skip,
};
use gpumem_core::{DeviceSelector, ErrorKind};
use gpumem_host::Host;
use std::collections::BTreeSet;

fn passes(_: &Lab<Host>) -> Verdict {
    Ok(())
}
fn panics(_: &Lab<Host>) -> Verdict {
    panic!("a panic of a case")
}
fn errs(lab: &Lab<Host>) -> Verdict {
    lab.device().to_device(&[1u8])?.get(5)?;
    Ok(())
}
fn leaks(lab: &Lab<Host>) -> Verdict {
    std::mem::forget(lab.device().device_array::<u8, _>(8)?);
    Ok(())
}
fn leaves_an_error(lab: &Lab<Host>) -> Verdict {
    let stream = lab.device().stream()?;
    stream.add_callback(|_| panic!("no caller asks"))?;
    Ok(stream.synchronize()?)
}
fn skips(_: &Lab<Host>) -> Verdict {
    skip("there is no such thing")
}

type Run = fn(&Lab<Host>) -> Verdict;

fn suite(cases: &[(&str, Run)]) -> Suite<Host> {
    let cases = cases.iter().map(|(name, run)| Case::new(Level::Probe, name, *run)).collect();
    Suite::new("host", RanOn::Host).cases(cases)
}

fn run(suite: &Suite<Host>) -> Report {
    let _alone = alone();
    suite.run(&Selection::default(), |_, _| {})
}

#[test]
fn errors_in_a_case_are_failures_with_a_message() {
    let report = run(&suite(&[
        ("passes", passes),
        ("panics", panics),
        ("errs", errs),
        ("leaks", leaks),
        ("leaves_an_error", leaves_an_error),
        ("skips", skips),
    ]));
    assert_eq!((report.passed, report.failed, report.skipped), (1, 4, 1), "{report:?}");
    for (failure, part) in report.failures.iter().zip([
        "a panic of a case",
        "index 5 is outside",
        "blocks of memory alive",
        "no caller asks",
    ]) {
        assert!(failure.contains(part), "{failure}");
    }
    assert_eq!(report.outcomes[5].1, Outcome::Skipped("there is no such thing".to_owned()));
    assert!(report.closing_line(3).starts_with("test result: FAILED. 1 passed; 4 failed; 1 ignored"));
}

#[test]
fn a_known_failure_that_passes_is_a_failure() {
    let known = Expectations::none()
        .expect_failure("01_probe::panics", "known")
        .expect_failure("01_probe::passes", "stale")
        .expect_failure("01_probe::gone", "no such case")
        .skip("01_probe::leaks", "not here");
    let report = run(&suite(&[("passes", passes), ("panics", panics), ("leaks", leaks)]).expectations(known));
    assert_eq!((report.passed, report.failed, report.skipped), (1, 2, 1), "{report:?}");
    assert!(report.failures[0].starts_with("01_probe::gone"));
    assert!(report.failures[1].contains("expected to fail: stale"));
}

#[test]
fn a_device_that_cannot_be_opened_skips_everything_with_the_reason() {
    let absent =
        suite(&[("passes", passes), ("panics", panics)]).device(DeviceSelector::ordinal("host", 77_777));
    let report = run(&absent);
    assert_eq!((report.passed, report.failed, report.skipped), (0, 0, 2));
    let kind = ErrorKind::NoSuchDevice { wanted: "host:77777".to_owned(), found: 1 };
    assert!(report.reason.unwrap().contains(&kind.to_string()));
    assert_eq!((report.device, report.ran_on), (None, None));
}

#[test]
fn case_names_are_unique_and_in_the_order_of_levels() {
    let cases = all::<Host>();
    let names: BTreeSet<&str> = cases.iter().map(|case| case.name.as_str()).collect();
    assert_eq!(names.len(), cases.len(), "names are unique");
    assert!(cases.is_sorted_by_key(|case| case.level));
}
