//! `run-packed`: what `test-all-backends` does, with programs that are built already.

use super::manifest::{Kind, Manifest, Program};
use crate::{
    counts::Counts,
    shell::{Finished, Shell},
    test_all::{self, BACKENDS, BackendResult, Report},
};
use anyhow::{Context, Result};
use clap::Args;
use std::path::PathBuf;

/// Options of the packed `run`.
#[derive(Args)]
pub(crate) struct Options {
    /// The pack's folder
    #[arg(hide = true)]
    folder: PathBuf,
    #[command(flatten)]
    tests: test_all::Options,
    /// Run whatever uses an NVIDIA GPU under compute-sanitizer's memcheck; what it finds is a failure
    #[arg(long)]
    sanitizer: bool,
    /// Where compute-sanitizer is, unless in the search path
    #[arg(long, value_name = "FILE", default_value = "compute-sanitizer")]
    sanitizer_program: String,
    /// Run the benches too, after the tests, on each device that has been tested
    #[arg(long)]
    bench: bool,
}

/// Memory errors are what is looked for; calls that the driver refuses are refused on purpose, and checked by the cases.
/// Cases that need a fault provoke it in a process of their own, which is not watched.
const MEMCHECK: [&str; 7] = [
    "--tool=memcheck",
    "--report-api-errors=no",
    "--target-processes=application-only",
    "--launch-timeout=0",
    "--error-exitcode=86",
    "--print-limit=20",
    "--",
];

pub(crate) fn run(options: &Options) -> Result<bool> {
    options.tests.check()?;
    let pack = Pack::open(options)?;
    let mut report = Report { backends: Vec::new(), workspace: Counts::default() };
    for name in BACKENDS {
        let mut result = match pack.conformance(name) {
            Some(program) => {
                test_all::suite(name, &options.tests, |arguments| pack.start(program, Some(name), arguments))?
            }
            None => BackendResult::absent(name, "not packed"),
        };
        if options.tests.requires(name) {
            result.require();
        }
        report.backends.push(result);
    }
    if !options.tests.conformance_only() {
        report.workspace += pack.tests()?;
        report.workspace += pack.examples(&report.backends)?;
    }
    if options.bench {
        report.workspace += pack.benches(&report.backends)?;
    }
    test_all::conclude(&report, &options.tests)
}

struct Pack<'a> {
    folder: PathBuf,
    manifest: Manifest,
    options: &'a Options,
    /// Where programs run and write: the pack itself may lie on a file system that is only read.
    scratch: tempfile::TempDir,
}

impl<'a> Pack<'a> {
    fn open(options: &'a Options) -> Result<Self> {
        let folder = std::path::absolute(&options.folder)?;
        let manifest = Manifest::read(&folder)?;
        Ok(Self { folder, manifest, options, scratch: tempfile::tempdir()? })
    }

    fn conformance(&self, backend: &str) -> Option<&Program> {
        self.manifest.of(Kind::Conformance).find(|program| program.backend() == Some(backend))
    }

    /// Runs a program that uses a device of that backend, if any.
    fn start(&self, program: &Program, backend: Option<&str>, arguments: &[&str]) -> Result<Finished> {
        self.start_in(Shell::new(self.scratch.path()), program, backend, arguments)
    }

    fn start_in(
        &self,
        shell: Shell<'_>,
        program: &Program,
        backend: Option<&str>,
        arguments: &[&str],
    ) -> Result<Finished> {
        let file = self.folder.join(program.file());
        let file = file.to_str().context("the path of the pack is not UTF-8")?;
        if self.options.sanitizer && backend == Some("cuda") {
            let mut all = MEMCHECK.to_vec();
            all.push(file);
            all.extend(arguments);
            return shell.run(&self.options.sanitizer_program, &all);
        }
        shell.run(file, arguments)
    }

    fn tests(&self) -> Result<Counts> {
        let mut sum = Counts::default();
        for program in self.manifest.of(Kind::Test) {
            let filter: Vec<_> = self.options.tests.filter().into_iter().collect();
            sum += test_all::judge_tests(&self.start(program, program.backend(), &filter)?);
        }
        Ok(sum)
    }

    /// Every example on every device that the suites have found. The photo's contact sheet is the same on all of them.
    fn examples(&self, backends: &[BackendResult]) -> Result<Counts> {
        let mut sum = Counts::default();
        let wanted = |program: &&Program| {
            self.options.tests.filter().is_none_or(|filter| program.target.contains(filter))
        };
        for program in self.manifest.of(Kind::Example).filter(wanted) {
            let mut sheets: Vec<Vec<u8>> = Vec::new();
            for backend in backends {
                if backend.is_absent() {
                    sum.skipped += 1;
                    continue;
                }
                let device = self.device(backend);
                let shell = Shell::new(self.scratch.path()).env("GPUMEM_DEVICE", &device);
                let sheet = self.scratch.path().join("sheet.png");
                let path = sheet.to_str().context("the path of the temporary folder is not UTF-8")?;
                let is_photo = program.target == "photo";
                let arguments = if is_photo { vec!["--output", path] } else { Vec::new() };
                let mut success = self.start_in(shell, program, Some(backend.name), &arguments)?.success;
                if is_photo && success {
                    sheets.push(std::fs::read(&sheet).context("the contact sheet")?);
                    if sheets.first() != sheets.last() {
                        println!("{}: the contact sheet on {device} is another one", program.target);
                        success = false;
                    }
                }
                println!("{} on {device}: {}", program.target, if success { "ok" } else { "FAILED" });
                sum += Counts { passed: success.into(), failed: (!success).into(), skipped: 0 };
            }
        }
        Ok(sum)
    }

    fn benches(&self, backends: &[BackendResult]) -> Result<Counts> {
        let mut sum = Counts::default();
        for program in self.manifest.of(Kind::Bench) {
            for backend in backends.iter().filter(|backend| !backend.is_absent()) {
                // Never under the sanitizer: it measures nothing there.
                let success = self.start(program, None, &["--device", &self.device(backend)])?.success;
                sum += Counts { passed: success.into(), failed: (!success).into(), skipped: 0 };
            }
        }
        Ok(sum)
    }

    fn device(&self, backend: &BackendResult) -> String {
        let selector = self.options.tests.device_of(backend.name);
        selector.map_or_else(|| format!("{}:0", backend.name), str::to_owned)
    }
}

#[cfg(test)]
impl Options {
    fn new(folder: &std::path::Path) -> Self {
        Self {
            folder: folder.to_owned(),
            tests: test_all::Options::default(),
            sanitizer: false,
            sanitizer_program: "compute-sanitizer".to_owned(),
            bench: false,
        }
    }
}

#[cfg(all(test, unix))]
#[allow(clippy::unwrap_used, reason = "helpers of tests")]
mod tests {
    use super::*;
    use std::{fs, os::unix::fs::PermissionsExt, path::Path};

    /// A pack of shell scripts in the place of programs.
    fn pack(programs: &[(Kind, &str, &str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("bin")).unwrap();
        let mut manifest = Manifest::default();
        for (kind, package, target, script) in programs {
            let program =
                Program { kind: *kind, package: (*package).to_owned(), target: (*target).to_owned() };
            let file = folder.path().join(program.file());
            fs::write(&file, format!("#!/bin/sh\n{script}\n")).unwrap();
            fs::set_permissions(&file, PermissionsExt::from_mode(0o755)).unwrap();
            manifest.programs.push(program);
        }
        manifest.write(folder.path()).unwrap();
        folder
    }

    fn suite(name: &str) -> String {
        format!(
            r#"echo '{{"backend":"{name}","device":"{name}:0","ran_on":"host","passed":3,"failed":0,"skipped":0}}' > "$2""#
        )
    }

    const TEST: &str = "echo 'test result: ok. 2 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out'";

    fn outcome(folder: &Path, change: impl FnOnce(&mut Options)) -> (bool, serde_json::Value) {
        let mut options = Options::new(folder);
        let file = folder.join("report.json");
        options.tests.report_to(&file);
        change(&mut options);
        let success = run(&options).unwrap();
        (success, serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap())
    }

    #[test]
    fn suites_tests_and_examples_are_summed_up() {
        let folder = pack(&[
            (Kind::Conformance, "gpumem-host", "conformance", &suite("host")),
            (Kind::Test, "gpumem-integration", "threads", TEST),
            (Kind::Example, "gpumem", "01_arrays", r#"test "$GPUMEM_DEVICE" = host:0"#),
        ]);
        let (success, report) = outcome(folder.path(), |_| ());
        assert!(success);
        assert_eq!(report["backends"][0]["passed"], 3);
        assert_eq!(report["backends"][1]["reason"], "not packed");
        // One example runs on the host; the two backends that are not packed leave it out.
        assert_eq!(report["workspace"], serde_json::json!({"passed": 3, "failed": 0, "skipped": 3}));
    }

    #[test]
    fn a_sheet_that_differs_is_a_failure() {
        let photo = r#"echo "$GPUMEM_DEVICE" > "$2""#;
        let folder = pack(&[
            (Kind::Conformance, "gpumem-host", "conformance", &suite("host")),
            (Kind::Conformance, "gpumem-cuda", "conformance", &suite("cuda")),
            (Kind::Example, "gpumem", "photo", photo),
        ]);
        let (success, report) = outcome(folder.path(), |_| ());
        assert!(!success);
        assert_eq!(report["workspace"], serde_json::json!({"passed": 1, "failed": 1, "skipped": 1}));
    }

    #[test]
    fn a_program_that_dies_is_a_failure() {
        let folder = pack(&[
            (Kind::Conformance, "gpumem-host", "conformance", &suite("host")),
            (Kind::Test, "gpumem-integration", "ends", "kill -9 $$"),
        ]);
        let (success, report) = outcome(folder.path(), |_| ());
        assert!(!success);
        assert_eq!(report["workspace"]["failed"], 1);
    }

    #[test]
    fn the_sanitizer_goes_before_what_uses_the_gpu_and_its_findings_fail() {
        let folder = pack(&[
            (Kind::Conformance, "gpumem-host", "conformance", &suite("host")),
            (Kind::Conformance, "gpumem-cuda", "conformance", &suite("cuda")),
        ]);
        // Runs the program behind `--`, then says that it has found something.
        let tool = folder.path().join("sanitizer");
        fs::write(&tool, "#!/bin/sh\nwhile [ \"$1\" != -- ]; do shift; done; shift; \"$@\"; exit 86\n")
            .unwrap();
        fs::set_permissions(&tool, PermissionsExt::from_mode(0o755)).unwrap();
        let (success, report) = outcome(folder.path(), |options| {
            options.sanitizer = true;
            options.sanitizer_program = tool.to_str().unwrap().to_owned();
        });
        assert!(!success);
        assert_eq!(report["backends"][0]["failed"], 0);
        assert_eq!(report["backends"][1]["failed"], 1);
    }

    #[test]
    fn a_required_backend_that_is_not_packed_is_a_failure() {
        let folder = pack(&[(Kind::Conformance, "gpumem-host", "conformance", &suite("host"))]);
        let (success, _) = outcome(folder.path(), |options| options.tests.require_backend("cuda"));
        assert!(!success);
    }
}
