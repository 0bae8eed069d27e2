//! Kernels that are written in Rust, on the GPUs of this machine: the same bits as on the host. Skipped where there are none.
//!
//! A simulated AMD GPU does as well: with `librocsim.so` as `libhsakmt.so.1` on the library path, and
//! `ROCSIM_MACHINE_CODE=1`, it executes what hipRTC makes of the kernels.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // helpers of tests

#[allow(dead_code)] // not all of them give one number for each work-item
mod subset;

use gpumem::{
    Device, LaunchDims,
    kernel::{KernelDeclaration, cover},
};
use subset::*;

/// What a kernel of one number per work-item gives, for 64 work-items in groups of 32.
fn run(device: &Device, kernel: &KernelDeclaration<Integers>, shared_bytes: u32) -> gpumem::Result<Vec<i64>> {
    let stream = device.stream()?;
    let mut out = stream.to_device(&[0i64; 64])?;
    let dims = LaunchDims { shared_bytes, ..cover([64, 1, 1], [32, 1, 1]) };
    kernel.load(device)?.launch(&stream, &dims, (&mut out,))?;
    Ok(stream.copy_to_host(&out)?.view()?.to_vec())
}

fn devices() -> Vec<Device> {
    let found = ["cuda", "roc"].into_iter().filter_map(|name| match Device::open(name) {
        Ok(device) => Some(device),
        Err(error) => {
            println!("skipped: no {name}: {error}");
            None
        }
    });
    found.collect()
}

#[test]
fn every_kernel_gives_on_a_gpu_what_it_gives_on_the_host() {
    let host = Device::open("host").unwrap();
    for device in devices() {
        let mut kernels = features::all();
        kernels.extend([ranges(), labels(), values(), shapes(), cpp_words()]);
        for kernel in kernels {
            // Groups have 32 work-items, so that waves of 32 and of 64 give the same.
            println!("{} on {device:?}", kernel.name());
            assert_eq!(
                run(&device, &kernel, 256).unwrap(),
                run(&host, &kernel, 256).unwrap(),
                "{}",
                kernel.name()
            );
        }
    }
}

#[test]
fn the_dynamic_shared_memory_ends_where_the_launch_says() {
    for device in devices() {
        // One more element than work-items: the last of them stays inside.
        assert_eq!(run(&device, &features::past_the_dynamic_end(), 33 * 8).unwrap(), [1; 64]);
    }
}

/// A stopped kernel takes the context with it, so this runs in a process of its own.
#[test]
#[ignore = "ends the use of the GPU by its process: run it alone"]
fn an_index_past_the_dynamic_shared_memory_stops_the_kernel() {
    for device in devices() {
        assert!(run(&device, &features::past_the_dynamic_end(), 32 * 8).is_err());
    }
}
