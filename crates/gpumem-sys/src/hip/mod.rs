//! HIP and hipRTC. What ROCm 6 and 7 changed is in [`Version`], [`MemoryType`], [`architecture`] and [`load_hiprtc`]; everything
//! else that is declared here has kept its layout, its numbers and its meaning from 5.2 to 7.2.

mod abi;
mod bindings;

pub use abi::{Failure, HipLater, MemoryType, Pointer, Version, architecture, hipDeviceProp_tR0600, pointer};
pub use bindings::*;

use crate::{Attempt, LoadError, Loaded, Places, Refusal, find};

/// Names of HIP's library: a new version number with each major version of ROCm. The newest known one comes first,
/// and the name without a number, which may mean any version, last.
pub const NAMES: &[&str] = &["libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", "libamdhip64.so"];

/// Finds HIP. It stays loaded until the process ends.
///
/// # Errors
/// Returns the files that were tried, and why each failed.
pub fn load(places: &Places) -> Result<Loaded<HipLibrary>, LoadError> {
    let found = find("the HIP runtime of ROCm", NAMES, places, c"hipInit")?;
    // SAFETY: a library of this name that has HIP's first function is HIP, and is never unloaded.
    let functions = unsafe {
        HipLibrary {
            hip: Hip::resolve(found.functions),
            later: HipLater::resolve(found.functions),
            // ROCm 5 and 6 have the compiler in the same library.
            hiprtc: Hiprtc::resolve(found.functions),
        }
    };
    Ok(Loaded { functions, name: found.name })
}

/// The functions in HIP's library.
#[derive(Debug, Clone, Copy)]
pub struct HipLibrary {
    /// Functions that every version has.
    pub hip: Hip,
    /// Functions that only later versions have.
    pub later: HipLater,
    hiprtc: Hiprtc,
}

impl std::ops::Deref for HipLibrary {
    type Target = Hip;

    fn deref(&self) -> &Hip {
        &self.hip
    }
}

impl Hip {
    /// Calls that allocate, free or wait are made in the relaxed mode: in the default one HIP refuses them beside a capture of any
    /// thread, and ends that capture.
    fn relaxed(&self) -> RelaxedMode<'_> {
        RelaxedMode::enter(self)
    }
}

/// While it lives, its thread is in the relaxed mode of captures.
struct RelaxedMode<'a> {
    hip: &'a Hip,
    /// Absent where HIP has not exchanged it.
    before: Option<hipStreamCaptureMode>,
}

impl<'a> RelaxedMode<'a> {
    fn enter(hip: &'a Hip) -> Self {
        let mut before = hipStreamCaptureMode::hipStreamCaptureModeRelaxed;
        // SAFETY: a place for the mode, which HIP exchanges with that of the thread.
        let exchanged = unsafe { hip.hipThreadExchangeStreamCaptureMode(&mut before) };
        Self { hip, before: (exchanged == Ok(hipError_t::hipSuccess)).then_some(before) }
    }
}

impl Drop for RelaxedMode<'_> {
    fn drop(&mut self) {
        if let Some(before) = &mut self.before {
            // SAFETY: as above.
            let _ = unsafe { self.hip.hipThreadExchangeStreamCaptureMode(before) };
        }
    }
}

/// Finds hipRTC for a HIP of that version: `libhiprtc` of the same major version, or of no version; where there is
/// none, HIP's own library, which has the compiler in ROCm 5 and 6. A compiler of another major version is not taken,
/// because HIP may not be able to load its output.
///
/// # Errors
/// Returns the files that were tried, and why each failed.
pub fn load_hiprtc(
    places: &Places,
    hip: &Loaded<HipLibrary>,
    version: Version,
) -> Result<Loaded<Hiprtc>, LoadError> {
    let numbered = format!("libhiprtc.so.{}", version.major());
    let names = [numbered.as_str(), "libhiprtc.so"];
    match find("the run-time compiler of ROCm (hipRTC)", &names, places, c"hiprtcCompileProgram") {
        // SAFETY: a library of this name that has hipRTC's main function is hipRTC, and is never unloaded.
        Ok(found) => Ok(Loaded { functions: unsafe { Hiprtc::resolve(found.functions) }, name: found.name }),
        Err(_) if hip.functions.hiprtc.missing().all(|name| name != "hiprtcCompileProgram") => {
            Ok(Loaded { functions: hip.functions.hiprtc, name: hip.name.clone() })
        }
        Err(mut error) => {
            let refusal = Refusal::Other("hiprtcCompileProgram".to_owned());
            error.attempts.push(Attempt { name: hip.name.clone(), refusal });
            Err(error)
        }
    }
}
