//! Arrays in files: read whole and in part, and what is left when a file ends too soon.

use super::tools::same;
use crate::{Lab, Level, Stop, Verdict, refused};
use gpumem_core::{Backend, ErrorKind, FileFailure};
use gpumem_files as files;
use gpumem_runtime::{Chunks, FileView, Order};
use ndarray::{Array2, Array3, Ix1, Ix2, s};
use std::{fs, io, path::PathBuf};
use tempfile::TempDir;

cases! { Level::Files;
    ranges_arrive_whole_and_in_part,
    headers_lead_to_elements,
    long_files_arrive,
    many_tensors_arrive_in_one_pass,
    files_come_in_chunks,
    loads_are_in_stream_order,
    a_file_that_ends_too_soon_leaves_nothing_half_loaded,
}

/// A folder that is removed at the end, and a file in it.
fn written(bytes: &[u8]) -> Result<(TempDir, PathBuf), Stop> {
    let fail = |error: io::Error| Stop::Failed(format!("no file to read: {error}"));
    let folder = TempDir::new().map_err(fail)?;
    let path = folder.path().join("data");
    fs::write(&path, bytes).map_err(fail)?;
    Ok((folder, path))
}

fn numbers(rows: usize, columns: usize) -> Array2<u32> {
    Array2::from_shape_fn((rows, columns), |(i, j)| (i * columns + j) as u32)
}

fn bytes_of(array: &Array2<u32>) -> Vec<u8> {
    array.iter().flat_map(|number| number.to_ne_bytes()).collect()
}

fn ranges_arrive_whole_and_in_part<B: Backend>(lab: &Lab<B>) -> Verdict {
    let device = lab.device();
    let base = numbers(60, 100);
    let (_folder, path) = written(&[&[7; 3][..], &bytes_of(&base)].concat())?;
    let rows = files::raw::<u32, _>(&path, 3, (60, 100))?;
    macro_rules! slices {
        ($($info:expr),*) => { $({
            let (part, wanted) = (rows.slice($info)?, base.slice($info));
            same(device.to_device(&part)?.copy_to_host()?.view(), wanted);
            same(device.to_device(&part.t())?.copy_to_host()?.view(), wanted.t());
            // Into gaps, and into the other order.
            let (high, wide) = wanted.dim();
            let mut frame = device.device_array::<u32, _>((high + 2, 2 * wide + 1))?;
            frame.fill(9)?;
            frame.slice_mut(s![1..=high, 1..2 * wide;2])?.copy_to_device(&part)?;
            let mut expected = Array2::from_elem((high + 2, 2 * wide + 1), 9);
            expected.slice_mut(s![1..=high, 1..2 * wide;2]).assign(&wanted);
            same(frame.copy_to_host()?.view(), expected.view());
            let spec = gpumem_runtime::ArraySpec::new((high, wide)).order(Order::F);
            let mut columns = device.device_array::<u32, _>(spec)?;
            columns.copy_to_device(&part)?;
            same(columns.copy_to_host()?.view(), wanted);
        })* };
    }
    slices!(s![.., ..], s![7.., ..;3], s![..;-1, 5..9], s![..;-7, ..;-2], s![3..4, 1..2], s![.., ..;25]);
    let mut repeated = device.device_array::<u32, _>((4, 60, 100))?;
    repeated.assign(&rows)?;
    same(
        repeated.copy_to_host()?.view(),
        base.broadcast((4, 60, 100)).unwrap_or(Array3::zeros((0, 0, 0)).view()),
    );
    Ok(())
}

fn files_come_in_chunks<B: Backend>(lab: &Lab<B>) -> Verdict {
    let device = lab.device();
    let base = numbers(5000, 64);
    let (_folder, path) = written(&[&[7; 5][..], &bytes_of(&base)].concat())?;
    let all = files::raw::<u32, _>(&path, 5, (5000, 64))?;
    macro_rules! parts {
        ($($info:expr),*) => { $({
            let (part, wanted) = (all.slice($info)?, base.slice($info));
            let mut found = 0;
            for chunk in device.chunks(&part, Chunks::rows(700))? {
                let (rows, array) = chunk?;
                assert_eq!(rows.start, found);
                found = rows.end;
                same(array.copy_to_host()?.view(), wanted.slice(s![rows, ..]));
            }
            assert_eq!(found, wanted.nrows());
        })* };
    }
    parts!(s![.., ..], s![3..;2, ..;-3], s![..;-1, 7..8]);
    let mut copied = Array2::zeros((5000, 64));
    device.map_chunks(&all, &mut copied, Chunks::bytes(100_000), |_, _, array| Ok(array))?;
    same(copied.view(), base.view());
    Ok(())
}

fn headers_lead_to_elements<B: Backend>(lab: &Lab<B>) -> Verdict {
    let device = lab.device();
    let base = numbers(3, 4);
    let order = if cfg!(target_endian = "little") { '<' } else { '>' };
    let header = format!("{{'descr': '{order}u4', 'fortran_order': False, 'shape': (3, 4), }}");
    let npy =
        [&b"\x93NUMPY\x01\x00\x76\x00"[..], format!("{header:<117}\n").as_bytes(), &bytes_of(&base)].concat();
    let (_folder, path) = written(&npy)?;
    same(device.to_device(&files::npy::<u32, Ix2>(&path)?)?.copy_to_host()?.view(), base.view());
    if cfg!(target_endian = "big") {
        return Ok(());
    }
    let header = r#"{"b":{"dtype":"U32","shape":[3,4],"data_offsets":[1,49]},"a":{"dtype":"F8_E4M3","shape":[1],"data_offsets":[0,1]}}"#;
    let model =
        [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), &[5], &bytes_of(&base)].concat();
    let (_folder, path) = written(&model)?;
    let model = files::safetensors(&path)?;
    same(device.to_device(&model.tensor::<u32, Ix2>("b")?)?.copy_to_host()?.view(), base.view());
    assert_eq!(device.to_device(&model.tensor::<u8, Ix1>("a")?)?.copy_to_host()?.to_vec(), [5]);
    Ok(())
}

fn long_files_arrive<B: Backend>(lab: &Lab<B>) -> Verdict {
    let device = lab.device();
    let bytes: Vec<u8> = (0..(9_usize << 20) + 4099).map(|at| (at * 131 % 251) as u8).collect();
    let (_folder, path) = written(&bytes)?;
    for (offset, len) in [(0, bytes.len()), (4097, 1 << 20), (1, 5 << 20)] {
        let view = files::raw::<u8, _>(&path, offset as u64, len)?;
        let array = device.to_device(&view)?;
        assert!(array.copy_to_host()?.as_slice() == bytes.get(offset..offset + len), "{offset} {len}");
        let every = device.to_device(&view.slice(s![..;2])?)?.copy_to_host()?;
        assert!(every.iter().eq(bytes[offset..offset + len].iter().step_by(2)), "{offset} {len}");
    }
    Ok(())
}

fn many_tensors_arrive_in_one_pass<B: Backend>(lab: &Lab<B>) -> Verdict {
    let device = lab.device();
    let arrays: Vec<Array2<u32>> = (0..200).map(|at| numbers(at * 37 % 90, 1 + at * 11 % 300)).collect();
    let on_device =
        arrays.iter().map(|array| device.to_device(array)).collect::<gpumem_core::Result<Vec<_>>>()?;
    let (_folder, path) = written(&[])?;
    let named: Vec<_> =
        on_device.iter().enumerate().map(|(at, array)| files::named(format!("t{at}"), array)).collect();
    files::save_safetensors(&path, &named, [("format", "pt")])?;
    let (stream, other) = (device.stream()?, device.stream()?);
    let mut loaded = files::safetensors(&path)?.load(&stream, |tensor| tensor.name() != "t7")?;
    assert_eq!(loaded.len(), arrays.len() - 1);
    for (at, array) in arrays.iter().enumerate().filter(|(at, _)| *at != 7) {
        // In stream order, on another stream too.
        let tensor = loaded.take::<u32, Ix2>(&format!("t{at}"))?;
        let mut copy = other.device_array::<u32, _>(tensor.raw_dim())?;
        other.copy_to_device(&mut copy, &tensor)?;
        same(copy.copy_to_host()?.view(), array.view());
    }
    Ok(())
}

fn loads_are_in_stream_order<B: Backend>(lab: &Lab<B>) -> Verdict {
    let device = lab.device();
    let base = numbers(64, 1000);
    let (_folder, path) = written(&bytes_of(&base))?;
    let view = files::raw::<u32, _>(&path, 0, (64, 1000))?;
    let (first, second, third) = (device.stream()?, device.stream()?, device.stream()?);
    let mut array = first.to_device(&view)?;
    for _ in 0..20 {
        first.fill(&mut array, 3)?;
        second.copy_to_device(&mut array, &view)?;
        let copy = third.to_device(&array)?;
        same(copy.copy_to_host()?.view(), base.view());
    }
    Ok(())
}

fn a_file_that_ends_too_soon_leaves_nothing_half_loaded<B: Backend>(lab: &Lab<B>) -> Verdict {
    let device = lab.device();
    let base = numbers(3072, 2048);
    let (_folder, path) = written(&bytes_of(&base))?;
    let view: FileView<u32, Ix2> = files::raw(&path, 0, (3072, 2048))?;
    let mut array = device.device_array::<u32, _>((3072, 2048))?;
    let file = fs::OpenOptions::new().write(true).open(&path).and_then(|file| file.set_len(23 << 20));
    assert!(file.is_ok(), "{file:?}");
    let is_cut = |kind: &ErrorKind| {
        let found = match kind {
            ErrorKind::File(error) => Some(&error.failure),
            _ => None,
        };
        matches!(found, Some(FileFailure::Truncated { found, .. }) if *found == 23 << 20)
    };
    refused(device.to_device(&view), is_cut)?;
    refused(array.copy_to_device(&view), is_cut)?;
    match array.copy_to_host() {
        // The end was found before the first copy was enqueued.
        Ok(elements) => assert!(elements.iter().all(|value| *value == 0)),
        torn => refused(torn, |kind| matches!(kind, ErrorKind::Poisoned { .. }))?,
    }
    array.fill(4)?;
    assert!(array.copy_to_host()?.iter().all(|value| *value == 4));
    Ok(())
}
