//! Models in several safetensors files, with an index of which tensor is where.

use crate::{SafeTensors, fail, header, json};
use gpumem_core::{FileError, FileFailure, Result};
use gpumem_runtime::DataFile;
use std::{
    collections::{HashMap, HashSet},
    path::Path,
};

/// The tensors of several safetensors files, as an index (`model.safetensors.index.json`) lists them. The files lie in the folder of
/// the index, and all are opened and checked; tensors that the index does not list are left out.
///
/// # Errors
/// Returns [`File`](gpumem_core::ErrorKind::File) if a file cannot be read or breaks a rule of the format; if the index names a file
/// that would lie in another folder; and if a file lacks a tensor that the index says is there.
pub fn safetensors_index(path: impl AsRef<Path>) -> Result<SafeTensors> {
    const OPERATION: &str = "safetensors_index";
    let path = path.as_ref();
    let index = DataFile::open(path).map_err(|error| error.in_operation(OPERATION))?;
    let pairs = read(&index).map_err(|error| fail(OPERATION, error))?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let mut all = SafeTensors::default();
    let (mut numbers, mut list, mut names) = (HashMap::new(), Vec::new(), HashSet::new());
    for (tensor, name) in pairs {
        let refuse = |tensor: &str, why| {
            let tensor = tensor.to_owned();
            fail(OPERATION, index.error(FileFailure::Range { tensor, why }))
        };
        if !is_plain(&name) {
            return Err(refuse(&tensor, "its file is to lie beside the index"));
        }
        let number = match numbers.get(&name) {
            Some(number) => *number,
            None => {
                let file =
                    DataFile::open(folder.join(&name)).map_err(|error| error.in_operation(OPERATION))?;
                all.add(file).map_err(|error| fail(OPERATION, error))?;
                let number = numbers.len();
                numbers.insert(name, number);
                number
            }
        };
        if !names.insert(tensor.clone()) {
            return Err(refuse(&tensor, "two tensors have this name"));
        }
        list.push((tensor, number));
    }
    all.keep(&list).map_err(|name| fail(OPERATION, index.error(FileFailure::NoSuchTensor { name })))?;
    Ok(all)
}

fn read(index: &DataFile) -> Result<Vec<(String, String)>, FileError> {
    let text = header::read(index, 0, ("an index", index.len(), header::MOST_JSON))?;
    let json::Object::<json::Index>(map) =
        serde_json::from_slice(&text).map_err(|error| header::json(index, 0, &error))?;
    Ok(map.weight_map.0)
}

/// Whether a name is that of a file in a folder, on any system.
fn is_plain(name: &str) -> bool {
    !name.is_empty() && name != "." && name != ".." && !name.contains(['/', '\\', ':', '\0'])
}
