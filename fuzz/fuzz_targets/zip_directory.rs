//! Archives of anything as npz, and archives with bytes changed: what is taken can be read, and is what the reference unpacks where
//! that takes it too.
#![no_main]

use gpumem_files::{npy, npz};
use gpumem_runtime::FileView;
use libfuzzer_sys::fuzz_target;
use ndarray::IxDyn;
use std::{
    fs,
    io::{Cursor, Read, Write},
    path::Path,
    sync::LazyLock,
};
use tempfile::TempDir;
use zip::{CompressionMethod, ZipArchive, ZipWriter, write::SimpleFileOptions};

static FOLDER: LazyLock<TempDir> = LazyLock::new(|| TempDir::new().expect("a folder"));

/// An archive of two arrays, the second one compressed.
static WHOLE: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let header = "{'descr': '|u1', 'fortran_order': False, 'shape': (50, 3), }";
    let mut array = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
    array.extend(format!("{header:<117}\n").bytes());
    array.extend((0..150_u8).map(|at| at / 7));
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, method) in [("a.npy", CompressionMethod::Stored), ("b.npy", CompressionMethod::Deflated)] {
        let options = SimpleFileOptions::default().compression_method(method);
        archive.start_file(name, options).expect("a member");
        archive.write_all(&array).expect("a member");
    }
    archive.finish().expect("an archive").into_inner()
});

fn contents(view: &FileView<u8, IxDyn>) -> Vec<u8> {
    let mut bytes = vec![0; view.len()];
    view.file().read_at(view.start(), &mut bytes).expect("its bytes");
    bytes
}

fn check(path: &Path, bytes: &[u8]) {
    fs::write(path, bytes).expect("a file");
    let Ok(arrays) = npz(path) else { return };
    let mut reference = ZipArchive::new(Cursor::new(bytes)).ok();
    for name in arrays.names() {
        let Ok(view) = arrays.array::<u8, IxDyn>(name) else { continue };
        let found = contents(&view);
        let Some(Ok(mut member)) = reference.as_mut().map(|all| all.by_name(&format!("{name}.npy"))) else {
            continue;
        };
        let mut unpacked = Vec::new();
        if member.read_to_end(&mut unpacked).is_err() {
            continue;
        }
        let alone = FOLDER.path().join("alone.npy");
        fs::write(&alone, unpacked).expect("a file");
        let theirs = npy::<u8, IxDyn>(&alone).expect("the same array");
        assert_eq!((view.shape(), found), (theirs.shape(), contents(&theirs)));
    }
}

fuzz_target!(|bytes: &[u8]| {
    let path = FOLDER.path().join("x.npz");
    check(&path, bytes);
    // Places, each with another byte.
    let mut changed = WHOLE.clone();
    let length = changed.len();
    for step in bytes.chunks_exact(3) {
        changed[usize::from(u16::from_le_bytes([step[0], step[1]])) % length] = step[2];
    }
    check(&path, &changed);
});
