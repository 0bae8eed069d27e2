//! Whether an ELF file is a whole program, for backends whose driver is given an address and no length.

/// A section without bytes in the file (`SHT_NOBITS`).
const NO_BITS: u64 = 8;
const CUT: &str = "the program is cut off";

/// Checks that `image` is a program for `machine` (`e_machine`) and that all parts it names lie within it.
///
/// # Errors
/// Returns what is wrong with it.
pub fn check_elf(image: &[u8], machine: u64) -> Result<(), &'static str> {
    let read = |offset: u64, bytes: usize| number(image, offset, bytes).ok_or(CUT);
    // Class 64 bits, little-endian.
    if image.get(4..6) != Some(&[2, 1]) || read(18, 2)? != machine {
        return Err("the file is not a program for such a GPU");
    }
    let (segments, sections) = (read(32, 8)?, read(40, 8)?);
    let (segment_size, segment_count) = (read(54, 2)?, read(56, 2)?);
    let (section_size, section_count) = (read(58, 2)?, read(60, 2)?);
    within(image, segments, segment_size * segment_count).ok_or(CUT)?;
    within(image, sections, section_size * section_count).ok_or(CUT)?;
    if (segment_count > 0 && segment_size < 56) || (section_count > 0 && section_size < 64) {
        return Err("the tables of the program are malformed");
    }
    for index in 0..segment_count {
        let header = segments + index * segment_size;
        within(image, read(header + 8, 8)?, read(header + 32, 8)?).ok_or(CUT)?;
    }
    for index in 0..section_count {
        let header = sections + index * section_size;
        if read(header + 4, 4)? != NO_BITS {
            within(image, read(header + 24, 8)?, read(header + 32, 8)?).ok_or(CUT)?;
        }
    }
    Ok(())
}

/// Whether a part lies within the image.
pub fn within(image: &[u8], offset: u64, bytes: u64) -> Option<()> {
    offset.checked_add(bytes).filter(|end| *end <= image.len() as u64).map(drop)
}

/// The little-endian number of that many bytes (up to 8), if it is all there.
pub fn number(image: &[u8], offset: u64, bytes: usize) -> Option<u64> {
    let start = usize::try_from(offset).ok()?;
    let found = image.get(start..start.checked_add(bytes)?)?;
    Some(found.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MACHINE: u64 = 224;

    /// A program with one segment and one section of 8 bytes at its end.
    fn program() -> Vec<u8> {
        let mut image = vec![0; 64 + 56 + 64 + 8];
        image[..6].copy_from_slice(b"\x7fELF\x02\x01");
        let mut put = |at: usize, bytes: &[u8]| image[at..at + bytes.len()].copy_from_slice(bytes);
        put(18, &(MACHINE as u16).to_le_bytes());
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
    fn a_program_must_be_whole_and_for_its_machine() {
        let image = program();
        assert_eq!(check_elf(&image, MACHINE), Ok(()));
        for length in 0..image.len() {
            assert!(check_elf(&image[..length], MACHINE).is_err(), "{length} bytes");
        }
        assert_eq!(check_elf(&image, 190), Err("the file is not a program for such a GPU"));
    }

    #[test]
    fn a_program_must_not_point_outside_itself() {
        for at in [32, 40, 64 + 8, 64 + 32, 120 + 24, 120 + 32] {
            let mut image = program();
            image[at..at + 8].copy_from_slice(&u64::MAX.to_le_bytes());
            assert!(check_elf(&image, MACHINE).is_err(), "field at {at}");
        }
    }
}
