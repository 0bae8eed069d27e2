//! Reads a trace from a file, and rejects contradictions in it.

use super::{
    format::{FORMAT, Trace, TraceEvent, TraceEventKind},
    indices::{ABSENT, Table},
};
use serde::Deserialize;
use std::collections::HashSet;

/// Why a text is no trace.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TraceError {
    /// It is not the JSON of a trace.
    #[error("the text is not the JSON of a trace: {0}")]
    Json(#[from] serde_json::Error),
    /// Another version of this library has written it.
    #[error("the trace has format {found}, and this library reads {FORMAT}")]
    Format {
        /// The format that it has.
        found: u32,
    },
    /// An entry of a table, or an event, contradicts the others.
    #[error("{what} {index} of the trace is inconsistent: {why}")]
    Inconsistent {
        /// The table: `allocation` or `event`.
        what: &'static str,
        /// The index in it.
        index: usize,
        /// What is wrong.
        why: &'static str,
    },
    /// The recording of another library is malformed, or contradicts itself.
    #[error("{what} {index} cannot be imported: {why}")]
    Import {
        /// What is counted: `line` from 1, `byte` from 0, or `entry` of all devices from 0.
        what: &'static str,
        /// The place.
        index: u64,
        /// What is wrong.
        why: &'static str,
    },
    /// The reader failed.
    #[error("the recording cannot be read: {0}")]
    Io(#[from] std::io::Error),
}

#[derive(Deserialize)]
struct Version {
    format: u32,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// Nothing has been said of it: it was there before, if anything comes.
    Unknown,
    Alive,
    /// Freed, or never made.
    Gone,
}

impl Trace {
    /// Reads a trace that [`to_json`](Self::to_json) has written.
    ///
    /// # Errors
    /// Returns a [`TraceError`] for a text that is no trace, for another format, and for a trace that contradicts
    /// itself.
    pub fn from_json(text: &str) -> Result<Self, TraceError> {
        let Version { format: found } = serde_json::from_str(text)?;
        if found != FORMAT {
            return Err(TraceError::Format { found });
        }
        let trace: Self = serde_json::from_str(text)?;
        trace.check()?;
        Ok(trace)
    }

    /// Returns the trace as JSON, in one line, with the names of the fields.
    pub fn to_json(&self) -> String {
        // Nothing in it can fail: names and numbers.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Writes the trace to a file: for viewers ([`to_perfetto`](Self::to_perfetto)) if the name ends in
    /// `.perfetto.json`, else as JSON that [`from_json`](Self::from_json) reads, whatever the name ends in.
    ///
    /// # Errors
    /// Returns the error of the file system.
    pub fn write(&self, path: impl AsRef<std::path::Path>) -> std::io::Result<()> {
        let path = path.as_ref();
        let is_for_viewers =
            path.file_name().is_some_and(|name| name.as_encoded_bytes().ends_with(b".perfetto.json"));
        std::fs::write(path, if is_for_viewers { self.to_perfetto() } else { self.to_json() })
    }

    /// Checks the trace for contradictions: indices exist, times rise, and an allocation is used only after it was made
    /// and before it is freed. Recordings of this library always pass.
    ///
    /// # Errors
    /// Returns the first contradiction.
    pub fn check(&self) -> Result<(), TraceError> {
        use TraceEventKind::{Allocate, Fail, Free, Use};
        let lengths = self.lengths();
        let absent = |(table, index): (Table, &mut u32)| {
            (*index as usize >= lengths[table as usize]).then_some(ABSENT[table as usize])
        };
        for (index, allocation) in self.allocations.iter().enumerate() {
            let wrong = |why| Err(TraceError::Inconsistent { what: "allocation", index, why });
            if let Some(why) = allocation.clone().indices().find_map(absent) {
                return wrong(why);
            }
            if !allocation.align.is_power_of_two() {
                return wrong("its alignment is no power of two");
            }
        }
        if self.start.checked_add(self.span).is_none() || !self.bytes_can_be_counted() {
            let why = "its end, or the bytes of all that comes before it, are no number";
            return Err(TraceError::Inconsistent { what: "event", index: self.events.len(), why });
        }
        let mut states = vec![State::Unknown; self.allocations.len()];
        let mut last = 0;
        for (index, event) in self.events.iter().enumerate() {
            let wrong = |why| Err(TraceError::Inconsistent { what: "event", index, why });
            if event.time < last || event.time > self.span {
                return wrong("its time lies before the event before it, or after the end");
            }
            last = event.time;
            if let Some(why) = { *event }.indices().find_map(absent) {
                return wrong(why);
            }
            let (Allocate { memory } | Fail { memory } | Free { memory } | Use { memory, .. }) = event.what
            else {
                continue;
            };
            let (state, allocation) = (&mut states[memory as usize], &self.allocations[memory as usize]);
            match (event.what, *state) {
                (Allocate { .. } | Fail { .. }, State::Alive | State::Gone) => {
                    return wrong("it makes memory of which something was said before");
                }
                (Free { .. } | Use { .. }, State::Gone) => {
                    return wrong("it uses or frees memory that is gone");
                }
                (Allocate { .. } | Fail { .. } | Free { .. }, _) if allocation.kind.is_none() => {
                    return wrong("foreign memory is not made or freed");
                }
                (Use { from, bytes, .. }, _) if from.saturating_add(bytes) > allocation.bytes => {
                    return wrong("it uses bytes past the end");
                }
                (Free { .. } | Fail { .. }, _) => *state = State::Gone,
                _ => *state = State::Alive,
            }
        }
        Ok(())
    }

    /// The allocations that were refused.
    pub(super) fn refused(&self) -> HashSet<usize> {
        let refused = |event: &TraceEvent| match event.what {
            TraceEventKind::Fail { memory } => Some(memory as usize),
            _ => None,
        };
        self.events.iter().filter_map(refused).collect()
    }

    /// Whether no sum of bytes leaves the numbers. Memory that was refused has none.
    fn bytes_can_be_counted(&self) -> bool {
        let refused = self.refused();
        let starts = self.devices.iter().flat_map(|device| &device.start);
        let starts = starts.flat_map(|start| [start.other, start.reserved]);
        let made = self.allocations.iter().enumerate();
        let made = made.map(|(memory, made)| if refused.contains(&memory) { 0 } else { made.bytes });
        let driver = self.events.iter().map(|event| match event.what {
            TraceEventKind::Reserve { bytes, .. } | TraceEventKind::Release { bytes, .. } => bytes,
            _ => 0,
        });
        let add = |sum: u64, bytes: u64| sum.checked_add(bytes).filter(|sum| *sum <= i64::MAX as u64);
        starts.chain(made).chain(driver).try_fold(0, add).is_some()
    }
}
