//! Compiled kernels that processes find again.

use crate::{Case, Part, Skip, fixture::Lab, processes::again};
use gpumem_core::ErrorKind;
use gpumem_cuda::Cuda;
use gpumem_kernel::{KernelDef, Out, SliceMut, config_for_items};
use gpumem_runtime::Device;
use std::{fs, path::PathBuf};

pub(crate) const CASES: &[Case] = &[
    ("compiled_kernels_are_found_by_other_processes", processes),
    ("broken_images_are_compiled_anew", broken),
    ("the_cache_can_be_switched_off", off),
];

pub(crate) const PARTS: &[Part] = &[("cache_compiles", compiles), ("cache_finds", finds), ("cache_any", any)];

const DIRECTORY: &str = "GPUMEM_CACHE_DIR";

/// A directory that is removed when its value is dropped.
struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("gpumem-cache-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        Self(path)
    }

    fn variable(&self) -> [(&'static str, String); 1] {
        [(DIRECTORY, self.0.display().to_string())]
    }

    fn files(&self) -> Vec<PathBuf> {
        fs::read_dir(&self.0).map_or(Vec::new(), |files| files.map(|file| file.unwrap().path()).collect())
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Loads the kernel twice and runs it; how often it was compiled, and how often found.
fn counts(lab: &Lab) -> (u64, u64) {
    let device = Device::<Cuda>::from_raw(lab.device.clone());
    // SAFETY: each work-item writes its own element.
    let declaration = unsafe { KernelDef::<(SliceMut<u32>,)>::new("squares") }.source(
        "GPUMEM_KERNEL squares(gpumem::slice<gpumem::u32> y) {
            gpumem::u32 i = (gpumem::u32)gpumem::global_id(0);
            if (i < y.size()) y[i] = i * i;
        }",
    );
    let before = device.counters();
    for _ in 0..2 {
        let kernel = declaration.load(&device).unwrap();
        let mut squares = vec![0u32; 1000];
        kernel
            .launch(
                &device.stream().unwrap(),
                &config_for_items([1000, 1, 1], [128, 1, 1]),
                (Out(&mut squares),),
            )
            .unwrap();
        assert!(squares.iter().enumerate().all(|(i, square)| *square == (i * i) as u32));
    }
    let after = device.counters();
    (after.compilations - before.compilations, after.reuses - before.reuses)
}

fn compiles(lab: &Lab) {
    let kept = std::env::var(DIRECTORY).unwrap() != "off";
    assert_eq!(counts(lab), (1, 1), "compiled once, and found in memory; on disk: {kept}");
}

fn finds(lab: &Lab) {
    assert_eq!(counts(lab), (0, 2), "found on disk, then in memory");
}

/// Nothing to compile with is a reason to skip.
fn can_compile(lab: &Lab) -> Result<(), Skip> {
    // SAFETY: it does nothing.
    let declaration = unsafe { KernelDef::<()>::new("nothing") }.source("GPUMEM_KERNEL nothing() {}");
    match declaration.compile(&Device::<Cuda>::from_raw(lab.device.clone())) {
        Ok(_) => Ok(()),
        Err(error) if matches!(error.kind(), ErrorKind::Load(_)) => Err("there is no NVRTC"),
        Err(error) => panic!("{error}"),
    }
}

fn processes(lab: &Lab) -> Result<(), Skip> {
    can_compile(lab)?;
    let directory = Directory::new("processes");
    again("cache_compiles", &directory.variable());
    assert_eq!(directory.files().len(), 1);
    again("cache_finds", &directory.variable());
    // Several at once, on a cold cache: all of them work, and one file is left.
    let together = Directory::new("together");
    std::thread::scope(|scope| {
        for _ in 0..4 {
            // A process finds the images that an earlier one has written.
            scope.spawn(|| again("cache_any", &together.variable()));
        }
    });
    assert_eq!(together.files().len(), 1);
    again("cache_finds", &together.variable());
    Ok(())
}

fn broken(lab: &Lab) -> Result<(), Skip> {
    can_compile(lab)?;
    let directory = Directory::new("broken");
    again("cache_compiles", &directory.variable());
    let file = directory.files().remove(0);
    let whole = fs::read(&file).unwrap();
    let mut changed = whole.clone();
    let last = changed.len() - 1;
    changed[last] ^= 1;
    for bytes in [&whole[..whole.len() / 2], &[], &changed] {
        fs::write(&file, bytes).unwrap();
        again("cache_compiles", &directory.variable());
        assert_eq!(fs::read(&file).unwrap().len(), whole.len(), "it is whole again");
    }
    again("cache_finds", &directory.variable());
    Ok(())
}

fn off(lab: &Lab) -> Result<(), Skip> {
    can_compile(lab)?;
    let variables = [(DIRECTORY, "off".to_owned())];
    again("cache_compiles", &variables);
    again("cache_compiles", &variables);
    Ok(())
}

/// For processes that run side by side.
fn any(lab: &Lab) {
    let (compiled, found) = counts(lab);
    assert!(matches!((compiled, found), (1, 1) | (0, 2)), "{compiled} {found}");
}
