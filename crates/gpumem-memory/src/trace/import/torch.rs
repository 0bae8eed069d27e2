//! Memory snapshots of PyTorch.

use super::{pickle, tables::Tables, value::Values};
use crate::trace::{Trace, TraceDevice, TraceError, TraceEventKind};
use std::{
    collections::{BTreeMap, HashMap, HashSet},
    io::Read,
};

/// PyTorch's allocator rounds every size up to a multiple of so many bytes.
const ALIGN: u64 = 512;

/// When the memory of a snapshot is free. The truth of another allocator lies between both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FreeTime {
    /// When the program gave it up: work on other streams may still use it.
    Requested,
    /// When no stream used it any more, as PyTorch found.
    Completed,
}

impl Trace {
    /// Reads a memory snapshot of PyTorch (`torch.cuda.memory._dump_snapshot`), a pickle or JSON, as a trace with a device
    /// for each device of the snapshot. Nothing of a pickle is executed.
    ///
    /// Memory that was there before the history begins is found too. Private pools become names. Where a device was out of
    /// memory, [`total`](TraceDevice::total) is what PyTorch could have held at the last time; otherwise it is 0.
    ///
    /// # Errors
    /// Returns [`TraceError::Io`] if the reader fails, [`TraceError::Json`] for a text that is no JSON,
    /// [`TraceError::Import`] with the byte of a pickle or the event that is malformed, or that contradicts the events before it, and
    /// [`TraceError::Inconsistent`] if sums of bytes are no number.
    pub fn from_torch(mut reader: impl Read, free: FreeTime) -> Result<Self, TraceError> {
        let mut bytes = Vec::new();
        reader.read_to_end(&mut bytes)?;
        let (values, snapshot) = match bytes.first() {
            Some(0x80) => pickle::read(&bytes)?,
            _ => {
                let mut values = Values::default();
                let snapshot = values.add_json(serde_json::from_slice(&bytes)?);
                (values, snapshot)
            }
        };
        let wrong = |why| TraceError::Import { what: "entry", index: 0, why };
        let traces = values.list(snapshot, "device_traces").ok_or("the snapshot has no `device_traces`");
        let traces = traces.map_err(wrong)?;
        let segments = values.list(snapshot, "segments").ok_or("the snapshot has no `segments`");
        let segments = Segments::read(&values, segments.map_err(wrong)?, free, bytes.len()).map_err(wrong)?;
        let mut import = Import {
            values: &values,
            segments,
            free,
            tables: Tables::new("torch", ALIGN),
            entries: 0,
            most: bytes.len(),
        };
        for (device, entries) in (0..).zip(traces) {
            let entries =
                values.as_list(*entries).ok_or("the trace of a device is no list").map_err(wrong)?;
            import.device(device, entries)?;
        }
        import.finish()
    }
}

struct Segment {
    bytes: u64,
    pool: Option<String>,
}

/// The state at the end: segments and live blocks, each by device and address.
#[derive(Default)]
struct Segments {
    segments: BTreeMap<(u64, u64), Segment>,
    /// Bytes and stream of each.
    live: BTreeMap<(u64, u64), (u64, u64)>,
}

impl Segments {
    fn read(values: &Values, list: &[u32], free: FreeTime, most: usize) -> Result<Self, &'static str> {
        let mut found = Self::default();
        let mut seen = 0;
        for &segment in list {
            let number = |name| values.number(segment, name);
            let (address, bytes) =
                number("address").zip(number("total_size")).ok_or("a segment lacks its address or size")?;
            let (device, stream) = (number("device").unwrap_or(0), number("stream").unwrap_or(0));
            let pool = values.list(segment, "segment_pool_id").unwrap_or(&[]);
            let pool: Vec<u64> = pool.iter().take(2).filter_map(|part| values.as_number(*part)).collect();
            let pool = match *pool {
                [first, second] if (first, second) != (0, 0) => {
                    Some(format!("private pool ({first}, {second})"))
                }
                _ => None,
            };
            found.segments.insert((device, address), Segment { bytes, pool });
            let mut at = address;
            for &block in values.list(segment, "blocks").unwrap_or(&[]) {
                seen += 1;
                if seen > most {
                    return Err("the snapshot repeats its blocks");
                }
                let bytes = values.number(block, "size").ok_or("a block lacks its size")?;
                let is_live = match values.text(block, "state") {
                    Some("active_allocated") => true,
                    Some("active_pending_free" | "active_awaiting_free") => free == FreeTime::Completed,
                    _ => false,
                };
                let place = values.number(block, "address").unwrap_or(at);
                if is_live {
                    found.live.insert((device, place), (bytes, stream));
                }
                at = place.checked_add(bytes).ok_or("a block ends past the last address")?;
            }
        }
        Ok(found)
    }

    /// The private pool of an address.
    fn pool(&self, device: u64, address: u64) -> Option<String> {
        let ((of, start), segment) = self.segments.range(..=(device, address)).next_back()?;
        (*of == device && address - start < segment.bytes).then(|| segment.pool.clone()).flatten()
    }
}

struct Import<'a> {
    values: &'a Values,
    segments: Segments,
    free: FreeTime,
    tables: Tables,
    /// Entries that were read. More than the file has bytes are repetitions, which could take the square of its length.
    entries: u64,
    most: usize,
}

/// What is known of a device.
struct State {
    device: u32,
    /// Memory at each address; `None` where it is gone.
    memory: HashMap<u64, Option<u32>>,
    /// Bytes of segments against the beginning.
    grown: i128,
    time: u64,
    /// The budget against the segments at the beginning.
    budget: Option<i128>,
}

impl Import<'_> {
    fn device(&mut self, device: u32, entries: &[u32]) -> Result<(), TraceError> {
        let (memory, grown, time, budget) = (HashMap::new(), 0, 0, None);
        let mut state = State { device, memory, grown, time, budget };
        for &entry in entries {
            let index = self.entries;
            self.entries += 1;
            let wrong = |why| TraceError::Import { what: "entry", index, why };
            if self.entries > self.most as u64 {
                return Err(wrong("the snapshot repeats its entries"));
            }
            self.entry(&mut state, entry).map_err(wrong)?;
        }
        let State { memory, grown, budget, .. } = state;
        let device_number = u64::from(device);
        let of_device = (device_number, 0)..=(device_number, u64::MAX);
        let older: Vec<(u64, (u64, u64))> =
            self.segments.live.range(of_device.clone()).map(|((_, at), block)| (*at, *block)).collect();
        for (address, (bytes, stream)) in older {
            // Never freed in the history, nor made in it.
            if !memory.contains_key(&address) {
                self.memory(device, address, bytes, stream);
            }
        }
        let end: i128 =
            self.segments.segments.range(of_device).map(|(_, segment)| i128::from(segment.bytes)).sum();
        let start = (end - grown).max(0);
        let start_bytes = u64::try_from(start).unwrap_or(u64::MAX);
        let total = budget.map_or(0, |budget| usize::try_from(budget + start).unwrap_or(usize::MAX));
        let start = vec![self.tables.start(start_bytes)];
        self.tables.trace.devices.push(TraceDevice { name: format!("cuda:{device}"), total, start });
        Ok(())
    }

    fn memory(&mut self, device: u32, address: u64, bytes: u64, stream: u64) -> u32 {
        let pool = self.segments.pool(device.into(), address);
        self.tables.memory(device, bytes, stream, pool)
    }

    fn entry(&mut self, state: &mut State, entry: u32) -> Result<(), &'static str> {
        let values = self.values;
        let number = |name| values.number(entry, name);
        let action = values.text(entry, "action").ok_or("it has no action")?;
        let (device, kind) = (state.device, self.tables.kind);
        let (bytes, stream) = (number("size").ok_or("it has no size"), number("stream").unwrap_or(0));
        let address = number("addr").ok_or("it has no address");
        state.time = state.time.max(number("time_us").unwrap_or(0).saturating_mul(1000));
        let what = match (action, self.free) {
            ("alloc", _) => {
                let address = address?;
                let memory = self.memory(device, address, bytes?, stream);
                if let Some(Some(_)) = state.memory.insert(address, Some(memory)) {
                    return Err("it allocates memory that is still there");
                }
                TraceEventKind::Allocate { memory }
            }
            ("free_requested", FreeTime::Requested) | ("free_completed", FreeTime::Completed) => {
                let address = address?;
                let memory = match state.memory.insert(address, None) {
                    Some(Some(memory)) => memory,
                    Some(None) => return Err("it frees memory that is gone"),
                    None => self.memory(device, address, bytes?, stream),
                };
                TraceEventKind::Free { memory }
            }
            ("segment_alloc" | "segment_map", _) => {
                state.grown += i128::from(bytes?);
                TraceEventKind::Reserve { device, kind, bytes: bytes? }
            }
            ("segment_free" | "segment_unmap", _) => {
                state.grown -= i128::from(bytes?);
                TraceEventKind::Release { device, kind, bytes: bytes? }
            }
            ("oom", _) => {
                let free = number("device_free").map(i128::from);
                state.budget = free.map(|free| free + state.grown).or(state.budget);
                TraceEventKind::Fail { memory: self.tables.memory(device, bytes?, stream, None) }
            }
            // Snapshots, marks of the user, the other kind of free, and what later versions add.
            _ => return Ok(()),
        };
        self.tables.event(state.time, 0, what);
        Ok(())
    }

    fn finish(self) -> Result<Trace, TraceError> {
        let mut trace = self.tables.trace;
        // A block may lie on a device without a history.
        let known: HashSet<u64> = (0..trace.devices.len() as u64).collect();
        if self.segments.segments.keys().any(|(device, _)| !known.contains(device)) {
            let why = "a segment lies on a device without a trace";
            return Err(TraceError::Import { what: "entry", index: 0, why });
        }
        trace.events.sort_by_key(|event| event.time);
        trace.start = trace.events.first().map_or(0, |event| event.time);
        let start = trace.start;
        trace.events.iter_mut().for_each(|event| event.time -= start);
        trace.span = trace.events.last().map_or(0, |event| event.time);
        trace.check()?;
        Ok(trace)
    }
}
