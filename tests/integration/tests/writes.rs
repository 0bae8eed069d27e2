//! What is left when the system refuses to write one part of a file.
#![cfg(all(target_os = "linux", target_pointer_width = "64", target_endian = "little"))]
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod common;

use common::{double, host, is_clean, packing_double, refused_calls::refuse};
use gpumem_core::{Backend, Error, ErrorKind, FileFailure, Result};
use gpumem_files::{named, save_npy, save_npz, save_safetensors};
use gpumem_host::HostOptions;
use gpumem_runtime::{Device, NewFile, Order, TransferOptions};
use ndarray::{Array2, s};
use std::{
    env, fs,
    fs::File,
    ops::Range,
    path::Path,
    process::{Command, Output},
    thread,
};

/// Of files whose numbers are at least this, calls are refused.
const REFUSED_FILES: u32 = 200;
const SKIPPED: &str = "the system takes no filter of calls";

/// Runs a test once more, in a process of its own.
fn in_a_child(test: &str, variable: &str) -> Output {
    let mut child = Command::new(env::current_exe().unwrap());
    let output = child.args([test, "--exact", "--nocapture"]).env(variable, "1").output().unwrap();
    assert!(
        output.status.success() && String::from_utf8_lossy(&output.stdout).contains("1 passed"),
        "{output:?}"
    );
    output
}

fn failed_with(error: &Error, number: i32) {
    let failure = match error.kind() {
        ErrorKind::File(error) => &error.failure,
        other => panic!("{other}"),
    };
    assert_eq!(*failure, FileFailure::Io { code: number }, "{error}");
}

#[derive(Debug, Clone, Copy)]
enum Format {
    Npy,
    NpyOfPart,
    SafeTensors,
    Npz,
}

const FORMATS: [Format; 4] = [Format::Npy, Format::NpyOfPart, Format::SafeTensors, Format::Npz];

/// Writes arrays of several blocks, one of them in runs.
fn save<B: Backend>(device: &Device<B>, path: &Path, format: Format) -> Result<()> {
    let base = Array2::from_shape_fn((48, 64), |(i, j)| (i * 64 + j) as u32);
    let array = device.to_device(&base)?;
    let part = array.slice(s![..;-1, 3..40])?;
    let tensors = [named("whole", &array), named("part", &part)];
    match format {
        Format::Npy => save_npy(path, &array),
        Format::NpyOfPart => save_npy(path, &part),
        Format::SafeTensors => save_safetensors(path, &tensors, [("format", "pt")]),
        Format::Npz => save_npz(path, &tensors),
    }
}

/// Saves while writes that begin at these bytes are refused, and then while none is. Returns whether the first save failed.
fn fails<B: Backend>(device: &Device<B>, format: Format, offsets: Range<u32>, wanted: &[u8]) -> bool {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x");
    fs::write(&path, b"old").unwrap();
    let is_alone = || fs::read_dir(folder.path()).unwrap().count() == 1;
    refuse(libc::SYS_pwrite64, REFUSED_FILES, offsets.clone()).unwrap();
    // A new file has the least number that is free.
    let held: Vec<File> = (0..=REFUSED_FILES).map(|_| File::open("/dev/null").unwrap()).collect();
    let saved = save(device, &path, format);
    drop(held);
    let found = fs::read(&path).unwrap();
    match &saved {
        Ok(()) => assert!(found == wanted, "{format:?} {offsets:?}"),
        Err(error) => {
            failed_with(error, libc::EIO);
            assert_eq!(found, b"old", "{format:?} {offsets:?}");
        }
    }
    assert!(is_alone(), "{format:?} {offsets:?}: a temporary is left");
    save(device, &path, format).unwrap();
    assert!(fs::read(&path).unwrap() == wanted && is_alone(), "{format:?} {offsets:?}");
    saved.is_err()
}

/// Finds each write that begins at these bytes: it fails when it alone is refused.
fn writes(fails: &dyn Fn(Range<u32>) -> bool, offsets: Range<u32>) -> Vec<u32> {
    match offsets.end - offsets.start {
        _ if !fails(offsets.clone()) => Vec::new(),
        1 => vec![offsets.start],
        bytes => {
            let middle = offsets.start + bytes / 2;
            [writes(fails, offsets.start..middle), writes(fails, middle..offsets.end)].concat()
        }
    }
}

fn each_write(threads: usize, format: Format) {
    let folder = tempfile::tempdir().unwrap();
    save(&host(HostOptions::new()).0, &folder.path().join("x"), format).unwrap();
    let wanted = fs::read(folder.path().join("x")).unwrap();
    // What is refused to a thread stays so.
    let in_a_thread =
        |run: &(dyn Fn() -> bool + Sync)| thread::scope(|scope| scope.spawn(run).join().unwrap());
    let options = TransferOptions::new().threads(threads).block_bytes(4 << 10);
    let on_host = |offsets: Range<u32>| {
        in_a_thread(&|| {
            let (device, raw) = host(HostOptions::new());
            device.set_transfer_options(options);
            let failed = fails(&device, format, offsets.clone(), &wanted);
            is_clean(&device, &raw);
            failed
        })
    };
    let found = writes(&on_host, 0..wanted.len() as u32);
    println!("{format:?}, {threads} threads: {found:?}");
    assert!(found.len() >= 3, "{found:?}");
    // The same writes, which the other devices' threads begin in other orders.
    for offset in found {
        for open in [double, packing_double] {
            let failed = in_a_thread(&|| {
                let (device, raw) = open(HostOptions::new().adversarial(9));
                device.set_transfer_options(options);
                let failed = fails(&device, format, offset..offset + 1, &wanted);
                is_clean(&device, raw.host());
                failed
            });
            assert!(failed, "{format:?}, {threads} threads: the write at {offset}");
        }
    }
}

/// In a process some of whose writes fail, as those of a bad disk do.
#[test]
fn a_write_that_the_system_refuses_leaves_what_was_there() {
    const CHILD: &str = "GPUMEM_TEST_BAD_DISK";
    if env::var_os(CHILD).is_none() {
        let output = in_a_child("a_write_that_the_system_refuses_leaves_what_was_there", CHILD);
        if String::from_utf8_lossy(&output.stdout).contains(SKIPPED) {
            eprintln!("skipped: {SKIPPED}");
        }
        return;
    }
    // Of no file.
    let tried = thread::spawn(|| refuse(libc::SYS_pwrite64, u32::MAX, 0..1));
    if let Err(error) = tried.join().unwrap() {
        println!("{SKIPPED}: {error}");
        return;
    }
    for threads in [1, 4] {
        FORMATS.into_iter().for_each(|format| each_write(threads, format));
    }
}

/// In a process that may not write behind the first MiB of a file that is there already.
#[test]
fn a_full_disk_leaves_no_temporary() {
    const CHILD: &str = "GPUMEM_TEST_FULL_DISK";
    if env::var_os(CHILD).is_none() {
        in_a_child("a_full_disk_leaves_no_temporary", CHILD);
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.npy");
    fs::write(&path, b"old").unwrap();
    let file = NewFile::create(&path, 4 << 20).unwrap();
    let limit = libc::rlimit { rlim_cur: 1 << 20, rlim_max: 1 << 20 };
    // SAFETY: a valid limit, and no handler. Without the signal the call returns an error.
    unsafe {
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
        libc::setrlimit(libc::RLIMIT_FSIZE, &raw const limit);
    }
    let (device, raw) = double(HostOptions::new());
    let array = device.device_array::<u8, _>(4 << 20).unwrap();
    // The file has its length, so it is a write that fails.
    failed_with(&file.write_array(0, &array, Order::C).unwrap_err(), libc::EFBIG);
    drop(file);
    // Here it is what gives the file its length.
    failed_with(&save_npy(&path, &array).unwrap_err(), libc::EFBIG);
    let small = device.to_device(&[1_u8, 2]).unwrap();
    let left = || (fs::read_dir(folder.path()).unwrap().count(), fs::read(&path).unwrap());
    assert_eq!(left(), (1, b"old".to_vec()));
    save_npy(&path, &small).unwrap();
    assert_eq!(left().0, 1);
    assert!(left().1.ends_with(&[1, 2]));
    drop((array, small));
    is_clean(&device, raw.host());
}
