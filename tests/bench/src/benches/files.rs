//! Arrays in files whose pages the system holds, on any device, compared with the same elements in memory of the caller; and written,
//! compared with the standard library.

use crate::{Bench, Measure, Pair, Routine, Unavailable};
use anyhow::{Context as _, Result};
use gpumem::{Device, DeviceArray, files};
use ndarray::{Array1, Array2, Ix1, Ix2, s};
use std::{fs, path::PathBuf};
use tempfile::TempDir;

const LENGTHS: [(&str, usize); 3] = [("1MiB", 1 << 20), ("64MiB", 64 << 20), ("1GiB", 1 << 30)];
/// Columns of a matrix of `f32`: runs of half of them are 2 KiB long.
const COLUMNS: usize = 1024;
/// Short tensors of a model.
const TENSORS: usize = 1000;

pub(super) fn of(selector: &str) -> Vec<Bench> {
    let mut benches = Vec::new();
    for (name, bytes) in LENGTHS {
        benches.extend([whole(selector, name, bytes), saved(selector, name, bytes)]);
    }
    benches.extend([columns(selector), tensors(selector)]);
    benches
}

fn open(selector: &str) -> Result<Device> {
    Device::open(selector).map_err(|error| Unavailable(error.to_string()).into())
}

fn throughput(bytes: usize) -> Measure {
    Measure::Throughput { bytes: bytes as u64 }
}

fn elements(count: usize) -> Array1<f32> {
    Array1::from_shape_fn(count, |index| index as f32)
}

/// A folder with a file of these elements.
fn file(elements: &[f32]) -> Result<(TempDir, PathBuf)> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("elements");
    let bytes: Vec<u8> = elements.iter().flat_map(|element| element.to_ne_bytes()).collect();
    fs::write(&path, bytes)?;
    Ok((folder, path))
}

fn whole(selector: &str, name: &str, bytes: usize) -> Bench {
    let name = format!("files/{selector}/h2d/{name}");
    let selector = selector.to_owned();
    Bench::new(name, "the same array in memory", throughput(bytes), move || {
        let device = open(&selector)?;
        let source = elements(bytes / 4);
        let (folder, path) = file(source.as_slice().context("the array is packed")?)?;
        let view = files::raw::<f32, _>(&path, 0, bytes / 4)?;
        let mut array: DeviceArray<f32, Ix1> = device.device_array(bytes / 4)?;
        let mut other: DeviceArray<f32, Ix1> = device.device_array(bytes / 4)?;
        let (stream, other_stream) = (device.default_stream()?, device.default_stream()?);
        let ours = Routine::call(move || {
            let _ = &folder;
            array.copy_to_device(&view)?;
            Ok(stream.synchronize()?)
        });
        let reference = Routine::call(move || {
            other.copy_to_device(&source)?;
            Ok(other_stream.synchronize()?)
        });
        Ok(Pair { ours, reference })
    })
}

fn columns(selector: &str) -> Bench {
    const ROWS: usize = 64 << 10;
    let bytes = ROWS * COLUMNS / 2 * 4;
    let name = format!("files/{selector}/h2d/half_of_the_columns");
    let selector = selector.to_owned();
    Bench::new(name, "the same columns in memory", throughput(bytes), move || {
        let device = open(&selector)?;
        let source = elements(ROWS * COLUMNS);
        let (folder, path) = file(source.as_slice().context("the array is packed")?)?;
        let part = s![.., ..COLUMNS / 2];
        let view = files::raw::<f32, _>(&path, 0, (ROWS, COLUMNS))?.slice(part)?;
        let source: Array2<f32> = source.into_shape_with_order((ROWS, COLUMNS))?;
        let mut array: DeviceArray<f32, Ix2> = device.device_array((ROWS, COLUMNS / 2))?;
        let mut other: DeviceArray<f32, Ix2> = device.device_array((ROWS, COLUMNS / 2))?;
        let (stream, other_stream) = (device.default_stream()?, device.default_stream()?);
        let ours = Routine::call(move || {
            let _ = &folder;
            array.copy_to_device(&view)?;
            Ok(stream.synchronize()?)
        });
        let reference = Routine::call(move || {
            other.copy_to_device(&source.slice(part))?;
            Ok(other_stream.synchronize()?)
        });
        Ok(Pair { ours, reference })
    })
}

fn tensors(selector: &str) -> Bench {
    const LEN: usize = 64 << 10;
    let name = format!("files/{selector}/h2d/{TENSORS}_tensors_of_256KiB");
    let selector = selector.to_owned();
    Bench::new(name, "the same arrays in memory", throughput(TENSORS * LEN * 4), move || {
        let device = open(&selector)?;
        let source = elements(LEN);
        let one = device.to_device(&source)?;
        let names: Vec<String> = (0..TENSORS).map(|at| format!("layers.{at}.weight")).collect();
        let named: Vec<_> = names.iter().map(|name| files::named(name, &one)).collect();
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("model.safetensors");
        files::save_safetensors(&path, &named, [("format", "pt")])?;
        let model = files::safetensors(&path)?;
        let (stream, other_stream) = (device.stream()?, device.stream()?);
        let ours = Routine::call(move || {
            let _ = &folder;
            let mut tensors = model.load(&stream, |_| true)?;
            let loaded: Vec<_> =
                names.iter().map(|name| tensors.take::<f32, Ix1>(name)).collect::<Result<_, _>>()?;
            stream.synchronize()?;
            drop(loaded);
            Ok(())
        });
        let reference = Routine::call(move || {
            let load = |_| other_stream.to_device(&source);
            let loaded: Vec<_> = (0..TENSORS).map(load).collect::<Result<_, _>>()?;
            other_stream.synchronize()?;
            drop(loaded);
            Ok(())
        });
        Ok(Pair { ours, reference })
    })
}

fn saved(selector: &str, name: &str, bytes: usize) -> Bench {
    let name = format!("files/{selector}/d2h/{name}");
    let selector = selector.to_owned();
    Bench::new(name, "std::fs::write of memory", throughput(bytes), move || {
        let device = open(&selector)?;
        let source = elements(bytes / 4);
        let array = device.to_device(&source)?;
        let (folder, plain) = file(source.as_slice().context("the array is packed")?)?;
        let path = folder.path().join("elements.npy");
        let contents = fs::read(&plain)?;
        let ours = Routine::call(move || Ok(files::save_npy(&path, &array)?));
        let reference = Routine::call(move || {
            let _ = &folder;
            Ok(fs::write(&plain, &contents)?)
        });
        Ok(Pair { ours, reference })
    })
}
