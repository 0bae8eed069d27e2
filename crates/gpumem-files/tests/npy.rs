//! npy files: what NumPy's and ndarray-npy's writers make is read, and what breaks a rule is a typed error before anything is
//! allocated.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod common;

use common::{device, failure};
use gpumem_core::{ErrorKind, FileFailure, LayoutError};
use gpumem_files::npy;
use gpumem_runtime::Bool;
use half::{bf16, f16};
use ndarray::{Array, Array2, ArrayD, Ix1, Ix2, IxDyn, ShapeBuilder, s};
use num_complex::Complex;
use std::{fmt::Debug, fs, path::PathBuf};
use tempfile::TempDir;

/// A file as NumPy writes it: aligned to 64 bytes.
fn file(version: u8, header: &str, elements: &[u8]) -> Vec<u8> {
    let width = if version == 1 { 2 } else { 4 };
    let length = (8 + width + header.len() + 1).next_multiple_of(64) - 8 - width;
    let mut bytes = b"\x93NUMPY".to_vec();
    bytes.extend([version, 0]);
    bytes.extend(&(length as u32).to_le_bytes()[..width]);
    bytes.extend(header.as_bytes());
    bytes.resize(8 + width + length - 1, b' ');
    bytes.push(b'\n');
    bytes.extend(elements);
    bytes
}

fn header(descr: &str, fortran: &str, shape: &str) -> String {
    format!("{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {shape}, }}")
}

struct Scene(TempDir);

impl Scene {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("x.npy")
    }

    fn write(&self, bytes: &[u8]) -> PathBuf {
        fs::write(self.path(), bytes).unwrap();
        self.path()
    }
}

#[test]
fn every_type_rank_order_and_version_is_read() {
    fn check<T: gpumem_core::Element + PartialEq + Debug>(descr: &str, of: impl Fn(usize) -> T) {
        let (device, scene) = (device(), Scene::new());
        let shapes: [(&[usize], &str); 7] = [
            (&[], "()"),
            (&[5], "(5,)"),
            (&[2, 3], "(2, 3)"),
            (&[2, 1, 3], "(2, 1, 3)"),
            (&[2, 3, 1, 2], "(2, 3, 1, 2)"),
            (&[1, 2, 3, 2, 1], "(1, 2, 3, 2, 1)"),
            (&[2, 1, 2, 1, 2, 3], "(2, 1, 2, 1, 2, 3)"),
        ];
        for (shape, text) in shapes {
            let len = shape.iter().product::<usize>();
            let elements: Vec<T> = (0..len).map(&of).collect();
            for (is_f, fortran) in [(false, "False"), (true, "True")] {
                let wanted = ArrayD::from_shape_vec(IxDyn(shape).set_f(is_f), elements.clone()).unwrap();
                for version in 1..=3 {
                    let path = scene.write(&file(
                        version,
                        &header(descr, fortran, text),
                        bytemuck::cast_slice(&elements),
                    ));
                    let found = device.to_device(&npy::<T, IxDyn>(path).unwrap()).unwrap();
                    assert_eq!(
                        found.copy_to_host().unwrap(),
                        wanted,
                        "{descr} {shape:?} {fortran} {version}"
                    );
                }
            }
        }
    }
    let little =
        |name: &str| if cfg!(target_endian = "little") { format!("<{name}") } else { format!(">{name}") };
    check("|b1", |at| Bool::from(at % 3 == 0));
    check("|u1", |at| at as u8);
    check("|i1", |at| -(at as i8));
    check(&little("u2"), |at| at as u16 * 1000);
    check(&little("i2"), |at| at as i16 * -1000);
    check(&little("u4"), |at| at as u32 * 100_000);
    check(&little("i4"), |at| at as i32 * -100_000);
    check(&little("u8"), |at| at as u64 * 10_000_000_000);
    check(&little("i8"), |at| at as i64 * -10_000_000_000);
    check(&little("f2"), |at| f16::from_f32(at as f32 / 2.0));
    check(&little("V2"), |at| bf16::from_f32(at as f32 / 2.0));
    check("=f4", |at| at as f32 / 3.0);
    check(&little("f8"), |at| at as f64 / 3.0);
    check(&little("c8"), |at| Complex::new(at as f32, -1.0));
    check(&little("c16"), |at| Complex::new(at as f64, -1.0));
}

#[test]
fn what_the_reference_writes_is_read_whole_and_in_part() {
    let (device, scene) = (device(), Scene::new());
    let base = Array2::from_shape_fn((300, 400), |(i, j)| (i * 400 + j) as f32);
    for array in [base.clone(), base.t().to_owned(), base.t().as_standard_layout().into_owned()] {
        ndarray_npy::write_npy(scene.path(), &array).unwrap();
        let x = npy::<f32, Ix2>(scene.path()).unwrap();
        assert_eq!(device.to_device(&x).unwrap().copy_to_host().unwrap(), array);
        let part = device.to_device(&x.slice(s![7.., ..;3]).unwrap()).unwrap();
        assert_eq!(part.copy_to_host().unwrap(), array.slice(s![7.., ..;3]));
        let part = device.to_device(&x.slice(s![..;-1, 5..9]).unwrap()).unwrap();
        assert_eq!(part.copy_to_host().unwrap(), array.slice(s![..;-1, 5..9]));
    }
    let none = Array::<u8, _>::zeros((0, 3));
    ndarray_npy::write_npy(scene.path(), &none).unwrap();
    let x = npy::<u8, Ix2>(scene.path()).unwrap();
    assert_eq!(device.to_device(&x).unwrap().shape(), [0, 3]);
}

#[test]
fn headers_that_break_a_rule_are_refused() {
    let scene = Scene::new();
    let refused = |bytes: &[u8]| npy::<f32, Ix1>(scene.write(bytes)).unwrap_err();
    let whole = file(1, &header("<f4", "False", "(3,)"), &[0; 12]);
    assert!(npy::<f32, Ix1>(scene.write(&whole)).is_ok());
    for end in 0..whole.len() {
        let error = refused(&whole[..end]);
        assert!(
            matches!(failure(&error), FileFailure::Format { .. } | FileFailure::Truncated { .. }),
            "{end}: {error}"
        );
        assert_eq!(error.operation(), "npy");
    }
    for (descr, shape) in [
        (">f4", "(3,)"),
        ("|O", "(3,)"),
        ("<U4", "(3,)"),
        ("|S4", "(3,)"),
        ("<M8[ns]", "(3,)"),
        ("<f16", "(3,)"),
        ("f4", "(3,)"),
        ("<f4", "(3, -1)"),
        ("<f4", "(3"),
    ] {
        let error = refused(&file(1, &header(descr, "False", shape), &[0; 12]));
        assert!(matches!(failure(&error), FileFailure::Format { .. }), "{descr} {shape}: {error}");
    }
    let error = refused(&file(1, &header("<i4", "False", "(3,)"), &[0; 12]));
    let wanted = FileFailure::Element { tensor: String::new(), found: "<i4".into(), expected: "<f4".into() };
    assert_eq!(*failure(&error), wanted);
    let error = refused(&file(1, &header("<f4", "False", "(3, 1)"), &[0; 12]));
    assert_eq!(*error.kind(), ErrorKind::Layout(LayoutError::RankMismatch { found: 2, expected: 1 }));
    // Products that wrap, and ranges behind the end.
    for shape in ["(4294967296, 4294967296)", "(9223372036854775810, 2)"] {
        let error =
            npy::<f32, Ix2>(scene.write(&file(1, &header("<f4", "False", shape), &[0; 12]))).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Layout(LayoutError::TooLarge { .. })), "{error}");
    }
    let error = refused(&file(1, &header("<f4", "False", "(4611686018427387904,)"), &[0; 12]));
    assert!(matches!(error.kind(), ErrorKind::Layout(LayoutError::TooLarge { .. })), "{error}");
    let error = refused(&file(1, &header("<f4", "False", "(4,)"), &[0; 12]));
    assert_eq!(*failure(&error), FileFailure::Truncated { wanted: 128 + 16, found: 128 + 12 });
    // Bytes after the elements are another array's.
    assert!(npy::<f32, Ix1>(scene.write(&file(1, &header("<f4", "False", "(2,)"), &[0; 12]))).is_ok());
    for (at, byte) in [(0, 0x92), (5, b'X'), (6, 4), (6, 0), (7, 1)] {
        let mut bytes = whole.clone();
        bytes[at] = byte;
        assert!(matches!(failure(&refused(&bytes)), FileFailure::Format { .. }), "{at}");
    }
    // A header of 4 GiB in a file of a hundred bytes, and one of more than 64 KiB.
    let mut bytes = file(2, &header("<f4", "False", "(3,)"), &[0; 12]);
    bytes[8..12].fill(0xFF);
    let error = refused(&bytes);
    assert!(matches!(failure(&error), FileFailure::TooLarge { found: 0xFFFF_FFFF, .. }), "{error}");
    let long = file(2, &format!("{}{}", header("<f4", "False", "(3,)"), " ".repeat(64 << 10)), &[0; 12]);
    assert!(matches!(failure(&refused(&long)), FileFailure::TooLarge { .. }));
}

/// Whatever byte of a header is another one: what is taken is what the reference finds, but for the listed reasons.
#[test]
fn changed_headers_are_judged_as_by_the_reference() {
    use ndarray_npy::ReadNpyExt;
    let scene = Scene::new();
    let whole = file(1, &header("<f4", "False", "(3, 2)"), &[7; 24]);
    let mut accepted = 0;
    for at in 0..whole.len() - 24 {
        for byte in [b' ', b'0', b'1', b'"', b',', b')', b'T', 0xFF, whole[at] ^ 1] {
            let mut bytes = whole.clone();
            bytes[at] = byte;
            let Ok(view) = npy::<f32, IxDyn>(scene.write(&bytes)) else { continue };
            let end = view.start() as usize + 4 * view.len();
            // The reference wants a line's end, and does not know the byte order `=`.
            if bytes[view.start() as usize - 1] != b'\n' || bytes[..view.start() as usize].contains(&b'=') {
                continue;
            }
            let theirs = ArrayD::<f32>::read_npy(&bytes[..end]);
            assert!(
                theirs.as_ref().is_ok_and(|theirs| theirs.shape() == view.shape()),
                "{at} {byte}: {theirs:?}"
            );
            accepted += 1;
        }
    }
    assert!(accepted > 50, "{accepted}");
}

#[cfg(target_os = "linux")]
#[test]
fn what_is_no_file_of_bytes_is_refused() {
    let error = npy::<f32, Ix1>("/proc/self/maps").unwrap_err();
    assert!(matches!(failure(&error), FileFailure::Format { .. }), "{error}");
    let error = npy::<f32, Ix1>("/proc/self").unwrap_err();
    assert!(matches!(failure(&error), FileFailure::Format { .. }), "{error}");
}
