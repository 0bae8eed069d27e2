//! Archives of anything as npz, and archives with bytes changed: what is taken can be read, and is what the reference unpacks where
//! that takes it too; and what the reference alone takes is refused on purpose.
#![no_main]

use gpumem_core::{Error, ErrorKind};
use gpumem_files::{npy, npz};
use gpumem_runtime::FileView;
use libfuzzer_sys::fuzz_target;
use ndarray::IxDyn;
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::{Cursor, Read, Write},
    path::Path,
    sync::LazyLock,
};
use tempfile::TempDir;
use zip::{CompressionMethod, ZipArchive, ZipWriter, write::SimpleFileOptions};

static FOLDER: LazyLock<TempDir> = LazyLock::new(|| TempDir::new().expect("a folder"));

/// Bytes that a member may unpack to.
const MOST: u64 = 1 << 20;

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

fn contents(view: &FileView<u8, IxDyn>) -> (Vec<usize>, Vec<u8>) {
    let mut bytes = vec![0; view.len()];
    view.file().read_at(view.start(), &mut bytes).expect("its bytes");
    (view.shape().to_vec(), bytes)
}

/// The arrays of bytes that the reference unpacks, by the names of their members.
fn reference(bytes: &[u8]) -> BTreeMap<String, (Vec<usize>, Vec<u8>)> {
    let Ok(mut archive) = ZipArchive::new(Cursor::new(bytes)) else { return BTreeMap::new() };
    // Others are in one of two encodings, which this crate does not tell apart.
    let names = archive.file_names().filter(|name| name.is_ascii());
    let names: Vec<String> = names.map(str::to_owned).collect();
    let alone = FOLDER.path().join("alone.npy");
    let array = |name: String| {
        let mut unpacked = Vec::new();
        archive.by_name(&name).ok()?.take(MOST).read_to_end(&mut unpacked).ok()?;
        fs::write(&alone, unpacked).expect("a file");
        let array = name.strip_suffix(".npy")?.to_owned();
        npy::<u8, IxDyn>(&alone).ok().map(|view| (array, contents(&view)))
    };
    names.into_iter().filter_map(array).collect()
}

/// Why this crate refuses what the reference takes: it wants one archive that is the whole file, and believes no part of it that
/// another one contradicts.
const REFUSED: [&str; 6] = [
    "it does not end as a zip archive",
    "it is one of several files",
    "its directory is not before its end",
    "an entry of the directory is not one of a zip archive",
    "the directory has another number of members than it says",
    "a member has another length than the archive says",
];

fn is_on_purpose(error: &Error) -> bool {
    let ErrorKind::File(error) = error.kind() else { return false };
    REFUSED.iter().any(|why| error.to_string().contains(why))
}

fn check(path: &Path, bytes: &[u8]) {
    fs::write(path, bytes).expect("a file");
    let theirs = reference(bytes);
    let arrays = match npz(path) {
        Ok(arrays) => arrays,
        Err(error) => return assert!(theirs.is_empty() || is_on_purpose(&error), "{error}"),
    };
    let names: BTreeSet<&str> = arrays.names().chain(theirs.keys().map(String::as_str)).collect();
    for name in names {
        match (arrays.array::<u8, IxDyn>(name), theirs.get(name)) {
            (Ok(view), Some(theirs)) => assert_eq!(contents(&view), *theirs),
            (Ok(view), None) => drop(contents(&view)),
            (Err(error), Some(_)) => assert!(is_on_purpose(&error), "{name}: {error}"),
            (Err(_), None) => {}
        }
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
