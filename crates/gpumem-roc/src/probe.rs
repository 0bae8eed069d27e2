//! Finding HIP, hipRTC and the HSA runtime, once each, before anything else is called.

use crate::{
    NAME,
    error::{HIP, Status},
    hsa_runtime::Runtime,
};
use gpumem_core::{
    Error, ErrorKind, LoadError, LoadFailure, Result,
    process::{OnceBeforeFork, ProcessGuard},
};
use gpumem_sys::{
    Loaded, Places, Refusal,
    hip::{HipLibrary, Hiprtc, Version},
};
use std::sync::OnceLock;

/// The oldest supported HIP; the declarations are made from its headers.
const OLDEST: Version = Version::new(50_200_000);

/// HIP, initialised in this process.
pub(crate) struct Driver {
    pub(crate) hip: HipLibrary,
    pub(crate) version: Version,
    /// The process that it was initialised in; it does not survive a fork.
    pub(crate) origin: ProcessGuard,
    library: Loaded<HipLibrary>,
}

struct NotUsable {
    error: LoadError,
    /// HIP, where it works and has no device: its compiler needs none.
    without_device: Option<Box<(Loaded<HipLibrary>, Version)>>,
}

static DRIVER: OnceBeforeFork<Result<Driver, NotUsable>> = OnceBeforeFork::new();
/// hipRTC, and which one it is.
pub(crate) struct Rtc {
    pub(crate) api: Hiprtc,
    /// In words.
    pub(crate) version: String,
    /// That of the HIP that it comes with.
    pub(crate) hip: Version,
}

static HIPRTC: OnceBeforeFork<Result<Rtc, LoadError>> = OnceBeforeFork::new();
static HSA: OnceLock<Result<Runtime, LoadError>> = OnceLock::new();

/// `None` in a child that was forked while its parent was loading it.
fn load() -> Option<&'static Result<Driver, NotUsable>> {
    DRIVER.get_or_init(|| {
        let library = gpumem_sys::hip::load(&Places::from_environment())
            .map_err(|error| NotUsable { error: told(error), without_device: None })?;
        start(library)
    })
}

/// Whether HIP can be used.
pub(crate) fn probe() -> Result<(), LoadError> {
    match load() {
        Some(outcome) => outcome.as_ref().map(drop).map_err(|refusal| refusal.error.clone()),
        None => Err(LoadError::in_forked_child("the HIP runtime of ROCm")),
    }
}

/// HIP, or `None` where it works and has no device.
pub(crate) fn driver_if_any(operation: &'static str) -> Result<Option<&'static Driver>> {
    match load() {
        Some(Err(refusal)) if refusal.without_device.is_some() => Ok(None),
        _ => driver(operation).map(Some),
    }
}

pub(crate) fn driver(operation: &'static str) -> Result<&'static Driver> {
    match load() {
        Some(Ok(driver)) => driver.origin.check(NAME, operation).map(|()| driver),
        Some(Err(refusal)) => Err(Error::new(NAME, operation, refusal.error.clone())),
        None => Err(Error::new(NAME, operation, ErrorKind::ForkedChild)),
    }
}

/// HIP's library and its version, also where there is no device.
fn library(operation: &'static str) -> Result<(&'static Loaded<HipLibrary>, Version)> {
    match load() {
        Some(Err(NotUsable { without_device: Some(found), .. })) => Ok((&found.0, found.1)),
        _ => driver(operation).map(|driver| (&driver.library, driver.version)),
    }
}

/// The run-time compiler. It needs no device.
pub(crate) fn hiprtc(operation: &'static str) -> Result<&'static Rtc> {
    let (library, hip) = library(operation)?;
    let outcome = HIPRTC.get_or_init(|| {
        gpumem_sys::hip::load_hiprtc(&Places::from_environment(), library, hip)
            .map(|found| {
                // hipRTC's version number has not changed since ROCm 5. It ships with HIP, whose number tells the
                // build.
                let version = format!("hipRTC of HIP {hip} ({})", found.name.display());
                Rtc { api: found.functions, version, hip }
            })
            .map_err(told)
    });
    let failed = |error: LoadError| Error::new(NAME, operation, error);
    let named = "the run-time compiler of ROCm (hipRTC)";
    let Some(outcome) = outcome else { return Err(failed(LoadError::in_forked_child(named))) };
    outcome.as_ref().map_err(|error| failed(error.clone()))
}

/// The HSA runtime: the copy that HIP has loaded, where there is one.
pub(crate) fn hsa(operation: &'static str) -> Result<&'static Runtime> {
    driver(operation)?;
    let outcome = HSA.get_or_init(|| {
        let library = gpumem_sys::hsa::load(&Places::from_environment()).map_err(told)?;
        Runtime::start(library.functions).map_err(|status| LoadError {
            library: "the HSA runtime of ROCm",
            tried: vec![library.name.display().to_string()],
            failure: LoadFailure::Refused { message: status.to_string() },
        })
    });
    outcome.as_ref().map_err(|error| Error::new(NAME, operation, error.clone()))
}

fn start(library: Loaded<HipLibrary>) -> Result<Driver, NotUsable> {
    HIP.get_or_init(|| library.functions.hip);
    let tried = vec![library.name.display().to_string()];
    let mut no_device = None;
    match initialise(&library.functions, &mut no_device) {
        Ok(version) => {
            // Asked for after HIP has registered its own exit handler, so that ours runs before it.
            Ok(Driver { hip: library.functions, version, origin: ProcessGuard::of_driver(), library })
        }
        Err(failure) => Err(NotUsable {
            error: LoadError { library: "the HIP runtime of ROCm", tried, failure },
            without_device: no_device.map(|version| Box::new((library, version))),
        }),
    }
}

/// Notes the version in `no_device` where HIP works and has no device.
fn initialise(hip: &HipLibrary, no_device: &mut Option<Version>) -> Result<Version, LoadFailure> {
    let refused = |status: Status| LoadFailure::Refused { message: status.to_string() };
    if let Some(name) = hip.hip.missing().find(|name| NEEDED.contains(name)) {
        return Err(LoadFailure::MissingSymbol { name: name.to_owned() });
    }
    let version = Version::of(&hip.hip).map_err(|failure| refused(failure.into()))?;
    if version < OLDEST {
        return Err(LoadFailure::TooOld { have: version.to_string(), need: OLDEST.to_string() });
    }
    // SAFETY: no pointer is involved.
    let mut status = Status::from(unsafe { hip.hipInit(0) });
    let mut count = 0;
    if status.is_success() {
        // SAFETY: a place for a number.
        status = Status::from(unsafe { hip.hipGetDeviceCount(&mut count) });
    }
    if status.is_success() && count == 0 {
        status = Status::NO_DEVICE;
    }
    // Without a GPU, or without the kernel driver, ROCm 5 calls the first device invalid.
    if matches!(status, Status::NO_DEVICE | Status::INVALID_DEVICE) {
        *no_device = Some(version);
    }
    status.ok().map_err(refused)?;
    Ok(version)
}

/// Without these functions there is no backend. Any other missing function is an error of the call that needs it.
const NEEDED: &[&str] = &[
    "hipInit",
    "hipRuntimeGetVersion",
    "hipGetDeviceCount",
    "hipGetDevice",
    "hipSetDevice",
    "hipGetLastError",
    "hipDeviceGetAttribute",
    "hipDeviceSynchronize",
    "hipMalloc",
    "hipFree",
    "hipMemcpyAsync",
    "hipStreamCreateWithPriority",
    "hipStreamDestroy",
    "hipStreamSynchronize",
    "hipStreamWaitEvent",
    "hipEventCreateWithFlags",
    "hipEventRecord",
    "hipEventQuery",
    "hipEventSynchronize",
];

/// The same error in the words of the traits. Naming what a found library lacks is a better answer than that another
/// name was not found.
fn told(error: gpumem_sys::LoadError) -> LoadError {
    let failure = match error.telling().map(|attempt| &attempt.refusal) {
        Some(Refusal::NotLoaded(message)) => LoadFailure::Refused { message: message.clone() },
        Some(Refusal::Other(name)) => LoadFailure::MissingSymbol { name: name.clone() },
        _ => LoadFailure::Missing,
    };
    let tried = error.attempts.iter().map(|attempt| attempt.name.display().to_string()).collect();
    LoadError { library: error.library, tried, failure }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpumem_sys::Attempt;

    fn attempt(name: &str, refusal: Refusal) -> Attempt {
        Attempt { name: name.into(), refusal }
    }

    #[test]
    fn the_reason_is_that_of_the_first_library_that_is_there() {
        let mut error =
            gpumem_sys::LoadError { library: "HIP", attempts: vec![attempt("a", Refusal::Missing)] };
        assert_eq!(told(error.clone()).failure, LoadFailure::Missing);
        error.attempts.push(attempt("b", Refusal::NotLoaded("words".to_owned())));
        error.attempts.push(attempt("c", Refusal::Other("hipInit".to_owned())));
        let seen = told(error);
        assert_eq!(seen.failure, LoadFailure::Refused { message: "words".to_owned() });
        assert_eq!((seen.library, seen.tried), ("HIP", ["a", "b", "c"].map(str::to_owned).to_vec()));
    }
}
