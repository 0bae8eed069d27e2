//! Which steps of a graph run one after the other.

use super::plan::{Home, Plan};
use crate::recording::RegionUse;
use gpumem_core::Backend;
use std::{fmt::Write, ops::Range};

/// Streams of a body that run side by side in a graph, at most.
const MOST_STREAMS: usize = 16;

/// Of each stream the number of steps, counted over all streams, that are done where a step begins.
type Clock = [usize; MOST_STREAMS];

/// Steps of one stream run in turn. A step of another stream is waited for where both use the same bytes, and one of them writes these.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Schedule {
    /// The stream of each step.
    pub(super) streams: Vec<usize>,
    /// The steps after which each step runs: the one before it on its stream, then those of other streams, the latest first. One that
    /// follows from the others is left out, so there is at most one of each stream.
    pub(super) after: Vec<Vec<usize>>,
}

impl Schedule {
    /// The schedule of a graph. The streams of its body are spread over the streams of the graph.
    pub(super) fn of<B: Backend>(plan: &Plan<B>) -> Self {
        let mut numbers: Vec<u64> = Vec::new();
        let mut stream_of = |number| {
            let found = numbers.iter().position(|known| *known == number).unwrap_or_else(|| {
                numbers.push(number);
                numbers.len() - 1
            });
            found % MOST_STREAMS
        };
        let streams = plan.steps.iter().map(|step| stream_of(step.stream)).collect();
        let uses: Vec<_> = plan.steps.iter().map(|step| placed(plan, &step.uses)).collect();
        Self::new(streams, &uses)
    }

    fn new(streams: Vec<usize>, uses: &[Vec<RegionUse>]) -> Self {
        let regions = uses.iter().flatten().map(|used| used.region + 1).max().unwrap_or(0);
        let mut live: Vec<Live> = (0..regions).map(|_| Live::default()).collect();
        let mut last = [None; MOST_STREAMS];
        let mut clocks: Vec<Clock> = Vec::with_capacity(streams.len());
        let mut after = Vec::with_capacity(streams.len());
        for (step, (&stream, uses)) in streams.iter().zip(uses).enumerate() {
            let mut needed = [None; MOST_STREAMS];
            for used in uses {
                if let Some(live) = live.get_mut(used.region) {
                    live.find(used, &mut needed);
                }
            }
            for used in uses {
                if let Some(live) = live.get_mut(used.region) {
                    live.add(used, step, stream);
                }
            }
            let before = last.get_mut(stream).and_then(|last| last.replace(step));
            let mut others: Vec<usize> = needed.into_iter().flatten().collect();
            others.sort_unstable_by(|one, other| other.cmp(one));
            let mut clock = Clock::default();
            let mut found = Vec::new();
            for other in before.into_iter().chain(others) {
                let done = streams.get(other).and_then(|stream| clock.get_mut(*stream));
                let Some(done) = done.filter(|done| **done <= other) else { continue };
                *done = other + 1;
                found.push(other);
                if let Some(earlier) = clocks.get(other) {
                    clock.iter_mut().zip(earlier).for_each(|(done, earlier)| *done = (*done).max(*earlier));
                }
            }
            clocks.push(clock);
            after.push(found);
        }
        Self { streams, after }
    }

    /// The steps of other streams that a step waits for.
    pub(super) fn waits(&self, step: usize) -> impl Iterator<Item = usize> {
        let stream = self.streams.get(step);
        let after = self.after.get(step).into_iter().flatten().copied();
        after.filter(move |other| self.streams.get(*other) != stream)
    }

    /// How many times a step runs after another one.
    pub(super) fn edges(&self) -> usize {
        self.after.iter().map(Vec::len).sum()
    }

    /// The graph in the language of Graphviz.
    pub(super) fn dot<B: Backend>(&self, plan: &Plan<B>) -> String {
        let mut text = String::from("digraph {\n    node [shape=box];\n");
        for (at, step) in plan.steps.iter().enumerate() {
            let label = step.name().replace('\\', "\\\\").replace('"', "\\\"");
            let _ = writeln!(text, "    s{at} [label=\"{label}\"];"); // writing to a string does not fail
        }
        for (at, after) in self.after.iter().enumerate() {
            for other in after {
                let _ = writeln!(text, "    s{other} -> s{at};");
            }
        }
        text.push_str("}\n");
        text
    }
}

/// The uses of a region that later steps may have to wait for.
#[derive(Default)]
struct Live(Vec<LiveUse>);

struct LiveUse {
    step: usize,
    stream: usize,
    extent: Range<usize>,
    write: bool,
}

impl Live {
    /// Finds the latest step of each stream that a use has to come after.
    fn find(&self, used: &RegionUse, latest: &mut [Option<usize>; MOST_STREAMS]) {
        let overlaps =
            |extent: &Range<usize>| extent.start < used.extent.end && used.extent.start < extent.end;
        for live in self.0.iter().filter(|live| (used.write || live.write) && overlaps(&live.extent)) {
            if let Some(latest) = latest.get_mut(live.stream) {
                *latest = (*latest).max(Some(live.step));
            }
        }
    }

    /// Adds a use. Uses that it stands for go: a step that has to run after one of them has to run after this one.
    fn add(&mut self, used: &RegionUse, step: usize, stream: usize) {
        let covers =
            |extent: &Range<usize>| used.extent.start <= extent.start && extent.end <= used.extent.end;
        let stands_for =
            |live: &LiveUse| covers(&live.extent) && (used.write || !live.write && live.stream == stream);
        self.0.retain(|live| live.step == step || !stands_for(live));
        self.0.push(LiveUse { step, stream, extent: used.extent.clone(), write: used.write });
    }
}

/// The uses of a step, those of temporaries as uses of the arena, which is one region: there two may share bytes whose steps do not
/// meet in the order of the body.
fn placed<B: Backend>(plan: &Plan<B>, uses: &[RegionUse]) -> Vec<RegionUse> {
    let arena = plan.regions.len();
    let placed = |used: &RegionUse| match plan.homes.get(used.region) {
        Some(Home::Arena(start)) => {
            let extent = start + used.extent.start..start + used.extent.end;
            RegionUse { region: arena, extent, write: used.write }
        }
        _ => used.clone(),
    };
    uses.iter().map(placed).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(region: usize, extent: Range<usize>, write: bool) -> Vec<RegionUse> {
        vec![RegionUse { region, extent, write }]
    }

    fn after<const N: usize>(steps: [(usize, Vec<RegionUse>); N]) -> Vec<Vec<usize>> {
        let (streams, uses): (Vec<_>, Vec<_>) = steps.into_iter().unzip();
        Schedule::new(streams, &uses).after
    }

    #[test]
    fn extents_that_touch_are_apart_and_those_that_overlap_are_not() {
        let found = after([
            (0, used(0, 0..8, true)),
            (1, used(0, 8..16, true)),
            (2, used(0, 7..9, false)),
            (3, used(1, 0..16, true)),
        ]);
        assert_eq!(found, [vec![], vec![], vec![1, 0], vec![]]);
    }

    #[test]
    fn readers_run_side_by_side_and_a_writer_waits_for_the_last_of_each_stream() {
        let found = after([
            (0, used(0, 0..4, true)),
            (1, used(0, 0..4, false)),
            (2, used(0, 0..4, false)),
            (1, used(0, 0..4, false)),
            (0, used(0, 0..4, true)),
            (2, used(0, 2..3, false)),
        ]);
        assert_eq!(found, [vec![], vec![0], vec![0], vec![1], vec![0, 3, 2], vec![2, 4]]);
    }

    #[test]
    fn what_follows_from_another_wait_is_left_out() {
        let both = [used(0, 0..4, false), used(1, 0..4, false)].concat();
        let found = after([
            (0, used(0, 0..4, true)),
            (1, [used(0, 0..4, false), used(1, 0..4, true)].concat()),
            (2, both.clone()),
            (2, both),
        ]);
        assert_eq!(found, [vec![], vec![0], vec![1], vec![2]]);
    }

    #[test]
    fn a_part_that_is_written_hides_nothing_of_the_whole() {
        let found = after([
            (0, used(0, 0..8, true)),
            (1, [used(0, 0..4, false), used(0, 4..8, true)].concat()),
            (2, used(0, 0..8, false)),
            (3, used(0, 0..2, false)),
        ]);
        assert_eq!(found, [vec![], vec![0], vec![1], vec![0]]);
    }

    #[test]
    fn a_reader_does_not_hide_the_writer_before_it_on_its_stream() {
        let found = after([(0, used(0, 0..4, true)), (0, used(0, 0..4, false)), (1, used(0, 0..4, false))]);
        assert_eq!(found, [vec![], vec![0], vec![0]]);
    }

    #[test]
    fn a_long_loop_has_few_edges() {
        let step = |at: usize| [used(0, 0..4, false), used(1, at * 4..at * 4 + 4, true)].concat();
        let uses: Vec<_> = (0..600).map(step).collect();
        let schedule = Schedule::new((0..600).map(|at| at % 2).collect(), &uses);
        assert_eq!(schedule.edges(), 598);
        let uses: Vec<_> = (0..600).map(|_| used(0, 0..4, true)).collect();
        let schedule = Schedule::new((0..600).map(|at| at % 16).collect(), &uses);
        assert!(schedule.edges() <= 2 * 600, "{}", schedule.edges());
    }
}
