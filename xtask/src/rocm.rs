//! `cargo xtask rocm`: AMD's libraries of newer versions of ROCm, beside the system.
//!
//! They come from newer suites of Debian, with the C library that they need, into a folder below the target directory.
//! `rocsim --rocm FOLDER PROGRAM` runs a program on them. Nothing of the system changes.

use crate::{
    shell::Shell,
    steps::{self, Outcome},
    workspace::Workspace,
};
use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use std::{
    fs,
    path::{Path, PathBuf},
};

/// Options of `cargo xtask rocm`.
#[derive(Args)]
pub(crate) struct Options {
    /// Which versions; all if none is named
    versions: Vec<Version>,
    /// Fail where a version cannot be had
    #[arg(long)]
    no_skip: bool,
}

/// A version of ROCm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Version {
    #[value(name = "6.4")]
    V6_4,
    #[value(name = "7.2")]
    V7_2,
}

/// Debian's archive, and the keys that sign its lists.
const ARCHIVE: &str = "http://deb.debian.org/debian";
const KEYS: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

impl Version {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Version::V6_4 => "6.4",
            Version::V7_2 => "7.2",
        }
    }

    /// The suites of Debian; packages come from the last one that has them at all.
    fn suites(self) -> &'static [&'static str] {
        match self {
            Version::V6_4 => &["sid"],
            Version::V7_2 => &["sid", "experimental"],
        }
    }

    /// The packages of AMD, at their versions.
    fn packages(self) -> &'static [&'static str] {
        match self {
            Version::V6_4 => &[
                "libamdhip64-6=6.4.3-5",
                "libhiprtc6=6.4.3-5",
                "libhiprtc-builtins6=6.4.3-5",
                "libhsa-runtime64-1=6.4.3+dfsg-5",
                "libamd-comgr3=7.0.2+dfsg-3",
                "rocm-device-libs-21=7.0.2+dfsg-3",
            ],
            Version::V7_2 => &[
                "libamdhip64-7=7.2.4-1~exp2",
                "libhiprtc7=7.2.4-1~exp2",
                "libhiprtc-builtins7=7.2.4-1~exp2",
                "libhsa-runtime64-1=7.2.4+dfsg-1~exp1",
                "libamd-comgr3=7.2.4+dfsg-1~exp1",
                "rocm-device-libs-21=7.0.2+dfsg-3",
            ],
        }
    }

    fn cache(self, workspace: &Workspace) -> PathBuf {
        workspace.target("rocm").join(self.name())
    }

    /// The folder with these packages, if they were fetched.
    pub(crate) fn folder(self, workspace: &Workspace) -> Option<PathBuf> {
        let cache = self.cache(workspace);
        let stamp = fs::read_to_string(cache.join("packages.txt")).ok()?;
        (stamp == self.stamp()).then(|| cache.join("root"))
    }

    fn stamp(self) -> String {
        self.packages().join("\n")
    }
}

pub(crate) fn run(options: &Options) -> Result<bool> {
    let workspace = Workspace::load()?;
    let versions = match options.versions.as_slice() {
        [] => Version::value_variants(),
        versions => versions,
    };
    steps::run("rocm", "version", versions, options.no_skip, |version| fetch(&workspace, *version))
}

/// Fetches a version unless it is there.
pub(crate) fn fetch(workspace: &Workspace, version: Version) -> Result<Outcome> {
    if let Some(folder) = version.folder(workspace) {
        println!("already there: {}", folder.display());
        return Ok(Outcome::Passed);
    }
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) || !Path::new(KEYS).exists() {
        return Ok(Outcome::Skipped("this is no Debian for x86-64: its keys are missing".to_owned()));
    }
    let cache = version.cache(workspace);
    if cache.exists() {
        fs::remove_dir_all(&cache)?;
    }
    for folder in ["lists/partial", "archives/partial", "packages", "root"] {
        fs::create_dir_all(cache.join(folder))?;
    }
    let cache_text = cache.to_str().context("the path of the target directory is not UTF-8")?;
    let lines = version.suites().iter().map(|suite| {
        format!("deb [arch=amd64 signed-by={KEYS} check-valid-until=no] {ARCHIVE} {suite} main\n")
    });
    fs::write(cache.join("sources.list"), lines.collect::<String>())?;
    fs::write(cache.join("status"), "")?;
    let settings = [
        format!("Dir::Etc::sourcelist={cache_text}/sources.list"),
        "Dir::Etc::sourceparts=/dev/null".to_owned(),
        format!("Dir::State::lists={cache_text}/lists"),
        format!("Dir::State::status={cache_text}/status"),
        format!("Dir::Cache={cache_text}"),
        "APT::Install-Recommends=false".to_owned(),
        "APT::Sandbox::User=root".to_owned(),
        format!("APT::Default-Release={}", version.suites().last().unwrap_or(&"sid")),
    ];
    let options: Vec<&str> = settings.iter().flat_map(|setting| ["-o", setting.as_str()]).collect();
    let root = Shell::new(workspace.root());
    if !root.quiet("apt-get", &apt(&options, &["update"]))?.success {
        return Ok(Outcome::Skipped("the lists of Debian cannot be fetched".to_owned()));
    }
    let wanted =
        root.quiet("apt-get", &apt(&options, &[&["--simulate", "install"], version.packages()].concat()))?;
    if !wanted.success {
        let pinned = version.packages().join(", ");
        return Ok(Outcome::Skipped(format!("Debian has no longer all of {pinned}")));
    }
    let packages = with_versions(&wanted.output);
    let packages: Vec<&str> = packages.iter().map(String::as_str).collect();
    let downloads = cache.join("packages");
    let downloaded = Shell::new(&downloads)
        .quiet("apt-get", &apt(&options, &[&["download"], packages.as_slice()].concat()))?;
    if !downloaded.success {
        return Ok(Outcome::Skipped("the packages cannot be downloaded".to_owned()));
    }
    for entry in fs::read_dir(&downloads)? {
        let file = entry?.path();
        let file = file.to_str().context("a package's name is not UTF-8")?;
        let done = root.quiet("dpkg-deb", &["--extract", file, &format!("{cache_text}/root")])?;
        if !done.success {
            return Ok(Outcome::Failed(format!("{file} cannot be unpacked: {}", done.status)));
        }
        fs::remove_file(file)?;
    }
    fs::write(cache.join("packages.txt"), version.stamp())?;
    Ok(Outcome::Passed)
}

/// The arguments of `apt-get` with these options.
fn apt<'a>(options: &[&'a str], arguments: &[&'a str]) -> Vec<&'a str> {
    [&["-qq"], options, arguments].concat()
}

/// The packages that apt would install, with their versions: `Inst NAME (VERSION ..` of its simulation.
fn with_versions(simulated: &str) -> Vec<String> {
    let package = |line: &str| {
        let mut words = line.strip_prefix("Inst ")?.split(' ');
        let (name, version) = (words.next()?, words.next()?.strip_prefix('(')?);
        Some(format!("{name}={version}"))
    };
    simulated.lines().filter_map(package).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_are_read_from_the_simulation() {
        let simulated = "Inst libc6 (2.43-7 Debian:unstable [amd64])\nConf libc6 (2.43-7 Debian:unstable [amd64])\n\
                         Inst zlib1g (1:1.3 Debian:unstable [amd64]) []\n";
        assert_eq!(with_versions(simulated), ["libc6=2.43-7", "zlib1g=1:1.3"]);
    }

    #[test]
    fn every_package_is_pinned() {
        for version in Version::value_variants() {
            assert!(version.packages().iter().all(|package| package.contains('=')), "{version:?}");
        }
    }
}
