//! Every example runs, on the device that every machine has.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
#![cfg(feature = "host")]

use gpumem::Device;

macro_rules! examples {
    ($($name:ident = $path:literal;)*) => { $(
        #[path = $path]
        #[allow(dead_code, reason = "its main opens the default device")]
        mod $name;

        #[test]
        fn $name() -> gpumem::Result<()> {
            $name::run(&Device::open("host")?)
        }
    )* };
}

examples! {
    arrays = "../examples/01_arrays.rs";
    views = "../examples/02_views.rs";
    streams = "../examples/03_streams.rs";
    scope = "../examples/04_scope.rs";
    host_memory = "../examples/05_host_memory.rs";
    records = "../examples/06_records.rs";
    progress = "../examples/07_progress.rs";
    kernels = "../examples/08_kernels.rs";
}

#[path = "../examples/photo/main.rs"]
#[allow(dead_code, reason = "its main reads the command line")]
mod photo;
mod photo_runs;
