//! The library, found once.

use crate::{identity::EngineKind, report};
use gpumem_core::{
    CollectiveLibrary, LoadError, LoadFailure,
    process::{OnceBeforeFork, PerProcess, ProcessGuard},
};
use gpumem_sys::nccl::{Engine, Environment, Library, Places, Refusal};
use std::{
    iter,
    path::PathBuf,
    sync::{Mutex, PoisonError},
};

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
    static FOUND: [OnceBeforeFork<&'static Library>; 2] = [const { OnceBeforeFork::new() }; 2];
    static SEARCH: PerProcess<Mutex<()>> = PerProcess::new(Mutex::default);
    let (place, engine) = match kind {
        EngineKind::Rccl => (1, Engine::Rccl),
        _ => (0, Engine::Nccl),
    };
    // Over the search: two threads would load the library twice. Nothing else is locked under it but what the loader locks.
    let search = SEARCH.get().lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(library) = FOUND[place].get() {
        return Ok(library);
    }
    let environment = Environment { folders: folders(), ..Environment::current(engine) };
    let library = gpumem_sys::nccl::load(&Places::new(engine, &environment)).map_err(told)?;
    // The end of the process is noticed before the library's own clean-up.
    ProcessGuard::of_driver();
    let library: &'static Library = Box::leak(Box::new(library));
    // A child of which the parent was noting one looks for it each time.
    FOUND[place].get_or_init(|| library);
    drop(search);
    // Without the lock: a subscriber may look for the library.
    for other in library.other_copies() {
        let (used, other) = (library.path.display(), other.display());
        report::warn(&format!(
            "the process has loaded two copies of a library: {used} is used, and {other} is not"
        ));
    }
    Ok(library)
}

/// A library of collectives that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FoundLibrary {
    /// The file that it was loaded from.
    pub path: PathBuf,
    /// The version of NCCL's interface, also of RCCL: `2.28.9`.
    pub version: String,
    /// Other copies that the process has loaded. Their communicators cannot be used together with those of this one.
    pub other_copies: Vec<PathBuf>,
}

/// Loads the library that communicators on GPUs use, unless it is loaded already, and says where it was found. It needs no
/// GPU.
///
/// # Errors
/// Returns [`LoadError`], with everything that was tried, if it cannot be used.
pub fn find_library(library: CollectiveLibrary) -> Result<FoundLibrary, LoadError> {
    let kind = [EngineKind::Nccl, EngineKind::Rccl].into_iter().find(|kind| is_engine_of(*kind, library));
    let none = LoadError { library: "this library", tried: Vec::new(), failure: LoadFailure::Missing };
    let found = self::library(kind.ok_or(none)?)?;
    let other_copies = found.other_copies();
    Ok(FoundLibrary { path: found.path.clone(), version: found.version.to_string(), other_copies })
}

/// A folder to look in, and the others after it. A forked child has those of its parent, and waits for no lock of it.
struct Folder {
    path: OnceBeforeFork<PathBuf>,
    next: OnceBeforeFork<Box<Folder>>,
}

impl Folder {
    const fn new() -> Self {
        Self { path: OnceBeforeFork::new(), next: OnceBeforeFork::new() }
    }

    fn next(&self) -> Option<&Self> {
        self.next.get().map(|next| &**next)
    }
}

static FOLDERS: Folder = Folder::new();

fn folders() -> Vec<PathBuf> {
    let all = iter::successors(Some(&FOLDERS), |folder| folder.next());
    all.filter_map(|folder| folder.path.get().cloned()).collect()
}

/// Has this process look for NCCL and RCCL in a folder too, after the variables, the libraries that are loaded, and the
/// system's loader. A forked child looks there as well.
pub fn add_library_folder(folder: impl Into<PathBuf>) {
    let (folder, mut place) = (folder.into(), &FOLDERS);
    while place.path.get_or_init(|| folder.clone()) != Some(&folder) {
        let Some(next) = place.next.get_or_init(|| Box::new(Folder::new())) else { return };
        place = next;
    }
}

/// The same error in the words of the traits.
fn told(error: gpumem_sys::nccl::LoadError) -> LoadError {
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

#[cfg(test)]
mod tests {
    use super::{add_library_folder, folders};
    use std::path::PathBuf;

    #[test]
    fn each_folder_is_kept_once_in_the_order_of_the_calls() {
        for folder in ["/one", "/two", "/one", "/three", "/two"] {
            add_library_folder(folder);
        }
        assert_eq!(folders(), ["/one", "/two", "/three"].map(PathBuf::from));
    }
}
