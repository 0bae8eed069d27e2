//! Where memory is short, or the driver gives none.

use super::{MIB, device};
use gpumem_core::{ErrorKind, MemoryKind, Result};
use gpumem_host::{Host, HostOptions, Injection, Operation};
use gpumem_runtime::{
    Device, DeviceArray,
    memory::{LimitingResource, MemoryBlock, MemoryRequest, MemoryResource, MemoryStatistics, named},
};
use ndarray::Ix1;
use std::sync::Arc;

#[test]
fn out_of_memory_by_holes_recovers_when_they_are_joined() {
    for seed in 0..30 {
        recover_from_holes(seed);
    }
}

fn recover_from_holes(seed: u64) {
    let (device, raw) = device(HostOptions::new().memory(10 * MIB).adversarial(seed));
    let stream = device.stream().unwrap();
    let other = device.stream().unwrap();
    // Nine tenths of the memory, in pieces that are used by two streams, and dropped in flight.
    let arrays: Vec<_> = (0..9)
        .map(|_| {
            let mut array = stream.device_array::<u8, _>(MIB).unwrap();
            other.fill(&mut array, 1).unwrap();
            array
        })
        .collect();
    drop(arrays);
    let large = device.uninit_array::<u8, _>(9 * MIB).unwrap().fill(5).unwrap();
    assert_eq!(large.get(8 * MIB).unwrap(), 5);
    drop(large);
    device.flush().unwrap();
    assert_eq!(raw.counters().live_allocations, 0);
}

#[test]
fn idle_staging_blocks_are_freed_when_memory_is_out() {
    let (device, _) = device(HostOptions::new());
    let pinned = device.memory_resource(MemoryKind::Pinned).unwrap();
    let limited = Arc::new(LimitingResource::new(pinned, 5 * MIB));
    device.set_memory_resource(MemoryKind::Pinned, limited.clone()).unwrap();
    let stream = device.stream().unwrap();
    let array = stream.to_device(vec![7u8; 4 * MIB].as_slice()).unwrap();
    stream.synchronize().unwrap();
    let kept = limited.statistics().allocated;
    assert!(kept > MIB, "no staging block is kept that is in the way: {kept} bytes");
    let large = device.pinned_array::<u8, _>(4 * MIB).unwrap();
    assert_eq!((array.get(3).unwrap(), large.len()), (7, 4 * MIB));
}

#[test]
fn out_of_memory_names_the_holders() {
    let (device, _) = device(HostOptions::new().memory(32 * MIB));
    let weights = named("weights", || device.device_array::<u8, _>(10 * MIB)).unwrap();
    let more = named("weights", || device.device_array::<u8, _>(5 * MIB)).unwrap();
    let cache = named("cache", || named("inner", || device.device_array::<u8, _>(3 * MIB))).unwrap();
    let error = device.device_array::<u8, _>(30 * MIB).unwrap_err();
    let ErrorKind::OutOfMemory { requested, total, pressure: Some(pressure), .. } = error.kind() else {
        panic!("{error}")
    };
    assert_eq!((*requested, *total), (30 * MIB, 32 * MIB));
    assert_eq!(pressure.holders, [("weights".to_owned(), 15 * MIB), ("inner".to_owned(), 3 * MIB)]);
    let pool = pressure.resources.iter().find(|each| each.kind == "device").unwrap();
    assert!(pool.allocated >= 18 * MIB && pool.reserved >= pool.allocated && !pressure.deferred);
    assert!(error.to_string().contains("\"weights\" holds 15728640"), "{error}");
    let report = device.memory_report().unwrap();
    assert!(report.to_string().contains("weights: 15.0 MiB in 2"), "{report}");
    let json: serde_json::Value = serde_json::from_str(&report.to_json()).unwrap();
    assert_eq!(json["kinds"][0]["resources"][0]["resource"], "pool");
    assert_eq!(json["kinds"][0]["resources"][1]["resource"], "driver");
    assert_eq!(json["holders"][0]["bytes"], 15 * MIB);
    drop((weights, more, cache));
    assert!(device.memory_report().unwrap().holders.is_empty());
}

/// Every allocation of the driver fails once, with and without there being nothing left.
#[test]
fn a_pool_survives_a_failed_growth() {
    for number in 0..6 {
        for out_of_memory in [true, false] {
            let (device, raw) = device(HostOptions::new().memory(64 * MIB));
            let kind = match out_of_memory {
                true => {
                    ErrorKind::OutOfMemory { requested: 1, kind: "device", free: 0, total: 0, pressure: None }
                }
                false => ErrorKind::Driver { code: 3, name: "REFUSED" },
            };
            raw.inject(Injection::next(Operation::Allocate, kind).after(number));
            let work = || -> Result<()> {
                let _arrays: Vec<DeviceArray<u8, Ix1, Host>> =
                    (0..8).map(|_| device.device_array(5 * MIB)).collect::<Result<_>>()?;
                Ok(())
            };
            match work() {
                Ok(()) => {}
                Err(error) => assert!(
                    !out_of_memory && matches!(error.kind(), ErrorKind::Driver { code: 3, .. }),
                    "{error}"
                ),
            }
            raw.clear_injections();
            work().unwrap();
            device.flush().unwrap();
            assert_eq!((raw.counters().live_allocations, device.take_errors()), (0, Vec::new()));
        }
    }
}

/// Allocates fewer bytes than are requested.
#[derive(Debug)]
struct Short(Arc<dyn MemoryResource<Host>>);

impl MemoryResource<Host> for Short {
    fn name(&self) -> &'static str {
        "short"
    }
    fn allocate(&self, request: &MemoryRequest<'_, Host>) -> Result<MemoryBlock<Host>> {
        self.0.allocate(&request.for_bytes(16, 16))
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
fn a_limit_gets_back_what_a_block_lacks() {
    let device = Device::<Host>::open("host").unwrap();
    let limit = Arc::new(LimitingResource::new(Arc::new(Short(device.driver_memory())), 1 << 20));
    device.set_memory_resource(MemoryKind::Device, limit.clone()).unwrap();
    for _ in 0..20 {
        let refused = device.device_array::<u8, _>(1 << 16).unwrap_err();
        assert!(matches!(refused.kind(), ErrorKind::InvalidArgument { .. }), "{refused}");
    }
    device.flush().unwrap();
    assert_eq!(limit.statistics().allocated, 0);
}
