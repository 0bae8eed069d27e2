//! AMD's HSA runtime works on the simulated GPU: every copy is compared, on every machine of the matrix.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

mod common;

use common::{
    Machine,
    hsa::{Copy, EQUAL, Hsa, HsaQueue, LESS, OUT_OF_RESOURCES, Pitched, host_bytes},
    noise, ok,
};
use rocsim::installed::{Part, is_skipped};
use std::{ptr, thread, time::Duration};

#[test]
fn the_runtime_copies_fills_and_orders() {
    if common::role().is_none() {
        if !is_skipped(&[Part::Hsa]) {
            common::on_all_machines("the_runtime_copies_fills_and_orders");
        }
        return;
    }
    let (hsa, machine) = (Hsa::start(), Machine::here());
    agents_are_as_configured(&hsa, machine);
    device_memory_is_visible_only_with_a_large_bar(&hsa, machine);
    copies_wait_for_signals(&hsa);
    copies_of_all_alignments(&hsa);
    locked_memory_is_copied_into(&hsa);
    fills_stay_inside(&hsa);
    rectangles_stay_inside(&hsa, machine);
    packets_wait_for_signals(&hsa);
    copies_are_timed(&hsa);
    peers_copy(&hsa, machine);
    threads_copy_at_the_same_time(&hsa);
    exhausted_memory_is_an_error_and_comes_back(&hsa);
    ok!(hsa.api.hsa_shut_down());
}

#[test]
fn registered_memory_can_keep_its_address() {
    let Some(_) = common::role() else {
        if !is_skipped(&[Part::Hsa]) {
            common::child_succeeds("registered_memory_can_keep_its_address", "svm", &[("ROCSIM_SVM", "1")]);
        }
        return;
    };
    const BYTES: usize = 300_001;
    let hsa = Hsa::start();
    let gpu = hsa.gpus[0];
    let contents = noise(BYTES, 11);
    // Two locked ranges that share a page.
    let mut memory = contents.repeat(2);
    let (one, two) = (memory.as_mut_ptr(), memory.as_mut_ptr().wrapping_add(BYTES));
    for host in [one, two] {
        let mut agent = ptr::null_mut();
        ok!(hsa.api.hsa_amd_memory_lock(host, BYTES, &gpu.agent, 1, &mut agent));
        assert_eq!(agent, host);
    }
    let device = hsa.allocate(gpu.vram, BYTES);
    ok!(hsa.api.hsa_amd_memory_unlock(one));
    let done = hsa.copy(device, two, BYTES, &[], Copy::HostToDevice);
    hsa.wait(done);
    assert!(hsa.read(device, BYTES) == contents);
    ok!(hsa.api.hsa_amd_memory_unlock(two));
    ok!(hsa.api.hsa_signal_destroy(done));
    hsa.free(device);
}

fn agents_are_as_configured(hsa: &Hsa, machine: Machine) {
    assert_eq!(hsa.gpus.len(), machine.gpus);
    for gpu in &hsa.gpus {
        assert_eq!(hsa.agent_name(gpu.agent), "gfx906");
        assert_eq!(hsa.pool_info::<usize>(gpu.vram, 2), 1 << 30);
    }
}

/// 0 never, 1 allowed by default, 2 not allowed by default.
fn pool_access(hsa: &Hsa, agent: u64, pool: u64) -> u32 {
    let mut access = u32::MAX;
    ok!(hsa.api.hsa_amd_agent_memory_pool_get_info(agent, pool, 0, (&raw mut access).cast()));
    access
}

fn device_memory_is_visible_only_with_a_large_bar(hsa: &Hsa, machine: Machine) {
    let gpu = hsa.gpus[0];
    let device = hsa.allocate(gpu.vram, 1 << 20);
    hsa.write(device, &[0x5a; 4096]);
    assert_eq!(common::host_can_read(device), machine.large_bar);
    assert_eq!(pool_access(hsa, hsa.cpu, gpu.vram) != 0, machine.large_bar);
    if machine.large_bar {
        assert_eq!(host_bytes(device, 4096), [0x5a; 4096]);
    }
    hsa.free(device);
}

fn copies_wait_for_signals(hsa: &Hsa) {
    const BYTES: usize = (1 << 20) + 3;
    let contents = noise(BYTES, 1);
    let (from, to) = (hsa.host_memory(&contents), hsa.host_memory(&[0; BYTES]));
    let vram = hsa.gpus[0].vram;
    let (one, two) = (hsa.allocate(vram, BYTES), hsa.allocate(vram, BYTES));
    let gate = hsa.signal(1);
    let first = hsa.copy(one, from, BYTES, &[gate], Copy::HostToDevice);
    let second = hsa.copy(two, one, BYTES, &[first], Copy::DeviceToDevice);
    let third = hsa.copy(to, two, BYTES, &[second, gate], Copy::DeviceToHost);
    thread::sleep(Duration::from_millis(10));
    for signal in [first, second, third] {
        assert_eq!(hsa.api.hsa_signal_load_scacquire(signal), 1, "a copy did not wait");
    }
    assert!(host_bytes(to, BYTES).iter().all(|byte| *byte == 0));
    hsa.api.hsa_signal_store_screlease(gate, 0);
    hsa.wait(third);
    assert!(host_bytes(to, BYTES) == contents);
    for signal in [gate, first, second, third] {
        ok!(hsa.api.hsa_signal_destroy(signal));
    }
    for address in [from, to, one, two] {
        hsa.free(address);
    }
}

fn copies_of_all_alignments(hsa: &Hsa) {
    const ROOM: usize = 20_000;
    let vram = hsa.gpus[0].vram;
    let (source, target) = (hsa.allocate(vram, ROOM), hsa.allocate(vram, ROOM));
    let (contents, background) = (noise(ROOM, 2), noise(ROOM, 3));
    hsa.write(source, &contents);
    for (from, to, bytes) in
        [(0, 0, ROOM), (1, 1, 9_999), (3, 2, 10_001), (5, 0, 1), (8, 12, 4), (7, 3, 0x101)]
    {
        hsa.write(target, &background);
        let done =
            hsa.copy(target.wrapping_add(to), source.wrapping_add(from), bytes, &[], Copy::DeviceToDevice);
        hsa.wait(done);
        ok!(hsa.api.hsa_signal_destroy(done));
        let mut expected = background.clone();
        expected[to..to + bytes].copy_from_slice(&contents[from..from + bytes]);
        assert!(hsa.read(target, ROOM) == expected, "{bytes} bytes from {from} to {to}");
    }
    hsa.free(source);
    hsa.free(target);
}

fn locked_memory_is_copied_into(hsa: &Hsa) {
    // Neither the start nor the length is a whole number of pages.
    const BYTES: usize = 300_001;
    let contents = noise(BYTES, 4);
    let mut memory = vec![0xeeu8; BYTES + 64];
    let gpu = hsa.gpus[0];
    let device = hsa.allocate(gpu.vram, BYTES);
    hsa.write(device, &contents);
    let host = memory.as_mut_ptr().wrapping_add(32);
    let mut agent = ptr::null_mut();
    ok!(hsa.api.hsa_amd_memory_lock(host, BYTES, &gpu.agent, 1, &mut agent));
    assert_ne!(agent, host, "without SVM a GPU has its own address for the program's memory");
    let done = hsa.copy(agent, device, BYTES, &[], Copy::DeviceToHost);
    hsa.wait(done);
    ok!(hsa.api.hsa_amd_memory_unlock(host));
    ok!(hsa.api.hsa_signal_destroy(done));
    let seen = host_bytes(memory.as_ptr(), memory.len());
    assert!(seen[32..32 + BYTES] == contents);
    assert!(seen[..32].iter().chain(&seen[32 + BYTES..]).all(|byte| *byte == 0xee));
    hsa.free(device);
}

fn fills_stay_inside(hsa: &Hsa) {
    const BYTES: usize = 1 << 18;
    let device = hsa.allocate(hsa.gpus[0].vram, BYTES);
    let mut expected = noise(BYTES, 5);
    hsa.write(device, &expected);
    ok!(hsa.api.hsa_amd_memory_fill(device.wrapping_add(4096), 0x1122_3344, 10_001));
    for word in expected[4096..4096 + 40_004].chunks_exact_mut(4) {
        word.copy_from_slice(&0x1122_3344u32.to_ne_bytes());
    }
    assert!(hsa.read(device, BYTES) == expected);
    hsa.free(device);
}

fn rectangles_stay_inside(hsa: &Hsa, machine: Machine) {
    const BYTES: usize = 64 << 10;
    let contents = noise(BYTES, 6);
    let host = hsa.host_memory(&contents);
    let gpu = hsa.gpus[0];
    let device = hsa.allocate(gpu.vram, BYTES);
    let mut expected = noise(BYTES, 7);
    hsa.write(device, &expected);
    let (from, from_offset) = (Pitched { base: host, pitch: 256, slice: 256 * 16 }, [8u32, 1, 2]);
    let (to, to_offset) = (Pitched { base: device, pitch: 512, slice: 512 * 8 }, [16u32, 2, 1]);
    let size = [100u32, 5, 3];
    let done = hsa.signal(1);
    let api = &hsa.api;
    let status = api.hsa_amd_memory_async_copy_rect(
        &to,
        &to_offset,
        &from,
        &from_offset,
        &size,
        gpu.agent,
        1,
        0,
        ptr::null(),
        done,
    );
    if !machine.sdma {
        assert_eq!(status, OUT_OF_RESOURCES, "AMD's runtime copies rectangles by DMA only");
        return;
    }
    assert_eq!(status, 0);
    hsa.wait(done);
    let at = |side: &Pitched, offset: [u32; 3], y: usize, z: usize| {
        let [ox, oy, oz] = offset.map(|value| value as usize);
        ox + (oy + y) * side.pitch + (oz + z) * side.slice
    };
    for (y, z) in (0..5).flat_map(|y| (0..3).map(move |z| (y, z))) {
        let (target, source) = (at(&to, to_offset, y, z), at(&from, from_offset, y, z));
        expected[target..target + 100].copy_from_slice(&contents[source..source + 100]);
    }
    assert!(hsa.read(device, BYTES) == expected);
    ok!(api.hsa_signal_destroy(done));
    hsa.free(host);
    hsa.free(device);
}

/// Writes a packet into a queue, its header last, and rings.
fn submit(hsa: &Hsa, queue: &HsaQueue, header: u64, rest: [u64; 8]) {
    let index = hsa.api.hsa_queue_add_write_index_screlease(queue, 1);
    let slot = queue.base.wrapping_add(index as usize % queue.size as usize);
    // SAFETY: the slot is ours since the write index was raised; the header is published last, as an atomic.
    unsafe {
        for (word, value) in rest.into_iter().enumerate().skip(1) {
            slot.cast::<u64>().add(word).write(value);
        }
        slot.cast::<u32>().add(1).write((rest[0] >> 32) as u32);
        let first = std::sync::atomic::AtomicU32::from_ptr(slot.cast());
        first.store(header as u32, std::sync::atomic::Ordering::Release);
    }
    hsa.api.hsa_signal_store_screlease(queue.doorbell, index as i64);
}

fn packets_wait_for_signals(hsa: &Hsa) {
    const BARRIER_BIT: u64 = 1 << 8;
    let (barrier_and, barrier_or, vendor) = (3 | BARRIER_BIT, 5 | BARRIER_BIT, BARRIER_BIT);
    let mut queue = ptr::null_mut();
    let api = &hsa.api;
    ok!(api.hsa_queue_create(
        hsa.gpus[0].agent,
        64,
        1,
        ptr::null(),
        ptr::null_mut(),
        u32::MAX,
        u32::MAX,
        &mut queue
    ));
    // SAFETY: the runtime has made the queue; it lives until it is destroyed below.
    let described = unsafe { &*queue };
    // More packets than the queue has slots, so that the indices wrap.
    for _ in 0..50 {
        let (one, two, done) = (hsa.signal(1), hsa.signal(1), hsa.signal(3));
        submit(hsa, described, barrier_or, [0, one, two, 0, 0, 0, 0, done]);
        submit(hsa, described, barrier_and, [0, one, two, 0, 0, 0, 0, done]);
        // A barrier on a value, AMD's own: wait until (signal & 0xff) == 7.
        submit(hsa, described, vendor | 2 << 16, [0, one, 7, 0xff, u64::from(EQUAL), 0, 0, done]);
        api.hsa_signal_store_screlease(two, 0);
        assert_eq!(api.hsa_signal_wait_scacquire(done, LESS, 3, common::hsa::FOREVER, 0), 2, "OR");
        thread::sleep(Duration::from_micros(300));
        assert_eq!(api.hsa_signal_load_scacquire(done), 2, "AND did not wait for both");
        api.hsa_signal_store_screlease(one, 0);
        assert_eq!(api.hsa_signal_wait_scacquire(done, LESS, 2, common::hsa::FOREVER, 0), 1, "AND");
        api.hsa_signal_store_screlease(one, 0xa07);
        hsa.wait(done);
        for signal in [one, two, done] {
            ok!(api.hsa_signal_destroy(signal));
        }
    }
    ok!(api.hsa_queue_destroy(queue));
}

fn copies_are_timed(hsa: &Hsa) {
    ok!(hsa.api.hsa_amd_profiling_async_copy_enable(true));
    let device = hsa.allocate(hsa.gpus[0].vram, 1 << 20);
    let host = hsa.host_memory(&noise(1 << 20, 8));
    let done = hsa.copy(device, host, 1 << 20, &[], Copy::HostToDevice);
    hsa.wait(done);
    let mut time = [0; 2];
    ok!(hsa.api.hsa_amd_profiling_get_async_copy_time(done, &mut time));
    assert!(time[0] > 0 && time[0] < time[1] && time[1] - time[0] < 1_000_000_000, "{time:?}");
    ok!(hsa.api.hsa_amd_profiling_async_copy_enable(false));
    ok!(hsa.api.hsa_signal_destroy(done));
    hsa.free(device);
    hsa.free(host);
}

fn peers_copy(hsa: &Hsa, machine: Machine) {
    let [one, two] = hsa.gpus[..] else { return };
    assert_eq!(pool_access(hsa, one.agent, two.vram) != 0, machine.large_bar, "a peer needs a large BAR");
    if !machine.large_bar {
        return;
    }
    const BYTES: usize = 3 << 20;
    let contents = noise(BYTES, 9);
    let (near, far) = (hsa.allocate(one.vram, BYTES), hsa.allocate(two.vram, BYTES));
    hsa.write(near, &contents);
    ok!(hsa.api.hsa_amd_agents_allow_access(2, [one.agent, two.agent].as_ptr(), ptr::null(), far));
    let there = hsa.copy(far, near, BYTES, &[], Copy::DeviceToDevice);
    hsa.wait(there);
    assert!(hsa.read(far, BYTES) == contents);
    ok!(hsa.api.hsa_signal_destroy(there));
    hsa.free(near);
    hsa.free(far);
}

fn threads_copy_at_the_same_time(hsa: &Hsa) {
    thread::scope(|scope| {
        for seed in 0..4u32 {
            scope.spawn(move || {
                for round in 0..10 {
                    let contents = noise(50_000 + 7919 * round as usize, seed * 100 + round);
                    let device = hsa.allocate(hsa.gpus[0].vram, contents.len());
                    hsa.write(device, &contents);
                    assert!(hsa.read(device, contents.len()) == contents);
                    hsa.free(device);
                }
            });
        }
    });
}

fn exhausted_memory_is_an_error_and_comes_back(hsa: &Hsa) {
    const BLOCK: usize = 200 << 20;
    let vram = hsa.gpus[0].vram;
    let mut blocks = Vec::new();
    let error = loop {
        let mut address = ptr::null_mut();
        match hsa.api.hsa_amd_memory_pool_allocate(vram, BLOCK, 0, &mut address) {
            0 => blocks.push(address),
            error => break error,
        }
    };
    assert_eq!(error, OUT_OF_RESOURCES);
    assert!((4..=5).contains(&blocks.len()), "{} blocks of 200 MiB in 1 GiB", blocks.len());
    blocks.into_iter().for_each(|block| hsa.free(block));
    let again = hsa.allocate(vram, BLOCK);
    let contents = noise(10_000, 10);
    hsa.write(again, &contents);
    assert!(hsa.read(again, contents.len()) == contents);
    hsa.free(again);
}
