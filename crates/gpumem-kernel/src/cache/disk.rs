//! Images in files, shared by processes.
//!
//! Each key has its own file name (as far as 64 bits tell them apart). A file holds a checksum, the whole key and the
//! image. A writer makes a file under a private name and then renames it, so that readers see the old file or the new
//! one, never a part. Truncated or changed files are ignored.

use super::Key;
use std::{
    ffi::OsString,
    fs::{self, File, OpenOptions},
    hash::Hasher,
    io::{self, Read, Write},
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, SystemTime},
};

/// How a file begins; with another form, another number.
const MAGIC: &[u8; 16] = b"gpumem image 01\n";
/// Bytes before the key: the magic, the lengths of key and image, the checksum.
const HEADER: usize = 16 + 8 + 8 + 8;
/// Bytes of all files by default.
const MOST_BYTES: u64 = 256 << 20;
/// Files that a dead process has left are removed after this time.
const ABANDONED: Duration = Duration::from_secs(60 * 60);
/// Extension of a file with an image.
const EXTENSION: &str = "gpumem-image";

/// A directory with images.
#[derive(Debug)]
pub(super) struct Disk {
    directory: PathBuf,
    most_bytes: u64,
}

impl Disk {
    /// The directory that `GPUMEM_CACHE_DIR` names, or the user's. `None` where that is `off`, or there is none.
    pub(super) fn from_environment() -> Option<Self> {
        let most_bytes = std::env::var("GPUMEM_CACHE_BYTES").ok().and_then(|bytes| bytes.trim().parse().ok());
        let directory = directory(&|name| std::env::var_os(name), std::env::home_dir())?;
        Some(Self { directory, most_bytes: most_bytes.unwrap_or(MOST_BYTES) })
    }

    /// The image of a key, if there is one that is whole. A hit makes the file the latest.
    pub(super) fn get(&self, key: &Key) -> Option<Vec<u8>> {
        let path = self.path(key);
        let mut bytes = Vec::new();
        if !is_own(&self.directory) {
            return None;
        }
        let most = self.most_bytes.max(MOST_BYTES);
        let file = open_with(OpenOptions::new().read(true), &path).ok()?;
        let metadata = file.metadata().ok()?;
        if !metadata.is_file() || metadata.len() > most {
            return None;
        }
        // It may grow while it is read.
        file.take(most).read_to_end(&mut bytes).ok()?;
        match image_of(&bytes, key) {
            Ok(image) => {
                // Without the right to write, it only grows old sooner.
                let _ = open_with(OpenOptions::new().append(true), &path)
                    .and_then(|file| file.set_modified(SystemTime::now()));
                image
            }
            Err(why) => {
                gpumem_core::tell!(debug: "{} is not used: {why}", path.display());
                let _ = fs::remove_file(&path);
                None
            }
        }
    }

    /// Stores an image. A failure only costs a compilation later.
    pub(super) fn put(&self, key: &Key, image: &[u8]) {
        let bytes = (HEADER + key.0.len() + image.len()) as u64;
        if bytes > self.most_bytes {
            return;
        }
        if let Err(error) = self.write(key, image) {
            gpumem_core::tell!(debug: "a compiled kernel cannot be kept in {}: {error}", self.directory.display());
            return;
        }
        self.evict();
    }

    fn path(&self, key: &Key) -> PathBuf {
        self.directory.join(format!("{:016x}.{EXTENSION}", sum(&[&key.0])))
    }

    fn write(&self, key: &Key, image: &[u8]) -> io::Result<()> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        create_directory(&self.directory)?;
        if !is_own(&self.directory) {
            let why = "the directory is another user's, or all can write to it";
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
        }
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!(".{:016x}-{}-{number}.tmp", sum(&[&key.0]), std::process::id());
        let own = self.directory.join(name);
        let write = || -> io::Result<()> {
            let mut file = OpenOptions::new().write(true).create_new(true).open(&own)?;
            file.write_all(&header(key, image))?;
            file.write_all(&key.0)?;
            file.write_all(image)?;
            drop(file);
            fs::rename(&own, self.path(key))
        };
        write().inspect_err(|_| {
            let _ = fs::remove_file(&own);
        })
    }

    /// Removes the oldest files while the total is too large, and files that dead processes have left.
    fn evict(&self) {
        let now = SystemTime::now();
        let Ok(entries) = fs::read_dir(&self.directory) else { return };
        let mut images = Vec::new();
        for entry in entries.flatten() {
            let (path, Ok(metadata)) = (entry.path(), entry.metadata()) else { continue };
            let modified = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
            match path.extension().and_then(|extension| extension.to_str()) {
                Some(EXTENSION) => images.push((modified, metadata.len(), path)),
                Some("tmp") if now.duration_since(modified).is_ok_and(|age| age > ABANDONED) => {
                    let _ = fs::remove_file(path);
                }
                _ => {}
            }
        }
        // Files with gaps may have more bytes in all than 64 bits count.
        let mut total: u128 = images.iter().map(|(_, bytes, _)| u128::from(*bytes)).sum();
        images.sort();
        for (_, bytes, path) in images {
            if total <= u128::from(self.most_bytes) {
                break;
            }
            if fs::remove_file(path).is_ok() {
                total -= u128::from(bytes);
            }
        }
    }
}

/// Opens a file without waiting and without following a symbolic link: the path may be a pipe, a device or anything.
fn open_with(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    if !fs::symlink_metadata(path)?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file"));
    }
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(options, libc::O_NONBLOCK | libc::O_NOFOLLOW);
    options.open(path)
}

/// Tells whether only the user and the system's administrator can change the directory: its images run on the device.
fn is_own(directory: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let Ok(metadata) = fs::metadata(directory) else { return false };
        // SAFETY: asks for a number.
        let user = unsafe { libc::geteuid() };
        metadata.is_dir() && [user, 0].contains(&metadata.uid()) && metadata.mode() & 0o002 == 0
    }
    #[cfg(not(unix))]
    directory.is_dir()
}

/// A checksum, and a name. Another release of Rust may have another: then images are compiled anew.
fn sum(parts: &[&[u8]]) -> u64 {
    let mut hasher = std::hash::DefaultHasher::new();
    parts.iter().for_each(|part| hasher.write(part));
    hasher.finish()
}

fn header(key: &Key, image: &[u8]) -> [u8; HEADER] {
    let mut header = [0; HEADER];
    let lengths = [key.0.len() as u64, image.len() as u64];
    let parts = [MAGIC.as_slice(), &lengths[0].to_le_bytes(), &lengths[1].to_le_bytes()].concat();
    let checksum = sum(&[&parts, &key.0, image]).to_le_bytes();
    header.iter_mut().zip(parts.iter().chain(&checksum)).for_each(|(to, from)| *to = *from);
    header
}

/// The image in a file, `None` where it is that of another key with the same name.
fn image_of(bytes: &[u8], key: &Key) -> Result<Option<Vec<u8>>, &'static str> {
    let (found, rest) = bytes.split_at_checked(HEADER).ok_or("it is cut off")?;
    let length = |at: usize| -> Option<usize> {
        let bytes: [u8; 8] = found.get(at..at + 8)?.try_into().ok()?;
        usize::try_from(u64::from_le_bytes(bytes)).ok()
    };
    let (keys, images) =
        (length(16).ok_or("its lengths are wrong")?, length(24).ok_or("its lengths are wrong")?);
    if !found.starts_with(MAGIC) || keys.checked_add(images) != Some(rest.len()) {
        return Err("it has another form or another length");
    }
    let (held, image) = rest.split_at_checked(keys).ok_or("it is cut off")?;
    if header(&Key(held.to_vec()), image) != found {
        return Err("its checksum is wrong");
    }
    Ok((held == key.0).then(|| image.to_vec()))
}

/// Where images are kept, by the environment.
fn directory(variable: &dyn Fn(&str) -> Option<OsString>, home: Option<PathBuf>) -> Option<PathBuf> {
    match variable("GPUMEM_CACHE_DIR") {
        Some(off) if off.eq_ignore_ascii_case("off") => return None,
        Some(named) if !named.is_empty() => return Some(named.into()),
        _ => {}
    }
    // The XDG specification: a path that is not absolute is ignored.
    let absolute = |name: &str| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let caches = if cfg!(windows) {
        absolute("LOCALAPPDATA")
    } else if cfg!(target_os = "macos") {
        home.map(|home| home.join("Library").join("Caches"))
    } else {
        absolute("XDG_CACHE_HOME")
            .or_else(|| home.filter(|home| home.is_absolute()).map(|home| home.join(".cache")))
    };
    caches.map(|caches| caches.join("gpumem"))
}

/// Makes the directory, for its user alone: code that can write to it decides what runs on the device.
fn create_directory(path: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

// Miri has no files.
#[cfg(test)]
#[cfg(not(miri))]
mod tests;
