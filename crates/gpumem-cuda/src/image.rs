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

    #[test]
    fn a_cubin_is_for_such_a_gpu() {
        let header = |machine: u8| {
            let mut image = b"\x7fELF\x02\x01".to_vec();
            image.resize(64, 0);
            image[18] = machine;
            image
        };
        assert_eq!(check(&header(190)), Ok(()));
        assert_eq!(check(&header(62)), Err("the file is not a program for such a GPU"));
        assert!(check(&header(190)[..61]).is_err());
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
