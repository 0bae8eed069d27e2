//! `run-archived`: does the work of `test-all-backends` with programs that are built already.

use super::manifest::{Kind, Manifest, Program};
use crate::{
    shell::{Finished, Shell},
    summary::Summary,
    test_all::{self, BACKENDS, BackendResult, Machine, Part, Report},
};
use anyhow::{Context, Result};
use clap::Args;
use std::{ffi::OsString, fs, path::PathBuf};

/// Options of the packed `run`.
#[derive(Args)]
pub(crate) struct Options {
    /// The pack's folder
    #[arg(hide = true)]
    folder: PathBuf,
    #[command(flatten)]
    tests: test_all::Options,
    /// Run programs that use an NVIDIA GPU under compute-sanitizer's memcheck; its findings are failures
    #[arg(long)]
    sanitizer: bool,
    /// Where compute-sanitizer is, unless in the search path
    #[arg(long, value_name = "FILE", default_value = "compute-sanitizer")]
    sanitizer_program: String,
    /// Run the benches too, after the tests, on each device that has been tested
    #[arg(long)]
    bench: bool,
}

/// Looks for memory errors only: cases provoke refused calls on purpose and check them. Cases that need a fault provoke
/// it in a child process, which is not watched.
const MEMCHECK: [&str; 7] = [
    "--tool=memcheck",
    "--report-api-errors=no",
    "--target-processes=application-only",
    "--launch-timeout=0",
    "--error-exitcode=86",
    "--print-limit=20",
    "--",
];

/// The names under which the ROCm backend looks for HIP and hipRTC.
const HIP_NAMES: [&str; 2] = ["libamdhip64.so.7", "libhiprtc.so.7"];

pub(crate) fn run(options: &Options) -> Result<bool> {
    options.tests.check()?;
    let pack = Archive::open(options)?;
    let mut report = Report { backends: Vec::new(), workspace: Summary::default() };
    for name in BACKENDS.into_iter().filter(|_| options.tests.has(Part::Conformance)) {
        match pack.conformance(name) {
            Some(program) => {
                let start = |machine: Option<&Machine>, arguments: &[&str]| {
                    pack.start_on(machine, program, arguments)
                };
                report.backends.extend(test_all::rows(name, &options.tests, start)?);
            }
            None => {
                let mut result = BackendResult::absent(name, "not packed");
                if options.tests.requires(name) {
                    result.require();
                }
                report.backends.push(result);
            }
        }
    }
    if options.tests.has(Part::Code) {
        report.workspace += pack.tests()?;
        report.workspace += pack.examples(&report.backends)?;
    }
    if options.bench {
        report.workspace += pack.benches(&report.backends)?;
    }
    test_all::conclude(&report, &options.tests)
}

struct Archive<'a> {
    folder: PathBuf,
    manifest: Manifest,
    options: &'a Options,
    /// Where programs run and write: the pack itself may lie on a file system that is only read.
    scratch: tempfile::TempDir,
}

impl<'a> Archive<'a> {
    fn open(options: &'a Options) -> Result<Self> {
        let folder = std::path::absolute(&options.folder)?;
        let manifest = Manifest::read(&folder)?;
        Ok(Self { folder, manifest, options, scratch: tempfile::tempdir()? })
    }

    fn conformance(&self, backend: &str) -> Option<&Program> {
        self.manifest.of(Kind::Conformance).find(|program| program.backend() == Some(backend))
    }

    /// Runs a backend's suite on a machine.
    fn start_on(&self, machine: Option<&Machine>, program: &Program, arguments: &[&str]) -> Result<Finished> {
        let mut shell = Shell::new(self.scratch.path());
        for (variable, value) in machine.map_or(&[][..], |machine| machine.variables) {
            shell = shell.env(variable, *value);
        }
        let is_on_cuda = machine.is_some_and(Machine::is_on_cuda);
        if is_on_cuda {
            shell = shell.env("LD_LIBRARY_PATH", self.hip_on_cuda()?);
        }
        self.start_in(shell, program, if is_on_cuda { Some("cuda") } else { program.backend() }, arguments)
    }

    /// The library path with HIP on CUDA in front, under AMD's names.
    fn hip_on_cuda(&self) -> Result<OsString> {
        let library = self.manifest.of(Kind::Library).next().context("HIP on CUDA is not packed")?;
        let folder = self.scratch.path().join("hip-on-cuda");
        if !folder.exists() {
            fs::create_dir(&folder)?;
            let [first, others @ ..] = &HIP_NAMES;
            fs::copy(self.folder.join(library.file()), folder.join(first)).context("HIP on CUDA")?;
            // One file, so that it is loaded once whichever name is asked for.
            for name in others {
                fs::hard_link(folder.join(first), folder.join(name))?;
            }
        }
        test_all::library_path(folder.to_str().context("the path of the temporary folder is not UTF-8")?)
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

    fn tests(&self) -> Result<Summary> {
        let mut sum = Summary::default();
        for program in self.manifest.of(Kind::Test) {
            let filter: Vec<_> = self.options.tests.filter().into_iter().collect();
            sum += test_all::judge_tests(&self.start(program, program.backend(), &filter)?);
        }
        Ok(sum)
    }

    /// Every example on every device that the suites have found. The photo's contact sheet is the same on all of them.
    fn examples(&self, backends: &[BackendResult]) -> Result<Summary> {
        let mut sum = Summary::default();
        let wanted = |program: &&Program| {
            self.options.tests.filter().is_none_or(|filter| program.target.contains(filter))
        };
        for program in self.manifest.of(Kind::Example).filter(wanted) {
            let mut sheets: Vec<Vec<u8>> = Vec::new();
            for backend in backends.iter().filter(|backend| backend.machine.is_none()) {
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
                sum += Summary { passed: success.into(), failed: (!success).into(), skipped: 0 };
            }
        }
        Ok(sum)
    }

    fn benches(&self, backends: &[BackendResult]) -> Result<Summary> {
        let mut sum = Summary::default();
        for program in self.manifest.of(Kind::Bench) {
            let here = |backend: &&BackendResult| !backend.is_absent() && backend.machine.is_none();
            for backend in backends.iter().filter(here) {
                // Never under the sanitizer: it measures nothing there.
                let success = self.start(program, None, &["--device", &self.device(backend)])?.success;
                sum += Summary { passed: success.into(), failed: (!success).into(), skipped: 0 };
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
    use std::{os::unix::fs::PermissionsExt, path::Path};

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
            (Kind::Test, "gpumem-integration", "lost_device", "kill -9 $$"),
        ]);
        let (success, report) = outcome(folder.path(), |_| ());
        assert!(!success);
        assert_eq!(report["workspace"]["failed"], 1);
    }

    #[test]
    fn the_sanitizer_wraps_gpu_programs_and_its_findings_fail() {
        let folder = pack(&[
            (Kind::Conformance, "gpumem-host", "conformance", &suite("host")),
            (Kind::Conformance, "gpumem-cuda", "conformance", &suite("cuda")),
        ]);
        // Runs the program after `--`, then reports a finding.
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

    /// A suite that reports the machine that it would run on, by the library path and the simulated version.
    const ON_CUDA: &str = r#"
        case "$LD_LIBRARY_PATH" in
            *hip-on-cuda*) on="hip-on-cuda"; test -e "${LD_LIBRARY_PATH%%:*}/libhiprtc.so.7" || exit 9 ;;
            *) on="hardware" ;;
        esac
        if [ "$HIP_ON_CUDA_VERSION" = 7 ]; then on="hardware"; fi
        echo '{"backend":"roc","device":"roc:0","ran_on":"'$on'","passed":3,"failed":0,"skipped":0}' > "$2""#;

    #[test]
    fn hip_on_cuda_runs_when_asked_for_and_only_counts_if_it_was_used() {
        let folder = pack(&[
            (Kind::Conformance, "gpumem-roc", "conformance", ON_CUDA),
            (Kind::Library, "hip-on-cuda", "libhip_on_cuda.so", ""),
        ]);
        let (success, report) = outcome(folder.path(), |_| ());
        assert!(success);
        assert_eq!(report["backends"].as_array().map(Vec::len), Some(3));
        let (success, report) =
            outcome(folder.path(), |options| options.tests.require_backend("hip-on-cuda"));
        assert!(!success);
        let found: Vec<_> = report["backends"].as_array().unwrap()[2..]
            .iter()
            .map(|row| (row["machine"].as_str(), row["ran_on"].as_str(), row["failed"].as_u64()))
            .collect();
        let row = |name, ran_on, failed| (name, Some(ran_on), Some(failed));
        let expected = [
            row(None, "hardware", 0),
            row(Some("hip-on-cuda as ROCm 5"), "hip-on-cuda", 0),
            row(Some("hip-on-cuda as ROCm 6"), "hip-on-cuda", 0),
            row(Some("hip-on-cuda as ROCm 7"), "hardware", 1),
        ];
        assert_eq!(found, expected);
    }

    /// A suite on the simulated GPU, which has none of two GPUs that copy by kernels.
    const SIMULATED: &str = r#"
        if [ "$ROCSIM_GPUS$HSA_ENABLE_SDMA" = 20 ]; then
            echo '{"backend":"roc","passed":0,"failed":0,"skipped":9,"reason":"no GPU"}' > "$2"; exit
        fi
        echo '{"backend":"roc","device":"roc:0","ran_on":"rocsim","passed":3,"failed":0,"skipped":0}' > "$2""#;

    #[test]
    fn every_simulated_machine_has_a_row_and_must_run() {
        let folder = pack(&[(Kind::Conformance, "gpumem-roc", "conformance", SIMULATED)]);
        let (success, report) = outcome(folder.path(), |_| ());
        assert!(!success);
        let rows = &report["backends"].as_array().unwrap()[2..];
        assert_eq!(rows.iter().map(|row| row["passed"].as_u64().unwrap()).collect::<Vec<_>>(), [3, 3, 0, 3]);
        let failed: Vec<_> = rows.iter().filter(|row| row["failed"] == 1).collect();
        assert_eq!(failed.len(), 1);
        assert!(failed[0]["machine"].as_str().unwrap().starts_with("2 GPUs, copies by kernels"));
        assert!(failed[0]["reason"].as_str().unwrap().contains("no GPU"));
    }

    #[test]
    fn a_required_backend_that_is_not_archived_is_a_failure() {
        let folder = pack(&[(Kind::Conformance, "gpumem-host", "conformance", &suite("host"))]);
        let (success, _) = outcome(folder.path(), |options| options.tests.require_backend("cuda"));
        assert!(!success);
    }
}
