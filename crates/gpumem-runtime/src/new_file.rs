//! Files that are written, and seen when they are whole.

use gpumem_core::{DataFile, Error, FileError, FileFailure, Result, WritableFile, process::ProcessGuard};
use std::{
    fs, mem,
    path::{Path, PathBuf},
};

/// A file that is being written: in a temporary file beside the path, until [`commit`](Self::commit) gives it its name. So a program that
/// opens the path finds the old file or the new one, whole, and one that has been opened or mapped before stays as it is. The new one
/// has the permissions of the old one. A symbolic link is replaced, and not what it points to.
///
/// Dropping it removes the temporary file. In a forked child it is an error to use, and dropping it only closes the file.
#[derive(Debug)]
pub struct NewFile {
    pub(crate) file: WritableFile,
    /// Empty once it has its name.
    temporary: PathBuf,
    /// The file is its creator's.
    origin: ProcessGuard,
}

impl NewFile {
    /// Begins a file of so many bytes, which are zero.
    ///
    /// # Errors
    /// Returns [`File`](gpumem_core::ErrorKind::File) if it cannot be made.
    pub fn create(path: impl AsRef<Path>, bytes: u64) -> Result<Self> {
        let (file, temporary) =
            WritableFile::create_beside(path.as_ref(), bytes).map_err(|error| fail("create", error))?;
        Ok(Self { file, temporary, origin: ProcessGuard::current() })
    }

    /// Writes bytes at `offset`.
    ///
    /// # Errors
    /// Returns [`File`](gpumem_core::ErrorKind::File) if they cannot be written, or would lie behind the end.
    pub fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.check_process("write")?;
        self.check(offset, bytes.len() as u64)
            .and_then(|()| self.file.put(offset, bytes))
            .map_err(|error| fail("write", error))
    }

    /// The file as it is by now, to be [read](DataFile::read_at): for a checksum of what was written. A [`FileView`](crate::FileView) of it
    /// cannot be copied, because the file may still change: that is [`Changed`](FileFailure::Changed). It only reads:
    /// ```compile_fail,E0599
    /// # use gpumem_runtime::NewFile;
    /// fn write_behind_its_checks(file: &NewFile) {
    ///     let _ = file.written().put(0, &[1]);
    /// }
    /// ```
    pub fn written(&self) -> &DataFile {
        self.file.written()
    }

    /// Returns [`ForkedChild`](gpumem_core::ErrorKind::ForkedChild) in a child of the process that made it.
    pub(crate) fn check_process(&self, operation: &'static str) -> Result<()> {
        self.origin.check("", operation)
    }

    /// Returns [`FileFailure::Range`] if so many bytes would lie behind the end.
    pub(crate) fn check(&self, offset: u64, bytes: u64) -> Result<(), FileError> {
        if offset.checked_add(bytes).is_some_and(|end| end <= self.written().len()) {
            return Ok(());
        }
        let tensor = format!("{bytes} bytes at {offset}");
        Err(self.written().error(FileFailure::Range { tensor, why: "they lie behind the end of the file" }))
    }

    /// Waits until what was written is on the disk. Without this a power failure after [`commit`](Self::commit) may leave a file
    /// that is not whole.
    ///
    /// # Errors
    /// Returns [`File`](gpumem_core::ErrorKind::File) if the system reports a failure.
    pub fn sync(&self) -> Result<()> {
        self.check_process("sync")?;
        self.file.sync().map_err(|error| fail("sync", error))
    }

    /// Gives the file its name. One that was there is replaced.
    ///
    /// # Errors
    /// Returns [`File`](gpumem_core::ErrorKind::File) if it cannot be renamed; it is removed then.
    pub fn commit(mut self) -> Result<()> {
        self.check_process("commit")?;
        fs::rename(&self.temporary, self.written().path())
            .map_err(|error| fail("commit", FileError::io(self.written().path(), &error)))?;
        self.temporary = PathBuf::new();
        Ok(())
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        let temporary = mem::take(&mut self.temporary);
        if !self.origin.is_forked()
            && !temporary.as_os_str().is_empty()
            && let Err(why) = fs::remove_file(&temporary)
        {
            gpumem_core::tell!(warn: "{temporary:?} could not be removed: {why}");
        }
    }
}

fn fail(operation: &'static str, error: FileError) -> Error {
    Error::new("", operation, Box::new(error))
}
