//! One rank: its arrays, and what it measures.

use super::{
    Line, Operation, Times,
    folder::Folder,
    raw::{Places, Raw, Taken},
};
use anyhow::{Context, Result};
use gpumem::{
    Device, DeviceArray, DeviceView, Stream,
    any::AnyBackend,
    collectives::{Communicator, CommunicatorId, Max, Options, Sum},
    generic::{ArrayBase, Storage, StorageMut},
    s,
};
use ndarray::{Dimension, Ix2};
use std::time::{Duration, Instant};

/// Columns of a matrix, where there are so many.
const COLUMNS: usize = 1024;
/// Up to this size the host waits after each call too.
const SMALL: usize = 64 << 10;
/// Elements that are looked at from each end of a large destination.
const LOOKED_AT: usize = 4 << 20;

/// How long is measured.
#[derive(Debug, Clone, Copy)]
pub(super) struct Plan {
    pub(super) rounds: usize,
    /// Of one round of one way of calling.
    pub(super) round: Duration,
    pub(super) largest: usize,
}

/// A rank.
pub(super) struct Rank {
    rank: usize,
    ranks: usize,
    stream: Stream,
    ours: Communicator<AnyBackend>,
    check: Option<Communicator<AnyBackend>>,
    raw: Option<Box<dyn Raw>>,
    plan: Plan,
}

/// The arrays of a size.
struct Arrays {
    source: DeviceArray<f32, Ix2>,
    destination: DeviceArray<f32, Ix2>,
}

impl Rank {
    pub(super) fn join(
        name: &str,
        (rank, ranks): (usize, usize),
        folder: &Folder,
        plan: Plan,
    ) -> Result<Self> {
        let device = Device::open(name)?;
        let stream = device.stream()?;
        let join = |file: &str, check: bool| -> Result<Communicator<AnyBackend>> {
            let make = || Ok(CommunicatorId::for_device(&device)?.to_bytes().to_vec());
            let id = CommunicatorId::from_bytes(&folder.share(rank, file, make)?)?;
            let options = Options::new().timeout(Duration::from_secs(60)).check(check);
            let joined = Communicator::join(&device, &id, rank, ranks, &options)?;
            joined.on(&stream).barrier()?;
            stream.synchronize()?;
            Ok(joined)
        };
        let ours = join("ours", false)?;
        let is_gpu = device.capabilities().collective_library.is_some();
        let check = is_gpu.then(|| join("check", true)).transpose()?;
        let raw = raw(name, (rank, ranks), folder)?;
        Ok(Self { rank, ranks, stream, ours, check, raw, plan })
    }

    /// Measures everything, and gives each line away as soon as it is there.
    pub(super) fn measure(mut self, mut give: impl FnMut(Line) -> Result<()>) -> Result<()> {
        for operation in Operation::ALL {
            let mut bytes = 8;
            while bytes <= self.plan.largest {
                let line = self.line(operation, bytes);
                give(line.with_context(|| format!("{} of {bytes} bytes", operation.name()))?)?;
                bytes *= 8;
            }
        }
        Ok(())
    }

    fn line(&mut self, operation: Operation, bytes: usize) -> Result<Line> {
        let count = operation.block(bytes, self.ranks);
        let [given, got] = operation.blocks(self.ranks).map(|blocks| blocks * count);
        let mut wrong = 0;
        let mut line = Line {
            operation,
            ranks: self.ranks,
            bytes: given.max(got) * size_of::<f32>(),
            count,
            raw: None,
            raw_name: self.raw.as_ref().map_or("nothing", |raw| raw.name()).to_owned(),
            ours: Times::default(),
            strided: Times::default(),
            check: None,
            wrong: 0,
        };
        let mut packed = self.arrays((given, got), count, 1)?;
        let mut wide = self.arrays((given, got), count, 2)?;
        let places = |arrays: &Arrays| Places {
            source: arrays.source.address(),
            destination: arrays.destination.address(),
            count,
        };
        let places = places(&packed);
        self.reset(&mut packed, operation)?;
        self.reset(&mut wide, operation)?;
        // How long a call takes, as the slowest rank sees it: then all ranks make as many.
        let begin = Instant::now();
        for _ in 0..2 {
            self.call(operation, &mut packed, 1, false)?;
            self.call(operation, &mut wide, 2, false)?;
        }
        self.stream.synchronize()?;
        wrong += self.wrong(operation, &packed.destination.view())?;
        wrong += self.wrong(operation, &wide.destination.slice(s![.., ..;2])?)?;
        let calls = self.agree(begin.elapsed() / 4)?;
        let waits = if line.bytes <= SMALL { calls.min(100) } else { 0 };
        if let Some(mut raw) = self.raw.take() {
            self.reset(&mut packed, operation)?;
            raw.run(operation, places, 1)?;
            wrong += match raw.own_destination() {
                Some(own) => own
                    .iter()
                    .enumerate()
                    .filter(|(at, value)| **value != operation.expected((self.rank, self.ranks), at / count))
                    .count(),
                None => self.wrong(operation, &packed.destination.view())?,
            };
            self.raw = Some(raw);
            line.raw = Some(Times::default());
        }
        if self.check.is_some() {
            line.check = Some(Times::default());
        }
        for round in 0..self.plan.rounds {
            // They alternate in going first.
            for turn in [round % 2, 1 - round % 2] {
                match (&mut self.raw, &mut line.raw) {
                    (Some(raw), Some(times)) if turn == 0 => {
                        add(times, calls, waits, |calls| raw.run(operation, places, calls))?;
                    }
                    _ if turn == 1 => {
                        let times = &mut line.ours;
                        add(times, calls, waits, |calls| self.run(operation, &mut packed, 1, calls, false))?;
                    }
                    _ => {}
                }
            }
            add(&mut line.strided, calls, 0, |calls| self.run(operation, &mut wide, 2, calls, false))?;
            if let Some(times) = &mut line.check {
                let calls = calls.min(50);
                add(times, calls, 0, |calls| self.run(operation, &mut packed, 1, calls, true))?;
            }
        }
        line.wrong = wrong;
        Ok(line)
    }

    /// Arrays of matrices, of which only each `step`-th column is used.
    fn arrays(&self, (given, got): (usize, usize), count: usize, step: usize) -> Result<Arrays> {
        let columns = count.min(COLUMNS);
        let make = |elements: usize| {
            let mut array = self.stream.device_array::<f32, _>((elements / columns, columns * step))?;
            self.stream.fill(&mut array, -1.0)?;
            anyhow::Ok(array)
        };
        Ok(Arrays { source: make(given)?, destination: make(got)? })
    }

    /// Gives the arrays the values from before a call.
    fn reset(&self, arrays: &mut Arrays, operation: Operation) -> Result<()> {
        self.stream.fill(&mut arrays.source, Operation::given(self.rank))?;
        // A broadcast has one array.
        let is_root = operation == Operation::Broadcast && self.rank == 0;
        let value = if is_root { Operation::given(0) } else { -1.0 };
        self.stream.fill(&mut arrays.destination, value)?;
        Ok(self.stream.synchronize()?)
    }

    fn call(&self, operation: Operation, arrays: &mut Arrays, step: usize, checks: bool) -> Result<()> {
        let Arrays { source, destination } = arrays;
        if step == 1 {
            return self.call_on(operation, source, destination, checks);
        }
        let (source, mut destination) = (source.slice(s![.., ..;2])?, destination.slice_mut(s![.., ..;2])?);
        self.call_on(operation, &source, &mut destination, checks)
    }

    fn call_on<S, M>(
        &self,
        operation: Operation,
        source: &ArrayBase<S, Ix2>,
        to: &mut ArrayBase<M, Ix2>,
        checks: bool,
    ) -> Result<()>
    where
        S: Storage<Elem = f32, Backend = AnyBackend>,
        M: StorageMut<Elem = f32, Backend = AnyBackend>,
    {
        let stream = &self.stream;
        let ours = self.check.as_ref().filter(|_| checks).unwrap_or(&self.ours);
        match operation {
            Operation::AllReduce => ours.on(stream).all_reduce(source, to, Sum)?,
            Operation::AllGather => ours.on(stream).all_gather(source, to)?,
            Operation::ReduceScatter => ours.on(stream).reduce_scatter(source, to, Sum)?,
            Operation::Broadcast => ours.on(stream).broadcast(to, 0)?,
            Operation::SendReceive => {
                let (next, previous) =
                    ((self.rank + 1) % self.ranks, (self.rank + self.ranks - 1) % self.ranks);
                ours.group(stream, |group| {
                    group.send(source, next)?;
                    group.receive(to, previous)
                })?;
            }
        }
        Ok(())
    }

    fn run(
        &self,
        operation: Operation,
        arrays: &mut Arrays,
        step: usize,
        calls: usize,
        checks: bool,
    ) -> Result<Taken> {
        // The raw calls find the device current too.
        self.ours.device().with_current(|| {
            let start = Instant::now();
            for _ in 0..calls {
                self.call(operation, arrays, step, checks)?;
            }
            let enqueue = start.elapsed();
            self.stream.synchronize()?;
            Ok(Taken { enqueue, all: start.elapsed() })
        })
    }

    /// The number of calls in a round, of a call that takes so long: the same for all ranks.
    fn agree(&self, call: Duration) -> Result<usize> {
        let longest = self.ours.all_reduce_scalar(&self.stream, call.as_secs_f64(), Max)?;
        let calls = self.plan.round.as_secs_f64() / longest.max(1e-9);
        Ok(calls.clamp(1.0, 200.0) as usize)
    }

    /// Elements that do not have the value that they should.
    fn wrong(&self, operation: Operation, destination: &DeviceView<'_, f32, Ix2>) -> Result<usize> {
        let (rows, columns) = destination.raw_dim().into_pattern();
        self.meet()?;
        let each = (LOOKED_AT / columns).max(1);
        let block = rows / operation.blocks(self.ranks)[1];
        let mut wrong = 0;
        let (head, tail) = (rows.min(each), rows.saturating_sub(each).max(rows.min(each)));
        for part in [0..head, tail..rows] {
            let values = destination.slice(s![part.clone(), ..])?.copy_to_host()?;
            let expected =
                |row: usize| operation.expected((self.rank, self.ranks), (part.start + row) / block);
            wrong += values.indexed_iter().filter(|((row, _), value)| **value != expected(*row)).count();
        }
        self.meet()?;
        Ok(wrong)
    }

    /// Waits until all ranks are here. Ranks that share a device would otherwise wait for memory of each other's work.
    fn meet(&self) -> Result<()> {
        self.ours.on(&self.stream).barrier()?;
        Ok(self.stream.synchronize()?)
    }
}

/// Measures a round.
fn add(
    times: &mut Times,
    calls: usize,
    waits: usize,
    mut run: impl FnMut(usize) -> Result<Taken>,
) -> Result<()> {
    let micros = |time: Duration, calls: usize| time.as_secs_f64() * 1e6 / calls as f64;
    // The ranks come together.
    run(1)?;
    let Taken { enqueue, all } = run(calls)?;
    times.call.push(micros(all, calls));
    times.enqueue.push(micros(enqueue, calls));
    if waits > 0 {
        let begin = Instant::now();
        for _ in 0..waits {
            run(1)?;
        }
        times.wait.push(micros(begin.elapsed(), waits));
    }
    Ok(())
}

/// The reference for a device.
fn raw(device: &str, rank: (usize, usize), folder: &Folder) -> Result<Option<Box<dyn Raw>>> {
    match device.split(':').next() {
        Some("host") => Ok(Some(Box::new(super::raw_host::PlainLoop::new(rank.0, rank.1)))),
        #[cfg(feature = "cuda")]
        Some("cuda") => Ok(Some(Box::new(super::raw_nccl::RawNccl::join(device, rank, folder)?))),
        _ => {
            let _ = folder;
            Ok(None)
        }
    }
}
