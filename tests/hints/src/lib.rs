//! The compiler's messages for common mistakes with gpumem: see `tests/mistakes`, and `tests/kernels` for those in kernels.
//! All are here so that what they need is checked once.

/// The compiler version whose messages are pinned. Others word them differently.
const RUSTC: &str = "rustc 1.95.";

/// Returns whether this compiler's messages are those that are pinned, and prints that they are not.
pub fn has_pinned_messages() -> bool {
    let version = std::process::Command::new("rustc").arg("--version").output();
    let is_pinned = version.is_ok_and(|version| version.stdout.starts_with(RUSTC.as_bytes()));
    if !is_pinned {
        println!("skipped: the messages of {RUSTC}x are pinned");
    }
    is_pinned
}
