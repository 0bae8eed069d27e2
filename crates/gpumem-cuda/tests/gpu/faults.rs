//! Kernels that fault: the device is lost, typed, once and for all, and nothing panics or hangs afterwards.
//!
//! Each fault has a separate process, because the driver does not forget it.

use crate::{
    Case, Part,
    fixture::{Lab, current_context},
    processes::start,
};
use gpumem_core::{
    AllocationRequest, Backend, CompileOptions, CopyRegion, DeviceBuffer, DeviceSelector, DriverDevice,
    Error, ErrorKind, Event, EventOptions, Fill, KernelArguments, KernelSource, LaunchConfig, MemoryKind,
    Pattern, RegisterOptions, Stream,
};
use gpumem_cuda::Cuda;
use std::ptr::NonNull;

pub(crate) const CASES: &[Case] = &[
    ("an_illegal_address_loses_the_device", |_| start("illegal_address")),
    ("a_trap_loses_the_device", |_| start("trap")),
    ("a_misaligned_address_loses_the_device", |_| start("misaligned")),
    ("a_reset_of_a_lost_device_works_or_is_an_error", |_| start("lost_and_reset")),
];

pub(crate) const PARTS: &[Part] = &[
    ("illegal_address", |lab| faults(lab, "*(volatile int*)(8ull << 40) = 1;", "CUDA_ERROR_ILLEGAL_ADDRESS")),
    // Which of its names a trap has depends on the driver.
    ("trap", |lab| faults(lab, "__trap();", "CUDA_ERROR_")),
    ("misaligned", |lab| faults(lab, "*(volatile long long*)(to + 1) = 1;", "CUDA_ERROR_MISALIGNED_ADDRESS")),
    ("lost_and_reset", lost_and_reset),
];

fn enqueue_fault(lab: &Lab, body: &str) -> gpumem_cuda::CudaStream {
    let kernel = lab.kernel(&format!("extern \"C\" __global__ void fault(char* to) {{ {body} }}"), "fault");
    let block = lab.allocate(MemoryKind::Device, 64);
    let stream = lab.stream();
    let arguments = KernelArguments::new().with(block.address());
    lab.launch(&stream, &kernel, LaunchConfig::linear(1, 1), &arguments);
    // The kernel uses the block, which ends with the context.
    std::mem::forget(block);
    stream
}

fn faults(lab: &Lab, body: &str, name: &str) {
    let event = lab.device.create_event(EventOptions::default()).unwrap();
    let buffer = lab.allocate(MemoryKind::Device, 1000).into_inner();
    let pinned = lab.allocate(MemoryKind::Pinned, 1000).into_inner();
    let mut array = vec![0u8; 10_000];
    let start = NonNull::new(array.as_mut_ptr()).unwrap();
    // SAFETY: the array outlives the registration.
    let registered = unsafe { lab.device.register(start, array.len(), RegisterOptions::default()) }.unwrap();
    let other = lab.stream();

    let stream = enqueue_fault(lab, body);
    let error = stream.synchronize().unwrap_err();
    println!("    {error}");
    let ErrorKind::DeviceLost { cause } = error.kind() else { panic!("{error}") };
    assert!(cause.contains(name), "{cause}");

    // Every later call tells the first cause again.
    let lost = |error: Error| assert_eq!(error.kind(), &ErrorKind::DeviceLost { cause: cause.clone() });
    lost(stream.synchronize().unwrap_err());
    lost(stream.query().unwrap_err());
    lost(other.synchronize().unwrap_err());
    lost(event.query().unwrap_err());
    lost(other.record(&event).unwrap_err());
    lost(other.wait(&event).unwrap_err());
    lost(lab.device.synchronize().unwrap_err());
    lost(lab.device.memory_info().unwrap_err());
    lost(lab.device.create_stream(&Default::default()).unwrap_err());
    lost(lab.device.create_event(EventOptions::default()).unwrap_err());
    let source = KernelSource::Text(String::new());
    lost(lab.device.compile(&source, &CompileOptions::default()).unwrap_err());
    let again = Cuda::open(&DeviceSelector::ordinal("cuda", 0)).unwrap();
    let request = AllocationRequest { bytes: 16, align: 16, kind: MemoryKind::Device };
    let end = (buffer.address(), lab.here());
    let fill = Fill { address: buffer.address(), pattern: Pattern::U8(0), count: 1, rows: 1, pitch: 1 };
    // SAFETY: all are refused.
    unsafe {
        lost(again.allocate(&request).unwrap_err());
        lost(other.copy(&CopyRegion::linear(end, end, 1)).unwrap_err());
        lost(other.fill(&fill).unwrap_err());
    }
    // All goes quietly.
    for buffer in [buffer, pinned, registered] {
        // SAFETY: nothing uses the memory any more.
        unsafe { lab.device.release(buffer) }.map_err(|(_, error)| error).unwrap();
    }
    stream.destroy().unwrap();
    event.destroy().unwrap();
    drop(other);
    assert!(current_context().is_null(), "a lost context is still current");
    // The list of devices needs none of them.
    assert!(!Cuda::devices().unwrap().is_empty());
}

fn lost_and_reset(lab: &Lab) {
    let stream = enqueue_fault(lab, "*(volatile int*)(8ull << 40) = 1;");
    assert!(stream.synchronize().unwrap_err().is_device_lost());
    drop(stream);
    // SAFETY: nothing made before is used again.
    match unsafe { lab.device.reset() } {
        Ok(()) => {
            let fresh = Lab::on(lab.device.clone());
            let block = fresh.allocate(MemoryKind::Device, 1000);
            fresh.write(block.address(), &[4; 1000]);
            assert_eq!(fresh.read(block.address(), 1000), [4; 1000]);
        }
        // Some faults outlive a reset (an illegal address does, with driver 580): every call goes on saying so.
        Err(error) => {
            println!("    {error}");
            assert!(lab.device.memory_info().unwrap_err().is_device_lost());
        }
    }
}
