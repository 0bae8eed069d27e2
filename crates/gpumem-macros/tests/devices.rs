//! Kernels that are written in Rust, on the GPUs of this machine and on the simulated one: the same bits as on the host.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // helpers of tests

mod gpus;
#[allow(dead_code)] // not all of them give one number for each work-item
mod subset;

use gpumem::{
    Backend, LaunchConfig,
    generic::Device,
    host::Host,
    kernel::{KernelDef, config_for_items},
};
use gpus::{Check, on_each_gpu};
use subset::*;

/// Returns the results of a kernel of one number per work-item, for 64 work-items in groups of 32.
fn run<B: Backend>(
    device: &Device<B>,
    kernel: &KernelDef<Integers>,
    shared_bytes: u32,
) -> gpumem::Result<Vec<i64>> {
    let stream = device.stream()?;
    let mut out = stream.to_device(&[0i64; 64])?;
    let dims = LaunchConfig { shared_bytes, ..config_for_items([64, 1, 1], [32, 1, 1]) };
    kernel.load(device)?.launch(&stream, &dims, (&mut out,))?;
    Ok(stream.copy_to_host(&out)?.view()?.to_vec())
}

#[test]
fn every_kernel_gives_the_same_results_on_gpu_and_host() {
    struct EveryKernel(Device<Host>);

    impl Check for EveryKernel {
        fn check<B: Backend>(&self, device: &Device<B>) {
            let mut kernels = features::all();
            kernels.extend(hygiene::pairs().into_iter().map(|(kernel, _)| kernel));
            kernels.extend(meanings::pairs().into_iter().map(|(kernel, _)| kernel));
            kernels.extend([ranges(), labels(), values(), shapes(), cpp_words(), positions()]);
            for kernel in kernels {
                // Groups have 32 work-items, so that waves of 32 and of 64 give the same.
                println!("{} on {device:?}", kernel.name());
                assert_eq!(
                    run(device, &kernel, 256).unwrap(),
                    run(&self.0, &kernel, 256).unwrap(),
                    "{}",
                    kernel.name()
                );
            }
        }
    }

    on_each_gpu(
        "every_kernel_gives_the_same_results_on_gpu_and_host",
        &EveryKernel(Device::open("host").unwrap()),
    );
}

#[test]
fn dynamic_shared_memory_has_the_size_of_the_launch() {
    struct DynamicEnd;

    impl Check for DynamicEnd {
        fn check<B: Backend>(&self, device: &Device<B>) {
            // One more element than work-items: the last of them stays inside.
            assert_eq!(run(device, &features::past_the_dynamic_end(), 33 * 8).unwrap(), [1; 64]);
        }
    }

    on_each_gpu("dynamic_shared_memory_has_the_size_of_the_launch", &DynamicEnd);
}

/// A stopped kernel ends the context, so this runs in a child process.
#[test]
#[ignore = "ends the use of the GPU by its process: run it alone"]
fn an_index_past_the_dynamic_shared_memory_stops_the_kernel() {
    struct PastTheEnd;

    impl Check for PastTheEnd {
        fn check<B: Backend>(&self, device: &Device<B>) {
            assert!(run(device, &features::past_the_dynamic_end(), 32 * 8).is_err());
        }
    }

    on_each_gpu("an_index_past_the_dynamic_shared_memory_stops_the_kernel", &PastTheEnd);
}
