//! Every kind of memory.

use crate::{
    Case, Skip,
    fixture::{Block, Lab, Numbers},
};
use gpumem_core::{
    Advice, AllocationRequest, Attach, DeviceBuffer, DriverDevice, ErrorKind, Location, MappedOptions,
    MemoryKind, RegisterOptions, Stream,
};
use gpumem_cuda::Cuda;
use gpumem_runtime::Device;
use std::{
    ptr::{NonNull, null_mut, with_exposed_provenance_mut},
    slice::from_raw_parts_mut,
    sync::mpsc::channel,
    thread,
};

pub(crate) const CASES: &[Case] = &[
    ("every_kind_is_allocated_and_used", kinds),
    ("memory_of_the_host_is_zeroed", zeroed),
    ("alignment_is_kept", aligned),
    ("out_of_memory_has_its_own_error", out_of_memory),
    ("the_callers_memory_is_registered", registered),
    ("registering_twice_is_refused", registered_twice),
    ("freed_pages_are_not_kept_for_a_neighbour", neighbours),
    ("managed_memory_takes_hints", managed),
];

fn all_kinds(lab: &Lab) -> Vec<MemoryKind> {
    let mut kinds = vec![MemoryKind::Device, MemoryKind::Pinned];
    for (portable, write_combined) in [(false, false), (true, false), (false, true), (true, true)] {
        kinds.push(MemoryKind::Mapped(MappedOptions { portable, write_combined }));
    }
    if lab.device.capabilities().managed {
        kinds.extend([MemoryKind::Managed(Attach::Global), MemoryKind::Managed(Attach::Host)]);
    }
    kinds
}

fn kinds(lab: &Lab) -> Result<(), Skip> {
    for kind in all_kinds(lab) {
        for bytes in [1, 4096, (1 << 20) + 3] {
            let mut block = lab.allocate(kind, bytes);
            assert_eq!((block.kind(), block.len(), block.is_empty()), (kind, bytes, false));
            assert_eq!(block.host_address().is_some(), kind != MemoryKind::Device, "{kind:?}");
            let data = Numbers(bytes as u64).bytes(bytes);
            if kind.is_host_accessible() {
                block.bytes_mut().copy_from_slice(&data);
            } else {
                lab.write(block.address(), &data);
            }
            if kind.is_device_accessible() && kind != MemoryKind::Managed(Attach::Host) {
                assert_eq!(lab.read(block.address(), bytes), data, "{kind:?}");
            }
        }
    }
    Ok(())
}

fn zeroed(lab: &Lab) -> Result<(), Skip> {
    for kind in all_kinds(lab).into_iter().filter(|kind| kind.is_host_accessible()) {
        for round in 0..8 {
            let mut block = lab.allocate(kind, 3000);
            assert!(block.bytes().iter().all(|byte| *byte == 0), "{kind:?}, round {round}");
            block.bytes_mut().fill(0xAB);
        }
    }
    Ok(())
}

fn aligned(lab: &Lab) -> Result<(), Skip> {
    for kind in all_kinds(lab) {
        // The blocks in between keep addresses from being round by accident.
        let blocks: Vec<(usize, Block, Block)> = [1, 256, 512, 4096, 1 << 16, 1 << 22]
            .map(|align| (align, lab.allocate_aligned(kind, 1000, align), lab.allocate(kind, 300)))
            .into();
        for (align, mut block, _between) in blocks {
            assert_eq!((block.address() % align as u64, block.len()), (0, 1000), "{kind:?} {align}");
            if let Some(host) = block.host_address() {
                assert_eq!(host.as_ptr().expose_provenance() % align, 0, "{kind:?} {align}");
                block.bytes_mut().fill(7);
            } else {
                lab.write(block.address(), &[7; 1000]);
            }
        }
    }
    Ok(())
}

fn out_of_memory(lab: &Lab) -> Result<(), Skip> {
    let memory = lab.device.memory_info().unwrap();
    for kind in all_kinds(lab) {
        // Sizes beyond the address space, beyond any host's memory, and beyond the device's memory. Managed memory may
        // be more than the device has, and clearing it would then evict everything else.
        let mut sizes = vec![usize::MAX / 2, usize::MAX - 4096];
        if !matches!(kind, MemoryKind::Managed(_)) {
            sizes.push(1 << 50);
        }
        if kind == MemoryKind::Device {
            sizes.push(memory.total);
        }
        for bytes in sizes {
            let request = AllocationRequest { bytes, align: 16, kind };
            // SAFETY: nothing is read.
            let error = unsafe { lab.device.allocate(&request) }.map(|block| lab.own(block)).err();
            let error = error.unwrap_or_else(|| panic!("{bytes} bytes of {kind:?} were allocated"));
            let ErrorKind::OutOfMemory { requested, kind: name, free, total, .. } = *error.kind() else {
                panic!("{kind:?} of {bytes} bytes: {error}")
            };
            assert_eq!((requested, name), (bytes, kind.name()));
            if matches!(kind, MemoryKind::Device | MemoryKind::Managed(_)) {
                assert!(free > 0 && free <= total && total == memory.total, "{error}");
            }
        }
    }
    // The device is as good as before.
    drop(lab.allocate(MemoryKind::Device, 1 << 20));
    Ok(())
}

fn register(lab: &Lab, host: &mut [u8], options: RegisterOptions) -> Result<Block, gpumem_core::Error> {
    let start = NonNull::new(host.as_mut_ptr()).unwrap();
    // SAFETY: the cases unregister before the memory goes away.
    unsafe { lab.device.register(start, host.len(), options) }.map(|buffer| lab.own(buffer))
}

fn registered(lab: &Lab) -> Result<(), Skip> {
    let data = Numbers(5).bytes(100_000);
    let mut array = data.clone();
    for mapped in [false, true] {
        for (portable, read_only) in [(false, false), (true, false), (true, true)] {
            let options = RegisterOptions { mapped, portable, read_only };
            // Not at the beginning of a page.
            let block = register(lab, &mut array[33..], options).unwrap();
            assert_eq!((block.len(), block.kind()), (100_000 - 33, MemoryKind::Registered(options)));
            let host = block.host_address().unwrap();
            assert_eq!(host.as_ptr().expose_provenance(), data_address(&array) + 33);
            if mapped {
                assert_eq!(lab.read(block.address(), block.len()), data[33..], "{options:?}");
            }
        }
    }
    assert_eq!(array, data);
    Ok(())
}

fn data_address(array: &[u8]) -> usize {
    array.as_ptr().expose_provenance()
}

fn registered_twice(lab: &Lab) -> Result<(), Skip> {
    let mut array = vec![1u8; 1 << 16];
    let once = register(lab, &mut array, RegisterOptions::default()).unwrap();
    let twice = register(lab, &mut array, RegisterOptions::default()).err().unwrap();
    assert!(matches!(twice.kind(), ErrorKind::Registration { .. }), "{twice}");
    drop(once);
    drop(register(lab, &mut array, RegisterOptions::default()).unwrap());
    Ok(())
}

/// The driver keeps the pages that lay there when they were registered, whatever the system maps there next.
fn neighbours(lab: &Lab) -> Result<(), Skip> {
    const PAGE: usize = 4096;
    let device = Device::<Cuda>::from_raw(lab.device.clone());
    let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: new memory.
    let start = unsafe { libc::mmap(null_mut(), 9 * PAGE, protection, flags, -1, 0) };
    assert_ne!(start, libc::MAP_FAILED);
    let address = start.expose_provenance();
    // The last page is that of both arrays.
    let (length, neighbour) = (8 * PAGE + 50, 100);
    // SAFETY: it lies in the memory, which is written, and nothing else uses it meanwhile.
    let array = || unsafe { from_raw_parts_mut(with_exposed_provenance_mut::<u8>(address), length) };
    // SAFETY: as above; the bytes behind the array.
    let beside =
        || unsafe { from_raw_parts_mut(with_exposed_provenance_mut::<u8>(address + length), neighbour) };
    let (is_locked, locked) = channel();
    let (end, ended) = channel::<()>();
    thread::scope(|scope| {
        let other = &device;
        let first = scope.spawn(move || {
            let view = ndarray::ArrayViewMut1::from(array());
            other.pinned([view], |_| {
                is_locked.send(()).unwrap();
                ended.recv().unwrap();
            })
        });
        locked.recv().unwrap();
        let both = device.pinned([ndarray::ArrayViewMut1::from(beside())], |_| {
            end.send(()).unwrap();
            first.join().unwrap().unwrap();
            // SAFETY: these pages are the array's alone, and nothing uses it.
            assert_eq!(unsafe { libc::madvise(start, 8 * PAGE, libc::MADV_DONTNEED) }, 0);
            array().fill(7);
            device.pinned([ndarray::ArrayViewMut1::from(array())], |locked| device.to_device(&locked[0]))
        });
        let copy = both.unwrap().unwrap().unwrap();
        assert!(copy.copy_to_host().unwrap().iter().all(|byte| *byte == 7));
    });
    // SAFETY: nothing uses it any more.
    assert_eq!(unsafe { libc::munmap(start, 9 * PAGE) }, 0);
    Ok(())
}

fn managed(lab: &Lab) -> Result<(), Skip> {
    if !lab.device.capabilities().concurrent_managed_access {
        return Err("the device has no concurrent access to managed memory");
    }
    let bytes = 1 << 20;
    let mut block = lab.allocate(MemoryKind::Managed(Attach::Global), bytes);
    let data = Numbers(6).bytes(bytes);
    block.bytes_mut().copy_from_slice(&data);
    let stream = lab.stream();
    for advice in [
        Advice::ReadMostly(true),
        Advice::ReadMostly(false),
        Advice::PreferredLocation(Some(Location::Device)),
        Advice::PreferredLocation(Some(Location::Host)),
        Advice::PreferredLocation(None),
        Advice::AccessedBy(Location::Device, true),
        Advice::AccessedBy(Location::Host, true),
        Advice::AccessedBy(Location::Device, false),
        Advice::AccessedBy(Location::Host, false),
    ] {
        // SAFETY: the whole of one managed block.
        unsafe { lab.device.advise(block.address(), bytes, advice) }.unwrap();
        for to in [Location::Device, Location::Host] {
            // SAFETY: as above.
            unsafe { stream.prefetch(block.address(), bytes, to) }.unwrap();
        }
    }
    stream.synchronize().unwrap();
    assert_eq!(block.bytes(), data);
    // Memory of another kind takes none, and says so.
    let plain = lab.allocate(MemoryKind::Pinned, 4096);
    // SAFETY: the driver only looks the address up.
    let error = unsafe { lab.device.advise(plain.address(), 4096, Advice::ReadMostly(true)) }.unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::InvalidArgument { .. } | ErrorKind::Driver { .. }), "{error}");
    Ok(())
}
