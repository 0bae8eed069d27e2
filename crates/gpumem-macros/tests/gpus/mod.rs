//! The GPUs that the tests run on: those of this machine, and where it has none of AMD's, the simulated one.

use gpumem::{Backend, generic::Device};
use gpumem_cuda::Cuda;
use gpumem_roc::Roc;
use std::{
    env, fs, io,
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
        Err(_) => match SIMULATOR.get_or_init(|| simulator().map_err(|error| error.to_string())) {
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
fn simulator() -> io::Result<PathBuf> {
    let missing = |what: &str| io::Error::new(io::ErrorKind::NotFound, what.to_owned());
    // SAFETY: loading comgr has no preconditions. LLVM, which it has inside, cannot be loaded a second time: it stays.
    let comgr = unsafe { libloading::Library::new("libamd_comgr.so.2") };
    comgr.map(std::mem::forget).map_err(io::Error::other)?;
    let program = env::current_exe()?;
    let built = program.parent().unwrap_or(Path::new("."));
    let library = built.join("librocsim.so");
    if !library.exists() {
        return Err(missing("it was not built"));
    }
    let folder = built.join("rocsim-of-gpumem-macros");
    fs::create_dir_all(&folder)?;
    #[cfg(unix)]
    {
        // Renamed into place, because other processes may be using it.
        let own = folder.join(format!("{}.link", std::process::id()));
        let _ = fs::remove_file(&own);
        std::os::unix::fs::symlink(&library, &own)?;
        fs::rename(own, folder.join("libhsakmt.so.1"))?;
    }
    Ok(folder)
}
