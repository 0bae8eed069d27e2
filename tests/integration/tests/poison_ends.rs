//! Poison ends with the memory. A separate program: the process has one table.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod common;

use common::host;
use gpumem_core::POISONED;
use gpumem_host::HostOptions;
use gpumem_kernel::{KernelDef, SliceMut, WorkItemIds, config_for_items};

type One = (SliceMut<u32>,);

#[test]
fn poison_ends_with_the_memory() {
    for seed in 0..20 {
        let (device, _) = host(HostOptions::new().adversarial(seed).memory(64 << 20));
        // SAFETY: there is no source.
        let bad = unsafe { KernelDef::<One>::new("bad") }
            .host_loop(|_: &WorkItemIds<'_>, (y,): &One| {
                y.get(1 << 30);
            })
            .load(&device)
            .unwrap();
        let stream = device.stream().unwrap();
        for round in 0..10 {
            let mut array = device.device_array::<u32, _>(1000).unwrap();
            let mut pinned = device.mapped_array::<u32, _>(1000, Default::default()).unwrap();
            bad.launch(&stream, &config_for_items([1, 1, 1], [1, 1, 1]), (&mut array,)).unwrap();
            bad.launch(&stream, &config_for_items([1, 1, 1], [1, 1, 1]), (&mut pinned.device_view_mut(),))
                .unwrap();
            if round % 2 == 0 {
                assert!(stream.synchronize().is_err());
                assert!(POISONED.is_any());
            }
        }
        let _ = device.synchronize();
        device.flush().unwrap();
        let _ = device.take_errors();
        drop((bad, stream, device));
        assert!(!POISONED.is_any(), "seed {seed}: {} entries", POISONED.len());
    }
}
