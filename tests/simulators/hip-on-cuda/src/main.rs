//! Runs a command that finds this library instead of AMD's: `hip-on-cuda COMMAND [ARGUMENT ..]`.
//!
//! It puts the library under AMD's names first on the library path. `hip-on-cuda --library-path` prints the directory
//! instead.

#[cfg(target_os = "linux")]
mod launcher;

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    launcher::launch()
}

#[cfg(not(target_os = "linux"))]
fn main() {
    eprintln!("hip-on-cuda: the libraries are Linux's");
    std::process::exit(1);
}
