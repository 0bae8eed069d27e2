//! Lengths that lie cost no memory: what is allocated for a header is never more than the file has.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use gpumem_files::{npy_file, npz, safetensors, safetensors_index};
use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
    fs,
};

thread_local! {
    /// The largest block that this thread has asked for.
    static LARGEST: Cell<usize> = const { Cell::new(0) };
}

struct Watched;

// SAFETY: all is left to the system's; the count allocates nothing.
unsafe impl GlobalAlloc for Watched {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _ = LARGEST.try_with(|largest| largest.set(largest.get().max(layout.size())));
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Watched = Watched;

#[test]
fn no_header_takes_more_memory_than_the_file_has() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x");
    let largest = |bytes: &[u8], open: &dyn Fn() -> bool| {
        fs::write(&path, bytes).unwrap();
        LARGEST.set(0);
        assert!(open());
        LARGEST.get()
    };
    let most = 16 << 10;
    // One that is there is counted.
    let bytes = [&50_000_u64.to_le_bytes()[..], format!("{:50000}", "{}").as_bytes()].concat();
    assert!(largest(&bytes, &|| safetensors(&path).is_ok()) >= 50_000);
    // A header of 99 MB, within the limit of the format; of 4 GiB; of more than there are addresses.
    for length in [99_000_000, u64::from(u32::MAX), u64::MAX] {
        let bytes = [&length.to_le_bytes()[..], b"{}"].concat();
        assert!(largest(&bytes, &|| safetensors(&path).is_err()) < most, "{length}");
    }
    // Shapes of more bytes than there are.
    let text = r#"{"x":{"dtype":"U8","shape":[9000000000000000000],"data_offsets":[0,9000000000000000000]}}"#;
    let bytes = [&(text.len() as u64).to_le_bytes()[..], text.as_bytes()].concat();
    assert!(largest(&bytes, &|| safetensors(&path).is_err()) < most);
    for length in [60_000_u32, u32::MAX] {
        let bytes = [b"\x93NUMPY\x02\x00", &length.to_le_bytes()[..], b"{}"].concat();
        assert!(largest(&bytes, &|| npy_file(&path).is_err()) < most, "{length}");
    }
    let end = |bytes: u32, start: u32| {
        let numbers = [&bytes.to_le_bytes()[..], &start.to_le_bytes(), &[0; 2]].concat();
        [b"PK\x05\x06", &[0, 0, 0, 0, 1, 0, 1, 0][..], &numbers].concat()
    };
    for (bytes, start) in [(99_000_000, 0), (u32::MAX - 1, 0), (0, u32::MAX - 1)] {
        assert!(largest(&end(bytes, start), &|| npz(&path).is_err()) < most, "{bytes}");
    }
    assert!(largest(b"{", &|| safetensors_index(&path).is_err()) < most);
}
