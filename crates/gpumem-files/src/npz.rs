//! NumPy's npz files: npy files in a zip archive.

use crate::{
    NamedTensor, NewFile, NpyFile,
    archive::{self, MOST_NAME, Member, NewMember, STORED},
    broken, fail,
};
use flate2::{CrcReader, read::DeflateDecoder};
use gpumem_core::{Element, Error, ErrorKind, FileError, FileFailure, Result};
use gpumem_runtime::{DataFile, FileView};
use ndarray::Dimension;
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    io::{self, Read},
    path::Path,
    sync::Arc,
};
use tempfile::NamedTempFile;

const OPERATION: &str = "npz";

/// What the names of members end with that are arrays.
const NPY: &str = ".npy";

/// The arrays of an npz file, by name.
#[derive(Clone)]
pub struct Npz {
    file: DataFile,
    /// By name, with the place in the directory.
    members: Arc<BTreeMap<String, (usize, Member)>>,
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
    let members = archive::members(&file).map_err(|error| fail(OPERATION, error))?;
    Ok(Npz { file, members: Arc::new(members) })
}

impl Npz {
    /// The names of its arrays, in the order of the archive's directory: of members that end with `.npy`, without that. Of two members
    /// of one name, the later one counts, as for NumPy.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let names = self.members.iter().filter_map(|(name, (at, _))| Some((*at, name.strip_suffix(NPY)?)));
        let mut names: Vec<_> = names.collect();
        names.sort_unstable();
        names.into_iter().map(|(_, name)| name)
    }

    /// Bytes of the npy file of an array, header and all, by the archive's directory. `None` if there is no such array.
    pub fn member_bytes(&self, name: &str) -> Option<u64> {
        self.members.get(&format!("{name}{NPY}")).map(|(_, member)| member.bytes)
    }

    /// The npy file of an array, of any elements. All of it is read once, and held against its checksum. A stored one then is a part of
    /// the archive; a compressed one is unpacked into a temporary file, which is gone when the last view of it is.
    ///
    /// # Errors
    /// Returns [`File`](gpumem_core::ErrorKind::File) if there is no such array, it is encrypted or compressed otherwise than by
    /// deflate, its checksum or length is another one, or it cannot be read or unpacked. Otherwise as for
    /// [`npy_file`](crate::npy_file).
    pub fn member(&self, name: &str) -> Result<NpyFile> {
        let failed = |error| fail(OPERATION, error);
        let (_, member) = self
            .members
            .get(&format!("{name}{NPY}"))
            .ok_or_else(|| failed(self.file.error(FileFailure::NoSuchTensor { name: name.to_owned() })))?;
        if let Some(refused) = member.refused(&self.file) {
            return Err(failed(refused));
        }
        let start = member.start(&self.file).map_err(failed)?;
        let packed = Reader { file: self.file.clone(), at: start, end: start.saturating_add(member.packed) };
        if member.method == STORED {
            self.check(member, start, packed, &mut io::sink())?;
            return NpyFile::within(self.file.clone(), start..start.saturating_add(member.bytes));
        }
        let refused = |error: io::Error| failed(FileError::io(self.file.path(), &error));
        let mut unpacked = NamedTempFile::new().map_err(refused)?;
        self.check(member, start, DeflateDecoder::new(packed), &mut unpacked)?;
        // Its name goes here; the file stays as long as it is open.
        let file = DataFile::open(unpacked.path()).map_err(|error| error.in_operation(OPERATION))?;
        let all = 0..file.len();
        NpyFile::within(file, all)
    }

    /// Reads a member, and holds it against its length and its checksum.
    fn check(&self, member: &Member, start: u64, from: impl Read, into: &mut impl io::Write) -> Result<()> {
        let wrong = |why| Err(fail(OPERATION, broken(&self.file, start, why)));
        // Not more than it says, whatever it unpacks to. The byte more shows that there is one.
        let mut from = CrcReader::new(from.take(member.bytes.saturating_add(1)));
        match io::copy(&mut from, into) {
            Err(error) => Err(self.unreadable(&error)),
            Ok(found) if found != member.bytes => wrong("a member has another length than the archive says"),
            Ok(_) if from.crc().sum() != member.checksum => wrong("a member has another checksum"),
            Ok(_) => Ok(()),
        }
    }

    /// Those of the archive are as they were; the system's others have a number, and those of unpacking have texts.
    fn unreadable(&self, error: &io::Error) -> Error {
        let of_archive = error.get_ref().and_then(|inner| inner.downcast_ref::<Error>()).map(Error::kind);
        let failure = match (of_archive, error.raw_os_error()) {
            (Some(ErrorKind::File(error)), _) => error.as_ref().clone(),
            (_, Some(_)) => FileError::io(self.file.path(), error),
            _ => self.file.error(FileFailure::Refused { message: error.to_string() }),
        };
        fail(OPERATION, failure)
    }

    /// An array. Its bytes are read as [`member`](Self::member) says.
    ///
    /// # Errors
    /// As for [`member`](Self::member) and [`npy`](crate::npy).
    pub fn array<T: Element, D: Dimension>(&self, name: &str) -> Result<FileView<T, D>> {
        self.member(name)?.array()
    }
}

/// Writes arrays as an npz file, in their order and uncompressed, as `numpy.savez` does. The file is written beside the path and
/// renamed when it is whole, so one that is there is replaced then, and stays as it is after an error. It is read once before, for its
/// checksums.
/// ```
/// # use ndarray::{Ix1, array};
/// use gpumem_files::{named, npz, save_npz};
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("x.npz");
/// # let device = gpumem_runtime::Device::<gpumem_host::Host>::open("host")?;
/// let (x, y) = (device.to_device(&[1.0f32, 2.0])?, device.to_device(&[3i64])?);
/// save_npz(&path, &[named("x", &x), named("y", &y)])?;
/// let again = device.to_device(&npz(&path)?.array::<f32, Ix1>("x")?)?;
/// assert_eq!(again.copy_to_host()?, array![1.0, 2.0]);
/// # Ok::<(), gpumem_core::Error>(())
/// ```
///
/// # Errors
/// Returns [`File`](gpumem_core::ErrorKind::File) if the file cannot be written, two arrays have one name, or a name is longer than the
/// format allows. Otherwise as [`copy_to_host`](gpumem_runtime::ArrayBase::copy_to_host).
pub fn save_npz(path: impl AsRef<Path>, arrays: &[NamedTensor<'_>]) -> Result<()> {
    const OPERATION: &str = "save_npz";
    let path = path.as_ref();
    let refuse = |failure| Err(fail(OPERATION, FileError { path: path.to_owned(), failure }));
    let (mut names, mut members, mut end) = (BTreeSet::new(), Vec::new(), 0_u64);
    for array in arrays {
        let name = format!("{}{NPY}", array.name);
        if name.len() > MOST_NAME {
            let (found, most) = (name.len() as u64, MOST_NAME as u64);
            return refuse(FileFailure::TooLarge { what: "a name", found, most });
        }
        if !names.insert(name.clone()) {
            let why = "an array has a name of its own";
            return refuse(FileFailure::Range { tensor: array.name.clone(), why });
        }
        let npy = array.npy_header(OPERATION)?;
        let bytes = (npy.len() as u64).saturating_add(array.bytes);
        let (header, first) = (end, end.saturating_add(NewMember::header_bytes(&name)));
        end = first.saturating_add(bytes);
        members.push((NewMember { name, checksum: 0, bytes, header }, first, npy));
    }
    let save = || {
        let names = members.iter().map(|(member, ..)| &*member.name);
        let file = NewFile::create(path, end.saturating_add(archive::directory_bytes(names)))?;
        let mut written = Vec::with_capacity(members.len());
        for (array, (member, first, npy)) in arrays.iter().zip(members) {
            file.write_at(first, &npy)?;
            (array.write)(&file, first + npy.len() as u64)?;
            let of_file = Reader { file: file.written().clone(), at: first, end: first + member.bytes };
            let mut read = CrcReader::new(of_file);
            let refused = |error| fail(OPERATION, FileError::io(path, &error));
            io::copy(&mut read, &mut io::sink()).map_err(refused)?;
            let member = NewMember { checksum: read.crc().sum(), ..member };
            file.write_at(member.header, &member.local())?;
            written.push(member);
        }
        file.write_at(end, &archive::new_directory(&written, end))?;
        file.commit()
    };
    save().map_err(|error| error.in_operation(OPERATION))
}

impl fmt::Debug for Npz {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, members } = self;
        f.debug_struct("Npz").field("path", &file.path()).field("members", &members.len()).finish()
    }
}

/// A part of the archive.
#[derive(Debug)]
struct Reader {
    file: DataFile,
    at: u64,
    end: u64,
}

impl Read for Reader {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let left = self.end.min(self.file.len()).saturating_sub(self.at);
        let bytes = into.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        let into = into.get_mut(..bytes).unwrap_or_default();
        self.file.read_at(self.at, into).map_err(io::Error::other)?;
        self.at += bytes as u64;
        Ok(bytes)
    }
}
