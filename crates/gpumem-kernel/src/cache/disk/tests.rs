//! Files that are whole, cut off, changed, of others, too many.

use super::*;
use std::{sync::Barrier, thread};

fn disk(most_bytes: u64) -> (tempfile::TempDir, Disk) {
    let parent = tempfile::tempdir().unwrap();
    let directory = parent.path().join("made").join("on demand");
    (parent, Disk { directory, most_bytes })
}

fn key(text: &str) -> Key {
    Key(text.as_bytes().to_vec())
}

fn files(disk: &Disk) -> usize {
    fs::read_dir(&disk.directory).map_or(0, |entries| entries.count())
}

#[test]
fn images_come_back() {
    let (_parent, disk) = disk(MOST_BYTES);
    assert_eq!(disk.get(&key("a")), None);
    for image in [&b""[..], b"x", &[7; 100_000]] {
        disk.put(&key("a"), image);
        disk.put(&key("b"), b"other");
        assert_eq!(disk.get(&key("a")).as_deref(), Some(image));
        assert_eq!(disk.get(&key("b")).as_deref(), Some(&b"other"[..]));
        assert_eq!(files(&disk), 2, "nothing else is left");
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = fs::metadata(&disk.directory).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
    }
}

#[test]
fn truncated_or_changed_files_are_removed_and_not_used() {
    let (_parent, disk) = disk(MOST_BYTES);
    let (key, image) = (key("some text"), b"an image of some length".as_slice());
    let path = disk.path(&key);
    disk.put(&key, image);
    let whole = fs::read(&path).unwrap();
    for length in 0..whole.len() {
        fs::write(&path, &whole[..length]).unwrap();
        assert_eq!(disk.get(&key), None, "{length} bytes");
        assert!(!path.exists());
    }
    for at in 0..whole.len() {
        for bit in [1, 0x80] {
            let mut changed = whole.clone();
            changed[at] ^= bit;
            fs::write(&path, &changed).unwrap();
            assert_eq!(disk.get(&key), None, "byte {at}");
        }
    }
    fs::write(&path, [&whole[..], b"more"].concat()).unwrap();
    assert_eq!(disk.get(&key), None);
    // And it heals.
    disk.put(&key, image);
    assert_eq!(disk.get(&key).as_deref(), Some(image));
}

#[test]
fn keys_with_the_same_file_name_are_distinguished() {
    let (_parent, disk) = disk(MOST_BYTES);
    disk.put(&key("one"), b"image of one");
    fs::rename(disk.path(&key("one")), disk.path(&key("two"))).unwrap();
    assert_eq!(disk.get(&key("two")), None);
    assert!(disk.path(&key("two")).exists(), "it is whole, and of another process");
    disk.put(&key("two"), b"image of two");
    assert_eq!(disk.get(&key("two")).as_deref(), Some(&b"image of two"[..]));
}

#[test]
fn the_oldest_files_are_removed_above_the_limit() {
    let (_parent, disk) = disk(1000);
    let old = SystemTime::now() - Duration::from_secs(1000);
    for (number, text) in ["a", "b", "c"].into_iter().enumerate() {
        disk.put(&key(text), &[0; 200]);
        let file = OpenOptions::new().append(true).open(disk.path(&key(text))).unwrap();
        file.set_modified(old + Duration::from_secs(number as u64)).unwrap();
    }
    assert!(disk.get(&key("a")).is_some(), "which makes it the latest");
    disk.put(&key("d"), &[0; 200]);
    disk.put(&key("e"), &[0; 200]);
    let there = ["a", "b", "c", "d", "e"].map(|text| disk.get(&key(text)).is_some());
    assert_eq!(there, [true, false, true, true, true]);
    disk.put(&key("f"), &[0; 5000]);
    assert_eq!(disk.get(&key("f")), None, "too large by itself, and the others stay");
    assert_eq!(files(&disk), 4);
}

/// Where a file may have as many bytes.
#[cfg(target_os = "linux")]
#[test]
fn files_with_gaps_have_any_number_of_bytes() {
    let Ok(parent) = tempfile::tempdir_in("/dev/shm") else { return };
    let disk = Disk { directory: parent.path().to_owned(), most_bytes: 1000 };
    for name in ["a", "b", "c"] {
        let file = File::create(disk.path(&key(name))).unwrap();
        if file.set_len(1 << 62 | 1 << 61).is_err() {
            return;
        }
        file.set_modified(SystemTime::now() - Duration::from_secs(9)).unwrap();
    }
    disk.put(&key("d"), b"x");
    assert_eq!(disk.get(&key("d")).as_deref(), Some(&b"x"[..]));
    assert_eq!(files(&disk), 1);
}

#[test]
fn files_of_dead_processes_are_removed() {
    let (_parent, disk) = disk(MOST_BYTES);
    disk.put(&key("a"), b"image");
    let (old, new) = (disk.directory.join(".1-2-3.tmp"), disk.directory.join(".4-5-6.tmp"));
    for path in [&old, &new] {
        fs::write(path, "half").unwrap();
    }
    let file = OpenOptions::new().append(true).open(&old).unwrap();
    file.set_modified(SystemTime::now() - 2 * ABANDONED).unwrap();
    let foreign = disk.directory.join("notes.txt");
    fs::write(&foreign, "of the user").unwrap();
    disk.put(&key("b"), b"image");
    assert_eq!((old.exists(), new.exists(), foreign.exists()), (false, true, true));
}

#[test]
fn readers_never_see_a_partial_file() {
    let (_parent, disk) = disk(MOST_BYTES);
    let image = |n: u8| vec![n; 300_000];
    let start = Barrier::new(4);
    thread::scope(|scope| {
        for writer in 0..2u8 {
            let (disk, start, image) = (&disk, &start, &image);
            scope.spawn(move || {
                start.wait();
                (0..20).for_each(|_| disk.put(&key("shared"), &image(writer)));
            });
        }
        for _ in 0..2 {
            let (disk, start, image) = (&disk, &start, &image);
            scope.spawn(move || {
                start.wait();
                while disk.get(&key("shared")).is_none() {}
                for _ in 0..100 {
                    let found = disk.get(&key("shared"));
                    assert!(found.as_ref().is_some_and(|found| *found == image(0) || *found == image(1)));
                }
            });
        }
    });
    assert_eq!(files(&disk), 1);
}

#[test]
fn a_directory_that_cannot_be_written_costs_nothing_but_time() {
    let parent = tempfile::tempdir().unwrap();
    let file = parent.path().join("a file");
    fs::write(&file, "").unwrap();
    let disk = Disk { directory: file, most_bytes: MOST_BYTES };
    disk.put(&key("a"), b"image");
    assert_eq!(disk.get(&key("a")), None);
}

#[test]
fn the_environment_selects_the_directory() {
    let home = || Some(PathBuf::from("/home/user"));
    let with = |pairs: &'static [(&str, &str)]| {
        let lookup = move |name: &str| pairs.iter().find(|pair| pair.0 == name).map(|pair| pair.1.into());
        directory(&lookup, home())
    };
    for off in ["off", "OFF"] {
        assert_eq!(directory(&|name| (name == "GPUMEM_CACHE_DIR").then(|| off.into()), home()), None);
    }
    assert_eq!(with(&[("GPUMEM_CACHE_DIR", "here")]), Some("here".into()));
    #[cfg(all(unix, not(target_os = "macos")))]
    {
        assert_eq!(with(&[("XDG_CACHE_HOME", "/caches")]), Some("/caches/gpumem".into()));
        for nothing in [&[][..], &[("XDG_CACHE_HOME", "relative")], &[("GPUMEM_CACHE_DIR", "")]] {
            assert_eq!(with(nothing), Some("/home/user/.cache/gpumem".into()));
        }
        assert_eq!(directory(&|_| None, None), None);
    }
}

#[cfg(unix)]
#[test]
fn links_and_special_files_are_neither_opened_nor_followed() {
    use std::os::unix::fs::symlink;
    let (parent, disk) = disk(MOST_BYTES);
    disk.put(&key("a"), b"image");
    let path = disk.path(&key("a"));
    let elsewhere = parent.path().join("elsewhere");
    fs::rename(&path, &elsewhere).unwrap();
    // A pipe without a writer, a device without an end, a link to the image, a directory.
    let pipe = std::ffi::CString::new(path.to_str().unwrap()).unwrap();
    // SAFETY: a string that ends with a zero.
    assert_eq!(unsafe { libc::mkfifo(pipe.as_ptr(), 0o600) }, 0);
    assert_eq!(disk.get(&key("a")), None);
    for target in [Path::new("/dev/zero"), &elsewhere] {
        fs::remove_file(&path).unwrap();
        symlink(target, &path).unwrap();
        assert_eq!(disk.get(&key("a")), None, "{}", target.display());
    }
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    assert_eq!(disk.get(&key("a")), None);
    fs::remove_dir(&path).unwrap();
    // And once it is a file again, it is read.
    disk.put(&key("a"), b"image");
    assert_eq!(disk.get(&key("a")).as_deref(), Some(&b"image"[..]));
}

#[cfg(unix)]
#[test]
fn a_directory_that_all_can_write_to_is_not_used() {
    use std::os::unix::fs::PermissionsExt;
    let (_parent, disk) = disk(MOST_BYTES);
    disk.put(&key("a"), b"image");
    let allow = |mode| fs::set_permissions(&disk.directory, fs::Permissions::from_mode(mode)).unwrap();
    allow(0o777);
    assert_eq!(disk.get(&key("a")), None);
    disk.put(&key("b"), b"other");
    assert_eq!(files(&disk), 1, "nothing was written or removed");
    allow(0o755);
    assert_eq!(disk.get(&key("a")).as_deref(), Some(&b"image"[..]));
}
