//! Memory lent to other libraries.

use super::tools::same;
use crate::{Lab, Level, Verdict, refused};
use gpumem_core::{
    Backend, CopyRegion, DescriptorError, DriverDevice, ErrorKind, Fill, Pattern, Result, Space, Stream as _,
    StreamKind,
};
use gpumem_runtime::{
    ArrayBase, ArraySpec, CudaArrayInterface, Device, HasCudaArrayInterface, InterchangeStream, Order,
    RawAccess, Storage, Stream,
};
use ndarray::{Array1, Array2, Array3, Dimension, Ix1, IxDyn, s};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

cases! { Level::Interchange;
    descriptors_are_valid,
    what_is_lent_comes_back,
    a_second_handle_is_not_used_beside_what_is_written,
    a_second_handle_is_not_used_while_others_enqueue_work,
    borrowers_and_owners_wait_for_each_other,
    borrowers_on_other_streams_are_waited_for,
    borrowers_known_by_a_handle_wait_and_are_waited_for,
    the_end_of_a_loan_is_remembered,
    loans_of_one_kind_end_one_by_one,
    streams_that_cannot_be_lent,
}

const LEN: usize = 30_000;

/// Work of another library: the runtime does not see what it touches.
fn elsewhere<B: Backend>(stream: &Stream<B>, work: impl FnOnce(&B::Stream) -> Result<()>) -> Result<()> {
    // SAFETY: the work touches only memory that is lent to it.
    unsafe {
        stream.raw_scope(&[], |parts| {
            let raw = stream.device().raw().wrap_stream(parts.stream)?;
            work(&raw)
        })?
    }
}

fn fill<B: Backend>(stream: &Stream<B>, address: u64, value: u32) -> Result<()> {
    let fill = Fill { address, pattern: Pattern::U32(value), count: LEN, rows: 1, pitch: 0 };
    // SAFETY: the memory is lent, and long enough.
    elsewhere(stream, |raw| unsafe { raw.fill(&fill) })
}

fn copy<B: Backend>(stream: &Stream<B>, from: u64, to: u64) -> Result<()> {
    let space = Space::Device(stream.device().info().ordinal);
    let region = CopyRegion::linear((from, space), (to, space), 4 * LEN);
    // SAFETY: the memory is lent, and long enough.
    elsewhere(stream, |raw| unsafe { raw.copy(&region) })
}

fn described<S: Storage, D: Dimension>(
    array: &ArrayBase<S, D>,
    stream: &Stream<S::Backend>,
) -> Verdict<CudaArrayInterface> {
    Ok(array.lend(stream)?.cuda_array_interface()?)
}

fn descriptors_are_valid<B: Backend>(lab: &Lab<B>) -> Verdict {
    let (device, stream) = (lab.device(), lab.device().stream()?);
    let mut array = device.to_device(&Array3::<f32>::zeros((2, 3, 4)))?;
    let says = described(&array, &stream)?;
    assert_eq!((says.version, says.mask, says.descr, says.shape), (3, false, None, vec![2, 3, 4]));
    assert_eq!((says.typestr.to_string().as_str(), says.strides), ("<f4", None));
    assert_eq!(says.data, (array.address(), true), "a shared borrow may only be read");
    assert_eq!(array.lend_mut(&stream)?.describe().data, (array.address(), false));
    let transposed = described(&array.t(), &stream)?;
    assert_eq!((transposed.shape, transposed.strides), (vec![4, 3, 2], Some(vec![4, 16, 48])));
    let backwards = described(&array.slice(s![1, ..;-1, ..;-2])?, &stream)?;
    assert_eq!((backwards.shape, backwards.strides), (vec![3, 2], Some(vec![-16, -8])));
    assert_eq!(backwards.data.0, array.address() + 4 * 23);
    // Numba leaves out the strides of a broadcast array, and a reader runs past its end.
    let broadcast = described(&array.slice(s![0, 0, ..1])?.broadcast((5, 6))?, &stream)?;
    assert_eq!((broadcast.shape, broadcast.strides), (vec![5, 6], Some(vec![0, 0])));
    let empty = described(&device.device_array::<f64, _>((0, 3))?, &stream)?;
    assert_eq!((empty.data.0, empty.shape, empty.strides), (0, vec![0, 3], None));
    let single = described(&device.to_device(&ndarray::arr0(5u16))?, &stream)?;
    assert_eq!((single.shape, single.strides, single.typestr.to_string().as_str()), (vec![], None, "<u2"));
    let record = described(&device.device_array::<[u16; 5], _>(2)?, &stream)?;
    assert_eq!(record.typestr.to_string(), "|V10");
    // Never 0, on whichever stream.
    for stream in [device.stream()?, device.default_stream()?] {
        let says = described(&array, &stream)?;
        assert_eq!(says.stream, Some(stream.raw_handle()?.0 as i64));
        assert!(
            says.stream_handle().is_ok_and(|handle| matches!(handle, Some(InterchangeStream::Handle(_))))
        );
    }
    assert_eq!(described(&array, &device.legacy_stream()?)?.stream, Some(1));
    Ok(())
}

fn what_is_lent_comes_back<B: Backend>(lab: &Lab<B>) -> Verdict {
    let (device, stream) = (lab.device(), lab.device().stream()?);
    let host = Array2::from_shape_fn((5, 6), |(i, j)| (10 * i + j) as i64);
    let columns = device.uninit_array::<i64, _>(ArraySpec::new((5, 6)).order(Order::F))?.copy_from(&host)?;
    let rows = device.to_device(&host)?;
    let views = [
        (rows.view().into_dyn(), host.view().into_dyn()),
        (columns.view().into_dyn(), host.view().into_dyn()),
        (rows.slice(s![..;-2, 1..;3])?.into_dyn(), host.slice(s![..;-2, 1..;3]).into_dyn()),
        (rows.t().into_dyn(), host.t().into_dyn()),
        (rows.slice(s![3, 4])?.into_dyn(), host.slice(s![3, 4]).into_dyn()),
        (rows.slice(s![2..2, ..])?.into_dyn(), host.slice(s![2..2, ..]).into_dyn()),
    ];
    for (view, expected) in views {
        lab.delay(&stream)?;
        let back = device.as_cuda_array::<i64, IxDyn, _>(view.lend(&stream)?)?;
        assert!(back.is_read_only());
        same(back.copy_to_host()?.view(), expected);
    }
    // The loan keeps the memory alive.
    let mut array = device.to_device(&host)?;
    let loan = array.lend_mut(&stream)?;
    drop(array);
    device.flush()?;
    let back = device.as_cuda_array::<i64, IxDyn, _>(loan)?;
    same(back.copy_to_host()?.view(), host.view().into_dyn());
    let mut back = back.try_into_array().map_err(|(_, error)| error)?;
    back.fill(3)?;
    same(back.copy_to_host()?.view(), Array2::from_elem((5, 6), 3).into_dyn().view());
    Ok(())
}

fn a_second_handle_is_not_used_beside_what_is_written<B: Backend>(lab: &Lab<B>) -> Verdict {
    let (device, stream) = (lab.device(), lab.device().stream()?);
    let host = Array1::from_iter(0..100u32);
    let mut array = device.to_device(&host)?;
    let loan = array.lend(&stream)?;
    let own = device.as_cuda_array::<u32, Ix1, _>(loan)?;
    // SAFETY: the bytes are those of `array`, which outlives this, and every use is waited for.
    let wrapped = unsafe { device.foreign_array::<u32, _>(array.address(), 400, 100, ()) }?;
    let overlap = |kind: &ErrorKind| matches!(kind, ErrorKind::Overlap { .. });
    for second in [own.view(), wrapped.view()] {
        let mut part = array.slice_mut(s![50..])?;
        refused(part.copy_to_device(&second.slice(s![49..99])?).map(drop), overlap)?;
        refused(part.assign(&second.slice(s![99..])?), overlap)?;
        refused(stream.copy_to_device(&mut part, &second.slice(s![..;2])?), overlap)?;
        let mut has_run = false;
        let uses = [RawAccess::read(&second), RawAccess::write(&mut part)];
        // SAFETY: nothing is enqueued.
        refused(unsafe { stream.raw_scope(&uses, |_| has_run = true) }, overlap)?;
        let last = second.slice(s![99..])?;
        let uses = [RawAccess::write(&mut part), RawAccess::read(&last)];
        // SAFETY: nothing is enqueued.
        refused(unsafe { stream.raw_scope(&uses, |_| has_run = true) }, overlap)?;
        assert!(!has_run);
        // Two that lie apart, and two that are only read.
        // SAFETY: nothing is enqueued.
        unsafe {
            let low = second.slice(s![..50])?;
            stream.raw_scope(&[RawAccess::read(&low), RawAccess::write(&mut part)], |_| has_run = true)?;
            stream.raw_scope(&[RawAccess::read(&second), RawAccess::read(&part)], |_| ())?;
        }
        assert!(has_run);
    }
    stream.synchronize()?;
    assert_eq!(array.copy_to_host()?, host);
    drop((own, wrapped));
    device.synchronize()?;
    Ok(())
}

fn a_second_handle_is_not_used_while_others_enqueue_work<B: Backend>(lab: &Lab<B>) -> Verdict {
    let (device, stream, other) = (lab.device(), lab.device().stream()?, lab.device().stream()?);
    let host = Array1::from_iter(0..100u32);
    let mut array = device.to_device(&host)?;
    let mut copy = device.device_array::<u32, _>(100)?;
    let second = device.as_cuda_array::<u32, Ix1, _>(array.lend(&other)?)?;
    let overlap = |kind: &ErrorKind| matches!(kind, ErrorKind::Overlap { .. });
    for writes in [true, false] {
        let uses = [match writes {
            true => RawAccess::write(&mut array),
            false => RawAccess::read(&array),
        }];
        // SAFETY: nothing is enqueued by other means than the library's.
        let inside = unsafe {
            stream.raw_scope(&uses, |_| -> Verdict {
                let on_other = other.copy_to_device(&mut copy, &second);
                let blocking = second.copy_to_host();
                let (lent, raw) = (second.lend(&other), other.raw_scope(&[RawAccess::read(&second)], |_| ()));
                if writes {
                    refused(on_other, overlap)?;
                    refused(blocking, overlap)?;
                    refused(lent, overlap)?;
                    return refused(raw, overlap);
                }
                on_other?;
                same(blocking?.view(), host.view());
                drop(lent?);
                raw?;
                Ok(())
            })
        };
        inside??;
        other.copy_to_device(&mut copy, &second)?;
        same(second.copy_to_host()?.view(), host.view());
    }
    // Elements that take turns with those, and no elements among them.
    let mut odd = array.slice_mut(s![1..;2])?;
    let uses = [RawAccess::write(&mut odd)];
    // SAFETY: nothing is enqueued by other means than the library's.
    let inside = unsafe {
        stream.raw_scope(&uses, |_| -> Verdict {
            other.copy_to_device(&mut copy.slice_mut(s![..50])?, &second.slice(s![..;2])?)?;
            other.copy_to_device(&mut copy.slice_mut(s![..0])?, &second.slice(s![50..50])?)?;
            Ok(())
        })
    };
    inside??;
    drop(second);
    // A loan that works on no stream, and comes back only inside.
    let mut fresh = device.to_device(&host)?;
    if device.info().backend == "host" {
        let tensor = fresh.lend_to_host()?.into_dlpack()?;
        let uses = [RawAccess::write(&mut fresh)];
        // SAFETY: nothing is enqueued.
        let inside = unsafe {
            stream.raw_scope(&uses, |_| -> Verdict {
                let second = device.from_dlpack::<u32, Ix1>(tensor, None)?;
                refused(second.copy_to_host(), overlap)?;
                refused(other.copy_to_device(&mut copy, &second), overlap)
            })
        };
        inside??;
    }
    // A body that panics has ended, too.
    let uses = [RawAccess::write(&mut array)];
    // SAFETY: nothing is enqueued.
    let panics = || unsafe { stream.raw_scope(&uses, |_| resume_unwind(Box::new("on purpose"))) };
    let caught: std::thread::Result<Result<()>> = catch_unwind(AssertUnwindSafe(panics));
    assert!(caught.is_err());
    same(array.copy_to_host()?.view(), host.view());
    device.synchronize()?;
    Ok(())
}

fn borrowers_and_owners_wait_for_each_other<B: Backend>(lab: &Lab<B>) -> Verdict {
    let (device, ours, theirs) = (lab.device(), lab.device().stream()?, lab.device().stream()?);
    let mut array = device.to_device(&Array1::from_elem(LEN, 1u32))?;
    let mut seen = device.device_array::<u32, _>(LEN)?;
    // gpumem's work that is pending when the array is lent.
    lab.delay(&ours)?;
    ours.fill(&mut array, 2)?;
    let loan = array.lend_mut(&theirs)?;
    let note = seen.lend_mut(&theirs)?;
    copy(&theirs, array.address(), seen.address())?;
    same(seen.copy_to_host()?.view(), Array1::from_elem(LEN, 2).view());
    for round in 3..6u32 {
        // The other library's work, then gpumem's, again and again: an event of an earlier round must not be used for a
        // later one.
        lab.delay(&theirs)?;
        fill(&theirs, array.address(), 10 * round)?;
        same(ours.copy_to_host(&array)?.view()?, Array1::from_elem(LEN, 10 * round).view());
        // Our work, then theirs.
        lab.delay(&ours)?;
        ours.fill(&mut array, round)?;
        copy(&theirs, array.address(), seen.address())?;
        same(seen.copy_to_host()?.view(), Array1::from_elem(LEN, round).view());
    }
    drop((loan, note));
    same(array.copy_to_host()?.view(), Array1::from_elem(LEN, 5).view());
    Ok(())
}

fn borrowers_on_other_streams_are_waited_for<B: Backend>(lab: &Lab<B>) -> Verdict {
    let (device, named, unnamed) = (lab.device(), lab.device().stream()?, lab.device().stream()?);
    let mut array = device.to_device(&Array1::from_elem(LEN, 1u32))?;
    device.synchronize()?;
    let loan = array.lend_mut(&named)?.on_any_stream();
    for value in 2..4u32 {
        lab.delay(&unnamed)?;
        fill(&unnamed, array.address(), value)?;
        same(array.copy_to_host()?.view(), Array1::from_elem(LEN, value).view());
    }
    lab.delay(&unnamed)?;
    fill(&unnamed, array.address(), 9)?;
    drop(loan);
    same(array.copy_to_host()?.view(), Array1::from_elem(LEN, 9).view());
    Ok(())
}

fn borrowers_known_by_a_handle_wait_and_are_waited_for<B: Backend>(lab: &Lab<B>) -> Verdict {
    let (device, ours, theirs) = (lab.device(), lab.device().stream()?, lab.device().stream()?);
    let mut array = device.to_device(&Array1::from_elem(LEN, 1u32))?;
    let mut seen = device.device_array::<u32, _>(LEN)?;
    let handle = InterchangeStream::Handle(theirs.raw_handle()?);
    for value in 2..5u32 {
        // Our work, then theirs.
        lab.delay(&ours)?;
        ours.fill(&mut array, 10 * value)?;
        // SAFETY: the stream is alive.
        let loans = unsafe { (array.lend_mut_to_handle(handle)?, seen.lend_mut_to_handle(handle)?) };
        copy(&theirs, array.address(), seen.address())?;
        same(seen.copy_to_host()?.view(), Array1::from_elem(LEN, 10 * value).view());
        // Their work, then ours: while the loans last, and after their end.
        lab.delay(&theirs)?;
        fill(&theirs, array.address(), value)?;
        if value % 2 == 0 {
            drop(loans);
        }
        same(array.copy_to_host()?.view(), Array1::from_elem(LEN, value).view());
    }
    Ok(())
}

fn the_end_of_a_loan_is_remembered<B: Backend>(lab: &Lab<B>) -> Verdict {
    let (device, theirs) = (lab.device(), lab.device().stream()?);
    let mut array = device.to_device(&Array1::from_elem(LEN, 1u32))?;
    let loan = array.lend_mut(&theirs)?;
    lab.delay(&theirs)?;
    fill(&theirs, array.address(), 2)?;
    drop(loan);
    same(array.copy_to_host()?.view(), Array1::from_elem(LEN, 2).view());
    // The memory does not go back before the borrower is done with it.
    let loan = array.lend_mut(&theirs)?;
    lab.delay(&theirs)?;
    fill(&theirs, array.address(), 3)?;
    drop((loan, array));
    device.flush()?;
    assert!(theirs.query()?, "its last use is over");
    // A loan that is forgotten costs memory and waits.
    let array = device.to_device(&Array1::from_elem(LEN, 1u32))?;
    std::mem::forget(array.lend(&theirs)?);
    lab.leaks(1);
    same(array.copy_to_host()?.view(), Array1::from_elem(LEN, 1).view());
    Ok(())
}

fn loans_of_one_kind_end_one_by_one<B: Backend>(lab: &Lab<B>) -> Verdict {
    let (device, ours, theirs) = (lab.device(), lab.device().stream()?, lab.device().stream()?);
    let mut array = device.to_device(&Array1::from_elem(LEN, 1u32))?;
    let mut seen = device.device_array::<u32, _>(LEN)?;
    let note = seen.lend_mut(&theirs)?;
    let (first, second) = (array.lend(&theirs)?, array.lend(&theirs)?);
    drop(first);
    // The second loan still covers its borrower's reads, ..
    lab.delay(&theirs)?;
    copy(&theirs, array.address(), seen.address())?;
    ours.fill(&mut array, 2)?;
    same(seen.copy_to_host()?.view(), Array1::from_elem(LEN, 1).view());
    // .. and lets it wait for us.
    lab.delay(&ours)?;
    ours.fill(&mut array, 3)?;
    copy(&theirs, array.address(), seen.address())?;
    same(seen.copy_to_host()?.view(), Array1::from_elem(LEN, 3).view());
    drop((second, note));
    device.synchronize()?;
    let before = device.counters().waits;
    ours.fill(&mut array, 4)?;
    assert_eq!(device.counters().waits, before, "there is no borrower left");
    same(array.copy_to_host()?.view(), Array1::from_elem(LEN, 4).view());
    Ok(())
}

fn streams_that_cannot_be_lent<B: Backend>(lab: &Lab<B>) -> Verdict {
    let device: &Device<B> = lab.device();
    let array = device.to_device(&Array1::from_elem(8, 1u32))?;
    let thread = device.per_thread_stream()?;
    assert_eq!(thread.kind(), StreamKind::PerThread);
    let stream = |kind: &ErrorKind| matches!(kind, ErrorKind::Descriptor(DescriptorError::Stream { .. }));
    refused(array.lend(&thread), stream)?;
    if let Ok(second) = lab.second() {
        let wrong = |kind: &ErrorKind| matches!(kind, ErrorKind::WrongDevice { .. });
        refused(array.lend(&second.stream()?), wrong)?;
    }
    let view = array.slice(s![..4])?;
    let back = device.as_cuda_array::<u32, Ix1, _>(view.lend(&device.legacy_stream()?)?)?;
    assert_eq!(back.copy_to_host()?.to_vec(), [1; 4]);
    Ok(())
}
