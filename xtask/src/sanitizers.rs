//! Tools that find races and invalid accesses, which tests alone do not find.

use crate::{shell::Shell, steps::Outcome, tools, workspace::Workspace};
use anyhow::Result;

/// The packages whose tests AddressSanitizer watches by night: those that touch memory of the host through pointers.
pub(crate) const ASAN_NIGHTLY: &[&str] =
    &["gpumem-host", "gpumem-runtime", "gpumem-memory", "gpumem-kernel", "gpumem-collectives", "gpumem"];

/// Tests of safe code that once was unsound, which are watched for every change: a package and the arguments that choose its
/// test.
const ASAN_SOUNDNESS: [&str; 4] = ["--package", "gpumem-integration", "--test", "soundness"];

/// A build with a sanitizer names its target, so that build scripts and macros go without.
pub(crate) const TARGET: &str = "x86_64-unknown-linux-gnu";

/// Runs the models of loom, with so many preemptions in an execution where that is said.
pub(crate) fn loom(workspace: &Workspace, preemptions: Option<&str>) -> Result<Outcome> {
    if !workspace.has_test("gpumem-runtime", "loom") {
        return Ok(Outcome::Skipped("gpumem-runtime has no test `loom` yet".to_owned()));
    }
    let mut shell = Shell::new(workspace.root())
        .env("RUSTFLAGS", "--cfg loom")
        .env("CARGO_TARGET_DIR", workspace.target("loom"));
    if let Some(preemptions) = preemptions {
        shell = shell.env("LOOM_MAX_PREEMPTIONS", preemptions);
    }
    let packages = ["--package", "gpumem-runtime", "--package", "gpumem-collectives"];
    let arguments = [&["test"], &packages[..], &["--profile", "loom", "--test", "loom"]].concat();
    let done = shell.run("cargo", &arguments)?;
    Ok(Outcome::of(&done, "loom"))
}

/// Runs the tests of soundness, and before them those of packages.
pub(crate) fn asan(workspace: &Workspace, packages: &[&str]) -> Result<Outcome> {
    if let Some(reason) = no_sanitizer(workspace).or_else(|| tools::missing_package(workspace, packages)) {
        return Ok(Outcome::Skipped(reason));
    }
    let shell = address_sanitizer(workspace);
    if !packages.is_empty() {
        // No examples of the documentation: nightly gives some compile errors other numbers.
        let mut arguments = vec!["+nightly", "test", "--lib", "--tests", "--target", TARGET];
        arguments.extend(packages.iter().flat_map(|package| ["--package", package]));
        let outcome = Outcome::of(&shell.run("cargo", &arguments)?, "AddressSanitizer");
        if !outcome.is_passed() {
            return Ok(outcome);
        }
    }
    let soundness = [&["+nightly", "test", "--target", TARGET][..], &ASAN_SOUNDNESS].concat();
    Ok(Outcome::of(&shell.run("cargo", &soundness)?, "AddressSanitizer over the soundness tests"))
}

/// The reason why nothing can be built with a sanitizer here.
pub(crate) fn no_sanitizer(workspace: &Workspace) -> Option<String> {
    if cfg!(not(all(target_arch = "x86_64", target_os = "linux"))) {
        return Some(format!("this is not {TARGET}"));
    }
    tools::missing(workspace, "the nightly toolchain", &["+nightly", "--version"])
}

/// Commands of cargo with AddressSanitizer.
pub(crate) fn address_sanitizer(workspace: &Workspace) -> Shell<'_> {
    Shell::new(workspace.root())
        // The second makes the host backend poison the unallocated memory of a pool.
        .env("RUSTFLAGS", "-Zsanitizer=address --cfg gpumem_asan")
        .env("RUSTDOCFLAGS", "-Zsanitizer=address")
        // Tests that forget guards on purpose leak by design; others ask for more memory than there is, and are to be
        // told so, not to be ended.
        .env("ASAN_OPTIONS", "detect_leaks=0:allocator_may_return_null=1")
        // AMD's compiler frees memory that its own C++ library allocated before the sanitizer was loaded.
        .env("GPUMEM_HIPRTC", "off")
        // NVIDIA's opens a library in its own folder, where the sanitizer's dlopen does not look.
        .env("GPUMEM_NVRTC", "off")
        // Its launcher ends programs that are slow.
        .env("GPUMEM_MPI", "")
        .env("CARGO_TARGET_DIR", workspace.target("asan"))
}
