//! Does the work of the kernels unit by unit, and checks the results.

use super::{Lowered, PackLaunch, UNITS};
use gpumem_core::{Space, StridedCopy};

/// A small generator: the same numbers every time.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }

    fn shuffle<T>(&mut self, items: &mut [T]) {
        for end in (1..items.len()).rev() {
            items.swap(end, self.below(end + 1));
        }
    }
}

/// Byte strides of a layout without overlap, with gaps, and the bytes that it spans below and above its first element.
fn layout(random: &mut Random, lengths: &[usize], item: usize) -> (Vec<isize>, usize, usize) {
    let mut order: Vec<_> = (0..lengths.len()).collect();
    random.shuffle(&mut order);
    let (mut strides, mut step, mut below, mut above) = (vec![0; lengths.len()], item, 0, item);
    for axis in order {
        let reach = step * (lengths[axis] - 1);
        if random.below(3) == 0 {
            strides[axis] = -(step as isize);
            below += reach;
        } else {
            strides[axis] = step as isize;
            above += reach;
        }
        step = step * lengths[axis] + item * random.below(3) + random.below(8) / 7;
    }
    (strides, below, above)
}

#[test]
fn every_pair_of_layouts_is_copied_and_nothing_else_written() {
    let mut random = Random(7);
    let (mut walks, mut turns, mut units) = (0, 0, [0; 5]);
    for _ in 0..3000 {
        let item = if random.below(2) == 0 { 1 + random.below(16) } else { 1 << random.below(5) };
        let rank = random.below(7);
        let long = random.below(3);
        let mut lengths: Vec<_> = (0..rank).map(|_| 1 + random.below(4)).collect();
        lengths.iter_mut().take(long).for_each(|length| *length = 8 + random.below(37));
        if lengths.iter().product::<usize>() > 4000 {
            continue;
        }
        random.shuffle(&mut lengths);
        let (mut source, source_below, source_above) = layout(&mut random, &lengths, item);
        let (destination, below, above) = layout(&mut random, &lengths, item);
        if random.below(5) == 0 && rank > 0 {
            source[random.below(rank)] = 0;
        }
        // Mostly aligned, as arrays are.
        let mut base = |below: usize| below.next_multiple_of(16) + random.below(4) / 3 * random.below(8);
        let (first, start) = (base(source_below), base(below));
        let memory: Vec<u8> =
            (0..source_below + source_above + 64).map(|byte| (byte * 131 + byte / 251) as u8).collect();
        let mut expected = vec![0xEE; below + above + 64];
        let mut written = expected.clone();
        let copy = StridedCopy {
            source: (first as u64, Space::Device(0)),
            destination: (start as u64, Space::Device(0)),
            item,
            axes: (0..rank).map(|axis| (lengths[axis], source[axis], destination[axis])).collect(),
        };
        for index in 0..lengths.iter().product::<usize>() {
            let (mut rest, mut from, mut to) = (index, first as isize, start as isize);
            for axis in (0..rank).rev() {
                let at = (rest % lengths[axis]) as isize;
                rest /= lengths[axis];
                (from, to) = (from + at * source[axis], to + at * destination[axis]);
            }
            let (from, to) = (from as usize, to as usize);
            expected[to..to + item].copy_from_slice(&memory[from..from + item]);
        }
        let lowered = Lowered::new(&copy).unwrap();
        let unit = lowered.unit();
        units[UNITS.iter().position(|known| *known == unit).unwrap()] += 1;
        let mut each = |from: u64, to: u64| {
            assert!(from.is_multiple_of(unit as u64) && to.is_multiple_of(unit as u64), "{copy:?}");
            let (from, to) = (from as usize, to as usize);
            written[to..to + unit].copy_from_slice(&memory[from..from + unit]);
        };
        lowered
            .each(|work| {
                match work {
                    PackLaunch::StridedKernel(walk) => {
                        walks += 1;
                        walk.each_unit(&mut each);
                    }
                    PackLaunch::TransposeKernel(turn) => {
                        turns += 1;
                        turn.each_unit(unit, &mut each);
                    }
                }
                Ok::<_, ()>(())
            })
            .unwrap();
        assert_eq!(written, expected, "{copy:?}");
    }
    assert!(walks > 1000 && turns > 30 && units.iter().all(|count| *count > 10), "{walks} {turns} {units:?}");
}

#[test]
fn the_usual_copies_take_the_best_way() {
    let copy = |item, axes: &[(usize, isize, isize)]| StridedCopy {
        source: (4096, Space::Device(0)),
        destination: (1 << 20, Space::Device(0)),
        item,
        axes: axes.to_vec(),
    };
    let transpose = Lowered::new(&copy(4, &[(8192, 4, 32768), (8192, 32768, 4)])).unwrap();
    assert!(
        matches!(transpose.work(), PackLaunch::TransposeKernel(turn) if turn.tiles == 128 * 128),
        "{transpose:?}"
    );
    let columns = Lowered::new(&copy(4, &[(8192, 32768, 16384), (4096, 8, 4)])).unwrap();
    assert!(matches!(columns.work(), PackLaunch::StridedKernel(walk) if walk.rank == 1), "{columns:?}");
    let rows = Lowered::new(&copy(4, &[(100, 256, 64), (16, 4, 4)])).unwrap();
    assert_eq!(rows.unit(), 16);
    let colours = Lowered::new(&copy(3, &[(100, 6, 3)])).unwrap();
    assert_eq!(colours.unit(), 1);
    assert!(Lowered::new(&copy(4, &[(0, 4, 4)])).is_none());
    let many: Vec<_> = (0..10).map(|axis| (2, 8 << (2 * axis), 4 << (3 * axis))).collect();
    let mut launches = 0;
    let count = |_: &PackLaunch| {
        launches += 1;
        Ok::<_, ()>(())
    };
    Lowered::new(&copy(4, &many)).unwrap().each(count).unwrap();
    assert_eq!(launches, 4, "two of ten axes are loops around");
}
