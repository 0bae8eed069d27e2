//! Logs of RMM's `logging_resource_adaptor`.

use super::tables::Tables;
use crate::trace::{Trace, TraceDevice, TraceError, TraceEventKind};
use std::{collections::HashMap, io::BufRead};

const DAY: u64 = 24 * 3600 * 1_000_000;
/// RMM aligns every allocation to so many bytes.
const ALIGN: u64 = 256;

impl Trace {
    /// Reads a log of RMM (`Thread,Time,Action,Pointer,Size,Stream`) as a trace of one device. Times that begin again at
    /// midnight go on. The log says nothing of the memory of the device, so that [`total`](TraceDevice::total) is 0.
    ///
    /// # Errors
    /// Returns [`TraceError::Io`] if the reader fails, and [`TraceError::Import`] with the line that is malformed,
    /// frees memory that is gone, or allocates memory that is still there.
    pub fn from_rmm_csv(reader: impl BufRead) -> Result<Self, TraceError> {
        let mut log = Log { tables: Tables::new("rmm", ALIGN), memory: HashMap::new(), first: None, last: 0 };
        for (line, text) in (1..).zip(reader.lines()) {
            let text = text?;
            if text.trim().is_empty() || (line == 1 && text.starts_with("Thread,")) {
                continue;
            }
            log.add(&text).map_err(|why| TraceError::Import { what: "line", index: line, why })?;
        }
        let Log { tables: Tables { mut trace, .. }, .. } = log;
        trace.devices.push(TraceDevice { name: "rmm".to_owned(), total: 0, start: Vec::new() });
        trace.span = trace.events.last().map_or(0, |event| event.time);
        trace.check()?;
        Ok(trace)
    }
}

struct Log {
    tables: Tables,
    /// The memory at each address; `None` where it is gone.
    memory: HashMap<u64, Option<u32>>,
    /// Microseconds of the first event, and of the last with the days before it.
    first: Option<u64>,
    last: u64,
}

impl Log {
    fn add(&mut self, text: &str) -> Result<(), &'static str> {
        let mut fields = text.trim_end().split(',');
        let mut next = || fields.next().ok_or("it has less than six fields");
        let [thread, time, action, pointer, bytes, stream] =
            [next()?, next()?, next()?, next()?, next()?, next()?];
        let thread = thread.parse().map_err(|_| "its thread is no number")?;
        let bytes = bytes.parse().map_err(|_| "its size is no number")?;
        let (pointer, stream) = (hexadecimal(pointer), hexadecimal(stream));
        let stream = stream.ok_or("its stream is no number")?;
        let pointer = pointer.ok_or("its pointer is no number");
        let time = self.time(time).ok_or("its time is no time of a day")?;
        let what = match action {
            "allocate" => {
                let memory = self.tables.memory(0, bytes, stream, None);
                if let Some(Some(_)) = self.memory.insert(pointer?, Some(memory)) {
                    return Err("it allocates memory that is still there");
                }
                TraceEventKind::Allocate { memory }
            }
            "allocate failure" => TraceEventKind::Fail { memory: self.tables.memory(0, bytes, stream, None) },
            "free" => match self.memory.insert(pointer?, None) {
                Some(Some(memory)) => TraceEventKind::Free { memory },
                Some(None) => return Err("it frees memory that is gone"),
                // Allocated before the log began.
                None => TraceEventKind::Free { memory: self.tables.memory(0, bytes, stream, None) },
            },
            _ => return Err("its action is none of `allocate`, `free` and `allocate failure`"),
        };
        self.tables.event(time, thread, what);
        Ok(())
    }

    /// Nanoseconds since the first event, unless they are no number.
    fn time(&mut self, text: &str) -> Option<u64> {
        let mut parts = text.split([':', '.']).map(|part| part.parse::<u64>().ok());
        let mut next = |limit: u64| parts.next().flatten().filter(|part| *part < limit);
        let [hours, minutes, seconds] = [next(24)?, next(60)?, next(61)?];
        let micros = next(1_000_000)?;
        let time = ((hours * 60 + minutes) * 60 + seconds) * 1_000_000 + micros;
        let first = *self.first.get_or_insert(time);
        self.last = self.last.max(first);
        let midnight = self.last - self.last % DAY;
        let is_next_day = time + DAY / 2 < self.last % DAY;
        // Threads write their lines a little out of order, which is no day.
        self.last = self.last.max(midnight + time + if is_next_day { DAY } else { 0 });
        (self.last - first).checked_mul(1000)
    }
}

fn hexadecimal(text: &str) -> Option<u64> {
    match text {
        "(nil)" => Some(0),
        _ => u64::from_str_radix(text.strip_prefix("0x").unwrap_or(text), 16).ok(),
    }
}
