//! Files of anything as npy: what is taken has the shape and the bytes that ndarray-npy finds.
#![no_main]

use gpumem_files::npy;
use libfuzzer_sys::fuzz_target;
use ndarray::{ArrayD, IxDyn};
use ndarray_npy::ReadNpyExt;
use std::{fs, sync::LazyLock};
use tempfile::TempDir;

static FOLDER: LazyLock<TempDir> = LazyLock::new(|| TempDir::new().expect("a folder"));

fuzz_target!(|bytes: &[u8]| {
    let path = FOLDER.path().join("x.npy");
    fs::write(&path, bytes).expect("a file");
    let Ok(view) = npy::<f32, IxDyn>(&path) else { return };
    let (start, length) = (view.start() as usize, 4 * view.len());
    let header = &bytes[..start];
    // The other implementation refuses the byte order `=`, and headers that do not end with a line.
    if header.contains(&b'=') || header.last() != Some(&b'\n') {
        return;
    }
    let theirs = ArrayD::<f32>::read_npy(&bytes[..start + length]).expect("the reference takes it too");
    assert_eq!(view.shape(), theirs.shape());
    let mut found = vec![0; length];
    view.file().read_at(view.start(), &mut found).expect("its bytes");
    let elements = theirs.as_slice_memory_order().expect("packed");
    assert!(elements.iter().flat_map(|element| element.to_ne_bytes()).eq(found));
});
