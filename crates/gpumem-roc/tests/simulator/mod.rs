//! What the tests run on: an AMD GPU, HIP on another driver, or the simulated GPU; and the kernels that the simulated
//! one has to be given, because it executes no device code.
#![allow(dead_code, reason = "each test program uses its part")]

use gpumem_conformance::RanOn;
use gpumem_core::Backend;
use gpumem_roc::Roc;
use libloading::Library;
use std::{
    env,
    ffi::{CStr, OsString, c_char, c_void},
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

type Body = unsafe extern "C" fn(*const c_void, *const Dispatch) -> i32;
type Register = unsafe extern "C" fn(*const c_char, Body) -> i32;

/// The beginning of `rocsim_dispatch`.
#[repr(C)]
pub(crate) struct Dispatch {
    bytes: u32,
    node: u32,
    pub(crate) grid: [u32; 3],
    workgroup: [u32; 3],
    group_segment_bytes: u32,
    kernarg_bytes: u32,
    name: *const c_char,
    context: *mut c_void,
    /// Host address of device memory, or null if the GPU may not use it.
    pub(crate) translate: unsafe extern "C" fn(*const Dispatch, u64, u64) -> *mut c_void,
}

/// Says that this process was started with the simulator on its library path.
const STARTED: &str = "GPUMEM_ROC_SIMULATED";

/// Starts the program again on the simulated GPU where there is none of AMD's, and says what it runs on.
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
    if register(c"delay", delay) { RanOn::Rocsim } else { RanOn::Hardware }
}

/// Does not come back if the simulated GPU is to be used.
fn simulate() -> io::Result<()> {
    let hardware = Path::new("/dev/kfd").exists();
    // Who says where ROCm is means that one.
    let chosen = env::var_os("GPUMEM_ROC_LIBRARY_PATH").is_some_and(|path| !path.is_empty());
    if hardware || chosen || env::var_os(STARTED).is_some() || !cfg!(target_os = "linux") {
        return Ok(());
    }
    let Some(folder) = library_folder()? else { return Ok(()) };
    let mut path = OsString::new();
    // Behind what is there already: another HIP or another thunk that was put there is meant.
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

/// A folder with the simulator under the name of AMD's thunk, if it was built beside this program.
fn library_folder() -> io::Result<Option<PathBuf>> {
    let program = env::current_exe()?;
    let built = program.parent().unwrap_or(Path::new("."));
    let library = built.join("librocsim.so");
    if !library.exists() {
        return Ok(None);
    }
    let folder = built.join("rocsim-of-gpumem-roc");
    fs::create_dir_all(&folder)?;
    #[cfg(unix)]
    {
        let link = folder.join("libhsakmt.so.1");
        if fs::read_link(&link).ok().as_ref() != Some(&library) {
            // Renamed into place, because others may be using it.
            let own = folder.join(format!("{}.link", std::process::id()));
            std::os::unix::fs::symlink(&library, &own)?;
            fs::rename(own, link)?;
        }
    }
    Ok(Some(folder))
}

/// Gives the simulated GPU a kernel; false where there is none.
pub(crate) fn register(name: &CStr, body: Body) -> bool {
    // SAFETY: loading the thunk has no preconditions; a function of this name has this type.
    unsafe {
        let Ok(library) = Library::new("libhsakmt.so.1") else { return false };
        let Ok(register) = library.get::<Register>(b"rocsim_register_kernel\0").map(|found| *found) else {
            return false;
        };
        // The functions are called until the end.
        std::mem::forget(library);
        register(name.as_ptr(), body) == 0
    }
}

/// `delay(unsigned long long cycles)`, in nanoseconds.
unsafe extern "C" fn delay(arguments: *const c_void, _: *const Dispatch) -> i32 {
    // SAFETY: the kernel has one argument of eight bytes.
    let nanoseconds = unsafe { arguments.cast::<u64>().read_unaligned() };
    std::thread::sleep(Duration::from_nanos(nanoseconds));
    0
}
