//! Whether bytes are a whole program before HIP reads them: it is given an address and no length.

use gpumem_core::image::{check_elf, number, within};

/// `EM_AMDGPU`, the machine of a code object.
const AMDGPU: u64 = 224;
/// `EM_CUDA`, that of HIP's code for a GPU of NVIDIA, whose architecture has NVIDIA's name.
const CUDA: u64 = 190;
/// How a bundle of code objects for several devices begins.
const BUNDLE: &[u8] = b"__CLANG_OFFLOAD_BUNDLE__";
/// How a compressed bundle begins.
const COMPRESSED: &[u8] = b"CCOB";

/// Checks that `image` is a code object for `isa` or a bundle of them, and that all parts it names lie within it.
/// Returns what is wrong with the image.
pub(crate) fn check(image: &[u8], isa: &str) -> Result<(), &'static str> {
    if image.starts_with(b"\x7fELF") {
        check_elf(image, if isa.starts_with("sm_") { CUDA } else { AMDGPU })
    } else if image.starts_with(BUNDLE) {
        check_bundle(image)
    } else if image.starts_with(COMPRESSED) {
        check_compressed(image)
    } else {
        Err("the bytes are neither a code object nor a bundle of code objects")
    }
}

/// The number of parts, then for each its offset, its length, the length of its target's name, and the name.
fn check_bundle(image: &[u8]) -> Result<(), &'static str> {
    const CUT: &str = "the bundle of code objects is cut off";
    let mut at = BUNDLE.len() as u64;
    let count = number(image, at, 8).ok_or(CUT)?;
    at += 8;
    for _ in 0..count {
        let read = |field: u64| number(image, at + field, 8).ok_or(CUT);
        let (offset, bytes, target) = (read(0)?, read(8)?, read(16)?);
        within(image, offset, bytes).ok_or(CUT)?;
        within(image, at + 24, target).ok_or(CUT)?;
        at += 24 + target;
    }
    Ok(())
}

/// Since version 2 the header of a compressed bundle tells its length.
fn check_compressed(image: &[u8]) -> Result<(), &'static str> {
    let length = match number(image, 4, 2) {
        Some(2) => number(image, 8, 4),
        Some(3) => number(image, 8, 8),
        _ => return Err("this version of a compressed bundle does not tell its length"),
    };
    match length {
        Some(length) if length <= image.len() as u64 => Ok(()),
        _ => Err("the compressed bundle is cut off"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(image: &[u8]) -> Result<(), &'static str> {
        super::check(image, "gfx90a:sramecc+:xnack-")
    }

    /// A bundle of one part of 16 bytes at its end.
    fn bundle() -> Vec<u8> {
        let target = b"hip-amdgcn-amd-amdhsa--gfx906";
        let header = BUNDLE.len() + 8 + 24 + target.len();
        let mut image = BUNDLE.to_vec();
        for number in [1, header as u64, 16, target.len() as u64] {
            image.extend(number.to_le_bytes());
        }
        image.extend(target);
        image.extend([7; 16]);
        image
    }

    #[test]
    fn a_code_object_is_for_the_machine_of_the_device() {
        let mut image = b"\x7fELF\x02\x01".to_vec();
        image.resize(64, 0);
        image[18] = 224;
        assert_eq!(check(&image), Ok(()));
        assert!(check(&image[..61]).is_err());
        image[18] = 190;
        assert_eq!(check(&image), Err("the file is not a program for such a GPU"));
        assert_eq!(super::check(&image, "sm_90"), Ok(()));
    }

    #[test]
    fn a_bundle_must_be_whole_and_not_point_outside_itself() {
        let image = bundle();
        assert_eq!(check(&image), Ok(()));
        for length in 0..image.len() {
            assert!(check(&image[..length]).is_err(), "{length} bytes");
        }
        for at in [24, 32, 40, 48] {
            let mut image = bundle();
            image[at..at + 8].copy_from_slice(&u64::MAX.to_le_bytes());
            assert!(check(&image).is_err(), "field at {at}");
        }
    }

    #[test]
    fn a_compressed_bundle_must_be_whole() {
        let image = |version: u16, length: &[u8]| {
            let mut image = b"CCOB".to_vec();
            image.extend(version.to_le_bytes());
            image.extend([1, 0]);
            image.extend(length);
            image.resize(40, 9);
            image
        };
        for (version, length) in [(2, 40u32.to_le_bytes().to_vec()), (3, 40u64.to_le_bytes().to_vec())] {
            let whole = image(version, &length);
            assert_eq!(check(&whole), Ok(()));
            assert_eq!(check(&whole[..39]), Err("the compressed bundle is cut off"));
        }
        assert!(check(&image(1, &[])).is_err());
    }

    #[test]
    fn other_bytes_are_refused() {
        for bytes in [&b""[..], b"\x7fEL", b"__CLANG_OFFLOAD", &[0; 300]] {
            assert!(check(bytes).is_err());
        }
    }
}
