//! Agents and pools of the HSA runtime, the grain of memory, and memory of the caller locked for agents.

use super::{
    fixture::{Lab, Skip, allocate, needs_hsa, release, request},
    kernels::run_increment,
};
use gpumem_core::{DeviceBuffer, DriverDevice, ErrorKind, MappedOptions, MemoryKind};
use gpumem_roc::{AgentKind, Grain, Pinning, PoolKind, Roc, RocExt};
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    ptr::NonNull,
};

pub(super) fn agents_and_pools_are_found(lab: &Lab) -> Result<(), Skip> {
    needs_hsa(lab)?;
    let agents = Roc::agents().unwrap();
    let own = Roc::agent(&lab.device).unwrap();
    assert!(agents.contains(&own));
    assert_eq!((own.kind, own.wave_size), (AgentKind::Gpu, Some(Roc::wavefront(&lab.device).size)));
    assert_eq!(own.name, lab.device.info().architecture);
    assert!(Roc::isa(&lab.device).starts_with(&own.name));
    let cpu = agents.iter().find(|agent| agent.kind == AgentKind::Cpu).unwrap();
    let kinds = |agent| -> Vec<PoolKind> {
        Roc::pools(agent).unwrap().into_iter().filter(|pool| pool.allocates).map(|pool| pool.kind).collect()
    };
    for kind in [PoolKind::Fine, PoolKind::Kernarg, PoolKind::Coarse] {
        assert_eq!(kinds(cpu).iter().filter(|found| **found == kind).count(), 1, "{kind:?}");
    }
    assert!(kinds(&own).contains(&PoolKind::Coarse));
    Ok(())
}

pub(super) fn memory_has_the_grain_that_it_says(lab: &Lab) -> Result<(), Skip> {
    needs_hsa(lab)?;
    let mapped = MemoryKind::Mapped(MappedOptions::default());
    for (kind, grain) in
        [(MemoryKind::Device, Grain::Coarse), (MemoryKind::Pinned, Grain::Coarse), (mapped, Grain::Fine)]
    {
        let buffer = allocate(lab, 5000, kind);
        assert_eq!(Roc::grain_of(&lab.device, buffer.address()).unwrap(), Some(grain), "{kind:?}");
        release(lab, buffer);
    }
    for grain in [Grain::Coarse, Grain::Fine] {
        // SAFETY: the memory is not read.
        let buffer = unsafe { Roc::allocate_grained(&lab.device, &request(5000, mapped), grain) }.unwrap();
        assert_eq!(Roc::grain_of(&lab.device, buffer.address()).unwrap(), Some(grain));
        release(lab, buffer);
    }
    let ordinary = [0u8; 8];
    let address = ordinary.as_ptr().expose_provenance() as u64;
    assert_eq!(Roc::grain_of(&lab.device, address).unwrap(), None);
    assert_eq!(Roc::pointer(&lab.device, address).unwrap(), None);
    Ok(())
}

pub(super) fn pools_allocate_and_grant(lab: &Lab) -> Result<(), Skip> {
    needs_hsa(lab)?;
    let own = Roc::agent(&lab.device).unwrap();
    let agents = Roc::agents().unwrap();
    let cpu = agents.iter().find(|agent| agent.kind == AgentKind::Cpu).unwrap();
    for kind in [PoolKind::Fine, PoolKind::Kernarg, PoolKind::Coarse] {
        let pools = Roc::pools(cpu).unwrap();
        let pool = pools.iter().find(|pool| pool.kind == kind).unwrap();
        // SAFETY: the memory is written before it is read.
        let buffer =
            unsafe { Roc::allocate_in(&lab.device, pool, 4096, std::slice::from_ref(&own)) }.unwrap();
        let grain = if kind == PoolKind::Coarse { Grain::Coarse } else { Grain::Fine };
        assert_eq!(Roc::grain_of(&lab.device, buffer.address()).unwrap(), Some(grain), "{kind:?}");
        // The kernel writes it as the grant allows, and the host reads it.
        let host = buffer.host_address().unwrap();
        // SAFETY: the memory is the host's as well, and 4096 bytes long.
        unsafe { host.write_bytes(7, 4096) };
        run_increment(lab, buffer.address(), 1024);
        // SAFETY: as above; the kernel is done.
        let seen = unsafe { std::slice::from_raw_parts(host.as_ptr().cast::<u32>(), 1024) };
        assert!(seen.iter().all(|value| *value == 0x0707_0708), "{kind:?}: {:x}", seen[0]);
        // SAFETY: the first address of a live allocation that is not in use.
        unsafe { Roc::allow_access(&lab.device, buffer.address(), &[own.clone(), cpu.clone()]) }.unwrap();
        release(lab, buffer);
        // SAFETY: nothing is allocated.
        let much = unsafe { Roc::allocate_in(&lab.device, pool, 1 << 60, &[]) }.unwrap_err();
        assert!(much.is_out_of_memory(), "{much}");
    }
    Ok(())
}

pub(super) fn registered_memory_is_locked_and_unlocked(lab: &Lab) -> Result<(), Skip> {
    needs_hsa(lab)?;
    let own = [Roc::agent(&lab.device).unwrap()];
    let agents = Roc::agents().unwrap();
    let cpu = agents.iter().find(|agent| agent.kind == AgentKind::Cpu).unwrap();
    let pools = Roc::pools(cpu).unwrap();
    let pool = pools.iter().find(|pool| pool.kind == PoolKind::Fine).unwrap();
    let mut memory = vec![1u32; 5000];
    let host = NonNull::new(memory.as_mut_ptr().cast::<u8>()).unwrap();
    for pinning in [Pinning::Hint, Pinning::Lock(&own), Pinning::Lock(&[]), Pinning::LockTo(&own, pool)] {
        for _ in 0..2 {
            // SAFETY: the memory outlives the registration.
            let registered =
                unsafe { Roc::register_memory(&lab.device, &[(host, 20_000), (host, 0)], pinning) }.unwrap();
            let [range] = registered.ranges() else { panic!("an empty range is no range") };
            assert_eq!((range.host, range.bytes), (host, 20_000));
            if !matches!(pinning, Pinning::Hint) {
                let before = memory[4999];
                run_increment(lab, range.address, 5000);
                assert!(memory.iter().all(|value| *value == before + 1), "{pinning:?}");
                // SAFETY: as above; it is refused.
                let twice = unsafe { Roc::register_memory(&lab.device, &[(host, 20_000)], pinning) };
                assert!(matches!(twice.unwrap_err().kind(), ErrorKind::Registration { .. }));
            }
            Roc::deregister(registered).unwrap();
        }
    }
    Ok(())
}

pub(super) fn a_failure_in_the_middle_undoes_the_earlier_ones(lab: &Lab) -> Result<(), Skip> {
    needs_hsa(lab)?;
    let (mut one, mut two) = (vec![0u8; 9000], vec![0u8; 9000]);
    let [one, two] = [&mut one, &mut two].map(|memory| NonNull::new(memory.as_mut_ptr()).unwrap());
    let lock = |ranges: &[(NonNull<u8>, usize)]| {
        // SAFETY: the memory outlives every registration.
        unsafe { Roc::register_memory(&lab.device, ranges, Pinning::Lock(&[])) }
    };
    let second = lock(&[(two, 9000)]).unwrap();
    let error = lock(&[(one, 9000), (two, 9000)]).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Registration { .. }), "{error}");
    // The first range was released, and the one that was locked before is still locked.
    Roc::deregister(lock(&[(one, 9000)]).unwrap()).unwrap();
    assert!(lock(&[(two, 9000)]).is_err());
    Roc::deregister(second).unwrap();
    Roc::deregister(lock(&[(one, 9000), (two, 9000)]).unwrap()).unwrap();
    Ok(())
}

pub(super) fn a_scope_unlocks_in_a_panic_too(lab: &Lab) -> Result<(), Skip> {
    needs_hsa(lab)?;
    let (mut one, mut two) = (vec![0u8; 8000], vec![3u8; 100]);
    for panics in [true, false] {
        let mut arrays = [&mut one[..], &mut two[..]];
        let left = catch_unwind(AssertUnwindSafe(|| {
            Roc::with_registered(&lab.device, &mut arrays, Pinning::Lock(&[]), |ranges| {
                run_increment(lab, ranges[0].address, 2000);
                if panics {
                    std::panic::resume_unwind(Box::new("on purpose"));
                }
                ranges.len()
            })
            .unwrap()
        }));
        assert_eq!(left.ok(), (!panics).then_some(2));
    }
    assert!(one.chunks(4).all(|word| word == [2, 0, 0, 0]));
    Ok(())
}
