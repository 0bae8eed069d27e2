//! The real libraries, without a device: those in `GPUMEM_NCCL` and `GPUMEM_RCCL`, or the installed ones. A library
//! that is not there is skipped, with the reason; one that a variable names must be.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use gpumem_sys::nccl::{Engine, Failure, Library, Places, Version, load, ncclResult_t};
use std::{
    env,
    ffi::OsString,
    path::{Path, PathBuf},
    process::{Command, Output},
    ptr::null_mut,
};

/// Set in a process of [`again`]: the system's loader that it was started by, or nothing.
const LOADER: &str = "GPUMEM_TEST_LOADER";
/// Set in a process that is started by another system's loader, and so does not know its own file: that file.
const PROGRAM: &str = "GPUMEM_TEST_PROGRAM";

/// One library, and how this test is run again for it.
struct Real {
    library: Library,
    test: &'static str,
}

/// Finds the library. If a newer system's loader lies beside the library, a child process runs the test with that
/// loader, and this process is done.
fn real(engine: Engine, test: &'static str) -> Option<Real> {
    match load(&Places::from_environment(engine)) {
        Ok(library) => {
            println!("{engine:?} {} from {}", library.version, library.path.display());
            Some(Real { library, test })
        }
        Err(error) => {
            match loader_beside(engine) {
                Some(loader) => {
                    let done = again(test, Some(&loader), &[]);
                    println!("by {}:\n{}", loader.display(), text(&done));
                    assert!(done.status.success() && text(&done).contains("1 passed"));
                }
                None => {
                    assert!(env::var_os(engine.variable()).is_none(), "{error}");
                    println!("skipped: {error}");
                }
            }
            None
        }
    }
}

/// The loader that lies beside the library that the variable names: the library was taken out of another system's packages.
fn loader_beside(engine: Engine) -> Option<PathBuf> {
    let loader = Path::new(&env::var_os(engine.variable())?).parent()?.join("ld-linux-x86-64.so.2");
    (loader.exists() && env::var_os(LOADER).is_none()).then_some(loader)
}

/// Runs a test of this program again, in a child process.
fn again(test: &str, loader: Option<&Path>, variables: &[(&str, &str)]) -> Output {
    let program = env::var_os(PROGRAM).unwrap_or_else(|| env::current_exe().unwrap().into_os_string());
    let mut command = match loader {
        Some(loader) => {
            let mut command = Command::new(loader);
            command.arg("--library-path").arg(loader.parent().unwrap()).arg(&program);
            command
        }
        None => Command::new(&program),
    };
    command.args([test, "--exact", "--nocapture"]);
    command.env(LOADER, loader.map_or_else(OsString::new, OsString::from)).env(PROGRAM, program);
    command.envs(variables.iter().copied()).output().unwrap()
}

fn text(done: &Output) -> String {
    String::from_utf8_lossy(&done.stdout).into_owned() + &String::from_utf8_lossy(&done.stderr)
}

impl Real {
    /// Runs this test again, by the same loader.
    fn again(&self, variables: &[(&str, &str)]) -> Output {
        let loader = env::var_os(LOADER).filter(|loader| !loader.is_empty()).map(PathBuf::from);
        again(self.test, loader.as_deref(), variables)
    }

    /// A communicator of one rank, or the error. A machine with a device gives one, which goes at once.
    fn join(&self, rank: i32) -> Result<(), Failure> {
        let nccl = &self.library;
        let mut communicator = null_mut();
        let id = nccl.unique_id()?;
        // SAFETY: a place for the communicator.
        nccl.check(unsafe { nccl.ncclCommInitRank(&mut communicator, 1, id, rank) })?;
        // SAFETY: the communicator was just made.
        nccl.check(unsafe { nccl.ncclCommDestroy(communicator) })
    }
}

/// Checks that every version of both libraries must pass without a device.
fn without_a_device(real: &Real) {
    let library = &real.library;
    assert!(library.version >= library.engine.oldest());
    assert!(library.path.is_absolute() && library.path.is_file(), "{}", library.path.display());
    assert!(library.other_copies().is_empty());
    let bytes = || library.unique_id().unwrap().internal;
    assert_ne!(bytes(), bytes(), "two identities are the same");
    for function in library.missing() {
        let since = Version::since(function);
        assert!(
            since.is_some_and(|since| library.version < since),
            "{function} is missing, known since {since:?}"
        );
    }

    for status in [0, 1, 4, 8, 99].map(ncclResult_t) {
        match library.check(Ok(status)) {
            Ok(()) => assert_eq!(status, ncclResult_t::ncclSuccess),
            Err(Failure::Status { status: told, message }) => {
                assert!(told == status && !message.is_empty(), "{status:?}: {message:?}");
            }
            Err(other) => panic!("{other}"),
        }
    }

    match real.join(0) {
        Ok(()) => println!("there is a device"),
        Err(Failure::Status { status, message }) => {
            println!(
                "without a device: {} ({}): {message}",
                gpumem_sys::nccl::name(status).unwrap(),
                status.0
            );
            assert_eq!(status, ncclResult_t::ncclUnhandledCudaError);
            assert!(message.contains("failure"), "{message}");
        }
        Err(other) => panic!("{other}"),
    }
    assert!(real.join(7).is_err(), "a rank that there is not");
}

/// Processes that are told an address have the same identity without exchanging anything, if one process gets the same
/// one twice: NCCL 2.14 to 2.21 put a random number beside the address.
fn an_address_gives_the_same_identity_everywhere(real: &Real) {
    const ADDRESS: (&str, &str) = ("NCCL_COMM_ID", "127.0.0.1:29517");
    if env::var_os(ADDRESS.0).is_some() {
        let id = || real.library.unique_id().unwrap().internal;
        return println!("identities {:?} and {:?}", id(), id());
    }
    let identities = || {
        let done = real.again(&[ADDRESS]);
        assert!(done.status.success(), "{}", text(&done));
        text(&done)
            .lines()
            .find_map(|line| line.split_once("identities ")?.1.split_once(" and "))
            .map(|(first, second)| (first.to_owned(), second.to_owned()))
            .unwrap()
    };
    let (first, second) = identities();
    assert_eq!(first == identities().0, first == second, "{}", real.library.version);
    assert!(!first.contains(&format!("{:?}", real.library.unique_id().unwrap().internal)));
}

#[test]
fn nccl_without_a_device() {
    let Some(real) = real(Engine::Nccl, "nccl_without_a_device") else { return };
    without_a_device(&real);
    let missing: Vec<_> = real.library.missing().collect();
    for function in ["ncclCommRegister", "ncclCommDeregister", "ncclAlltoAll", "ncclCommRevoke"] {
        let lacks = Version::since(function).is_some_and(|since| real.library.version < since);
        assert_eq!(missing.contains(&function), lacks, "{function} in {}", real.library.version);
    }
    // Only the call of a function that is missing fails.
    if missing.contains(&"ncclCommRevoke") {
        let library = &real.library;
        // SAFETY: a function that the library does not have is not called.
        let called = library.check(unsafe { library.ncclCommRevoke(null_mut(), 0) });
        let (what, since) = ("ncclCommRevoke", Version::since("ncclCommRevoke"));
        assert_eq!(called, Err(Failure::Unsupported { what, version: library.version, since }));
        library.unique_id().unwrap();
    }
}

/// As PyTorch and CuPy load it: by its file, which the system's loader would not find.
#[test]
fn a_loaded_nccl_is_the_one_that_is_used() {
    const LOADED: &str = "GPUMEM_TEST_LOADED_BEFORE";
    let Some(path) = env::var_os(LOADED) else {
        let Some(real) = real(Engine::Nccl, "a_loaded_nccl_is_the_one_that_is_used") else { return };
        let path = real.library.path.to_str().unwrap();
        let done = real.again(&[(LOADED, path), ("GPUMEM_NCCL", "")]);
        assert!(done.status.success() && text(&done).contains("1 passed"), "{}", text(&done));
        return;
    };
    // SAFETY: NCCL may be loaded at any time.
    let before = unsafe { libloading::Library::new(&path) }.unwrap();
    let library = load(&Places::from_environment(Engine::Nccl)).unwrap();
    assert_eq!((library.path.as_os_str(), library.other_copies().len()), (path.as_os_str(), 0));
    // The loader's own list has one file, and its function is that of the copy that was loaded before.
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let files = maps.lines().filter_map(|line| line.split_whitespace().nth(5));
    let files: std::collections::BTreeSet<_> = files.filter(|file| file.contains("libnccl")).collect();
    assert_eq!(files.len(), 1, "{files:?}");
    // SAFETY: the function takes a place for a number.
    let function =
        unsafe { before.get::<unsafe extern "C" fn(*mut i32) -> i32>(b"ncclGetVersion\0") }.unwrap();
    let mut code = 0;
    // SAFETY: as above.
    assert_eq!(unsafe { function(&mut code) }, 0);
    assert_eq!(Version::from_code(code), Some(library.version));
}

#[test]
fn rccl_without_a_device() {
    let Some(real) = real(Engine::Rccl, "rccl_without_a_device") else { return };
    without_a_device(&real);
    let missing: Vec<_> = real.library.missing().collect();
    println!("missing: {}", missing.join(", "));
    assert!(real.library.rccl.missing().all(|name| name != "ncclAllToAll"));
}

#[test]
fn nccl_identities_of_an_address() {
    let Some(real) = real(Engine::Nccl, "nccl_identities_of_an_address") else { return };
    an_address_gives_the_same_identity_everywhere(&real);
}

#[test]
fn rccl_identities_of_an_address() {
    let Some(real) = real(Engine::Rccl, "rccl_identities_of_an_address") else { return };
    an_address_gives_the_same_identity_everywhere(&real);
}
