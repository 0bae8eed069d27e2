//! The part of an event that the commands use which record it.

use super::{CapturePoint, Engine, Mark};
use crate::sync::lock;
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// State that the event's handle shares with the commands that record it.
#[derive(Debug)]
pub(crate) struct EventCore {
    pub(crate) engine: Arc<Engine>,
    pub(crate) timing: bool,
    pub(crate) generation: u64,
    pub(crate) state: Mutex<Recording>,
}

/// The latest recording.
#[derive(Debug, Default)]
pub(crate) struct Recording {
    /// Number of recordings; an older one that is reached late does not count.
    pub(crate) recording: u64,
    pub(crate) marks: Marks,
    pub(crate) time: Option<Instant>,
    /// The place in a capture, if the stream was captured.
    pub(crate) capture_point: Option<CapturePoint>,
}

/// The recorded positions, each on its stream: one, unless all streams of the device were recorded.
#[derive(Debug, Clone, Default)]
pub(crate) struct Marks {
    pub(crate) first: Option<Mark>,
    pub(crate) more: Vec<Mark>,
}

impl Marks {
    pub(crate) fn one(mark: Mark) -> Self {
        Self { first: Some(mark), more: Vec::new() }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Mark> {
        self.first.iter().chain(&self.more)
    }
}

impl EventCore {
    /// The recording with this number is reached.
    pub(crate) fn reached(&self, recording: u64) {
        let mut state = lock(&self.state);
        if state.recording == recording {
            state.time = Some(Instant::now());
        }
    }
}
