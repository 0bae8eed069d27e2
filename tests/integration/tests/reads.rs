//! How files are read: how many bytes of them, and what is left when the system refuses to read one part.
#![cfg(all(target_os = "linux", target_pointer_width = "64", target_endian = "little"))]
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod common;

use common::{double, host, is_clean, packing_double, refused_calls::refuse};
use gpumem_core::{Backend, Error, ErrorKind, FileFailure};
use gpumem_host::HostOptions;
use gpumem_runtime::{
    ArraySpec, Chunks, DataFile, Device, FileView, Order, SpillManager, SpillOptions, TransferOptions,
};
use ndarray::{Array2, Ix1, Ix2, s};
use std::{env, fs, ops::Range, process::Command};
use tempfile::TempDir;

fn numbers(rows: usize, columns: usize) -> Array2<u32> {
    Array2::from_shape_fn((rows, columns), |(i, j)| (i * columns + j) as u32)
}

/// A folder with a file of these elements, behind some bytes.
fn written(front: usize, elements: &Array2<u32>) -> (TempDir, FileView<u32, Ix2>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data");
    let bytes = [&vec![0xEE; front], bytemuck::cast_slice::<_, u8>(elements.as_slice().unwrap())].concat();
    fs::write(&path, bytes).unwrap();
    let view = FileView::new(&DataFile::open(&path).unwrap(), front as u64, elements.dim()).unwrap();
    (folder, view)
}

/// Bytes that this thread has read so far, if the system counts them.
fn bytes_read() -> Option<u64> {
    let counts = fs::read_to_string("/proc/thread-self/io").ok()?;
    counts.lines().find_map(|line| line.strip_prefix("rchar: "))?.parse().ok()
}

/// Bytes that this thread reads in `work`.
fn read_by(work: impl FnOnce()) -> Option<u64> {
    let (first, before) = (bytes_read()?, bytes_read()?);
    work();
    // Without those of the counts themselves.
    Some(bytes_read()? - before - (before - first))
}

fn reads_little<B: Backend>(device: &Device<B>) {
    // All is read by the calling thread.
    device.set_transfer_options(TransferOptions::new().threads(1).block_bytes(16 << 10));
    let base = numbers(300, 400);
    let (_folder, file) = written(3, &base);
    let few = |what: &str, wanted: usize, work: &dyn Fn()| {
        let read = read_by(work).unwrap();
        // The counts differ in their lengths.
        let most = 4 * wanted as u64 + 64;
        assert!((wanted as u64..=most).contains(&(read + 8)), "{what}: {read} bytes for {wanted}");
    };
    macro_rules! slices {
        ($($info:expr),*) => { $({
            let (part, wanted) = (file.slice($info).unwrap(), base.slice($info));
            let bytes = 4 * wanted.len();
            few("new", bytes, &|| drop(device.to_device(&part).unwrap()));
            few("transposed", bytes, &|| drop(device.to_device(&part.t()).unwrap()));
            for order in [Order::C, Order::F] {
                few("existing", bytes, &|| {
                    let spec = ArraySpec::new(wanted.dim()).order(order);
                    let mut array = device.device_array::<u32, _>(spec).unwrap();
                    array.copy_to_device(&part).unwrap();
                    assert_eq!(array.get((0, 0)).unwrap(), wanted[(0, 0)]);
                });
            }
            few("chunks", bytes, &|| {
                device.chunks(&part, Chunks::rows(7)).unwrap().for_each(|chunk| drop(chunk.unwrap()));
            });
        })* };
    }
    slices!(
        s![.., ..],
        s![7.., ..;3],
        s![..;-1, 5..9],
        s![..;7, ..;2],
        s![.., 3..4],
        s![.., ..;25],
        s![..;-5, ..;-4],
        s![10..13, 1..399]
    );
}

#[test]
fn a_part_takes_at_most_four_times_its_bytes() {
    if bytes_read().is_none_or(|bytes| bytes == 0) {
        eprintln!("skipped: this system does not count what a thread reads");
        return;
    }
    let (device, raw) = host(HostOptions::new());
    reads_little(&device);
    is_clean(&device, &raw);
    for (device, raw) in [double(HostOptions::new()), packing_double(HostOptions::new())] {
        reads_little(&device);
        is_clean(&device, raw.host());
    }
}

const FRONT: usize = 64;
const COLUMNS: usize = 1024;
/// Rows that cannot be read: more bytes than any single read has.
const BAD: Range<usize> = 150..400;

fn is_refused(error: &Error) {
    let is_io = |failure: &FileFailure| *failure == FileFailure::Io { code: libc::EIO };
    assert!(matches!(error.kind(), ErrorKind::File(error) if is_io(&error.failure)), "{error}");
}

fn loads<B: Backend>(device: &Device<B>, view: &FileView<u32, Ix2>, base: &Array2<u32>) {
    let good = view.slice(s![..100, ..]).unwrap();
    for _ in 0..3 {
        let error = device.to_device(view).unwrap_err();
        is_refused(&error);
        assert_eq!(error.operation(), "to_device");
        is_refused(&device.to_device(&view.slice(s![.., ..;3]).unwrap()).unwrap_err());
        is_refused(&device.to_device(&view.slice(s![..;-1, 5..9]).unwrap()).unwrap_err());
        is_refused(&device.to_device(&view.t()).unwrap_err());
        // The next load is right, by the same threads.
        assert_eq!(device.to_device(&good).unwrap().copy_to_host().unwrap(), base.slice(s![..100, ..]));
        let last = device.to_device(&view.slice(s![450.., ..;2]).unwrap()).unwrap();
        assert_eq!(last.copy_to_host().unwrap(), base.slice(s![450.., ..;2]));
    }
    let mut array = device.device_array::<u32, _>(base.dim()).unwrap();
    is_refused(&array.copy_to_device(view).unwrap_err());
    match array.copy_to_host() {
        // No copy had begun.
        Ok(elements) => assert!(elements.iter().all(|element| *element == 0)),
        Err(error) => assert!(error.is_poisoned(), "{error}"),
    }
    array.fill(5).unwrap();
    assert!(array.copy_to_host().unwrap().iter().all(|element| *element == 5));
}

fn passes<B: Backend>(device: &Device<B>, view: &FileView<u32, Ix2>, base: &Array2<u32>) {
    let stream = device.stream().unwrap();
    let row = |row: usize| view.slice(s![row, ..]).unwrap();
    let rows = |rows: Range<usize>| rows.map(row).collect::<Vec<FileView<u32, Ix1>>>();
    is_refused(&stream.to_device_all(&rows(0..512)).unwrap_err());
    for (array, number) in stream.to_device_all(&rows(0..100)).unwrap().iter().zip(0..) {
        assert_eq!(array.copy_to_host().unwrap(), base.row(number));
    }
    let mut chunks = device.chunks(view, Chunks::rows(50)).unwrap();
    for number in 0..3 {
        let (rows, array) = chunks.next().unwrap().unwrap();
        assert_eq!((rows.start, rows.end), (50 * number, 50 * number + 50));
        assert_eq!(array.copy_to_host().unwrap(), base.slice(s![rows, ..]));
    }
    is_refused(&chunks.next().unwrap().unwrap_err());
    assert!(chunks.next().is_none());
    let mut output = Array2::from_elem(base.dim(), 9);
    let mapped = device.map_chunks(view, &mut output, Chunks::rows(50), |_, _, array| Ok(array));
    is_refused(&mapped.unwrap_err());
    assert_eq!(output.slice(s![..BAD.start, ..]), base.slice(s![..BAD.start, ..]));
    assert!(output.slice(s![BAD.start.., ..]).iter().all(|element| *element == 9));
    let spilling = SpillManager::new(device, SpillOptions::new()).unwrap();
    let (bad, good) = (spilling.open(view.clone()).unwrap(), spilling.open(row(7)).unwrap());
    for _ in 0..2 {
        is_refused(&bad.get(&stream).unwrap_err());
        is_refused(&bad.prefetch(&stream).unwrap_err());
        assert!(!bad.is_resident().unwrap());
        assert_eq!(good.get(&stream).unwrap().copy_to_host().unwrap(), base.row(7));
        assert!(good.evict().unwrap());
    }
    let graph = device.record((), |inside, ()| {
        is_refused(&inside.to_device(view).unwrap_err());
        inside.copy_to_host(&inside.to_device(&row(7))?)
    });
    let found = graph.unwrap().launch(&stream, ()).unwrap();
    assert_eq!(found.view().unwrap(), base.row(7));
}

/// In a process whose reads of some rows fail, as those of a bad disk do.
#[test]
fn a_read_that_the_system_refuses_leaves_nothing_half_loaded() {
    const CHILD: &str = "GPUMEM_TEST_BAD_DISK";
    const SKIPPED: &str = "the system takes no filter of calls";
    if env::var_os(CHILD).is_some() {
        let base = numbers(512, COLUMNS);
        let (_folder, view) = written(FRONT, &base);
        let offset = |row: usize| (FRONT + 4 * COLUMNS * row) as u32;
        if let Err(error) = refuse(libc::SYS_pread64, 0, offset(BAD.start)..offset(BAD.end)) {
            println!("{SKIPPED}: {error}");
            return;
        }
        for threads in [1, 4] {
            let options = TransferOptions::new().threads(threads).block_bytes(16 << 10);
            let (device, raw) = host(HostOptions::new());
            device.set_transfer_options(options);
            loads(&device, &view, &base);
            passes(&device, &view, &base);
            is_clean(&device, &raw);
            for (device, raw) in
                [double(HostOptions::new().adversarial(9)), packing_double(HostOptions::new())]
            {
                device.set_transfer_options(options);
                loads(&device, &view, &base);
                passes(&device, &view, &base);
                is_clean(&device, raw.host());
            }
        }
        return;
    }
    let name = "a_read_that_the_system_refuses_leaves_nothing_half_loaded";
    let mut child = Command::new(env::current_exe().unwrap());
    let output = child.args([name, "--exact", "--nocapture"]).env(CHILD, "1").output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{output:?}");
    if said.contains(SKIPPED) {
        eprintln!("skipped: {SKIPPED}");
    }
}
