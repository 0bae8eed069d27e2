//! The workspace as cargo describes it.

use anyhow::{Context, Result};
use cargo_metadata::{Metadata, MetadataCommand, Package, Target};
use std::path::{Path, PathBuf};

/// Members that need more than Rust to build, so that commands over the whole workspace leave them out.
const NEED_MORE_THAN_RUST: &[&str] = &["gpumem-python"];

/// The workspace around the current directory.
pub(crate) struct Workspace {
    metadata: Metadata,
}

impl Workspace {
    pub(crate) fn load() -> Result<Self> {
        let metadata = MetadataCommand::new().no_deps().exec().context("cargo metadata")?;
        Ok(Self { metadata })
    }

    pub(crate) fn root(&self) -> &Path {
        self.metadata.workspace_root.as_std_path()
    }

    /// A folder below the target directory, for builds whose flags would otherwise undo those of the usual build.
    pub(crate) fn target(&self, name: &str) -> PathBuf {
        self.metadata.target_directory.join(name).into_std_path_buf()
    }

    pub(crate) fn packages(&self) -> impl Iterator<Item = &Package> {
        self.metadata.packages.iter()
    }

    /// The members that a registry is to have.
    pub(crate) fn published(&self) -> impl Iterator<Item = &Package> {
        self.packages().filter(|package| package.publish.as_deref() != Some(&[]))
    }

    pub(crate) fn package(&self, name: &str) -> Option<&Package> {
        self.packages().find(|package| package.name == name)
    }

    pub(crate) fn has_test(&self, package: &str, test: &str) -> bool {
        self.package(package).is_some_and(|package| test_names(package).any(|name| name == test))
    }

    /// Names of the integration tests of one member.
    pub(crate) fn tests_of(&self, package: &str) -> impl Iterator<Item = &str> {
        self.package(package).into_iter().flat_map(test_names)
    }

    /// Names of the integration tests of all members, each once.
    pub(crate) fn tests(&self) -> Vec<&str> {
        let mut names: Vec<_> = self
            .packages()
            .filter(|package| !NEED_MORE_THAN_RUST.contains(&package.name.as_str()))
            .flat_map(test_names)
            .collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// `--workspace` and the `--exclude`s that belong to it.
    pub(crate) fn all_members(&self) -> Vec<&str> {
        let mut arguments = vec!["--workspace"];
        for name in NEED_MORE_THAN_RUST.iter().copied().filter(|name| self.package(name).is_some()) {
            arguments.extend(["--exclude", name]);
        }
        arguments
    }
}

/// Targets that cargo builds with the default features. The check of all sets of features covers the others.
fn test_names(package: &Package) -> impl Iterator<Item = &str> {
    let defaults = package.features.get("default");
    let is_there = move |feature: &String| defaults.is_some_and(|defaults| defaults.contains(feature));
    let is_built = move |target: &&Target| target.is_test() && target.required_features.iter().all(&is_there);
    package.targets.iter().filter(is_built).map(|target| target.name.as_str())
}
