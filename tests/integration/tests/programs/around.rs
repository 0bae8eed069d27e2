//! Operations around arrays: events and callbacks, memory that runs out, the caller's own resources, loans.

use crate::{model::Known, program::Program};
use gpumem_core::{Backend, ErrorKind, MemoryKind, Result};
use gpumem_runtime::memory::{
    FailureInjectingResource, FailurePlan, LimitingResource, MemoryBlock, MemoryRequest, MemoryResource,
    MemoryStatistics, Pool, Trim,
};
use ndarray::{Ix1, s};
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    time::Duration,
};

/// A resource of the caller's: it counts, and passes everything on.
#[derive(Debug)]
struct Own<B: Backend>(Arc<dyn MemoryResource<B>>, AtomicUsize);

impl<B: Backend> MemoryResource<B> for Own<B> {
    fn name(&self) -> &'static str {
        "the program's own"
    }
    fn allocate(&self, request: &MemoryRequest<'_, B>) -> Result<MemoryBlock<B>> {
        self.1.fetch_add(1, Ordering::Relaxed);
        self.0.allocate(request)
    }
    fn recycle(&self, block: MemoryBlock<B>) -> Result<(), MemoryBlock<B>> {
        self.0.recycle(block)
    }
    fn deallocate(&self, block: MemoryBlock<B>) -> Result<()> {
        self.0.deallocate(block)
    }
    fn forget(&self) {
        self.0.forget();
    }
    fn statistics(&self) -> MemoryStatistics {
        self.0.statistics()
    }
}

impl<B: Backend> Program<'_, B> {
    /// Events, in every order, and callbacks, of which some panic.
    pub(crate) fn mark(&mut self, at: usize) {
        let (one, other) = (self.stream(), self.stream());
        let value = self.random.word();
        let known = &mut self.arrays[at];
        let (start, done) = (one.record_timed_event().unwrap(), mpsc::channel());
        one.fill(&mut known.array, value).unwrap();
        known.model.fill(Some(value));
        let end = one.record_timed_event().unwrap();
        other.wait(&end).unwrap();
        match self.random.below(4) {
            0 => {
                end.synchronize().unwrap();
                assert!(end.query().unwrap() && end.elapsed_since(&start).unwrap() >= 0.0);
            }
            1 => drop(end.completed()),
            2 => {
                other.add_callback(move |result| done.0.send(result).unwrap()).unwrap();
                done.1.recv_timeout(Duration::from_secs(60)).unwrap().unwrap();
            }
            _ if self.fails => {
                other.add_callback(|_| std::panic::resume_unwind(Box::new("the program's"))).unwrap();
                other.synchronize().unwrap();
                self.device.synchronize().unwrap();
                let errors = self.device.take_errors();
                assert!(errors.iter().all(|error| error.to_string().contains("callback")), "{errors:?}");
            }
            _ => assert!(end.query().is_ok()),
        }
    }

    /// Sets another resource while a few arrays are made; arrays from before stay as they were.
    pub(crate) fn exchange_resource(&mut self) {
        if !self.fails {
            return;
        }
        let kind = if self.random.one_in(3) { MemoryKind::Pinned } else { MemoryKind::Device };
        let before = self.device.memory_resource(kind).unwrap();
        let (driver, seed) = (self.device.driver_memory(), u64::from(self.random.word()));
        let options = self.device.pool_options(kind);
        let pool = || Arc::new(Pool::new(driver.clone(), options));
        let resource: Arc<dyn MemoryResource<B>> = match self.random.below(5) {
            0 => Arc::new(Own(driver, AtomicUsize::new(0))),
            1 => Arc::new(Own(pool(), AtomicUsize::new(0))),
            2 => Arc::new(LimitingResource::new(pool(), 1 << (10 + self.random.below(10)))),
            3 => Arc::new(FailureInjectingResource::new(
                before.clone(),
                FailurePlan::with_probability(0.3, seed),
            )),
            _ => Arc::new(Pool::new(Arc::new(LimitingResource::new(driver, 1 << 20)), options)),
        };
        self.device.set_memory_resource(kind, resource).unwrap();
        for _ in 0..self.random.below(8) {
            self.make_within_limits();
        }
        if self.random.one_in(2) {
            self.device.trim(Trim::ALL).unwrap();
        }
        self.device.set_memory_resource(kind, before).unwrap();
    }

    /// As `make`, where there may be too little memory: then nothing has happened.
    pub(crate) fn make_within_limits(&mut self) {
        let (length, stream) = (self.random.length(), self.stream());
        let elements = self.random.words(length);
        let made = match self.random.below(3) {
            0 => self.device.to_device(&elements),
            1 => stream.to_device(&elements),
            _ => stream.uninit_array::<u32, _>(length).and_then(|array| array.copy_from(&elements)),
        };
        match made {
            Ok(array) => self.arrays.push(Known { array, model: elements.into_iter().map(Some).collect() }),
            Err(error) => {
                assert!(matches!(error.kind(), ErrorKind::OutOfMemory { .. }), "seed {}: {error}", self.seed);
            }
        }
    }

    /// More than there can be.
    pub(crate) fn ask_for_too_much(&mut self) {
        let stream = self.stream();
        let bytes = [1 << 45, usize::MAX / 2, usize::MAX][self.random.below(3)];
        assert!(self.device.device_array::<u8, _>(bytes).is_err());
        assert!(self.device.pinned_array::<u8, _>(bytes).is_err());
        assert!(stream.uninit_array::<u64, _>((bytes, 3)).is_err());
    }

    /// A loan comes back as another handle, which reads beside the array and is copied from into it.
    pub(crate) fn alias(&mut self, at: usize) {
        let (stream, other) = (self.stream(), self.stream());
        let Some(elements) = self.arrays[at].all() else { return };
        let host = self.random.one_in(2);
        let (from, to) = (self.random.range(elements.len()), self.random.below(elements.len() + 1));
        let known = &mut self.arrays[at];
        let loan = if host { known.array.lend_to_host() } else { known.array.lend(&stream) };
        // Memory of a device is not lent to the host.
        let Ok(loan) = loan else { return };
        let alias = match host {
            true => loan.into_dlpack().and_then(|tensor| self.device.from_dlpack::<u32, Ix1>(tensor, None)),
            false => self.device.as_cuda_array::<u32, Ix1, _>(loan),
        };
        let alias = alias.unwrap();
        assert!(alias.copy_to_host().unwrap().to_vec() == elements, "seed {}", self.seed);
        let length = from.len().min(elements.len() - to);
        let (from, target) = (from.start..from.start + length, to..to + length);
        let overlaps = from.start < target.end && target.start < from.end;
        let source = alias.slice(s![from.clone()]).unwrap();
        let mut part = known.array.slice_mut(s![target]).unwrap();
        match other.copy_to_device(&mut part, &source) {
            Ok(()) => {
                assert!(!overlaps, "seed {}: {from:?} {to}", self.seed);
                known.write(to, &elements[from]);
            }
            Err(error) => assert!(overlaps, "seed {}: {error}", self.seed),
        }
    }
}
