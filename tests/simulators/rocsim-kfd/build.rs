//! Gives the shared library the name of AMD's thunk, by which test programs find the simulator's functions.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var("TARGET").is_ok_and(|target| target == "x86_64-unknown-linux-gnu") {
        println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libhsakmt.so.1");
    }
}
