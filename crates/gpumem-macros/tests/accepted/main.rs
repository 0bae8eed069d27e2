//! Programs that compile without a warning: what stands beside those of `gpumem-hints` that do not compile.

#![allow(missing_docs, missing_debug_implementations, unreachable_pub, reason = "programs of users")]

pub mod arrays;
pub mod origin;
pub mod own;
pub mod warnings;

#[test]
fn declarations_can_be_made() {
    arrays::main();
    warnings::main();
}
