//! The conformance suite on one backend.
//!
//! Convention: `crates/gpumem-<name>/tests/conformance.rs` is a separate program (`harness = false`) that takes
//! `--report FILE`, `--device SELECTOR` and a part of a test's name, all of which may be absent, and exits with 0 if
//! and only if nothing failed. Without a device it skips everything and says why in the report.

use super::{
    CONFORMANCE, DEVICE, Options, Part,
    machine::{GRAPHS, HIP_ON_CUDA, Machine, NEWER, Newer, REDUCED, SIMULATED},
    report::BackendResult,
};
use crate::{
    artifacts,
    rocm::Version,
    shell::{Finished, Shell},
    workspace::Workspace,
};
use anyhow::{Context, Result};
use serde::Deserialize;
use std::{collections::BTreeMap, ffi::OsString, path::PathBuf};

/// The backends of this repository, in the order of the table.
pub(crate) const BACKENDS: [&str; 3] = ["host", "cuda", "roc"];

/// The program's report.
#[derive(Debug, Deserialize)]
struct Written {
    backend: String,
    device: Option<String>,
    ran_on: Option<String>,
    passed: u64,
    failed: u64,
    skipped: u64,
    reason: Option<String>,
    #[serde(default)]
    failures: Vec<serde_json::Value>,
}

/// The programs of one build, by package and target.
pub(crate) type Programs = BTreeMap<(String, String), PathBuf>;

/// The conformance programs and those of device tests. All of them in one build, and of all members, as the other tests: a build of
/// one package has other features, with which cargo compiles everything again.
pub(super) fn programs(workspace: &Workspace) -> Result<Programs> {
    let targets = ["--test", CONFORMANCE, "--test", DEVICE];
    build(workspace, &[&targets[..], workspace.all_members().as_slice()].concat())
}

/// Builds test programs.
pub(crate) fn build(workspace: &Workspace, arguments: &[&str]) -> Result<Programs> {
    let arguments = [&["test", "--no-run"], arguments].concat();
    let programs = artifacts::build(workspace, &arguments, "the test programs")?.into_iter();
    Ok(programs
        .filter_map(|artifact| {
            let package = workspace.packages().find(|package| package.id == artifact.package_id)?;
            let name = (package.name.to_string(), artifact.target.name.clone());
            Some((name, artifact.executable?.into_std_path_buf()))
        })
        .collect())
}

/// The path of a program.
pub(crate) fn program<'a>(programs: &'a Programs, package: &str, target: &str) -> Option<&'a str> {
    programs.get(&(package.to_owned(), target.to_owned()))?.to_str()
}

/// The rows of the backends.
pub(super) fn run(
    workspace: &Workspace,
    programs: &Programs,
    options: &Options,
) -> Result<Vec<BackendResult>> {
    let mut results = Vec::new();
    if options.has(Part::Conformance) {
        for name in BACKENDS {
            results.extend(conformance(workspace, name, programs, options)?);
        }
    }
    // A device that was asked for is one of the machine as it is.
    if options.has(Part::NewerRocm) && options.device_of("roc").is_none() {
        let program = program(programs, "gpumem-roc", CONFORMANCE).context("no conformance program")?;
        for Newer { version, tests, suite, graphs } in &NEWER {
            results.push(device_tests(workspace, programs, Some(*version), tests)?);
            for (machine, cases) in [(suite, REDUCED), (graphs, GRAPHS)] {
                let filter = options.filter.clone().or(Some(cases.to_owned()));
                let part = Options { filter, ..Options::default() };
                results.push(on_rocm(workspace, program, Some(*version), machine, &part)?);
            }
        }
    }
    Ok(results)
}

/// The rows of one backend: on the machine as it is, and on those that it can be made to look like.
fn conformance(
    workspace: &Workspace,
    name: &'static str,
    programs: &Programs,
    options: &Options,
) -> Result<Vec<BackendResult>> {
    let Some(program) = program(programs, &format!("gpumem-{name}"), CONFORMANCE) else {
        return Ok(vec![BackendResult::absent(name, "no conformance program")]);
    };
    let mut library = None;
    rows(name, options, |machine, arguments| {
        let mut shell = Shell::new(workspace.root());
        for (variable, value) in machine.map_or(&[][..], |machine| machine.variables) {
            shell = shell.env(variable, value);
        }
        if machine.is_some_and(|machine| machine.is_on_cuda()) {
            let folder = match &library {
                Some(folder) => folder,
                None => library.insert(hip_on_cuda(workspace)?),
            };
            shell = shell.env("LD_LIBRARY_PATH", library_path(folder)?);
        }
        shell.run(program, arguments)
    })
}

/// Whether the suite ran on the simulated GPU. A device that was asked for is one of the machine as it is.
fn is_simulated(first: &BackendResult, options: &Options) -> bool {
    first.ran_on.as_deref() == Some("rocsim") && options.device_of(first.name).is_none()
}

/// Starts a program on a simulated machine, on the system's ROCm or on a newer one. `None` if that was not fetched.
pub(crate) fn start_on(
    workspace: &Workspace,
    version: Option<Version>,
    machine: &Machine,
    program: &str,
    arguments: &[&str],
) -> Result<Option<Finished>> {
    let shell = Shell::new(workspace.root());
    let shell = machine.variables.iter().fold(shell, |shell, (variable, value)| shell.env(variable, *value));
    let Some(version) = version else { return Ok(Some(shell.run(program, arguments)?)) };
    let Some(folder) = version.folder(workspace) else { return Ok(None) };
    let folder = folder.to_str().context("the path of the target directory is not UTF-8")?;
    let arguments = [&["--rocm", folder, program], arguments].concat();
    // The tests of the workspace have built the launcher; by itself it is compiled again, with other features.
    let built = workspace.target("debug").join("rocsim");
    Ok(Some(match built.to_str().filter(|_| built.exists()) {
        Some(launcher) => shell.run(launcher, &arguments)?,
        None => {
            let alone = ["run", "--quiet", "--package", "rocsim", "--"];
            shell.run("cargo", &[&alone[..], &arguments].concat())?
        }
    }))
}

/// A row for a version of ROCm that was not fetched.
pub(crate) fn not_fetched(machine: &Machine) -> BackendResult {
    let why = "its libraries are not there; `cargo xtask rocm` fetches them";
    machine.claim(BackendResult::absent("roc", why), "")
}

/// The row of the ROCm backend on a simulated machine, on the system's ROCm or on a newer one.
pub(crate) fn on_rocm(
    workspace: &Workspace,
    program: &str,
    version: Option<Version>,
    machine: &Machine,
    options: &Options,
) -> Result<BackendResult> {
    if version.is_some_and(|version| version.folder(workspace).is_none()) {
        return Ok(not_fetched(machine));
    }
    let (result, output) = suite("roc", Some(machine), options, &mut |_, arguments| {
        let done = start_on(workspace, version, machine, program, arguments)?;
        done.context("ROCm was removed meanwhile")
    })?;
    let mut result = machine.claim(result, &output);
    // The libraries are there.
    result.require();
    Ok(result)
}

/// The row of the device tests of the ROCm backend on a simulated machine.
pub(crate) fn device_tests(
    workspace: &Workspace,
    programs: &Programs,
    version: Option<Version>,
    machine: &Machine,
) -> Result<BackendResult> {
    let program = program(programs, "gpumem-roc", DEVICE).context("the device tests are not built")?;
    println!("\nroc on {}: {}", machine.name, machine.assignments());
    Ok(match start_on(workspace, version, machine, program, &[])? {
        Some(done) => machine.tests(&done),
        None => not_fetched(machine),
    })
}

/// Returns the rows of one backend; `start` starts its program on a machine with the given arguments.
pub(crate) fn rows(
    name: &'static str,
    options: &Options,
    mut start: impl FnMut(Option<&Machine>, &[&str]) -> Result<Finished>,
) -> Result<Vec<BackendResult>> {
    let (mut first, _) = suite(name, None, options, &mut start)?;
    if options.requires(name) {
        first.require();
    }
    let is_simulated = is_simulated(&first, options);
    let mut results = vec![first];
    if is_simulated {
        for machine in &SIMULATED {
            let (result, output) = suite(name, Some(machine), options, &mut start)?;
            let mut result = machine.claim(result, &output);
            // The simulator is there.
            result.require();
            results.push(result);
        }
    }
    if name == "roc" && options.wants_hip_on_cuda() {
        for machine in &HIP_ON_CUDA {
            let (result, output) = suite(name, Some(machine), options, &mut start)?;
            let mut result = machine.claim(result, &output);
            if options.requires(super::HIP_ON_CUDA) {
                result.require();
            }
            results.push(result);
        }
    }
    Ok(results)
}

/// The folder in which HIP on CUDA has AMD's names.
fn hip_on_cuda(workspace: &Workspace) -> Result<String> {
    let arguments = ["run", "--quiet", "--package", "hip-on-cuda", "--", "--library-path"];
    let done = Shell::new(workspace.root()).run("cargo", &arguments)?;
    let folder = done.output.lines().last().filter(|_| done.success);
    Ok(folder.context("hip-on-cuda cannot be built")?.to_owned())
}

/// That folder before the ones that are searched already.
pub(crate) fn library_path(folder: &str) -> Result<OsString> {
    let before = std::env::var_os("LD_LIBRARY_PATH").filter(|path| !path.is_empty());
    let folders = before.iter().flat_map(std::env::split_paths);
    Ok(std::env::join_paths([folder.into()].into_iter().chain(folders))?)
}

/// The result of a conformance program on one machine, and its output.
fn suite(
    name: &'static str,
    machine: Option<&Machine>,
    options: &Options,
    start: &mut impl FnMut(Option<&Machine>, &[&str]) -> Result<Finished>,
) -> Result<(BackendResult, String)> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("report.json");
    let file_text = file.to_str().context("the path of the temporary folder is not UTF-8")?;
    let mut arguments = vec!["--report", file_text];
    if let Some(selector) = options.device_of(name) {
        arguments.extend(["--device", selector]);
    }
    arguments.extend(options.filter());
    if let Some(machine) = machine {
        println!("\n{name} on {}: {}", machine.name, machine.assignments());
    }
    let done = start(machine, &arguments)?;
    let text = std::fs::read_to_string(&file).ok();
    let result = judge(name, text.as_deref(), done.success, &done.status, options.filter.is_some());
    Ok((result, done.output))
}

/// The result, from the report and the exit status. A contradiction between them is a failure.
fn judge(
    name: &'static str,
    report: Option<&str>,
    success: bool,
    status: &str,
    filtered: bool,
) -> BackendResult {
    let written = match report.map(serde_json::from_str::<Written>) {
        Some(Ok(written)) => written,
        Some(Err(error)) => {
            return BackendResult::failed(name, format!("the report cannot be read: {error}"));
        }
        None => return BackendResult::failed(name, format!("no report was written ({status})")),
    };
    for failure in &written.failures {
        println!("{name}: failed: {failure}");
    }
    let mut result = BackendResult {
        name,
        machine: None,
        device: written.device,
        ran_on: written.ran_on,
        passed: written.passed,
        failed: written.failed,
        skipped: written.skipped,
        reason: written.reason,
    };
    let nothing_ran = result.passed == 0 && result.failed == 0;
    let trouble = if written.backend != name {
        Some(format!("the report is about the backend {:?}", written.backend))
    } else if success != (result.failed == 0) {
        Some(format!("{} failed by the report, but the program ended with {status}", result.failed))
    } else if nothing_ran && result.reason.is_none() && !filtered {
        Some("nothing ran, and no reason is given".to_owned())
    } else {
        None
    };
    if let Some(trouble) = trouble {
        result.fail(trouble);
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(passed: u64, failed: u64, reason: &str) -> String {
        format!(
            r#"{{"backend":"cuda","device":"H100","ran_on":"hardware","passed":{passed},"failed":{failed},
                "skipped":1,"reason":{reason},"failures":["a row"]}}"#
        )
    }

    #[test]
    fn a_good_run_is_taken_as_it_is() {
        let result = judge("cuda", Some(&report(7, 0, "null")), true, "exit status: 0", false);
        assert_eq!((result.passed, result.failed, result.skipped), (7, 0, 1));
        assert_eq!(result.device.as_deref(), Some("H100"));
        assert!(!result.is_absent());
    }

    #[test]
    fn a_missing_device_is_an_absence_and_a_failure_where_it_is_required() {
        let mut result = judge("cuda", Some(&report(0, 0, "\"no libcuda\"")), true, "exit status: 0", false);
        assert!(result.is_absent());
        assert_eq!(result.failed, 0);
        result.require();
        assert_eq!(result.failed, 1);
        assert!(result.reason.unwrap().contains("no libcuda"));
    }

    #[test]
    fn a_contradictory_report_is_a_failure() {
        for (text, success, what) in [
            (Some(report(7, 0, "null")), false, "the exit status says otherwise"),
            (Some(report(7, 2, "null")), true, "failures with exit status 0"),
            (Some(report(0, 0, "null")), true, "nothing ran"),
            (Some("{}".to_owned()), true, "an unreadable report"),
            (None, false, "no report"),
            (None, true, "no report, although the program was content"),
        ] {
            let result = judge("cuda", text.as_deref(), success, "exit status: ?", false);
            assert!(result.failed > 0, "{what}");
            assert!(result.reason.is_some(), "{what}");
        }
        assert!(judge("roc", Some(&report(7, 0, "null")), true, "", false).failed > 0, "another backend");
    }

    #[test]
    fn a_filter_may_leave_nothing() {
        assert_eq!(judge("cuda", Some(&report(0, 0, "null")), true, "", true).failed, 0);
    }
}
