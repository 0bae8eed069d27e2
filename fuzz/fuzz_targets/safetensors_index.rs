//! Indices of anything over two files: what is taken lists tensors that are where it says, and what is refused breaks a rule.
#![no_main]

use gpumem_files::safetensors_index;
use libfuzzer_sys::fuzz_target;
use serde::de::IgnoredAny;
use serde_json::Value;
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    sync::LazyLock,
};
use tempfile::TempDir;

/// The files, and the tensors of each.
const FILES: [(&str, &[&str]); 2] = [("1.safetensors", &["x", "y"]), ("2.safetensors", &["y", "z"])];

static FOLDER: LazyLock<TempDir> = LazyLock::new(|| {
    let folder = TempDir::new().expect("a folder");
    for (file, names) in FILES {
        let entry = |(at, name): (usize, &&str)| {
            let offsets = format!("[{at},{}]", at + 1);
            format!(r#""{name}":{{"dtype":"U8","shape":[1],"data_offsets":{offsets}}}"#)
        };
        let entries: Vec<_> = names.iter().enumerate().map(entry).collect();
        let text = format!("{{{}}}", entries.join(","));
        let length = (text.len() as u64).to_le_bytes();
        let bytes = [&length[..], text.as_bytes(), &[7; 2]].concat();
        fs::write(folder.path().join(file), bytes).expect("a file");
    }
    folder
});

/// The tensors that an index lists with their files, if each is there.
fn reference(index: &Value) -> Option<BTreeMap<String, String>> {
    let listed = index.get("weight_map")?.as_object()?.iter();
    let listed = listed.map(|(name, file)| {
        let file = file.as_str()?;
        let is_there = FILES.iter().any(|(other, names)| *other == file && names.contains(&name.as_str()));
        is_there.then(|| (name.clone(), file.to_owned()))
    });
    listed.collect()
}

/// Whether a key occurs twice: the reference takes the later one.
fn has_a_key_twice(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    // A name may be written with escapes.
    text.contains("\\u")
        || ["\"x\"", "\"y\"", "\"z\"", "\"weight_map\""].iter().any(|key| text.matches(key).count() > 1)
}

fuzz_target!(|bytes: &[u8]| {
    let path = FOLDER.path().join("model.safetensors.index.json");
    fs::write(&path, bytes).expect("a file");
    let (ours, value) = (safetensors_index(&path), serde_json::from_slice::<Value>(bytes));
    match (ours, value) {
        (Ok(ours), Ok(index)) => {
            let listed = reference(&index).expect("each tensor is in its file");
            let found: BTreeSet<_> = ours.tensors().map(|info| info.name()).collect();
            assert!(listed.keys().map(String::as_str).eq(found));
            for (name, file) in &listed {
                let view = ours.tensor_bytes(name).expect("a tensor of a file");
                assert!(view.file().path().ends_with(file));
            }
        }
        // Beside the list there may be numbers and texts that no value is.
        (Ok(_), Err(_)) => drop(serde_json::from_slice::<BTreeMap<String, IgnoredAny>>(bytes).expect("JSON")),
        (Err(error), Ok(index)) => assert!(reference(&index).is_none() || has_a_key_twice(bytes), "{error}"),
        (Err(_), Err(_)) => {}
    }
});
