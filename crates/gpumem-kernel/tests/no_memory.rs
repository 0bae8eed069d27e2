//! A host that has no memory for what a group of a launch needs. A program of its own, because of its allocator.

use gpumem_core::{
    BarrierScope::Local, Error, ErrorKind, HostFunction, HostLaunch, KernelArguments, LaunchConfig,
};
use gpumem_host::Host;
use gpumem_kernel::{
    ConstantArray, In, KernelDef, config_for_items,
    simt::{Executor, Phases, Private, WorkItem},
};
use gpumem_runtime::Device;
use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
    fmt::Display,
    ptr,
    sync::Arc,
};

/// Bytes of the smallest block that is refused. What is smaller does not grow with the group, or tells of the fault.
const LEAST: usize = 512;

const NONE: usize = usize::MAX;

thread_local! {
    /// Blocks that this thread gets before one is refused.
    static LEFT: Cell<usize> = const { Cell::new(NONE) };
}

/// Refuses one block.
struct Short;

impl Short {
    fn refuses(layout: Layout) -> bool {
        let left = LEFT.try_with(Cell::get).unwrap_or(NONE);
        if left == NONE || layout.size() < LEAST {
            return false;
        }
        let _ = LEFT.try_with(|now| now.set(left.checked_sub(1).unwrap_or(NONE)));
        left == 0
    }
}

// SAFETY: it allocates by the system's allocator, or not at all. The count allocates nothing.
unsafe impl GlobalAlloc for Short {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if Self::refuses(layout) {
            return ptr::null_mut();
        }
        // SAFETY: the caller's promises are those of the system's allocator.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Short = Short;

/// Refuses each block of a launch in turn. Returns how often the launch fails. `is_told`: whether an error is about memory.
fn refuse_each<E: Display>(launch: impl Fn() -> Result<(), E>, is_told: impl Fn(&E) -> bool) -> usize {
    let mut failures = 0;
    for before in 0.. {
        LEFT.set(before);
        let ended = launch();
        let is_refused = LEFT.replace(NONE) == NONE;
        if let Err(error) = ended {
            assert!(is_told(&error), "{error}");
            failures += 1;
        }
        if !is_refused {
            break;
        }
    }
    failures
}

/// As [`refuse_each`], for a launch of one group.
fn blocks_of(function: &HostFunction) -> usize {
    let arguments = KernelArguments::new();
    let dims = LaunchConfig::linear(1, 1024);
    refuse_each(
        // SAFETY: the body has no arguments.
        || unsafe { function.call(HostLaunch { dims, arguments: &arguments }) },
        |fault| fault.ends_with("the host has no memory for them"),
    )
}

#[test]
fn a_group_without_memory_is_a_fault() {
    let executor = Executor::new(32, 64 << 10);
    // SAFETY: there is no memory of others.
    let waiting = unsafe {
        executor.function(async |item: WorkItem<'_>, &(): &()| {
            item.shared::<u32, 1>([1024]).set(item.local_id(0), 1);
            item.barrier(Local).await;
            item.wave_sum(1u32).await;
        })
    };
    // Shared memory, waves, and what they exchange; seats; work-items with their variables, and three lists of their states.
    assert_eq!(blocks_of(&waiting), 1 + 1 + 32 + 1 + 2 + 3);
    // SAFETY: as above.
    let split = unsafe {
        executor.shared_split_function(Arc::new(|phases: &mut Phases<'_>, &(): &()| {
            let mut kept = Private::<u32>::new();
            while phases.next_group() {
                phases.each(|item| {
                    item.shared::<u32, 1>([1024]).set(item.local_id(0), 1);
                    kept.set(item, 1);
                })?;
            }
            Ok(())
        }))
    };
    // Shared memory, waves, and the variable.
    assert_eq!(blocks_of(&split), 3);
}

#[test]
fn constants_without_memory_are_an_error() -> Result<(), Error> {
    let device = Device::<Host>::open("host")?;
    let stream = device.stream()?;
    // SAFETY: nothing is used.
    let definition = unsafe { KernelDef::<(ConstantArray<u32, 1>, ConstantArray<u32, 1>)>::new("constants") };
    let kernel = definition.host_loop(|_, _| ()).load(&device)?;
    let launch = |elements: &[u32; 1024]| {
        kernel.launch(&stream, &config_for_items(1, 1), (In(elements), In(elements)))
    };
    // The device has what it keeps for all launches.
    launch(&[7; 1024])?;
    stream.synchronize()?;
    let blocks =
        refuse_each(|| launch(&[8; 1024]), |error| matches!(error.kind(), ErrorKind::OutOfMemory { .. }));
    assert!(blocks >= 2, "one for each array");
    stream.synchronize()
}
