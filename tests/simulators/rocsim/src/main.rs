//! Runs a command on the simulated GPU: `rocsim COMMAND [ARGUMENT ..]`.
//!
//! It puts the simulator under AMD's name first on the library path. `rocsim --library-path` prints the directory
//! instead. `rocsim --rocm FOLDER PROGRAM ..` runs a program on the ROCm in a folder. `ROCSIM_*` variables choose the
//! simulated machine, see the package's README.

#[cfg(target_os = "linux")]
mod launcher;
#[cfg(target_os = "linux")]
mod newer;

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    launcher::launch()
}

#[cfg(not(target_os = "linux"))]
fn main() {
    eprintln!("rocsim: AMD's libraries run on Linux");
    std::process::exit(1);
}
