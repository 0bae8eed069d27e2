//! safetensors files: what the reference implementation writes is read, and what breaks a rule is a typed error before anything is
//! allocated.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod common;

use ::safetensors::{self as reference, tensor::TensorView};
use common::{device, failure};
use gpumem_core::{Element, Error, ErrorKind, FileFailure, LayoutError};
use gpumem_files::{Dtype, SafeTensors, named, safetensors, safetensors_index, save_safetensors};
use gpumem_host::Host;
use gpumem_runtime::{Bool, Device};
use half::{bf16, f16};
use ndarray::{Ix0, Ix1, Ix2, IxDyn, arr0, array};
use num_complex::Complex;
use std::{collections::HashMap, fs, path::PathBuf};
use tempfile::TempDir;

struct Scene(TempDir);

impl Scene {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// A file of a header and so many bytes.
    fn open(&self, header: &str, bytes: usize) -> Result<SafeTensors, Error> {
        let mut all = (header.len() as u64).to_le_bytes().to_vec();
        all.extend(header.as_bytes());
        all.resize(all.len() + bytes, 1);
        self.open_bytes(&all)
    }

    fn open_bytes(&self, bytes: &[u8]) -> Result<SafeTensors, Error> {
        fs::write(self.path("model.safetensors"), bytes).unwrap();
        safetensors(self.path("model.safetensors"))
    }
}

fn pattern(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at * 131 % 251) as u8).collect()
}

#[test]
fn every_type_of_the_reference_is_read() {
    let (device, scene) = (device(), Scene::new());
    let bytes = pattern(48 * 8);
    let types: HashMap<&str, reference::Dtype> = Dtype::ALL
        .iter()
        .map(|dtype| (dtype.name(), serde_json::from_str(&format!("\"{dtype}\"")).unwrap()))
        .collect();
    let view = |name: &str| {
        let (dtype, of) = (types[name], Dtype::of_name(name).unwrap());
        assert_eq!(dtype.bitsize(), of.bits(), "{name}");
        TensorView::new(dtype, vec![6, 8], &bytes[..48 * of.bits() / 8]).unwrap()
    };
    let metadata = HashMap::from([("format".to_owned(), "pt".to_owned())]);
    let tensors = Dtype::ALL.iter().map(|dtype| (dtype.name(), view(dtype.name())));
    reference::serialize_to_file(tensors, Some(metadata), &scene.path("all")).unwrap();
    let all = safetensors(scene.path("all")).unwrap();
    assert_eq!((all.len(), all.metadata()["format"].as_str()), (22, "pt"));
    for dtype in Dtype::ALL {
        let info = all.info(dtype.name()).unwrap();
        let length = 48 * dtype.bits() / 8;
        assert_eq!((info.dtype(), info.shape(), info.bytes()), (*dtype, &[6, 8][..], length));
        let raw = device.to_device(&all.tensor_bytes(dtype.name()).unwrap()).unwrap();
        assert_eq!(raw.copy_to_host().unwrap().to_vec(), bytes[..length], "{dtype}");
    }
    let check = |names: &[&str], check: &dyn Fn(&str)| names.iter().for_each(|name| check(name));
    fn typed<T: Element>(device: &Device<Host>, all: &SafeTensors, name: &str, bytes: &[u8]) {
        let array = device.to_device(&all.tensor::<T, Ix2>(name).unwrap()).unwrap().copy_to_host().unwrap();
        assert_eq!(bytemuck::cast_slice::<T, u8>(array.as_slice().unwrap()), &bytes[..48 * size_of::<T>()]);
        assert_eq!(array.dim(), (6, 8));
        // No other name is taken for it, but for the floats of eight bits.
        for other in
            Dtype::ALL.iter().filter(|dtype| dtype.element() != all.info(name).unwrap().dtype().element())
        {
            let error = all.tensor::<T, Ix2>(other.name()).unwrap_err();
            assert!(matches!(failure(&error), FileFailure::Element { tensor, .. } if tensor == other.name()));
        }
    }
    check(&["BOOL"], &|name| typed::<Bool>(&device, &all, name, &bytes));
    let bytes_like = ["U8", "F8_E5M2", "F8_E4M3", "F8_E8M0", "F8_E4M3FNUZ", "F8_E5M2FNUZ"];
    check(&bytes_like, &|name| typed::<u8>(&device, &all, name, &bytes));
    check(&["I8"], &|name| typed::<i8>(&device, &all, name, &bytes));
    check(&["I16"], &|name| typed::<i16>(&device, &all, name, &bytes));
    check(&["U16"], &|name| typed::<u16>(&device, &all, name, &bytes));
    check(&["F16"], &|name| typed::<f16>(&device, &all, name, &bytes));
    check(&["BF16"], &|name| typed::<bf16>(&device, &all, name, &bytes));
    check(&["I32"], &|name| typed::<i32>(&device, &all, name, &bytes));
    check(&["U32"], &|name| typed::<u32>(&device, &all, name, &bytes));
    check(&["F32"], &|name| typed::<f32>(&device, &all, name, &bytes));
    check(&["C64"], &|name| typed::<Complex<f32>>(&device, &all, name, &bytes));
    check(&["F64"], &|name| typed::<f64>(&device, &all, name, &bytes));
    check(&["I64"], &|name| typed::<i64>(&device, &all, name, &bytes));
    check(&["U64"], &|name| typed::<u64>(&device, &all, name, &bytes));
    let error = all.tensor::<f32, Ix1>("F32").unwrap_err();
    assert_eq!(*error.kind(), ErrorKind::Layout(LayoutError::RankMismatch { found: 2, expected: 1 }));
    let error = all.tensor::<f32, IxDyn>("f32").unwrap_err();
    assert_eq!(*failure(&error), FileFailure::NoSuchTensor { name: "f32".to_owned() });
    assert!(error.to_string().contains("f32"));
}

#[test]
fn many_tensors_are_found_by_name() {
    let (device, scene) = (device(), Scene::new());
    let bytes = pattern(3000);
    let tensors: Vec<_> = (0..3000_usize)
        .map(|at| {
            let view =
                TensorView::new(reference::Dtype::U8, vec![at * 7 % 300], &bytes[..at * 7 % 300]).unwrap();
            (format!("layers.{}.w", at * 1999 % 3000), view)
        })
        .collect();
    reference::serialize_to_file(tensors.iter().map(|(name, view)| (name, view)), None, &scene.path("all"))
        .unwrap();
    let all = safetensors(scene.path("all")).unwrap();
    assert_eq!(all.tensors().len(), 3000);
    for (name, view) in tensors.iter().step_by(37) {
        let array = device.to_device(&all.tensor::<u8, Ix1>(name).unwrap()).unwrap();
        assert_eq!(array.copy_to_host().unwrap().to_vec(), view.data(), "{name}");
    }
    // In one pass, and taken once each.
    let stream = device.stream().unwrap();
    let mut loaded = all.load(&stream, |tensor| tensor.shape() != [7]).unwrap();
    let chosen = tensors.iter().filter(|(_, view)| view.shape() != [7]);
    assert_eq!(loaded.len(), chosen.clone().count());
    for (name, view) in chosen {
        let error = loaded.take::<u16, Ix1>(name).unwrap_err();
        assert!(matches!(failure(&error), FileFailure::Element { .. }), "{error}");
        let error = loaded.take::<u8, Ix2>(name).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Layout(LayoutError::RankMismatch { .. })), "{error}");
        let array = loaded.take::<u8, Ix1>(name).unwrap();
        assert_eq!(array.copy_to_host().unwrap().to_vec(), view.data(), "{name}");
        let error = loaded.take_bytes(name).unwrap_err();
        assert_eq!(*failure(&error), FileFailure::NoSuchTensor { name: name.clone() });
    }
    assert!(loaded.is_empty() && loaded.take::<u8, Ix1>("layers.1.w").is_err());
    assert!(safetensors(scene.path("none")).is_err());
}

/// Each shape and type, elements of no bytes among them, as an array of its own.
#[test]
fn loaded_tensors_have_their_shapes_and_types() {
    let (device, scene) = (device(), Scene::new());
    let path = scene.path("all");
    let (matrix, scalar) = (array![[1.5_f64, 2.5, 3.5], [4.5, 5.5, 6.5]], arr0(7_i16));
    let arrays = (device.to_device(&matrix).unwrap(), device.to_device(&scalar).unwrap());
    let empty = device.device_array::<f32, _>((3, 0, 2)).unwrap();
    let tensors = [named("matrix", &arrays.0), named("scalar", &arrays.1), named("empty", &empty)];
    save_safetensors(&path, &tensors, [("format", "pt")]).unwrap();
    let mut loaded = safetensors(&path).unwrap().load(&device.stream().unwrap(), |_| true).unwrap();
    assert_eq!(loaded.take::<f64, Ix2>("matrix").unwrap().copy_to_host().unwrap(), matrix);
    assert_eq!(loaded.take::<i16, Ix0>("scalar").unwrap().copy_to_host().unwrap(), scalar);
    assert_eq!(loaded.take::<f32, IxDyn>("empty").unwrap().shape(), [3, 0, 2]);
}

const ONE: &str = r#"{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}"#;

#[test]
fn lengths_that_lie_are_refused() {
    let scene = Scene::new();
    assert!(scene.open(ONE, 8).is_ok());
    for length in [0, 1, 7] {
        let error = scene.open_bytes(&vec![0; length]).unwrap_err();
        assert!(matches!(failure(&error), FileFailure::Format { .. }), "{error}");
    }
    let error = scene.open_bytes(&[0xFF; 9]).unwrap_err();
    let wanted = FileFailure::TooLarge { what: "a header", found: u64::MAX, most: 100_000_000 };
    assert_eq!(*failure(&error), wanted);
    let mut bytes = 50_u64.to_le_bytes().to_vec();
    bytes.extend(b"{}");
    let error = scene.open_bytes(&bytes).unwrap_err();
    assert!(matches!(failure(&error), FileFailure::Format { .. }), "{error}");
    assert!(scene.open("{}", 0).unwrap().is_empty());
    assert!(scene.open(&format!("{ONE}      "), 8).is_ok(), "spaces fill the header up");
}

#[test]
fn ranges_and_shapes_that_lie_are_refused() {
    let scene = Scene::new();
    let two = |first: &str, second: &str| {
        format!(
            r#"{{"a":{{"dtype":"U8","shape":[4],"data_offsets":{first}}},"b":{{"dtype":"U8","shape":[4],"data_offsets":{second}}}}}"#
        )
    };
    assert!(scene.open(&two("[0,4]", "[4,8]"), 8).is_ok());
    assert!(scene.open(&two("[4,8]", "[0,4]"), 8).is_ok(), "in any order");
    for (header, bytes, tensor) in [
        (two("[0,4]", "[3,7]"), 8, "b"),
        (two("[0,4]", "[0,4]"), 8, "b"),
        (two("[0,4]", "[5,9]"), 9, "b"),
        (two("[1,5]", "[5,9]"), 9, "a"),
        (two("[4,0]", "[4,8]"), 8, "a"),
        (two("[0,4]", "[4,8]"), 7, "b"),
        (two("[0,4]", "[4,18446744073709551615]"), 8, "b"),
        (two("[0,4]", "[4,8]"), 9, "the bytes after the last tensor"),
        (two("[0,5]", "[5,9]"), 9, "a"),
        (ONE.replace("F32", "F33"), 8, "a"),
        (ONE.replace("F32", "f32"), 8, "a"),
        (ONE.replace("[2]", "[3]"), 8, "a"),
        (
            format!("{},{}", &ONE[..ONE.len() - 1], &ONE[1..])
                .replace("[2]", "[0]")
                .replace("[0,8]", "[0,0]"),
            0,
            "a",
        ),
    ] {
        let error = scene.open(&header, bytes).unwrap_err();
        match failure(&error) {
            FileFailure::Range { tensor: found, .. } => assert_eq!(found, tensor, "{header}: {error}"),
            other => panic!("{header}: {other}"),
        }
    }
    for shape in ["[4294967296,4294967296]", "[9223372036854775810,2]", "[18446744073709551615,2]"] {
        let error = scene.open(&ONE.replace("[2]", shape), 8).unwrap_err();
        assert!(matches!(failure(&error), FileFailure::Format { .. }), "{error}");
    }
    let odd = ONE.replace("F32", "F4").replace("[2]", "[3]").replace("[0,8]", "[0,1]");
    assert!(matches!(failure(&scene.open(&odd, 1).unwrap_err()), FileFailure::Format { .. }));
    // No bytes, and more elements along an axis than an array can have: the header is right, the array cannot be.
    let wide = ONE.replace("[2]", "[0,18446744073709551615]").replace("[0,8]", "[0,0]");
    let error = scene.open(&wide, 0).unwrap().tensor::<f32, Ix2>("a").unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Layout(LayoutError::TooLarge { .. })), "{error}");
}

#[test]
fn json_that_lies_is_refused() {
    let scene = Scene::new();
    let deep = format!("{{\"a\":{}1{}}}", "[".repeat(10_000), "]".repeat(10_000));
    let extra = format!(
        r#"{{"a":{{"dtype":"F32","shape":[2],"data_offsets":[0,8],"x":{}}}}}"#,
        &deep[5..deep.len() - 1]
    );
    let axes = ONE.replace("[2]", &format!("[{}2]", "1,".repeat(64)));
    for header in [
        "",
        "[]",
        "null",
        "{",
        r#"{"a":1}"#,
        r#"{"a":{}}"#,
        r#"{"__metadata__":{"a":1}}"#,
        r#"{"__metadata__":{},"__metadata__":{}}"#,
        r#"{"__metadata__":{"a":"1","a":"1"}}"#,
        r#"{"__metadata__":["a","1"]}"#,
        r#"{"a":["F32",[2],[0,8]]}"#,
        r#"[["F32",[2],[0,8]]]"#,
        r#"{"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,8]}}"#,
        r#"{"a":{"dtype":"F32","shape":[2.0],"data_offsets":[0,8]}}"#,
        r#"{"a":{"dtype":"F32","shape":[2],"data_offsets":[0]}}"#,
        r#"{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8,9]}}"#,
        r#"{"a":{"dtype":"F32","shape":[2],"shape":[2],"data_offsets":[0,8]}}"#,
        &format!("{ONE} x"),
        &deep,
        &extra,
        &axes,
    ] {
        let error = scene.open(header, 8).unwrap_err();
        assert!(matches!(failure(&error), FileFailure::Format { .. }), "{header:.60}: {error}");
    }
    let mut bytes = (ONE.len() as u64).to_le_bytes().to_vec();
    bytes.extend(ONE.replace('a', "\0").as_bytes());
    bytes[10] = 0xFF;
    bytes.extend([0; 8]);
    assert!(matches!(failure(&scene.open_bytes(&bytes).unwrap_err()), FileFailure::Format { .. }));
    let none = scene.open(r#"{"__metadata__":null}"#, 0).unwrap();
    assert!(none.is_empty() && none.metadata().is_empty());
}

/// Whatever byte of a header is another one, the reference implementation and this one agree, but for the listed reasons.
#[test]
fn changed_headers_are_judged_as_by_the_reference() {
    let scene = Scene::new();
    let header = r#"{"__metadata__":{"k":"v"},"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},
"b":{"dtype":"I8","shape":[],"data_offsets":[8,9]}}"#;
    let mut whole = (header.len() as u64).to_le_bytes().to_vec();
    whole.extend(header.as_bytes());
    whole.extend(pattern(9));
    let mut accepted = 0;
    for at in 0..whole.len() - 9 {
        for byte in [b' ', b'0', b'9', b'"', b',', b'a', b'}', 0xFF, whole[at] ^ 1] {
            let mut bytes = whole.clone();
            bytes[at] = byte;
            let (ours, theirs) = (scene.open_bytes(&bytes), reference::SafeTensors::deserialize(&bytes));
            // Two tensors of one name: the reference keeps the last, of which the ranges may be right.
            assert_eq!(ours.is_ok(), theirs.is_ok(), "{at} {byte}: {ours:?} {theirs:?}");
            accepted += u32::from(ours.is_ok());
        }
    }
    assert!(accepted > 50, "{accepted}");
}

#[test]
fn an_index_leads_to_files_beside_it() {
    let (device, scene) = (device(), Scene::new());
    let bytes = pattern(8);
    let view = |range: std::ops::Range<usize>| {
        TensorView::new(reference::Dtype::U8, vec![4], &bytes[range]).unwrap()
    };
    reference::serialize_to_file([("a", view(0..4)), ("b", view(1..5))], None, &scene.path("one")).unwrap();
    reference::serialize_to_file([("c", view(4..8))], None, &scene.path("two")).unwrap();
    let open = |map: &str| {
        fs::write(
            scene.path("index.json"),
            format!(r#"{{"metadata":{{"total_size":12}},"weight_map":{map}}}"#),
        )
        .unwrap();
        safetensors_index(scene.path("index.json"))
    };
    let all = open(r#"{"c":"two","a":"one"}"#).unwrap();
    let names: Vec<_> = all.tensors().map(|info| info.name().to_owned()).collect();
    assert_eq!(names, ["c", "a"], "b is not listed");
    assert!(all.info("b").is_none());
    for (name, wanted) in [("a", 0..4), ("c", 4..8)] {
        let array = device.to_device(&all.tensor::<u8, Ix1>(name).unwrap()).unwrap();
        assert_eq!(array.copy_to_host().unwrap().to_vec(), bytes[wanted]);
    }
    fs::create_dir(scene.path("inner")).unwrap();
    fs::copy(scene.path("one"), scene.path("inner").join("one")).unwrap();
    for name in ["../one", "inner/one", "/etc/passwd", "..", ".", "", r"inner\\one", r"C:one", r"one\u0000"] {
        let error = open(&format!(r#"{{"a":"{name}"}}"#)).unwrap_err();
        assert!(
            matches!(failure(&error), FileFailure::Range { tensor, .. } if tensor == "a"),
            "{name}: {error}"
        );
    }
    for (map, name) in
        [(r#"{"c":"one"}"#, "c"), (r#"{"a":"one","d":"two"}"#, "d"), (r#"{"a":"two","c":"two"}"#, "a")]
    {
        let error = open(map).unwrap_err();
        assert_eq!(*failure(&error), FileFailure::NoSuchTensor { name: name.to_owned() }, "{map}");
    }
    // Of two that have a tensor of one name, the index says which.
    reference::serialize_to_file([("a", view(4..8)), ("d", view(0..4))], None, &scene.path("more")).unwrap();
    for map in [r#"{"a":"one","d":"more"}"#, r#"{"d":"more","a":"one"}"#] {
        let all = open(map).unwrap();
        assert_eq!((all.len(), all.info("d").unwrap().bytes()), (2, 4));
        let array = device.to_device(&all.tensor::<u8, Ix1>("a").unwrap()).unwrap();
        assert_eq!(array.copy_to_host().unwrap().to_vec(), bytes[0..4], "{map}");
    }
    let error = open(r#"{"a":"one","a":"more"}"#).unwrap_err();
    assert!(matches!(failure(&error), FileFailure::Range { .. }), "{error}");
    fs::write(scene.path("index.json"), r#"[{"a":"one"}]"#).unwrap();
    let list = safetensors_index(scene.path("index.json")).unwrap_err();
    assert!(matches!(failure(&list), FileFailure::Format { .. }), "{list}");
    let error = open(r#"{"a":"one","a":"one"}"#).unwrap_err();
    assert!(matches!(failure(&error), FileFailure::Range { .. }), "{error}");
    for map in ["[]", "1", r#"{"a":1}"#, r#"{},"weight_map":{}"#] {
        assert!(matches!(failure(&open(map).unwrap_err()), FileFailure::Format { .. }), "{map}");
    }
    assert!(matches!(failure(&open(r#"{"a":"three"}"#).unwrap_err()), FileFailure::Io { .. }));
}
