//! Which steps of a graph run one after the other.

use super::plan::{Home, Plan};
use crate::recording::RegionUse;
use gpumem_core::Backend;
use smallvec::{SmallVec, smallvec};
use std::{collections::BTreeMap, fmt::Write, ops::Range};

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
    /// The schedule of these steps of a graph. The streams of its body are spread over the streams of the graph.
    pub(super) fn of<B: Backend>(plan: &Plan<B>, steps: Range<usize>) -> Self {
        let mut numbers: Vec<u64> = Vec::new();
        let mut stream_of = |number| {
            let found = numbers.iter().position(|known| *known == number).unwrap_or_else(|| {
                numbers.push(number);
                numbers.len() - 1
            });
            found % MOST_STREAMS
        };
        let steps = &plan.steps[steps];
        let streams = steps.iter().map(|step| stream_of(step.stream)).collect();
        let uses: Vec<_> = steps.iter().map(|step| placed(plan, &step.uses)).collect();
        Self::new(streams, &uses, |step| steps.get(step).is_some_and(|step| step.ranks.is_some()))
    }

    /// A step that `is_alone` runs after all steps before it, and before all after it.
    fn new(streams: Vec<usize>, uses: &[Vec<RegionUse>], is_alone: impl Fn(usize) -> bool) -> Self {
        let regions = uses.iter().flatten().map(|used| used.region + 1).max().unwrap_or(0);
        let mut parts: Vec<Parts> = (0..regions).map(|_| Parts::default()).collect();
        let mut last = [None; MOST_STREAMS];
        let mut clocks: Vec<Clock> = Vec::with_capacity(streams.len());
        let mut after = Vec::with_capacity(streams.len());
        for (step, (&stream, uses)) in streams.iter().zip(uses).enumerate() {
            let mut needed = [None; MOST_STREAMS];
            let uses = || uses.iter().filter(|used| !used.extent.is_empty());
            for used in uses() {
                if let Some(parts) = parts.get(used.region) {
                    parts.find(used, &streams, &mut needed);
                }
            }
            for used in uses() {
                if let Some(parts) = parts.get_mut(used.region) {
                    parts.add(used, step, &streams);
                }
            }
            if is_alone(step) {
                needed = last;
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
            if is_alone(step) {
                last = [Some(step); MOST_STREAMS];
            }
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

/// The parts of a region that steps have used, by their first bytes. No two share a byte.
#[derive(Default)]
struct Parts(BTreeMap<usize, Part>);

#[derive(Clone)]
struct Part {
    end: usize,
    /// The step that wrote it last.
    writer: Option<usize>,
    /// Of each stream the last step that has read it since.
    readers: SmallVec<[usize; 2]>,
}

impl Parts {
    /// Finds the latest step of each stream that a use has to come after.
    fn find(&self, used: &RegionUse, streams: &[usize], latest: &mut [Option<usize>; MOST_STREAMS]) {
        let before = self.0.range(..used.extent.start).next_back();
        let parts = before.into_iter().filter(|(_, part)| part.end > used.extent.start);
        for (_, part) in parts.chain(self.0.range(used.extent.clone())) {
            let readers = part.readers.iter().filter(|_| used.write);
            for step in part.writer.iter().chain(readers) {
                if let Some(latest) = streams.get(*step).and_then(|stream| latest.get_mut(*stream)) {
                    *latest = (*latest).max(Some(*step));
                }
            }
        }
    }

    /// Adds a use. A write takes the place of all earlier uses of its bytes, and a read that of earlier reads on its stream: a step
    /// that has to run after one of those has to run after this one, too.
    fn add(&mut self, used: &RegionUse, step: usize, streams: &[usize]) {
        let Range { start, end } = used.extent;
        self.cut(start);
        self.cut(end);
        if used.write {
            let written: Vec<usize> = self.0.range(start..end).map(|(start, _)| *start).collect();
            written.iter().for_each(|start| drop(self.0.remove(start)));
            self.0.insert(start, Part { end, writer: Some(step), readers: SmallVec::new() });
            return;
        }
        // Where the next part begins, if nothing is missing before it.
        let (mut next, mut missing) = (start, Vec::new());
        for (start, part) in self.0.range_mut(start..end) {
            match part.readers.iter_mut().find(|reader| streams.get(**reader) == streams.get(step)) {
                Some(reader) => *reader = step,
                None => part.readers.push(step),
            }
            missing.extend((next < *start).then_some((next, *start)));
            next = part.end;
        }
        missing.extend((next < end).then_some((next, end)));
        let new = |(start, end)| (start, Part { end, writer: None, readers: smallvec![step] });
        self.0.extend(missing.into_iter().map(new));
    }

    /// Makes two parts of one that goes beyond `at`.
    fn cut(&mut self, at: usize) {
        if let Some((_, part)) = self.0.range_mut(..at).next_back().filter(|(_, part)| part.end > at) {
            let rest = part.clone();
            part.end = at;
            self.0.insert(at, rest);
        }
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
    use proptest::prelude::*;

    fn used(region: usize, extent: Range<usize>, write: bool) -> Vec<RegionUse> {
        vec![RegionUse { region, extent, write }]
    }

    fn after<const N: usize>(steps: [(usize, Vec<RegionUse>); N]) -> Vec<Vec<usize>> {
        let (streams, uses): (Vec<_>, Vec<_>) = steps.into_iter().unzip();
        Schedule::new(streams, &uses, |_| false).after
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
    fn a_step_alone_runs_after_all_before_it_and_before_all_after_it() {
        let uses = [used(0, 0..4, true), used(1, 0..4, true), vec![], used(2, 0..4, true), vec![], vec![]];
        let streams = vec![0, 1, 1, 2, 2, 0];
        let after = Schedule::new(streams, &uses, |step| step == 2 || step == 4).after;
        assert_eq!(after, [vec![], vec![], vec![1, 0], vec![2], vec![3], vec![4]]);
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
    fn a_part_that_was_written_over_is_not_waited_for() {
        let found = after([
            (0, used(0, 0..8, true)),
            (1, used(0, 2..4, true)),
            (2, used(0, 2..4, false)),
            (3, used(0, 4..5, false)),
        ]);
        assert_eq!(found, [vec![], vec![0], vec![1], vec![0]]);
    }

    #[test]
    fn a_step_that_reads_and_writes_does_not_wait_for_itself() {
        let found = after([
            (0, [used(0, 0..4, true), used(0, 0..8, false), used(0, 2..2, true)].concat()),
            (1, used(0, 0..8, true)),
        ]);
        assert_eq!(found, [vec![], vec![0]]);
    }

    #[test]
    fn a_long_loop_has_few_edges() {
        let many = if cfg!(miri) { 100 } else { 20_000 };
        let uses: Vec<_> = (0..many).map(|_| used(0, 0..4, true)).collect();
        let schedule = Schedule::new((0..many).map(|at| at % 16).collect(), &uses, |_| false);
        assert!(schedule.edges() <= 2 * many, "{}", schedule.edges());
        // Readers of one array, writers of disjoint parts of another one, and their readers.
        let mut uses: Vec<_> = (0..many).map(|_| used(0, 0..4, false)).collect();
        uses.extend((0..many).map(|at| used(1, 4 * at..4 * at + 4, true)));
        uses.extend((0..many).map(|at| used(1, 4 * at..4 * at + 4, false)));
        let schedule = Schedule::new((0..3 * many).map(|at| at / many).collect(), &uses, |_| false);
        assert!(
            schedule.after[..2 * many]
                .iter()
                .flatten()
                .eq((0..2 * many - 1).filter(|at| *at != many - 1).collect::<Vec<_>>().iter())
        );
        assert_eq!(schedule.after[2 * many], [many]);
    }

    /// A stream of a body beyond the most shares that of an earlier one, after whose steps its own run.
    #[test]
    fn seventeen_readers_share_sixteen_streams_and_the_writer_waits_for_each() {
        let device = crate::Device::<gpumem_host::Host>::open("host").unwrap();
        let like =
            (crate::writes::<u8, _>(8), vec![crate::writes::<u8, _>(8); 17], crate::writes::<u8, _>(8));
        let graph = device.record(like, |stream, (mut x, mut before, mut after)| {
            for y in &mut before {
                stream.device().stream()?.copy_to_device(y, &x)?;
            }
            stream.fill(&mut x, 1)?;
            stream.device().stream()?.copy_to_device(&mut after, &x)
        });
        let graph = graph.unwrap();
        let schedule = Schedule::of(&graph.inner.plan, 0..19);
        let streams: Vec<usize> = (0..16).chain([0, 1, 2]).collect();
        assert_eq!(schedule.streams, streams);
        let mut after = vec![vec![]; 16];
        // The writer is on the stream of the second reader.
        let readers = (2..17).rev().filter(|reader| *reader != 1);
        after.extend([vec![0], [1].into_iter().chain(readers).collect(), vec![2, 17]]);
        assert_eq!((schedule.edges(), graph.report().edges), (19, 19));
        assert_eq!(schedule.after, after);
    }

    /// Whether a step runs after another one: by an edge, or by those of the steps between.
    fn runs_after(after: &[Vec<usize>], later: usize, earlier: usize) -> bool {
        let is_after =
            |other: &usize| *other == earlier || (*other > earlier && runs_after(after, *other, earlier));
        after[later].iter().any(is_after)
    }

    fn clash(one: &RegionUse, other: &RegionUse) -> bool {
        let (start, end) = (one.extent.start.max(other.extent.start), one.extent.end.min(other.extent.end));
        one.region == other.region && (one.write || other.write) && start < end
    }

    proptest! {
        #[cfg_attr(miri, ignore = "takes minutes, and nothing in it is unsafe")]
        #[test]
        fn steps_run_after_those_whose_bytes_they_share(
            steps in prop::collection::vec(
                (0..3_usize, prop::collection::vec((0..2_usize, 0..12_usize, 0..6_usize, any::<bool>()), 1..4)),
                1..12,
            ),
        ) {
            let of = |(region, start, len, write)| RegionUse { region, extent: start..start + len, write };
            let (streams, uses): (Vec<usize>, Vec<Vec<RegionUse>>) =
                steps.into_iter().map(|(stream, uses)| (stream, uses.into_iter().map(of).collect::<Vec<_>>())).unzip();
            let after = Schedule::new(streams.clone(), &uses, |_| false).after;
            for later in 0..uses.len() {
                for earlier in 0..later {
                    let clashes = uses[later].iter().any(|one| uses[earlier].iter().any(|other| clash(one, other)));
                    let is_in_turn = streams[later] == streams[earlier];
                    prop_assert_eq!(runs_after(&after, later, earlier) || !(clashes || is_in_turn), true, "{:?}", after);
                    prop_assert!(clashes || is_in_turn || !after[later].contains(&earlier), "{:?}", after);
                }
            }
        }
    }
}
