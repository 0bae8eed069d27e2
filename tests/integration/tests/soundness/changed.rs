//! Operations of several launches over elements that others write meanwhile, by another handle.

use super::device;
use gpumem::{ops::ArrayOps as _, s};
use gpumem_core::{Error, ErrorKind, MemoryInfo, MemoryKind, Result};
use gpumem_host::Host;
use gpumem_runtime::{
    Device, ImportedArray,
    memory::{MemoryBlock, MemoryRequest, MemoryResource, MemoryStatistics},
};
use ndarray::Ix1;
use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};

/// Has no memory from one of its allocations on.
#[derive(Debug)]
struct Refusing {
    upstream: Arc<dyn MemoryResource<Host>>,
    calls: AtomicUsize,
    refused: AtomicUsize,
}

impl Refusing {
    fn of(device: &Device<Host>) -> Arc<Self> {
        let upstream = device.memory_resource(MemoryKind::Device).unwrap();
        let refusing = Self { upstream, calls: AtomicUsize::new(0), refused: AtomicUsize::new(usize::MAX) };
        let refusing = Arc::new(refusing);
        device.set_memory_resource(MemoryKind::Device, refusing.clone()).unwrap();
        refusing
    }

    /// Serves so many allocations from now on.
    fn serve(&self, allocations: usize) {
        self.calls.store(0, Ordering::SeqCst);
        self.refused.store(allocations, Ordering::SeqCst);
    }
}

impl MemoryResource<Host> for Refusing {
    fn name(&self) -> &'static str {
        "refusing"
    }

    fn allocate(&self, request: &MemoryRequest<'_, Host>) -> Result<MemoryBlock<Host>> {
        if self.calls.fetch_add(1, Ordering::SeqCst) >= self.refused.load(Ordering::SeqCst) {
            let nothing = MemoryInfo { free: 0, total: 0 };
            let kind = ErrorKind::out_of_memory(request.bytes, "device", nothing);
            return Err(Error::new("", request.operation, kind));
        }
        self.upstream.allocate(request)
    }

    fn deallocate(&self, block: MemoryBlock<Host>) -> Result<()> {
        self.upstream.deallocate(block)
    }

    fn forget(&self) {
        self.upstream.forget();
    }

    fn statistics(&self) -> MemoryStatistics {
        self.upstream.statistics()
    }
}

/// A hook for exhausted memory writes the elements between any two allocations of an operation, which has those from
/// before or after it.
#[test]
fn elements_that_change_during_an_operation_are_those_of_one_time() {
    const LEN: usize = 3 * 4096;
    let device = device();
    let refusing = Refusing::of(&device);
    let stream = device.stream().unwrap();
    let mut struck = 0;
    for number in 0.. {
        let array = device.to_device(&vec![15_u8; LEN]).unwrap();
        let second: ImportedArray<u8, Ix1, Host> =
            device.as_cuda_array(array.lend(&stream).unwrap()).unwrap();
        let (array, other) = (Mutex::new(array), device.stream().unwrap());
        let (asked, memory) = (Arc::new(AtomicUsize::new(0)), refusing.clone());
        let count = asked.clone();
        let _hook = device
            .on_exhaustion(move |_| {
                memory.serve(usize::MAX);
                count.fetch_add(1, Ordering::SeqCst);
                // None of it is in order.
                let mut array = array.lock().unwrap();
                other.fill(&mut array.slice_mut(s![..LEN / 2]).unwrap(), 9).unwrap();
                other.fill(&mut array.slice_mut(s![LEN / 2..]).unwrap(), 0).unwrap();
                true
            })
            .unwrap();
        refusing.serve(number);
        let sorted = second.on(&stream).sort(0).unwrap();
        let places = second.on(&stream).argsort(0).unwrap();
        let sums = second.on(&stream).inclusive_scan(0).unwrap();
        refusing.serve(usize::MAX);
        let sorted = sorted.copy_to_host().unwrap().to_vec();
        let now = [vec![0; LEN / 2], vec![9; LEN / 2]].concat();
        assert!(sorted == vec![15; LEN] || sorted == now, "allocation {number}: {:?}", &sorted[..8]);
        let sums = sums.copy_to_host().unwrap();
        let last = sums[LEN - 1];
        assert!([15 * LEN as u64, 9 * LEN as u64 / 2].contains(&last), "allocation {number}: {last}");
        let mut places = places.copy_to_host().unwrap().to_vec();
        places.sort_unstable();
        assert!((0..LEN as u64).eq(places), "allocation {number}");
        if asked.load(Ordering::SeqCst) == 0 {
            break;
        }
        struck += 1;
    }
    assert!(struck > 4, "{struck} allocations");
}
