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
    Ok(Outcome::of(&Shell::new(workspace.root()).run("cargo", &arguments)?, "cargo package"))
}

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
