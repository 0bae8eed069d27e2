//! Fills, which HIP 5.2 gets wrong within one word.

use super::fixture::{Lab, Skip, allocate, download, release, upload};
use gpumem_core::{DeviceBuffer, Fill, MemoryKind, Pattern, Stream as _};

pub(super) fn short_fills_touch_nothing_else(lab: &Lab) -> Result<(), Skip> {
    let buffer = allocate(lab, 64, MemoryKind::Device);
    for pattern in [Pattern::U8(0xA1), Pattern::U16(0xB1B2), Pattern::U32(0xC1C2_C3C4)] {
        let width = pattern.bytes();
        for (start, count) in
            (0..16 / width).flat_map(|start| (1..=24 / width).map(move |n| (start * width, n)))
        {
            upload(lab, buffer.address(), &[0xEE; 64]);
            let address = buffer.address() + start as u64;
            // SAFETY: the bytes are there, and are waited for.
            unsafe { lab.stream.fill(&Fill { address, pattern, count, rows: 1, pitch: 0 }) }.unwrap();
            let mut expected = [0xEE; 64];
            for element in expected[start..start + count * width].chunks_mut(width) {
                match pattern {
                    Pattern::U8(value) => element.copy_from_slice(&value.to_ne_bytes()),
                    Pattern::U16(value) => element.copy_from_slice(&value.to_ne_bytes()),
                    Pattern::U32(value) => element.copy_from_slice(&value.to_ne_bytes()),
                }
            }
            assert_eq!(download(lab, buffer.address(), 64), expected, "{count} of {pattern:?} at {start}");
        }
    }
    release(lab, buffer);
    Ok(())
}

pub(super) fn rows_are_filled_with_gaps(lab: &Lab) -> Result<(), Skip> {
    const PITCH: usize = 96;
    let buffer = allocate(lab, 100 * PITCH, MemoryKind::Device);
    for pattern in [Pattern::U8(0x11), Pattern::U16(0x2122), Pattern::U32(0x3132_3334)] {
        for (rows, count) in [(1, 5), (7, 3), (8, 1), (9, 4), (16, 2), (37, 7), (99, 5)] {
            upload(lab, buffer.address(), &[0xEE; 100 * PITCH]);
            let fill = Fill { address: buffer.address() + 4, pattern, count, rows, pitch: PITCH };
            // SAFETY: the rows are there, and are waited for.
            unsafe { lab.stream.fill(&fill) }.unwrap();
            let found = download(lab, buffer.address(), 100 * PITCH);
            for (row, bytes) in found.chunks(PITCH).enumerate() {
                let end = if row < rows { 4 + count * pattern.bytes() } else { 4 };
                assert!(bytes[..4].iter().chain(&bytes[end..]).all(|byte| *byte == 0xEE), "row {row}");
                assert!(bytes[4..end].iter().all(|byte| *byte != 0xEE), "row {row} of {rows}");
            }
        }
    }
    release(lab, buffer);
    Ok(())
}
