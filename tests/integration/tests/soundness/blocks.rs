//! Blocks of memory given to the wrong owner: of another resource, of another device, from before a reset, of another
//! kind.

use super::device;
use gpumem_core::{Attach, Error, ErrorKind, MappedOptions, MemoryKind, Result};
use gpumem_host::Host;
use gpumem_integration::reset;
use gpumem_runtime::{
    Device,
    memory::{MemoryBlock, MemoryRequest, MemoryResource, MemoryStatistics, Pool, Trim},
};
use std::sync::{Arc, Mutex};

fn pool(device: &Device<Host>, kind: MemoryKind) -> Arc<Pool<Host>> {
    Arc::new(Pool::new(device.driver_memory(), device.pool_options(kind)))
}

fn is_wrong_device<T>(result: Result<T>) -> bool {
    matches!(result, Err(error) if matches!(error.kind(), ErrorKind::WrongDevice { .. }))
}

fn is_stale<T>(result: Result<T>) -> bool {
    matches!(result, Err(error) if matches!(error.kind(), ErrorKind::Stale { .. }))
}

fn is_refused<T>(result: Result<T>) -> bool {
    matches!(result, Err(error) if matches!(error.kind(), ErrorKind::InvalidArgument { .. }))
}

#[test]
fn a_pool_takes_no_block_of_another_pool() {
    let device = device();
    let kind = MemoryKind::Device;
    let (a, b) = (pool(&device, kind), pool(&device, kind));
    device.set_memory_resource(kind, b.clone()).unwrap();
    let n = 1usize << if cfg!(miri) { 8 } else { 16 };
    let x = device.to_device(&vec![1u32; n]).unwrap();
    let block = a.allocate(&device.memory_request(n * 4, kind)).unwrap();
    let block = b.recycle(block).unwrap_err();
    // It is still the first one's.
    a.recycle(block).unwrap();
    let block = a.allocate(&device.memory_request(n * 4, kind)).unwrap();
    assert!(is_refused(b.deallocate(block)));
    let y = device.device_array::<u32, _>(n / 2).unwrap();
    let z = device.to_device(&vec![2u32; n / 2]).unwrap();
    assert!(x.copy_to_host().unwrap().iter().all(|value| *value == 1));
    assert!(y.copy_to_host().unwrap().iter().all(|value| *value == 0));
    assert!(z.copy_to_host().unwrap().iter().all(|value| *value == 2));
}

#[test]
fn a_pool_and_the_driver_refuse_each_others_blocks() {
    let device = device();
    let kind = MemoryKind::Device;
    let (used, fresh, driver) = (pool(&device, kind), pool(&device, kind), device.driver_memory());
    let ask = |bytes| device.memory_request(bytes, kind);
    let blocks: Vec<_> = (0..100).map(|_| used.allocate(&ask(1 << 12)).unwrap()).collect();
    for block in blocks {
        let block = fresh.recycle(block).unwrap_err();
        assert!(is_refused(driver.deallocate(block)));
    }
    let lone = driver.allocate(&ask(1 << 12)).unwrap();
    let lone = fresh.recycle(lone).unwrap_err();
    let lone = driver.recycle(lone).unwrap_err();
    assert!(is_refused(device.driver_memory().deallocate(lone)), "of another counter of the same driver");
    let lone = driver.allocate(&ask(1 << 12)).unwrap();
    driver.deallocate(lone).unwrap();
    // Nothing has confused the fresh one.
    assert_eq!(fresh.statistics().blocks, 0);
    let block = fresh.allocate(&ask(1 << 12)).unwrap();
    assert_eq!((block.kind(), fresh.statistics().blocks), (kind, 1));
    fresh.recycle(block).unwrap();
    fresh.trim(Trim::ALL, &mut |error| panic!("{error}"));
    assert_eq!(fresh.statistics().reserved, 0);
}

/// Keeps one block and returns it for every request, whatever has happened meanwhile.
#[derive(Debug)]
struct Keeping {
    upstream: Arc<dyn MemoryResource<Host>>,
    kept: Mutex<Option<MemoryBlock<Host>>>,
    tells: bool,
}

impl MemoryResource<Host> for Keeping {
    fn name(&self) -> &'static str {
        "keeping"
    }
    fn allocate(&self, request: &MemoryRequest<'_, Host>) -> Result<MemoryBlock<Host>> {
        match self.kept.lock().unwrap().take() {
            Some(block) => Ok(block),
            None => self.upstream.allocate(request),
        }
    }
    fn recycle(&self, block: MemoryBlock<Host>) -> Result<(), MemoryBlock<Host>> {
        *self.kept.lock().unwrap() = Some(block);
        Ok(())
    }
    fn deallocate(&self, block: MemoryBlock<Host>) -> Result<()> {
        self.upstream.deallocate(block)
    }
    fn forget(&self) {
        if self.tells {
            self.upstream.forget();
        }
    }
    fn statistics(&self) -> MemoryStatistics {
        MemoryStatistics::default()
    }
}

#[test]
fn a_block_from_before_a_reset_is_not_reused() {
    for kind in [MemoryKind::Pinned, MemoryKind::Device] {
        for (from_pool, tells) in [(false, true), (true, true), (true, false)] {
            let device = device();
            let upstream: Arc<dyn MemoryResource<Host>> =
                if from_pool { pool(&device, kind) } else { device.driver_memory() };
            let keeping = Keeping { upstream, kept: Mutex::new(None), tells };
            device.set_memory_resource(kind, Arc::new(keeping)).unwrap();
            let make = || match kind {
                MemoryKind::Pinned => device.pinned_array::<u32, _>(1usize << 16).map(drop),
                _ => device.device_array::<u32, _>(1usize << 16).map(drop),
            };
            make().unwrap();
            reset(&device).unwrap();
            assert!(is_stale(make()), "{kind:?}, of a pool: {from_pool}");
            // Blocks of a pool that does not know of the reset are refused as well, for ever.
            assert_eq!(is_stale(make()), from_pool && !tells);
        }
    }
}

#[test]
fn memory_of_another_device_is_refused() {
    for kind in [MemoryKind::Pinned, MemoryKind::Device] {
        let (one, two) = (device(), device());
        let make = || match kind {
            MemoryKind::Pinned => one.pinned_array::<u32, _>(1usize << 16).map(drop),
            _ => one.device_array::<u32, _>(1usize << 16).map(drop),
        };
        one.set_memory_resource(kind, two.driver_memory()).unwrap();
        assert!(is_wrong_device(make()));
        let options = two.pool_options(kind);
        one.set_memory_resource(kind, Arc::new(Pool::new(two.driver_memory(), options))).unwrap();
        assert!(is_wrong_device(make()));
        // A pool that the other device uses already.
        let theirs = pool(&two, kind);
        let kept = theirs.allocate(&two.memory_request(1 << 10, kind)).unwrap();
        one.set_memory_resource(kind, theirs.clone()).unwrap();
        assert!(is_wrong_device(make()));
        theirs.recycle(kept).unwrap();
        reset(&two).unwrap();
        one.flush().unwrap();
        // The device's own memory works as before.
        one.set_memory_resource(kind, pool(&one, kind)).unwrap();
        make().unwrap();
    }
}

/// Asks for another kind of memory than it is asked for.
#[derive(Debug)]
struct OtherKind(Arc<dyn MemoryResource<Host>>, MemoryKind);

impl MemoryResource<Host> for OtherKind {
    fn name(&self) -> &'static str {
        "other kind"
    }
    fn allocate(&self, request: &MemoryRequest<'_, Host>) -> Result<MemoryBlock<Host>> {
        let mut other = request.for_bytes(request.bytes, request.align);
        other.kind = self.1;
        self.0.allocate(&other)
    }
    fn deallocate(&self, block: MemoryBlock<Host>) -> Result<()> {
        self.0.deallocate(block)
    }
    fn forget(&self) {
        self.0.forget();
    }
    fn statistics(&self) -> MemoryStatistics {
        self.0.statistics()
    }
}

#[test]
#[cfg_attr(miri, ignore = "minutes, at night")]
fn memory_of_another_kind_is_refused_on_every_path() {
    let kinds = [
        MemoryKind::Device,
        MemoryKind::Pinned,
        MemoryKind::Mapped(MappedOptions::default()),
        MemoryKind::Managed(Attach::Global),
    ];
    let make = |device: &Device<Host>, kind| -> Result<(), Error> {
        match kind {
            MemoryKind::Device => device.device_array::<u32, _>(1000usize).map(drop),
            MemoryKind::Pinned => device.pinned_array::<u32, _>(1000usize).map(drop),
            MemoryKind::Mapped(options) => device.mapped_array::<u32, _>(1000usize, options).map(drop),
            MemoryKind::Managed(attach) => device.managed_array::<u32, _>(1000usize, attach).map(drop),
            _ => Ok(()),
        }
    };
    for (asked, given) in kinds.iter().flat_map(|asked| kinds.iter().map(move |given| (*asked, *given))) {
        let device = device();
        let wrong = asked != given;
        let other = |device: &Device<Host>| Arc::new(OtherKind(device.driver_memory(), given));
        // Straight from the resource, and through a pool over it.
        device.set_memory_resource(asked, other(&device)).unwrap();
        assert_eq!(is_refused(make(&device, asked)), wrong, "{asked:?} {given:?}");
        let over = Pool::new(other(&device), device.pool_options(asked));
        device.set_memory_resource(asked, Arc::new(over)).unwrap();
        assert_eq!(is_refused(make(&device, asked)), wrong, "{asked:?} {given:?}");
        // One pool for two kinds.
        let both = pool(&device, given);
        device.set_memory_resource(given, both.clone()).unwrap();
        make(&device, given).unwrap();
        device.set_memory_resource(asked, both).unwrap();
        assert_eq!(is_refused(make(&device, asked)), wrong, "{asked:?} {given:?}");
        make(&device, given).unwrap();
    }
}
