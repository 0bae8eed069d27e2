//! The GPUs that the tests run on: those of this machine, and where it has none of AMD's, the simulated one.

#[path = "../../../gpumem-roc/tests/simulator/place.rs"]
mod place;

use gpumem::{Backend, generic::Device};
use gpumem_cuda::Cuda;
use gpumem_roc::Roc;
use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};

/// Says that this process was started with the simulator on its library path.
const SIMULATED: &str = "GPUMEM_MACROS_SIMULATED";

/// Where the simulator is, or why there is none.
static SIMULATOR: OnceLock<Result<PathBuf, String>> = OnceLock::new();

/// The checks for a device of any backend.
pub(crate) trait Check {
    fn check<B: Backend>(&self, device: &Device<B>);
}

/// Checks the first device of each backend that has one. Without an AMD GPU, starts this test again, by its name, on the
/// simulated one.
pub(crate) fn on_each_gpu(test: &str, check: &impl Check) {
    let simulated = env::var_os(SIMULATED).is_some();
    if !simulated {
        match Device::<Cuda>::open("cuda") {
            Ok(device) => check.check(&device),
            Err(error) => println!("skipped: no cuda: {error}"),
        }
    }
    match Device::<Roc>::open("roc") {
        Ok(device) => check.check(&device),
        Err(error) if simulated => println!("skipped: no roc: {error}"),
        Err(_) => match SIMULATOR.get_or_init(simulator) {
            Ok(folder) => on_simulated_gpu(test, folder),
            Err(why) => println!("skipped: no simulated GPU: {why}"),
        },
    }
}

fn on_simulated_gpu(test: &str, folder: &Path) {
    let mut path = env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    if !path.is_empty() {
        path.push(":");
    }
    path.push(folder);
    let status = Command::new(env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture", "--include-ignored"])
        .env("LD_LIBRARY_PATH", path)
        .env(SIMULATED, "1")
        .status()
        .unwrap();
    assert!(status.success(), "on the simulated GPU: {status}");
}

/// Returns a folder in which the simulator has the name of AMD's thunk.
pub(crate) fn simulator() -> Result<PathBuf, String> {
    if !place::has_disassembler() {
        return Err("AMD's comgr, by which it reads machine code, is not installed".to_owned());
    }
    let folder = place::library_folder().map_err(|error| error.to_string())?;
    folder.ok_or_else(|| "it was not built".to_owned())
}
