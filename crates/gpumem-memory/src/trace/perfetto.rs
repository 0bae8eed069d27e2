//! A trace in the Trace Event Format, which <https://ui.perfetto.dev> and `chrome://tracing` open.

use super::format::{Trace, TraceEvent, TraceEventKind};
use serde_json::{Map, Value, json};
use std::fmt::Write as _;

/// The process under which threads and streams stand. Devices follow it.
const PROGRAM: u32 = 1;

/// Process and thread, the row in which an event is drawn.
type Row = (u32, u32);

/// One event of the format. Times are microseconds. `ph` is `M` for a name, `C` for a counter, `b` and `e` for the begin and
/// the end of intervals that may overlap, `X` for a slice and `i` for a moment.
fn event(ph: &str, (pid, tid): Row, name: &str, ns: u64, args: Value) -> Value {
    let ts = ns as f64 / 1e3;
    json!({ "ph": ph, "name": name, "cat": "gpumem", "ts": ts, "pid": pid, "tid": tid, "args": args })
}

/// Something that took `ns` until `end`.
fn slice(row: Row, name: &str, end: u64, ns: u64, args: Value) -> Value {
    let mut event = event("X", row, name, end.saturating_sub(ns), args);
    event["dur"] = json!(ns.min(end) as f64 / 1e3);
    event
}

fn device_row(device: u32) -> Row {
    (PROGRAM + 1 + device, 0)
}

impl Trace {
    /// Returns the trace as JSON in the Trace Event Format, for <https://ui.perfetto.dev> and `chrome://tracing`:
    /// memory over time for each device and kind, which allocations held memory at the peak, every allocation from its
    /// begin to its end, and a row for each thread and stream. Contains no events if the trace contradicts itself
    /// ([`check`](Self::check)).
    pub fn to_perfetto(&self) -> String {
        let mut text = String::from("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[");
        let mut separator = "";
        let mut write = |event: Value| {
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
    fn write_names(&self, write: &mut impl FnMut(Value)) {
        let mut name = |row, what, name: String| write(event("M", row, what, 0, json!({ "name": name })));
        name((PROGRAM, 0), "process_name", "program".into());
        for (device, about) in (0..).zip(&self.devices) {
            name(device_row(device), "process_name", about.name.clone());
        }
        for (index, thread) in (0..).zip(&self.threads) {
            let called = thread.name.as_deref().unwrap_or_default();
            name(self.thread_row(index), "thread_name", format!("thread {} {called}", thread.number));
        }
        for (index, stream) in (0..).zip(&self.streams) {
            name(self.stream_row(index), "thread_name", format!("stream {}", stream.number));
        }
    }

    /// Writes memory over time, the holders at each peak, and the memory that was allocated before the trace began.
    fn write_memory(&self, write: &mut impl FnMut(Value)) {
        for usage in self.usage() {
            let name = format!("{} memory", usage.kind.word());
            for (time, used, reserved) in usage.steps {
                // Viewers stack the two, so their sum is what the resource holds.
                let bytes = json!({ "in use": used, "reserved, not in use": reserved.saturating_sub(used) });
                write(event("C", device_row(usage.device), &name, time, bytes));
            }
        }
        for peak in self.peaks() {
            let holders = peak.holders.into_iter().map(|holder| (holder.name, holder.bytes.into()));
            let args = json!({ "bytes": peak.bytes, "held by": holders.collect::<Map<_, _>>() });
            let name = format!("peak of {} memory", peak.kind.word());
            let mut moment = event("i", device_row(peak.device), &name, peak.time, args);
            // In the row of the whole device.
            moment["s"] = json!("p");
            write(moment);
        }
        for (memory, _) in (0..).zip(self.older()).filter(|(_, is_older)| *is_older) {
            write(self.allocation("b", memory, 0));
        }
    }

    fn write_event(&self, &TraceEvent { time, thread, what }: &TraceEvent, write: &mut impl FnMut(Value)) {
        let thread = self.thread_row(thread);
        let moment = |row, name: &str, args| {
            let mut event = event("i", row, name, time, args);
            event["s"] = json!("t");
            event
        };
        match what {
            TraceEventKind::Allocate { memory } => write(self.allocation("b", memory, time)),
            TraceEventKind::Free { memory } => write(self.allocation("e", memory, time)),
            TraceEventKind::Fail { memory } => {
                write(moment(thread, "out of memory", self.allocation("b", memory, time)["args"].take()));
            }
            TraceEventKind::Use { memory, from, bytes, write: writes, stream, submission, operation } => {
                let (_, holder) = self.label(memory as usize);
                let args = json!({
                    "memory": holder, "id": memory, "from": from, "bytes": bytes, "write": writes,
                    "submission": submission,
                });
                let row = stream.map_or(thread, |stream| self.stream_row(stream));
                write(moment(row, &self.operations[operation as usize], args));
            }
            TraceEventKind::Wait { stream, of, submission, took } => {
                let name = format!("wait for stream {}", self.streams[of as usize].number);
                let args = json!({ "submission": submission });
                write(match stream {
                    Some(stream) => moment(self.stream_row(stream), &name, args),
                    None => slice(thread, &name, time, took, args),
                });
            }
            TraceEventKind::Collective { stream, operation, sequence, rank, bytes, wait, took } => {
                let (row, operation) = (self.stream_row(stream), &self.operations[operation as usize]);
                let args = json!({ "sequence": sequence, "rank": rank, "bytes": bytes });
                if wait > 0 {
                    let name = format!("wait of {operation}");
                    write(slice(row, &name, time.saturating_sub(took), wait, args.clone()));
                }
                write(slice(row, operation, time, took, args));
            }
            // In the counters.
            TraceEventKind::Reserve { .. } | TraceEventKind::Release { .. } => {}
        }
    }

    /// The begin or the end of a piece of memory.
    fn allocation(&self, ph: &str, memory: u32, time: u64) -> Value {
        let allocation = &self.allocations[memory as usize];
        let operation = allocation.operation.map(|operation| &self.operations[operation as usize]);
        let kind = allocation.kind.map_or("foreign", |kind| kind.word());
        let args = json!({ "bytes": allocation.bytes, "align": allocation.align, "kind": kind, "operation": operation });
        let (_, name) = self.label(memory as usize);
        let mut event = event(ph, device_row(allocation.device), name, time, args);
        (event["cat"], event["id"]) = (kind.into(), memory.to_string().into());
        event
    }

    fn thread_row(&self, index: u32) -> Row {
        (PROGRAM, index + 1)
    }

    fn stream_row(&self, index: u32) -> Row {
        (PROGRAM, self.threads.len() as u32 + index + 1)
    }
}
