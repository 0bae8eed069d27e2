//! Writing: the references and this crate read the files, and an error leaves the old file as it was.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod common;

use ::safetensors as reference;
use common::{device, failure};
use gpumem_core::FileFailure;
use gpumem_files::{Dtype, NewFile, named, npy, safetensors, save_npy, save_safetensors};
use gpumem_runtime::{ArraySpec, Order};
use half::bf16;
use ndarray::{Array2, Array3, ArrayD, Ix1, Ix2, IxDyn, arr0, array, s};
use num_complex::Complex;
use std::{fs, path::Path};

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn npy_files_are_read_by_the_reference_and_again() {
    let (device, folder) = (device(), tempfile::tempdir().unwrap());
    let path = folder.path().join("y.npy");
    let base = Array2::from_shape_fn((60, 70), |(i, j)| (i * 70 + j) as f32);
    let array = device.to_device(&base).unwrap();
    let mut columns = device.device_array::<f32, _>(ArraySpec::new((60, 70)).order(Order::F)).unwrap();
    columns.copy_to_device(&base).unwrap();
    let header = |path: &Path| String::from_utf8_lossy(&fs::read(path).unwrap()[10..70]).into_owned();
    save_npy(&path, &columns).unwrap();
    assert!(header(&path).starts_with("{'descr': '<f4', 'fortran_order': True, 'shape': (60, 70), }"));
    assert_eq!(ndarray_npy::read_npy::<_, Array2<f32>>(&path).unwrap(), base);
    for (view, wanted) in [
        (array.view(), base.view()),
        (array.t(), base.t()),
        (array.slice(s![..;-1, ..;3]).unwrap(), base.slice(s![..;-1, ..;3])),
        (array.slice(s![4..5, 1..1]).unwrap(), base.slice(s![4..5, 1..1])),
    ] {
        save_npy(&path, &view).unwrap();
        assert_eq!(ndarray_npy::read_npy::<_, Array2<f32>>(&path).unwrap(), wanted);
        let again = device.to_device(&npy::<f32, Ix2>(&path).unwrap()).unwrap();
        assert_eq!(again.copy_to_host().unwrap(), wanted);
        let bytes = fs::read(&path).unwrap();
        assert_eq!((bytes.len() - 4 * wanted.len()) % 64, 0, "the elements are aligned");
    }
    save_npy(&path, &device.to_device(&arr0(5_u16)).unwrap()).unwrap();
    assert_eq!(ndarray_npy::read_npy::<_, ArrayD<u16>>(&path).unwrap(), arr0(5_u16).into_dyn());
    save_npy(&path, &device.to_device(&array![1_i8, -1]).unwrap()).unwrap();
    assert_eq!(ndarray_npy::read_npy::<_, ArrayD<i8>>(&path).unwrap(), array![1_i8, -1].into_dyn());
    let complex = array![[[Complex::new(1.0, 2.0)], [Complex::new(3.0_f64, 4.0)]]];
    save_npy(&path, &device.to_device(&complex).unwrap()).unwrap();
    let again = device.to_device(&npy::<Complex<f64>, IxDyn>(&path).unwrap()).unwrap();
    assert_eq!(again.copy_to_host().unwrap(), complex.into_dyn());
    assert_eq!(names(folder.path()), ["y.npy"], "no temporary is left");
}

#[test]
fn safetensors_files_are_read_by_the_reference_and_again() {
    let (device, folder) = (device(), tempfile::tempdir().unwrap());
    let path = folder.path().join("m.safetensors");
    let base = Array2::from_shape_fn((60, 70), |(i, j)| (i * 70 + j) as f32);
    let long = Array3::from_shape_fn((3, 1 << 10, 1 << 10), |(i, j, k)| (i + j + k) as u8);
    let (floats, bytes) = (device.to_device(&base).unwrap(), device.to_device(&long).unwrap());
    let halves = device.to_device(&array![bf16::ONE, bf16::ZERO]).unwrap();
    let (one, none) =
        (device.to_device(&arr0(9_i64)).unwrap(), device.device_array::<u8, _>((0, 4)).unwrap());
    let (view, codes) = (floats.slice(s![.., ..;-2]).unwrap(), bytes.slice(s![1, .., 0]).unwrap());
    let tensors = [
        named("floats", &floats),
        named("bytes", &bytes),
        named("halves", &halves),
        named("a \"name\"\n", &view),
        named("one", &one),
        named("none", &none),
        named("codes", &codes).dtype(Dtype::F8E4M3),
    ];
    save_safetensors(&path, &tensors, [("format", "pt"), ("b", "\u{1F600}")]).unwrap();
    let file = fs::read(&path).unwrap();
    let theirs = reference::SafeTensors::deserialize(&file).unwrap();
    assert_eq!(theirs.len(), 7);
    assert_eq!(theirs.tensor("bytes").unwrap().data(), long.as_slice().unwrap());
    assert_eq!(theirs.tensor("codes").unwrap().dtype(), reference::Dtype::F8_E4M3);
    assert_eq!(theirs.tensor("one").unwrap().data(), 9_i64.to_le_bytes());
    let (_, metadata) = reference::SafeTensors::read_metadata(&file).unwrap();
    assert_eq!(metadata.metadata().as_ref().unwrap()["b"], "\u{1F600}");
    for name in theirs.names() {
        let tensor = theirs.tensor(name).unwrap();
        let at = tensor.data().as_ptr() as usize - file.as_ptr() as usize;
        assert!(at.is_multiple_of(tensor.dtype().bitsize() / 8), "{name} at {at}");
    }
    let ours = safetensors(&path).unwrap();
    let again = device.to_device(&ours.tensor::<f32, Ix2>("a \"name\"\n").unwrap()).unwrap();
    assert_eq!(again.copy_to_host().unwrap(), base.slice(s![.., ..;-2]));
    let again = device.to_device(&ours.tensor::<u8, Ix1>("codes").unwrap()).unwrap();
    assert_eq!(again.copy_to_host().unwrap(), long.slice(s![1, .., 0]));
    let none: [(&str, &str); 0] = [];
    save_safetensors(&path, &[], none).unwrap();
    assert!(safetensors(&path).unwrap().is_empty());
}

#[test]
fn an_error_leaves_what_was_there() {
    let (device, folder) = (device(), tempfile::tempdir().unwrap());
    let path = folder.path().join("m");
    fs::write(&path, "old").unwrap();
    let array = device.to_device(&[1_u8, 2]).unwrap();
    let complex = device.to_device(&[Complex::new(1.0_f64, 2.0)]).unwrap();
    let save = |tensors: &[gpumem_files::NamedTensor<'_>]| {
        save_safetensors(&path, tensors, [("a", "b")]).unwrap_err()
    };
    let error = save(&[named("a", &array), named("a", &array)]);
    assert!(matches!(failure(&error), FileFailure::Range { tensor, .. } if tensor == "a"), "{error}");
    let error = save(&[named("__metadata__", &array)]);
    assert!(matches!(failure(&error), FileFailure::Range { .. }), "{error}");
    let error = save(&[named("a", &array), named("c", &complex)]);
    assert!(matches!(failure(&error), FileFailure::Element { tensor, .. } if tensor == "c"), "{error}");
    let error = save(&[named("a", &array).dtype(Dtype::F32)]);
    assert!(matches!(failure(&error), FileFailure::Element { tensor, .. } if tensor == "a"), "{error}");
    let error = save_npy(folder.path().join("none").join("x.npy"), &array).unwrap_err();
    assert!(matches!(failure(&error), FileFailure::Io { .. }), "{error}");
    assert!(save_npy(folder.path().join(".."), &array).is_err());
    let file = NewFile::create(&path, 4).unwrap();
    assert_eq!(names(folder.path()).len(), 2);
    for (offset, len) in [(3, 2), (u64::MAX, 1), (5, 0)] {
        assert!(matches!(
            failure(&file.write_at(offset, &vec![0; len]).unwrap_err()),
            FileFailure::Range { .. }
        ));
    }
    let error = file.write_array(3, &array, Order::C).unwrap_err();
    assert!(matches!(failure(&error), FileFailure::Range { .. }), "{error}");
    drop(file);
    assert_eq!((names(folder.path()), fs::read(&path).unwrap()), (vec!["m".to_owned()], b"old".to_vec()));
    // A view of the old file goes on to see it.
    let old = gpumem_files::raw::<u8, _>(&path, 0, 3).unwrap();
    save_npy(&path, &array).unwrap();
    assert_eq!(device.to_device(&old).unwrap().copy_to_host().unwrap().to_vec(), b"old");
    assert_eq!(
        device.to_device(&npy::<u8, Ix1>(&path).unwrap()).unwrap().copy_to_host().unwrap().to_vec(),
        [1, 2]
    );
}
