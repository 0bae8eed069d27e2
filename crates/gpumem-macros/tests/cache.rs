//! A kernel that is written in Rust is compiled once for all processes, and anew where a constant of it is another.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // helpers of tests

mod gpus;
#[allow(dead_code)] // others are tests of their own
mod subset;

use gpumem::{
    Backend,
    generic::Device,
    kernel::{KernelDef, SliceMut, config_for_items},
};
use gpus::{Check, on_each_gpu};
use std::{collections::BTreeMap, env, fs, path::Path, process::Command};

const TEST: &str = "a_kernel_is_compiled_once_for_all_processes";

/// Says that this process runs the kernel, and with which constant.
const CONSTANT: &str = "GPUMEM_TEST_CONSTANT";

/// Runs the kernel and checks its results.
struct Run(KernelDef<(SliceMut<f32>,)>, f32);

impl Check for Run {
    fn check<B: Backend>(&self, device: &Device<B>) {
        let stream = device.stream().unwrap();
        let mut out = stream.to_device(&[0f32; 3]).unwrap();
        let kernel = self.0.load(device).unwrap();
        kernel.launch(&stream, &config_for_items([3, 1, 1], [3, 1, 1]), (&mut out,)).unwrap();
        let expected = [1.5, 2.5, 4.0].map(|weight| weight * self.1 + 49.0 + f32::EPSILON);
        assert_eq!(stream.copy_to_host(&out).unwrap().view().unwrap().to_vec(), expected);
    }
}

/// The images in a cache, with the files that they are: an image that is written again is another file.
fn images(cache: &Path) -> BTreeMap<String, u64> {
    let mut found = BTreeMap::new();
    let mut folders = vec![cache.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten() {
            let entry = entry.unwrap();
            match entry.file_type().unwrap().is_dir() {
                true => folders.push(entry.path()),
                false => drop(found.insert(entry.path().display().to_string(), number(&entry))),
            }
        }
    }
    found
}

#[cfg(unix)]
fn number(entry: &fs::DirEntry) -> u64 {
    std::os::unix::fs::DirEntryExt::ino(entry)
}

#[cfg(not(unix))]
fn number(_: &fs::DirEntry) -> u64 {
    0
}

/// Runs the kernel in a process of its own.
fn run(cache: &Path, constant: &str) {
    let status = Command::new(env::current_exe().unwrap())
        .args(["--exact", TEST, "--nocapture"])
        .env("GPUMEM_CACHE_DIR", cache)
        .env(CONSTANT, constant)
        .status()
        .unwrap();
    assert!(status.success(), "with {constant}: {status}");
}

#[test]
fn a_kernel_is_compiled_once_for_all_processes() {
    match env::var(CONSTANT).as_deref() {
        Ok("3") => return on_each_gpu(TEST, &Run(subset::constants::<3>(), 3.0)),
        Ok(_) => return on_each_gpu(TEST, &Run(subset::constants::<4>(), 4.0)),
        Err(_) => {}
    }
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("cache");
    run(&cache, "3");
    let first = images(&cache);
    if first.is_empty() {
        println!("skipped: no GPU that kernels are compiled for");
        return;
    }
    run(&cache, "3");
    assert_eq!(images(&cache), first, "the second process compiled it again");
    run(&cache, "4");
    let all = images(&cache);
    assert_eq!(all.len(), 2 * first.len(), "{all:?}");
    assert!(first.iter().all(|(path, file)| all.get(path) == Some(file)), "{first:?} {all:?}");
}
