//! Whether bytes are a whole program before the driver reads them: it is given an address and no length.

/// `EM_CUDA`, the machine of a cubin.
const MACHINE: u16 = 190;
/// The first word of a fat binary.
const FAT_MAGIC: u32 = 0xBA55_ED50;
/// A section without bytes in the file (`SHT_NOBITS`).
const NO_BITS: u32 = 8;

/// Checks that `image` is a cubin or a fat binary and that all parts it names lie within it.
///
/// # Errors
/// Returns what is wrong with the image.
pub(crate) fn check(image: &[u8]) -> Result<(), &'static str> {
    if image.starts_with(b"\x7fELF") {
        return check_elf(image);
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

fn check_elf(image: &[u8]) -> Result<(), &'static str> {
    const CUT: &str = "the cubin is cut off";
    let read = |offset: u64, bytes: usize| number(image, offset, bytes).ok_or(CUT);
    let within = |offset: u64, bytes: u64| {
        offset.checked_add(bytes).filter(|end| *end <= image.len() as u64).map(drop).ok_or(CUT)
    };
    // Class 64 bits, little-endian.
    if image.get(4..6) != Some(&[2, 1]) || read(18, 2)? != u64::from(MACHINE) {
        return Err("the file is not a program for a CUDA device");
    }
    let (segments, sections) = (read(32, 8)?, read(40, 8)?);
    let (segment_size, segment_count) = (read(54, 2)?, read(56, 2)?);
    let (section_size, section_count) = (read(58, 2)?, read(60, 2)?);
    within(segments, segment_size * segment_count)?;
    within(sections, section_size * section_count)?;
    if (segment_count > 0 && segment_size < 56) || (section_count > 0 && section_size < 64) {
        return Err("the tables of the cubin are malformed");
    }
    for index in 0..segment_count {
        let header = segments + index * segment_size;
        within(read(header + 8, 8)?, read(header + 32, 8)?)?;
    }
    for index in 0..section_count {
        let header = sections + index * section_size;
        if read(header + 4, 4)? != u64::from(NO_BITS) {
            within(read(header + 24, 8)?, read(header + 32, 8)?)?;
        }
    }
    Ok(())
}

/// The little-endian number of that many bytes (up to 8), if it is all there.
fn number(image: &[u8], offset: u64, bytes: usize) -> Option<u64> {
    let start = usize::try_from(offset).ok()?;
    let found = image.get(start..start.checked_add(bytes)?)?;
    Some(found.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
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
        assert_eq!(check(&other), Err("the file is not a program for a CUDA device"));
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
