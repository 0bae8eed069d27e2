//! A trace as a memory snapshot of PyTorch, which <https://pytorch.org/memory_viz> opens.

use super::format::{Trace, TraceEventKind, TraceKind};
use gpumem_core::MemoryKind;
use serde_json::{Value, json};

/// Addresses of a snapshot lie at multiples of so many bytes.
const ALIGN: u64 = 512;

impl Trace {
    /// Returns the device memory of the trace as JSON of a PyTorch memory snapshot, for <https://pytorch.org/memory_viz>.
    /// [`from_torch`](Self::from_torch) reads it too.
    ///
    /// A trace has no addresses: each allocation gets its own, and a segment of its size, which comes and goes with it: the
    /// viewer begins with the segments at the end, undoes the events, and wants a segment for each block. The name
    /// of an allocation, or its operation, is its only stack frame. Times are whole microseconds. The snapshot is empty if the trace
    /// contradicts itself ([`check`](Self::check)), and without allocations whose addresses would pass 2^63 bytes.
    pub fn to_memory_viz(&self) -> String {
        let mut histories: Vec<Vec<Value>> = vec![Vec::new(); self.devices.len()];
        let mut segments = Vec::new();
        if self.check().is_ok() {
            let addresses = self.addresses();
            let mut alive = self.older();
            for event in &self.events {
                let (memory, actions): (u32, &[&str]) = match event.what {
                    TraceEventKind::Allocate { memory } => (memory, &["segment_alloc", "alloc"]),
                    TraceEventKind::Free { memory } => {
                        (memory, &["free_requested", "free_completed", "segment_free"])
                    }
                    TraceEventKind::Fail { memory } => (memory, &["oom"]),
                    _ => continue,
                };
                let memory = memory as usize;
                alive[memory] = matches!(event.what, TraceEventKind::Allocate { .. });
                let Some(address) = addresses[memory] else { continue };
                let history = &mut histories[self.allocations[memory].device as usize];
                let time = self.start.saturating_add(event.time) / 1000;
                history.extend(actions.iter().map(|action| self.viz_entry(action, memory, address, time)));
            }
            let alive = (0..alive.len()).filter(|memory| alive[*memory]);
            let alive = alive.filter_map(|memory| Some((memory, addresses[memory]?)));
            segments.extend(alive.map(|(memory, address)| self.viz_segment(memory, address)));
        }
        json!({ "segments": segments, "device_traces": histories }).to_string()
    }

    /// An address for each piece of device memory, 0 for what was refused; none for other memory.
    fn addresses(&self) -> Vec<Option<u64>> {
        let (device, refused) = (TraceKind::of(MemoryKind::Device), self.refused());
        let mut next = ALIGN;
        let place = |(memory, allocation): (usize, &super::TraceAllocation)| {
            if allocation.kind != device || refused.contains(&memory) {
                return (allocation.kind == device).then_some(0);
            }
            let end = next.checked_add(allocation.bytes.max(1))?.checked_next_multiple_of(ALIGN)?;
            (end <= i64::MAX as u64).then(|| std::mem::replace(&mut next, end))
        };
        self.allocations.iter().enumerate().map(place).collect()
    }

    fn viz_entry(&self, action: &str, memory: usize, address: u64, time: u64) -> Value {
        let (bytes, stream, frames) = self.viz_fields(memory);
        // The viewer expects the free memory in place of an address. The trace does not know it.
        let (place, address) = if action == "oom" { ("device_free", 0) } else { ("addr", address) };
        json!({
            "action": action, place: address, "size": bytes, "stream": stream, "time_us": time, "frames": frames,
        })
    }

    fn viz_segment(&self, memory: usize, address: u64) -> Value {
        let (bytes, stream, frames) = self.viz_fields(memory);
        json!({
            "device": self.allocations[memory].device, "address": address, "total_size": bytes,
            "allocated_size": bytes, "active_size": bytes, "requested_size": bytes, "stream": stream,
            "segment_type": "large", "segment_pool_id": [0, 0], "is_expandable": false, "frames": [],
            "blocks": [{
                "address": address, "size": bytes, "requested_size": bytes, "state": "active_allocated",
                "frames": frames,
            }],
        })
    }

    /// Bytes, stream and frames.
    fn viz_fields(&self, memory: usize) -> (u64, u64, Value) {
        let allocation = &self.allocations[memory];
        let stream = allocation.stream.map_or(0, |stream| self.streams[stream as usize].number);
        let (_, label) = self.label(memory);
        (allocation.bytes, stream, json!([{ "filename": "", "line": 0, "name": label }]))
    }
}
