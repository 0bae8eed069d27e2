//! The kernel driver's interface, called as the thunk calls it.

use crate::{
    abi::{
        KFD_IOCTL_TYPE, KFD_VERSION, KfdAllocMemoryOfGpu, KfdAvailableMemory, KfdCreateEvent, KfdCreateQueue,
        KfdDestroyQueue, KfdEvent, KfdEventData, KfdEventPayload, KfdExportDmabuf, KfdFreeMemoryOfGpu,
        KfdGetVersion, KfdImportDmabuf, KfdIpcExportHandle, KfdIpcImportHandle, KfdMapMemoryToGpu,
        KfdSaveAreaHeader, KfdSetXnackMode, KfdWaitEvents, PAGE, kfd_memory, kfd_queue,
        kfd_request as number, kfd_wait, packet,
    },
    kfd::{self, drm},
    memory::{Cause, span},
};
use std::{
    ffi::{c_int, c_ulong},
    os::fd::{AsRawFd, FromRawFd, OwnedFd},
    sync::atomic::{AtomicU64, Ordering},
    thread,
    time::{Duration, Instant},
};

const NODE: u32 = 1;

fn open(path: &std::ffi::CStr) -> OwnedFd {
    let file = kfd::open(path).unwrap();
    assert!(file >= 0);
    // SAFETY: the descriptor is new.
    unsafe { OwnedFd::from_raw_fd(file) }
}

fn ask<T>(file: &OwnedFd, request: u8, argument: &mut T) -> Result<(), c_int> {
    let request = c_ulong::from(KFD_IOCTL_TYPE) << 8 | c_ulong::from(request);
    // SAFETY: the argument is the structure of the request.
    unsafe { kfd::request(file.as_raw_fd(), request, (&raw mut *argument).cast()) }.unwrap()
}

/// Addresses as the thunk reserves them.
fn reserve(bytes: u64) -> u64 {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: a new mapping at an address that the kernel chooses.
    let start = unsafe { libc::mmap(std::ptr::null_mut(), bytes as usize, libc::PROT_NONE, flags, -1, 0) };
    assert_ne!(start, libc::MAP_FAILED);
    start as u64
}

/// Maps a block for the host where GPUs have it.
fn show(file: &OwnedFd, offset: u64, address: u64, bytes: u64) {
    let mapped = kfd::map(file.as_raw_fd(), offset as i64, |file, offset, is_seen| {
        assert!(is_seen);
        let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_FIXED);
        // SAFETY: the addresses are reserved by the caller.
        unsafe { libc::mmap(address as *mut _, bytes as usize, protection, flags, file, offset) }
    });
    assert_eq!(mapped, Some(address as *mut _));
}

fn allocate(kfd: &OwnedFd, address: u64, bytes: u64, flags: u32) -> Result<KfdAllocMemoryOfGpu, c_int> {
    let mut block =
        KfdAllocMemoryOfGpu { va_addr: address, size: bytes, handle: 0, mmap_offset: 0, gpu_id: NODE, flags };
    ask(kfd, number::ALLOC_MEMORY_OF_GPU, &mut block).map(|()| block)
}

fn grant(kfd: &OwnedFd, handle: u64) {
    let node = NODE;
    let mut map = KfdMapMemoryToGpu {
        handle,
        device_ids_array_ptr: &raw const node as u64,
        n_devices: 1,
        n_success: 0,
    };
    ask(kfd, number::MAP_MEMORY_TO_GPU, &mut map).unwrap();
    assert_eq!(map.n_success, 1);
}

/// A block of the host's memory that the GPU and the host reach.
fn shared(kfd: &OwnedFd, bytes: u64) -> u64 {
    let address = reserve(bytes);
    let block = allocate(kfd, address, bytes, kfd_memory::GTT).unwrap();
    show(kfd, block.mmap_offset, address, bytes);
    grant(kfd, block.handle);
    address
}

fn word<'a>(address: u64) -> &'a AtomicU64 {
    // SAFETY: an aligned word of memory that is never freed.
    unsafe { AtomicU64::from_ptr(address as *mut u64) }
}

fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < Duration::from_secs(20), "{what}");
        thread::sleep(Duration::from_micros(100));
    }
}

#[test]
fn device_files_are_known_again() {
    let (kfd, render) = (open(c"/dev/kfd"), open(c"/dev/dri/renderD128"));
    let mut version = KfdGetVersion { major_version: 0, minor_version: 0 };
    ask(&kfd, number::GET_VERSION, &mut version).unwrap();
    assert_eq!((version.major_version, version.minor_version), KFD_VERSION);
    assert_eq!(ask(&render, number::GET_VERSION, &mut version), Err(libc::ENOTTY));
    assert_eq!(ask(&kfd, 0x7f, &mut version), Err(libc::ENOTTY));
    assert_eq!(
        ask(&kfd, number::SET_XNACK_MODE, &mut KfdSetXnackMode { xnack_enabled: 1 }),
        Err(libc::EPERM)
    );
    for path in [c"/dev/kfd2", c"/dev/dri/renderD127", c"/dev/dri/renderD150", c"/dev/dri/card0"] {
        assert_eq!(kfd::open(path), None, "{path:?}");
    }
    let other = std::fs::File::open("/dev/null").unwrap();
    let request = c_ulong::from(KFD_IOCTL_TYPE) << 8;
    // SAFETY: the descriptor is not the simulator's, so that nothing is looked at.
    assert_eq!(unsafe { kfd::request(other.as_raw_fd(), request, std::ptr::null_mut()) }, None);
}

#[test]
fn the_machine_is_described_in_files() {
    let folder = "/sys/devices/virtual/kfd/kfd/topology";
    assert_eq!(kfd::folder(&format!("{folder}/nodes")).unwrap(), ["0", "1"]);
    assert_eq!(kfd::folder(&format!("{folder}/nodes/1/mem_banks")).unwrap(), ["0"]);
    let text = kfd::text(&format!("{folder}/nodes/1/properties")).unwrap();
    for line in ["gfx_target_version 90006", "drm_render_minor 128", "simd_count 16", "io_links_count 1"] {
        assert!(text.lines().any(|found| found == line), "{line} in {text}");
    }
    let bank = kfd::text(&format!("{folder}/nodes/1/mem_banks/0/properties")).unwrap();
    assert!(bank.starts_with("heap_type 2\nsize_in_bytes 1073741824\n"), "{bank}");
    for path in ["nodes/2/properties", "nodes/1/mem_banks/1/properties", "nodes", "surprise"] {
        assert_eq!(kfd::text(&format!("{folder}/{path}")), None, "{path}");
    }
    assert_eq!(kfd::text("/proc/cpuinfo"), None);
}

#[test]
fn memory_is_reached_where_the_thunk_has_placed_it() {
    let kfd = open(c"/dev/kfd");
    let address = reserve(2 * PAGE);
    let block = allocate(&kfd, address, 2 * PAGE, kfd_memory::VRAM).unwrap();
    assert_eq!(span(NODE, address, 1).unwrap_err().cause, Cause::NotMapped { mapped: vec![] });
    grant(&kfd, block.handle);
    assert_eq!(span(NODE, address, 2 * PAGE).unwrap().bytes() as u64, 2 * PAGE);
    span(NODE, address, 5).unwrap().fill(&[7]);
    show(&kfd, block.mmap_offset, address, 2 * PAGE);
    assert_eq!(word(address).load(Ordering::Relaxed), 0x07_0707_0707);
    // Not twice at one place, and no longer than there is.
    assert_eq!(allocate(&kfd, address + PAGE, PAGE, kfd_memory::VRAM).err(), Some(libc::EINVAL));
    let mut free = KfdFreeMemoryOfGpu { handle: block.handle };
    ask(&kfd, number::FREE_MEMORY_OF_GPU, &mut free).unwrap();
    assert_eq!(ask(&kfd, number::FREE_MEMORY_OF_GPU, &mut free), Err(libc::EINVAL));
    assert_eq!(span(NODE, address, 1).unwrap_err().cause, Cause::Unknown);
    let mut available = KfdAvailableMemory { available: 0, gpu_id: NODE, pad: 0 };
    ask(&kfd, number::AVAILABLE_MEMORY, &mut available).unwrap();
    let too_much = allocate(&kfd, reserve(1 << 31), 1 << 31, kfd_memory::VRAM);
    assert_eq!(too_much.err(), Some(libc::ENOMEM));
    assert!(available.available <= 1 << 30);
}

#[test]
fn registered_memory_has_another_address() {
    let kfd = open(c"/dev/kfd");
    let mut own = vec![0u8; 3 * PAGE as usize];
    let start = (own.as_mut_ptr() as u64).next_multiple_of(PAGE);
    let address = reserve(PAGE);
    let mut block = KfdAllocMemoryOfGpu {
        va_addr: address,
        size: PAGE,
        handle: 0,
        mmap_offset: start,
        gpu_id: NODE,
        flags: kfd_memory::USERPTR,
    };
    ask(&kfd, number::ALLOC_MEMORY_OF_GPU, &mut block).unwrap();
    grant(&kfd, block.handle);
    span(NODE, address, 4).unwrap().fill(&[9]);
    assert_eq!(span(NODE, start, 1).unwrap_err().cause, Cause::HostAddress);
    ask(&kfd, number::FREE_MEMORY_OF_GPU, &mut KfdFreeMemoryOfGpu { handle: block.handle }).unwrap();
    let written = (start - own.as_ptr() as u64) as usize;
    assert_eq!(own[written..written + 5], [9, 9, 9, 9, 0]);
}

#[test]
fn memory_is_shared_by_descriptors_and_by_handles() {
    let (kfd, render) = (open(c"/dev/kfd"), open(c"/dev/dri/renderD128"));
    let block = allocate(&kfd, reserve(PAGE), PAGE, kfd_memory::VRAM).unwrap();
    grant(&kfd, block.handle);
    span(NODE, block.handle, PAGE).unwrap().fill(&[3]);
    let mut exported = KfdExportDmabuf { handle: block.handle, flags: 0, dmabuf_fd: 0 };
    ask(&kfd, number::EXPORT_DMABUF, &mut exported).unwrap();
    // SAFETY: the descriptor is new.
    let file = unsafe { OwnedFd::from_raw_fd(exported.dmabuf_fd as c_int) };
    let mut imported =
        KfdImportDmabuf { va_addr: reserve(PAGE), handle: 0, gpu_id: NODE, dmabuf_fd: exported.dmabuf_fd };
    ask(&kfd, number::IMPORT_DMABUF, &mut imported).unwrap();
    let mut handle =
        KfdIpcExportHandle { handle: block.handle, share_handle: [0; 4], gpu_id: NODE, flags: 0 };
    ask(&kfd, number::IPC_EXPORT_HANDLE, &mut handle).unwrap();
    let mut attached = KfdIpcImportHandle {
        handle: 0,
        va_addr: reserve(PAGE),
        mmap_offset: 0,
        share_handle: handle.share_handle,
        gpu_id: 0,
        flags: 0,
    };
    ask(&kfd, number::IPC_IMPORT_HANDLE, &mut attached).unwrap();
    let mapped = kfd::map(kfd.as_raw_fd(), attached.mmap_offset as i64, |_, offset, is_seen| {
        assert_eq!((offset, is_seen), (0, false), "the host does not see it");
        std::ptr::null_mut()
    });
    assert_eq!(mapped, Some(std::ptr::null_mut()));
    for other in [imported.handle, attached.handle] {
        grant(&kfd, other);
        // SAFETY: the span has a byte.
        assert_eq!(unsafe { span(NODE, other, 1).unwrap().as_ptr().read() }, 3);
    }
    attached.share_handle[3] = 0;
    assert_eq!(ask(&kfd, number::IPC_IMPORT_HANDLE, &mut attached), Err(libc::EINVAL));
    // libdrm's way, with a word for other processes.
    let device = drm::Device::of(render.as_raw_fd()).unwrap();
    let (buffer, again) =
        (device.import(file.as_raw_fd()).unwrap(), device.import(file.as_raw_fd()).unwrap());
    assert_eq!(buffer.bytes(), PAGE);
    let address = reserve(PAGE);
    buffer.change(0, PAGE, address, drm::MAP).unwrap();
    assert!(span(NODE, address, PAGE).is_ok());
    again.change(0, PAGE, address, drm::UNMAP).unwrap();
    assert_eq!(span(NODE, address, PAGE).unwrap_err().cause, Cause::Unknown);
    let said = drm::Metadata::of(&[42, 43]);
    buffer.set_metadata(&said).unwrap();
    assert_eq!(again.info().unwrap().metadata().words(), [42, 43]);
}

fn wait_for(kfd: &OwnedFd, entries: &mut [KfdEventData], timeout: u32) -> Result<u32, c_int> {
    let mut wait = KfdWaitEvents {
        events_ptr: entries.as_mut_ptr() as u64,
        num_events: entries.len() as u32,
        wait_for_all: 0,
        timeout,
        wait_result: 9,
    };
    ask(kfd, number::WAIT_EVENTS, &mut wait).map(|()| wait.wait_result)
}

fn event(kfd: &OwnedFd) -> KfdEventData {
    let mut event = KfdCreateEvent {
        event_page_offset: 0,
        event_trigger_data: 0,
        event_type: 0,
        auto_reset: 1,
        node_id: 0,
        event_id: 0,
        event_slot_index: 0,
    };
    ask(kfd, number::CREATE_EVENT, &mut event).unwrap();
    assert_ne!(event.event_page_offset, 0, "the thunk takes the event's place in the page only then");
    let payload = KfdEventPayload { last_event_age: 1 };
    KfdEventData { payload, kfd_event_data_ext: 0, event_id: event.event_id, pad: 0 }
}

#[test]
fn a_waiter_that_knows_the_age_misses_no_event() {
    let kfd = open(c"/dev/kfd");
    let mut entry = event(&kfd);
    let mut id = KfdEvent { event_id: entry.event_id, pad: 0 };
    assert_eq!(wait_for(&kfd, std::slice::from_mut(&mut entry), 0), Ok(kfd_wait::TIMEOUT));
    ask(&kfd, number::SET_EVENT, &mut id).unwrap();
    // Another waiter takes it; the age still tells of it.
    let mut other = KfdEventData { payload: KfdEventPayload { last_event_age: 0 }, ..entry };
    assert_eq!(wait_for(&kfd, std::slice::from_mut(&mut other), 0), Ok(kfd_wait::COMPLETE));
    assert_eq!(wait_for(&kfd, std::slice::from_mut(&mut other), 0), Ok(kfd_wait::TIMEOUT));
    assert_eq!(wait_for(&kfd, std::slice::from_mut(&mut entry), 0), Ok(kfd_wait::COMPLETE));
    // SAFETY: the payload of a signal's event.
    assert_eq!(unsafe { entry.payload.last_event_age }, 2);
    assert_eq!(wait_for(&kfd, std::slice::from_mut(&mut entry), 0), Ok(kfd_wait::TIMEOUT));
    ask(&kfd, number::DESTROY_EVENT, &mut id).unwrap();
    assert_eq!(wait_for(&kfd, std::slice::from_mut(&mut entry), 0), Err(libc::EINVAL));
}

#[test]
fn a_queue_runs_when_its_doorbell_rings_and_tells_exceptions() {
    let kfd = open(c"/dev/kfd");
    let (ring, pointers, area) = (shared(&kfd, PAGE), shared(&kfd, PAGE), shared(&kfd, PAGE));
    let entry = event(&kfd);
    let payload = area + 512;
    let header = KfdSaveAreaHeader {
        wave_state: [0; 4],
        debug_offset: 0,
        debug_size: 0,
        err_payload_addr: payload,
        err_event_id: entry.event_id,
        reserved1: 0,
    };
    // SAFETY: the area is the test's.
    unsafe { (area as *mut KfdSaveAreaHeader).write(header) };
    for slot in (0..PAGE).step_by(64) {
        word(ring + slot).store(packet::INVALID.into(), Ordering::Relaxed);
    }
    let mut queue = KfdCreateQueue {
        ring_base_address: ring,
        write_pointer_address: pointers,
        read_pointer_address: pointers + 64,
        doorbell_offset: 0,
        ring_size: PAGE as u32,
        gpu_id: NODE,
        queue_type: kfd_queue::COMPUTE_AQL,
        queue_percentage: 100,
        queue_priority: 0,
        queue_id: 0,
        eop_buffer_address: 0,
        eop_buffer_size: 0,
        ctx_save_restore_address: area,
        ctx_save_restore_size: PAGE as u32,
        ctl_stack_size: 0,
    };
    ask(&kfd, number::CREATE_QUEUE, &mut queue).unwrap();
    let doorbells = reserve(2 * PAGE);
    show(&kfd, queue.doorbell_offset & !(2 * PAGE - 1), doorbells, 2 * PAGE);
    let doorbell = word(doorbells + queue.doorbell_offset % (2 * PAGE));
    // A barrier that waits for nothing, then a kind of packet that there is not.
    for (index, kind) in [packet::BARRIER_AND, 77].into_iter().enumerate() {
        word(ring + 64 * index as u64).store(kind.into(), Ordering::Release);
        word(pointers).store(index as u64 + 1, Ordering::Release);
        doorbell.store(index as u64, Ordering::Release);
        if kind == packet::BARRIER_AND {
            wait_until("the barrier", || word(pointers + 64).load(Ordering::Acquire) == 1);
        }
    }
    wait_until("the exception", || word(payload).load(Ordering::Acquire) == 1 << 19);
    let mut entry = entry;
    assert_eq!(wait_for(&kfd, std::slice::from_mut(&mut entry), 20_000), Ok(kfd_wait::COMPLETE));
    let mut destroy = KfdDestroyQueue { queue_id: queue.queue_id, pad: 0 };
    ask(&kfd, number::DESTROY_QUEUE, &mut destroy).unwrap();
    assert_eq!(ask(&kfd, number::DESTROY_QUEUE, &mut destroy), Err(libc::EINVAL));
}
