//! Helpers of the proof programs: child processes in which AMD's libraries find the simulator.
#![allow(dead_code)] // Each test program uses its part.
#![allow(clippy::unwrap_used)] // A proof program that cannot go on has failed.

pub(crate) mod hip;
pub(crate) mod hsa;

use std::{
    env, fs,
    os::unix::{fs::symlink, process::ExitStatusExt},
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

/// Says to a test that it is the child process, and which part it plays.
const ROLE: &str = "ROCSIM_TEST_ROLE";

/// A child that is not done after this many seconds hangs.
const PATIENCE: u32 = 60;

/// The part that this process plays, if it is a child. A child that hangs is ended by a signal.
pub(crate) fn role() -> Option<String> {
    let role = env::var(ROLE).ok()?;
    // SAFETY: sets a timer; the signal is not caught, so that it ends the process.
    unsafe { libc::alarm(PATIENCE) };
    Some(role)
}

/// Loads functions of a shared library into a structure of safe methods.
///
/// The methods are as unsafe as C. They are private to the proof programs, which take care of their arguments.
macro_rules! api {
    ($(#[$meta:meta])* $name:ident = $library:literal {
        $($function:ident($($argument:ident: $type:ty),* $(,)?) -> $result:ty;)*
    }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy)]
        pub(crate) struct $name { $($function: unsafe extern "C" fn($($type),*) -> $result,)* }

        impl $name {
            /// Loads the library for the rest of the process.
            pub(crate) fn load() -> Self {
                // SAFETY: initialisers of AMD's libraries have no preconditions.
                let library = Box::leak(Box::new(unsafe { libloading::Library::new($library) }.unwrap()));
                // SAFETY: the types are those of AMD's headers.
                unsafe {
                    Self { $($function: *library.get(concat!(stringify!($function), "\0").as_bytes()).unwrap(),)* }
                }
            }

            $(
                #[allow(clippy::too_many_arguments)]
                pub(crate) fn $function(&self, $($argument: $type),*) -> $result {
                    // SAFETY: the proof programs pass arguments as AMD's headers demand.
                    unsafe { (self.$function)($($argument),*) }
                }
            )*
        }
    };
}
pub(crate) use api;

/// Fails with the call's text if it does not return 0.
macro_rules! ok {
    ($call:expr) => {
        assert_eq!($call, 0, "{}", stringify!($call))
    };
}
pub(crate) use ok;

api! {
    /// The simulator's own functions.
    Simulator = "libhsakmt.so.1" {
        rocsim_register_kernel(name: *const std::ffi::c_char, body: rocsim::kernels::registry::KernelBody) -> i32;
        rocsim_unregister_kernel(name: *const std::ffi::c_char) -> i32;
        rocsim_counter(name: *const std::ffi::c_char) -> u64;
    }
}

/// The directory in which the simulator has AMD's name.
fn library_directory() -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("rocsim");
    fs::create_dir_all(&directory).unwrap();
    let simulator = env::current_exe().unwrap().with_file_name("librocsim.so");
    assert!(simulator.exists(), "{} was not built", simulator.display());
    let link = directory.join("libhsakmt.so.1");
    if fs::read_link(&link).ok().as_deref() != Some(&*simulator) {
        // Other tests, of this program and of others, do the same at the same time.
        let own = directory.join(format!("{}.{:?}.link", std::process::id(), std::thread::current().id()));
        symlink(&simulator, &own).unwrap();
        fs::rename(&own, &link).unwrap();
    }
    directory
}

/// Environment variables of one child.
pub(crate) type Variables<'a> = &'a [(&'a str, &'a str)];

/// Runs the test of that name once more, as a child in the given role, on the simulator.
pub(crate) fn child(test: &str, role: &str, variables: Variables) -> Output {
    Command::new(env::current_exe().unwrap())
        .args([test, "--exact", "--nocapture", "--test-threads=1"])
        .env(ROLE, role)
        .env("LD_LIBRARY_PATH", library_directory())
        .envs(variables.iter().copied())
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

/// The output of a child, for messages.
pub(crate) fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// Runs a child that must succeed.
pub(crate) fn child_succeeds(test: &str, role: &str, variables: Variables) {
    let output = child(test, role, variables);
    assert!(output.status.success(), "{role} with {variables:?}: {}\n{}", output.status, text(&output));
}

/// Runs a child that AMD's runtime must abort, with these words.
pub(crate) fn child_aborts(test: &str, role: &str, variables: Variables, words: &[&str]) {
    let output = child(test, role, variables);
    let text = text(&output);
    assert_eq!(output.status.signal(), Some(libc::SIGABRT), "{role}: {}\n{text}", output.status);
    for word in words {
        assert!(text.contains(word), "{role}: {word:?} is missing in\n{text}");
    }
}

/// One machine of the matrix.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Machine {
    pub(crate) gpus: usize,
    pub(crate) large_bar: bool,
    pub(crate) sdma: bool,
}

impl Machine {
    /// All combinations: one and two GPUs, their memory visible to the host or not, copies by DMA engines or kernels.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        (0..8).map(|bits| Self { gpus: 1 + (bits & 1), large_bar: bits & 2 != 0, sdma: bits & 4 != 0 })
    }

    /// The machine that this child runs on.
    pub(crate) fn here() -> Self {
        let is = |name: &str, value: &str| env::var(name).is_ok_and(|text| text == value);
        Self {
            gpus: if is("ROCSIM_GPUS", "2") { 2 } else { 1 },
            large_bar: is("ROCSIM_LARGE_BAR", "1"),
            sdma: !is("HSA_ENABLE_SDMA", "0"),
        }
    }

    pub(crate) fn variables(self) -> [(&'static str, &'static str); 3] {
        let flag = |flag| if flag { "1" } else { "0" };
        [
            ("ROCSIM_GPUS", if self.gpus == 2 { "2" } else { "1" }),
            ("ROCSIM_LARGE_BAR", flag(self.large_bar)),
            ("HSA_ENABLE_SDMA", flag(self.sdma)),
        ]
    }
}

/// Runs a test on every machine of the matrix.
pub(crate) fn on_all_machines(test: &str) {
    for machine in Machine::all() {
        child_succeeds(test, "matrix", &machine.variables());
    }
}

/// Bytes that differ from place to place and from seed to seed.
pub(crate) fn noise(bytes: usize, seed: u32) -> Vec<u8> {
    let mut state = seed.wrapping_mul(2_654_435_761) | 1;
    (0..bytes)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            state as u8
        })
        .collect()
}

/// Whether the host can read the byte at an address, found out without a fault.
pub(crate) fn host_can_read(address: *const u8) -> bool {
    let mut byte = 0u8;
    let local = libc::iovec { iov_base: (&raw mut byte).cast(), iov_len: 1 };
    let remote = libc::iovec { iov_base: address.cast_mut().cast(), iov_len: 1 };
    // SAFETY: the kernel checks the remote address and fails instead of faulting.
    unsafe { libc::process_vm_readv(libc::getpid(), &local, 1, &remote, 1, 0) == 1 }
}
