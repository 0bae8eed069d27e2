//! The library, found once.

use crate::identity::EngineKind;
use gpumem_core::{CollectiveLibrary, LoadError, LoadFailure, process::ProcessGuard};
use gpumem_nccl_sys::{Engine, Library, Places, Refusal};
use std::sync::{Mutex, PoisonError};

/// Whether an engine is that of a library.
pub(crate) fn is_engine_of(kind: EngineKind, library: CollectiveLibrary) -> bool {
    let wanted = match library {
        CollectiveLibrary::Nccl => EngineKind::Nccl,
        CollectiveLibrary::Rccl => EngineKind::Rccl,
        _ => return false,
    };
    kind == wanted
}

/// The library of an engine, which is looked for again until it was found.
pub(super) fn library(kind: EngineKind) -> Result<&'static Library, LoadError> {
    static FOUND: Mutex<[Option<&'static Library>; 2]> = Mutex::new([None; 2]);
    let (place, engine) = match kind {
        EngineKind::Rccl => (1, Engine::Rccl),
        _ => (0, Engine::Nccl),
    };
    let mut found = FOUND.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(library) = found[place] {
        return Ok(library);
    }
    let library = gpumem_nccl_sys::load(&Places::from_environment(engine)).map_err(told)?;
    for other in library.other_copies() {
        tracing::warn!(used = %library.path.display(), other = %other.display(), "the process has loaded two copies of a library");
    }
    // The end of the process is noticed before the library's own clean-up.
    ProcessGuard::of_driver();
    let library: &'static Library = Box::leak(Box::new(library));
    found[place] = Some(library);
    Ok(library)
}

/// The same error in the words of the traits.
fn told(error: gpumem_nccl_sys::LoadError) -> LoadError {
    let failure = match error.telling().map(|attempt| &attempt.refusal) {
        Some(Refusal::NotLoaded(message)) => LoadFailure::Refused { message: message.clone() },
        Some(Refusal::Other(name)) => LoadFailure::MissingSymbol { name: name.clone() },
        Some(Refusal::Version { found, oldest }) => {
            LoadFailure::TooOld { have: found.clone(), need: oldest.clone() }
        }
        _ => LoadFailure::Missing,
    };
    let tried = error.attempts.iter().map(|attempt| attempt.name.display().to_string()).collect();
    LoadError { library: error.library, tried, failure }
}
