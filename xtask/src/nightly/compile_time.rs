//! How long rustc takes for a kernel: twenty matrix products in a crate of their own, against the same crate without them.

use crate::{shell::Shell, steps::Outcome, workspace::Workspace};
use anyhow::{Context, Result, bail};
use std::{
    fs,
    path::Path,
    time::{Duration, Instant},
};

/// Kernels of the crate.
const KERNELS: u32 = 20;
/// The least of so many runs counts: others only add to it.
const RUNS: usize = 3;
/// What a kernel may take in `cargo check`, and in a release build.
const CHECK: Duration = Duration::from_millis(50);
const RELEASE: Duration = Duration::from_millis(700);

const HEAD: &str = "#![allow(missing_docs)]\nuse gpumem::kernel::prelude::*;\n";

/// Numba's example: shared memory, two barriers in a loop, checked edges.
const KERNEL: &str = "
#[gpumem::kernel(unsafe)]
pub fn matmul_NUMBER(a: View<f32, 2>, b: View<f32, 2>, c: ViewMut<f32, 2>) {
    let left = shared::<f32>([16, 16]);
    let right = shared::<f32>([16, 16]);
    let (x, y) = (local_id(0), local_id(1));
    let (row, column, depth) = (global_id(1), global_id(0), a.extent(1));
    let mut sum = NUMBER.0;
    for start in (0..depth).step_by(16) {
        left[[y, x]] = if row < a.extent(0) && start + x < depth { a[[row, start + x]] } else { 0.0 };
        right[[y, x]] = if start + y < depth && column < b.extent(1) { b[[start + y, column]] } else { 0.0 };
        barrier(Local);
        for k in 0..16 {
            sum += left[[y, k]] * right[[k, x]];
        }
        barrier(Local);
    }
    if row < c.extent(0) && column < c.extent(1) {
        c[[row, column]] = sum;
    }
}
";

pub(super) fn run(workspace: &Workspace) -> Result<Outcome> {
    let folder = workspace.target("compile-time");
    fs::create_dir_all(folder.join("src"))?;
    let gpumem = workspace.root().join("crates").join("gpumem");
    let manifest = format!(
        "[package]\nname = \"kernels\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[dependencies]\ngpumem = {{ path = {:?} }}\n\n[workspace]\n",
        gpumem.to_str().context("the path of the repository is no text")?
    );
    fs::write(folder.join("Cargo.toml"), manifest)?;
    // The same versions as here.
    fs::copy(workspace.root().join("Cargo.lock"), folder.join("Cargo.lock"))?;
    let kernels: String = (0..KERNELS).map(|number| KERNEL.replace("NUMBER", &number.to_string())).collect();
    // A declaration is generic over nothing, so a library compiles all of it.
    let full = format!("{HEAD}{kernels}");
    let mut failed = Vec::new();
    for (command, most) in [(&["check"][..], CHECK), (&["build", "--release"][..], RELEASE)] {
        let empty = least(&folder, command, "")?;
        let of_one = least(&folder, command, &full)?.saturating_sub(empty) / KERNELS;
        let line = format!("cargo {}: {} ms for a kernel", command.join(" "), of_one.as_millis());
        println!("{line}, {} ms allowed", most.as_millis());
        if of_one > most {
            failed.push(line);
        }
    }
    Ok(if failed.is_empty() { Outcome::Passed } else { Outcome::Failed(failed.join(", ")) })
}

/// The least time of a command for the crate with this source; what it depends on is compiled before.
fn least(folder: &Path, command: &[&str], source: &str) -> Result<Duration> {
    let shell = Shell::new(folder).env("CARGO_TARGET_DIR", folder.join("target"));
    let mut least = Duration::MAX;
    for run in 0..=RUNS {
        fs::write(folder.join("src").join("lib.rs"), format!("{source}// {run}\n"))?;
        let start = Instant::now();
        let done = shell.quiet("cargo", command)?;
        if !done.success {
            bail!("{}", done.output);
        }
        // The first also compiles what the crate depends on.
        if run > 0 {
            least = least.min(start.elapsed());
        }
    }
    Ok(least)
}
