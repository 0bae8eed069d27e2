//! Any sequence of requests to the allocator: blocks never overlap, free neighbours are always joined, no byte is lost.
#![no_main]

use arbitrary::Arbitrary;
use gpumem_runtime::memory::tlsf::{AllocatedBlock, RegionId, SetId, Tlsf};
use libfuzzer_sys::fuzz_target;
use std::collections::BTreeMap;

#[derive(Arbitrary, Debug)]
enum Step {
    Allocate { set: u8, bytes: u32, align: u8, stamp: Option<u8> },
    Free { which: u16, set: u8, stamp: u8 },
    MakeIdle { set: u8 },
    AddRegion { len: u32 },
    RemoveRegion { which: u8 },
}

fuzz_target!(|input: (u8, Vec<Step>)| {
    let (shift, steps) = input;
    let mut tlsf = Tlsf::new(16 << (shift % 9));
    let sets: [SetId; 3] = [Tlsf::IDLE, tlsf.add_set(), tlsf.add_set()];
    let mut regions: Vec<RegionId> = Vec::new();
    let mut next = 1u64 << 24;
    let mut allocated: BTreeMap<u64, AllocatedBlock> = BTreeMap::new();
    for (number, step) in steps.into_iter().enumerate() {
        match step {
            Step::Allocate { set, bytes, align, stamp } => {
                let (set, align) = (sets[usize::from(set) % 3], 1 << (align % 22));
                let latest = stamp.map_or(u64::MAX, u64::from);
                if let Some(new) = tlsf.allocate_up_to(set, u64::from(bytes), align, latest) {
                    assert!(new.len >= u64::from(bytes) && new.start % align == 0 && new.stamp <= latest);
                    let before =
                        allocated.range(..=new.start).next_back().map(|(_, old)| old.start + old.len);
                    let after = allocated.range(new.start..).next().map(|(_, old)| old.start);
                    assert!(before.is_none_or(|end| end <= new.start), "overlaps the block before");
                    assert!(
                        after.is_none_or(|start| new.start + new.len <= start),
                        "overlaps the block after"
                    );
                    allocated.insert(new.start, new);
                }
            }
            Step::Free { which, set, stamp } if !allocated.is_empty() => {
                let start = *allocated.keys().nth(usize::from(which) % allocated.len()).expect("not empty");
                let old = allocated.remove(&start).expect("it is there");
                let set = sets[usize::from(set) % 3];
                tlsf.free(old.block, set, u64::from(stamp));
            }
            Step::MakeIdle { set } => tlsf.make_idle(sets[usize::from(set) % 3]),
            Step::AddRegion { len } => {
                if let Some(region) = tlsf.add_region(next, u64::from(len)) {
                    regions.push(region);
                    next += u64::from(len).next_multiple_of(tlsf.granule());
                }
            }
            Step::RemoveRegion { which } if !regions.is_empty() => {
                let which = usize::from(which) % regions.len();
                if tlsf.remove_region(regions[which]) {
                    regions.swap_remove(which);
                }
            }
            _ => {}
        }
        if number % 16 == 0 {
            tlsf.check(&regions).expect("the allocator is consistent");
        }
    }
    for old in allocated.into_values() {
        tlsf.free(old.block, Tlsf::IDLE, 0);
    }
    sets.into_iter().for_each(|set| tlsf.make_idle(set));
    tlsf.check(&regions).expect("the allocator is consistent");
    for region in regions {
        assert!(tlsf.remove_region(region), "everything has come back, and is one block");
    }
    assert_eq!(tlsf.total_bytes(), 0);
});
