//! The contents of an archive.

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::{fs, path::Path};

/// The purpose of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Kind {
    /// The conformance suite of its crate's backend.
    Conformance,
    /// A test program that ends with the line `test result: ...` of Rust's harness.
    Test,
    /// An example: takes its device from `GPUMEM_DEVICE`, and is right if it ends with success.
    Example,
    /// The benches.
    Bench,
    /// A shared library, under the name of its file.
    Library,
    /// The program that runs the others.
    Runner,
}

/// One program.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Program {
    pub(super) kind: Kind,
    /// The package that it is built from.
    pub(super) package: String,
    /// The target in that package.
    pub(super) target: String,
}

impl Program {
    /// Its file, from the pack's folder.
    pub(super) fn file(&self) -> String {
        match self.kind {
            Kind::Conformance | Kind::Test => format!("bin/{}-{}", self.package, self.target),
            Kind::Example | Kind::Bench | Kind::Library | Kind::Runner => format!("bin/{}", self.target),
        }
    }

    /// The backend of its crate.
    pub(super) fn backend(&self) -> Option<&str> {
        self.package.strip_prefix("gpumem-")
    }
}

/// All programs, in the order in which they run.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Manifest {
    pub(super) programs: Vec<Program>,
}

const FILE: &str = "pack.json";

impl Manifest {
    pub(super) fn read(folder: &Path) -> Result<Self> {
        let text = fs::read_to_string(folder.join(FILE))
            .with_context(|| format!("{} is not a pack: it has no {FILE}", folder.display()))?;
        serde_json::from_str(&text).with_context(|| format!("{FILE} cannot be read"))
    }

    pub(super) fn write(&self, folder: &Path) -> Result<()> {
        fs::write(folder.join(FILE), serde_json::to_string_pretty(self)? + "\n")
            .with_context(|| format!("{FILE} cannot be written"))
    }

    pub(super) fn of(&self, kind: Kind) -> impl Iterator<Item = &Program> {
        self.programs.iter().filter(move |program| program.kind == kind)
    }
}
