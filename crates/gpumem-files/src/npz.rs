//! NumPy's npz files: npy files in a zip archive.

use crate::{NpyFile, broken, fail};
use gpumem_core::{Element, Error, FileError, FileFailure, Result};
use gpumem_runtime::{DataFile, FileView};
use ndarray::Dimension;
use std::{
    fmt,
    io::{self, Read, Seek, SeekFrom},
    path::Path,
};
use tempfile::NamedTempFile;
use zip::{CompressionMethod, ZipArchive, result::ZipError};

const OPERATION: &str = "npz";

/// What the names of members end with that are arrays.
const NPY: &str = ".npy";

/// The arrays of an npz file, by name.
#[derive(Clone)]
pub struct Npz {
    file: DataFile,
    archive: ZipArchive<Reader>,
}

/// The arrays of an npz file. The directory of the archive is read.
/// ```
/// # use ndarray::{Ix1, array};
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("x.npz");
/// # let mut made = zip::ZipWriter::new(std::fs::File::create(&path).unwrap());
/// # let options = zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
/// # made.start_file("x.npy", options).unwrap();
/// # let npy = folder.path().join("x.npy");
/// # ndarray_npy::write_npy(&npy, &array![1, 2, 3]).unwrap();
/// # std::io::copy(&mut std::fs::File::open(npy).unwrap(), &mut made).unwrap();
/// # made.finish().unwrap();
/// # let device = gpumem_runtime::Device::<gpumem_host::Host>::open("host")?;
/// let arrays = gpumem_files::npz(&path)?;
/// assert_eq!(arrays.names().collect::<Vec<_>>(), ["x"]);
/// let x = arrays.array::<i32, Ix1>("x")?;
/// assert_eq!(device.to_device(&x)?.copy_to_host()?, array![1, 2, 3]);
/// # Ok::<(), gpumem_core::Error>(())
/// ```
///
/// # Errors
/// Returns [`File`](gpumem_core::ErrorKind::File) if the file cannot be read, or is no zip archive.
pub fn npz(path: impl AsRef<Path>) -> Result<Npz> {
    let file = DataFile::open(path).map_err(|error| error.in_operation(OPERATION))?;
    let archive = ZipArchive::new(Reader { file: file.clone(), at: 0 }).map_err(|error| of(&file, error))?;
    Ok(Npz { file, archive })
}

impl Npz {
    /// The names of its arrays: of members that end with `.npy`, without that. Of two members of one name, the later one counts, as for
    /// NumPy.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.archive.file_names().filter_map(|name| name.strip_suffix(NPY))
    }

    /// The npy file of an array, of any elements. All of it is read once, and held against its checksum. A stored one then is a part of
    /// the archive; a compressed one is unpacked into a temporary file, which is gone when the last view of it is.
    ///
    /// # Errors
    /// Returns [`File`](gpumem_core::ErrorKind::File) if there is no such array, it is encrypted or compressed otherwise than by
    /// deflate, its checksum or length is another one, or it cannot be read or unpacked. Otherwise as for
    /// [`npy_file`](crate::npy_file).
    pub fn member(&self, name: &str) -> Result<NpyFile> {
        let mut archive = self.archive.clone();
        let mut member = archive.by_name(&format!("{name}{NPY}")).map_err(|error| match error {
            ZipError::FileNotFound => {
                fail(OPERATION, self.file.error(FileFailure::NoSuchTensor { name: name.to_owned() }))
            }
            error => of(&self.file, error),
        })?;
        let bytes = member.size();
        let start = member.data_start().unwrap_or_default();
        let wrong = |why| fail(OPERATION, broken(&self.file, start, why));
        let read = |result: io::Result<u64>| match result {
            Ok(found) if found == bytes => Ok(()),
            Ok(_) => Err(wrong("a member has another length than the archive says")),
            Err(error) => Err(of(&self.file, ZipError::Io(error))),
        };
        if member.compression() == CompressionMethod::Stored {
            read(io::copy(&mut member, &mut io::sink()))?;
            return NpyFile::within(self.file.clone(), start..start.saturating_add(bytes));
        }
        let refused = |error: io::Error| fail(OPERATION, FileError::io(self.file.path(), &error));
        let mut unpacked = NamedTempFile::new().map_err(refused)?;
        // Not more than it says, whatever it unpacks to. The byte more shows that there is one.
        read(io::copy(&mut member.by_ref().take(bytes.saturating_add(1)), &mut unpacked))?;
        // Its name goes here; the file stays as long as it is open.
        let file = DataFile::open(unpacked.path()).map_err(|error| error.in_operation(OPERATION))?;
        let all = 0..file.len();
        NpyFile::within(file, all)
    }

    /// An array. Its bytes are read as [`member`](Self::member) says.
    ///
    /// # Errors
    /// As for [`member`](Self::member) and [`npy`](crate::npy).
    pub fn array<T: Element, D: Dimension>(&self, name: &str) -> Result<FileView<T, D>> {
        self.member(name)?.array()
    }
}

impl fmt::Debug for Npz {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Npz").field("path", &self.file.path()).field("members", &self.archive.len()).finish()
    }
}

/// The error of an archive.
fn of(file: &DataFile, error: ZipError) -> Error {
    let failure = match error {
        // The system's own has a number; those of the archive's reader have texts.
        ZipError::Io(error) if error.raw_os_error().is_some() => {
            return fail(OPERATION, FileError::io(file.path(), &error));
        }
        ZipError::Io(error) => FileFailure::Refused { message: error.to_string() },
        error => FileFailure::Refused { message: error.to_string() },
    };
    fail(OPERATION, file.error(failure))
}

/// A file from a place on.
#[derive(Debug, Clone)]
struct Reader {
    file: DataFile,
    at: u64,
}

impl Read for Reader {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let left = self.file.len().saturating_sub(self.at);
        let bytes = into.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        let into = into.get_mut(..bytes).unwrap_or_default();
        self.file.read_at(self.at, into).map_err(io::Error::other)?;
        self.at += bytes as u64;
        Ok(bytes)
    }
}

impl Seek for Reader {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let at = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
            SeekFrom::End(by) => self.file.len().checked_add_signed(by),
        };
        self.at = at.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
        Ok(self.at)
    }
}
