//! Arrays on three streams of an adversarial device, over a pool that is always short of memory: contents are right, and
//! nothing is left.
#![no_main]

use arbitrary::Arbitrary;
use gpumem_core::MemoryKind;
use gpumem_host::{Host, HostOptions};
use gpumem_runtime::{
    Device, DeviceArray,
    memory::{Pool, PoolOptions, Trim},
};
use libfuzzer_sys::fuzz_target;
use std::sync::Arc;

#[derive(Arbitrary, Debug)]
enum Step {
    Make { stream: Option<u8>, length: u16 },
    Fill { which: u8, stream: u8, value: u8 },
    Read { which: u8 },
    Drop { which: u8 },
    Trim { wait: bool },
}

fuzz_target!(|input: (u64, Vec<Step>)| {
    let (seed, steps) = input;
    let raw =
        Host::open_with(&HostOptions::new().adversarial(seed).memory(1 << 20)).expect("options make sense");
    let device = Device::<Host>::from_raw(raw.clone());
    let options = PoolOptions::device(256).chunks(4096, 1 << 16).max_size(1 << 18);
    let pool = Pool::new(device.driver_memory(), options);
    device.set_memory_resource(MemoryKind::Device, Arc::new(pool)).expect("the first one");
    let streams: Vec<_> = (0..3).map(|_| device.stream().expect("a stream")).collect();
    let mut arrays: Vec<(DeviceArray<u8, ndarray::Ix1, Host>, u8)> = Vec::new();
    for step in steps {
        let count = arrays.len();
        match step {
            Step::Make { stream, length } => {
                let made = match stream {
                    Some(stream) => streams[usize::from(stream) % 3].device_array(usize::from(length)),
                    None => device.device_array(usize::from(length)),
                };
                match made {
                    Ok(array) => arrays.push((array, 0)),
                    Err(error) => assert!(error.is_out_of_memory(), "{error}"),
                }
            }
            Step::Fill { which, stream, value } if count > 0 => {
                let (array, now) = &mut arrays[usize::from(which) % count];
                streams[usize::from(stream) % 3].fill(array, value).expect("a fill");
                *now = value;
            }
            Step::Read { which } if count > 0 => {
                let (array, value) = &arrays[usize::from(which) % count];
                assert!(array.copy_to_host().expect("a copy").iter().all(|found| found == value));
            }
            Step::Drop { which } if count > 0 => drop(arrays.swap_remove(usize::from(which) % count)),
            Step::Trim { wait } => {
                device.trim(if wait { Trim::ALL } else { Trim::UNUSED }).expect("a trim");
            }
            _ => {}
        }
    }
    for (array, value) in arrays {
        assert!(array.copy_to_host().expect("a copy").iter().all(|found| *found == value));
    }
    drop(streams);
    device.synchronize().expect("all work is good");
    device.flush().expect("not in a callback");
    assert_eq!(device.take_errors(), []);
    assert_eq!(raw.counters().live_allocations, 0);
});
