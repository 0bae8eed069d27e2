//! What the kernels would do with what they are given, done here unit by unit.

use super::{
    launch::PTX,
    lower::{Lowered, Turn, Walk, Work, tile},
};
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

fn walked(walk: &Walk, unit: usize, each: &mut impl FnMut(u64, u64, usize)) {
    for index in 0..walk.total {
        let (mut rest, mut from, mut to) = (index, 0, 0);
        for axis in (0..walk.rank as usize).rev() {
            let length = walk.length[axis] as u64;
            let at = if axis > 0 { rest % length } else { rest } as i64;
            rest /= length;
            from += at * walk.from_stride[axis];
            to += at * walk.to_stride[axis];
        }
        each(walk.from.wrapping_add_signed(from), walk.to.wrapping_add_signed(to), unit);
    }
}

fn turned(turn: &Turn, unit: usize, each: &mut impl FnMut(u64, u64, usize)) {
    let side = tile(unit) as i64;
    for index in 0..turn.tiles as i64 {
        let (first_to, rest) = (index % turn.tiles_to * side, index / turn.tiles_to);
        let (first_from, mut rest) = (rest % turn.tiles_from * side, rest / turn.tiles_from);
        let (mut from, mut to) = (turn.from, turn.to);
        for axis in (0..turn.rank as usize).rev() {
            let at = rest % turn.length[axis];
            rest /= turn.length[axis];
            from = from.wrapping_add_signed(at * turn.from_stride[axis]);
            to = to.wrapping_add_signed(at * turn.to_stride[axis]);
        }
        for (along, across) in (first_to..first_to + side)
            .flat_map(|along| (first_from..first_from + side).map(move |b| (along, b)))
        {
            if along < turn.length_to && across < turn.length_from {
                let from = along * turn.from_stride_to + across * turn.from_stride_from + from as i64;
                let to = along * turn.to_stride_to + across * turn.to_stride_from + to as i64;
                each(from as u64, to as u64, unit);
            }
        }
    }
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
        units[lowered.unit.trailing_zeros() as usize] += 1;
        let mut each = |from: u64, to: u64, unit: usize| {
            assert!(from.is_multiple_of(unit as u64) && to.is_multiple_of(unit as u64), "{copy:?}");
            let (from, to) = (from as usize, to as usize);
            written[to..to + unit].copy_from_slice(&memory[from..from + unit]);
        };
        lowered
            .each(|work| {
                match work {
                    Work::Walk(walk) => {
                        walks += 1;
                        walked(walk, lowered.unit, &mut each);
                    }
                    Work::Turn(turn) => {
                        turns += 1;
                        turned(turn, lowered.unit, &mut each);
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
    assert!(matches!(transpose.work(), Work::Turn(turn) if turn.tiles == 128 * 128), "{transpose:?}");
    let columns = Lowered::new(&copy(4, &[(8192, 32768, 16384), (4096, 8, 4)])).unwrap();
    assert!(matches!(columns.work(), Work::Walk(walk) if walk.rank == 1), "{columns:?}");
    let rows = Lowered::new(&copy(4, &[(100, 256, 64), (16, 4, 4)])).unwrap();
    assert_eq!(rows.unit, 16);
    let colours = Lowered::new(&copy(3, &[(100, 6, 3)])).unwrap();
    assert_eq!(colours.unit, 1);
    assert!(Lowered::new(&copy(4, &[(0, 4, 4)])).is_none());
    let many: Vec<_> = (0..10).map(|axis| (2, 8 << (2 * axis), 4 << (3 * axis))).collect();
    let mut launches = 0;
    let count = |_: &Work| {
        launches += 1;
        Ok::<_, ()>(())
    };
    Lowered::new(&copy(4, &many)).unwrap().each(count).unwrap();
    assert_eq!(launches, 4, "two of ten axes are loops around");
}

/// Whoever changes pack.cu runs build.py.
#[test]
fn the_compiled_text_belongs_to_the_source() {
    let source = include_bytes!("pack.cu");
    let sum = source
        .iter()
        .fold(0xCBF2_9CE4_8422_2325_u64, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x100_0000_01B3));
    let head = PTX.lines().next().unwrap();
    assert!(head.contains(&format!("{sum:016x}")), "run build.py: {head}");
    assert!(PTX.contains(".version 8.0\n"), "a driver of CUDA 12.0 reads nothing newer");
    for bytes in [1, 2, 4, 8, 16] {
        for family in ["walk", "walk_far", "turn"] {
            assert!(PTX.contains(&format!(".entry gpumem_{family}_{bytes}(")));
        }
    }
    // As large as the compiler sees them.
    assert!(PTX.contains(&format!("gpumem_walk_4_param_0[{}]", size_of::<Walk>())));
    assert!(PTX.contains(&format!("gpumem_turn_4_param_0[{}]", size_of::<Turn>())));
}
