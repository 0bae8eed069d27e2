//! Files that elements are read from, and written to.

use crate::{Error, FileError, FileFailure, Result};
use std::{
    fs::{self, File, Metadata, OpenOptions},
    io,
    path::{self, Path, PathBuf},
    process,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::SystemTime,
};

/// Distinguishes the files that this process has [made](WritableFile::create_beside).
static NUMBER: AtomicU64 = AtomicU64::new(0);

/// A regular file, open for reading. Its bytes are read when they are copied, never mapped: a file that others cut meanwhile is an
/// error.
#[derive(Debug, Clone)]
pub struct DataFile(Arc<Opened>);

#[derive(Debug)]
struct Opened {
    file: File,
    path: PathBuf,
    len: u64,
    modified: Option<SystemTime>,
}

impl DataFile {
    /// Opens a file.
    ///
    /// # Errors
    /// Returns [`File`](crate::ErrorKind::File) if it cannot be opened, or is no regular file.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::try_open(path.as_ref()).map_err(|error| Error::new("", "open", Box::new(error)))
    }

    fn try_open(path: &Path) -> Result<Self, FileError> {
        let fail = |error: io::Error| FileError::io(path, &error);
        let mut options = OpenOptions::new();
        options.read(true);
        #[cfg(unix)]
        {
            use std::os::unix::fs::OpenOptionsExt;
            // A pipe without a writer would hold up the thread. Without meaning for a regular file.
            options.custom_flags(libc::O_NONBLOCK);
        }
        let file = options.open(path).map_err(fail)?;
        let metadata = file.metadata().map_err(fail)?;
        if !metadata.is_file() {
            let failure = FileFailure::Format { offset: 0, why: "it is no regular file" };
            return Err(FileError { path: path.to_owned(), failure });
        }
        let (len, modified) = stamp(&metadata);
        Ok(Self(Arc::new(Opened { file, path: path.to_owned(), len, modified })))
    }

    /// The path by which it was opened.
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// Its bytes, when it was opened.
    pub fn len(&self) -> u64 {
        self.0.len
    }

    /// Whether it had no bytes when it was opened.
    pub fn is_empty(&self) -> bool {
        self.0.len == 0
    }

    /// A number that no other open file has.
    pub fn id(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
    }

    /// Fills `into` with the bytes from `offset` on.
    ///
    /// # Errors
    /// Returns [`File`](crate::ErrorKind::File) if the file has fewer bytes, or cannot be read.
    pub fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<()> {
        self.fill(offset, into).map_err(|error| Error::new("", "read", Box::new(error)))
    }

    /// The error of something in this file.
    pub fn error(&self, failure: FileFailure) -> FileError {
        FileError { path: self.0.path.clone(), failure }
    }

    /// As [`read_at`](Self::read_at), with the error alone.
    ///
    /// # Errors
    /// As for [`read_at`](Self::read_at).
    pub fn fill(&self, offset: u64, into: &mut [u8]) -> Result<(), FileError> {
        let (wanted, mut at) = (offset.saturating_add(into.len() as u64), offset);
        let mut rest = into;
        while !rest.is_empty() {
            match read_some(&self.0.file, at, rest) {
                Ok(0) => {
                    // This may be far behind the end.
                    let found = self.0.file.metadata().map_or(at, |metadata| metadata.len().min(at));
                    return Err(self.error(FileFailure::Truncated { wanted, found }));
                }
                Ok(bytes) => {
                    at = at.saturating_add(bytes as u64);
                    rest = rest.get_mut(bytes..).unwrap_or_default();
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(FileError::io(&self.0.path, &error)),
            }
        }
        Ok(())
    }

    /// Looks whether the file was written since it was opened, as its length and its time tell.
    ///
    /// # Errors
    /// Returns [`FileFailure::Changed`] if it was.
    pub fn check_unchanged(&self) -> Result<(), FileError> {
        let metadata = self.0.file.metadata().map_err(|error| FileError::io(&self.0.path, &error))?;
        match stamp(&metadata) == (self.0.len, self.0.modified) {
            true => Ok(()),
            false => Err(self.error(FileFailure::Changed)),
        }
    }
}

/// A regular file that this process has made, and writes.
#[derive(Debug)]
pub struct WritableFile(DataFile);

impl WritableFile {
    /// The file as it is by now, to be read: this cannot write it.
    pub fn written(&self) -> &DataFile {
        &self.0
    }

    /// Makes a file of so many bytes, which are to be [written](Self::put), beside `path` and under a name of its own. Returns it, with
    /// `path` as its path, and the path where it lies. On Unix it has the permissions of the file at `path`.
    ///
    /// # Errors
    /// Returns [`FileFailure::Io`] if the system reports a failure, and [`FileFailure::Format`] if the path ends with no name.
    pub fn create_beside(path: &Path, len: u64) -> Result<(Self, PathBuf), FileError> {
        let fail = |error: io::Error| FileError::io(path, &error);
        if path.file_name().is_none() {
            let failure = FileFailure::Format { offset: 0, why: "the path ends with no name of a file" };
            return Err(FileError { path: path.to_owned(), failure });
        }
        // The folder of the process may change.
        let path = path::absolute(path).map_err(fail)?;
        let replaced = fs::metadata(&path).ok().filter(Metadata::is_file);
        let (file, temporary) = loop {
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            // Short, whatever the name.
            let temporary = path.with_file_name(format!(".gpumem.{}-{number}.tmp", process::id()));
            match create_as(&temporary, replaced.as_ref()) {
                // Left by an earlier process of this number.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                made => break (made.map_err(fail)?, temporary),
            }
        };
        match permit_as(&file, replaced.as_ref()).and_then(|()| file.set_len(len)) {
            Ok(()) => Ok((Self(DataFile(Arc::new(Opened { file, path, len, modified: None }))), temporary)),
            Err(error) => {
                drop(file);
                let _ = fs::remove_file(temporary);
                Err(fail(error))
            }
        }
    }

    /// Waits until what was written is on the disk.
    ///
    /// # Errors
    /// Returns [`FileFailure::Io`] if the system reports a failure.
    pub fn sync(&self) -> Result<(), FileError> {
        self.0.0.file.sync_all().map_err(|error| FileError::io(&self.0.0.path, &error))
    }

    /// Writes all of `from` at `offset`.
    ///
    /// # Errors
    /// Returns [`FileFailure::Io`] if they cannot be written.
    pub fn put(&self, offset: u64, from: &[u8]) -> Result<(), FileError> {
        let (mut at, mut rest) = (offset, from);
        while !rest.is_empty() {
            match write_some(&self.0.0.file, at, rest) {
                Ok(0) => return Err(FileError::io(&self.0.0.path, &io::ErrorKind::WriteZero.into())),
                Ok(bytes) => {
                    at = at.saturating_add(bytes as u64);
                    rest = rest.get(bytes..).unwrap_or_default();
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(FileError::io(&self.0.0.path, &error)),
            }
        }
        Ok(())
    }
}

/// Makes a file, which no one may open who may not open another one.
fn create_as(path: &Path, other: Option<&Metadata>) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true);
    #[cfg(unix)]
    if let Some(other) = other {
        use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
        options.mode(other.permissions().mode() & 0o777);
    }
    let _ = other;
    options.open(path)
}

/// Gives a file the permissions of another one, of which [`create_as`] leaves some out.
fn permit_as(file: &File, other: Option<&Metadata>) -> io::Result<()> {
    #[cfg(unix)]
    if let Some(other) = other {
        return file.set_permissions(other.permissions());
    }
    let _ = (file, other);
    Ok(())
}

fn stamp(metadata: &Metadata) -> (u64, Option<SystemTime>) {
    (metadata.len(), metadata.modified().ok())
}

#[cfg(unix)]
fn read_some(file: &File, offset: u64, into: &mut [u8]) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, into, offset)
}

#[cfg(windows)]
fn read_some(file: &File, offset: u64, into: &mut [u8]) -> io::Result<usize> {
    std::os::windows::fs::FileExt::seek_read(file, into, offset)
}

#[cfg(unix)]
fn write_some(file: &File, offset: u64, from: &[u8]) -> io::Result<usize> {
    std::os::unix::fs::FileExt::write_at(file, from, offset)
}

#[cfg(windows)]
fn write_some(file: &File, offset: u64, from: &[u8]) -> io::Result<usize> {
    std::os::windows::fs::FileExt::seek_write(file, from, offset)
}
