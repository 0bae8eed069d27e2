//! Gives the shared library AMD's name and symbol version.
//!
//! rustc passes its own anonymous version script to the linker. GNU ld refuses a second script, LLD takes both; LLD
//! comes with every rustup toolchain, so it is used wherever it is found. Without it the library has no symbol
//! versions, which the dynamic linker accepts (with a remark on stderr in programs that are linked against the HSA
//! runtime, and silently where it is loaded at run time).

use std::{env, path::PathBuf, process::Command};

fn main() {
    println!("cargo::rustc-check-cfg=cfg(rocsim_versioned)");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=hsakmt.map");
    println!("cargo::rerun-if-env-changed=ROCSIM_NO_LLD");
    let target = env::var("TARGET").unwrap_or_default();
    if target != "x86_64-unknown-linux-gnu" {
        return;
    }
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libhsakmt.so.1");
    let Some(lld) = bundled_lld(&target).filter(|_| env::var_os("ROCSIM_NO_LLD").is_none()) else {
        return;
    };
    let script = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default()).join("hsakmt.map");
    println!("cargo::rustc-cdylib-link-arg=-B{}", lld.display());
    println!("cargo::rustc-cdylib-link-arg=-fuse-ld=lld");
    println!("cargo::rustc-cdylib-link-arg=-Wl,--version-script={}", script.display());
    println!("cargo::rustc-cfg=rocsim_versioned");
}

/// The directory in which the toolchain keeps `ld.lld` for the C compiler to find.
fn bundled_lld(target: &str) -> Option<PathBuf> {
    let output = Command::new(env::var_os("RUSTC")?).args(["--print", "sysroot"]).output().ok()?;
    let sysroot = PathBuf::from(String::from_utf8(output.stdout).ok()?.trim_end());
    let directory = sysroot.join("lib/rustlib").join(target).join("bin/gcc-ld");
    directory.join("ld.lld").exists().then_some(directory)
}
