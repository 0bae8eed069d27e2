//! Memory of the caller, page-locked while a scope lasts.

use super::tools::{cube, same};
use crate::{Lab, Level, Stop, Verdict, refused, skip};
use gpumem_core::{Backend, ErrorKind};
use gpumem_runtime::RegisterError;
use ndarray::{Array1, Array2, Array3, ArrayViewMut1, s};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

cases! { Level::Register;
    pinned_while_a_scope_lasts,
    strided_arrays_are_pinned_whole,
    a_panic_unlocks,
    registering_twice_is_told_or_shared,
    mapped_while_a_scope_lasts,
    pinned_in_a_scope_of_a_stream,
    registering_needs_the_capability,
    registered_arrays_come_back,
    registered_arrays_may_be_dropped_at_any_time,
    registered_arrays_have_a_device_address,
    what_cannot_be_registered_comes_back,
}

const LEN: usize = 20_000;

fn needs<B: Backend>(lab: &Lab<B>) -> Verdict {
    match lab.device().capabilities().register {
        true => Ok(()),
        false => skip("the device page-locks no memory of the caller"),
    }
}

fn pinned_while_a_scope_lasts<B: Backend>(lab: &Lab<B>) -> Verdict {
    needs(lab)?;
    let (device, stream) = (lab.device(), lab.device().stream()?);
    let (mut one, mut two) = (Array1::from_elem(LEN, 1u32), Array1::from_elem(LEN, 2u32));
    let mut array = device.device_array::<u32, _>(LEN)?;
    device.pinned([one.view_mut(), two.view_mut()], |locked| {
        lab.delay(&stream)?;
        stream.copy_to_device(&mut array, &locked[0])?;
        stream.copy_to_host_into(&array, &mut locked[1])?;
        stream.fill(&mut array, 3)?;
        stream.copy_to_host_into(&array, &mut locked[0])
    })??;
    // The scope has waited for both.
    same(one.view(), Array1::from_elem(LEN, 3).view());
    same(two.view(), Array1::from_elem(LEN, 1).view());
    // Of several types and ranks, each at its position; and as many as there are.
    let (mut wide, mut flat) = (ndarray::Array2::from_elem((2, 3), 1.5f64), Array1::from_elem(LEN, 0u32));
    device.pinned((wide.view_mut(), flat.view_mut()), |(wide, flat)| -> Verdict {
        assert_eq!((wide.shape(), wide.view()?[(1, 2)]), (&[2, 3][..], 1.5));
        stream.copy_to_host_into(&array, flat)?;
        Ok(())
    })??;
    same(flat.view(), Array1::from_elem(LEN, 3).view());
    let parts = flat.axis_chunks_iter_mut(ndarray::Axis(0), LEN / 2).collect::<Vec<_>>();
    let count = parts.len();
    assert_eq!(device.pinned(parts, |parts| parts.len())?, count);
    // Unlocked at once: the memory can be locked again.
    device.pinned([one.view_mut()], |locked| locked[0].view().map(|view| view[0]))??;
    Ok(())
}

fn strided_arrays_are_pinned_whole<B: Backend>(lab: &Lab<B>) -> Verdict {
    needs(lab)?;
    let device = lab.device();
    let array = device.to_device(&cube())?;
    let mut host = Array3::from_elem((4, 6, 8), 0xEEEE_EEEEu32);
    let mut expected = host.clone();
    let part = s![..;-2, 1..;2, ..;-2];
    expected.slice_mut(part).assign(&cube());
    device.pinned([host.slice_mut(part)], |locked| -> Verdict {
        device.stream()?.copy_to_host_into(&array, &mut locked[0])?;
        same(locked[0].view()?, cube().view());
        Ok(())
    })??;
    same(host.view(), expected.view());
    let mut nothing: [u32; 0] = [];
    device.pinned([ArrayViewMut1::from(&mut nothing[..])], |locked| assert!(locked[0].is_empty()))?;
    device.pinned([] as [ArrayViewMut1<'_, u32>; 0], |locked| assert!(locked.is_empty()))?;
    Ok(())
}

fn a_panic_unlocks<B: Backend>(lab: &Lab<B>) -> Verdict {
    needs(lab)?;
    let (device, stream) = (lab.device(), lab.device().stream()?);
    let mut host = Array1::from_elem(LEN, 1u32);
    let array = device.to_device(&Array1::from_elem(LEN, 7u32))?;
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        device.pinned([host.view_mut()], |locked| -> gpumem_core::Result<()> {
            lab.delay(&stream)?;
            stream.copy_to_host_into(&array, &mut locked[0])?;
            resume_unwind(Box::new("on purpose"))
        })
    }));
    assert!(panicked.is_err());
    same(host.view(), Array1::from_elem(LEN, 7).view());
    device.pinned([host.view_mut()], |_| ())?;
    Ok(())
}

fn registering_twice_is_told_or_shared<B: Backend>(lab: &Lab<B>) -> Verdict {
    needs(lab)?;
    // Neighbours that share a page: each is locked by page, and neither unlocks the other's.
    let device = lab.device();
    let mut host = Array2::from_elem((2, 100), 1u8);
    let (mut left, mut right) = host.view_mut().split_at(ndarray::Axis(0), 1);
    let array = device.to_device(&Array2::from_elem((1, 100), 9u8))?;
    device.pinned([left.view_mut()], |outer| -> Verdict {
        device.pinned([right.view_mut()], |inner| {
            device.stream()?.copy_to_host_into(&array, &mut inner[0])
        })??;
        device.stream()?.copy_to_host_into(&array, &mut outer[0])?;
        Ok(())
    })??;
    assert_eq!(host, Array2::from_elem((2, 100), 9));
    Ok(())
}

fn mapped_while_a_scope_lasts<B: Backend>(lab: &Lab<B>) -> Verdict {
    needs(lab)?;
    if !lab.device().capabilities().mapped {
        return skip("the device has no mapped memory");
    }
    let stream = lab.device().stream()?;
    let mut host = Array2::from_shape_fn((60, 70), |(i, j)| (100 * i + j) as u32);
    let mut expected = host.clone();
    lab.device().mapped([host.slice_mut(s![.., ..;-1])], |mapped| -> Verdict {
        let copy = stream.to_device(&mapped[0].device_view().slice(s![..10, ..])?)?;
        lab.delay(&stream)?;
        stream.fill(&mut mapped[0].device_view_mut().slice_mut(s![20..40;2, 1..])?, 5)?;
        same(copy.copy_to_host()?.view(), expected.slice(s![..10, ..;-1]));
        Ok(())
    })??;
    expected.slice_mut(s![20..40;2, ..69]).fill(5);
    same(host.view(), expected.view());
    Ok(())
}

fn pinned_in_a_scope_of_a_stream<B: Backend>(lab: &Lab<B>) -> Verdict {
    needs(lab)?;
    let stream = lab.device().stream()?;
    let array = lab.device().to_device(&Array1::from_elem(LEN, 4u32))?;
    let (mut one, mut two) = (Array1::zeros(LEN), Array1::zeros(LEN));
    stream.scope(|scope| -> gpumem_core::Result<()> {
        lab.delay(scope.stream())?;
        let mut locked = scope.pinned(one.view_mut())?;
        scope.stream().copy_to_host_into(&array, &mut locked)?;
        scope.copy_to_host(&array, two.view_mut())
    })??;
    same(one.view(), Array1::from_elem(LEN, 4).view());
    same(two.view(), one.view());
    Ok(())
}

fn registering_needs_the_capability<B: Backend>(lab: &Lab<B>) -> Verdict {
    let mut host = Array1::from_elem(LEN, 1u32);
    let mut ran = false;
    let locked = lab.device().pinned([host.view_mut()], |_| ran = true);
    match lab.device().capabilities().register {
        true => locked?,
        false => refused(locked, |kind| matches!(kind, ErrorKind::Unsupported { .. }))?,
    }
    assert_eq!(ran, lab.device().capabilities().register, "the body runs only with everything locked");
    Ok(())
}

fn registered_arrays_come_back<B: Backend>(lab: &Lab<B>) -> Verdict {
    needs(lab)?;
    let (device, stream) = (lab.device(), lab.device().stream()?);
    // Taken over with its strides: every second row, backwards, without the first column.
    let whole = Array2::from_shape_fn((60, 70), |(i, j)| (100 * i + j) as u32);
    let part = whole.clone().slice_move(s![..;-2, 1..]);
    let (expected, place) = (part.clone(), part.as_ptr());
    let mut registered = device.register(part)?;
    let array = stream.to_device(&registered)?;
    lab.delay(&stream)?;
    let mut other = stream.to_device(&array)?;
    stream.fill(&mut other.slice_mut(s![.., 3])?, 9)?;
    stream.copy_to_host_into(&other, &mut registered)?;
    // Reading waits, as for all host arrays of the library.
    let mut changed = expected.clone();
    changed.column_mut(3).fill(9);
    same(registered.view()?, changed.view());
    registered.view_mut()?[[0, 0]] = 7;
    lab.delay(&stream)?;
    stream.copy_to_host_into(&array, &mut registered)?;
    // So does giving it back.
    let back = registered.deregister()?;
    assert_eq!((back.as_ptr(), back.strides()), (place, expected.strides()), "it has not moved");
    same(back.view(), expected.view());
    // It can be registered again, and so can an array without elements.
    same(device.register(back)?.deregister()?.view(), expected.view());
    assert!(device.register(Array1::<u32>::zeros(0))?.deregister()?.is_empty());
    Ok(())
}

fn registered_arrays_may_be_dropped_at_any_time<B: Backend>(lab: &Lab<B>) -> Verdict {
    needs(lab)?;
    let (device, stream) = (lab.device(), lab.device().stream()?);
    let array = device.to_device(&Array1::from_elem(LEN, 7u32))?;
    for _ in 0..3 {
        let mut registered = device.register(Array1::from_elem(LEN, 1u32))?;
        lab.delay(&stream)?;
        stream.copy_to_host_into(&array, &mut registered)?;
        drop(registered);
    }
    stream.synchronize()?;
    device.flush()?;
    assert_eq!(device.pending_frees(), (0, 0), "everything is unlocked and freed");
    Ok(())
}

fn registered_arrays_have_a_device_address<B: Backend>(lab: &Lab<B>) -> Verdict {
    needs(lab)?;
    let (device, stream) = (lab.device(), lab.device().stream()?);
    if !device.capabilities().mapped {
        return comes_back(device.register_mapped(Array1::from_elem(LEN, 3u32)));
    }
    let mut mapped = device.register_mapped(Array1::from_elem(LEN, 3u32))?;
    lab.delay(&stream)?;
    stream.fill(&mut mapped.device_view_mut().slice_mut(s![..;2])?, 5)?;
    let copy = stream.to_device(&mapped.device_view().slice(s![..10])?)?;
    let elements = mapped.deregister()?;
    assert!(elements.iter().enumerate().all(|(i, element)| *element == if i % 2 == 0 { 5 } else { 3 }));
    same(copy.copy_to_host()?.view(), elements.slice(s![..10]));
    Ok(())
}

fn what_cannot_be_registered_comes_back<B: Backend>(lab: &Lab<B>) -> Verdict {
    if lab.device().capabilities().register {
        return skip("the device page-locks memory of the caller");
    }
    comes_back(lab.device().register(Array1::from_elem(LEN, 3u32)))
}

/// An array of threes that cannot be registered is refused as it was.
fn comes_back<R>(outcome: Result<R, RegisterError<Array1<u32>>>) -> Verdict {
    let Err(refused) = outcome else {
        return Err(Stop::Failed("a call that the device does not support succeeded".to_owned()));
    };
    assert!(matches!(refused.error.kind(), ErrorKind::Unsupported { .. }), "{refused}");
    same(refused.given.view(), Array1::from_elem(LEN, 3).view());
    Ok(())
}
