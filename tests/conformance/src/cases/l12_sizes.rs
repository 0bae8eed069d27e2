//! Sizes of launches against the limits of the device.

use super::tools::load;
use crate::{Lab, Level, Verdict, refused};
use gpumem_core::{Backend, ErrorKind, LaunchConfig};
use gpumem_kernel::{Change, Kernel, KernelDef, Own, SliceMut, WorkItem, WorkItemIds, config_for_items};

cases! { Level::Kernel;
    the_largest_sizes_are_launched,
    sizes_beyond_the_device_are_refused,
    groups_beyond_the_bounds_of_a_kernel_are_refused,
    all_dynamic_shared_memory_can_be_had,
    more_shared_memory_than_there_is_is_refused,
}

type Count = (SliceMut<u32>,);

/// Counts its work-items.
fn count<B: Backend>(lab: &Lab<B>) -> Verdict<Kernel<Count, B>> {
    // SAFETY: the element is only changed atomically.
    let declaration = unsafe { KernelDef::<Count>::new("count") }
        .source(
            "GPUMEM_KERNEL count(gpumem::slice<gpumem::u32> total) {
                gpumem::atomic_add(total[0], 1u);
            }",
        )
        .host_loop(|_: &WorkItemIds<'_>, (total,): &Count| {
            total.atomic_add(0, 1);
        });
    load(lab, &declaration)
}

fn dims(groups: [u32; 3], group_size: [u32; 3]) -> LaunchConfig {
    LaunchConfig { groups, group_size, shared_bytes: 0 }
}

fn the_largest_sizes_are_launched<B: Backend>(lab: &Lab<B>) -> Verdict {
    let (kernel, device) = (count(lab)?, lab.device());
    let (has, stream) = (device.capabilities(), device.stream()?);
    let mut largest = vec![dims([1, 1, 1], [has.max_group_size.min(has.max_group_dims[0]), 1, 1])];
    for axis in 0..3 {
        let mut group_size = [1; 3];
        group_size[axis] = has.max_group_dims[axis].min(has.max_group_size);
        largest.push(dims([2, 1, 3], group_size));
        let mut groups = [1; 3];
        // All that the device has along y and z, which are few; along x that would take too long.
        groups[axis] = has.max_grid_dims[axis].min(65_535);
        largest.push(dims(groups, [1, 1, 1]));
    }
    for dims in largest {
        let mut total = device.device_array::<u32, _>(1)?;
        kernel.launch(&stream, &dims, (&mut total,))?;
        let items: u32 = dims.groups.iter().chain(&dims.group_size).product();
        assert_eq!(total.get(0)?, items, "{dims:?}");
    }
    Ok(())
}

fn sizes_beyond_the_device_are_refused<B: Backend>(lab: &Lab<B>) -> Verdict {
    let (kernel, device) = (count(lab)?, lab.device());
    let (has, stream) = (device.capabilities(), device.stream()?);
    let mut total = device.device_array::<u32, _>(1)?;
    let mut wrong = vec![
        // Each side may be had, and all together not.
        dims([1, 1, 1], [has.max_group_size, 2, 1]),
        dims([1, 1, 1], [u32::MAX; 3]),
    ];
    for axis in 0..3 {
        let with = |value: u32| {
            let mut sizes = [1; 3];
            sizes[axis] = value;
            sizes
        };
        wrong.push(dims(with(0), [1, 1, 1]));
        wrong.push(dims([1, 1, 1], with(0)));
        wrong.push(dims([1, 1, 1], with(has.max_group_dims[axis].saturating_add(1))));
        if has.max_grid_dims[axis] < u32::MAX {
            wrong.push(dims(with(has.max_grid_dims[axis] + 1), [1, 1, 1]));
        }
    }
    for dims in wrong {
        let is_zero = dims.groups.contains(&0) || dims.group_size.contains(&0);
        refused(kernel.launch(&stream, &dims, (&mut total,)), |kind| match kind {
            ErrorKind::InvalidArgument { .. } => is_zero,
            ErrorKind::LaunchTooLarge { requested, most, .. } => !is_zero && requested > most,
            _ => false,
        })?;
    }
    assert_eq!(total.get(0)?, 0, "nothing ran");
    Ok(())
}

#[gpumem_macros::kernel(launch_bounds = (64, 2), crate = gpumem_kernel_suite)]
fn bounded(y: Own<u32>) {
    let at = own();
    if at[0] < y.len() {
        y[at] = group_size(0) as u32;
    }
}

fn groups_beyond_the_bounds_of_a_kernel_are_refused<B: Backend>(lab: &Lab<B>) -> Verdict {
    let (kernel, device) = (load(lab, &bounded())?, lab.device());
    let (stream, mut y) = (device.stream()?, device.device_array::<u32, _>(128)?);
    refused(kernel.launch(&stream, &config_for_items(128, 128), (&mut y,)), |kind| {
        matches!(kind, ErrorKind::LaunchTooLarge { requested: 128, most: 64, .. })
    })?;
    kernel.launch(&stream, &config_for_items(128, 64), (&mut y,))?;
    assert_eq!(y.copy_to_host()?.to_vec(), [64; 128]);
    Ok(())
}

/// Turns the dynamic shared memory round: element `i` of the result is the number of the last but `i`.
fn turn<B: Backend>(lab: &Lab<B>, static_bytes: usize) -> Verdict<Kernel<Count, B>> {
    // SAFETY: each work-item uses its own elements before the barrier, and only reads after it.
    let declaration = unsafe { KernelDef::<Count>::new("turn") }
        .source(
            "using namespace gpumem;
            GPUMEM_KERNEL turn(slice<u32> y) {
                GPUMEM_DYNAMIC_SHARED(u32, numbers);
                u32 step = group_size(0);
                for (u32 i = local_id(0); i < y.size(); i += step) numbers[i] = i;
                barrier(LOCAL);
                for (u32 i = local_id(0); i < y.size(); i += step) y[i] = numbers[y.size() - 1 - i];
            }",
        )
        .host_body(async |item: WorkItem<'_>, (y,): &Count| {
            let numbers = item.dynamic_shared::<u32>();
            let (first, step) = (item.local_id(0), item.group_size(0));
            (first..y.len()).step_by(step).for_each(|i| numbers.set(i, i as u32));
            item.barrier(gpumem_core::BarrierScope::Local).await;
            (first..y.len()).step_by(step).for_each(|i| y.set(i, numbers.get(y.len() - 1 - i)));
        })
        .shared_bytes(static_bytes);
    load(lab, &declaration)
}

fn all_dynamic_shared_memory_can_be_had<B: Backend>(lab: &Lab<B>) -> Verdict {
    let (kernel, device) = (turn(lab, 0)?, lab.device());
    let (all, stream) = (device.capabilities().shared_memory, device.stream()?);
    for bytes in [4, 16 << 10, all / 4 * 4] {
        let mut y = device.device_array::<u32, _>(bytes / 4)?;
        let dims =
            LaunchConfig { shared_bytes: u32::try_from(bytes).unwrap_or(0), ..LaunchConfig::linear(1, 256) };
        kernel.launch(&stream, &dims, (&mut y,))?;
        let found = y.copy_to_host()?;
        assert!(found.iter().rev().enumerate().all(|(i, number)| *number == i as u32), "{bytes} bytes");
    }
    Ok(())
}

fn more_shared_memory_than_there_is_is_refused<B: Backend>(lab: &Lab<B>) -> Verdict {
    let device = lab.device();
    let (all, stream) = (device.capabilities().shared_memory, device.stream()?);
    let mut y = device.device_array::<u32, _>(1)?;
    for (declared, dynamic) in [(0, all + 1), (all, 1), (all + 1, 0), (usize::MAX, 1), (0, u32::MAX as usize)]
    {
        let kernel = turn(lab, declared)?;
        let dims = LaunchConfig {
            shared_bytes: u32::try_from(dynamic).unwrap_or(u32::MAX),
            ..LaunchConfig::linear(1, 1)
        };
        refused(kernel.launch(&stream, &dims, (&mut y,)), |kind| {
            matches!(kind, ErrorKind::LaunchTooLarge { what, requested, most }
                if what.contains("shared memory") && requested > most && *most == all as u64)
        })?;
    }
    Ok(())
}
