//! Files that are written, and seen when they are whole.

use gpumem_core::{DataFile, Error, FileError, FileFailure, Result};
use std::{
    ffi::OsString,
    fs::{self, OpenOptions},
    io, mem,
    path::{Path, PathBuf},
    process,
    sync::atomic::{AtomicU64, Ordering},
};

/// Distinguishes the temporary files of one process.
static NUMBER: AtomicU64 = AtomicU64::new(0);

/// A file that is being written: in a temporary file beside the path, until [`commit`](Self::commit) gives it its name. So a program that
/// opens the path finds the old file or the new one, whole, and one that has been opened or mapped before stays as it is.
///
/// Dropping it removes the temporary file.
#[derive(Debug)]
pub struct NewFile {
    file: DataFile,
    /// Empty once it has its name.
    temporary: PathBuf,
}

impl NewFile {
    /// Begins a file of so many bytes, which are zero.
    ///
    /// # Errors
    /// Returns [`File`](gpumem_core::ErrorKind::File) if it cannot be made.
    pub fn create(path: impl AsRef<Path>, bytes: u64) -> Result<Self> {
        Self::try_create(path.as_ref(), bytes).map_err(|error| fail("create", error))
    }

    fn try_create(path: &Path, bytes: u64) -> Result<Self, FileError> {
        let Some(name) = path.file_name() else {
            let failure = FileFailure::Format { offset: 0, why: "the path ends with no name of a file" };
            return Err(FileError { path: path.to_owned(), failure });
        };
        let (file, temporary) = loop {
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let mut hidden = OsString::from(".");
            hidden.push(name);
            hidden.push(format!(".{}-{number}.tmp", process::id()));
            let temporary = path.with_file_name(hidden);
            match OpenOptions::new().read(true).write(true).create_new(true).open(&temporary) {
                // Left by an earlier process of this number.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(FileError::io(path, &error)),
                Ok(file) => break (file, temporary),
            }
        };
        let length = file.set_len(bytes);
        // From here on the temporary is removed with it.
        let new = Self { file: DataFile::being_written(file, path.to_owned(), bytes), temporary };
        length.map_err(|error| FileError::io(path, &error))?;
        Ok(new)
    }

    /// Writes bytes at `offset`.
    ///
    /// # Errors
    /// Returns [`File`](gpumem_core::ErrorKind::File) if they cannot be written, or would lie behind the end.
    pub fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.check(offset, bytes.len() as u64)
            .and_then(|()| self.file.put(offset, bytes))
            .map_err(|error| fail("write", error))
    }

    /// Returns [`FileFailure::Range`] if so many bytes would lie behind the end.
    pub(crate) fn check(&self, offset: u64, bytes: u64) -> Result<(), FileError> {
        if offset.checked_add(bytes).is_some_and(|end| end <= self.file.len()) {
            return Ok(());
        }
        let tensor = format!("{bytes} bytes at {offset}");
        Err(self.file.error(FileFailure::Range { tensor, why: "they lie behind the end of the file" }))
    }

    pub(crate) fn file(&self) -> &DataFile {
        &self.file
    }

    /// Waits until what was written is on the disk. Without this a power failure after [`commit`](Self::commit) may leave a file
    /// that is not whole.
    ///
    /// # Errors
    /// Returns [`File`](gpumem_core::ErrorKind::File) if the system reports a failure.
    pub fn sync(&self) -> Result<()> {
        self.file.sync().map_err(|error| fail("sync", error))
    }

    /// Gives the file its name. One that was there is replaced.
    ///
    /// # Errors
    /// Returns [`File`](gpumem_core::ErrorKind::File) if it cannot be renamed; it is removed then.
    pub fn commit(mut self) -> Result<()> {
        fs::rename(&self.temporary, self.file.path())
            .map_err(|error| fail("commit", FileError::io(self.file.path(), &error)))?;
        self.temporary = PathBuf::new();
        Ok(())
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        let temporary = mem::take(&mut self.temporary);
        if !temporary.as_os_str().is_empty()
            && let Err(why) = fs::remove_file(&temporary)
        {
            gpumem_core::tell!(warn: "{temporary:?} could not be removed: {why}");
        }
    }
}

fn fail(operation: &'static str, error: FileError) -> Error {
    Error::new("", operation, Box::new(error))
}
