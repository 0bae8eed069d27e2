//! Fills against loops of the host.

use crate::{Case, Skip, fixture::Lab};
use gpumem_core::{Attach, DeviceBuffer, DriverDevice, Fill, MappedOptions, MemoryKind, Pattern, Stream};

pub(crate) const CASES: &[Case] = &[("fills_of_every_width_and_shape_match_loops_of_the_host", shapes)];

fn shapes(lab: &Lab) -> Result<(), Skip> {
    const BYTES: usize = 1 << 14;
    let stream = lab.stream();
    let mut kinds = vec![MemoryKind::Device, MemoryKind::Mapped(MappedOptions::default())];
    if lab.device.capabilities().managed {
        kinds.push(MemoryKind::Managed(Attach::Global));
    }
    for kind in kinds {
        let block = lab.allocate(kind, BYTES);
        for pattern in [Pattern::U8(0x5A), Pattern::U16(0x1234), Pattern::U32(0xDEAD_BEEF)] {
            let item = pattern.bytes();
            let bytes = match pattern {
                Pattern::U8(value) => vec![value],
                Pattern::U16(value) => value.to_ne_bytes().to_vec(),
                Pattern::U32(value) => value.to_ne_bytes().to_vec(),
            };
            for (count, rows, gap) in
                [(1, 1, 0), (1000, 1, 0), (7, 5, 3), (16, 20, 0), (1, 9, 1), (300, 3, 40)]
            {
                let (offset, pitch) = (4 * item, (count + gap) * item);
                lab.write(block.address(), &[0xEE; BYTES]);
                let address = block.address() + offset as u64;
                lab.fill(&stream, &Fill { address, pattern, count, rows, pitch });
                stream.synchronize().unwrap();
                let mut expected = vec![0xEE; BYTES];
                for (row, column) in (0..rows).flat_map(|row| (0..count).map(move |column| (row, column))) {
                    let at = offset + row * pitch + column * item;
                    expected[at..at + item].copy_from_slice(&bytes);
                }
                assert!(
                    lab.read(block.address(), BYTES) == expected,
                    "{kind:?} {pattern:?} {count} {rows} {gap}"
                );
            }
        }
    }
    Ok(())
}
