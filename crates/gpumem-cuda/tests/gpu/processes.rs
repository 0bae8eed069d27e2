//! Cases that need a process of their own, and how one is started: this program again, with the part to play in its
//! environment.

use crate::{
    Case, Part, Skip,
    fixture::{Lab, Numbers},
    uploads,
};
use cudarc::driver::sys;
use gpumem_core::{
    AllocationRequest, Backend, DeviceBuffer, DeviceSelector, DriverDevice, ErrorKind, Event, EventOptions,
    KernelArguments, MemoryKind, Stream,
};
use gpumem_cuda::{Cuda, CudaBuffer, CudaDevice, CudaEvent, CudaExt, CudaStream, IpcMemory};
use gpumem_runtime::{Device, IpcArrayHandle};
use ndarray::{Array2, Ix2, s};
use std::{
    process::{Command, Stdio},
    sync::Mutex,
    time::{Duration, Instant},
};

pub(crate) const CASES: &[Case] = &[
    ("memory_is_shared_with_another_process", share),
    ("an_array_is_shared_with_another_process", share_array),
    #[cfg(unix)]
    ("a_forked_child_gets_an_error", |_| start("fork")),
    ("drops_at_the_end_of_the_process_do_nothing", |_| start(EXIT)),
    ("a_reset_makes_the_device_usable_again", |_| start("reset")),
    ("uploads_of_several_processes_arrive", uploads_of_several_processes),
];

pub(crate) const PARTS: &[Part] = &[
    ("borrower", borrower),
    ("array_borrower", array_borrower),
    #[cfg(unix)]
    ("fork", fork),
    ("reset", reset),
    ("uploads", uploads::part),
];

/// The variable that names the part of a process that was started by [`again`].
pub(crate) const PART: &str = "GPUMEM_TEST_SUBPROCESS";
const SHARED: &str = "GPUMEM_CUDA_SHARED";

/// Runs a role in a child process, to its end. Nothing may hang.
pub(crate) fn again(part: &str, variables: &[(&str, String)]) {
    let program = std::env::current_exe().unwrap();
    let mut command = Command::new(program);
    command.env(PART, part).envs(variables.iter().map(|(name, value)| (name, value))).stdin(Stdio::null());
    let mut child = command.spawn().unwrap();
    let begin = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if begin.elapsed() > Duration::from_secs(60) {
            child.kill().unwrap();
            panic!("the part {part} hangs");
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    assert!(status.success(), "the part {part} ended with {status}");
}

/// Other processes on the device delay copies.
fn uploads_of_several_processes(_: &Lab) -> Result<(), Skip> {
    std::thread::scope(|threads| {
        for _ in 0..uploads::PROCESSES {
            threads.spawn(|| again("uploads", &[]));
        }
    });
    Ok(())
}

pub(crate) fn start(part: &str) -> Result<(), Skip> {
    again(part, &[]);
    Ok(())
}

fn share(lab: &Lab) -> Result<(), Skip> {
    let block = lab.allocate(MemoryKind::Device, 3 << 20);
    let data = Numbers(10).bytes(1000);
    let offset = 12_345;
    lab.write(block.address() + offset, &data);
    // SAFETY: the block outlives the other process.
    let memory = unsafe { lab.device.export_memory(block.address() + offset, data.len()) }.unwrap();
    assert_eq!(memory.len(), data.len());
    assert_eq!(IpcMemory::from_bytes(&memory.to_bytes()), memory);
    let text: String = memory.to_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    again("borrower", &[(SHARED, text)]);
    let complement: Vec<u8> = data.iter().map(|byte| !byte).collect();
    assert_eq!(lab.read(block.address() + offset, data.len()), complement);
    // SAFETY: refused, because the range reaches outside.
    let error = unsafe { lab.device.export_memory(block.address(), usize::MAX) }.unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::InvalidArgument { .. }), "{error}");
    // SAFETY: refused, because a process cannot open its own memory.
    let error = unsafe { lab.device.open_memory(&memory) }.map(|buffer| lab.own(buffer)).err().unwrap();
    assert!(matches!(error.kind(), ErrorKind::InvalidArgument { .. } | ErrorKind::Driver { .. }), "{error}");
    Ok(())
}

fn borrower(lab: &Lab) {
    let text = std::env::var(SHARED).unwrap();
    let bytes: Vec<u8> =
        (0..text.len() / 2).map(|i| u8::from_str_radix(&text[2 * i..2 * i + 2], 16).unwrap()).collect();
    let memory = IpcMemory::from_bytes(&bytes.try_into().unwrap());
    for (offset, bytes) in [(0, 64 << 20), (64 << 20, 1), (u64::MAX, 1), (0, u64::MAX)] {
        let beyond = IpcMemory::new(*memory.handle(), offset, bytes);
        // SAFETY: refused.
        let error = unsafe { lab.device.open_memory(&beyond) }.map(|buffer| lab.own(buffer)).err().unwrap();
        assert!(matches!(error.kind(), ErrorKind::InvalidArgument { .. }), "{error}");
    }
    for round in 0..3 {
        // SAFETY: the parent waits for this process and keeps the memory alive.
        let block = lab.own(unsafe { lab.device.open_memory(&memory) }.unwrap());
        assert_eq!((block.len(), block.kind()), (1000, MemoryKind::Device));
        let found = lab.read(block.address(), block.len());
        assert!(round > 0 || found == Numbers(10).bytes(1000));
        lab.write(block.address(), &found.iter().map(|byte| !byte).collect::<Vec<_>>());
    }
}

fn numbers() -> Array2<u32> {
    Array2::from_shape_fn((600, 80), |(i, j)| (1000 * i + j) as u32)
}

fn share_array(lab: &Lab) -> Result<(), Skip> {
    let device = Device::<Cuda>::from_raw(lab.device.clone());
    let stream = device.stream().unwrap();
    let before = stream.to_device(&numbers()).unwrap();
    // Written on a stream that is never waited for: exporting does.
    let mut array = device.ipc_array::<u32, _>((600, 80)).unwrap();
    stream.copy_to_device(&mut array, &before).unwrap();
    let part = s![1..;2, ..;-1];
    let view = array.slice(part).unwrap();
    // SAFETY: the array outlives the other process, and is not used meanwhile.
    let shared = unsafe { view.ipc_handle() }.unwrap();
    let text: String = shared.to_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    again("array_borrower", &[(SHARED, text)]);
    let mut expected = numbers();
    expected.slice_mut(part).mapv_inplace(|number| !number);
    assert_eq!(array.copy_to_host().unwrap(), expected);
    Ok(())
}

fn array_borrower(lab: &Lab) {
    let text = std::env::var(SHARED).unwrap();
    let bytes: Vec<u8> =
        (0..text.len() / 2).map(|i| u8::from_str_radix(&text[2 * i..2 * i + 2], 16).unwrap()).collect();
    let described = IpcArrayHandle::<u32, Ix2>::from_bytes(&bytes).unwrap();
    let device = Device::<Cuda>::from_raw(lab.device.clone());
    let expected = numbers().slice_move(s![1..;2, ..;-1]);
    // SAFETY: the parent waits for this process and keeps the array alive.
    let mut shared = unsafe { device.open_ipc(&described) }.unwrap();
    assert_eq!(shared.copy_to_host().unwrap(), expected);
    let snapshot = shared.snapshot().unwrap();
    shared.copy_to_device(&expected.mapv(|number| !number)).unwrap();
    assert_eq!(snapshot.copy_to_host().unwrap(), expected, "a snapshot does not change");
    drop(shared);
    device.flush().unwrap();
    assert_eq!(device.take_errors(), [], "closing");
    // Closed, so that it can be opened again.
    // SAFETY: as above.
    let again = unsafe { device.open_ipc(&described) }.unwrap();
    assert_eq!(again.copy_to_host().unwrap(), expected.mapv(|number| !number));
}

/// The part that lists the devices and opens none.
pub(crate) const LISTING: &str = "listing";

pub(crate) fn list_only() {
    assert!(!Cuda::devices().unwrap().is_empty());
    let (mut flags, mut active) = (9, 9);
    // SAFETY: places for integers; listing has initialised the driver.
    unsafe { sys::cuDevicePrimaryCtxGetState(0, &mut flags, &mut active).result().unwrap() };
    assert_eq!(active, 0, "listing the devices has made a context");
}

#[cfg(unix)]
fn fork(lab: &Lab) {
    let stream = lab.stream();
    let event = lab.device.create_event(EventOptions::default()).unwrap();
    let block = lab.allocate(MemoryKind::Device, 1000);
    // SAFETY: the child calls nothing that another thread of the parent could hold a lock of; it has one thread.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let forked = |error: gpumem_core::Error| assert_eq!(error.kind(), &ErrorKind::ForkedChild, "{error}");
        let request = AllocationRequest { bytes: 16, align: 16, kind: MemoryKind::Device };
        // SAFETY: refused.
        forked(unsafe { lab.device.allocate(&request) }.unwrap_err());
        // SAFETY: refused; the buffer comes back and is only forgotten.
        forked(unsafe { lab.device.release(block.into_inner()) }.unwrap_err().1);
        forked(stream.synchronize().unwrap_err());
        forked(stream.record(&event).unwrap_err());
        forked(lab.device.synchronize().unwrap_err());
        forked(lab.device.memory_info().unwrap_err());
        forked(Cuda::devices().unwrap_err());
        forked(Cuda::open(&DeviceSelector::ordinal("cuda", 0)).unwrap_err());
        // SAFETY: refused.
        forked(unsafe { lab.device.reset() }.unwrap_err());
        drop((stream, event));
        // SAFETY: ends the child at once, without the parent's exit handlers.
        unsafe { libc::_exit(42) };
    }
    let mut status = 0;
    // SAFETY: a place for a number; the child is ours.
    unsafe { libc::waitpid(child, &mut status, 0) };
    assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 42, "the child ended with {status:#x}");
    // The parent goes on as before.
    stream.record(&event).unwrap();
    stream.synchronize().unwrap();
}

/// The role whose handles are still alive when the process ends.
pub(crate) const EXIT: &str = "exit";

type Kept = Mutex<Option<(CudaDevice, CudaStream, CudaEvent, CudaBuffer)>>;
static LATE: Kept = Mutex::new(None);
static EARLY: Kept = Mutex::new(None);

/// Drops handles in two exit handlers. The one that is registered first runs last, when the driver may be gone.
pub(crate) fn end() {
    // SAFETY: both handlers may run whenever the process ends.
    let register = |handler| assert_eq!(unsafe { libc::atexit(handler) }, 0);
    register(at_exit_late);
    let lab = Lab::open().unwrap();
    for kept in [&LATE, &EARLY] {
        let event = lab.device.create_event(EventOptions::default()).unwrap();
        let buffer = lab.allocate(MemoryKind::Device, 1000).into_inner();
        *kept.lock().unwrap() = Some((lab.device.clone(), lab.stream(), event, buffer));
    }
    register(at_exit_early);
}

/// Runs before our own handler: the driver is still there.
extern "C" fn at_exit_early() {
    let (device, stream, event, buffer) = EARLY.lock().unwrap().take().unwrap();
    // SAFETY: nothing uses the buffer.
    unsafe { device.release(buffer) }.map_err(|(_, error)| error).unwrap();
    stream.destroy().unwrap();
    event.destroy().unwrap();
}

extern "C" fn at_exit_late() {
    let (device, stream, event, buffer) = LATE.lock().unwrap().take().unwrap();
    assert_eq!(stream.synchronize().unwrap_err().kind(), &ErrorKind::Exiting);
    // SAFETY: nothing uses the buffer.
    let (_, error) = unsafe { device.release(buffer) }.unwrap_err();
    assert_eq!(error.kind(), &ErrorKind::Exiting);
    drop((stream, event));
}

fn reset(lab: &Lab) {
    let stream = lab.stream();
    let event = lab.device.create_event(EventOptions::default()).unwrap();
    let kernel = lab.kernel("extern \"C\" __global__ void f() {}", "f");
    let buffer = lab.allocate(MemoryKind::Device, 64 << 20).into_inner();
    let pinned = lab.allocate(MemoryKind::Pinned, 1000).into_inner();
    let before = lab.device.memory_info().unwrap().free;
    for _ in 0..2 {
        // SAFETY: objects from before the reset are only forgotten from here on.
        unsafe { lab.device.reset() }.unwrap();
    }
    assert!(lab.device.memory_info().unwrap().free >= before + (32 << 20), "the memory did not go back");
    let stale =
        |error: gpumem_core::Error| assert!(matches!(error.kind(), ErrorKind::Stale { .. }), "{error}");
    stale(stream.synchronize().unwrap_err());
    stale(event.synchronize().unwrap_err());
    stale(stream.record(&event).unwrap_err());
    let fresh = Lab::on(lab.device.clone());
    stale(fresh.stream().record(&event).unwrap_err());
    let dims = gpumem_core::LaunchConfig::linear(1, 1);
    // SAFETY: refused.
    stale(unsafe { fresh.stream().launch(&kernel, &dims, &KernelArguments::new()) }.unwrap_err());
    for old in [buffer, pinned] {
        // SAFETY: went with the reset; nothing is freed twice.
        unsafe { lab.device.release(old) }.map_err(|(_, error)| error).unwrap();
    }
    drop((stream, event, kernel));
    // The same device, as good as new, under the same name.
    let block = fresh.allocate(MemoryKind::Device, 1000);
    fresh.write(block.address(), &[3; 1000]);
    assert_eq!(fresh.read(block.address(), 1000), [3; 1000]);
    let again = Cuda::open(&DeviceSelector::ordinal("cuda", 0)).unwrap();
    assert_eq!(Cuda::context(&again), Cuda::context(&lab.device));
    let (mut flags, mut active) = (0, 0);
    // SAFETY: places for integers.
    unsafe { sys::cuDevicePrimaryCtxGetState(0, &mut flags, &mut active).result().unwrap() };
    assert_eq!(active, 1);
    drop(block);
}
