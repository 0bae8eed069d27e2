//! Whether bytes are a whole program before the driver reads them: it is given an address and no length.

use gpumem_core::image::{check_elf, number};

/// `EM_CUDA`, the machine of a cubin.
const MACHINE: u64 = 190;
/// The first word of a fat binary.
const FAT_MAGIC: u32 = 0xBA55_ED50;

/// Checks that `image` is a cubin or a fat binary and that all parts it names lie within it.
/// Returns what is wrong with the image.
pub(crate) fn check(image: &[u8]) -> Result<(), &'static str> {
    if image.starts_with(b"\x7fELF") {
        return check_elf(image, MACHINE);
    }
    if number(image, 0, 4) == Some(u64::from(FAT_MAGIC)) {
        let length =
            number(image, 6, 2).zip(number(image, 8, 8)).and_then(|(header, body)| header.checked_add(body));
        return match length {
            Some(length) if length <= image.len() as u64 => Ok(()),
            _ => Err("the fat binary is cut off"),
        };
    }
    Err("the bytes are neither a cubin nor a fat binary")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A cubin with one segment and one section of 8 bytes at its end.
    fn cubin() -> Vec<u8> {
        let mut image = vec![0; 64 + 56 + 64 + 8];
        image[..6].copy_from_slice(b"\x7fELF\x02\x01");
        let mut put = |at: usize, bytes: &[u8]| image[at..at + bytes.len()].copy_from_slice(bytes);
        put(18, &190u16.to_le_bytes());
        put(32, &64u64.to_le_bytes());
        put(40, &120u64.to_le_bytes());
        put(54, &56u16.to_le_bytes());
        put(56, &1u16.to_le_bytes());
        put(58, &64u16.to_le_bytes());
        put(60, &1u16.to_le_bytes());
        put(64 + 8, &184u64.to_le_bytes());
        put(64 + 32, &8u64.to_le_bytes());
        put(120 + 4, &1u32.to_le_bytes());
        put(120 + 24, &184u64.to_le_bytes());
        put(120 + 32, &8u64.to_le_bytes());
        image
    }

    #[test]
    fn a_cubin_must_be_whole() {
        let image = cubin();
        assert_eq!(check(&image), Ok(()));
        for length in 0..image.len() {
            assert!(check(&image[..length]).is_err(), "{length} bytes");
        }
    }

    #[test]
    fn a_cubin_must_not_point_outside_itself() {
        for at in [32, 40, 64 + 8, 64 + 32, 120 + 24, 120 + 32] {
            let mut image = cubin();
            image[at..at + 8].copy_from_slice(&u64::MAX.to_le_bytes());
            assert!(check(&image).is_err(), "field at {at}");
        }
        let mut other = cubin();
        other[18] = 62;
        assert_eq!(check(&other), Err("the file is not a program for such a GPU"));
    }

    #[test]
    fn a_fat_binary_must_be_whole() {
        let mut image = FAT_MAGIC.to_le_bytes().to_vec();
        image.extend([1, 0, 16, 0]);
        image.extend(4u64.to_le_bytes());
        image.extend([0; 4]);
        assert_eq!(check(&image), Ok(()));
        image.pop();
        assert_eq!(check(&image), Err("the fat binary is cut off"));
    }

    #[test]
    fn other_bytes_are_refused() {
        for bytes in [&b""[..], b"\x7fEL", b".version 8.0", &[0; 300]] {
            assert!(check(bytes).is_err());
        }
    }
}
