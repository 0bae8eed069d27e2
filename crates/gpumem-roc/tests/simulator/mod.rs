//! The device that the tests run on: an AMD GPU, HIP on another driver, or the simulated GPU, which sleeps instead of
//! running the delay kernel.
#![allow(dead_code, reason = "each test program uses its part")]

pub(crate) mod kernels;
mod place;

use gpumem_conformance::RanOn;
use gpumem_core::Backend;
use gpumem_roc::Roc;
use libloading::Library;
use std::{
    env,
    ffi::{CStr, OsString, c_char},
    fs, io,
    path::Path,
    sync::OnceLock,
};

/// Says that this process was started with the simulator on its library path.
const STARTED: &str = "GPUMEM_ROC_SIMULATED";

/// Starts the program again on the simulated GPU if there is no AMD GPU, and returns which it runs on.
pub(crate) fn prepare() -> RanOn {
    if let Err(error) = simulate() {
        eprintln!("the simulated GPU cannot be used: {error}");
    }
    // Loads HIP, where it is.
    let probed = Roc::probe();
    let maps = fs::read_to_string("/proc/self/maps").unwrap_or_default();
    // AMD's HIP stands on AMD's HSA runtime.
    if probed.is_ok() && !maps.contains("libhsa-runtime64") {
        return RanOn::HipOnCuda;
    }
    if kernels::register_delay() { RanOn::Rocsim } else { RanOn::Hardware }
}

/// Does not come back if the simulated GPU is to be used.
fn simulate() -> io::Result<()> {
    let hardware = Path::new("/dev/kfd").exists();
    // A caller that names ROCm's folder means that one.
    let is_set = |name| env::var_os(name).is_some_and(|value| !value.is_empty());
    let chosen = is_set("GPUMEM_ROC_LIBRARY_PATH");
    // `rocsim --rocm` has put the simulated kernel driver in place.
    let preloaded = env::var("LD_PRELOAD").is_ok_and(|libraries| libraries.contains("rocsim_kfd"));
    if hardware || chosen || preloaded || env::var_os(STARTED).is_some() || !cfg!(target_os = "linux") {
        return Ok(());
    }
    let Some(folder) = place::library_folder()? else { return Ok(()) };
    if !place::has_disassembler() {
        return Err(io::Error::other("AMD's comgr, by which it reads machine code, is not installed"));
    }
    let mut path = OsString::new();
    // Appended to the existing path, so that another HIP or thunk in it comes first.
    if let Some(before) = env::var_os("LD_LIBRARY_PATH").filter(|before| !before.is_empty()) {
        path.push(before);
        path.push(":");
    }
    path.push(folder);
    start_again(&path)
}

#[cfg(unix)]
fn start_again(path: &OsString) -> io::Result<()> {
    use std::os::unix::process::CommandExt;
    let mut again = std::process::Command::new(env::current_exe()?);
    Err(again.args(env::args_os().skip(1)).env("LD_LIBRARY_PATH", path).env(STARTED, "1").exec())
}

#[cfg(not(unix))]
fn start_again(_: &OsString) -> io::Result<()> {
    Ok(())
}

/// The thunk that AMD's runtime uses, the simulator's or AMD's own.
fn library() -> Option<&'static Library> {
    static LIBRARY: OnceLock<Option<Library>> = OnceLock::new();
    // SAFETY: loading the thunk has no preconditions.
    LIBRARY.get_or_init(|| unsafe { Library::new("libhsakmt.so.1") }.ok()).as_ref()
}

/// One of the simulator's counters; `None` where there is no simulator.
pub(crate) fn counter(name: &CStr) -> Option<u64> {
    type Counter = unsafe extern "C" fn(*const c_char) -> u64;
    // SAFETY: a function of this name has this type, and the name is a C string.
    unsafe { Some(library()?.get::<Counter>(b"rocsim_counter\0").ok()?(name.as_ptr())) }
}

/// Returns what is left at the end, beyond what HIP keeps until the process ends; `None` if nothing is. A pool's blocks
/// hide their allocations, so a run without a pool shows more.
pub(crate) fn left_behind() -> Option<String> {
    let gpus = Roc::devices().map_or(0, |devices| devices.len()) as u64;
    let pool = env::var("GPUMEM_POOL").map_or(64 << 20, |value| if value == "off" { 0 } else { 64 << 20 });
    // Where kernels copy, HIP keeps the callers' memory of its last copies pinned, up to 4 MiB each.
    let by_kernels = env::var("HSA_ENABLE_SDMA").is_ok_and(|value| value == "0");
    // From version 6 on it always does, for the last eight copies of each of its queues.
    let maps = fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let keeps_pinned = by_kernels || !maps.contains("libamdhip64.so.5");
    let pinned = if keeps_pinned { (128 << 20) * gpus } else { 64 << 10 };
    // HIP's own: 1 to 2 MiB of device memory and up to 7 MiB of host memory for each GPU, and some pages.
    let most = [
        (c"vram_live_bytes", (4 << 20) * gpus + pool),
        (c"host_live_bytes", (16 << 20) * gpus + pool),
        (c"registered_live_bytes", pinned),
        (c"faults", 0),
        (c"unknown_instructions", 0),
        (c"unknown_kernels", 0),
    ];
    let mut over = most.iter().filter_map(|(name, most)| Some((name, counter(name)?, most)));
    let (name, found, most) = over.find(|(_, found, most)| found > most)?;
    Some(format!("{} is {found} at the end, and at most {most} is HIP's own", name.to_string_lossy()))
}
