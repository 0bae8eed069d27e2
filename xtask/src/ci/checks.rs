//! The short checks: each is one command of cargo, or the same one for several sets of features.

use super::Outcome;
use crate::{shell::Shell, tools, workspace::Workspace};
use anyhow::{Context, Result};

pub(super) fn fmt(workspace: &Workspace) -> Result<Outcome> {
    let done = Shell::new(workspace.root()).run("cargo", &["fmt", "--all", "--check"])?;
    Ok(Outcome::of(&done, "not formatted"))
}

pub(super) fn clippy(workspace: &Workspace) -> Result<Outcome> {
    let members = workspace.all_members();
    let mut sets = vec![[members.as_slice(), &["--all-features"]].concat()];
    // Features of the other crates add code, and leave none out.
    if workspace.package("gpumem").is_some() {
        for backend in ["host", "cuda", "roc"] {
            sets.push(vec!["--package", "gpumem", "--no-default-features", "--features", backend]);
        }
    }
    for set in sets {
        let arguments = [&["clippy", "--all-targets"], set.as_slice(), &["--", "-D", "warnings"]].concat();
        let outcome = Outcome::of(&Shell::new(workspace.root()).run("cargo", &arguments)?, &set.join(" "));
        if !outcome.is_passed() {
            return Ok(outcome);
        }
    }
    Ok(Outcome::Passed)
}

pub(super) fn docs(workspace: &Workspace) -> Result<Outcome> {
    let arguments = [&["doc", "--no-deps", "--all-features"], workspace.all_members().as_slice()].concat();
    let done = Shell::new(workspace.root()).env("RUSTDOCFLAGS", "-D warnings").run("cargo", &arguments)?;
    Ok(Outcome::of(&done, "cargo doc"))
}

pub(super) fn deny(workspace: &Workspace) -> Result<Outcome> {
    if let Some(reason) = tools::missing(workspace, "cargo-deny", &["deny", "--version"]) {
        return Ok(Outcome::Skipped(reason));
    }
    let shell = Shell::new(workspace.root());
    let check = |what: &[&str]| shell.run("cargo", &[&["deny", "--all-features", "check"], what].concat());
    let outcome = Outcome::of(&check(&["licenses", "bans", "sources"])?, "cargo deny");
    if !outcome.is_passed() {
        return Ok(outcome);
    }
    let advisories = check(&["advisories"])?;
    // The advisories come over the network; a machine without one can still check everything else.
    if advisories.output.contains("failed to fetch advisory database") {
        return Ok(Outcome::Skipped("the rest passed; the advisory database cannot be reached".to_owned()));
    }
    Ok(Outcome::of(&advisories, "advisories"))
}

/// Without a fuzzer: whether the targets still fit the library. By night they are run.
pub(super) fn fuzz(workspace: &Workspace) -> Result<Outcome> {
    let manifest = ["check", "--manifest-path", "fuzz/Cargo.toml"];
    let done = Shell::new(workspace.root())
        .env("CARGO_TARGET_DIR", workspace.target("fuzz"))
        // Nothing is linked, so the fuzzer, which is a C++ library, is not compiled.
        .env("CUSTOM_LIBFUZZER_PATH", "none/libfuzzer.a")
        .run("cargo", &manifest)?;
    Ok(Outcome::of(&done, "the fuzz targets"))
}

/// The oldest supported Rust, from the manifests: a number that is written twice is wrong once. Users do not compile
/// tests and examples, whose dependencies may need a newer Rust.
pub(super) fn msrv(workspace: &Workspace) -> Result<Outcome> {
    let package = workspace.package("gpumem-core").context("there is no package gpumem-core")?;
    let version = package.rust_version.as_ref().context("gpumem-core names no rust-version")?;
    let candidates = [version.to_string(), format!("{}.{}", version.major, version.minor)];
    let mut toolchains = candidates.iter().map(|name| format!("+{name}"));
    let installed = |name: &String| tools::missing(workspace, name, &[name, "--version"]).is_none();
    let Some(toolchain) = toolchains.find(installed) else {
        return Ok(Outcome::Skipped(format!("the toolchain {version} is not installed")));
    };
    let published = workspace.published().flat_map(|package| ["--package", package.name.as_str()]);
    let arguments: Vec<_> = [&toolchain, "check", "--all-features"].into_iter().chain(published).collect();
    let done = Shell::new(workspace.root())
        .env("CARGO_TARGET_DIR", workspace.target("msrv"))
        .run("cargo", &arguments)?;
    Ok(Outcome::of(&done, &toolchain))
}
