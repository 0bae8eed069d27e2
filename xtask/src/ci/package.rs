//! Every crate that is to be published can be packaged.

use crate::{shell::Shell, steps::Outcome, workspace::Workspace};
use anyhow::{Context, Result};
use std::{env, fs, io, path::PathBuf};

/// Packages all crates that are published and, if asked for, builds each from its package.
///
/// All in one command: since 1.90 cargo builds each package against the others of the same command, so that crates
/// that are not on the registry yet can depend on each other.
pub(crate) fn run(workspace: &Workspace, builds: bool) -> Result<Outcome> {
    let published: Vec<_> = workspace.published().collect();
    // Faults that `cargo publish` refuses and `cargo package` only warns about.
    for package in &published {
        let lacks = [
            ("a description", package.description.is_none()),
            ("a licence", package.license.is_none()),
            ("a repository", package.repository.is_none()),
        ];
        if let Some((what, _)) = lacks.iter().find(|(_, missing)| *missing) {
            return Ok(Outcome::Failed(format!("{} has no {}", package.name, what.trim_start_matches("a "))));
        }
    }
    let names: Vec<_> =
        published.iter().map(|package| format!("{}-{}", package.name, package.version)).collect();
    forget_unpacked(&names)?;
    let mut arguments = vec!["package", "--allow-dirty"];
    if !builds {
        arguments.push("--no-verify");
    }
    for package in &published {
        arguments.extend(["--package", package.name.as_str()]);
    }
    let outcome = Outcome::of(&Shell::new(workspace.root()).run("cargo", &arguments)?, "cargo package");
    if builds && outcome.is_passed() { program_of_packages(workspace, &names) } else { Ok(outcome) }
}

/// Builds and runs a new program against the packages as they were unpacked: what a user gets by `cargo add gpumem`.
fn program_of_packages(workspace: &Workspace, names: &[String]) -> Result<Outcome> {
    let folder = tempfile::tempdir()?;
    let unpacked = workspace.target("package");
    let mut manifest = String::from(PROGRAM_MANIFEST);
    for name in names {
        let (package, _) = name.rsplit_once('-').context("a package without a version")?;
        let path = unpacked.join(name);
        manifest += &format!("{package} = {{ path = {:?} }}\n", path.to_string_lossy());
    }
    fs::write(folder.path().join("Cargo.toml"), manifest)?;
    fs::create_dir(folder.path().join("src"))?;
    fs::write(folder.path().join("src/main.rs"), PROGRAM)?;
    let shell = Shell::new(folder.path()).env("CARGO_TARGET_DIR", workspace.target("package/program"));
    Ok(Outcome::of(&shell.run("cargo", &["run", "--quiet"])?, "a program outside of the workspace"))
}

/// All features, so that every crate takes part.
const PROGRAM_MANIFEST: &str = r#"[package]
name = "outside"
edition = "2024"

[dependencies]
gpumem = { version = "*", features = ["cuda", "roc", "collectives", "cudarc"] }

[patch.crates-io]
"#;

const PROGRAM: &str = r#"use gpumem::{kernel::prelude::*, prelude::*};

#[gpumem::kernel]
fn double(x: Own<f32>) {
    if global_id(0) < x.len() {
        x[own()] *= 2.0;
    }
}

fn main() -> gpumem::Result<()> {
    let device = Device::open("host")?;
    let mut array = device.to_device(&[1.0f32, 2.0])?;
    let stream = device.stream()?;
    double().load(&device)?.launch(&stream, &config_for_items(2, 64), (&mut array,))?;
    assert_eq!(array.copy_to_host()?.to_vec(), [2.0, 4.0]);
    Ok(())
}
"#;

/// Removes these packages as an earlier run unpacked them.
///
/// Cargo puts the packages of one command into a registry below `target/package`, and unpacks them from there into its
/// home, under a name that only the path of that registry decides. It trusts packages that it finds unpacked: without
/// this, a second run in the same place builds against the sources of the first.
fn forget_unpacked(names: &[String]) -> Result<()> {
    let home = env::var_os("CARGO_HOME")
        .map(PathBuf::from)
        .or_else(|| env::home_dir().map(|home| home.join(".cargo")))
        .context("neither CARGO_HOME nor a home directory is known")?;
    let registries = match fs::read_dir(home.join("registry").join("src")) {
        Ok(registries) => registries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    for registry in registries {
        let registry = registry?;
        // `<host>-<hash>`: a registry in a folder has no host.
        if !registry.file_name().to_string_lossy().starts_with('-') {
            continue;
        }
        for name in names {
            match fs::remove_dir_all(registry.path().join(name)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
                _ => {}
            }
        }
    }
    Ok(())
}
