//! Synthetic traces: many streams and threads, made from a seed.

use anyhow::Result;
use gpumem::{
    MemoryKind,
    trace::{
        FORMAT, Trace, TraceAllocation, TraceDevice, TraceEvent, TraceEventKind, TraceKind, TraceStream,
        TraceThread,
    },
};

/// The parameters of a trace. The same values give the same trace.
#[derive(Debug, Clone, Copy)]
pub(super) struct Synthetic {
    pub(super) seed: u64,
    pub(super) threads: u32,
    pub(super) streams: u32,
    /// Allocations.
    pub(super) steps: usize,
    /// Most bytes in use at a time.
    pub(super) most_bytes: u64,
    /// Of a hundred frees and uses, so many are another thread's, or on another stream.
    pub(super) foreign: u64,
}

struct Random(u64);

impl Random {
    /// The next number below `bound` (Knuth's generator; the upper bits are the good ones).
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound.max(1)
    }
}

/// Memory that is alive: its number, its thread and its stream.
type Alive = Vec<(u32, u32, u32)>;

impl Synthetic {
    /// Allocations of 256 bytes to 1 MiB, as many of each power of two; each is written, some are read again, and freed at
    /// random.
    pub(super) fn trace(&self) -> Result<Trace> {
        let mut random = Random(self.seed);
        let mut trace = Trace {
            format: FORMAT,
            start: 0,
            span: 0,
            lost: 0,
            devices: vec![TraceDevice { name: "synthetic".into(), total: 1 << 40, start: Vec::new() }],
            streams: (1..=self.streams).map(|number| TraceStream { number: number.into() }).collect(),
            threads: (1..=self.threads)
                .map(|number| TraceThread { number: number.into(), name: None })
                .collect(),
            names: Vec::new(),
            operations: vec!["uninit_array".into(), "kernel".into()],
            allocations: Vec::new(),
            events: Vec::new(),
        };
        let mut alive: Alive = Vec::new();
        let mut used = 0;
        while trace.allocations.len() < self.steps {
            let power = random.below(13);
            let bytes = 256 + random.below(256 << power);
            while used + bytes > self.most_bytes || random.below(10) < 4 {
                let Some(freed) = self.free(&mut random, &mut alive, &mut trace) else { break };
                used -= freed;
            }
            let thread = random.below(self.threads.into()) as u32;
            // Streams are shared out among the threads.
            let own = random.below(u64::from(self.streams.div_ceil(self.threads))) as u32;
            let stream = (thread + own * self.threads) % self.streams;
            let memory = trace.allocations.len() as u32;
            trace.allocations.push(TraceAllocation {
                device: 0,
                kind: TraceKind::of(MemoryKind::Device),
                bytes,
                align: 256,
                name: None,
                operation: Some(0),
                stream: Some(stream),
                host_first: false,
            });
            used += bytes;
            self.add(&mut trace, thread, TraceEventKind::Allocate { memory });
            self.touch(&mut random, &mut trace, (memory, thread, stream), true);
            if random.below(3) == 0 {
                let by = self.other(&mut random, stream, self.streams);
                self.touch(&mut random, &mut trace, (memory, thread, by), false);
            }
            alive.push((memory, thread, stream));
        }
        while self.free(&mut random, &mut alive, &mut trace).is_some() {}
        trace.check()?;
        Ok(trace)
    }

    /// One of `count`, usually that one.
    fn other(&self, random: &mut Random, usual: u32, count: u32) -> u32 {
        match random.below(100) < self.foreign {
            true => random.below(count.into()) as u32,
            false => usual,
        }
    }

    fn free(&self, random: &mut Random, alive: &mut Alive, trace: &mut Trace) -> Option<u64> {
        if alive.is_empty() {
            return None;
        }
        let (memory, thread, _) = alive.swap_remove(random.below(alive.len() as u64) as usize);
        let thread = self.other(random, thread, self.threads);
        self.add(trace, thread, TraceEventKind::Free { memory });
        Some(trace.allocations[memory as usize].bytes)
    }

    fn touch(
        &self,
        random: &mut Random,
        trace: &mut Trace,
        (memory, thread, stream): (u32, u32, u32),
        write: bool,
    ) {
        let thread = self.other(random, thread, self.threads);
        let (bytes, submission) = (trace.allocations[memory as usize].bytes, trace.span);
        let stream = Some(stream);
        self.add(
            trace,
            thread,
            TraceEventKind::Use { memory, from: 0, bytes, write, stream, submission, operation: 1 },
        );
    }

    fn add(&self, trace: &mut Trace, thread: u32, what: TraceEventKind) {
        trace.span += 100;
        trace.events.push(TraceEvent { time: trace.span, thread, what });
    }
}

/// How many frees are by another thread than the allocation.
#[cfg(test)]
pub(super) fn freed_by_others(trace: &Trace) -> usize {
    let mut makers = vec![0; trace.allocations.len()];
    let mut count = 0;
    for event in &trace.events {
        match event.what {
            TraceEventKind::Allocate { memory } => makers[memory as usize] = event.thread,
            TraceEventKind::Free { memory } if makers[memory as usize] != event.thread => count += 1,
            _ => {}
        }
    }
    count
}
