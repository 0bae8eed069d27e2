//! Builds the archived programs in one call of cargo, so that all share one set of features.

use super::manifest::{Kind, Program};
use crate::{artifacts, test_all::CONFORMANCE, workspace::Workspace};
use anyhow::Result;
use cargo_metadata::{Artifact, TargetKind};
use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
};

/// Tests that need a checkout or cargo (`headers`, `launcher`), that look at one set of features
/// (`single_backend_is_zst`), or that run the examples on the host, which the examples themselves do.
const STAY: &[&str] = &["single_backend_is_zst", "examples", "headers", "launcher"];
/// Has features of the same names as the facade's.
const FEATURED: [&str; 3] = ["gpumem", "gpumem-integration", "gpumem-bench"];

/// Every program with the file that cargo made of it, in the order in which they run.
pub(super) fn programs(workspace: &Workspace, features: &[String]) -> Result<BTreeMap<Program, PathBuf>> {
    let backends = ["host"].into_iter().chain(features.iter().map(String::as_str));
    let mut packages: Vec<String> = backends.map(|name| format!("gpumem-{name}")).collect();
    packages.extend(FEATURED.map(str::to_owned));
    packages.push("xtask".to_owned());
    if features.iter().any(|name| name == "roc") {
        packages.push("hip-on-cuda".to_owned());
    }
    let featured =
        FEATURED.iter().flat_map(|package| features.iter().map(move |name| format!("{package}/{name}")));
    let featured: Vec<_> = featured.collect();
    // `packed` is the release profile without symbols, in the workspace's manifest.
    let mut arguments = vec!["build", "--profile", "packed", "--bins", "--examples"];
    arguments.extend(packages.iter().flat_map(|package| ["--package", package]));
    arguments.extend(tests(workspace, &packages).into_iter().flat_map(|test| ["--test", test]));
    arguments.extend(featured.iter().flat_map(|feature| ["--features", feature]));
    let built = artifacts::build(workspace, &arguments, "the programs")?;
    Ok(built.iter().filter_map(|artifact| program(workspace, artifact)).collect())
}

/// The names of the archived tests. Of the host backend only its suite: its results are the same on any machine.
fn tests<'a>(workspace: &'a Workspace, packages: &'a [String]) -> BTreeSet<&'a str> {
    let others = packages.iter().filter(|package| *package != "gpumem-host");
    let names = others.flat_map(|package| workspace.tests_of(package));
    names.chain([CONFORMANCE]).filter(|test| !STAY.contains(test)).collect()
}

fn program(workspace: &Workspace, artifact: &Artifact) -> Option<(Program, PathBuf)> {
    let package = workspace.packages().find(|package| package.id == artifact.package_id)?.name.to_string();
    let is = |kind: TargetKind| artifact.target.kind.contains(&kind);
    if package == "hip-on-cuda" && is(TargetKind::CDyLib) {
        // The tests of that package look for it in their folder, and the runner puts it in place of AMD's library.
        let file = artifact.filenames.iter().find(|file| file.extension() == Some("so"))?;
        let target = file.file_name()?.to_owned();
        return Some((Program { kind: Kind::Library, package, target }, file.clone().into_std_path_buf()));
    }
    let file = artifact.executable.clone()?.into_std_path_buf();
    let target = artifact.target.name.clone();
    let kind = match () {
        () if is(TargetKind::Test) && target == CONFORMANCE => Kind::Conformance,
        () if is(TargetKind::Test) => Kind::Test,
        () if is(TargetKind::Example) => Kind::Example,
        () if package == "gpumem-bench" => Kind::Bench,
        () => Kind::Runner,
    };
    Some((Program { kind, package, target }, file))
}
