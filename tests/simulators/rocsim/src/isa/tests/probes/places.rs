//! Where a work-item is.

use super::{GROUP, ITEMS, compare, each};
use crate::isa::tests::rig::{Arguments, Array, Shape};

#[test]
fn work_items_know_their_places() {
    let groups = [2u32, 3, 2];
    each(false, |probes| {
        let out = Array::new(&vec![0u64; 12 * ITEMS * 24]);
        let shape = Shape { groups, group: GROUP, ..Shape::line(1, 1) };
        probes.run("places", &shape, Arguments::default().array(&out))?;
        let mut expected = vec![];
        for group in places(groups) {
            for (linear, item) in places(GROUP).enumerate() {
                let (wave, lane) = (linear / probes.wave, linear % probes.wave);
                let in_wave = probes.wave.min(ITEMS - wave * probes.wave);
                let global = |axis: usize| group[axis] * u64::from(GROUP[axis]) + item[axis];
                let [size, count] = [GROUP, groups].map(|numbers| numbers.map(u64::from));
                // An axis that there is not has one work-item of one group, the first.
                expected.extend([item[0], item[1], item[2], 0, group[0], group[1], group[2], 0]);
                expected.extend([size[0], size[1], size[2], 1, count[0], count[1], count[2], 1]);
                expected.extend([global(0), global(1), global(2), size[1] * count[1]]);
                expected.extend([wave, lane, in_wave, probes.wave].map(|number| number as u64));
            }
        }
        compare("places", &out.get(), &expected)
    });
}

/// All places in a box, x running fastest.
fn places(extents: [u32; 3]) -> impl Iterator<Item = [u64; 3]> {
    let [width, height, depth] = extents.map(u64::from);
    (0..width * height * depth).map(move |i| [i % width, i / width % height, i / width / height])
}
