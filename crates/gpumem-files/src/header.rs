//! Reading headers: their lengths are checked against the file and a limit before there is memory for them.

use crate::broken;
use gpumem_core::{Error, ErrorKind, FileError, FileFailure};
use gpumem_runtime::DataFile;

/// Most axes of an array: NumPy has 64.
pub(crate) const MOST_AXES: usize = 64;
/// Most bytes of a header of JSON: what the reference implementation of safetensors takes.
pub(crate) const MOST_JSON: u64 = 100_000_000;

/// Reads so many bytes of a file. Call it with a length that the file has.
pub(crate) fn read(
    file: &DataFile,
    offset: u64,
    (what, bytes, most): (&'static str, u64, u64),
) -> Result<Vec<u8>, FileError> {
    let too_large = || file.error(FileFailure::TooLarge { what, found: bytes, most });
    if bytes > most {
        return Err(too_large());
    }
    if offset.checked_add(bytes).is_none_or(|end| end > file.len()) {
        return Err(broken(file, offset, "the header ends behind the end of the file"));
    }
    let length = usize::try_from(bytes).map_err(|_| too_large())?;
    let mut header = Vec::new();
    header.try_reserve_exact(length).map_err(|_| too_large())?;
    header.resize(length, 0);
    file.read_at(offset, &mut header).map_err(|error| of(file, &error))?;
    Ok(header)
}

/// The error of a read, as that of a file.
fn of(file: &DataFile, error: &Error) -> FileError {
    match error.kind() {
        ErrorKind::File(error) => (**error).clone(),
        other => file.error(FileFailure::Refused { message: other.to_string() }),
    }
}

/// The error of JSON that cannot be read, which begins at `offset`.
pub(crate) fn json(file: &DataFile, offset: u64, error: &serde_json::Error) -> FileError {
    let column = if error.line() <= 1 { error.column() as u64 } else { 0 };
    let why = match error.classify() {
        serde_json::error::Category::Data => "the header does not say what a header must",
        _ => "the header is not valid JSON",
    };
    broken(file, offset.saturating_add(column), why)
}
