//! Arrays of the host as arguments of kernels: each moves only the way that it states.

use super::tools::{load, same};
use crate::{Lab, Level, Verdict, refused, refused_layout, skip};
use gpumem_core::{Backend, DescriptorError, ErrorKind, LayoutError, MappedOptions, Result};
use gpumem_kernel::{
    In, InOut, Kernel, KernelDef, Out, Slice, SliceMut, View, ViewMut, WorkItemIds, config_for_items,
};
use gpumem_runtime::{CudaArrayInterface, HasCudaArrayInterface, Scalar, cuda_array, cuda_array_mut};
use ndarray::{Array1, Array2, ArrayView2, Ix0, Ix1, Ix2, ShapeBuilder, s};

cases! { Level::Kernel;
    host_arrays_of_any_layout_are_arguments,
    host_arrays_move_only_their_way,
    slices_take_packed_copies,
    arrays_with_a_device_address_are_not_copied,
    registered_arrays_go_by_their_address,
    objects_with_a_cuda_array_interface_are_arguments,
    arguments_that_cannot_be_written_are_refused,
    launches_belong_to_a_scope,
    what_does_not_fit_moves_nothing,
}

type Append = (View<u32, 2>, ViewMut<u32, 2>, u32);

/// `y = 10 * y + x + add`, so that the result shows the earlier value of `y`.
fn append<B: Backend>(lab: &Lab<B>) -> Verdict<Kernel<Append, B>> {
    // SAFETY: each work-item uses its own elements.
    let declaration = unsafe { KernelDef::<Append>::new("append") }
        .source(
            "using namespace gpumem;
            GPUMEM_KERNEL append(view<const u32, 2> x, view<u32, 2> y, u32 add) {
                u64 row = global_id(1), column = global_id(0);
                if (row < y.extent(0) && column < y.extent(1))
                    y(row, column) = 10 * y(row, column) + x(row, column) + add;
            }",
        )
        .host_loop(|ids: &WorkItemIds<'_>, (x, y, add): &Append| {
            let at = [ids.global_id(1), ids.global_id(0)];
            if at[0] < y.extent(0) && at[1] < y.extent(1) {
                y.set(at, 10 * y.get(at) + x.get(at) + add);
            }
        });
    load(lab, &declaration)
}

type Doubled = (Slice<u32>, SliceMut<u32>);

/// `y[i] = 2 * x[i]` where `i` is even.
fn doubled<B: Backend>(lab: &Lab<B>) -> Verdict<Kernel<Doubled, B>> {
    // SAFETY: each work-item uses its own elements.
    let declaration = unsafe { KernelDef::<Doubled>::new("doubled") }
        .source(
            "using namespace gpumem;
            GPUMEM_KERNEL doubled(slice<const u32> x, slice<u32> y) {
                u64 i = global_id(0);
                if (i < y.size() && i % 2 == 0) y[i] = 2 * x[i];
            }",
        )
        .host_loop(|ids: &WorkItemIds<'_>, (x, y): &Doubled| {
            let i = ids.global_id(0);
            if i < y.len() && i.is_multiple_of(2) {
                y.set(i, 2 * x.get(i));
            }
        });
    load(lab, &declaration)
}

fn table(rows: usize, columns: usize, first: usize) -> Array2<u32> {
    Array2::from_shape_fn((rows, columns), |(y, x)| (first + y * 1000 + x) as u32)
}

fn dims(shape: &[usize]) -> gpumem_core::LaunchConfig {
    config_for_items([shape[1], shape[0], 1], [16, 16, 1])
}

fn host_arrays_of_any_layout_are_arguments<B: Backend>(lab: &Lab<B>) -> Verdict {
    let (kernel, stream) = (append(lab)?, lab.device().stream()?);
    for (rows, columns) in [(1, 1), (0, 5), (5, 0), (13, 37), (70, 5)] {
        let (from, to) = (table(rows * 2, columns * 3, 1), table(rows * 3, columns * 2, 7));
        let part_of = |array: &Array2<u32>| array.slice(s![..;-2, ..;3]).to_owned();
        let x = from.slice(s![..;-2, ..;3]);
        // The destination's own layouts: C, F, every other element backwards. The elements between must not change.
        let mut packed = to.slice(s![..;3, ..;2]).to_owned();
        let mut turned = Array2::zeros((rows, columns).f());
        turned.assign(&packed);
        let expected = packed.mapv(|y| 10 * y) + part_of(&from) + 4;
        kernel.launch(&stream, &dims(x.shape()), (In(&x), InOut(&mut packed), 4u32))?;
        same(packed.view(), expected.view());
        kernel.launch(&stream, &dims(x.shape()), (In(x), InOut(&mut turned), 4u32))?;
        same(turned.view(), expected.view());
        let mut whole = to.clone();
        let expected_part = to.slice(s![..;-3, ..;-2]).mapv(|y| 10 * y) + part_of(&from) + 4;
        kernel.launch(&stream, &dims(x.shape()), (In(&x), InOut(whole.slice_mut(s![..;-3, ..;-2])), 4u32))?;
        let mut expected_whole = to.clone();
        expected_whole.slice_mut(s![..;-3, ..;-2]).assign(&expected_part);
        same(whole.view(), expected_whole.view());
    }
    // A source whose elements share memory is read like any other.
    let row = table(1, 9, 3);
    let wide: ArrayView2<'_, u32> =
        row.broadcast((6, 9)).ok_or_else(|| crate::Stop::Failed("broadcast".into()))?;
    let mut out = Array2::zeros((6, 9));
    kernel.launch(&stream, &dims(&[6, 9]), (In(wide), Out(&mut out), 0u32))?;
    same(out.view(), wide);
    Ok(())
}

fn host_arrays_move_only_their_way<B: Backend>(lab: &Lab<B>) -> Verdict {
    let (kernel, stream) = (append(lab)?, lab.device().stream()?);
    let x = table(20, 30, 5);
    // `Out`: the old elements are not copied to the device.
    let mut out = table(20, 30, 9_999);
    kernel.launch(&stream, &dims(x.shape()), (In(&x), Out(&mut out), 1u32))?;
    same(out.view(), (&x + 1).view());
    // `InOut`: everything does.
    kernel.launch(&stream, &dims(x.shape()), (In(&x), InOut(&mut out), 1u32))?;
    same(out.view(), ((&x + 1) * 10 + &x + 1).view());
    // Beside arrays of the device, in the order of the stream.
    let mut on_device = stream.to_device(&x)?;
    lab.delay(&stream)?;
    kernel.launch(&stream, &dims(x.shape()), (In(&x), &mut on_device, 0u32))?;
    kernel.launch(&stream, &dims(x.shape()), (&on_device, Out(&mut out), 0u32))?;
    same(out.view(), (&x * 11).view());
    Ok(())
}

fn slices_take_packed_copies<B: Backend>(lab: &Lab<B>) -> Verdict {
    let (kernel, stream) = (doubled(lab)?, lab.device().stream()?);
    for len in [0usize, 1, 2, 1001] {
        let many = Array1::from_iter((0..3 * len as u32).map(|i| i + 1));
        let x = many.slice(s![..;-3]);
        let mut y = vec![7u32; len];
        kernel.launch(&stream, &config_for_items([len, 1, 1], [64, 1, 1]), (In(x), Out(&mut y)))?;
        // Elements that the kernel does not write are zero, not old contents of the memory.
        let expected: Vec<u32> =
            x.iter().enumerate().map(|(i, value)| if i % 2 == 0 { 2 * value } else { 0 }).collect();
        assert_eq!(y, expected);
        kernel.launch(
            &stream,
            &config_for_items([len, 1, 1], [64, 1, 1]),
            (In(&y[..]), InOut(&mut y.clone()[..])),
        )?;
    }
    let mut one = Scalar(3u32);
    kernel.launch(&stream, &config_for_items([1, 1, 1], [1, 1, 1]), (In(&Scalar(21u32)), Out(&mut one)))?;
    assert_eq!(one, Scalar(42));
    let mut few = [1u32, 1, 1];
    kernel.launch(&stream, &config_for_items([3, 1, 1], [32, 1, 1]), (In(&[4u32, 5, 6]), InOut(&mut few)))?;
    assert_eq!(few, [8, 1, 12]);
    // Row by row, whatever the order of the axes.
    let turned = table(3, 4, 0).reversed_axes();
    let mut out = Array2::zeros((4, 3));
    kernel.launch(&stream, &config_for_items([12, 1, 1], [32, 1, 1]), (In(&turned), Out(&mut out)))?;
    let mut expected = turned.mapv(|value| 2 * value);
    expected.indexed_iter_mut().filter(|((y, x), _)| (y * 3 + x) % 2 == 1).for_each(|(_, value)| *value = 0);
    same(out.view(), expected.view());
    Ok(())
}

fn arrays_with_a_device_address_are_not_copied<B: Backend>(lab: &Lab<B>) -> Verdict {
    let (kernel, stream, device) = (append(lab)?, lab.device().stream()?, lab.device());
    let (x, y) = (table(9, 40, 1), table(9, 40, 500));
    let expected = &y * 10 + &x;
    let copies = || device.counters().copies;
    // Arrays of the device themselves.
    let (from, mut to) = (device.to_device(&x)?, device.to_device(&y)?);
    let before = copies();
    kernel.launch(&stream, &dims(x.shape()), (In(&from), InOut(&mut to), 0u32))?;
    assert_eq!(copies(), before, "device arrays");
    same(to.copy_to_host()?.view(), expected.view());
    // Page-locked memory without a device address is copied, by reference to the same results.
    let mut pinned = device.pinned_array::<u32, _>((9, 40))?;
    pinned.copy_from(&y)?;
    kernel.launch(&stream, &dims(x.shape()), (In(&x), InOut(&mut pinned), 0u32))?;
    same(pinned.view()?, expected.view());
    let capabilities = device.capabilities();
    if capabilities.mapped {
        let mut mapped = device.mapped_array::<u32, _>((9, 40), MappedOptions::default())?;
        mapped.copy_from(&y)?;
        device.synchronize()?;
        let before = copies();
        kernel.launch(&stream, &dims(x.shape()), (In(&from), InOut(&mut mapped), 0u32))?;
        assert_eq!(copies(), before, "mapped arrays");
        same(mapped.view()?, expected.view());
    }
    if capabilities.managed {
        let mut managed = device.managed_array::<u32, _>((9, 40), Default::default())?;
        managed.copy_from(&y)?;
        device.synchronize()?;
        let before = copies();
        kernel.launch(&stream, &dims(x.shape()), (In(&from), InOut(&mut managed), 0u32))?;
        assert_eq!(copies(), before, "managed arrays");
        same(managed.view()?, expected.view());
    }
    Ok(())
}

fn registered_arrays_go_by_their_address<B: Backend>(lab: &Lab<B>) -> Verdict {
    let (kernel, stream, device) = (append(lab)?, lab.device().stream()?, lab.device());
    if !device.capabilities().register || !device.capabilities().mapped {
        return skip("the device maps no memory of the caller");
    }
    let x = table(12, 50, 2);
    let mut whole = table(24, 50, 70);
    let expected = whole.slice(s![..;2, ..]).mapv(|y| 10 * y) + &x;
    let from = device.to_device(&x)?;
    device.synchronize()?;
    device.mapped([whole.slice_mut(s![..;2, ..])], |locked| -> Verdict {
        let before = device.counters().copies;
        kernel.launch(&stream, &dims(x.shape()), (In(&from), InOut(&mut locked[0]), 0u32))?;
        assert_eq!(device.counters().copies, before);
        same(locked[0].view()?, expected.view());
        Ok(())
    })??;
    same(whole.slice(s![..;2, ..]), expected.view());
    same(whole.slice(s![1..;2, ..]), table(24, 50, 70).slice(s![1..;2, ..]));
    Ok(())
}

/// Another library's array, with another owner.
struct Object(CudaArrayInterface);

// SAFETY: the cases keep the memory, and use it through this object only.
unsafe impl HasCudaArrayInterface for Object {
    fn cuda_array_interface(&self) -> Result<CudaArrayInterface> {
        Ok(self.0.clone())
    }
}

fn object(address: u64, shape: &[i64], strides: Option<&[i64]>, read_only: bool) -> Verdict<Object> {
    Ok(Object(CudaArrayInterface {
        shape: shape.to_vec(),
        typestr: "<u4"
            .parse()
            .map_err(|error| gpumem_core::Error::new("", "parse", ErrorKind::from(error)))?,
        data: (address, read_only),
        strides: strides.map(|strides| strides.iter().map(|stride| 4 * stride).collect()),
        descr: None,
        mask: false,
        version: 3,
        stream: None,
    }))
}

fn objects_with_a_cuda_array_interface_are_arguments<B: Backend>(lab: &Lab<B>) -> Verdict {
    let (kernel, stream, device) = (append(lab)?, lab.device().stream()?, lab.device());
    let (x, y) = (table(6, 8, 1), table(6, 8, 300));
    let (from, to) = (device.to_device(&x)?, device.to_device(&y)?);
    device.synchronize()?;
    let source = object(from.address() + 4 * 47, &[6, 8], Some(&[-8, -1]), true)?;
    let mut target = object(to.address(), &[6, 8], None, false)?;
    let before = device.counters().copies;
    kernel.launch(
        &stream,
        &dims(x.shape()),
        (In(cuda_array::<u32, Ix2>(&source)), InOut(cuda_array_mut::<u32, Ix2>(&mut target)), 3u32),
    )?;
    assert_eq!(device.counters().copies, before, "they are used where they lie");
    let expected = &y * 10 + x.slice(s![..;-1, ..;-1]) + 3;
    same(to.copy_to_host()?.view(), expected.view());
    // A slice of an array that is not packed goes through a copy.
    let doubled = doubled(lab)?;
    let source = object(from.address(), &[24], Some(&[2]), true)?;
    let mut target = object(to.address(), &[24], Some(&[2]), false)?;
    stream.scope(|scope| {
        doubled.launch_in(
            scope,
            &config_for_items([24, 1, 1], [32, 1, 1]),
            (In(cuda_array::<u32, Ix1>(&source)), Out(cuda_array_mut::<u32, Ix1>(&mut target))),
        )
    })??;
    let flat: Vec<u32> = to.copy_to_host()?.iter().copied().collect();
    let x: Vec<u32> = x.iter().copied().collect();
    for (i, value) in flat.iter().enumerate() {
        let expected = match i % 4 {
            0 => 2 * x[i],
            2 => 0,
            _ => expected.as_slice().map_or(0, |all| all[i]),
        };
        assert_eq!(*value, expected, "element {i}");
    }
    Ok(())
}

fn arguments_that_cannot_be_written_are_refused<B: Backend>(lab: &Lab<B>) -> Verdict {
    let (kernel, stream, device) = (append(lab)?, lab.device().stream()?, lab.device());
    let x = table(4, 4, 0);
    let memory = device.to_device(&x)?;
    device.synchronize()?;
    let launch = |target: &mut Object| {
        let arguments = (In(&x), Out(cuda_array_mut::<u32, Ix2>(target)), 0u32);
        kernel.launch(&stream, &dims(&[4, 4]), arguments)
    };
    let mut read_only = object(memory.address(), &[4, 4], None, true)?;
    refused(launch(&mut read_only), |kind| matches!(kind, ErrorKind::Descriptor(DescriptorError::ReadOnly)))?;
    let mut shared = object(memory.address(), &[4, 4], Some(&[0, 1]), false)?;
    refused_layout(launch(&mut shared), |error| matches!(error, LayoutError::SelfOverlap { .. }))?;
    let mut other_type = object(memory.address(), &[4, 4], None, false)?;
    other_type.0.typestr =
        "<f4".parse().map_err(|error| gpumem_core::Error::new("", "parse", ErrorKind::from(error)))?;
    refused(launch(&mut other_type), |kind| matches!(kind, ErrorKind::Descriptor(_)))?;
    same(memory.copy_to_host()?.view(), x.view());
    Ok(())
}

fn launches_belong_to_a_scope<B: Backend>(lab: &Lab<B>) -> Verdict {
    let (kernel, stream) = (append(lab)?, lab.device().stream()?);
    let (x, shape) = (table(30, 33, 1), [30, 33]);
    let (mut first, mut second) = (Array2::zeros((30, 33)), table(30, 33, 8));
    let before = second.clone();
    let on_device = stream.scope(|scope| -> Result<_> {
        lab.delay(&stream)?;
        let mut passed_on = stream.device_array::<u32, _>((30, 33))?;
        kernel.launch_in(scope, &dims(&shape), (In(&x), &mut passed_on, 2u32))?;
        // A source may belong to the closure: it has been read on return.
        let own = &x + 1;
        kernel.launch_in(scope, &dims(&shape), (&passed_on, Out(&mut first), 0u32))?;
        kernel.launch_in(scope, &dims(&shape), (In(own), InOut(second.view_mut()), 0u32))?;
        Ok(passed_on)
    })??;
    same(on_device.copy_to_host()?.view(), (&x + 2).view());
    same(first.view(), (&x + 2).view());
    same(second.view(), (&before * 10 + &x + 1).view());
    Ok(())
}

fn what_does_not_fit_moves_nothing<B: Backend>(lab: &Lab<B>) -> Verdict {
    let (kernel, stream, device) = (append(lab)?, lab.device().stream()?, lab.device());
    let x = table(4, 4, 0);
    let line = Array1::from_elem(16, 5u32);
    let mut y = table(4, 4, 100);
    let before = device.counters().copies;
    let wrong = |error: &LayoutError| matches!(error, LayoutError::RankMismatch { found: 1, expected: 2 });
    refused_layout(kernel.launch(&stream, &dims(&[4, 4]), (In(&line), Out(&mut y), 0u32)), wrong)?;
    let mut out = line.clone();
    refused_layout(
        kernel.launch(&stream, &dims(&[4, 4]), (&device.to_device(&x)?, Out(&mut out), 0u32)),
        wrong,
    )?;
    let before = before + 1; // that of `to_device`
    let mut none = dims(&[4, 4]);
    none.groups[2] = 0;
    let refused_size = |kind: &ErrorKind| matches!(kind, ErrorKind::InvalidArgument { .. });
    refused(kernel.launch(&stream, &none, (In(&x), InOut(&mut y), 0u32)), refused_size)?;
    let in_scope = stream.scope(|scope| kernel.launch_in(scope, &none, (In(&x), InOut(&mut y), 0u32)))?;
    refused(in_scope, refused_size)?;
    assert!(device.counters().copies <= before, "nothing was copied for a launch that cannot be");
    same(y.view(), table(4, 4, 100).view());
    same(out.view(), line.view());
    // Rank 0 has one element, and is no matrix.
    let one = ndarray::arr0(3u32);
    let zero_axes =
        |error: &LayoutError| matches!(error, LayoutError::RankMismatch { found: 0, expected: 2 });
    let _: Ix0 = one.raw_dim();
    refused_layout(kernel.launch(&stream, &dims(&[4, 4]), (In(&one), Out(&mut y), 0u32)), zero_axes)
}
