//! Ranges of files as sources of copies: the results, and what is left after a failure. Each on the host backend and on a double
//! that stages as a GPU's driver does.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod common;

use common::{direct_double, double, host, is_clean, packing_double};
use gpumem_core::{Backend, Error, ErrorKind, FileFailure, LayoutError};
use gpumem_host::{Host, HostOptions};
use gpumem_kernel::{Kernel, KernelDef, SliceMut, WorkItemIds, config_for_items};
use gpumem_runtime::{ArraySpec, DataFile, Device, FileView, NewFile, Order, Route, TransferOptions, writes};
use host_double::{Script, Trouble};
use ndarray::{Array1, Array2, ArrayView2, Ix1, Ix2, ShapeBuilder, arr0, s};
use std::{
    fs::{self, OpenOptions},
    io::Write,
    ops::ControlFlow,
    path::{Path, PathBuf},
};
use tempfile::TempDir;

/// Several threads and small parts, so that a little file is a long transfer.
fn options() -> TransferOptions {
    TransferOptions::new().threads(4).block_bytes(16 << 10)
}

fn numbers(rows: usize, columns: usize) -> Array2<u32> {
    Array2::from_shape_fn((rows, columns), |(i, j)| (i * columns + j) as u32)
}

/// A folder with a file: so many bytes in front, then the elements.
struct Scene {
    folder: TempDir,
    path: PathBuf,
}

impl Scene {
    fn new(front: usize, elements: &[u8]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data");
        let mut file = fs::File::create(&path).unwrap();
        file.write_all(&vec![0xEE; front]).unwrap();
        file.write_all(elements).unwrap();
        Self { folder, path }
    }

    fn open(&self) -> DataFile {
        DataFile::open(&self.path).unwrap()
    }

    fn cut(&self, bytes: u64) {
        OpenOptions::new().write(true).open(&self.path).unwrap().set_len(bytes).unwrap();
    }
}

fn failure(error: &Error) -> &FileFailure {
    match error.kind() {
        ErrorKind::File(error) => &error.failure,
        other => panic!("{other}"),
    }
}

/// Copies each sort of view of an array in a file, into new and into existing arrays.
fn views<B: Backend>(device: &Device<B>) {
    let base = numbers(60, 100);
    for front in [0, 1, 4097] {
        let rows = Scene::new(front, bytemuck::cast_slice(base.as_slice().unwrap()));
        let file = FileView::<u32, _>::new(&rows.open(), front as u64, (60, 100)).unwrap();
        each_slice(device, &file, base.view());
    }
    let columns = base.t().iter().copied().collect::<Vec<_>>();
    let columns = Scene::new(3, bytemuck::cast_slice(&columns));
    let spec = ArraySpec::new((60, 100)).order(Order::F);
    each_slice(device, &FileView::<u32, _>::new(&columns.open(), 3, spec).unwrap(), base.view());
}

fn each_slice<B: Backend>(device: &Device<B>, file: &FileView<u32, Ix2>, base: ArrayView2<'_, u32>) {
    each(device, file, base);
    each(device, &file.t(), base.t());
    macro_rules! slices {
        ($($info:expr),*) => { $({
            let part = file.slice($info).unwrap();
            each(device, &part, base.slice($info));
            each(device, &part.t(), base.slice($info).reversed_axes());
        })* };
    }
    slices!(
        s![7.., ..;3],
        s![..;-1, 5..9],
        s![.., ..;-1],
        s![..;-7, ..;2],
        s![3..4, 1..2],
        s![.., ..;25],
        s![5..5, ..],
        s![10..50, 3..99]
    );
    let row = file.slice(s![11, ..]).unwrap();
    assert_eq!(device.to_device(&row).unwrap().copy_to_host().unwrap(), base.row(11));
    let mut wide = device.device_array::<u32, _>((5, 100)).unwrap();
    wide.assign(&row).unwrap();
    assert_eq!(wide.copy_to_host().unwrap(), base.row(11).broadcast((5, 100)).unwrap());
}

fn each<B: Backend>(device: &Device<B>, file: &FileView<u32, Ix2>, wanted: ArrayView2<'_, u32>) {
    let new = device.to_device(file).unwrap();
    assert_eq!(new.copy_to_host().unwrap(), wanted);
    assert_eq!(new.strides(), file.layout().like().strides(), "packed, in the order of the file");
    for order in [Order::C, Order::F] {
        let (rows, columns) = wanted.dim();
        let frame = Array2::from_elem((rows + 2, columns + 2).set_f(order == Order::F), 7);
        let inner = s![1..=rows, 1..=columns];
        let mut expected = frame.clone();
        expected.slice_mut(inner).assign(&wanted);
        let mut array = device.to_device(&frame).unwrap();
        array.slice_mut(inner).unwrap().copy_to_device(file).unwrap();
        assert_eq!(array.copy_to_host().unwrap(), expected);
        let stream = device.stream().unwrap();
        let mut array = stream.to_device(&frame).unwrap();
        stream.copy_to_device(&mut array.slice_mut(inner).unwrap(), file).unwrap();
        assert_eq!(array.copy_to_host().unwrap(), expected);
    }
}

#[test]
fn every_view_of_a_file_arrives() {
    for seed in [None, Some(5)] {
        let options_of = || seed.map_or_else(HostOptions::new, |seed| HostOptions::new().adversarial(seed));
        let (device, raw) = host(options_of());
        device.set_transfer_options(options().block_bytes(4 << 10));
        views(&device);
        is_clean(&device, &raw);
        for packs in [false, true] {
            let (device, raw) = if packs { packing_double(options_of()) } else { double(options_of()) };
            device.set_transfer_options(options().block_bytes(4 << 10));
            views(&device);
            is_clean(&device, raw.host());
        }
    }
}

#[test]
fn long_files_arrive_from_any_offset() {
    let bytes = |len: usize| Array1::from_iter((0..len).map(|at| (at * 131 % 251) as u8));
    let long = bytes((10 << 20) + 3);
    for front in [1, 4095, 4096, 4097] {
        let scene = Scene::new(front, long.as_slice().unwrap());
        let file = scene.open();
        for threads in [1, 4] {
            let (device, raw) = double(HostOptions::new());
            device.set_transfer_options(TransferOptions::new().threads(threads));
            let view = FileView::<u8, _>::new(&file, front as u64, long.len()).unwrap();
            let array = device.to_device(&view).unwrap();
            assert_eq!(array.copy_to_host().unwrap(), long, "{front} {threads}");
            let part = (1 << 20, 4 << 20);
            for len in [part.0 - 1, part.0, part.0 + 1, part.1 - 1, part.1, part.1 + 1] {
                let view = FileView::<u8, _>::new(&file, front as u64, len).unwrap();
                assert_eq!(device.to_device(&view).unwrap().copy_to_host().unwrap(), bytes(len), "{len}");
            }
            drop(array);
            is_clean(&device, raw.host());
        }
    }
}

#[test]
fn ranges_outside_of_the_file_are_refused() {
    let scene = Scene::new(0, &[1; 100]);
    let file = scene.open();
    assert!(FileView::<u8, _>::new(&file, 0, 100).is_ok() && FileView::<u8, _>::new(&file, 100, 0).is_ok());
    for (offset, len) in [(1, 100), (u64::MAX, 1), (101, 0)] {
        let error = FileView::<u8, _>::new(&file, offset, len).unwrap_err();
        assert!(matches!(failure(&error), FileFailure::Truncated { found: 100, .. }), "{error}");
    }
    let error = FileView::<u8, _>::new(&file, 0, (usize::MAX, 2)).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Layout(LayoutError::TooLarge { .. })), "{error}");
    let view = FileView::<u8, _>::new(&file, 0, 100).unwrap();
    assert!(view.slice(s![50..101]).is_err());
    let (device, _raw) = host(HostOptions::new());
    let mut short = device.device_array::<u8, _>(99).unwrap();
    let error = short.copy_to_device(&view).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Layout(LayoutError::ShapeMismatch { .. })), "{error}");
}

#[test]
fn what_is_no_regular_file_is_refused_at_once() {
    let scene = Scene::new(0, &[]);
    let error = DataFile::open(scene.folder.path()).unwrap_err();
    assert!(matches!(failure(&error), FileFailure::Format { .. }), "{error}");
    let error = DataFile::open(scene.folder.path().join("none")).unwrap_err();
    assert_eq!(*failure(&error), FileFailure::Io { code: libc::ENOENT });
    let pipe = scene.folder.path().join("pipe");
    let name = std::ffi::CString::new(pipe.to_str().unwrap()).unwrap();
    // SAFETY: the name ends with a zero byte.
    assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
    let error = DataFile::open(&pipe).unwrap_err();
    assert!(matches!(failure(&error), FileFailure::Format { .. }), "{error}");
    let error = DataFile::open(Path::new("a\0b")).unwrap_err();
    assert!(matches!(failure(&error), FileFailure::Refused { .. }), "{error}");
}

/// The file loses its second half after it was opened. Nothing half-loaded can be read.
fn truncated<B: Backend>(device: &Device<B>, host: &gpumem_host::Device) {
    device.set_transfer_options(options());
    let base = numbers(512, 1024);
    let scene = Scene::new(64, bytemuck::cast_slice(base.as_slice().unwrap()));
    let view = FileView::<u32, _>::new(&scene.open(), 64, (512, 1024)).unwrap();
    let mut array = device.to_device(&view).unwrap();
    let live = host.counters().live_allocations;
    scene.cut(1 << 20);
    let (wanted, found) = (64 + (2 << 20), 1 << 20);
    for _ in 0..4 {
        let error = device.to_device(&view).unwrap_err();
        assert!(matches!(failure(&error), FileFailure::Truncated { found: 1048576, .. }), "{error}");
        assert_eq!(error.operation(), "to_device");
    }
    device.synchronize().unwrap();
    device.flush().unwrap();
    assert!(host.counters().live_allocations <= live + 1, "a block at most");
    let error = array.copy_to_device(&view).unwrap_err();
    match failure(&error) {
        FileFailure::Truncated { wanted: part, found: end } => {
            assert!((found..=wanted).contains(part) && *end == found, "{error}");
        }
        other => panic!("{other}"),
    }
    let error = array.copy_to_host().unwrap_err();
    assert!(error.is_poisoned(), "{error}");
    array.fill(5).unwrap();
    assert!(array.copy_to_host().unwrap().iter().all(|value| *value == 5));
    // What is left of it can be read, but not by one who has seen it whole.
    let rest = FileView::<u32, _>::new(&scene.open(), 64, (200, 1024)).unwrap();
    assert_eq!(device.to_device(&rest).unwrap().copy_to_host().unwrap(), base.slice(s![..200, ..]));
    let error = device.to_device(&view.slice(s![..200, ..]).unwrap()).unwrap_err();
    assert_eq!(*failure(&error), FileFailure::Changed);
}

#[test]
fn a_file_that_is_cut_fails_and_leaves_nothing_half_loaded() {
    let (device, raw) = host(HostOptions::new());
    truncated(&device, &raw);
    is_clean(&device, &raw);
    let (device, raw) = double(HostOptions::new().adversarial(9));
    truncated(&device, raw.host());
    is_clean(&device, raw.host());
}

#[test]
fn progress_rises_and_a_break_ends_the_load() {
    let (device, raw) = double(HostOptions::new());
    device.set_transfer_options(options());
    let base = Array1::from_iter(0..(512_u32 << 10));
    let scene = Scene::new(0, bytemuck::cast_slice(base.as_slice().unwrap()));
    let view = FileView::<u32, _>::new(&scene.open(), 0, base.len()).unwrap();
    let mut array = device.device_array::<u32, _>(base.len()).unwrap();
    let mut seen = Vec::new();
    array
        .copy_to_device_with_progress(&view, |progress| {
            assert_eq!(progress.total, 2 << 20);
            seen.push(progress.done);
            ControlFlow::Continue(())
        })
        .unwrap();
    assert!(seen.windows(2).all(|pair| pair[0] < pair[1]), "{seen:?}");
    assert_eq!(seen.last(), Some(&(2 << 20)));
    let half = |progress: gpumem_runtime::Progress| match progress.done * 2 >= progress.total {
        true => ControlFlow::Break(()),
        false => ControlFlow::Continue(()),
    };
    let ended = array.copy_to_device_with_progress(&view, half).map(drop);
    // At the end there is nothing left to break.
    assert!(matches!(ended, Err(error) if *error.kind() == ErrorKind::Cancelled));
    array.copy_to_device(&view).unwrap();
    assert_eq!(array.copy_to_host().unwrap(), base);
    assert!(array.copy_plan(&view).is_ok_and(|plan| matches!(plan.route(), Route::File { .. })));
    drop(array);
    is_clean(&device, raw.host());
}

/// Each call of the driver fails in turn: the error says so, nothing is left, and no wrong element is shown.
#[test]
fn a_failure_of_the_driver_is_returned_and_leaves_nothing() {
    let base = Array1::from_iter(0..(64_u32 << 10));
    let scene = Scene::new(5, bytemuck::cast_slice(base.as_slice().unwrap()));
    let view = FileView::<u32, _>::new(&scene.open(), 5, base.len()).unwrap();
    let opens = [double, packing_double, direct_double];
    for (open, trouble) in opens.into_iter().flat_map(|open| [(open, Trouble::Refuse), (open, Trouble::Lose)])
    {
        for at in 0.. {
            let (device, raw) = open(HostOptions::new());
            device.set_transfer_options(options());
            let mut array = device.device_array::<u32, _>(base.len()).unwrap();
            device.synchronize().unwrap();
            raw.script().begin(Some((at, trouble)));
            let new = device.to_device(&view);
            let existing = array.copy_to_device(&view).map(drop);
            let struck = raw.script().struck();
            raw.script().begin(None);
            for error in [new.as_ref().err(), existing.as_ref().err()].into_iter().flatten() {
                let is_ours = *error.kind() == Script::REFUSED || error.is_device_lost();
                assert!(is_ours, "call {at}, {struck:?}: {error}");
            }
            if trouble == Trouble::Refuse {
                if let Ok(new) = new {
                    assert_eq!(new.copy_to_host().unwrap(), base, "call {at}, {struck:?}");
                }
                if existing.is_ok() {
                    assert_eq!(array.copy_to_host().unwrap(), base, "call {at}, {struck:?}");
                }
                array.copy_to_device(&view).unwrap();
                assert_eq!(array.copy_to_host().unwrap(), base, "call {at}, {struck:?}");
                drop(array);
                device.take_errors();
                is_clean(&device, raw.host());
            }
            if struck.is_none() {
                assert!(at > 5, "{at} calls");
                break;
            }
        }
    }
}

/// The kernel `y = 3 * y`.
fn tripling<B: Backend>(device: &Device<B>) -> Kernel<(SliceMut<u32>,), B> {
    // SAFETY: each work-item uses its own element.
    let declaration = unsafe { KernelDef::<(SliceMut<u32>,)>::new("tripling") };
    let body = |ids: &WorkItemIds<'_>, (y,): &(SliceMut<u32>,)| {
        let at = ids.global_id(0);
        if at < y.len() {
            y.set(at, y.get(at).wrapping_mul(3));
        }
    };
    declaration.host_loop(body).load(device).unwrap()
}

/// Between kernels on other streams that write the array.
#[test]
fn loads_are_ordered_with_other_work() {
    let base = numbers(40, 25);
    let config = config_for_items([1000, 1, 1], [100, 1, 1]);
    let scene = Scene::new(0, bytemuck::cast_slice(base.as_slice().unwrap()));
    let view = FileView::<u32, _>::new(&scene.open(), 0, (40, 25)).unwrap();
    for seed in 0..20 {
        let (device, raw) = double(HostOptions::new().adversarial(seed));
        device.set_transfer_options(options().block_bytes(4 << 10));
        let [first, second, third] = [(); 3].map(|()| device.stream().unwrap());
        let kernel = tripling(&device);
        let mut array = first.to_device(&numbers(40, 25)).unwrap();
        let mut copies = Vec::new();
        for _ in 0..50 {
            kernel.launch(&first, &config, (&mut array.reshape_mut(1000, Order::C).unwrap(),)).unwrap();
            second.copy_to_device(&mut array, &view).unwrap();
            kernel.launch(&third, &config, (&mut array.reshape_mut(1000, Order::C).unwrap(),)).unwrap();
            copies.push(first.copy_to_host(&array).unwrap());
        }
        for copy in copies {
            assert_eq!(copy.view().unwrap(), &base * 3, "seed {seed}");
        }
        drop((array, first, second, third, kernel));
        is_clean(&device, raw.host());
    }
}

/// A recording reads the file, and its launches use what was read.
#[test]
fn a_graph_keeps_the_elements_of_a_file() {
    let device = Device::<Host>::open("host").unwrap();
    let base = numbers(6, 7);
    let scene = Scene::new(2, bytemuck::cast_slice(base.as_slice().unwrap()));
    let view = FileView::<u32, _>::new(&scene.open(), 2, (6, 7)).unwrap().slice(s![..;2, ..;-1]).unwrap();
    let graph = device
        .record((writes::<u32, _>((3, 7)),), |stream, (mut out,)| stream.copy_to_device(&mut out, &view))
        .unwrap();
    let stream = device.stream().unwrap();
    let mut out = device.device_array::<u32, _>((3, 7)).unwrap();
    scene.cut(0);
    for _ in 0..2 {
        out.fill(0).unwrap();
        graph.launch(&stream, (&mut out,)).unwrap();
        assert_eq!(out.copy_to_host().unwrap(), base.slice(s![..;2, ..;-1]));
    }
}

#[test]
fn rank_zero_and_empty_arrays_are_files_too() {
    let (device, raw) = double(HostOptions::new());
    let scene = Scene::new(0, &7_u64.to_ne_bytes());
    let file = scene.open();
    let one = FileView::<u64, _>::new(&file, 0, ()).unwrap();
    assert_eq!(device.to_device(&one).unwrap().copy_to_host().unwrap(), arr0(7));
    let none = FileView::<u64, _>::new(&file, 8, (0, 3)).unwrap();
    assert_eq!(device.to_device(&none).unwrap().shape(), [0, 3]);
    let rank: Result<FileView<u64, Ix1>, _> = none.into_dimensionality();
    assert!(matches!(rank.unwrap_err().kind(), ErrorKind::Layout(LayoutError::RankMismatch { .. })));
    is_clean(&device, raw.host());
}

/// Writes a view in both orders, and reads the file.
fn saved<B: Backend>(device: &Device<B>) {
    let base = numbers(60, 100);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("new");
    let array = device.to_device(&base).unwrap();
    macro_rules! slices {
        ($($info:expr),*) => { $({
            for (view, wanted) in [
                (array.slice($info).unwrap(), base.slice($info)),
                (array.t().slice($info).unwrap(), base.t().slice_move($info)),
            ] {
                for (order, wanted) in [(Order::C, wanted.view()), (Order::F, wanted.t())] {
                    let file = NewFile::create(&path, 3 + 4 * wanted.len() as u64).unwrap();
                    file.write_array(3, &view, order).unwrap();
                    file.write_at(0, b"abc").unwrap();
                    file.commit().unwrap();
                    let bytes = fs::read(&path).unwrap();
                    let elements: Vec<u32> = wanted.iter().copied().collect();
                    assert!(bytes[..3] == *b"abc" && bytes[3..] == *bytemuck::cast_slice::<_, u8>(&elements));
                }
            }
        })* };
    }
    slices!(s![.., ..], s![7.., ..;3], s![..;-1, 5..9], s![3..4, 1..2], s![5..5, ..]);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "no temporary is left");
}

#[test]
fn every_view_is_written() {
    for seed in [None, Some(5)] {
        let options_of = || seed.map_or_else(HostOptions::new, |seed| HostOptions::new().adversarial(seed));
        let small = options().block_bytes(4 << 10);
        let (device, raw) = host(options_of());
        device.set_transfer_options(small);
        saved(&device);
        is_clean(&device, &raw);
        for packs in [false, true] {
            let (device, raw) = if packs { packing_double(options_of()) } else { double(options_of()) };
            device.set_transfer_options(small);
            saved(&device);
            is_clean(&device, raw.host());
        }
    }
}

#[test]
fn long_arrays_are_written() {
    let (device, raw) = double(HostOptions::new());
    let base = Array1::from_iter((0..(41_usize << 20) + 3).map(|at| (at * 131 % 251) as u8));
    let folder = tempfile::tempdir().unwrap();
    let array = device.to_device(&base).unwrap();
    for threads in [1, 4] {
        device.set_transfer_options(TransferOptions::new().threads(threads));
        let path = folder.path().join("new");
        let file = NewFile::create(&path, base.len() as u64).unwrap();
        file.write_array(0, &array, Order::C).unwrap();
        file.sync().unwrap();
        file.commit().unwrap();
        assert!(fs::read(&path).unwrap() == base.as_slice().unwrap(), "{threads}");
    }
    drop(array);
    is_clean(&device, raw.host());
}

/// Data of failed work is not written, and neither is a file when a call of the driver fails.
#[test]
fn a_failure_leaves_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("new");
    let is_empty = || fs::read_dir(folder.path()).unwrap().count() == 0;
    let base = Array1::from_iter(0..(64_u32 << 10));
    let write = |array: &gpumem_runtime::ArrayBase<gpumem_runtime::Owned<u32, host_double::Double>, Ix1>| {
        let file = NewFile::create(&path, 4 * base.len() as u64)?;
        file.write_array(0, array, Order::C)?;
        file.commit()
    };
    let (device, _raw) = double(HostOptions::new());
    let scene = Scene::new(0, bytemuck::cast_slice(base.as_slice().unwrap()));
    let view = FileView::<u32, _>::new(&scene.open(), 0, base.len()).unwrap();
    scene.cut(200 << 10);
    for threads in [1, 4] {
        device.set_transfer_options(options().threads(threads));
        let mut array = device.to_device(&base).unwrap();
        assert!(array.copy_to_device(&view).is_err());
        match write(&array) {
            Err(error) => assert!(error.is_poisoned() && is_empty(), "{error}"),
            // One thread sends what it has read before it reads on. Of several, one may fail before the first copy.
            Ok(()) => {
                assert!(threads > 1);
                assert!(fs::read(&path).unwrap() == bytemuck::cast_slice::<_, u8>(base.as_slice().unwrap()));
                fs::remove_file(&path).unwrap();
            }
        }
    }
    let opens = [double, packing_double, direct_double];
    for (open, trouble) in opens.into_iter().flat_map(|open| [(open, Trouble::Refuse), (open, Trouble::Lose)])
    {
        for at in 0.. {
            let (device, raw) = open(HostOptions::new());
            device.set_transfer_options(options());
            let array = device.to_device(&base).unwrap();
            device.synchronize().unwrap();
            raw.script().begin(Some((at, trouble)));
            let written = write(&array);
            let struck = raw.script().struck();
            raw.script().begin(None);
            match written {
                Ok(()) => {
                    assert!(
                        fs::read(&path).unwrap() == bytemuck::cast_slice::<_, u8>(base.as_slice().unwrap())
                    );
                    fs::remove_file(&path).unwrap();
                }
                Err(error) => {
                    let is_ours = *error.kind() == Script::REFUSED || error.is_device_lost();
                    assert!(is_ours, "call {at}, {struck:?}: {error}");
                    assert!(is_empty(), "call {at}, {struck:?}");
                }
            }
            if struck.is_none() {
                assert!(at > 10, "{at} calls");
                break;
            }
        }
    }
}
