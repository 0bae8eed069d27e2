//! Against a model that remembers every byte.

use super::*;
use proptest::prelude::*;

#[derive(Debug, Clone)]
enum Step {
    Allocate { set: usize, bytes: u64, align: u32, most: Option<u64> },
    Free { which: usize, set: usize, stamp: u64 },
    MakeIdle { set: usize },
    AddRegion { len: u64 },
    RemoveRegion { which: usize },
}

fn bytes() -> impl Strategy<Value = u64> {
    prop_oneof![1u64..64, 64u64..5000, 5000u64..100_000, Just(4096u64), Just(1 << 21)]
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        8 => (0usize..3, bytes(), 0u32..13, prop::option::of(0u64..300_000))
            .prop_map(|(set, bytes, align, most)| Step::Allocate { set, bytes, align, most }),
        7 => (any::<usize>(), 0usize..3, 0u64..50).prop_map(|(which, set, stamp)| Step::Free { which, set, stamp }),
        1 => (0usize..3).prop_map(|set| Step::MakeIdle { set }),
        1 => (1u64..300_000).prop_map(|len| Step::AddRegion { len }),
        1 => any::<usize>().prop_map(|which| Step::RemoveRegion { which }),
    ];
    prop::collection::vec(step, 1..250)
}

struct Model {
    tlsf: Tlsf,
    sets: [SetId; 3],
    regions: Vec<(RegionId, u64, u64)>,
    allocated: Vec<AllocatedBlock>,
    /// Regions that have been taken out, for which nothing may be allocated.
    next: u64,
}

impl Model {
    fn new(granule: u64) -> Self {
        let mut tlsf = Tlsf::new(granule);
        let sets = [Tlsf::IDLE, tlsf.add_set(), tlsf.add_set()];
        Self { tlsf, sets, regions: Vec::new(), allocated: Vec::new(), next: 1 << 20 }
    }

    fn add_region(&mut self, len: u64) {
        let granule = self.tlsf.granule();
        match self.tlsf.add_region(self.next, len) {
            Some(region) => {
                self.regions.push((region, self.next, len & !(granule - 1)));
                // The next region may touch this one.
                self.next += len & !(granule - 1);
            }
            None => assert!(len < granule),
        }
    }

    fn allocate(&mut self, set: usize, bytes: u64, align: u64, most: Option<u64>) {
        let set = self.sets[set];
        let granule = self.tlsf.granule();
        let before = self.tlsf.free_bytes(set);
        let Some(allocated) = self.tlsf.allocate_up_to(set, bytes, align, most.unwrap_or(u64::MAX)) else {
            if most.is_none() && align <= granule {
                // Good fit: at most, it fails to use a block of nearly the same size.
                let largest = self.tlsf.largest_free(set);
                assert!(
                    largest < bytes.next_multiple_of(granule) * 33 / 32 + granule,
                    "{largest} free for {bytes}"
                );
            }
            return;
        };
        assert!(
            allocated.len >= bytes
                && allocated.len - bytes < granule
                && allocated.start % align.min(1 << 20) == 0
        );
        assert!(allocated.len <= most.unwrap_or(u64::MAX), "larger blocks are left whole");
        assert!(set != Tlsf::IDLE || allocated.stamp == 0);
        assert_eq!(self.tlsf.free_bytes(set), before - allocated.len, "not a byte more or less");
        let inside = |(_, start, len): &(RegionId, u64, u64)| {
            *start <= allocated.start && allocated.start + allocated.len <= start + len
        };
        assert_eq!(self.regions.iter().filter(|region| inside(region)).count(), 1, "in one region");
        for other in &self.allocated {
            assert!(
                other.start + other.len <= allocated.start || allocated.start + allocated.len <= other.start,
                "they overlap"
            );
            assert_ne!(other.block, allocated.block);
        }
        self.allocated.push(allocated);
    }

    fn free(&mut self, which: usize, set: usize, stamp: u64) {
        if self.allocated.is_empty() {
            return;
        }
        let allocated = self.allocated.swap_remove(which % self.allocated.len());
        assert_eq!(self.tlsf.len_of(allocated.block), allocated.len);
        let stamp = if set == 0 { 0 } else { stamp };
        let is_whole = self.tlsf.free(allocated.block, self.sets[set], stamp);
        let home = self
            .regions
            .iter()
            .find(|(_, start, len)| *start <= allocated.start && allocated.start < start + len)
            .unwrap();
        assert_eq!(is_whole, self.tlsf.is_region_idle(home.0));
    }

    fn check(&self) {
        let regions: Vec<RegionId> = self.regions.iter().map(|region| region.0).collect();
        self.tlsf.check(&regions).unwrap();
        assert_eq!(
            self.tlsf.allocated_bytes(),
            self.allocated.iter().map(|allocated| allocated.len).sum::<u64>()
        );
        for (region, start, len) in &self.regions {
            let mut at = *start;
            for entry in self.tlsf.blocks(*region) {
                assert_eq!(entry.start, at);
                at += entry.len;
            }
            assert_eq!(at, start + len, "the blocks make up the region");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 120, ..ProptestConfig::default() })]

    #[test]
    fn never_overlaps_always_joins_never_loses_a_byte(shift in 4u32..13, steps in steps()) {
        let mut model = Model::new(1 << shift);
        model.add_region(200_000);
        for (number, step) in steps.into_iter().enumerate() {
            match step {
                Step::Allocate { set, bytes, align, most } => model.allocate(set, bytes, 1 << align, most),
                Step::Free { which, set, stamp } => model.free(which, set, stamp),
                Step::MakeIdle { set } => {
                    model.tlsf.make_idle(model.sets[set]);
                    prop_assert!(set == 0 || model.tlsf.free_bytes(model.sets[set]) == 0);
                }
                Step::AddRegion { len } => model.add_region(len),
                Step::RemoveRegion { which } if !model.regions.is_empty() => {
                    let which = which % model.regions.len();
                    let (region, start, len) = model.regions[which];
                    let in_use = model.allocated.iter().any(|allocated| start <= allocated.start && allocated.start < start + len);
                    let was_idle = model.tlsf.is_region_idle(region);
                    prop_assert!(!(in_use && was_idle));
                    prop_assert_eq!(model.tlsf.remove_region(region), was_idle);
                    if was_idle {
                        model.regions.swap_remove(which);
                    }
                }
                Step::RemoveRegion { .. } => {}
            }
            if number % 8 == 0 {
                model.check();
            }
        }
        // Everything is freed, and every region is one block again.
        while !model.allocated.is_empty() {
            model.free(0, 0, 0);
        }
        model.tlsf.make_idle(model.sets[1]);
        model.tlsf.make_idle(model.sets[2]);
        model.check();
        for (region, ..) in model.regions.clone() {
            prop_assert!(model.tlsf.remove_region(region));
        }
        prop_assert_eq!((model.tlsf.total_bytes(), model.tlsf.free_bytes(Tlsf::IDLE)), (0, 0));
        prop_assert!(model.tlsf.remove_set(model.sets[1]) && !model.tlsf.remove_set(model.sets[1]));
    }
}

#[test]
fn a_hole_of_the_same_size_is_used_before_a_larger_block_is_cut() {
    // 33 granules and a bit more than a class: rounding up alone would never look at these holes.
    let mut tlsf = Tlsf::new(256);
    tlsf.add_region(0, 1 << 30).unwrap();
    let size = 256 * 1001;
    let blocks: Vec<AllocatedBlock> =
        (0..100).map(|_| tlsf.allocate(Tlsf::IDLE, size, 256).unwrap()).collect();
    blocks.iter().step_by(2).for_each(|allocated| {
        tlsf.free(allocated.block, Tlsf::IDLE, 0);
    });
    let end = blocks[99].start + blocks[99].len;
    for _ in 0..50 {
        assert!(tlsf.allocate(Tlsf::IDLE, size, 256).unwrap().start < end);
    }
    assert!(tlsf.allocate(Tlsf::IDLE, size, 256).unwrap().start >= end);
}

#[test]
fn blocks_in_flight_are_skipped_and_not_joined_with_idle_ones() {
    let mut tlsf = Tlsf::new(256);
    let stream = tlsf.add_set();
    tlsf.add_region(0, 4096).unwrap();
    let blocks: Vec<AllocatedBlock> = (0..4).map(|_| tlsf.allocate(Tlsf::IDLE, 1024, 256).unwrap()).collect();
    tlsf.free(blocks[0].block, stream, 7);
    tlsf.free(blocks[1].block, Tlsf::IDLE, 0);
    tlsf.free(blocks[2].block, stream, 9);
    assert_eq!(tlsf.largest_free(Tlsf::IDLE), 1024, "its neighbours are in flight");
    assert_eq!(tlsf.allocate_up_to(stream, 1000, 1, 1023), None);
    let passed = tlsf.allocate_up_to(stream, 1000, 1, 1024).unwrap();
    assert_eq!((passed.start, passed.stamp), (2048, 9), "the one that was freed last");
    tlsf.free(passed.block, stream, 10);
    tlsf.make_idle(stream);
    assert_eq!(tlsf.largest_free(Tlsf::IDLE), 3072);
}

#[test]
fn the_rest_of_a_region_goes_to_another_set() {
    let mut tlsf = Tlsf::new(256);
    let region = tlsf.add_region(256, 4096).unwrap();
    let whole = tlsf.add_region(1 << 20, 4096).unwrap();
    let middle = tlsf.allocate_in(region, 512, 1024).unwrap();
    let rest = tlsf.allocate_rest(region);
    let places: Vec<_> = rest.iter().map(|rest| (rest.start, rest.len)).collect();
    assert_eq!((middle.start, places), (1024, vec![(256, 768), (1536, 4352 - 1536)]));
    tlsf.check(&[region, whole]).unwrap();
    assert!(tlsf.allocate_rest(region).is_empty() && tlsf.allocated_blocks() == 3);
    let stream = tlsf.add_set();
    rest.iter().for_each(|rest| _ = tlsf.free(rest.block, stream, 7));
    assert!(tlsf.allocate_rest(region).is_empty(), "they are not idle");
    assert_eq!((tlsf.free_bytes(stream), tlsf.free_bytes(Tlsf::IDLE)), (4096 - 512, 4096));
    tlsf.free(middle.block, stream, 8);
    tlsf.make_idle(stream);
    assert!(tlsf.is_region_idle(region));
    tlsf.check(&[region, whole]).unwrap();
}

#[test]
fn senseless_requests_are_refused() {
    let mut tlsf = Tlsf::new(100);
    assert_eq!(tlsf.granule(), 128);
    for (start, len) in [(64, 1024), (0, 0), (0, 127), (u64::MAX - 127, 4096), (0, u64::MAX)] {
        assert_eq!(tlsf.add_region(start, len), None, "{start} {len}");
    }
    tlsf.add_region(0, 1 << 20).unwrap();
    for (bytes, align) in
        [(0, 1), (1, 0), (1, 3), (u64::MAX, 1), (1 << 40, 1), (1, 1 << 63), ((1 << 20) + 1, 1)]
    {
        assert_eq!(tlsf.allocate(Tlsf::IDLE, bytes, align), None, "{bytes} {align}");
    }
    let whole = tlsf.allocate(Tlsf::IDLE, 1 << 20, 2 << 20).unwrap();
    assert_eq!((whole.start, tlsf.largest_free(Tlsf::IDLE)), (0, 0));
    assert!(!tlsf.remove_set(Tlsf::IDLE) && !tlsf.remove_set(SetId(9)));
}

#[test]
fn large_alignments_are_met() {
    let mut tlsf = Tlsf::new(256);
    let region = tlsf.add_region(256, 64 << 20).unwrap();
    let allocated: Vec<AllocatedBlock> =
        (4..=21).map(|shift| tlsf.allocate(Tlsf::IDLE, 300, 1 << shift).unwrap()).collect();
    for (shift, allocated) in (4..=21).zip(&allocated) {
        assert_eq!(allocated.start % (1u64 << shift).min(256), 0);
        assert_eq!(allocated.start % (1u64 << shift), 0, "{shift}");
    }
    tlsf.check(&[region]).unwrap();
    allocated.iter().for_each(|allocated| {
        tlsf.free(allocated.block, Tlsf::IDLE, 0);
    });
    assert!(tlsf.is_region_idle(region));
}

/// The cost of a request depends on how many blocks are looked at; the rest is a fixed number of steps.
#[test]
fn a_request_looks_at_a_few_blocks_however_many_are_free() {
    let most = |holes: u64| {
        let mut tlsf = Tlsf::new(256);
        tlsf.add_region(0, 1 << 44).unwrap();
        let allocated: Vec<AllocatedBlock> = (0..2 * holes)
            .map(|number| tlsf.allocate(Tlsf::IDLE, 1024 + 256 * (number % 61), 256).unwrap())
            .collect();
        allocated.iter().step_by(2).for_each(|allocated| _ = tlsf.free(allocated.block, Tlsf::IDLE, 0));
        assert!(tlsf.free_blocks(Tlsf::IDLE) as u64 > holes);
        let requests = (0..200u64).map(|n| (1 + n * 7919 % 40_000, 256u64 << (n % 14)));
        requests.fold(0, |most, (bytes, align)| {
            tlsf.looks.set(0);
            let allocated = tlsf.allocate(Tlsf::IDLE, bytes, align).unwrap();
            let looks = tlsf.looks.get();
            tlsf.free(allocated.block, Tlsf::IDLE, 0);
            looks.max(most)
        })
    };
    let counts = [10, 1000, 100_000].map(most);
    assert!(counts.iter().all(|looks| *looks <= 6), "{counts:?}");
    assert!(most(1_000_000) <= 6);
}
