//! npz files: stored and compressed members are read, and archives that lie are typed errors before anything is allocated.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod common;

use common::{device, failure};
use gpumem_core::{ErrorKind, FileFailure, LayoutError, Result};
use gpumem_files::{Npz, named, npz, save_npz};
use ndarray::{Array2, Ix0, Ix1, Ix2, ShapeBuilder, arr0, s};
use std::{
    fs,
    io::{self, Seek, SeekFrom, Write},
    path::PathBuf,
};
use tempfile::TempDir;
use zip::{CompressionMethod, ZipWriter, write::SimpleFileOptions};

const METHODS: [CompressionMethod; 2] = [CompressionMethod::Stored, CompressionMethod::Deflated];

/// An npy file of numbers from 0 on.
fn npy(rows: usize, columns: usize, order: &str) -> Vec<u8> {
    let header = format!("{{'descr': '<i4', 'fortran_order': {order}, 'shape': ({rows}, {columns}), }}");
    let length = (10 + header.len() + 1).next_multiple_of(64) - 10;
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((length as u16).to_le_bytes());
    bytes.extend(format!("{header:length$}").bytes());
    bytes.extend((0..rows * columns).flat_map(|number| (number as i32).to_le_bytes()));
    bytes
}

struct Scene(TempDir);

impl Scene {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("x.npz")
    }

    /// An archive with these members.
    fn write(&self, members: &[(&str, &[u8])], options: SimpleFileOptions) -> Npz {
        let mut archive = ZipWriter::new(fs::File::create(self.path()).unwrap());
        for (name, bytes) in members {
            archive.start_file(*name, options).unwrap();
            archive.write_all(bytes).unwrap();
        }
        archive.finish().unwrap();
        npz(self.path()).unwrap()
    }

    /// Opens the archive with other bytes.
    fn with(&self, change: impl FnOnce(&mut Vec<u8>)) -> Result<Npz> {
        let mut bytes = fs::read(self.path()).unwrap();
        change(&mut bytes);
        fs::write(self.path(), bytes).unwrap();
        npz(self.path())
    }
}

fn options(method: CompressionMethod) -> SimpleFileOptions {
    SimpleFileOptions::default().compression_method(method)
}

fn numbers(rows: usize, columns: usize) -> Array2<i32> {
    Array2::from_shape_vec((rows, columns), (0..(rows * columns) as i32).collect()).unwrap()
}

#[test]
fn members_are_read_whole_and_in_part() {
    let (device, scene) = (device(), Scene::new());
    for (method, large) in METHODS.into_iter().flat_map(|method| [(method, false), (method, true)]) {
        // With `large`, the lengths of a member are those of zip64.
        let options = options(method).large_file(large);
        let (c, f, none) = (npy(300, 200, "False"), npy(3, 5, "True"), npy(0, 4, "False"));
        let arrays = scene.write(
            &[("c.npy", &c), ("f.npy", &f), ("none.npy", &none), ("notes.txt", b"of the author")],
            options,
        );
        assert_eq!(arrays.names().collect::<Vec<_>>(), ["c", "f", "none"]);

        let whole = arrays.array::<i32, Ix2>("c").unwrap();
        assert_eq!(device.to_device(&whole).unwrap().copy_to_host().unwrap(), numbers(300, 200));
        let part = device.to_device(&whole.slice(s![10..20, ..;3]).unwrap()).unwrap();
        assert_eq!(part.copy_to_host().unwrap(), numbers(300, 200).slice(s![10..20, ..;3]));
        let wanted = Array2::from_shape_vec((3, 5).f(), (0..15).collect()).unwrap();
        let found = device.to_device(&arrays.array::<i32, Ix2>("f").unwrap()).unwrap();
        assert_eq!(found.copy_to_host().unwrap(), wanted);
        assert_eq!(arrays.array::<i32, Ix2>("none").unwrap().shape(), [0, 4]);

        assert_eq!(arrays.member("c").unwrap().element_type().to_string(), "<i4");
        assert!(matches!(
            failure(&arrays.array::<f32, Ix2>("c").unwrap_err()),
            FileFailure::Element { found, .. } if found == "<i4"
        ));
        assert!(matches!(
            arrays.array::<i32, Ix1>("c").unwrap_err().kind(),
            ErrorKind::Layout(LayoutError::RankMismatch { found: 2, expected: 1 })
        ));
        for missing in ["notes", "notes.txt", "c.npy", ""] {
            let error = arrays.array::<i32, Ix2>(missing).unwrap_err();
            assert!(matches!(failure(&error), FileFailure::NoSuchTensor { name } if name == missing));
        }
    }
}

#[test]
fn a_view_outlives_its_archive() {
    let (device, scene) = (device(), Scene::new());
    for method in METHODS {
        let view =
            scene.write(&[("x.npy", &npy(20, 30, "False"))], options(method)).array::<i32, Ix2>("x").unwrap();
        fs::remove_file(scene.path()).unwrap();
        assert_eq!(device.to_device(&view).unwrap().copy_to_host().unwrap(), numbers(20, 30));
    }
}

/// What goes wrong with the archive is told as it is, also where a member is unpacked.
#[test]
fn an_archive_that_is_cut_after_it_was_opened_is_truncated() {
    let scene = Scene::new();
    for method in METHODS {
        let arrays = scene.write(&[("x.npy", &npy(300, 200, "False"))], options(method));
        fs::OpenOptions::new().write(true).open(scene.path()).unwrap().set_len(100).unwrap();
        let error = arrays.member("x").unwrap_err();
        assert!(matches!(failure(&error), FileFailure::Truncated { found: 100, .. }), "{method}: {error}");
        assert_eq!(error.operation(), "npz");
    }
}

/// As for NumPy.
#[test]
fn of_two_members_of_one_name_the_later_one_counts() {
    let (device, scene) = (device(), Scene::new());
    for method in METHODS {
        let _ = scene.write(
            &[("x.npy", &npy(2, 3, "False")), ("y.npy", &npy(4, 5, "False")), ("z.npy", &npy(1, 1, "False"))],
            options(method),
        );
        let arrays = scene.with(|bytes| {
            let names: Vec<_> = (0..bytes.len()).filter(|at| bytes[*at..].starts_with(b"y.npy")).collect();
            assert_eq!(names.len(), 2, "before the member, and in the directory");
            names.iter().for_each(|at| bytes[*at] = b'x');
        });
        let arrays = arrays.unwrap();
        assert_eq!(arrays.names().collect::<Vec<_>>(), ["x", "z"]);
        let found = device.to_device(&arrays.array::<i32, Ix2>("x").unwrap()).unwrap();
        assert_eq!(found.copy_to_host().unwrap(), numbers(4, 5));
    }
}

#[test]
fn every_changed_bit_of_a_member_is_an_error() {
    let scene = Scene::new();
    for method in METHODS {
        let _ = scene.write(&[("x.npy", &npy(4, 4, "False"))], options(method));
        let good = fs::read(scene.path()).unwrap();
        // Behind the local header of 30 bytes and the name.
        let begin = 30 + "x.npy".len();
        let central = good.windows(4).position(|four| four == b"PK\x01\x02").unwrap();
        for at in begin..central {
            let opened = scene.with(|bytes| {
                bytes.clone_from(&good);
                bytes[at] ^= 1 << (at % 8);
            });
            assert!(
                matches!(
                    failure(&opened.unwrap().member("x").unwrap_err()),
                    FileFailure::Refused { .. } | FileFailure::Format { .. }
                ),
                "{method} {at}"
            );
        }
    }
}

#[test]
fn archives_that_lie_are_errors() {
    let scene = Scene::new();
    // An array that is longer than its member, within the archive.
    let mut short = npy(100, 100, "False");
    short.truncate(200);
    let arrays = scene.write(&[("x.npy", &short), ("y.npy", &npy(200, 200, "False"))], options(METHODS[0]));
    assert!(matches!(
        failure(&arrays.array::<i32, Ix2>("x").unwrap_err()),
        FileFailure::Truncated { wanted, found } if wanted > found
    ));
    // Every byte of the archive, changed: an error, or the same arrays.
    let _ = scene.write(&[("x.npy", &npy(2, 2, "False"))], options(METHODS[1]));
    let (good, device) = (fs::read(scene.path()).unwrap(), device());
    for at in 0..good.len() {
        for bit in [0, 3, 7] {
            let opened = scene.with(|bytes| {
                bytes.clone_from(&good);
                bytes[at] ^= 1 << bit;
            });
            let view = opened.and_then(|arrays| arrays.array::<i32, Ix2>("x"));
            let Ok(view) = view else { continue };
            assert_eq!(device.to_device(&view).unwrap().copy_to_host().unwrap(), numbers(2, 2), "{at}");
        }
    }
    for length in 0..good.len() {
        let opened = scene.with(|bytes| *bytes = good[..length].to_vec());
        assert!(opened.and_then(|arrays| arrays.member("x")).is_err(), "{length}");
    }
    assert!(matches!(npz(scene.0.path()).unwrap_err().kind(), ErrorKind::File(_)));
    assert!(matches!(npz(scene.path().join("none")).unwrap_err().kind(), ErrorKind::File(_)));
}

/// An entry of a directory, of an empty member of this name.
fn entry(name: &str) -> Vec<u8> {
    let mut bytes = b"PK\x01\x02".to_vec();
    bytes.resize(46, 0);
    bytes[28] = name.len() as u8;
    bytes.extend(name.bytes());
    bytes
}

/// The end of a directory of so many members.
fn end(members: u16, bytes: usize, start: usize) -> Vec<u8> {
    let mut end = b"PK\x05\x06\0\0\0\0".to_vec();
    end.extend([members.to_le_bytes(), members.to_le_bytes()].concat());
    end.extend([(bytes as u32).to_le_bytes(), (start as u32).to_le_bytes(), [0; 4]].concat());
    end.truncate(22);
    end
}

#[test]
fn opening_takes_no_longer_than_the_directory_is() {
    let scene = Scene::new();
    fs::write(scene.path(), []).unwrap();
    let is_refused = |opened: Result<Npz>| {
        let error = opened.unwrap_err();
        assert!(
            matches!(failure(&error), FileFailure::Format { .. } | FileFailure::TooLarge { .. }),
            "{error}"
        );
    };
    let directory: Vec<u8> = (0..60_000).flat_map(|number| entry(&format!("{number}.npy"))).collect();
    // Each end is one, but for its directory: if one after the other were tried, each with all of it, it would take hours.
    let ends = [&directory[..], &end(65_000, directory.len(), 0).repeat(2000)].concat();
    is_refused(scene.with(|bytes| *bytes = ends));
    is_refused(scene.with(|bytes| *bytes = end(1, 10, 0).repeat(100_000)));
    is_refused(scene.with(|bytes| *bytes = [&directory[..], &end(59_999, directory.len(), 0)].concat()));
    let whole = scene.with(|bytes| *bytes = [&directory[..], &end(60_000, directory.len(), 0)].concat());
    assert_eq!(whole.unwrap().names().count(), 60_000);
    // A file with a hole, whose end in 64 bits names more members than there is memory for.
    let (length, members) = (1_u64 << 40, 1_u64 << 34);
    let mut end_64 = b"PK\x06\x06".to_vec();
    end_64.resize(24, 0);
    end_64.extend([members, members, 46 * members, members].map(u64::to_le_bytes).concat());
    let mut locator = b"PK\x06\x07\0\0\0\0".to_vec();
    locator.extend([length.to_le_bytes().as_slice(), &[1, 0, 0, 0]].concat());
    let file = fs::File::create(scene.path()).unwrap();
    let tail = [end_64, locator, end(u16::MAX, u32::MAX as usize, u32::MAX as usize)].concat();
    if file
        .set_len(length)
        .and_then(|()| (&file).seek(SeekFrom::End(0)))
        .and_then(|_| (&file).write_all(&tail))
        .is_err()
    {
        // Not every file system has so long files.
        return;
    }
    is_refused(npz(scene.path()));
}

#[test]
fn written_archives_are_read_by_the_reference_and_again() {
    let (device, folder) = (device(), tempfile::tempdir().unwrap());
    let path = folder.path().join("x.npz");
    let base = Array2::from_shape_fn((60, 70), |(i, j)| (i * 70 + j) as f32);
    let (array, one) = (device.to_device(&base).unwrap(), device.to_device(&arr0(7_u64)).unwrap());
    let none = device.device_array::<u8, _>((3, 0)).unwrap();
    let columns = array.slice(s![.., ..;-3]).unwrap();
    save_npz(&path, &[named("a/ä", &columns), named("one", &one), named("none", &none)]).unwrap();
    let mut reference = zip::ZipArchive::new(fs::File::open(&path).unwrap()).unwrap();
    assert_eq!(reference.len(), 3);
    for at in 0..3 {
        // It compares the checksums.
        io::copy(&mut reference.by_index(at).unwrap(), &mut io::sink()).unwrap();
    }
    let found = npz(&path).unwrap();
    assert_eq!(found.names().collect::<Vec<_>>(), ["a/ä", "one", "none"]);
    let again = device.to_device(&found.array::<f32, Ix2>("a/ä").unwrap()).unwrap();
    assert_eq!(again.copy_to_host().unwrap(), base.slice(s![.., ..;-3]));
    assert_eq!(device.to_device(&found.array::<u64, Ix0>("one").unwrap()).unwrap().get(()).unwrap(), 7);
    assert_eq!(found.array::<u8, Ix2>("none").unwrap().shape(), [3, 0]);
    // What is there stays, and nothing is left, where it is refused.
    let before = fs::read(&path).unwrap();
    let twice = save_npz(&path, &[named("one", &one), named("one", &none)]).unwrap_err();
    assert!(matches!(failure(&twice), FileFailure::Range { .. }), "{twice}");
    let long = save_npz(&path, &[named("x".repeat(1 << 16), &one)]).unwrap_err();
    assert!(matches!(failure(&long), FileFailure::TooLarge { .. }), "{long}");
    assert_eq!(fs::read(&path).unwrap(), before);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    save_npz(&path, &[]).unwrap();
    assert_eq!(npz(&path).unwrap().names().count(), 0);
}
