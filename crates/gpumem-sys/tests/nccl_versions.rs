//! Tests the differences between the versions of NCCL and RCCL, against libraries that have the binary interface of
//! some.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod mock;

use gpumem_sys::nccl::{
    Engine, Environment, Failure, Library, LoadError, MissingSymbol, Places, Refusal, load, ncclResult_t,
};
use std::{
    path::{Path, PathBuf},
    ptr::null_mut,
};

/// A library of that version, in a separate folder for each test.
fn library(test: &str, version: &str) -> PathBuf {
    mock::build("nccl", &[("nccl", version)], &format!("versions/{test}/{version}"), "libmock.so", None)
}

fn named(engine: Engine, path: &Path) -> Result<Library, LoadError> {
    let environment = Environment { library: Some(path.into()), ..Environment::default() };
    load(&Places::new(engine, &environment))
}

#[test]
fn one_table_serves_nccl_and_rccl() {
    for (engine, version) in [(Engine::Nccl, "2.18.3"), (Engine::Nccl, "2.32.3"), (Engine::Rccl, "2.13.4")] {
        let path = library("table", version);
        let library = named(engine, &path).unwrap();
        assert_eq!((library.version.to_string().as_str(), library.engine), (version, engine));
        assert_eq!(library.path, path);
        // SAFETY: the mock's functions take anything.
        let revoked = unsafe { library.ncclCommRevoke(null_mut(), 0) };
        // SAFETY: as above.
        let all_to_all =
            unsafe { library.rccl.ncclAllToAll(null_mut(), null_mut(), 0, ncclInt8, null_mut(), null_mut()) };
        if version == "2.32.3" {
            assert_eq!(revoked, Ok(ncclResult_t::ncclInvalidUsage));
        } else {
            assert_eq!(revoked, Err(MissingSymbol("ncclCommRevoke")));
            let refused = library.check(revoked).unwrap_err();
            assert_eq!(
                refused.to_string(),
                format!("ncclCommRevoke is missing in {version}; NCCL has it since 2.28.7")
            );
        }
        if engine == Engine::Rccl {
            assert_eq!(all_to_all, Ok(ncclResult_t::ncclRemoteError));
        } else {
            let refused = library.check(all_to_all).unwrap_err();
            assert_eq!(
                refused,
                Failure::Unsupported { what: "ncclAllToAll", version: library.version, since: None }
            );
        }
    }
}

#[allow(non_upper_case_globals, reason = "the name of the library")]
const ncclInt8: gpumem_sys::nccl::ncclDataType_t = gpumem_sys::nccl::ncclDataType_t::ncclInt8;

#[test]
fn identities_go_by_value_and_results_are_errors_with_the_librarys_words() {
    let nccl = named(Engine::Nccl, &library("results", "2.18.3")).unwrap();
    let id = nccl.unique_id().unwrap();
    let mut communicator = null_mut();
    let mut join = |rank| {
        // SAFETY: the mock's function takes anything.
        nccl.check(unsafe { nccl.ncclCommInitRank(&mut communicator, 2, id, rank) })
    };
    assert_eq!(join(1), Ok(()));
    let refused = join(2).unwrap_err();
    assert_eq!(refused.to_string(), "ncclInvalidArgument (4): an argument is invalid: what was last");
    // No version that is known has this result.
    let Failure::Status { status, message } = join(99).unwrap_err() else { panic!() };
    assert_eq!(
        (status, message.as_str()),
        (ncclResult_t(99), "a result that this mock does not know: what was last")
    );
    assert_eq!(communicator.addr(), 0x1234);
}

/// The one refusal of a library that a variable names.
fn refusal(engine: Engine, path: &Path) -> (Refusal, String) {
    let error = named(engine, path).unwrap_err();
    let text = error.to_string();
    let [attempt] = error.attempts.try_into().unwrap();
    assert_eq!(attempt.name, path);
    assert!(text.contains(engine.variable()) && text.contains(path.to_str().unwrap()), "{text}");
    (attempt.refusal, text)
}

#[test]
fn a_named_library_that_fails_is_an_error_without_further_attempts() {
    let (refused, text) = refusal(Engine::Nccl, &library("refused", "2.17.1"));
    assert_eq!(refused, Refusal::Version { found: "2.17.1".to_owned(), oldest: "2.18.1".to_owned() });
    assert!(text.ends_with("its version is 2.17.1, and 2.18.1 is the oldest that serves"), "{text}");
    // AMD's library of that version serves.
    assert!(named(Engine::Rccl, &library("refused", "2.17.1")).is_ok());

    let (refused, _) = refusal(Engine::Nccl, &library("refused", "broken"));
    assert!(
        matches!(&refused, Refusal::Version { found, .. } if found == "23203 (ncclInternalError)"),
        "{refused}"
    );
    let (refused, _) = refusal(Engine::Nccl, &library("refused", "other"));
    assert_eq!(refused, Refusal::Other("ncclGetVersion".to_owned()));
    let (refused, _) = refusal(Engine::Rccl, Path::new("/nowhere/librccl.so.1"));
    assert_eq!(refused, Refusal::Missing);
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("libnccl.so.2");
    std::fs::write(&text, "not a library").unwrap();
    assert!(matches!(refusal(Engine::Nccl, &text).0, Refusal::NotLoaded(_)));
}
