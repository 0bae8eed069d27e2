//! Files of anything as safetensors: the reference implementation and this one both take a file, or both refuse it, but for what this
//! one alone refuses; and all that is taken can be read.
#![no_main]

use gpumem_files::safetensors;
use libfuzzer_sys::fuzz_target;
use safetensors::SafeTensors;
use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};
use serde_json::Value;
use std::{collections::HashSet, fmt, fs, sync::LazyLock};
use tempfile::TempDir;

static FOLDER: LazyLock<TempDir> = LazyLock::new(|| TempDir::new().expect("a folder"));

/// The entries of a header, as often as they occur.
struct Entries(Vec<(String, Value)>);

impl<'de> Deserialize<'de> for Entries {
    fn deserialize<F: Deserializer<'de>>(from: F) -> Result<Self, F::Error> {
        struct All;
        impl<'de> Visitor<'de> for All {
            type Value = Entries;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("entries")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entries, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Entries(entries))
            }
        }
        from.deserialize_map(All)
    }
}

/// Whether a file that the reference takes has what is refused here: two tensors of one name, a field that the format does not
/// have, a type that is no text, more than 64 axes.
fn is_refused_on_purpose(bytes: &[u8]) -> bool {
    let length = u64::from_le_bytes(bytes[..8].try_into().expect("eight bytes")) as usize;
    let Ok(Entries(entries)) = serde_json::from_slice(&bytes[8..8 + length]) else { return false };
    let names: HashSet<_> = entries.iter().map(|(name, _)| name).collect();
    let is_odd = |value: &Value| {
        let (dtype, shape) = match value {
            Value::Object(fields) if fields.len() != 3 => return true,
            Value::Object(fields) => (fields.get("dtype"), fields.get("shape")),
            other => (other.get(0), other.get(1)),
        };
        !dtype.is_some_and(Value::is_string)
            || shape.and_then(Value::as_array).is_some_and(|shape| shape.len() > 64)
    };
    names.len() < entries.len() || entries.iter().any(|(name, value)| name != "__metadata__" && is_odd(value))
}

fuzz_target!(|bytes: &[u8]| {
    let path = FOLDER.path().join("model");
    fs::write(&path, bytes).expect("a file");
    let (ours, theirs) = (safetensors(&path), SafeTensors::deserialize(bytes));
    match (ours, theirs) {
        (Ok(ours), Ok(theirs)) => {
            assert_eq!(ours.len(), theirs.len());
            for info in ours.tensors() {
                let tensor = theirs.tensor(info.name()).expect("the same names");
                assert_eq!((info.shape(), info.bytes()), (tensor.shape(), tensor.data().len()));
                assert_eq!(info.dtype().name(), tensor.dtype().to_string());
                let view = ours.tensor_bytes(info.name()).expect("a range in the file");
                let mut found = vec![0; view.len()];
                view.file().read_at(view.start(), &mut found).expect("its bytes");
                assert_eq!(found, tensor.data());
            }
        }
        (Err(_), Err(_)) => {}
        (Err(error), Ok(_)) => assert!(is_refused_on_purpose(bytes), "{error}"),
        (Ok(_), Err(error)) => panic!("the reference refuses this: {error:?}"),
    }
});
