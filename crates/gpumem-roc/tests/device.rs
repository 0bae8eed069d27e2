//! What the conformance suite cannot ask for through the typed arrays: agents, pools and grain, registration by agents,
//! what is left to the caller, and the mistakes of HIP 5.2 that are worked around.
//!
//! Runs on an AMD GPU where there is one, else on the simulated one; without ROCm every case is skipped, with the
//! reason.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a case fails by panicking")]

mod simulator;

use gpumem_conformance::RanOn;
use gpumem_core::{
    AllocationRequest, Backend, CompileOptions, CopyRegion, DeviceBuffer, DeviceSelector, ErrorKind, Fill,
    IpcMemory, KernelArgument, KernelSource, LaunchDims, MappedOptions, MemoryKind, Pattern, RegisterOptions,
    Space, Stream, StreamOptions,
};
use gpumem_roc::{AgentKind, Grain, Pinning, PoolKind, Roc, RocBuffer, RocDevice, RocExt, RocStream};
use simulator::Dispatch;
use std::{
    ffi::c_void,
    panic::{AssertUnwindSafe, catch_unwind},
    process::ExitCode,
    ptr::NonNull,
};

struct Lab {
    device: RocDevice,
    stream: RocStream,
    ran_on: RanOn,
}

type Skip = &'static str;
type Case = (&'static str, fn(&Lab) -> Result<(), Skip>);

const CASES: &[Case] = &[
    ("agents_and_pools_are_found", agents_and_pools_are_found),
    ("memory_has_the_grain_that_it_says", memory_has_the_grain_that_it_says),
    ("pools_allocate_and_grant", pools_allocate_and_grant),
    ("registered_memory_is_locked_and_unlocked", registered_memory_is_locked_and_unlocked),
    ("a_failure_in_the_middle_undoes_the_earlier_ones", a_failure_in_the_middle_undoes_the_earlier_ones),
    ("a_scope_unlocks_in_a_panic_too", a_scope_unlocks_in_a_panic_too),
    ("the_device_address_is_asked_for", the_device_address_is_asked_for),
    ("short_fills_touch_nothing_else", short_fills_touch_nothing_else),
    ("rows_are_filled_with_gaps", rows_are_filled_with_gaps),
    ("kernels_and_copies_on_one_stream", kernels_and_copies_on_one_stream),
    ("other_architectures_are_refused", other_architectures_are_refused),
    ("launches_that_do_not_fit_are_refused", launches_that_do_not_fit_are_refused),
    ("the_callers_device_and_last_error_are_left_alone", the_callers_device_and_last_error_are_left_alone),
    ("memory_is_shared_with_another_process", memory_is_shared_with_another_process),
    ("exhausted_memory_comes_back", exhausted_memory_comes_back),
    ("a_reset_gives_everything_back", a_reset_gives_everything_back),
];

fn main() -> ExitCode {
    let ran_on = simulator::prepare();
    simulator::register(c"increment", increment);
    if let Ok(sent) = std::env::var(SENT) {
        return look_at(&sent);
    }
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let wanted: Vec<&String> = arguments.iter().filter(|argument| !argument.starts_with('-')).collect();
    let cases = CASES
        .iter()
        .filter(|(name, _)| wanted.is_empty() || wanted.iter().any(|part| name.contains(part.as_str())));
    if arguments.iter().any(|argument| argument == "--list") {
        cases.for_each(|(name, _)| println!("{name}: test"));
        return ExitCode::SUCCESS;
    }
    let device = match Roc::open(&DeviceSelector::ordinal("roc", 0)) {
        Ok(device) => device,
        Err(error) => {
            println!("test result: ok. 0 passed; 0 failed; {} ignored; {error}", cases.count());
            return ExitCode::SUCCESS;
        }
    };
    println!("running on {device:?} ({ran_on:?})");
    let stream = Roc::create_stream(&device, &StreamOptions::default()).unwrap();
    let lab = Lab { device, stream, ran_on };
    let (mut passed, mut skipped, mut failed) = (0, 0, 0);
    for (name, case) in cases {
        match catch_unwind(AssertUnwindSafe(|| case(&lab))) {
            Ok(Ok(())) => {
                passed += 1;
                println!("test {name} ... ok");
            }
            Ok(Err(reason)) => {
                skipped += 1;
                println!("test {name} ... ignored, {reason}");
            }
            Err(_) => {
                failed += 1;
                println!("test {name} ... FAILED");
            }
        }
    }
    let verdict = if failed == 0 { "ok" } else { "FAILED" };
    println!(
        "\ntest result: {verdict}. {passed} passed; {failed} failed; {skipped} ignored; 0 measured; 0 filtered out"
    );
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn needs_hsa(lab: &Lab) -> Result<(), Skip> {
    if lab.ran_on == RanOn::HipOnCuda { Err("there is no HSA runtime under this HIP") } else { Ok(()) }
}

fn request(bytes: usize, kind: MemoryKind) -> AllocationRequest {
    AllocationRequest { bytes, align: 1, kind }
}

fn allocate(lab: &Lab, bytes: usize, kind: MemoryKind) -> RocBuffer {
    // SAFETY: at least one byte; every case writes before it reads.
    unsafe { Roc::allocate(&lab.device, &request(bytes, kind)) }.unwrap()
}

fn release(lab: &Lab, buffer: RocBuffer) {
    // SAFETY: made by this device, and every case has waited for its work.
    unsafe { Roc::release(&lab.device, buffer) }.map_err(|(_, error)| error).unwrap();
}

/// Copies between device memory and the host, and waits.
fn upload(lab: &Lab, to: u64, contents: &[u8]) {
    let from = contents.as_ptr().expose_provenance() as u64;
    let own = Space::Device(0);
    let region = CopyRegion::linear((from, Space::Host), (to, own), contents.len());
    // SAFETY: both sides are that long, and are waited for.
    unsafe { Roc::copy(&lab.stream, &region) }.unwrap();
    lab.stream.synchronize().unwrap();
}

fn download(lab: &Lab, from: u64, bytes: usize) -> Vec<u8> {
    let mut contents = vec![0u8; bytes];
    let to = contents.as_mut_ptr().expose_provenance() as u64;
    let region = CopyRegion::linear((from, Space::Device(0)), (to, Space::Host), bytes);
    // SAFETY: both sides are that long, and are waited for.
    unsafe { Roc::copy(&lab.stream, &region) }.unwrap();
    lab.stream.synchronize().unwrap();
    contents
}

fn agents_and_pools_are_found(lab: &Lab) -> Result<(), Skip> {
    needs_hsa(lab)?;
    let agents = Roc::agents().unwrap();
    let own = Roc::agent(&lab.device).unwrap();
    assert!(agents.contains(&own));
    assert_eq!((own.kind, own.wave_size), (AgentKind::Gpu, Some(Roc::wavefront(&lab.device).size)));
    assert_eq!(own.name, Roc::info(&lab.device).architecture);
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

fn memory_has_the_grain_that_it_says(lab: &Lab) -> Result<(), Skip> {
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

fn pools_allocate_and_grant(lab: &Lab) -> Result<(), Skip> {
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
        // SAFETY: the first address of a live allocation that nobody uses.
        unsafe { Roc::allow_access(&lab.device, buffer.address(), &[own.clone(), cpu.clone()]) }.unwrap();
        release(lab, buffer);
        // SAFETY: nothing is allocated.
        let much = unsafe { Roc::allocate_in(&lab.device, pool, 1 << 60, &[]) }.unwrap_err();
        assert!(much.is_out_of_memory(), "{much}");
    }
    Ok(())
}

fn registered_memory_is_locked_and_unlocked(lab: &Lab) -> Result<(), Skip> {
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

fn a_failure_in_the_middle_undoes_the_earlier_ones(lab: &Lab) -> Result<(), Skip> {
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
    // The first range was given back, and the one that was locked before is locked still.
    Roc::deregister(lock(&[(one, 9000)]).unwrap()).unwrap();
    assert!(lock(&[(two, 9000)]).is_err());
    Roc::deregister(second).unwrap();
    Roc::deregister(lock(&[(one, 9000), (two, 9000)]).unwrap()).unwrap();
    Ok(())
}

fn a_scope_unlocks_in_a_panic_too(lab: &Lab) -> Result<(), Skip> {
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

fn the_device_address_is_asked_for(lab: &Lab) -> Result<(), Skip> {
    if !Roc::capabilities(&lab.device).register {
        return Err("the device page-locks no memory of the caller");
    }
    let mut memory = vec![0u8; 10_001];
    let host = NonNull::new(memory.as_mut_ptr()).unwrap();
    let options = RegisterOptions { mapped: true, ..RegisterOptions::default() };
    // SAFETY: the memory outlives the registration.
    let buffer = unsafe { Roc::register(&lab.device, host, 10_001, options) }.unwrap();
    assert_eq!(buffer.host_address(), Some(host));
    if lab.ran_on == RanOn::Rocsim && std::env::var_os("ROCSIM_REGISTER_IN_PLACE").is_none() {
        assert_ne!(buffer.address(), host.as_ptr().expose_provenance() as u64);
    }
    // SAFETY: as above; it is refused.
    let twice = unsafe { Roc::register(&lab.device, host, 10_001, options) }.unwrap_err();
    assert!(matches!(twice.kind(), ErrorKind::Registration { .. }), "{twice}");
    let fill =
        Fill { address: buffer.address() + 1, pattern: Pattern::U8(9), count: 10_000, rows: 1, pitch: 0 };
    // SAFETY: the bytes are there, and are waited for.
    unsafe { Roc::fill(&lab.stream, &fill) }.unwrap();
    lab.stream.synchronize().unwrap();
    release(lab, buffer);
    assert_eq!((memory[0], memory[1], memory[10_000]), (0, 9, 9));
    Ok(())
}

fn short_fills_touch_nothing_else(lab: &Lab) -> Result<(), Skip> {
    let buffer = allocate(lab, 64, MemoryKind::Device);
    for pattern in [Pattern::U8(0xA1), Pattern::U16(0xB1B2), Pattern::U32(0xC1C2_C3C4)] {
        let width = pattern.bytes();
        for (start, count) in
            (0..16 / width).flat_map(|start| (1..=24 / width).map(move |n| (start * width, n)))
        {
            upload(lab, buffer.address(), &[0xEE; 64]);
            let address = buffer.address() + start as u64;
            // SAFETY: the bytes are there, and are waited for.
            unsafe { Roc::fill(&lab.stream, &Fill { address, pattern, count, rows: 1, pitch: 0 }) }.unwrap();
            let mut expected = [0xEE; 64];
            for element in expected[start..start + count * width].chunks_mut(width) {
                match pattern {
                    Pattern::U8(value) => element.copy_from_slice(&value.to_ne_bytes()),
                    Pattern::U16(value) => element.copy_from_slice(&value.to_ne_bytes()),
                    Pattern::U32(value) => element.copy_from_slice(&value.to_ne_bytes()),
                }
            }
            assert_eq!(download(lab, buffer.address(), 64), expected, "{count} of {pattern:?} at {start}");
        }
    }
    release(lab, buffer);
    Ok(())
}

fn rows_are_filled_with_gaps(lab: &Lab) -> Result<(), Skip> {
    const PITCH: usize = 96;
    let buffer = allocate(lab, 100 * PITCH, MemoryKind::Device);
    for pattern in [Pattern::U8(0x11), Pattern::U16(0x2122), Pattern::U32(0x3132_3334)] {
        for (rows, count) in [(1, 5), (7, 3), (8, 1), (9, 4), (16, 2), (37, 7), (99, 5)] {
            upload(lab, buffer.address(), &[0xEE; 100 * PITCH]);
            let fill = Fill { address: buffer.address() + 4, pattern, count, rows, pitch: PITCH };
            // SAFETY: the rows are there, and are waited for.
            unsafe { Roc::fill(&lab.stream, &fill) }.unwrap();
            let found = download(lab, buffer.address(), 100 * PITCH);
            for (row, bytes) in found.chunks(PITCH).enumerate() {
                let end = if row < rows { 4 + count * pattern.bytes() } else { 4 };
                assert!(bytes[..4].iter().chain(&bytes[end..]).all(|byte| *byte == 0xEE), "row {row}");
                assert!(bytes[4..end].iter().all(|byte| *byte != 0xEE), "row {row} of {rows}");
            }
        }
    }
    release(lab, buffer);
    Ok(())
}

const SOURCE: &str = r#"
extern "C" __global__ void increment(unsigned* values, unsigned count) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) values[i] += 1;
}
"#;

/// The same for the simulated GPU.
unsafe extern "C" fn increment(arguments: *const c_void, dispatch: *const Dispatch) -> i32 {
    // SAFETY: an address and a number, as the compiler lays them out; the dispatch lives during the call.
    unsafe {
        let address = arguments.cast::<u64>().read_unaligned();
        let count = arguments.cast::<u32>().add(2).read_unaligned();
        let values = ((*dispatch).translate)(dispatch, address, u64::from(count) * 4).cast::<u32>();
        if values.is_null() {
            return 1;
        }
        for index in 0..count as usize {
            let value = values.add(index);
            value.write_unaligned(value.read_unaligned() + 1);
        }
    }
    0
}

fn kernel(lab: &Lab) -> <Roc as Backend>::Kernel {
    let source = KernelSource::Text(SOURCE.to_owned());
    let module = Roc::compile(&lab.device, &source, &CompileOptions::default()).unwrap();
    Roc::kernel(&module, "increment").unwrap()
}

fn launch(stream: &RocStream, kernel: &<Roc as Backend>::Kernel, address: u64, count: u32) {
    let arguments = [KernelArgument::address(address), KernelArgument::new(count).unwrap()];
    let dims = LaunchDims::linear(count.div_ceil(64), 64);
    // SAFETY: the signature's arguments; every case's memory is that long and is waited for.
    unsafe { Roc::launch(stream, kernel, &dims, &arguments) }.unwrap();
}

fn run_increment(lab: &Lab, address: u64, count: u32) {
    launch(&lab.stream, &kernel(lab), address, count);
    lab.stream.synchronize().unwrap();
}

fn kernels_and_copies_on_one_stream(lab: &Lab) -> Result<(), Skip> {
    const COUNT: usize = 256;
    let kernel = kernel(lab);
    let (one, two) =
        (allocate(lab, 4 * COUNT, MemoryKind::Device), allocate(lab, 4 * COUNT, MemoryKind::Device));
    upload(lab, one.address(), &[0; 4 * COUNT]);
    // The first thing on a fresh stream is a kernel.
    let stream = Roc::create_stream(&lab.device, &StreamOptions::default()).unwrap();
    let here = Space::Device(0);
    for _ in 0..250 {
        launch(&stream, &kernel, one.address(), COUNT as u32);
        let there = CopyRegion::linear((one.address(), here), (two.address(), here), 4 * COUNT);
        let back = CopyRegion::linear((two.address(), here), (one.address(), here), 4 * COUNT);
        // SAFETY: both are that long, and are waited for.
        unsafe { Roc::copy(&stream, &there) }.unwrap();
        launch(&stream, &kernel, two.address(), COUNT as u32);
        // SAFETY: as above.
        unsafe { Roc::copy(&stream, &back) }.unwrap();
    }
    stream.synchronize().unwrap();
    let found = download(lab, one.address(), 4 * COUNT);
    assert!(found.chunks(4).all(|word| word == 500u32.to_ne_bytes()));
    release(lab, one);
    release(lab, two);
    Ok(())
}

fn other_architectures_are_refused(lab: &Lab) -> Result<(), Skip> {
    let source = KernelSource::Text(SOURCE.to_owned());
    for flag in ["--gpu-architecture=gfx9999", "--offload-arch=gfx000"] {
        let options = CompileOptions { flags: vec![flag.to_owned()] };
        let error = Roc::compile(&lab.device, &source, &options).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Build { .. }), "{error}");
    }
    let wrong = KernelSource::Text("extern \"C\" __global__ void f() { no_such_thing(); }".to_owned());
    let error = Roc::compile(&lab.device, &wrong, &CompileOptions::default()).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Build { log } if log.contains("no_such_thing")), "{error}");
    let ptx = KernelSource::Ptx(String::new());
    let error = Roc::compile(&lab.device, &ptx, &CompileOptions::default()).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Unsupported { .. }), "{error}");
    Ok(())
}

fn launches_that_do_not_fit_are_refused(lab: &Lab) -> Result<(), Skip> {
    let kernel = kernel(lab);
    let capabilities = Roc::capabilities(&lab.device);
    let shared = u32::try_from(capabilities.shared_memory).unwrap() + 1;
    for dims in [
        LaunchDims::linear(0, 64),
        LaunchDims::linear(1, capabilities.max_group_size + 1),
        LaunchDims {
            groups: [1; 3],
            group_size: [1, 1, capabilities.max_group_dims[2] + 1],
            shared_bytes: 0,
        },
        LaunchDims { groups: [1; 3], group_size: [1; 3], shared_bytes: shared },
        LaunchDims::linear(i32::MAX as u32, 64),
    ] {
        // SAFETY: nothing is launched.
        let error = unsafe { Roc::launch(&lab.stream, &kernel, &dims, &[]) }.unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::InvalidArgument { .. }), "{dims:?}: {error}");
    }
    Ok(())
}

fn the_callers_device_and_last_error_are_left_alone(lab: &Lab) -> Result<(), Skip> {
    let hip = gpumem_hip_sys::load(&gpumem_hip_sys::Places::from_environment()).unwrap().functions;
    let last = || {
        // SAFETY: the function has no preconditions.
        unsafe { hip.hipGetLastError() }.unwrap()
    };
    last();
    // SAFETY: at least one byte.
    let refused = unsafe { Roc::allocate(&lab.device, &request(1 << 60, MemoryKind::Device)) };
    assert!(refused.unwrap_err().is_out_of_memory());
    assert_eq!(last(), gpumem_hip_sys::hipError_t::hipSuccess);
    let devices = Roc::devices().unwrap();
    if devices.len() < 2 {
        return Err("there is no second device");
    }
    // SAFETY: a device that there is.
    assert_eq!(unsafe { hip.hipSetDevice(1) }.unwrap(), gpumem_hip_sys::hipError_t::hipSuccess);
    let buffer = allocate(lab, 100, MemoryKind::Device);
    lab.stream.synchronize().unwrap();
    release(lab, buffer);
    let mut current = 0;
    // SAFETY: a place for a number.
    unsafe { hip.hipGetDevice(&mut current) }.unwrap();
    assert_eq!(current, 1);
    // SAFETY: a device that there is.
    unsafe { hip.hipSetDevice(0) }.unwrap();
    Ok(())
}

/// In another process: memory that this one has sent, as hexadecimal digits.
const SENT: &str = "GPUMEM_ROC_TEST_SENT";

fn open_lab(ran_on: RanOn) -> Lab {
    let device = Roc::open(&DeviceSelector::ordinal("roc", 0)).unwrap();
    let stream = Roc::create_stream(&device, &StreamOptions::default()).unwrap();
    Lab { device, stream, ran_on }
}

/// The other process: sees the bytes that were sent, and answers in the same memory.
fn look_at(sent: &str) -> ExitCode {
    let bytes: Vec<u8> =
        (0..sent.len() / 2).map(|at| u8::from_str_radix(&sent[2 * at..2 * at + 2], 16).unwrap()).collect();
    let memory = IpcMemory::from_bytes(&bytes.try_into().unwrap());
    let lab = open_lab(RanOn::Hardware);
    // SAFETY: the other process keeps the memory and waits for this one to end.
    let buffer = unsafe { Roc::open_memory(&lab.device, &memory) }.unwrap();
    assert_eq!(buffer.len(), 1000);
    assert_eq!(download(&lab, buffer.address(), 1000), [0x5A; 1000]);
    upload(&lab, buffer.address(), &[0x6B; 1000]);
    release(&lab, buffer);
    ExitCode::SUCCESS
}

fn memory_is_shared_with_another_process(lab: &Lab) -> Result<(), Skip> {
    // An allocation of its own, so that no other data is shown with it.
    let buffer = allocate(lab, 4 << 20, MemoryKind::Device);
    let part = buffer.address() + 4096;
    upload(lab, buffer.address(), &[0x11; 8192]);
    upload(lab, part, &[0x5A; 1000]);
    assert_eq!(Roc::allocation_of(&lab.device, part).unwrap(), (buffer.address(), buffer.len()));
    // SAFETY: the range lies in the buffer, which is kept until the other process has ended.
    let memory = unsafe { Roc::export_memory(&lab.device, part, 1000) }.unwrap();
    // SAFETY: as above; it is refused.
    let outside = unsafe { Roc::export_memory(&lab.device, part, 4 << 20) }.unwrap_err();
    assert!(matches!(outside.kind(), ErrorKind::InvalidArgument { .. }), "{outside}");
    let sent: String = memory.to_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    let child =
        std::process::Command::new(std::env::current_exe().unwrap()).env(SENT, sent).output().unwrap();
    assert!(child.status.success(), "{}", String::from_utf8_lossy(&child.stderr));
    let seen = download(lab, buffer.address(), 8192);
    assert!(seen[4096..5096].iter().all(|byte| *byte == 0x6B));
    assert!(seen[..4096].iter().chain(&seen[5096..]).all(|byte| *byte == 0x11));
    release(lab, buffer);
    Ok(())
}

fn exhausted_memory_comes_back(lab: &Lab) -> Result<(), Skip> {
    if lab.ran_on != RanOn::Rocsim {
        return Err("the memory of a real device is not filled in a test");
    }
    const BLOCK: usize = 100 << 20;
    let mut blocks = Vec::new();
    let error = loop {
        // SAFETY: the memory is not read.
        match unsafe { Roc::allocate(&lab.device, &request(BLOCK, MemoryKind::Device)) } {
            Ok(block) => blocks.push(block),
            Err(error) => break error,
        }
        assert!(blocks.len() < 1000, "the memory has no end");
    };
    let ErrorKind::OutOfMemory { requested: BLOCK, total, .. } = error.kind() else { panic!("{error}") };
    assert!(*total >= blocks.len() * BLOCK);
    blocks.into_iter().for_each(|block| release(lab, block));
    release(lab, allocate(lab, BLOCK, MemoryKind::Device));
    Ok(())
}

fn a_reset_gives_everything_back(lab: &Lab) -> Result<(), Skip> {
    if lab.ran_on == RanOn::Hardware {
        return Err("other programs may be using the device");
    }
    let before = Roc::memory_info(&lab.device).unwrap().free;
    let block = allocate(lab, 300 << 20, MemoryKind::Device);
    let event = Roc::create_event(&lab.device, gpumem_core::EventOptions::default()).unwrap();
    Roc::record(&lab.stream, &event).unwrap();
    // SAFETY: nothing that was made before is used but to see it refused. This is the last case.
    unsafe { Roc::reset(&lab.device) }.unwrap();
    let after = Roc::memory_info(&lab.device).unwrap().free;
    assert!(after + (1 << 20) >= before, "{before} bytes were free before, {after} after");
    let stale = lab.stream.synchronize().unwrap_err();
    assert!(matches!(stale.kind(), ErrorKind::Stale { what: "stream" }), "{stale}");
    // SAFETY: it is only forgotten.
    unsafe { Roc::release(&lab.device, block) }.map_err(|(_, error)| error).unwrap();
    drop(event);
    let stream = Roc::create_stream(&lab.device, &StreamOptions::default()).unwrap();
    stream.synchronize().unwrap();
    Ok(())
}
