//! A host that has no memory for what a group of a launch needs. A program of its own, because of its allocator.

use gpumem_core::{BarrierScope::Local, HostFunction, HostLaunch, KernelArguments, LaunchConfig};
use gpumem_kernel::simt::{Executor, Phases, Private, WorkItem};
use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
    ptr,
    sync::Arc,
};

/// Bytes of the smallest block that is refused. What is smaller does not grow with the group, or tells of the fault.
const LEAST: usize = 256;

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

/// Launches one group, and refuses it each of its blocks in turn. Returns how many it has.
fn refuse_each(function: &HostFunction) -> usize {
    let arguments = KernelArguments::new();
    (0..)
        .find(|before| {
            LEFT.set(*before);
            // SAFETY: the body has no arguments.
            let ended = unsafe {
                function.call(HostLaunch { dims: LaunchConfig::linear(1, 1024), arguments: &arguments })
            };
            let is_refused = LEFT.replace(NONE) == NONE;
            match &ended {
                Ok(()) => assert!(!is_refused, "block {before} is not missed"),
                Err(fault) => assert!(fault.ends_with("the host has no memory for them"), "{fault}"),
            }
            !is_refused
        })
        .unwrap_or_default()
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
    assert_eq!(refuse_each(&waiting), 1 + 1 + 32 + 1 + 2 + 3);
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
    assert_eq!(refuse_each(&split), 3);
}
