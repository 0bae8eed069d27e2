//! The simulator finds faults of programs, and reports them as AMD's libraries do.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![allow(clippy::unwrap_used)] // A proof program that cannot go on has failed.

mod common;

use common::{
    Machine, Simulator,
    hip::{HipApi, TO_DEVICE},
    hsa::{Copy, FaultEvent, Hsa, host_bytes},
    noise, ok,
};
use rocsim::installed::{Part, is_skipped};
use std::{
    env,
    ffi::c_void,
    ptr,
    sync::atomic::{AtomicU64, Ordering},
};

/// AMD's report of a fault.
const REPORT: &str = "Memory access fault by GPU node-1";
const REASON: &str = "Page not present or supervisor privilege";

const BYTES: usize = 4 << 20;

/// A wrong program: its name, the simulator's message besides AMD's report, the machine, and the program.
type Case = (&'static str, &'static str, &'static [(&'static str, &'static str)], fn(&Hsa));

const CASES: &[Case] = &[
    ("host memory that is not registered", "nothing is mapped there", &[], unregistered_source),
    ("host memory without a grant", "no GPU was given access", &[], missing_grant),
    ("memory that was freed", "nothing is mapped there", &[], freed_source),
    ("the host's address of locked memory", "the host's address of registered memory", &[], host_address),
    ("locked memory that the program has given back", "has unmapped this registered memory", &[], unmapped),
    ("a copy beyond the end", "has 4194304 bytes", &[], beyond_the_end),
    ("the same by a shader of AMD's", "by `flat_load_dword", &[("HSA_ENABLE_SDMA", "0")], far_beyond_the_end),
    (
        "a peer's memory without a grant",
        "only the GPUs of nodes [2]",
        &[("ROCSIM_GPUS", "2"), ("ROCSIM_LARGE_BAR", "1")],
        peer_without_grant,
    ),
];

#[test]
fn a_wrong_access_is_reported_by_amds_runtime() {
    const TEST: &str = "a_wrong_access_is_reported_by_amds_runtime";
    if let Some(role) = common::role() {
        let (_, _, _, run) = CASES.iter().find(|(name, ..)| *name == role).unwrap();
        let hsa = Hsa::start();
        run(&hsa);
        return;
    }
    if is_skipped(&[Part::Hsa]) {
        return;
    }
    for (name, detail, variables, _) in CASES {
        common::child_aborts(TEST, name, variables, &[REPORT, REASON, detail]);
    }
}

/// The two that a backend is most likely to make, on one and two GPUs, with and without a large BAR, by DMA engines
/// and by kernels.
#[test]
fn a_missing_pin_and_a_missing_grant_are_found_on_every_machine() {
    const TEST: &str = "a_missing_pin_and_a_missing_grant_are_found_on_every_machine";
    let wrong = &CASES[..2];
    if let Some(role) = common::role() {
        let (_, _, _, run) = wrong.iter().find(|(name, ..)| *name == role).unwrap();
        run(&Hsa::start());
        return;
    }
    if is_skipped(&[Part::Hsa]) {
        return;
    }
    for machine in Machine::all() {
        for (name, detail, ..) in wrong {
            common::child_aborts(TEST, name, &machine.variables(), &[REPORT, REASON, detail]);
        }
    }
}

/// Device memory, allocated first, so that it does not take addresses that the test frees.
fn target(hsa: &Hsa) -> *mut u8 {
    hsa.allocate(hsa.gpus[0].vram, BYTES)
}

/// Copies to the device and waits: the wait must not come back.
fn copy_in(hsa: &Hsa, from: *const u8, bytes: usize) {
    copy_to(hsa, target(hsa), from, bytes);
}

fn copy_to(hsa: &Hsa, device: *mut u8, from: *const u8, bytes: usize) {
    let done = hsa.copy(device, from, bytes, &[], Copy::HostToDevice);
    hsa.wait(done);
}

fn unregistered_source(hsa: &Hsa) {
    copy_in(hsa, noise(BYTES, 1).as_ptr(), BYTES);
}

fn missing_grant(hsa: &Hsa) {
    copy_in(hsa, hsa.allocate(hsa.host, BYTES), BYTES);
}

fn freed_source(hsa: &Hsa) {
    let host = hsa.host_memory(&[7; BYTES]);
    hsa.free(host);
    copy_in(hsa, host, BYTES);
}

fn locked(hsa: &Hsa, host: *mut u8) -> *mut u8 {
    let mut agent = ptr::null_mut();
    ok!(hsa.api.hsa_amd_memory_lock(host, BYTES, ptr::null(), 0, &mut agent));
    agent
}

fn host_address(hsa: &Hsa) {
    let mut memory = vec![7u8; BYTES];
    locked(hsa, memory.as_mut_ptr());
    copy_in(hsa, memory.as_ptr(), BYTES);
}

fn unmapped(hsa: &Hsa) {
    let device = target(hsa);
    // SAFETY: new memory at an address that the kernel chooses.
    let host = unsafe {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        libc::mmap(ptr::null_mut(), BYTES, protection, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0)
    };
    assert_ne!(host, libc::MAP_FAILED);
    let agent = locked(hsa, host.cast());
    // As unmapping, but no other memory can be mapped there. SAFETY: only the copy uses the memory, and the test shows
    // its fault.
    ok!(unsafe { libc::mprotect(host, BYTES, libc::PROT_NONE) });
    copy_to(hsa, device, agent, BYTES);
}

fn beyond_the_end(hsa: &Hsa) {
    let gpu = hsa.gpus[0];
    let (one, two) = (hsa.allocate(gpu.vram, BYTES), hsa.allocate(gpu.vram, BYTES));
    let done = hsa.copy(one, two.wrapping_add(BYTES - 4096), 8192, &[], Copy::DeviceToDevice);
    hsa.wait(done);
}

/// A shader may read what lies right behind the end, if anything does. Only a little memory of the runtime's own can lie there,
/// and more than that is read.
fn far_beyond_the_end(hsa: &Hsa) {
    const MORE: usize = 64 << 20;
    let allocate = |bytes| hsa.allocate(hsa.gpus[0].vram, bytes);
    let (before, target, after) = (allocate(BYTES), allocate(MORE), allocate(BYTES));
    let source = before.max(after);
    assert!(source > target, "the target lies at {target:?}, beyond {source:?}");
    let done = hsa.copy(target, source.wrapping_add(BYTES - 4096), MORE, &[], Copy::DeviceToDevice);
    hsa.wait(done);
}

fn peer_without_grant(hsa: &Hsa) {
    copy_in(hsa, hsa.allocate(hsa.gpus[1].vram, BYTES), BYTES);
}

static FAULT: AtomicU64 = AtomicU64::new(0);

unsafe extern "C" fn handler(event: *const FaultEvent, _data: *mut c_void) -> u32 {
    // SAFETY: the runtime passes an event that lives during the call.
    let FaultEvent { kind, address, reason, .. } = unsafe { event.read() };
    assert_eq!((kind, reason), (0, 1), "a memory fault, page not present");
    FAULT.store(address, Ordering::Release);
    0
}

#[test]
fn a_fault_handler_of_the_program_is_called() {
    if common::role().is_none() {
        if !is_skipped(&[Part::Hsa]) {
            common::child_succeeds("a_fault_handler_of_the_program_is_called", "handler", &[]);
        }
        return;
    }
    let hsa = Hsa::start();
    ok!(hsa.api.hsa_amd_register_system_event_handler(handler, ptr::null_mut()));
    let source = noise(BYTES, 2);
    let device = hsa.allocate(hsa.gpus[0].vram, BYTES);
    let done = hsa.copy(device, source.as_ptr(), BYTES, &[], Copy::HostToDevice);
    while FAULT.load(Ordering::Acquire) == 0 {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    assert_eq!(FAULT.load(Ordering::Acquire), source.as_ptr() as u64 & !4095);
    assert_eq!(hsa.api.hsa_signal_load_scacquire(done), 1, "the copy must not count as done");
    let simulator = Simulator::load();
    assert_eq!(simulator.rocsim_counter(c"faults".as_ptr()), 1);
    assert_eq!(simulator.rocsim_counter(c"no such counter".as_ptr()), u64::MAX);
    // The GPU stands still, so that shutting down would wait for ever: leave as a program would after a fault.
    std::process::exit(0);
}

/// The statistics that a child has left, which must have ended in that way.
fn statistics_of(test: &str, role: &str, aborts: bool, machine: Machine) -> serde_json::Value {
    // Of this process alone: the same tests may be running in another one.
    let name = format!("{test}-{role}-{}.json", std::process::id());
    let file = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_file(&file);
    let statistics = [("ROCSIM_STATS", file.to_str().unwrap()), ("HSA_DISABLE_FRAGMENT_ALLOCATOR", "1")];
    let variables = [&statistics[..], &machine.variables()].concat();
    if aborts {
        common::child_aborts(test, role, &variables, &[REPORT]);
    } else {
        common::child_succeeds(test, role, &variables);
    }
    let text = std::fs::read_to_string(&file).unwrap();
    let _ = std::fs::remove_file(file);
    serde_json::from_str(&text).unwrap()
}

#[test]
fn statistics_show_leaks_and_faults() {
    let Some(role) = common::role() else {
        if is_skipped(&[Part::Hsa]) {
            return;
        }
        const TEST: &str = "statistics_show_leaks_and_faults";
        let machine = Machine { gpus: 1, large_bar: false, sdma: true };
        let tidy = statistics_of(TEST, "tidy", false, machine);
        assert_eq!((&tidy["gpus"], &tidy["gfx"], &tidy["faults"]), (&1.into(), &"gfx906".into(), &0.into()));
        assert_eq!(
            (&tidy["vram_live_bytes"], &tidy["registered_live_bytes"]),
            (&0.into(), &0.into()),
            "{tidy}"
        );
        assert_eq!(tidy["queues_live"], 0, "{tidy}");
        assert_eq!(tidy["vram_peak_bytes"], 12_288, "{tidy}");
        assert!(tidy["sdma_copied_bytes"].as_u64().unwrap() >= 10_000, "{tidy}");
        let leak = statistics_of(TEST, "leak", false, machine);
        assert_eq!(leak["vram_live_bytes"], 12_288, "{leak}");
        assert_eq!(leak["registered_live_bytes"], 5_000, "{leak}");
        assert_eq!(statistics_of(TEST, "fault", true, machine)["faults"], 1);
        return;
    };
    let hsa = Hsa::start();
    let device = hsa.allocate(hsa.gpus[0].vram, 10_000);
    hsa.write(device, &[1; 10_000]);
    let mut memory = vec![0u8; 5_000];
    let mut agent = ptr::null_mut();
    ok!(hsa.api.hsa_amd_memory_lock(memory.as_mut_ptr(), 5_000, ptr::null(), 0, &mut agent));
    match role.as_str() {
        "tidy" => {
            ok!(hsa.api.hsa_amd_memory_unlock(memory.as_mut_ptr()));
            hsa.free(device);
        }
        "leak" => {}
        _ => return unregistered_source(&hsa),
    }
    ok!(hsa.api.hsa_shut_down());
}

/// HIP keeps some memory until the process ends, about 1 MiB a GPU, so only a larger leak is reported.
#[test]
fn a_leak_under_hip_shows_on_every_machine() {
    const TEST: &str = "a_leak_under_hip_shows_on_every_machine";
    let Some(role) = common::role() else {
        if is_skipped(&[Part::Hip]) {
            return;
        }
        for machine in Machine::all() {
            let live = |role| {
                let statistics = statistics_of(TEST, role, false, machine);
                assert_eq!(statistics["faults"], 0, "{statistics}");
                ["vram_live_bytes", "registered_live_bytes"].map(|name| statistics[name].as_u64().unwrap())
            };
            let (tidy, leak) = (live("tidy"), live("leak"));
            let bytes = BYTES as u64;
            assert!(tidy.iter().all(|own| *own < bytes), "{machine:?}: {tidy:?}");
            assert!(leak.iter().all(|leaked| *leaked >= bytes), "{machine:?}: {leak:?}");
        }
        return;
    };
    let hip = HipApi::start();
    let (device, host, mut memory) = (hip.allocate(BYTES), hip.pinned(&[1; BYTES]), vec![0u8; BYTES]);
    let stream = hip.stream();
    ok!(hip.hipHostRegister(memory.as_mut_ptr(), BYTES, 0));
    ok!(hip.hipMemcpyAsync(device, host, BYTES, TO_DEVICE, stream));
    ok!(hip.hipStreamSynchronize(stream));
    if role == "tidy" {
        ok!(hip.hipHostUnregister(memory.as_mut_ptr()));
        ok!(hip.hipFree(device));
    }
    ok!(hip.hipHostFree(host));
    ok!(hip.hipStreamDestroy(stream));
}

#[test]
fn another_process_reads_shared_memory() {
    const TEST: &str = "another_process_reads_shared_memory";
    const LENGTH: usize = 2 << 20;
    let Some(role) = common::role() else {
        if !is_skipped(&[Part::Hsa]) {
            common::child_succeeds(TEST, "owner", &[]);
        }
        return;
    };
    let hsa = Hsa::start();
    let gpu = hsa.gpus[0];
    if role == "owner" {
        let device = hsa.allocate(gpu.vram, LENGTH);
        hsa.write(device, &noise(LENGTH, 3));
        let mut handle = [0u32; 8];
        ok!(hsa.api.hsa_amd_ipc_memory_create(device, LENGTH, &mut handle));
        let words = handle.map(|word| word.to_string()).join(" ");
        common::child_succeeds(TEST, "guest", &[("ROCSIM_TEST_HANDLE", &words)]);
        assert!(hsa.read(device, LENGTH) == noise(LENGTH, 4), "what the guest has written");
        hsa.free(device);
        return;
    }
    let words: Vec<u32> =
        env::var("ROCSIM_TEST_HANDLE").unwrap().split(' ').map(|word| word.parse().unwrap()).collect();
    let handle: [u32; 8] = words.try_into().unwrap();
    let mut address = ptr::null_mut();
    ok!(hsa.api.hsa_amd_ipc_memory_attach(&handle, LENGTH, 1, &gpu.agent, &mut address));
    assert!(hsa.read(address, LENGTH) == noise(LENGTH, 3));
    hsa.write(address, &noise(LENGTH, 4));
    ok!(hsa.api.hsa_amd_ipc_memory_detach(address));
}

#[test]
fn a_forked_child_is_refused() {
    if common::role().is_none() {
        if !is_skipped(&[Part::Hsa]) {
            common::child_succeeds("a_forked_child_is_refused", "parent", &[]);
        }
        return;
    }
    let hsa = Hsa::start();
    let vram = hsa.gpus[0].vram;
    // SAFETY: the child only calls the runtime's allocator, which holds no lock here, and leaves with `_exit`.
    let child = unsafe { libc::fork() };
    assert!(child >= 0);
    if child == 0 {
        let mut address = ptr::null_mut();
        let status = hsa.api.hsa_amd_memory_pool_allocate(vram, BYTES, 0, &mut address);
        // SAFETY: ends the process without running anything of the parent's.
        unsafe { libc::_exit(i32::from(status == 0)) };
    }
    let mut status = 0;
    // SAFETY: waits for the child that was just made.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0, "{status:#x}");
    let contents = noise(BYTES, 5);
    let host = hsa.host_memory(&contents);
    assert!(host_bytes(host, BYTES) == contents, "the parent goes on");
}
