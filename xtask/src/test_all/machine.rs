//! Further machines for a backend's suite: other simulated GPUs, and HIP on another driver.

use super::{judge_tests, report::BackendResult};
use crate::{rocm::Version, shell::Finished, summary::Summary};

/// One more run of a backend's suite, with its own row.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Machine {
    /// The name of its row, after the backend's name.
    pub(crate) name: &'static str,
    /// The variables that describe it.
    pub(crate) variables: &'static [(&'static str, &'static str)],
    /// The name that the suite's report must have.
    ran_on: &'static str,
}

/// In addition to the one that the suite simulates by itself (one gfx906 whose memory the host does not see, with DMA
/// engines): every pair of values of number of GPUs, visibility and DMA engines is on one of the four, and waves of 32
/// lanes, managed memory and memory without pools each on one.
pub(crate) const SIMULATED: [Machine; 3] = [
    simulated(
        "1 GPU, large BAR, copies by kernels, managed memory",
        &[
            ("ROCSIM_GPUS", "1"),
            ("ROCSIM_LARGE_BAR", "1"),
            ("HSA_ENABLE_SDMA", "0"),
            ("ROCSIM_SVM", "1"),
            ("ROCSIM_GFX", "gfx90a"),
        ],
    ),
    simulated(
        "2 GPUs, copies by kernels, waves of 32",
        &[
            ("ROCSIM_GPUS", "2"),
            ("ROCSIM_LARGE_BAR", "0"),
            ("HSA_ENABLE_SDMA", "0"),
            ("ROCSIM_SVM", "0"),
            ("ROCSIM_GFX", "gfx1030"),
        ],
    ),
    simulated(
        "2 GPUs, large BAR, DMA engines, no pool",
        &[
            ("ROCSIM_GPUS", "2"),
            ("ROCSIM_LARGE_BAR", "1"),
            ("HSA_ENABLE_SDMA", "1"),
            ("ROCSIM_SVM", "0"),
            ("ROCSIM_GFX", "gfx906"),
            // Every array is an allocation that the simulator checks the bounds of, and a leak shows at the end.
            ("GPUMEM_POOL", "off"),
            ("HSA_DISABLE_FRAGMENT_ALLOCATOR", "1"),
        ],
    ),
];

/// The tests of the ROCm backend on a newer version of ROCm that `cargo xtask rocm` has fetched. `cargo xtask nightly rocm` runs
/// all of them, on all architectures.
#[derive(Debug)]
pub(crate) struct Newer {
    pub(crate) version: Version,
    /// The machine of the device tests.
    pub(crate) tests: Machine,
    /// The machine of a part of the suite, [`REDUCED`].
    pub(crate) suite: Machine,
    /// The machine of another part, [`GRAPHS`], with graphs of HIP.
    pub(crate) graphs: Machine,
}

/// The cases of the suite that run on newer versions of ROCm: those of device functions, which compilers can break.
pub(crate) const REDUCED: &str = "12_kernel::prelude";

/// The cases of graphs.
pub(crate) const GRAPHS: &str = "14_graphs";

const OWN_GRAPHS: (&str, &str) = ("GPUMEM_ROC_GRAPHS", "native");

/// Device tests that take rounds take one.
const ONE_ROUND: (&str, &str) = ("GPUMEM_ROUNDS", "1");

/// Each version has an architecture that older ones do not know.
pub(crate) const NEWER: [Newer; 2] = [
    Newer {
        version: Version::V6_4,
        tests: simulated("ROCm 6.4, device tests", &[("ROCSIM_GFX", "gfx942"), ONE_ROUND]),
        suite: simulated("ROCm 6.4, device functions", &[("ROCSIM_GFX", "gfx942")]),
        graphs: simulated("ROCm 6.4, graphs of HIP", &[("ROCSIM_GFX", "gfx942"), OWN_GRAPHS]),
    },
    Newer {
        version: Version::V7_2,
        tests: simulated("ROCm 7.2, device tests", &[("ROCSIM_GFX", "gfx1100"), ONE_ROUND]),
        suite: simulated("ROCm 7.2, device functions", &[("ROCSIM_GFX", "gfx1100")]),
        graphs: simulated("ROCm 7.2, graphs of HIP", &[("ROCSIM_GFX", "gfx1100"), OWN_GRAPHS]),
    },
];

/// HIP has no status for features that the CUDA driver lacks.
const SAY_WHY: (&str, &str) = ("HIP_ON_CUDA_LOG", "1");

/// The versions of ROCm that HIP on CUDA plays.
pub(crate) const HIP_ON_CUDA: [Machine; 3] = [
    on_cuda("hip-on-cuda as ROCm 5", &[("HIP_ON_CUDA_VERSION", "5"), SAY_WHY]),
    on_cuda("hip-on-cuda as ROCm 6", &[("HIP_ON_CUDA_VERSION", "6"), SAY_WHY]),
    on_cuda("hip-on-cuda as ROCm 7", &[("HIP_ON_CUDA_VERSION", "7"), SAY_WHY]),
];

/// A simulated machine.
pub(crate) const fn simulated(
    name: &'static str,
    variables: &'static [(&'static str, &'static str)],
) -> Machine {
    Machine { name, variables, ran_on: "rocsim" }
}

const fn on_cuda(name: &'static str, variables: &'static [(&'static str, &'static str)]) -> Machine {
    Machine { name, variables, ran_on: "hip-on-cuda" }
}

impl Machine {
    /// Whether the programs use an NVIDIA GPU.
    pub(crate) fn is_on_cuda(&self) -> bool {
        self.ran_on == "hip-on-cuda"
    }

    /// Its variables, as a shell takes them.
    pub(crate) fn assignments(&self) -> String {
        self.variables.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
    }

    /// The row of tests that Rust's harness has counted. None at all is a failure.
    pub(crate) fn tests(&self, done: &Finished) -> BackendResult {
        let Summary { passed, failed, skipped } = judge_tests(done);
        let ran_on = Some(self.ran_on.to_owned());
        let result = BackendResult {
            ran_on,
            passed,
            failed,
            skipped,
            reason: None,
            ..BackendResult::absent("roc", "")
        };
        let mut result = self.claim(result, &done.output);
        match (passed, failed) {
            (0, 0) => result.fail("nothing ran".to_owned()),
            (_, 0) => {}
            _ => result.fail(done.status.clone()),
        }
        result
    }

    /// Names the row. A run on another machine is a failure.
    pub(crate) fn claim(&self, mut result: BackendResult, output: &str) -> BackendResult {
        result.machine = Some(self.name);
        if result.is_absent()
            && let Some(why) = output.lines().find(|line| line.starts_with("hip-on-cuda: "))
        {
            result.reason = Some(why.to_owned());
        }
        if let Some(found) = result.ran_on.as_deref().filter(|found| *found != self.ran_on) {
            let found = format!("it ran on {found} instead of {}", self.ran_on);
            result.fail(found);
        }
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_simulated_machines_have_every_pair_of_values() {
        let usual = [("ROCSIM_GPUS", "1"), ("ROCSIM_LARGE_BAR", "0"), ("HSA_ENABLE_SDMA", "1")];
        let machines: Vec<&[_]> =
            [&usual[..]].into_iter().chain(SIMULATED.map(|other| other.variables)).collect();
        let axes =
            [("ROCSIM_GPUS", ["1", "2"]), ("ROCSIM_LARGE_BAR", ["0", "1"]), ("HSA_ENABLE_SDMA", ["0", "1"])];
        for (at, (one, values)) in axes.iter().enumerate() {
            for (other, others) in &axes[at + 1..] {
                for (first, second) in
                    values.iter().flat_map(|value| others.iter().map(move |with| (value, with)))
                {
                    let has = |machine: &&[_]| {
                        machine.contains(&(*one, *first)) && machine.contains(&(*other, *second))
                    };
                    assert!(machines.iter().any(has), "no machine has {one}={first} and {other}={second}");
                }
            }
        }
    }

    #[test]
    fn tests_that_do_not_run_are_a_failure() {
        let [Newer { tests: machine, .. }, _] = NEWER;
        let row = |success: bool, output: &str| {
            machine.tests(&Finished {
                success,
                status: "exit status: 1".to_owned(),
                output: output.to_owned(),
            })
        };
        let good = row(true, "test result: ok. 21 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out");
        assert_eq!((good.passed, good.failed, good.skipped, good.reason.as_deref()), (21, 0, 1, None));
        assert_eq!(good.label(), "roc (ROCm 6.4, device tests)");
        assert_eq!(row(true, "test result: ok. 0 passed; 0 failed; 22 ignored; no device").failed, 1);
        assert_eq!(row(false, "a program that dies").failed, 1);
    }

    #[test]
    fn a_run_on_another_machine_is_a_failure() {
        let result = |ran_on: Option<&str>| BackendResult {
            ran_on: ran_on.map(str::to_owned),
            passed: 3,
            skipped: 0,
            reason: None,
            ..BackendResult::absent("roc", "")
        };
        let [machine, ..] = HIP_ON_CUDA;
        assert_eq!(machine.claim(result(Some("hip-on-cuda")), "").failed, 0);
        let other = machine.claim(result(Some("rocsim")), "");
        assert_eq!((other.failed, other.label().as_str()), (1, "roc (hip-on-cuda as ROCm 5)"));
        let absent = BackendResult::absent("roc", "no device");
        let told = machine.claim(absent, "running\nhip-on-cuda: there is no libcuda.so.1\n");
        assert_eq!(told.reason.as_deref(), Some("hip-on-cuda: there is no libcuda.so.1"));
    }
}
