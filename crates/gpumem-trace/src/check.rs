//! Reads a trace from a file, and rejects contradictions in it.

use super::format::{FORMAT, Trace, TraceEventKind};
use serde::Deserialize;

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
        let (devices, streams) = (self.devices.len(), self.streams.len());
        for (index, allocation) in self.allocations.iter().enumerate() {
            let wrong = |why| Err(TraceError::Inconsistent { what: "allocation", index, why });
            let is_of = |index: Option<u32>, len| index.is_none_or(|index| (index as usize) < len);
            if allocation.device as usize >= devices || !is_of(allocation.stream, streams) {
                return wrong("it names a device or a stream that is not there");
            }
            if !is_of(allocation.name, self.names.len())
                || !is_of(allocation.operation, self.operations.len())
            {
                return wrong("its name or its operation is not there");
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
            if event.thread as usize >= self.threads.len() {
                return wrong("it names a thread that is not there");
            }
            if let Err(why) = self.check_event(&event.what, &mut states) {
                return wrong(why);
            }
        }
        Ok(())
    }

    /// Whether no sum of bytes leaves the numbers.
    fn bytes_can_be_counted(&self) -> bool {
        let starts = self.devices.iter().flat_map(|device| &device.start);
        let starts = starts.flat_map(|start| [start.other, start.reserved]);
        let made = self.allocations.iter().map(|allocation| allocation.bytes);
        let driver = self.events.iter().map(|event| match event.what {
            TraceEventKind::Reserve { bytes, .. } | TraceEventKind::Release { bytes, .. } => bytes,
            _ => 0,
        });
        let add = |sum: u64, bytes: u64| sum.checked_add(bytes).filter(|sum| *sum <= i64::MAX as u64);
        starts.chain(made).chain(driver).try_fold(0, add).is_some()
    }

    fn check_event(&self, what: &TraceEventKind, states: &mut [State]) -> Result<(), &'static str> {
        let is_stream = |stream: u32| (stream as usize) < self.streams.len();
        let memory = match *what {
            TraceEventKind::Allocate { memory }
            | TraceEventKind::Fail { memory }
            | TraceEventKind::Free { memory }
            | TraceEventKind::Use { memory, .. } => memory as usize,
            TraceEventKind::Wait { stream, of, .. } => {
                let both = stream.is_none_or(is_stream) && is_stream(of);
                return if both { Ok(()) } else { Err("it names a stream that is not there") };
            }
            TraceEventKind::Collective { stream, operation, .. } => {
                let are_there = is_stream(stream) && (operation as usize) < self.operations.len();
                return if are_there {
                    Ok(())
                } else {
                    Err("it names a stream or an operation that is not there")
                };
            }
            TraceEventKind::Reserve { device, .. } | TraceEventKind::Release { device, .. } => {
                let is_device = (device as usize) < self.devices.len();
                return if is_device { Ok(()) } else { Err("it names a device that is not there") };
            }
        };
        let (Some(state), Some(allocation)) = (states.get_mut(memory), self.allocations.get(memory)) else {
            return Err("it names an allocation that is not there");
        };
        match (*what, *state) {
            (TraceEventKind::Allocate { .. } | TraceEventKind::Fail { .. }, State::Alive | State::Gone) => {
                return Err("it makes memory of which something was said before");
            }
            (TraceEventKind::Free { .. } | TraceEventKind::Use { .. }, State::Gone) => {
                return Err("it uses or frees memory that is gone");
            }
            (
                TraceEventKind::Allocate { .. } | TraceEventKind::Fail { .. } | TraceEventKind::Free { .. },
                _,
            ) if allocation.kind.is_none() => {
                return Err("foreign memory is not made or freed");
            }
            (TraceEventKind::Use { from, bytes, stream, operation, .. }, _) => {
                if from.checked_add(bytes).is_none_or(|end| end > allocation.bytes) {
                    return Err("it uses bytes past the end");
                }
                if !stream.is_none_or(is_stream) || operation as usize >= self.operations.len() {
                    return Err("it names a stream or an operation that is not there");
                }
            }
            _ => {}
        }
        *state = match what {
            TraceEventKind::Free { .. } | TraceEventKind::Fail { .. } => State::Gone,
            _ => State::Alive,
        };
        Ok(())
    }
}
