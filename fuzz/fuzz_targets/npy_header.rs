//! Files of anything as npy: the reference implementation and this one find the same array in a file, or both refuse it, but for what
//! one of them refuses on purpose.
#![no_main]

use gpumem_files::{NpyFile, npy_file};
use gpumem_runtime::{Bool, FileView};
use half::{bf16, f16};
use libfuzzer_sys::fuzz_target;
use ndarray::IxDyn;
use ndarray_npy::npy::header::Header;
use num_complex::Complex;
use std::{fs, sync::LazyLock};
use tempfile::TempDir;

static FOLDER: LazyLock<TempDir> = LazyLock::new(|| TempDir::new().expect("a folder"));

/// An array in a file: the type of its elements without a byte order, its shape, whether it is in Fortran order, where it begins,
/// and its bytes.
#[derive(Debug, PartialEq)]
struct Found {
    element: String,
    shape: Vec<usize>,
    is_fortran: bool,
    start: usize,
    bytes: usize,
}

/// All types, with their bytes, and how else they are named.
const TYPES: [(&str, usize, &[&str]); 15] = [
    ("b1", 1, &[]),
    ("i1", 1, &["b"]),
    ("u1", 1, &["B"]),
    ("i2", 2, &[]),
    ("u2", 2, &[]),
    ("f2", 2, &[]),
    ("V2", 2, &[]),
    ("i4", 4, &[]),
    ("u4", 4, &[]),
    ("f4", 4, &[]),
    ("i8", 8, &[]),
    ("u8", 8, &[]),
    ("f8", 8, &[]),
    ("c8", 8, &[]),
    ("c16", 16, &[]),
];

/// As the reference reads it; with its words for the type of the elements.
fn reference(bytes: &[u8]) -> Option<(Found, String)> {
    let mut rest = bytes;
    let header = Header::from_reader(&mut rest).ok()?;
    let descr = header.type_descriptor.as_string()?.clone();
    let plain = descr.trim_start_matches(['<', '>', '|']);
    let (element, width, _) = TYPES.iter().find(|(name, _, more)| *name == plain || more.contains(&plain))?;
    // As it counts them: axes of no length are no reason to take others that no memory has.
    let sizes = header.shape.iter().map(|length| (*length).max(1));
    let most = sizes.chain([*width]).try_fold(1_usize, usize::checked_mul)?;
    let bytes_of = header.shape.iter().product::<usize>() * width;
    let (element, is_fortran) = ((*element).to_owned(), header.layout.is_fortran());
    let found =
        Found { element, shape: header.shape, is_fortran, start: bytes.len() - rest.len(), bytes: bytes_of };
    (isize::try_from(most).is_ok() && bytes_of <= rest.len()).then_some((found, descr))
}

fn found<T: gpumem_core::Element>(file: &NpyFile, bytes: &[u8]) -> Option<Found> {
    let view: FileView<T, IxDyn> = file.array().ok()?;
    let (start, shape) = (view.start() as usize, view.shape().to_vec());
    let mut read = vec![0; size_of::<T>() * view.len()];
    view.file().read_at(view.start(), &mut read).expect("its bytes");
    assert_eq!(read, bytes[start..start + read.len()]);
    let layout = view.layout();
    let is_fortran = layout.is_f_contiguous() && !layout.is_c_contiguous();
    let element = file.element_type().to_string().trim_start_matches(['<', '|']).to_owned();
    Some(Found { element, shape, is_fortran, start, bytes: read.len() })
}

/// As this crate reads it, as the type that it names.
fn own(file: &NpyFile, bytes: &[u8]) -> Option<Found> {
    macro_rules! each {
        ($($type:ty),*) => { None$(.or_else(|| found::<$type>(file, bytes)))* };
    }
    each!(Bool, i8, u8, i16, u16, f16, bf16, i32, u32, f32, i64, u64, f64, Complex<f32>, Complex<f64>)
}

/// What the reference takes and this crate does not: the other byte order, and types of one byte without the word that they have none;
/// headers of more than 64 KiB, and more than 64 axes; keys that occur twice; what Python allows and no writer uses, such as escapes
/// and sums.
fn is_refused_here(header: &[u8], descr: &str) -> bool {
    let text = String::from_utf8_lossy(header);
    let twice = |key| text.matches(key).count() > 1;
    let odd = ["\\", "'''", "\"\"\"", "+", "-"].iter().any(|part| text.contains(part));
    // `0x1`, `0b1`, `0o1`, `1_0`, `00`: the types of elements have none of these.
    let is_odd_number = |pair: &[u8]| pair[0].is_ascii_digit() && b"_xXoObB".contains(&pair[1]);
    let begins_with_zero =
        |three: &[u8]| !three[0].is_ascii_digit() && three[1] == b'0' && three[2].is_ascii_digit();
    !descr.starts_with(['<', '|'])
        || header.len() > 64 << 10
        || header.iter().filter(|byte| **byte == b',').count() > 64
        || ["descr", "fortran_order", "shape"].into_iter().any(twice)
        || odd
        || header.windows(2).any(is_odd_number)
        || header.windows(3).any(begins_with_zero)
}

/// What the reference does not take: headers whose last byte is no line's end, or that have one elsewhere, and this machine's order as
/// `=`.
fn is_refused_there(header: &[u8]) -> bool {
    let (last, others) = header.split_last().expect("a header");
    *last != b'\n' || others.iter().any(|byte| b"\r\n=".contains(byte))
}

fuzz_target!(|bytes: &[u8]| {
    let path = FOLDER.path().join("x.npy");
    fs::write(&path, bytes).expect("a file");
    let file = npy_file(&path);
    let own = file.as_ref().ok().and_then(|file| own(file, bytes));
    match (own, reference(bytes)) {
        (Some(own), Some((mut theirs, _))) => {
            // Without elements, or with one long axis at most, both orders are the same.
            let long_axes = theirs.shape.iter().filter(|length| **length > 1).count();
            theirs.is_fortran &= long_axes > 1 && theirs.bytes > 0;
            assert_eq!(own, theirs);
        }
        (None, None) => {}
        (None, Some((theirs, descr))) => {
            assert!(is_refused_here(&bytes[..theirs.start], &descr), "{theirs:?}, {file:?}");
        }
        (Some(own), None) => assert!(is_refused_there(&bytes[8..own.start]), "{own:?}"),
    }
});
