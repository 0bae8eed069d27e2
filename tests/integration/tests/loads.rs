//! Many arrays of files in one pass: the results, the copies that it takes, and what is left after a failure.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod common;

use common::{direct_double, double, host, is_clean, packing_double};
use gpumem_core::{Backend, ErrorKind, FileFailure};
use gpumem_files::{named, safetensors, save_safetensors};
use gpumem_host::HostOptions;
use gpumem_runtime::{DataFile, Device, FileView, TransferOptions};
use host_double::{Script, Trouble};
use ndarray::{Ix1, s};
use proptest::prelude::*;
use std::{fs, ops::ControlFlow, path::Path};
use tempfile::TempDir;

/// Several threads and small blocks, so that a little file is a long transfer.
fn options(threads: usize) -> TransferOptions {
    TransferOptions::new().threads(threads).block_bytes(16 << 10)
}

fn byte(file: usize, at: u64) -> u8 {
    ((at * 131 + file as u64 * 57) % 251) as u8
}

/// A folder with files of these lengths.
fn files(lengths: &[u64]) -> (TempDir, Vec<DataFile>) {
    let folder = tempfile::tempdir().unwrap();
    let write = |(file, length): (usize, &u64)| {
        let path = folder.path().join(format!("{file}"));
        fs::write(&path, (0..*length).map(|at| byte(file, at)).collect::<Vec<_>>()).unwrap();
        DataFile::open(&path).unwrap()
    };
    let opened = lengths.iter().enumerate().map(write).collect();
    (folder, opened)
}

/// A part of a file: the file, where it begins, its bytes, and every which of them is meant.
type Part = (usize, u64, usize, usize);

fn views(files: &[DataFile], parts: &[Part]) -> Vec<FileView<u8, Ix1>> {
    let view = |&(file, start, bytes, step): &Part| {
        FileView::new(&files[file], start, bytes).unwrap().slice(s![..;step]).unwrap()
    };
    parts.iter().map(view).collect()
}

fn arrive<B: Backend>(device: &Device<B>, files: &[DataFile], parts: &[Part]) {
    let stream = device.stream().unwrap();
    let arrays = stream.to_device_all(&views(files, parts)).unwrap();
    assert_eq!(arrays.len(), parts.len());
    for (array, &(file, start, bytes, step)) in arrays.iter().zip(parts) {
        let wanted: Vec<u8> = (start..start + bytes as u64).step_by(step).map(|at| byte(file, at)).collect();
        assert!(array.copy_to_host().unwrap().to_vec() == wanted, "{file} {start} {bytes} {step}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    /// Parts of any order, length and place, that overlap, repeat, leave gaps, and step.
    #[test]
    fn every_part_arrives(
        parts in prop::collection::vec(
            (0..2_usize, 0..3_u64 << 20, prop_oneof![Just(0), 1..50_usize, 50..40_000_usize], prop_oneof![4 => Just(1_usize), 1 => 2..9_usize]),
            0..60,
        ),
        threads in prop_oneof![Just(1), Just(4)],
        seed in 0..50_u64,
    ) {
        let (_folder, files) = files(&[(3 << 20) + 50_000, (3 << 20) + 40_000]);
        for options_of in [HostOptions::new(), HostOptions::new().adversarial(seed)] {
            let (device, raw) = host(options_of.clone());
            device.set_transfer_options(options(threads));
            arrive(&device, &files, &parts);
            is_clean(&device, &raw);
            let (device, raw) = double(options_of);
            device.set_transfer_options(options(threads));
            arrive(&device, &files, &parts);
            is_clean(&device, raw.host());
        }
    }
}

/// Of all files and of single arrays together. A break ends it between two pieces, and leaves nothing.
#[test]
fn progress_rises_and_a_break_ends_the_load() {
    let parts = [(0, 5, 300_000, 1), (0, 320_005, 200_000, 1), (1, 0, 200_000, 2), (1, 300_000, 400_000, 1)];
    // The 20 000 bytes between the first two are read with them.
    let total = 520_000 + 100_000 + 400_000;
    let (_folder, files) = files(&[600_000, 700_000]);
    let views = views(&files, &parts);
    for threads in [1, 4] {
        let (device, raw) = double(HostOptions::new());
        device.set_transfer_options(options(threads));
        let stream = device.stream().unwrap();
        let load = |most: u64| {
            let mut seen = Vec::new();
            let loaded = stream.to_device_all_with_progress(&views, |progress| {
                assert_eq!(progress.total, total);
                seen.push(progress.done);
                if progress.done > most { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            });
            assert!(seen.windows(2).all(|pair| pair[0] < pair[1]), "{seen:?}");
            (loaded, seen.last().copied())
        };
        let (loaded, last) = load(u64::MAX);
        assert_eq!(last, Some(total));
        for (array, &(file, start, bytes, step)) in loaded.unwrap().iter().zip(&parts) {
            let wanted: Vec<u8> =
                (start..start + bytes as u64).step_by(step).map(|at| byte(file, at)).collect();
            assert!(array.copy_to_host().unwrap().to_vec() == wanted, "{file} {start}");
        }
        for most in [0, 150_000, 500_000, 700_000] {
            let (loaded, last) = load(most);
            let error = loaded.unwrap_err();
            assert_eq!((error.kind(), error.operation()), (&ErrorKind::Cancelled, "to_device_all"));
            assert!(last.is_some_and(|last| last > most));
        }
        arrive(&device, &files, &parts);
        drop(stream);
        is_clean(&device, raw.host());
    }
}

/// One copy for each array, and one more for each copy of the ring that ends within one.
#[test]
fn neighbours_are_read_in_one_pass() {
    const ARRAYS: u64 = 3000;
    let length = |at: u64| (at * 7919 % 3000) as usize;
    let mut parts = Vec::new();
    let mut start = 5;
    for at in 0..ARRAYS {
        parts.push((0, start, length(at), 1));
        start += length(at) as u64;
    }
    let (_folder, files) = files(&[start]);
    let views = views(&files, &parts);
    let (device, raw) = double(HostOptions::new());
    device.set_transfer_options(options(4));
    let stream = device.stream().unwrap();
    let calls = |work: &dyn Fn()| {
        raw.script().begin(None);
        work();
        stream.synchronize().unwrap();
        raw.script().calls()
    };
    // The memory comes from the pool in both.
    drop(stream.to_device_all(&views).unwrap());
    let all = calls(&|| drop(stream.to_device_all(&views).unwrap()));
    let one_by_one = calls(&|| views.iter().for_each(|view| drop(stream.to_device(view).unwrap())));
    let most = ARRAYS + ARRAYS / 2;
    assert!(all < most && most < one_by_one, "{all} calls, {one_by_one} one by one");
    arrive(&device, &files, &parts);
}

/// Some in many blocks, most in a part of one, and some empty.
#[test]
fn a_model_arrives_on_a_device_that_stages() {
    const TENSORS: usize = 300;
    let (folder, (writer, _raw)) = (tempfile::tempdir().unwrap(), host(HostOptions::new()));
    let path = folder.path().join("m.safetensors");
    let length = |at: usize| if at.is_multiple_of(20) { 100_000 + 777 * at } else { at * 7919 % 3000 };
    let bytes = |at: usize| (0..length(at)).map(|place| (place * 131 + at) as u8).collect::<Vec<_>>();
    let arrays: Vec<_> = (0..TENSORS).map(|at| writer.to_device(&bytes(at)).unwrap()).collect();
    let tensors = arrays.iter().enumerate().map(|(at, array)| named(format!("{at}"), array));
    save_safetensors(&path, &tensors.collect::<Vec<_>>(), [("format", "pt")]).unwrap();
    for open in [double, packing_double, direct_double] {
        let (device, raw) = open(HostOptions::new().adversarial(3));
        device.set_transfer_options(options(4));
        let stream = device.stream().unwrap();
        let is_odd = |name: &str| name.parse::<usize>().unwrap() % 2 == 1;
        let mut loaded = safetensors(&path).unwrap().load(&stream, |tensor| !is_odd(tensor.name())).unwrap();
        assert_eq!(loaded.len(), TENSORS / 2);
        for at in 0..TENSORS {
            match loaded.take::<u8, Ix1>(&at.to_string()) {
                Ok(array) => assert!(array.copy_to_host().unwrap().to_vec() == bytes(at), "{at}"),
                Err(error) => assert!(is_odd(&at.to_string()), "{error}"),
            }
        }
        drop((loaded, stream));
        is_clean(&device, raw.host());
    }
}

/// Makes one of the parts end behind the end of the file.
fn cut(path: &Path, bytes: u64) {
    fs::OpenOptions::new().write(true).open(path).unwrap().set_len(bytes).unwrap();
}

#[test]
fn a_failure_leaves_nothing() {
    let parts: Vec<Part> = (0..40).map(|at| (0, at * 5000, 4000, 1)).collect();
    for threads in [1, 4] {
        let (folder, files) = files(&[200_000]);
        let views = views(&files, &parts);
        cut(&folder.path().join("0"), 150_000);
        let (device, raw) = double(HostOptions::new());
        device.set_transfer_options(options(threads));
        let error = device.stream().unwrap().to_device_all(&views).unwrap_err();
        let is_truncated = matches!(error.kind(), ErrorKind::File(error)
            if matches!(error.failure, FileFailure::Truncated { found: 150_000, .. }));
        assert!(is_truncated, "{error}");
        is_clean(&device, raw.host());
        // It has the bytes, and has been written meanwhile.
        let error = device.stream().unwrap().to_device_all(&views[..3]).unwrap_err();
        let is_changed = matches!(error.kind(), ErrorKind::File(error)
            if matches!(error.failure, FileFailure::Changed));
        assert!(is_changed, "{error}");
        is_clean(&device, raw.host());
    }
    let (_folder, files) = files(&[200_000]);
    for trouble in [Trouble::Refuse, Trouble::Lose] {
        for at in 0..400 {
            let (device, raw) = double(HostOptions::new());
            device.set_transfer_options(options(4));
            let stream = device.stream().unwrap();
            raw.script().begin(Some((at, trouble)));
            let loaded = stream.to_device_all(&views(&files, &parts));
            let struck = raw.script().struck();
            raw.script().begin(None);
            match loaded {
                Ok(arrays) if !matches!(trouble, Trouble::Lose) => {
                    arrays.iter().zip(&parts).for_each(|(array, part)| {
                        let wanted = (part.1..part.1 + 4000).map(|at| byte(0, at)).collect::<Vec<_>>();
                        assert!(array.copy_to_host().unwrap().to_vec() == wanted, "call {at}, {struck:?}");
                    })
                }
                // A device may be lost after the last copy has been enqueued.
                Ok(_) => {}
                Err(error) => {
                    let is_ours = *error.kind() == Script::REFUSED || error.is_device_lost();
                    assert!(is_ours, "call {at}, {struck:?}: {error}");
                }
            }
            if trouble == Trouble::Refuse && struck != Some("release") {
                drop(stream);
                device.take_errors();
                is_clean(&device, raw.host());
            }
            if struck.is_none() {
                assert!(at > 10, "{at} calls");
                break;
            }
        }
    }
}

/// In a graph they are constants, as other uploads are.
#[test]
fn a_recording_reads_them_once() {
    let (folder, files) = files(&[10_000]);
    let (device, _raw) = host(HostOptions::new());
    let views = views(&files, &[(0, 10, 100, 1), (0, 200, 50, 1)]);
    let graph = device
        .record((), |stream, ()| {
            let mut arrays = stream.to_device_all(&views)?.into_iter();
            Ok((arrays.next().unwrap(), arrays.next().unwrap()))
        })
        .unwrap();
    cut(&folder.path().join("0"), 0);
    let stream = device.stream().unwrap();
    for _ in 0..2 {
        let (first, second) = graph.launch(&stream, ()).unwrap();
        let wanted = |from: u64, to| (from..to).map(|at| byte(0, at)).collect::<Vec<_>>();
        assert_eq!(first.copy_to_host().unwrap().to_vec(), wanted(10, 110));
        assert_eq!(second.copy_to_host().unwrap().to_vec(), wanted(200, 250));
    }
}

/// What could not be read takes no room from what is read next.
#[test]
fn a_failed_load_in_a_recording_gives_its_room_back() {
    const BYTES: usize = 3 << 20;
    let (folder, files) = files(&[BYTES as u64; 2]);
    let (device, _raw) = host(HostOptions::new().memory(2 * BYTES - 1));
    let views = views(&files, &[(0, 0, BYTES, 1), (1, 0, BYTES, 1)]);
    cut(&folder.path().join("0"), 3);
    let graph = device.record((), |stream, ()| {
        for _ in 0..3 {
            let truncated = stream.to_device(&views[0]).unwrap_err();
            assert!(matches!(truncated.kind(), ErrorKind::File(_)), "{truncated}");
            assert!(stream.to_device_all(&views).is_err());
        }
        let kept = stream.to_device(&views[1])?;
        let full = stream.to_device(&views[1]).unwrap_err();
        assert!(full.is_out_of_memory(), "what is kept takes room: {full}");
        Ok(kept)
    });
    assert_eq!(graph.unwrap().report().constant_bytes, BYTES);
}
