//! Synthetic traces.

use gpumem_runtime::trace::{
    FORMAT, Trace, TraceAllocation, TraceDevice, TraceEvent, TraceEventKind, TraceKind, TraceStream,
    TraceThread,
};
use proptest::prelude::*;

/// One choice; its meaning depends on the live arrays.
#[derive(Debug, Clone)]
struct Choice {
    what: u8,
    which: usize,
    thread: u32,
    stream: u32,
    bytes: u64,
    pause: u64,
}

/// The choices that a trace is made from.
#[derive(Debug, Clone)]
pub(crate) struct Recipe {
    threads: u32,
    streams: u32,
    /// Allocations from before the trace.
    older: usize,
    choices: Vec<Choice>,
}

impl Recipe {
    pub(crate) fn any() -> impl Strategy<Value = Self> {
        let bytes = prop_oneof![1u64..100, 100u64..10_000, 10_000u64..1_000_000];
        let choice = (any::<u8>(), any::<usize>(), any::<u32>(), any::<u32>(), bytes, 0u64..3);
        let choice = choice.prop_map(|(what, which, thread, stream, bytes, pause)| Choice {
            what,
            which,
            thread,
            stream,
            bytes,
            pause,
        });
        (1u32..5, 1u32..5, 0usize..4, prop::collection::vec(choice, 0..120))
            .prop_map(|(threads, streams, older, choices)| Self { threads, streams, older, choices })
    }

    pub(crate) fn trace(&self) -> Trace {
        let mut trace = Trace {
            format: FORMAT,
            start: 17,
            span: 0,
            lost: 0,
            devices: vec![TraceDevice { name: "host:0".into(), total: 1 << 30, start: Vec::new() }],
            streams: (0..self.streams).map(|number| TraceStream { number: 3 + u64::from(number) }).collect(),
            threads: (0..self.threads)
                .map(|number| TraceThread { number: number.into(), name: None })
                .collect(),
            names: vec!["weights".into(), "</script> & \"quotes\"".into()],
            operations: vec!["device_array".into(), "fill".into()],
            allocations: Vec::new(),
            events: Vec::new(),
        };
        let kinds: Vec<TraceKind> = TraceKind::all().filter(|kind| kind.word() != "managed-host").collect();
        let allocation = |choice: Option<&Choice>, bytes: u64| TraceAllocation {
            device: 0,
            kind: Some(kinds[choice.map_or(0, |choice| choice.which % kinds.len())]),
            bytes,
            align: 1 << choice.map_or(0, |choice| choice.which % 9),
            name: choice.and_then(|choice| (choice.what % 3).checked_sub(1)).map(u32::from),
            operation: choice.map(|_| 0),
            stream: choice.and_then(|choice| (choice.stream % (self.streams + 1)).checked_sub(1)),
            host_first: false,
        };
        let mut alive: Vec<u32> = (0..self.older as u32).collect();
        trace.allocations.extend(alive.iter().map(|number| allocation(None, 100 << number)));
        let mut time = 0;
        for choice in &self.choices {
            time += choice.pause;
            let stream = choice.stream % self.streams;
            let some = (!alive.is_empty()).then(|| choice.which % alive.len().max(1));
            let what = match (choice.what % 8, some) {
                (0 | 1, Some(at)) => TraceEventKind::Free { memory: alive.swap_remove(at) },
                (2..=4, Some(at)) => {
                    let memory = alive[at];
                    let whole = trace.allocations[memory as usize].bytes;
                    let from = choice.bytes % whole;
                    TraceEventKind::Use {
                        memory,
                        from,
                        bytes: whole - from,
                        write: choice.which % 2 == 0,
                        stream: (choice.what != 4).then_some(stream),
                        submission: time,
                        operation: 1,
                    }
                }
                (5, _) => {
                    let by = (choice.which % 2 == 0).then_some(choice.thread % self.streams);
                    TraceEventKind::Wait { stream: by, of: stream, submission: time, took: choice.pause }
                }
                (6, _) if choice.which % 4 == 0 => {
                    trace.allocations.push(allocation(Some(choice), choice.bytes));
                    TraceEventKind::Fail { memory: trace.allocations.len() as u32 - 1 }
                }
                _ => {
                    trace.allocations.push(allocation(Some(choice), choice.bytes));
                    alive.push(trace.allocations.len() as u32 - 1);
                    TraceEventKind::Allocate { memory: trace.allocations.len() as u32 - 1 }
                }
            };
            trace.events.push(TraceEvent { time, thread: choice.thread % self.threads, what });
        }
        trace.span = time + 1;
        trace
    }
}
