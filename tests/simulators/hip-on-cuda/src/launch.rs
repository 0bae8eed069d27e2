//! Images of modules, and the `extra` form of kernel arguments.

use crate::{error::Outcome, types::hipError_t};
use std::{
    ffi::c_void,
    ptr::{null_mut, without_provenance_mut},
};

/// Checks the beginning of an image, because the driver would take unknown bytes for text and read them to the next
/// zero.
///
/// # Safety
/// `image` is null or leads to an image: a program, whose first 20 bytes can be read, or text that ends with a zero.
pub(crate) unsafe fn check_image(image: *const c_void) -> Outcome {
    const ELF: [u8; 4] = *b"\x7fELF";
    const FAT: [u8; 4] = 0xBA55_ED50u32.to_le_bytes();
    const CUDA_MACHINE: u16 = 190;
    if image.is_null() {
        return Err(hipError_t::INVALID_VALUE);
    }
    let image = image.cast::<u8>();
    // SAFETY: text may be shorter than this; each byte is read only if the one before it was no zero.
    let byte = |at: usize| unsafe { image.add(at).read() };
    let mut start = [0; 4];
    for (at, place) in start.iter_mut().enumerate() {
        *place = byte(at);
        if *place == 0 {
            return Err(hipError_t::INVALID_KERNEL_FILE);
        }
    }
    match start {
        // The program is for another device: it comes from AMD's compiler, say.
        ELF if u16::from_le_bytes([byte(18), byte(19)]) != CUDA_MACHINE => Err(hipError_t::NO_BINARY_FOR_GPU),
        ELF | FAT => Ok(()),
        // The text of a program for a virtual device begins with a comment or with its version.
        _ if start == *b".ver" || start.starts_with(b"//") || start[0].is_ascii_whitespace() => Ok(()),
        // A bundle of AMD's.
        _ if start == *b"__CL" => Err(hipError_t::NO_BINARY_FOR_GPU),
        _ => Err(hipError_t::INVALID_KERNEL_FILE),
    }
}

/// The list that ends a launch's arguments, with CUDA's end: HIP's is 3, CUDA's 0.
///
/// # Safety
/// `extra` is null or a list of keys and values that ends with HIP's end.
pub(crate) unsafe fn extra(extra: *mut *mut c_void) -> Outcome<Option<[*mut c_void; 5]>> {
    const BUFFER: usize = 1;
    const SIZE: usize = 2;
    const END: usize = 3;
    if extra.is_null() {
        return Ok(None);
    }
    let (mut buffer, mut size) = (None, None);
    let mut at = 0;
    loop {
        // SAFETY: the list goes on until its end, which was not seen.
        let key = unsafe { extra.add(at).read() };
        let place = match key.addr() {
            END => break,
            BUFFER => &mut buffer,
            SIZE => &mut size,
            _ => return Err(hipError_t::INVALID_VALUE),
        };
        // SAFETY: a key has a value.
        *place = Some(unsafe { extra.add(at + 1).read() });
        at += 2;
    }
    let (Some(buffer), Some(size)) = (buffer, size) else { return Err(hipError_t::INVALID_VALUE) };
    let key = without_provenance_mut;
    Ok(Some([key(BUFFER), buffer, key(SIZE), size, null_mut()]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(start: &[u8], machine: u16) -> Outcome {
        let mut bytes = [7; 64];
        bytes[..start.len()].copy_from_slice(start);
        bytes[18..20].copy_from_slice(&machine.to_le_bytes());
        // SAFETY: 64 bytes.
        unsafe { check_image(bytes.as_ptr().cast()) }
    }

    #[test]
    fn only_programs_for_cuda_devices_reach_the_driver() {
        assert_eq!(image(b"\x7fELF", 190), Ok(()));
        assert_eq!(image(b"\x7fELF", 224), Err(hipError_t::NO_BINARY_FOR_GPU));
        assert_eq!(image(&[0x50, 0xED, 0x55, 0xBA], 0), Ok(()));
        assert_eq!(image(b".version 8.0", 0), Ok(()));
        assert_eq!(image(b"//\n", 0), Ok(()));
        assert_eq!(image(b"__CLANG_OFFLOAD_BUNDLE__", 0), Err(hipError_t::NO_BINARY_FOR_GPU));
        assert_eq!(image(b"junk", 0), Err(hipError_t::INVALID_KERNEL_FILE));
        for text in [c"", c"a", c".v"] {
            // SAFETY: text that ends with a zero.
            assert_eq!(unsafe { check_image(text.as_ptr().cast()) }, Err(hipError_t::INVALID_KERNEL_FILE));
        }
        // SAFETY: null is allowed.
        assert_eq!(unsafe { check_image(std::ptr::null()) }, Err(hipError_t::INVALID_VALUE));
    }

    #[test]
    fn the_end_of_the_list_is_cudas() {
        let at = without_provenance_mut::<c_void>;
        for mut list in [[1, 0x10, 2, 0x20, 3].map(at), [2, 0x20, 1, 0x10, 3].map(at)] {
            // SAFETY: the list ends with HIP's end.
            let list = unsafe { extra(list.as_mut_ptr()) }.unwrap().unwrap();
            assert_eq!(list, [1, 0x10, 2, 0x20, 0].map(at));
        }
        // SAFETY: null is allowed.
        assert_eq!(unsafe { extra(null_mut()) }, Ok(None));
        for list in [&[3][..], &[1, 0x10, 3], &[9, 0x10, 3]] {
            let mut list: Vec<*mut c_void> = list.iter().map(|key| at(*key)).collect();
            // SAFETY: the list ends with HIP's end.
            assert_eq!(unsafe { extra(list.as_mut_ptr()) }, Err(hipError_t::INVALID_VALUE));
        }
    }
}
