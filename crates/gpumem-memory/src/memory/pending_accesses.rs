//! Work that may still be using memory.

use crate::track::{Timeline, is_refused};
use gpumem_core::{Backend, Error};
use std::{fmt, mem, slice, sync::Arc};

/// A use: up to that submission index of a stream.
type Use<B> = (Arc<Timeline<B>>, u64);

/// Work that may still be using memory: one position for each stream. It keeps no memory alive.
pub struct PendingAccesses<B: Backend>(Uses<B>);

/// What a wait for all uses of some memory has found.
#[derive(Debug)]
pub enum Waited {
    Over,
    /// Nothing can wait now: another library captures a stream, or this is a callback. A later wait may.
    Refused,
    /// Nothing proves that they are over: the memory must not be used again. With the error of the wait.
    Unproven(Error),
}

/// Nearly always none, and hardly ever more than one: every allocation moves and drops blocks, which must be cheaper
/// than a vector.
enum Uses<B: Backend> {
    None,
    One(Use<B>),
    Many(Vec<Use<B>>),
}

impl<B: Backend> PendingAccesses<B> {
    /// No use.
    #[inline]
    pub fn none() -> Self {
        Self(Uses::None)
    }

    #[inline]
    pub(crate) fn one(timeline: &Arc<Timeline<B>>, submission: u64) -> Self {
        Self(Uses::One((timeline.clone(), submission)))
    }

    /// The same uses once more, for memory that is divided.
    pub(crate) fn copied(&self) -> Self {
        let mut copied = Self::none();
        self.iter().for_each(|(timeline, submission)| copied.add(timeline, *submission));
        copied
    }

    /// Whether there is none, done or not.
    #[doc(hidden)]
    #[inline]
    pub fn is_empty(&self) -> bool {
        matches!(self.0, Uses::None)
    }

    #[inline]
    pub(crate) fn as_slice(&self) -> &[Use<B>] {
        match &self.0 {
            Uses::None => &[],
            Uses::One(one) => slice::from_ref(one),
            Uses::Many(many) => many,
        }
    }

    #[inline]
    pub(crate) fn iter(&self) -> slice::Iter<'_, Use<B>> {
        self.as_slice().iter()
    }

    fn as_mut_slice(&mut self) -> &mut [Use<B>] {
        match &mut self.0 {
            Uses::None => &mut [],
            Uses::One(one) => slice::from_mut(one),
            Uses::Many(many) => many,
        }
    }

    /// Adds a use. Of one stream only the last matters.
    pub(crate) fn add(&mut self, timeline: &Arc<Timeline<B>>, submission: u64) {
        if !self.renew(timeline, submission) {
            self.push((timeline.clone(), submission));
        }
    }

    /// As [`add`](Self::add), taking the reference to the stream.
    #[doc(hidden)]
    pub fn add_owned(&mut self, timeline: Arc<Timeline<B>>, submission: u64) {
        if !self.renew(&timeline, submission) {
            self.push((timeline, submission));
        }
    }

    /// Notes a later use of a stream that is there.
    fn renew(&mut self, timeline: &Arc<Timeline<B>>, submission: u64) -> bool {
        // One entry for each stream: its later work is done after its earlier work.
        let found = self.as_mut_slice().iter_mut().find(|(have, _)| have.id() == timeline.id());
        found.map(|(_, last)| *last = (*last).max(submission)).is_some()
    }

    fn push(&mut self, new: Use<B>) {
        self.0 = match mem::replace(&mut self.0, Uses::None) {
            Uses::None => Uses::One(new),
            Uses::One(one) => Uses::Many(vec![one, new]),
            Uses::Many(mut many) => {
                many.push(new);
                Uses::Many(many)
            }
        };
    }

    /// Passes each of them on.
    #[doc(hidden)]
    #[inline]
    pub fn for_each(self, mut take: impl FnMut(Arc<Timeline<B>>, u64)) {
        match self.0 {
            Uses::None => {}
            Uses::One((timeline, submission)) => take(timeline, submission),
            Uses::Many(many) => {
                many.into_iter().for_each(|(timeline, submission)| take(timeline, submission))
            }
        }
    }

    /// Keeps those that `keep` says.
    #[inline]
    pub(crate) fn retain(&mut self, keep: impl FnMut(&Use<B>) -> bool) {
        if !self.is_empty() {
            self.retain_some(keep);
        }
    }

    fn retain_some(&mut self, mut keep: impl FnMut(&Use<B>) -> bool) {
        self.0 = match mem::replace(&mut self.0, Uses::None) {
            Uses::One(one) if keep(&one) => Uses::One(one),
            Uses::None | Uses::One(_) => Uses::None,
            Uses::Many(mut many) => {
                many.retain(keep);
                // A list of one would need a heap allocation at each move of the block.
                match (many.pop(), many.is_empty()) {
                    (None, _) => Uses::None,
                    (Some(one), true) => Uses::One(one),
                    (Some(last), false) => {
                        many.push(last);
                        Uses::Many(many)
                    }
                }
            }
        };
    }

    /// Removes finished ones. No driver call.
    #[inline]
    pub fn forget_done(&mut self) {
        self.retain(|(timeline, submission)| !timeline.is_complete(*submission));
    }

    /// Whether nothing is known to be pending. No driver call.
    #[inline]
    pub fn is_over(&self) -> bool {
        self.iter().all(|(timeline, submission)| timeline.is_complete(*submission))
    }

    /// Whether nothing is pending, asking the driver. Never blocks.
    pub fn poll(&self) -> bool {
        // Errors of the work are reported elsewhere; `poll` notes that the work is over.
        self.iter().all(|(timeline, submission)| {
            timeline.poll(*submission).unwrap_or_else(|_| timeline.is_complete(*submission))
        })
    }

    /// Waits for all of them.
    pub fn wait(&self) -> Waited {
        let unproven = |(timeline, submission): &Use<B>| {
            let outcome = timeline.wait_host(*submission);
            (!outcome.done).then(|| match outcome.result.err() {
                Some(error) if !is_refused(&error) => Waited::Unproven(error),
                _ => Waited::Refused,
            })
        };
        self.iter().find_map(unproven).unwrap_or(Waited::Over)
    }

    /// The streams, by number.
    pub fn streams(&self) -> impl Iterator<Item = u64> + '_ {
        self.iter().map(|(timeline, _)| timeline.id())
    }

    /// Whether memory may be used at once: by that stream, or by anybody where it is unknown.
    #[inline]
    pub(crate) fn permit(&self, stream: Option<&Arc<Timeline<B>>>) -> bool {
        self.is_empty()
            || match stream {
                Some(timeline) => self.are_only_of(timeline.id()),
                None => self.is_over(),
            }
    }

    /// Whether every pending use is one of that stream.
    #[inline]
    pub fn are_only_of(&self, stream: u64) -> bool {
        self.iter().all(|(timeline, submission)| timeline.id() == stream || timeline.is_complete(*submission))
    }
}

impl<B: Backend> fmt::Debug for PendingAccesses<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter().map(|(timeline, submission)| (timeline.id(), submission))).finish()
    }
}
