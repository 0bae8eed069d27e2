//! The arithmetic of kernels that are written in Rust, at edge values: their C++ as machine code of this processor,
//! against the same kernels on the host and against Rust itself. The C++ runs under a sanitizer that stops at undefined
//! behaviour.
//!
//! Skipped where there is no `g++`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // helpers of tests

#[path = "../operators/mod.rs"]
#[allow(dead_code)] // not all of them are numbers
mod operators;
#[path = "../subset/mod.rs"]
#[allow(dead_code)] // not all of them give one number for each work-item
mod subset;

use gpumem::{
    Device, Element,
    kernel::{KernelDef, Parameters, Slice, SliceMut, ViewMut, config_for_items},
};
use libloading::Library;
use ndarray::Array2;
use operators::edges::{Float, Integer, pairs};
use std::{fmt::Debug, process::Command, sync::OnceLock};

const DEVICE: &str = include_str!("device.hpp");

/// An array as device code has it.
#[repr(C)]
#[derive(Clone, Copy)]
struct Row {
    address: usize,
    len: u64,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Grid {
    address: usize,
    extents: [u64; 2],
    strides: [i64; 2],
}

fn row<T>(elements: &[T]) -> Row {
    Row { address: elements.as_ptr().addr(), len: elements.len() as u64 }
}

fn grid<T>(elements: &mut Array2<T>) -> Grid {
    let (rows, columns) = elements.dim();
    let size = size_of::<T>();
    Grid {
        address: elements.as_mut_ptr().addr(),
        extents: [rows as u64, columns as u64],
        strides: [(columns * size) as i64, size as i64],
    }
}

fn has_compiler() -> bool {
    static FOUND: OnceLock<bool> = OnceLock::new();
    *FOUND.get_or_init(|| {
        let found = Command::new("g++").arg("--version").output().is_ok_and(|output| output.status.success());
        if !found {
            println!("skipped: there is no g++");
        }
        found
    })
}

/// Compiles a kernel's C++ for this processor.
fn compiled<P: Parameters>(declaration: &KernelDef<P>) -> (Library, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let (source, library) = (folder.path().join("kernel.cpp"), folder.path().join("kernel.so"));
    let text = format!("{DEVICE}\n{}", declaration.portable_text(32, true).unwrap());
    std::fs::write(&source, text).unwrap();
    let options = ["-std=c++14", "-O1", "-ffp-contract=off", "-shared", "-fPIC", "-w"];
    let sanitizer = [
        "-fsanitize=undefined,float-cast-overflow",
        "-fsanitize-undefined-trap-on-error",
        "-fno-sanitize=alignment",
    ];
    let output = Command::new("g++")
        .args(options)
        .args(sanitizer)
        .arg(&source)
        .arg("-o")
        .arg(&library)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    // SAFETY: the library has no initialisers that do anything.
    (unsafe { Library::new(&library) }.unwrap(), folder)
}

type Kernel<T, U> = KernelDef<(Slice<T>, Slice<T>, ViewMut<T, 2>, ViewMut<U, 2>)>;

/// Runs the C++ of a kernel for every pair.
fn on_processor<T: Element, U: Element>(
    declaration: &Kernel<T, U>,
    pairs: &[(T, T)],
    rows: [usize; 2],
) -> (Array2<T>, Array2<U>) {
    let (library, _folder) = compiled(declaration);
    let (a, b): (Vec<T>, Vec<T>) = pairs.iter().copied().unzip();
    let mut out = Array2::from_elem((rows[0], a.len()), T::zeroed());
    let mut more = Array2::from_elem((rows[1], a.len()), U::zeroed());
    // SAFETY: the kernel has these parameters, as its own text asserts; the arrays are there while it runs.
    unsafe {
        let name = format!("{}\0", declaration.name());
        let kernel = library.get::<extern "C" fn(Row, Row, Grid, Grid)>(name.as_bytes()).unwrap();
        let work_item = library.get::<extern "C" fn(u32)>(b"work_item\0").unwrap();
        for number in 0..a.len() {
            work_item(number as u32);
            kernel(row(&a), row(&b), grid(&mut out), grid(&mut more));
        }
    }
    (out, more)
}

/// Runs a kernel on the host for every pair.
fn on_host<T: Element, U: Element>(
    declaration: &Kernel<T, U>,
    pairs: &[(T, T)],
    rows: [usize; 2],
) -> (Array2<T>, Array2<U>) {
    let device = Device::open("host").unwrap();
    let stream = device.stream().unwrap();
    let (a, b): (Vec<T>, Vec<T>) = pairs.iter().copied().unzip();
    let (x, y) = (stream.to_device(&a).unwrap(), stream.to_device(&b).unwrap());
    let mut out = stream.to_device(&Array2::from_elem((rows[0], a.len()), T::zeroed())).unwrap();
    let mut more = stream.to_device(&Array2::from_elem((rows[1], a.len()), U::zeroed())).unwrap();
    let kernel = declaration.load(&device).unwrap();
    kernel
        .launch(&stream, &config_for_items([a.len(), 1, 1], [64, 1, 1]), (&x, &y, &mut out, &mut more))
        .unwrap();
    let out = stream.copy_to_host(&out).unwrap().view().unwrap().to_owned();
    (out, stream.copy_to_host(&more).unwrap().view().unwrap().to_owned())
}

#[track_caller]
fn same<T: Element + Debug, K: PartialEq + Debug>(
    found: &Array2<T>,
    expected: &Array2<T>,
    key: impl Fn(T) -> K,
    pairs: &[impl Debug],
) {
    for ((row, column), value) in found.indexed_iter() {
        let expected = expected[[row, column]];
        assert_eq!(
            key(*value),
            key(expected),
            "row {row} of {:?}: {value:?}, and the host {expected:?}",
            pairs[column]
        );
    }
}

macro_rules! integers {
    ($($type:ident $kernel:ident $overflowing:ident;)*) => {$(
        #[test]
        fn $kernel() {
            if !has_compiler() {
                return;
            }
            let pairs = pairs(&$type::edges());
            let rows = [operators::ROWS, operators::BITS];
            let (out, bits) = on_processor(&operators::$kernel(), &pairs, rows);
            let (host, host_bits) = on_host(&operators::$kernel(), &pairs, rows);
            same(&out, &host, |n| n, &pairs);
            same(&bits, &host_bits, |n| n, &pairs);

            let (out, bits) = on_processor(&operators::$overflowing(), &pairs, [8, 1]);
            for (column, (x, y)) in pairs.iter().copied().enumerate() {
                assert_eq!(out.column(column).to_vec(), $type::wrapped(x, y), "{x} and {y}");
                assert_eq!(bits[[0, column]], 1u32.wrapping_shl(y as u32), "{y}");
            }
        }
    )*};
}
integers! {
    i8 integers_i8 overflowing_i8;
    u8 integers_u8 overflowing_u8;
    i16 integers_i16 overflowing_i16;
    u16 integers_u16 overflowing_u16;
    i32 integers_i32 overflowing_i32;
    u32 integers_u32 overflowing_u32;
    i64 integers_i64 overflowing_i64;
    u64 integers_u64 overflowing_u64;
}

macro_rules! signed {
    ($($type:ident $kernel:ident;)*) => {$(
        #[test]
        fn $kernel() {
            if !has_compiler() {
                return;
            }
            let pairs = pairs(&$type::edges());
            let rows = [operators::ROWS, operators::BITS];
            let (out, bits) = on_processor(&operators::$kernel(), &pairs, rows);
            let (host, host_bits) = on_host(&operators::$kernel(), &pairs, rows);
            same(&out, &host, |n| n, &pairs);
            same(&bits, &host_bits, |n| n, &pairs);
        }
    )*};
}
signed! { i8 signed_i8; i16 signed_i16; i32 signed_i32; i64 signed_i64; }

macro_rules! floats {
    ($($type:ident $kernel:ident;)*) => {$(
        #[test]
        fn $kernel() {
            if !has_compiler() {
                return;
            }
            let pairs = pairs(&$type::edges());
            let rows = [operators::ROWS, 5];
            let (out, _) = on_processor(&operators::$kernel(), &pairs, rows);
            let (host, _) = on_host(&operators::$kernel(), &pairs, rows);
            same(&out, &host, Float::key, &pairs);
        }
    )*};
}
floats! { f32 floats_f32; f64 floats_f64; }

#[test]
fn casts_are_those_of_rust() {
    if !has_compiler() {
        return;
    }
    let doubles = [
        0.0,
        -0.0,
        0.9,
        -0.9,
        127.5,
        128.0,
        -129.0,
        255.9,
        256.0,
        32767.6,
        65536.0,
        2147483647.0,
        2147483648.0,
        -2147483649.0,
        4294967295.0,
        4294967296.0,
        9.3e18,
        -9.3e18,
        1.9e19,
        1e300,
        -1e300,
        f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
    ];
    let floats = doubles.map(|value| value as f32);
    let integers = [
        0,
        1,
        -1,
        127,
        128,
        -129,
        255,
        256,
        40000,
        -40000,
        1 << 31,
        -(1 << 31) - 1,
        1 << 32,
        (1 << 53) + 1,
        i64::MAX,
        i64::MIN,
        16777217,
        -16777217,
        5,
        6,
        7,
        8,
        9,
        10,
    ];
    let declaration = operators::casts();
    let (library, _folder) = compiled(&declaration);
    let (mut out, mut wide) = (Array2::<i64>::zeros((20, 24)), Array2::<f64>::zeros((6, 24)));
    // SAFETY: as in `on_processor`.
    unsafe {
        let kernel = library.get::<extern "C" fn(Row, Row, Row, Grid, Grid)>(b"casts_\0").unwrap();
        let work_item = library.get::<extern "C" fn(u32)>(b"work_item\0").unwrap();
        for number in 0..24 {
            work_item(number);
            kernel(row(&floats), row(&doubles), row(&integers), grid(&mut out), grid(&mut wide));
        }
    }
    let device = Device::open("host").unwrap();
    let stream = device.stream().unwrap();
    let (x, d, n) = (
        stream.to_device(&floats.to_vec()).unwrap(),
        stream.to_device(&doubles.to_vec()).unwrap(),
        stream.to_device(&integers.to_vec()).unwrap(),
    );
    let mut host = stream.to_device(&Array2::<i64>::zeros((20, 24))).unwrap();
    let mut host_wide = stream.to_device(&Array2::<f64>::zeros((6, 24))).unwrap();
    let kernel = declaration.load(&device).unwrap();
    kernel
        .launch(&stream, &config_for_items([24, 1, 1], [24, 1, 1]), (&x, &d, &n, &mut host, &mut host_wide))
        .unwrap();
    let cases: Vec<_> = (0..24).map(|i| (floats[i], doubles[i], integers[i])).collect();
    same(&out, &stream.copy_to_host(&host).unwrap().view().unwrap().to_owned(), |n| n, &cases);
    let host_wide = stream.copy_to_host(&host_wide).unwrap().view().unwrap().to_owned();
    same(&wide, &host_wide, |n| (!n.is_nan()).then(|| n.to_bits()), &cases);
}

#[test]
fn functions_read_arrays_that_are_written() {
    if !has_compiler() {
        return;
    }
    let (kernel, pairs) = (operators::read_views(), pairs(&i64::edges()));
    let (out, bits) = on_processor(&kernel, &pairs, [4, 1]);
    let (host, host_bits) = on_host(&kernel, &pairs, [4, 1]);
    same(&out, &host, |n| n, &pairs);
    same(&bits, &host_bits, |n| n, &pairs);
}

#[test]
fn functions_enums_and_complex_numbers_are_those_of_rust() {
    if !has_compiler() {
        return;
    }
    let device = Device::open("host").unwrap();
    let stream = device.stream().unwrap();
    use subset::{
        features::{complex_numbers, enums, functions},
        meanings,
    };
    let meanings = meanings::pairs().into_iter().map(|(declaration, _)| declaration);
    // Half precision is not run here.
    let meanings = meanings.filter(|declaration| !declaration.name().contains("halves"));
    for declaration in [functions(), enums(), complex_numbers()].into_iter().chain(meanings) {
        let (library, _folder) = compiled(&declaration);
        let mut found = [0i64; 64];
        // SAFETY: as in `on_processor`.
        unsafe {
            let name = format!("{}\0", declaration.name());
            let kernel = library.get::<extern "C" fn(Row)>(name.as_bytes()).unwrap();
            let work_item = library.get::<extern "C" fn(u32)>(b"work_item\0").unwrap();
            for number in 0..64 {
                work_item(number);
                kernel(Row { address: found.as_mut_ptr().expose_provenance(), len: 64 });
            }
        }
        let mut out = stream.to_device(&[0i64; 64]).unwrap();
        let kernel = declaration.load(&device).unwrap();
        kernel.launch(&stream, &config_for_items([64, 1, 1], [32, 1, 1]), (&mut out,)).unwrap();
        let expected = stream.copy_to_host(&out).unwrap().view().unwrap().to_vec();
        assert_eq!(found.to_vec(), expected, "{}", declaration.source_text().unwrap());
    }
}

/// Sums of waves that do not fit their types.
#[gpumem::kernel(unsafe)]
fn wrapping_sums(out: SliceMut<i64>) {
    let (least, most) = (i32::MIN / 3, i64::MAX / 5);
    let sum = wave_sum(least);
    let wide = wave_sum(most);
    let scanned = wave_scan(most);
    let all = (sum as i64) ^ wide;
    out[global_id(0)] = if lane() == 0 { all } else { scanned };
}

#[test]
fn sums_of_waves_wrap() {
    if !has_compiler() {
        return;
    }
    let (library, _folder) = compiled(&wrapping_sums());
    let mut found = [0i64; 32];
    // SAFETY: as in `on_processor`.
    unsafe {
        let kernel = library.get::<extern "C" fn(Row)>(b"wrapping_sums_\0").unwrap();
        let lane = library.get::<extern "C" fn(u32)>(b"lane_of_wave\0").unwrap();
        for number in [0, 31] {
            lane(number);
            kernel(Row { address: found.as_mut_ptr().expose_provenance(), len: 32 });
        }
    }
    let device = Device::open("host").unwrap();
    let mut out = device.to_device(&[0i64; 32]).unwrap();
    let stream = device.stream().unwrap();
    wrapping_sums().load(&device).unwrap().launch(&stream, &config_for_items(32, 32), (&mut out,)).unwrap();
    assert_eq!([found[0], found[31]], [out.get(0).unwrap(), out.get(31).unwrap()]);
}
