//! Graphs: commands that were captured, and one launch of them, which is one command of a queue.
//!
//! The commands run in the order in which they were captured; under the adversarial schedule in any order that their edges allow. One
//! that fails poisons what it was to write, and those that depend on it do not run.

use super::{Fault, Queue, Random, Refused, Work, poison::Uses};
use crate::error::invalid;
use crate::sync::lock;
use gpumem_core::{Error, Failure, MemoryUse, MemoryUses, SubmissionId, current_uses};
use smallvec::{SmallVec, smallvec};
use std::{
    ops::Range,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

/// No version of the table of blocks.
const NEVER: u64 = u64::MAX;

/// The commands of a graph, in the order in which they were captured.
pub(crate) type Nodes = Vec<Arc<Node>>;

/// A command of a graph.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) work: Work,
    /// Which bytes it uses. Whose they are, each launch says.
    uses: Uses,
    /// The node of the runtime that it is a part of.
    part_of: usize,
    /// The commands that it runs after, by their places among all.
    after: SmallVec<[usize; 2]>,
    /// The version of the table of blocks at which its memory was found live.
    live_at: AtomicU64,
}

impl Node {
    /// The same with other work.
    pub(crate) fn with(&self, work: Work) -> Self {
        let Self { uses, part_of, after, .. } = self;
        let live_at = AtomicU64::new(NEVER);
        Self { work, uses: uses.clone(), part_of: *part_of, after: after.clone(), live_at }
    }

    fn name(&self) -> String {
        // As `Graph::dot` names it.
        format!("node s{} of a graph, {}", self.part_of, self.work.name())
    }
}

/// A capture that goes on: its commands, until it ends. Its streams share it.
type Capture = Arc<Mutex<Option<Nodes>>>;

/// A stream that is captured; of an event the place in it that was recorded.
#[derive(Debug, Clone)]
pub(crate) struct CapturePoint {
    capture: Capture,
    /// The commands that the next one runs after.
    last: SmallVec<[usize; 2]>,
}

impl CapturePoint {
    fn push(&mut self, nodes: &mut Nodes, work: Work) {
        let after = std::mem::replace(&mut self.last, smallvec![nodes.len()]);
        let part_of = current_uses(|uses| uses.node()).unwrap_or(nodes.len());
        let live_at = AtomicU64::new(NEVER);
        nodes.push(Arc::new(Node { work, uses: Uses::now(), part_of, after, live_at }));
    }

    /// The command that was captured last.
    pub(crate) fn node(&self) -> Option<usize> {
        match self.last[..] {
            [last] => Some(last),
            _ => None,
        }
    }
}

impl Queue {
    /// Looks at the capture of the stream. `None` if it is not captured.
    #[inline]
    pub(crate) fn captured<R>(&self, look: impl FnOnce(&mut CapturePoint, &mut Nodes) -> R) -> Option<R> {
        let mut capture_point = lock(self.capture_point.get()?);
        let capture = capture_point.as_ref()?.capture.clone();
        let mut nodes = lock(&capture);
        match (&mut *capture_point, &mut *nodes) {
            (Some(capture_point), Some(nodes)) => Some(look(capture_point, nodes)),
            _ => {
                *capture_point = None;
                None
            }
        }
    }

    /// Whether the stream is captured. Takes no lock before the check of the process, and none where no stream ever was.
    #[inline]
    pub(crate) fn is_captured(&self, operation: &'static str) -> Result<bool, Error> {
        if self.capture_point.get().is_none() {
            return Ok(false);
        }
        self.engine.origin().check(crate::NAME, operation)?;
        Ok(self.captured(|_, _| ()).is_some())
    }

    /// Captures work.
    pub(crate) fn capture(&self, work: Work) -> Result<(), Error> {
        let (name, _) = work.call();
        self.captured(|capture_point, nodes| capture_point.push(nodes, work))
            .ok_or_else(|| invalid(name, "the capture has ended"))
    }

    /// Where the capture of the stream is.
    pub(crate) fn capture_point(&self) -> Option<CapturePoint> {
        self.captured(|capture_point, _| capture_point.clone())
    }

    /// Begins a capture.
    pub(crate) fn begin_capture(&self) {
        let capture = Arc::new(Mutex::new(Some(Vec::new())));
        *lock(self.capture_point.get_or_init(Mutex::default)) =
            Some(CapturePoint { capture, last: SmallVec::new() });
    }

    /// Ends the capture of the stream, and of those that have joined it.
    pub(crate) fn end_capture(&self) -> Option<Nodes> {
        let capture_point = lock(self.capture_point.get()?).take()?;
        lock(&capture_point.capture).take()
    }

    /// What comes next on the stream runs after a place of a capture. `false` if that has ended, or is another one.
    pub(crate) fn join(&self, place: &CapturePoint) -> bool {
        let Some(is_same) =
            self.captured(|capture_point, _| Arc::ptr_eq(&capture_point.capture, &place.capture))
        else {
            let goes_on = lock(&place.capture).is_some();
            if goes_on {
                *lock(self.capture_point.get_or_init(Mutex::default)) = Some(place.clone());
            }
            return goes_on;
        };
        let add = |capture_point: &mut CapturePoint, _: &mut Nodes| {
            place.last.iter().for_each(|last| {
                if !capture_point.last.contains(last) {
                    capture_point.last.push(*last);
                }
            });
        };
        is_same && self.captured(add).is_some()
    }
}

/// One launch of a graph.
#[derive(Debug)]
pub(crate) struct GraphLaunch {
    nodes: Arc<Nodes>,
    /// The cost of its commands, as of [brief](super::Command::is_brief) ones. `None` if one of them is code of the user.
    pub(crate) cost: Option<usize>,
    done: usize,
    /// Commands that fail because a failure was injected, and why.
    injected: Vec<(usize, String)>,
    /// Commands that have failed, and why.
    failed: Vec<(usize, Arc<Failure>)>,
    /// The first failure.
    fault: Option<Fault>,
    /// Under the adversarial schedule.
    shuffle: Option<Shuffle>,
}

impl GraphLaunch {
    pub(crate) fn new(
        nodes: &Arc<Nodes>,
        cost: Option<usize>,
        injected: Vec<(usize, String)>,
        random: Option<Random>,
    ) -> Self {
        let shuffle = random.map(|random| Shuffle::new(nodes, random));
        Self { nodes: nodes.clone(), cost, done: 0, injected, failed: Vec::new(), fault: None, shuffle }
    }

    /// How many commands there are.
    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// What is to run next: of which command which units.
    #[inline]
    fn next(&mut self) -> Option<(usize, Range<usize>)> {
        match &mut self.shuffle {
            None => Some((self.done, 0..self.nodes.get(self.done)?.work.units())),
            Some(shuffle) => shuffle.next(&self.nodes),
        }
    }

    fn failure(&self, node: &Node) -> Option<&Arc<Failure>> {
        self.failed.iter().find(|(at, _)| node.after.contains(at)).map(|(_, failure)| failure)
    }

    /// The failure of the launch: that of its first command which has failed by itself.
    pub(crate) fn take_fault(&mut self) -> Option<Fault> {
        self.fault.take()
    }

    #[cold]
    fn note(&mut self, at: usize, fault: Fault) {
        self.failed.push((at, fault.failure.clone()));
        if self.fault.as_ref().is_none_or(|first| first.is_consequence && !fault.is_consequence) {
            self.fault = Some(fault);
        }
    }
}

/// Which commands of a launch run next, at random.
#[derive(Debug)]
struct Shuffle {
    random: Random,
    /// Commands that can run, and how many of their units are done.
    ready: Vec<(usize, usize)>,
    waiting: Vec<usize>,
    is_done: Vec<bool>,
}

impl Shuffle {
    fn new(nodes: &Nodes, random: Random) -> Self {
        let (ready, waiting) = (Vec::new(), (0..nodes.len()).collect());
        let mut shuffle = Self { random, ready, waiting, is_done: vec![false; nodes.len()] };
        shuffle.find_ready(nodes);
        shuffle
    }

    fn find_ready(&mut self, nodes: &Nodes) {
        let Self { ready, waiting, is_done, .. } = self;
        let is_ready = |at: &mut usize| nodes[*at].after.iter().all(|before| is_done[*before]);
        ready.extend(waiting.extract_if(.., is_ready).map(|at| (at, 0)));
    }

    fn next(&mut self, nodes: &Nodes) -> Option<(usize, Range<usize>)> {
        if self.ready.is_empty() {
            return None;
        }
        let chosen = self.random.below(self.ready.len());
        let (at, done) = self.ready.get_mut(chosen)?;
        let (start, units) = (*done, nodes.get(*at)?.work.units());
        *done = match units - start {
            left if left <= 1 || self.random.one_in(2) => units,
            left => start + 1 + self.random.below(left),
        };
        Some((*at, start..*done))
    }

    fn end(&mut self, at: usize, nodes: &Nodes) {
        self.ready.retain(|(ready, _)| *ready != at);
        self.is_done[at] = true;
        self.find_ready(nodes);
    }
}

/// What a command of a graph uses, and whose it is by the uses of the launch. Memory of the graph alone is left out.
struct NodeUses<'a> {
    node: &'a Node,
    launch: &'a dyn MemoryUses,
}

impl MemoryUses for NodeUses<'_> {
    fn each(&self, found: &mut dyn FnMut(&MemoryUse)) {
        self.node.uses.each(&mut |used| {
            let bytes = used.range();
            self.launch.each(&mut |owned| {
                let (start, end) = (owned.start.max(bytes.start), owned.range().end.min(bytes.end));
                if start < end && owned.write == used.write {
                    found(&MemoryUse { start, bytes: (end - start) as usize, ..*owned });
                }
            });
        });
    }

    fn submission(&self) -> Option<SubmissionId> {
        self.launch.submission()
    }
}

impl Queue {
    /// Runs commands of a graph until so many are done. `uses` are those of the launch.
    pub(super) fn run_graph(&self, launch: &mut GraphLaunch, uses: &dyn MemoryUses, until: usize) {
        let nodes = launch.nodes.clone();
        while launch.done < until {
            let Some((at, part)) = launch.next() else { return };
            let Some(node) = nodes.get(at) else { return };
            let is_last = part.end >= node.work.units();
            let fault = self.run_node(launch, at, node, part, uses);
            if !is_last && fault.is_none() {
                continue;
            }
            if let Some(fault) = fault {
                launch.note(at, fault);
            }
            launch.done += 1;
            if let Some(shuffle) = &mut launch.shuffle {
                shuffle.end(at, &nodes);
            }
        }
    }

    #[inline]
    fn run_node(
        &self,
        launch: &GraphLaunch,
        at: usize,
        node: &Node,
        part: Range<usize>,
        uses: &dyn MemoryUses,
    ) -> Option<Fault> {
        let (work, uses) = (&node.work, &NodeUses { node, launch: uses });
        if !launch.failed.is_empty()
            && let Some(failure) = launch.failure(node)
        {
            return Some(Fault::inherited(&node.name(), failure.clone()).poison(uses));
        }
        match self.refuse(Some(work), uses, || node.name()) {
            Refused::No => {
                let is_last = part.end >= work.units();
                let result = self.run_work(launch, at, node, part);
                if !is_last && result.is_ok() {
                    return None;
                }
                self.conclude(Some(work), uses, result, || node.name())
            }
            Refused::Rest => None,
            Refused::Failed(fault) => Some(fault),
        }
    }

    #[inline]
    fn run_work(
        &self,
        launch: &GraphLaunch,
        at: usize,
        node: &Node,
        part: Range<usize>,
    ) -> Result<(), String> {
        let Node { work, live_at, .. } = node;
        if self.engine.is_lost() {
            return Err(format!("the device was lost: {}", self.engine.cause()));
        }
        if let Some((_, what)) = launch.injected.iter().find(|(injected, _)| *injected == at) {
            return Err(what.clone());
        }
        // Relaxed: only the number counts, and nothing else is read by it.
        if live_at.load(Ordering::Relaxed) != self.engine.process().table.version() {
            let Some(version) = work.look_up(&self.engine) else {
                return work.run(&self.engine, self.id, part);
            };
            live_at.store(version, Ordering::Relaxed);
        }
        // SAFETY: its memory was in live blocks at this version of the table, or is ordinary memory of the host. The caller of the
        // launch vouches for the rest, and that the memory lives until the launch is over.
        unsafe { work.run_live(&self.engine, self.id, part) }
    }
}
