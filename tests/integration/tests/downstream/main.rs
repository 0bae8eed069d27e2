//! gpumem as a library: a crate outside the workspace that forwards the features.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::{
    path::{Path, PathBuf},
    process::{Command, Output},
};

const MANIFEST: &str = r#"
[package]
name = "downstream"
version = "0.1.0"
edition = "2024"
publish = false

[features]
default = []
host = ["gpumem/host"]
cuda = ["gpumem/cuda"]
roc = ["gpumem/roc"]

[dependencies]
gpumem = { path = "@gpumem@", default-features = false }

# Not a member of whatever lies around it.
[workspace]
"#;

struct Outside {
    folder: tempfile::TempDir,
}

impl Outside {
    fn new() -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        std::fs::create_dir(folder.path().join("src")).unwrap();
        // A literal string of TOML would end at a quotation mark, and no path of a checkout has one.
        write("Cargo.toml", &MANIFEST.replace("@gpumem@", root.join("crates/gpumem").to_str().unwrap()));
        write("src/main.rs", include_str!("portable.rs"));
        // The versions of the workspace: nothing is looked for on the network.
        std::fs::copy(root.join("Cargo.lock"), folder.path().join("Cargo.lock")).unwrap();
        Self { folder }
    }

    /// Cargo in the crate. Shares the workspace's target folder, where the dependencies are built already.
    fn cargo(&self, arguments: &[&str]) -> Output {
        let target: PathBuf = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap().to_owned();
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo.args(arguments).arg("--offline").current_dir(self.folder.path());
        cargo.env("CARGO_TARGET_DIR", target).env_remove("GPUMEM_DEVICE").output().unwrap()
    }

    fn succeed(&self, arguments: &[&str]) -> String {
        let output = self.cargo(arguments);
        let (said, complained) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "cargo {}:\n{said}{complained}", arguments.join(" "));
        said.into_owned()
    }
}

#[test]
fn one_source_runs_on_the_host_and_builds_for_gpus() {
    let outside = Outside::new();
    let said = outside.succeed(&["run", "--quiet", "--features", "host"]);
    assert_eq!(said.trim(), "host:0 sums to 258");
    // Each backend alone, and other sets, are built in the workspace (`cargo xtask ci clippy features`).
    outside.succeed(&["check", "--quiet", "--features", "cuda,roc"]);
}

#[test]
fn without_a_backend_the_build_says_what_is_missing() {
    let output = Outside::new().cargo(&["check", "--quiet"]);
    let complained = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "it builds without a backend");
    assert!(complained.contains("built without a backend") && complained.contains("`cuda`"), "{complained}");
}
