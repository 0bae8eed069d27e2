//! A trace in the Trace Event Format, which <https://ui.perfetto.dev> and `chrome://tracing` open.

use super::format::{Trace, TraceEvent, TraceEventKind};
use serde::Serialize;
use serde_json::{Value, json};
use std::fmt::Write as _;

/// The process under which threads and streams stand. Devices follow it.
const PROGRAM: u32 = 1;

/// One event of the format. Times are microseconds.
#[derive(Serialize)]
struct Event<'a> {
    /// `M`: a name. `C`: a counter. `b`, `e`: begin and end of intervals that may overlap. `X`: a slice. `i`: a moment.
    ph: &'static str,
    name: &'a str,
    cat: &'static str,
    ts: f64,
    pid: u32,
    tid: u32,
    args: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    dur: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    /// Where a moment is drawn: `t` in the row of its thread, `p` in the row of its process.
    #[serde(skip_serializing_if = "Option::is_none")]
    s: Option<&'static str>,
}

impl<'a> Event<'a> {
    fn new(ph: &'static str, (pid, tid): (u32, u32), name: &'a str, ns: u64, args: Value) -> Self {
        let s = (ph == "i").then_some("t");
        Self { ph, name, cat: "gpumem", ts: microseconds(ns), pid, tid, args, dur: None, id: None, s }
    }
}

fn microseconds(ns: u64) -> f64 {
    ns as f64 / 1e3
}

impl Trace {
    /// Returns the trace as JSON in the Trace Event Format, for <https://ui.perfetto.dev> and `chrome://tracing`:
    /// memory over time for each device and kind, which allocations held memory at the peak, every allocation from its
    /// begin to its end, and a row for each thread and stream. Contains no events if the trace contradicts itself
    /// ([`check`](Self::check)).
    pub fn to_perfetto(&self) -> String {
        let mut text = String::from("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[");
        let mut separator = "";
        let mut write = |event: Event<'_>| {
            // Nothing in it can fail: names and numbers.
            let event = serde_json::to_string(&event).unwrap_or_default();
            let _ = write!(text, "{separator}\n{event}");
            separator = ",";
        };
        if self.check().is_ok() {
            self.write_names(&mut write);
            self.write_memory(&mut write);
            self.events.iter().for_each(|event| self.write_event(event, &mut write));
        }
        text + "\n]}\n"
    }

    /// Writes the names of processes and threads. No two threads share a number.
    fn write_names(&self, write: &mut impl FnMut(Event<'_>)) {
        let mut name =
            |place, what, name: String| write(Event::new("M", place, what, 0, json!({ "name": name })));
        name((PROGRAM, 0), "process_name", "program".into());
        for (device, about) in (0..).zip(&self.devices) {
            name((device_id(device), 0), "process_name", about.name.clone());
        }
        for (index, thread) in (0..).zip(&self.threads) {
            let called = thread.name.as_deref().unwrap_or_default();
            name(self.thread(index), "thread_name", format!("thread {} {called}", thread.number));
        }
        for (index, stream) in (0..).zip(&self.streams) {
            name(self.stream(index), "thread_name", format!("stream {}", stream.number));
        }
    }

    /// Writes memory over time, the holders at each peak, and the memory that was allocated before the trace began.
    fn write_memory(&self, write: &mut impl FnMut(Event<'_>)) {
        for usage in self.usage() {
            let name = format!("{} memory", usage.kind.word());
            for (time, used, reserved) in usage.steps {
                // Viewers stack the two, so their sum is what the resource holds.
                let bytes = json!({ "in use": used, "reserved, not in use": reserved.saturating_sub(used) });
                write(Event::new("C", (device_id(usage.device), 0), &name, time, bytes));
            }
        }
        for peak in self.peaks() {
            let holders: serde_json::Map<String, Value> =
                peak.holders.into_iter().map(|holder| (holder.name, holder.bytes.into())).collect();
            let (name, args) = (
                format!("peak of {} memory", peak.kind.word()),
                json!({ "bytes": peak.bytes, "held by": holders }),
            );
            let moment = Event::new("i", (device_id(peak.device), 0), &name, peak.time, args);
            write(Event { s: Some("p"), ..moment });
        }
        for (memory, _) in (0..).zip(self.older()).filter(|(_, is_older)| *is_older) {
            write(self.allocation("b", memory, 0));
        }
    }

    fn write_event(&self, event: &TraceEvent, write: &mut impl FnMut(Event<'_>)) {
        let (time, thread) = (event.time, self.thread(event.thread));
        match event.what {
            TraceEventKind::Allocate { memory } => write(self.allocation("b", memory, time)),
            TraceEventKind::Free { memory } => write(self.allocation("e", memory, time)),
            TraceEventKind::Fail { memory } => {
                let args = self.allocation("b", memory, time).args;
                write(Event::new("i", thread, "out of memory", time, args));
            }
            TraceEventKind::Use { memory, from, bytes, write: writes, stream, submission, operation } => {
                let place = stream.map_or(thread, |stream| self.stream(stream));
                let (_, holder) = self.label(memory as usize);
                let args = json!({
                    "memory": holder, "id": memory, "from": from, "bytes": bytes, "write": writes,
                    "submission": submission,
                });
                write(Event::new("i", place, &self.operations[operation as usize], time, args));
            }
            TraceEventKind::Wait { stream, of, submission, took } => {
                let name = format!("wait for stream {}", self.streams[of as usize].number);
                let args = json!({ "submission": submission });
                match stream {
                    Some(stream) => write(Event::new("i", self.stream(stream), &name, time, args)),
                    // The time of a wait of the host is its end.
                    None => {
                        let start = Event::new("X", thread, &name, time.saturating_sub(took), args);
                        write(Event { dur: Some(microseconds(took.min(time))), ..start });
                    }
                }
            }
            TraceEventKind::Collective { stream, operation, sequence, rank, bytes, wait, took } => {
                let (place, operation) = (self.stream(stream), &self.operations[operation as usize]);
                let args = json!({ "sequence": sequence, "rank": rank, "bytes": bytes });
                let slice = |name: &str, end: u64, took: u64, write: &mut dyn FnMut(Event<'_>)| {
                    let start = Event::new("X", place, name, end.saturating_sub(took), args.clone());
                    write(Event { dur: Some(microseconds(took.min(end))), ..start });
                };
                if wait > 0 {
                    let name = format!("wait of {operation}");
                    slice(&name, time.saturating_sub(took), wait, write);
                }
                slice(operation, time, took, write);
            }
            // In the counters.
            TraceEventKind::Reserve { .. } | TraceEventKind::Release { .. } => {}
        }
    }

    /// The begin or the end of a piece of memory.
    fn allocation(&self, ph: &'static str, memory: u32, time: u64) -> Event<'_> {
        let allocation = &self.allocations[memory as usize];
        let operation = allocation.operation.map(|operation| &self.operations[operation as usize]);
        let kind = allocation.kind.map_or("foreign", |kind| kind.word());
        let args = json!({ "bytes": allocation.bytes, "align": allocation.align, "kind": kind, "operation": operation });
        let (_, name) = self.label(memory as usize);
        let event = Event::new(ph, (device_id(allocation.device), 0), name, time, args);
        Event { cat: kind, id: Some(memory.to_string()), ..event }
    }

    /// Process and thread of a thread.
    fn thread(&self, index: u32) -> (u32, u32) {
        (PROGRAM, index + 1)
    }

    /// Process and thread of a stream.
    fn stream(&self, index: u32) -> (u32, u32) {
        (PROGRAM, self.threads.len() as u32 + index + 1)
    }
}

fn device_id(device: u32) -> u32 {
    PROGRAM + 1 + device
}
