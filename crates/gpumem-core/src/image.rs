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
