//! Which steps of a graph need which.

use crate::recording::{RegionUse, Step};
use gpumem_core::Backend;
use std::{borrow::Borrow, collections::BTreeSet, fmt::Write, ops::Range};

/// The uses of a region that later steps may depend on: the step, the bytes, and whether it writes them.
type Live = Vec<(usize, Range<usize>, bool)>;

/// For each step the earlier ones that used bytes that it uses, one of the two writing them. A step that another one between the two
/// has written over is left out: that one needs it already.
pub(super) fn edges(
    steps: impl Iterator<Item = impl Borrow<[RegionUse]>>,
    regions: usize,
) -> Vec<BTreeSet<usize>> {
    let mut all: Vec<Live> = vec![Vec::new(); regions];
    let mut edges = Vec::new();
    for (at, uses) in steps.enumerate() {
        let mut needed = BTreeSet::new();
        for RegionUse { region, extent, write } in uses.borrow() {
            let Some(live) = all.get_mut(*region) else { continue };
            let clashes = |(step, other, writes): &&(usize, Range<usize>, bool)| {
                *step < at && (*write || *writes) && other.start < extent.end && extent.start < other.end
            };
            needed.extend(live.iter().filter(clashes).map(|(step, ..)| *step));
            if *write {
                live.retain(|(step, other, _)| {
                    *step == at || other.start < extent.start || extent.end < other.end
                });
            }
            live.push((at, extent.clone(), *write));
        }
        edges.push(needed);
    }
    edges
}

/// How many edges there are.
pub(super) fn count<B: Backend>(steps: &[Step<B>], regions: usize) -> usize {
    edges(steps.iter().map(|step| &step.uses[..]), regions).iter().map(BTreeSet::len).sum()
}

/// The graph in the language of Graphviz.
pub(super) fn dot<B: Backend>(steps: &[Step<B>], regions: usize) -> String {
    let mut text = String::from("digraph {\n    node [shape=box];\n");
    for (at, step) in steps.iter().enumerate() {
        let label = step.name().replace('\\', "\\\\").replace('"', "\\\"");
        let _ = writeln!(text, "    s{at} [label=\"{label}\"];"); // writing to a string does not fail
    }
    for (at, needed) in edges(steps.iter().map(|step| &step.uses[..]), regions).iter().enumerate() {
        for other in needed {
            let _ = writeln!(text, "    s{other} -> s{at};");
        }
    }
    text.push_str("}\n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(region: usize, extent: Range<usize>, write: bool) -> Vec<RegionUse> {
        vec![RegionUse { region, extent, write }]
    }

    fn found(steps: &[Vec<RegionUse>]) -> Vec<Vec<usize>> {
        let all = edges(steps.iter().map(|uses| &uses[..]), 2);
        all.into_iter().map(|needed| needed.into_iter().collect()).collect()
    }

    #[test]
    fn extents_that_touch_have_no_edge_and_those_that_overlap_have_one() {
        let steps = [used(0, 0..8, true), used(0, 8..16, true), used(0, 7..9, false), used(1, 0..16, true)];
        assert_eq!(found(&steps), [vec![], vec![], vec![0, 1], vec![]]);
    }

    #[test]
    fn a_writer_needs_all_readers_and_stands_for_them() {
        let mut steps = vec![used(0, 0..4, true)];
        steps.extend((0..17).map(|_| used(0, 0..4, false)));
        steps.extend([used(0, 0..4, true), used(0, 2..3, false)]);
        let found = found(&steps);
        assert!(found[1..18].iter().all(|needed| needed == &[0]));
        assert_eq!(found[18], (0..18).collect::<Vec<_>>());
        assert_eq!(found[19], [18]);
    }

    #[test]
    fn a_step_does_not_need_itself_and_a_part_hides_nothing() {
        let mut copy = used(0, 0..4, false);
        copy.extend(used(0, 4..8, true));
        let steps = [used(0, 0..8, true), copy, used(0, 0..8, false)];
        assert_eq!(found(&steps), [vec![], vec![0], vec![0, 1]]);
    }
}
