//! The types that users write, on the device that every machine has.
#![cfg(feature = "host")]

use gpumem::{
    Device, DeviceArray, DeviceView, DeviceViewMut,
    ndarray::{Array2, Dimension, Ix2},
    s,
};

#[test]
fn an_array_goes_to_the_device_and_back() -> gpumem::Result<()> {
    let device = Device::open("host")?;
    let host = Array2::from_shape_fn((64, 48), |(i, j)| (i * 48 + j) as f32);
    let array: DeviceArray<f32, Ix2> = device.to_device(&host)?;
    assert_eq!(array.copy_to_host()?, host);
    let view = array.slice(s![..;-2, 3..])?;
    assert_eq!(view.copy_to_host()?, host.slice(s![..;-2, 3..]));
    let stream = device.stream()?;
    let twice = stream.to_device(&view)?;
    let pinned = stream.copy_to_host(&twice)?;
    assert_eq!(pinned.view()?, host.slice(s![..;-2, 3..]));
    let mut out = Array2::zeros((64, 48));
    stream.scope(|scope| scope.copy_to_host(&array, out.view_mut()))??;
    assert_eq!(out, host);
    device.synchronize()?;
    Ok(())
}

/// Reads an array or a view.
fn read<'a, D: Dimension>(view: impl Into<DeviceView<'a, f32, D>>) -> gpumem::Result<Vec<f32>> {
    Ok(view.into().copy_to_host()?.iter().copied().collect())
}

/// Writes into an array or a view.
fn clear<'a, D: Dimension>(view: impl Into<DeviceViewMut<'a, f32, D>>) -> gpumem::Result<()> {
    view.into().fill(0.0)
}

#[test]
fn functions_take_arrays_and_views() -> gpumem::Result<()> {
    let device = Device::open("host")?;
    let mut array: DeviceArray<f32> = device.to_device(&[1.0, 2.0, 3.0])?;
    assert_eq!(read(&array)?, [1.0, 2.0, 3.0]);
    assert_eq!(read(array.slice(s![1..])?)?, [2.0, 3.0]);
    clear(array.slice_mut(s![..1])?)?;
    assert_eq!(read(&array)?, [0.0, 2.0, 3.0]);
    clear(&mut array)?;
    assert_eq!(read(&array)?, [0.0; 3]);
    Ok(())
}

/// Types that users hold can be used in `catch_unwind`, and kept across it: no panic leaves one in a state that breaks a promise.
#[test]
fn types_that_users_hold_are_unwind_safe() {
    use gpumem::{
        Completion, Event, IpcArray, Loan, ManagedArray, MappedArray, MappedRegisteredArray, PinnedArray,
        RegisteredArray, Stream, UninitArray, ndarray::Ix1,
    };
    use std::panic::{RefUnwindSafe, UnwindSafe};
    fn is_safe<T: UnwindSafe + RefUnwindSafe>() {}

    is_safe::<Device>();
    is_safe::<Stream>();
    is_safe::<Event>();
    is_safe::<DeviceArray<f32, Ix2>>();
    is_safe::<DeviceView<'_, f32>>();
    is_safe::<gpumem::ImportedArray<f32>>();
    is_safe::<UninitArray<f32>>();
    is_safe::<(PinnedArray<f32>, MappedArray<f32>, ManagedArray<f32>)>();
    is_safe::<(RegisteredArray<f32>, MappedRegisteredArray<f32>)>();
    is_safe::<(IpcArray<f32>, Loan, Completion)>();
    is_safe::<(gpumem::SpillManager, gpumem::Spillable<f32>)>();
    is_safe::<gpumem::Recording>();
    is_safe::<gpumem::Kernel<(f32,)>>();
    is_safe::<gpumem::kernel::KernelDef<(f32,)>>();
    is_safe::<(gpumem::Error, gpumem::DeviceInfo, gpumem::LaunchConfig, gpumem::ArraySpec<Ix1>)>();
    #[cfg(feature = "collectives")]
    is_safe::<gpumem::collectives::Communicator<gpumem::AnyBackend>>();
    // A view that writes borrows mutably, as `&mut [T]` does.
    fn is_ref_safe<T: RefUnwindSafe>() {}
    is_ref_safe::<DeviceViewMut<'_, f32>>();
}
