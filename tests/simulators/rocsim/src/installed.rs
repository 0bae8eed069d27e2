//! What of AMD's packages this machine has: the one place where tests ask for what they need.
//!
//! A machine may have any part of them: the runtime without headers, the headers of one library without those of another.

use std::{env, ffi::CStr, path::Path, process::Command};

/// What a test may need.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// AMD's HSA runtime, on the simulated GPU.
    Hsa,
    /// AMD's HIP and its compiler, of ROCm 5, on the simulated GPU.
    Hip,
    /// The headers of HIP.
    HipHeaders,
    /// The headers of the HSA runtime.
    HsaHeaders,
    /// The headers of the library that the simulator replaces.
    ThunkHeaders,
    /// A C compiler.
    Cc,
}

impl Part {
    /// The shared libraries that it consists of. The simulator reads machine code by comgr, and the compiler compiles by it.
    fn libraries(self) -> &'static [&'static CStr] {
        match self {
            Self::Hsa => &[c"libamd_comgr.so.2", c"libhsa-runtime64.so.1"],
            Self::Hip => &[c"libamd_comgr.so.2", c"libamdhip64.so.5"],
            _ => &[],
        }
    }

    /// The headers that tests include.
    fn headers(self) -> &'static [&'static str] {
        match self {
            Self::HipHeaders => &["hip/hip_runtime.h", "hip/hip_runtime_api.h", "hip/hiprtc.h"],
            Self::HsaHeaders => {
                &["hsa/hsa.h", "hsa/hsa_ext_amd.h", "hsa/amd_hsa_queue.h", "hsa/amd_hsa_signal.h"]
            }
            Self::ThunkHeaders => &["hsakmt.h", "hsakmttypes.h"],
            _ => &[],
        }
    }

    fn missing(self) -> Option<String> {
        let is_there = |library: &&&CStr| {
            // SAFETY: the name is a C string, and initialisers of AMD's libraries have no preconditions. The library stays:
            // LLVM, which comgr has inside, cannot be loaded a second time.
            unsafe { !libc::dlopen(library.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL).is_null() }
        };
        if let Some(library) = self.libraries().iter().find(|library| !is_there(library)) {
            return Some(format!("{} is not installed, or lacks a library", library.to_string_lossy()));
        }
        let include = Path::new("/usr/include");
        if let Some(header) = self.headers().iter().find(|header| !include.join(header).is_file()) {
            return Some(format!("{} is not installed", include.join(header).display()));
        }
        let no_compiler = self == Self::Cc && Command::new("cc").arg("--version").output().is_err();
        no_compiler.then(|| "there is no C compiler".to_owned())
    }
}

/// Why what a test needs is not there, if it is not.
pub fn missing(parts: &[Part]) -> Option<String> {
    parts.iter().find_map(|part| part.missing())
}

/// Whether a test has nothing to run, which it says with the reason. With `ROCSIM_REQUIRE=1` a missing library is a failure.
///
/// # Panics
/// If a library is missing and required.
pub fn is_skipped(parts: &[Part]) -> bool {
    let Some(reason) = missing(parts) else { return false };
    let is_of_libraries = parts.iter().any(|part| !part.libraries().is_empty());
    assert!(!is_of_libraries || env::var_os("ROCSIM_REQUIRE").is_none(), "required: {reason}");
    println!("skipped: {reason}");
    true
}
