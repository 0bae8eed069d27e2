//! Pinned and mapped memory: reading waits, writing waits.

use super::tools::{cube, elements, same};
use crate::{Lab, Level, Verdict, refused, refused_layout, skip};
use gpumem_core::{Backend, Element, ErrorKind, LayoutError, MappedOptions, MemoryKind};
use gpumem_runtime::{ArraySpec, HostArray, HostKind, Order};
use ndarray::{Array1, Array2, Ix2, s};

cases! { Level::Pinned;
    pinned_arrays_are_made_as_device_arrays,
    bad_pinned_arrays_are_refused,
    reading_pinned_memory_waits_for_its_writers,
    writing_pinned_memory_waits_for_its_readers,
    pinned_memory_goes_back,
    pinned_copies_of_any_layout,
    long_copies_of_page_locked_memory_of_any_layout,
    mapped_arrays_and_their_views,
    reading_mapped_memory_waits_for_the_device,
    mapped_memory_needs_the_capability,
}

const LEN: usize = 20_000;

fn pinned_arrays_are_made_as_device_arrays<B: Backend>(lab: &Lab<B>) -> Verdict {
    let device = lab.device();
    let mut array = device.pinned_array::<u32, _>((3, 4))?;
    assert_eq!((array.shape(), array.kind(), array.len()), (&[3, 4][..], MemoryKind::Pinned, 12));
    assert_eq!(array.view()?, Array2::<u32>::zeros((3, 4)));
    array.view_mut()?[(1, 2)] = 8;
    assert_eq!(array.copy_to_host()?[(1, 2)], 8);
    let columns = device.pinned_array::<u32, _>(ArraySpec::new((3, 4)).order(Order::F))?;
    assert_eq!(columns.view()?.strides(), &[1, 3]);
    let strided = device.pinned_array::<u32, _>(ArraySpec::new((3, 4)).strides(&[-32, 8]))?;
    assert_eq!(strided.view()?, Array2::<u32>::zeros((3, 4)));
    assert_eq!(device.pinned_array::<f64, _>(())?.view()?.sum(), 0.0);
    Ok(())
}

fn bad_pinned_arrays_are_refused<B: Backend>(lab: &Lab<B>) -> Verdict {
    let device = lab.device();
    let strided = |strides: &[isize]| device.pinned_array::<u32, _>(ArraySpec::new((3, 4)).strides(strides));
    refused_layout(strided(&[0, 4]), |error| matches!(error, LayoutError::SelfOverlap { .. }))?;
    refused_layout(strided(&[4]), |error| matches!(error, LayoutError::RankMismatch { .. }))?;
    let wide = ArraySpec::new(4).strides(&[7]);
    let wide = device.pinned_array::<[u8; 3], _>(wide);
    refused_layout(wide, |error| matches!(error, LayoutError::Misaligned { .. }))?;
    let much = device.pinned_array::<u8, _>(1 << 60);
    refused(much, |kind| matches!(kind, ErrorKind::OutOfMemory { kind: "pinned", .. }))
}

fn reading_pinned_memory_waits_for_its_writers<B: Backend>(lab: &Lab<B>) -> Verdict {
    let stream = lab.device().stream()?;
    let mut array = lab.device().device_array::<u32, _>(LEN)?;
    let mut pinned = lab.device().pinned_array::<u32, _>(LEN)?;
    for value in 1..4 {
        lab.delay(&stream)?;
        stream.fill(&mut array, value)?;
        stream.copy_to_host_into(&array, &mut pinned)?;
        same(pinned.view()?, Array1::from_elem(LEN, value).view());
    }
    Ok(())
}

fn writing_pinned_memory_waits_for_its_readers<B: Backend>(lab: &Lab<B>) -> Verdict {
    let stream = lab.device().stream()?;
    let mut array = lab.device().device_array::<u32, _>(LEN)?;
    let mut pinned = lab.device().pinned_array::<u32, _>(LEN)?;
    for value in 1..4 {
        pinned.view_mut()?.fill(value);
        lab.delay(&stream)?;
        stream.copy_to_device(&mut array, &pinned)?;
        pinned.view_mut()?.fill(999);
        same(array.copy_to_host()?.view(), Array1::from_elem(LEN, value).view());
    }
    // Two readers do not wait for each other: looking while the device reads is fine.
    pinned.view_mut()?.fill(5);
    lab.delay(&stream)?;
    stream.copy_to_device(&mut array, &pinned)?;
    same(pinned.view()?, Array1::from_elem(LEN, 5).view());
    Ok(())
}

fn pinned_memory_goes_back<B: Backend>(lab: &Lab<B>) -> Verdict {
    let device = lab.device();
    let stream = device.stream()?;
    let before = device.counters();
    let array = device.device_array::<u32, _>(LEN)?;
    lab.delay(&stream)?;
    let pinned = (0..3).map(|_| stream.copy_to_host(&array)).collect::<Result<Vec<_>, _>>()?;
    drop(pinned);
    drop(array);
    device.flush()?;
    let after = device.counters();
    assert_eq!(after.allocations - before.allocations, after.releases - before.releases);
    Ok(())
}

fn pinned_copies_of_any_layout<B: Backend>(lab: &Lab<B>) -> Verdict {
    let device = lab.device();
    let stream = device.stream()?;
    let array = device.to_device(&cube())?;
    let read = stream.copy_to_host(&array.slice(s![..;-1, .., ..;-2])?)?;
    same(read.view()?, cube().slice(s![..;-1, .., ..;-2]));
    let mut strided = device.pinned_array::<u32, _>(ArraySpec::new((2, 3, 4)).strides(&[4, -64, 16]))?;
    stream.copy_to_host_into(&array, &mut strided)?;
    same(strided.view()?, cube().view());
    let mut back = device.device_array::<u32, _>((2, 3, 4))?;
    stream.copy_to_device(&mut back, &strided)?;
    same(back.copy_to_host()?.view(), cube().view());
    strided.copy_from(&(cube() + 1))?;
    same(device.to_device(&strided)?.copy_to_host()?.view(), (cube() + 1).view());
    let mismatch = |error: &LayoutError| matches!(error, LayoutError::ShapeMismatch { .. });
    refused_layout(strided.copy_from(&ndarray::Array3::zeros((2, 3, 5))), mismatch)?;
    same(strided.view()?, (cube() + 1).view());
    Ok(())
}

/// Enough elements for a device to walk page-locked memory itself.
const ROWS: usize = 151;
const COLUMNS: usize = 470;

/// There and back in order of a stream, whatever the array's layout.
fn round_trip<K: HostKind, T: Element, B: Backend>(
    lab: &Lab<B>,
    mut array: HostArray<K, T, Ix2, B>,
) -> Verdict {
    let device = lab.device();
    let stream = device.stream()?;
    let numbers = Array2::from_shape_fn((ROWS, COLUMNS), {
        let numbers = elements::<T>(ROWS * COLUMNS);
        move |(row, column)| numbers[row * COLUMNS + column]
    });
    array.view_mut()?.assign(&numbers);
    let mut packed = device.device_array::<T, _>((ROWS, COLUMNS))?;
    let mut apart = device.device_array::<T, _>((COLUMNS, 2, ROWS))?;
    lab.delay(&stream)?;
    stream.copy_to_device(&mut packed, &array)?;
    stream.copy_to_device(&mut apart.slice_mut(s![.., 1, ..])?.permuted_axes(&[1, 0])?, &array)?;
    array.view_mut()?.fill(elements::<T>(9)[8]);
    same(packed.copy_to_host()?.view(), numbers.view());
    let found = apart.copy_to_host()?;
    same(found.slice(s![.., 1, ..]), numbers.t());
    same(found.slice(s![.., 0, ..]), Array2::from_elem((COLUMNS, ROWS), T::zeroed()).view());
    lab.delay(&stream)?;
    stream.copy_to_host_into(&apart.slice(s![..;-1, 1, ..])?.permuted_axes(&[1, 0])?, &mut array)?;
    same(array.view()?, numbers.slice(s![.., ..;-1]));
    Ok(())
}

/// The first `layouts` of those with gaps, turned round and out of order.
fn layouts<T: Element, B: Backend>(lab: &Lab<B>, layouts: usize) -> Verdict {
    let (item, rows, columns) = (size_of::<T>() as isize, ROWS as isize, COLUMNS as isize);
    let steps = [
        // Every second column; columns side by side; backwards along either axis and along both; rows with a gap.
        [2 * columns, 2],
        [1, rows],
        [-columns, 1],
        [columns, -1],
        [-3, -3 * (rows + 1)],
        [columns + 3, 1],
    ];
    for steps in steps.into_iter().take(layouts) {
        let spec = || ArraySpec::new((ROWS, COLUMNS)).strides(&steps.map(|step| step * item));
        round_trip(lab, lab.device().pinned_array::<T, _>(spec())?)?;
        if lab.device().capabilities().mapped {
            round_trip(lab, lab.device().mapped_array::<T, _>(spec(), MappedOptions::default())?)?;
        }
    }
    Ok(())
}

fn long_copies_of_page_locked_memory_of_any_layout<B: Backend>(lab: &Lab<B>) -> Verdict {
    layouts::<u32, B>(lab, usize::MAX)?;
    layouts::<[u16; 3], B>(lab, usize::MAX)?;
    layouts::<u8, B>(lab, 2)?;
    layouts::<u128, B>(lab, 2)?;
    if !lab.device().capabilities().mapped {
        return Ok(());
    }
    // Downloads keep gaps, whichever path is taken.
    let mut array = lab.device().mapped_array::<u16, _>((ROWS, COLUMNS), MappedOptions::default())?;
    let numbers = Array2::from_shape_fn((76, 157), |(row, column)| (row * 157 + column + 1) as u16);
    let part = s![..;-2, 1..;3];
    let there = lab.device().to_device(&numbers)?;
    array.device_view_mut().slice_mut(part)?.copy_to_device(&there)?;
    let mut expected = Array2::zeros((ROWS, COLUMNS));
    expected.slice_mut(part).assign(&numbers);
    same(array.view()?, expected.view());
    Ok(())
}

/// Every combination of the two options.
fn options() -> impl Iterator<Item = MappedOptions> {
    [(false, false), (false, true), (true, false), (true, true)]
        .into_iter()
        .map(|(portable, write_combined)| MappedOptions { portable, write_combined })
}

fn mapped_arrays_and_their_views<B: Backend>(lab: &Lab<B>) -> Verdict {
    if !lab.device().capabilities().mapped {
        return skip("the device has no mapped memory");
    }
    for options in options() {
        let mut array = lab.device().mapped_array::<u32, _>((2, 3, 4), options)?;
        assert_eq!(array.kind(), MemoryKind::Mapped(options), "nothing that was asked for is ignored");
        assert_eq!(array.view()?.sum(), 0);
        array.view_mut()?.assign(&cube());
        let view = array.device_view();
        let part = view.slice(s![1, ..;-1, ..;2])?;
        assert_eq!(part.address(), view.address() + 4 * (12 + 8));
        same(part.copy_to_host()?.view(), cube().slice(s![1, ..;-1, ..;2]));
        for part in array.device_view_mut().split_mut(1)? {
            let mut part = part;
            part.slice_mut(s![.., 0, ..])?.fill(7)?;
        }
        let mut expected = cube();
        expected.slice_mut(s![.., 0, ..]).fill(7);
        same(array.view()?, expected.view());
        same(lab.device().to_device(&array)?.copy_to_host()?.view(), expected.view());
    }
    assert!(lab.device().mapped_array::<u8, _>(0, MappedOptions::default())?.view()?.is_empty());
    Ok(())
}

fn reading_mapped_memory_waits_for_the_device<B: Backend>(lab: &Lab<B>) -> Verdict {
    if !lab.device().capabilities().mapped {
        return skip("the device has no mapped memory");
    }
    let stream = lab.device().stream()?;
    let mut array = lab.device().mapped_array::<u32, _>(LEN, MappedOptions::default())?;
    for value in 1..4 {
        lab.delay(&stream)?;
        stream.fill(&mut array.device_view_mut(), value)?;
        same(array.view()?, Array1::from_elem(LEN, value).view());
        lab.delay(&stream)?;
        let copy = stream.to_device(&array.device_view())?;
        array.view_mut()?.fill(1000);
        same(copy.copy_to_host()?.view(), Array1::from_elem(LEN, value).view());
    }
    Ok(())
}

fn mapped_memory_needs_the_capability<B: Backend>(lab: &Lab<B>) -> Verdict {
    let made = lab.device().mapped_array::<u8, _>(16, MappedOptions::default());
    match lab.device().capabilities().mapped {
        true => made.map(drop).map_err(Into::into),
        false => refused(made, |kind| matches!(kind, ErrorKind::Unsupported { .. })),
    }
}
