//! What graphs refuse, and what is left where something fails.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a panic of a case is its failure")]

use super::tools::{fail, load, same};
use crate::{Lab, Level, Verdict, refused, refused_layout, skip};
use gpumem_core::{Backend, ErrorKind, LayoutError, NotRecorded, RawStream, Result};
use gpumem_kernel::{KernelDef, SliceMut, WorkItemIds, config_for_items};
use gpumem_ops::ArrayOps;
use gpumem_runtime::{reads, writes};
use ndarray::{Array1, array, s};
use std::sync::Arc;

cases! { Level::Graphs;
    an_argument_has_the_recorded_layout,
    arrays_and_streams_of_another_device_are_refused,
    two_handles_of_memory_that_is_written_are_refused,
    what_cannot_be_recorded_is_refused,
    what_escapes_is_refused,
    a_body_that_fails_leaves_nothing,
    a_reset_ends_a_graph,
    a_failing_kernel_poisons_what_it_was_to_write,
    a_body_relies_on_no_more_than_a_launch_has,
}

fn an_argument_has_the_recorded_layout<B: Backend>(lab: &Lab<B>) -> Verdict {
    let (device, stream) = (lab.device(), lab.device().stream()?);
    let (x, mut y) = (device.to_device(&array![[1u8, 2, 3, 4]])?, device.device_array::<u8, _>((1, 4))?);
    let graph = device.record((&x, &mut y), |stream, (x, mut y)| stream.copy_to_device(&mut y, &x))?;
    let before = stream.submission_index();
    let is_mismatch = |error: &LayoutError| matches!(error, LayoutError::LayoutMismatch { .. });
    let wrong = device.device_array::<u8, _>((4, 1))?;
    refused_layout(graph.launch(&stream, (&wrong, &mut y)), is_mismatch)?;
    // Of the recorded shape, and with other strides.
    let wide = device.device_array::<u8, _>((1, 8))?;
    let apart = graph.launch(&stream, (&wide.slice(s![.., ..;2])?, &mut y));
    assert_eq!(apart.as_ref().err().and_then(|error| error.argument()), Some(1));
    refused_layout(apart, is_mismatch)?;
    let wrong = device.device_array::<u8, _>((2, 4))?;
    // A part of it has the layout.
    graph.launch(&stream, (&wrong.slice(s![..1, ..])?, &mut y))?;
    let mut long = device.device_array::<u8, _>((16, 4))?;
    let mut off = long.slice_mut(s![1..2, ..])?;
    let error = graph.launch(&stream, (&x, &mut off)).unwrap_err();
    assert_eq!(error.argument(), Some(2), "{error}");
    refused_layout(Err::<(), _>(error), |error| matches!(error, LayoutError::Misaligned { .. }))?;
    let after = stream.submission_index();
    assert_eq!(after - before, 1, "a refused launch was enqueued");
    Ok(())
}

fn arrays_and_streams_of_another_device_are_refused<B: Backend>(lab: &Lab<B>) -> Verdict {
    let (device, second) = (lab.device(), lab.second()?);
    let (stream, there) = (device.stream()?, second.stream()?);
    let (x, mut y) = (device.to_device(&[5u32; 16])?, device.to_device(&[0u32; 16])?);
    let (foreign, mut other) = (second.to_device(&[7u32; 16])?, second.to_device(&[7u32; 16])?);
    let graph = device.record((&x, &mut y), |stream, (x, mut y)| stream.copy_to_device(&mut y, &x))?;
    let before = (stream.submission_index(), there.submission_index());
    let is_wrong = |kind: &ErrorKind| matches!(kind, ErrorKind::WrongDevice { .. });
    refused(graph.launch(&stream, (&foreign, &mut y)), is_wrong)?;
    refused(graph.launch(&stream, (&x, &mut other)), is_wrong)?;
    refused(graph.launch(&there, (&x, &mut y)), is_wrong)?;
    assert_eq!(
        (stream.submission_index(), there.submission_index()),
        before,
        "a refused launch was enqueued"
    );
    same(y.copy_to_host()?.view(), Array1::zeros(16).view());
    same(other.copy_to_host()?.view(), Array1::from_elem(16, 7).view());
    graph.launch(&stream, (&x, &mut y))?;
    same(y.copy_to_host()?.view(), Array1::from_elem(16, 5).view());
    Ok(())
}

fn two_handles_of_memory_that_is_written_are_refused<B: Backend>(lab: &Lab<B>) -> Verdict {
    let (device, stream) = (lab.device(), lab.device().stream()?);
    let memory = Arc::new(device.to_device(&Array1::from_iter(0..64u32))?);
    device.synchronize()?;
    // SAFETY: the owner keeps the memory, and nothing else uses it meanwhile.
    let handle = |start: u64| unsafe {
        device.foreign_array::<u32, _>(memory.address() + 4 * start, 128, 32, memory.clone())
    };
    let (x, mut shared, mut apart) = (handle(0)?, handle(28)?, handle(32)?);
    let copies = device.record((reads::<u32, _>(32), writes::<u32, _>(32)), |stream, (x, mut y)| {
        stream.copy_to_device(&mut y, &x)
    })?;
    let before = stream.submission_index();
    refused(copies.launch(&stream, (&x, &mut shared)), |kind| matches!(kind, ErrorKind::Overlap { .. }))?;
    assert_eq!(stream.submission_index(), before, "a refused launch was enqueued");
    // Memory that is read only may be the same, and that of two handles may touch.
    let reading = device.record((reads::<u32, _>(32), reads::<u32, _>(32)), |stream, (x, y)| {
        Ok((stream.copy_to_host(&x)?, stream.copy_to_host(&y)?))
    })?;
    let (of_x, of_shared) = reading.launch(&stream, (&x, &shared))?;
    same(of_x.view()?, Array1::from_iter(0..32u32).view());
    same(of_shared.view()?, Array1::from_iter(28..60u32).view());
    copies.launch(&stream, (&x, &mut apart))?;
    same(apart.copy_to_host()?.view(), Array1::from_iter(0..32u32).view());
    Ok(())
}

fn what_cannot_be_recorded_is_refused<B: Backend>(lab: &Lab<B>) -> Verdict {
    let (device, stream) = (lab.device(), lab.device().stream()?);
    let outside = device.to_device(&[1u32; 16])?;
    let mut y = device.to_device(&[0u32; 16])?;
    let is = |what| move |kind: &ErrorKind| *kind == ErrorKind::NotRecordable { what };
    let mut verdict = Ok(());
    let mut check = |one: Verdict| {
        if verdict.is_ok() {
            verdict = one;
        }
    };
    let event = stream.record_event()?;
    let graph = device.record((&mut y,), |inside, (mut y,)| {
        check(refused(inside.synchronize(), is(NotRecorded::Wait)));
        check(refused(inside.device().synchronize(), is(NotRecorded::Wait)));
        check(refused(inside.query(), is(NotRecorded::Look)));
        check(refused(inside.record_event(), is(NotRecorded::Event)));
        check(refused(inside.record_timed_event(), is(NotRecorded::Event)));
        check(refused(inside.wait(&event), is(NotRecorded::Event)));
        check(refused(inside.add_callback(|_| {}), is(NotRecorded::Callback)));
        check(refused(inside.raw_handle(), is(NotRecorded::DriverStream)));
        check(refused(inside.scope(|_| ()), is(NotRecorded::Scope)));
        check(refused(inside.to_device(&outside), is(NotRecorded::OutsideArray)));
        check(refused(inside.copy_to_host(&outside), is(NotRecorded::OutsideArray)));
        check(refused(inside.copy_to_device(&mut y, &outside), is(NotRecorded::OutsideArray)));
        // SAFETY: nothing is done there.
        check(refused(unsafe { inside.raw_scope(&[], |_| ()) }, is(NotRecorded::ForeignWork)));
        check(refused(inside.device().record((), |_, ()| Ok(())), is(NotRecorded::AnotherRecording)));
        check(refused(inside.device().per_thread_stream(), is(NotRecorded::DriverStream)));
        // SAFETY: it is not used.
        let external = unsafe { inside.device().external_stream(RawStream(0), ()) };
        check(refused(external, is(NotRecorded::DriverStream)));
        let mapped = inside.device().mapped_array::<u8, _>(4, Default::default());
        check(
            refused(mapped, is(NotRecorded::MappedOrManaged))
                .or_else(|stop| if lab.device().capabilities().mapped { Err(stop) } else { Ok(()) }),
        );
        let looks = |kind: &ErrorKind| {
            matches!(kind, ErrorKind::OfRecording { .. } | ErrorKind::NotRecordable { .. })
        };
        check(refused(y.fill(1), looks));
        check(refused(y.set(3, 1), looks));
        check(refused(y.sum_axis(0), looks));
        check(refused(y.copy_to_device(&[1u32; 16]), looks));
        check(refused(inside.device().to_device(&[1u32; 16]), looks));
        check(refused(inside.device().to_device(&y), looks));
        check(refused(y.copy_to_host(), looks));
        check(refused(y.get(3), looks));
        check(refused(y.synchronize(), looks));
        check(refused(y.sum(), looks));
        let mut host = vec![0u32; 16];
        check(refused(y.copy_to_host_into(&mut host), looks));
        check(refused(stream.fill(&mut y, 1), looks));
        check(refused(stream.copy_to_host(&y), looks));
        check(refused(inside.copy_to_host(&y)?.view(), looks));
        inside.fill(&mut y, 4)
    });
    verdict?;
    // A page-locked array that is not returned is not recorded either.
    refused(graph, is(NotRecorded::PinnedNotReturned))?;
    same(y.copy_to_host()?.view(), Array1::zeros(16).view());
    Ok(())
}

fn what_escapes_is_refused<B: Backend>(lab: &Lab<B>) -> Verdict {
    let (device, stream) = (lab.device(), lab.device().stream()?);
    let (mut kept_array, mut kept_stream, mut kept_device) = (None, None, None);
    let graph = device.record((), |inside, ()| {
        kept_array = Some(inside.device_array::<u32, _>(16)?);
        kept_stream = Some(inside.clone());
        kept_device = Some(inside.device().clone());
        Ok(())
    })?;
    let (Some(mut array), Some(inside), Some(of_inside)) = (kept_array, kept_stream, kept_device) else {
        return fail("the body has not run");
    };
    let is_refused =
        |kind: &ErrorKind| matches!(kind, ErrorKind::OfRecording { .. } | ErrorKind::NotRecordable { .. });
    refused(array.copy_to_host(), is_refused)?;
    refused(array.fill(1), is_refused)?;
    refused(stream.fill(&mut array, 1), is_refused)?;
    refused(stream.to_device(&array), is_refused)?;
    refused(inside.fill(&mut array, 1), is_refused)?;
    refused(inside.device_array::<u32, _>(4), is_refused)?;
    refused(of_inside.device_array::<u32, _>(4), is_refused)?;
    refused(of_inside.default_stream()?.synchronize(), is_refused)?;
    let nested = device.record((), |other, ()| {
        refused(other.to_device(&array), is_refused).map_err(|stop| panic!("{stop:?}")).ok();
        Ok(())
    })?;
    nested.launch(&stream, ())?;
    graph.launch(&stream, ())?;
    refused(device.record((), |_, ()| Ok(array)), is_refused)?;
    let outside = device.device_array::<u32, _>(4)?;
    let is_outside =
        |kind: &ErrorKind| *kind == ErrorKind::NotRecordable { what: NotRecorded::ResultNotMade };
    refused(device.record((), |_, ()| Ok(outside)), is_outside)
}

fn a_body_that_fails_leaves_nothing<B: Backend>(lab: &Lab<B>) -> Verdict {
    let device = lab.device();
    let mut y = device.to_device(&[7u32; 16])?;
    let failed = device.record((&mut y,), |stream, (mut y,)| {
        stream.fill(&mut y, 1)?;
        Err::<(), _>(gpumem_core::Error::new("", "body", ErrorKind::Cancelled))
    });
    assert!(matches!(failed.unwrap_err().kind(), ErrorKind::Cancelled));
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let _ = device.record((&mut y,), |stream, (mut y,)| -> Result<()> {
            stream.fill(&mut y, 1)?;
            std::panic::resume_unwind(Box::new("the body"))
        });
    }));
    assert!(panicked.is_err());
    same(y.copy_to_host()?.view(), Array1::from_elem(16, 7).view());
    Ok(())
}

fn a_reset_ends_a_graph<B: Backend>(lab: &Lab<B>) -> Verdict {
    let device = lab.device();
    let record = || {
        device.record((), |stream, ()| {
            let mut inside = stream.device_array::<u32, _>(16)?;
            stream.fill(&mut inside, 5)?;
            stream.to_device(&inside)
        })
    };
    let (graph, launched) = (record()?, record()?);
    drop(launched.launch(&device.stream()?, ())?);
    lab.reset()?;
    let stream = device.stream()?;
    for graph in [graph, launched] {
        refused(graph.launch(&stream, ()), |kind| matches!(kind, ErrorKind::Stale { .. }))?;
    }
    // They have gone quietly, and others work.
    assert_eq!(device.take_errors(), []);
    same(record()?.launch(&stream, ())?.copy_to_host()?.view(), Array1::from_elem(16, 5).view());
    Ok(())
}

fn a_failing_kernel_poisons_what_it_was_to_write<B: Backend>(lab: &Lab<B>) -> Verdict {
    let device = lab.device();
    if !device.capabilities().survives_faults {
        return skip("a fault of a kernel loses the device");
    }
    type One = (SliceMut<u32>, u32);
    // SAFETY: there is no source.
    let declaration = unsafe {
        KernelDef::<One>::new("graph_bad").host_loop(|ids: &WorkItemIds<'_>, (y, wrong): &One| {
            if *wrong != 0 && ids.global_id(0) == 3 {
                y.get(1_000_000);
            }
            y.set(ids.global_id(0), 7);
        })
    };
    let bad = load(lab, &declaration)?;
    let stream = device.stream()?;
    let (mut before, mut broken, mut beside) =
        (device.device_array::<u32, _>(8)?, device.device_array::<u32, _>(8)?, device.to_device(&[9u32; 8])?);
    let record = |wrong: u32| {
        device.record((writes::<u32, _>(8), writes::<u32, _>(8)), |stream, (mut before, mut broken)| {
            stream.fill(&mut before, 1)?;
            let mut inside = stream.device_array::<u32, _>(8)?;
            bad.launch(stream, &config_for_items([8, 1, 1], [8, 1, 1]), (&mut inside, wrong))?;
            stream.copy_to_device(&mut broken, &inside)
        })
    };
    let (fails, works) = (record(1)?, record(0)?);
    fails.launch(&stream, (&mut before, &mut broken))?;
    stream.fill(&mut beside, 10)?;
    let told = stream.synchronize().unwrap_err().to_string();
    assert!(told.contains("graph_bad") && told.contains("1000000"), "{told}");
    // What was written before it is good, unless the calls are enqueued one by one.
    match fails.report().replayed {
        None => same(before.copy_to_host()?.view(), Array1::from_elem(8, 1).view()),
        Some(_) => assert!(before.copy_to_host().unwrap_err().is_poisoned()),
    }
    same(beside.copy_to_host()?.view(), Array1::from_elem(8, 10).view());
    assert!(broken.copy_to_host().unwrap_err().is_poisoned());
    // What failed in one launch does not stay in the memory of the graph.
    before.fill(0)?;
    broken.fill(0)?;
    works.launch(&stream, (&mut before, &mut broken))?;
    same(broken.copy_to_host()?.view(), Array1::from_elem(8, 7).view());
    fails.launch(&stream, (&mut before, &mut broken))?;
    assert!(stream.synchronize().is_err());
    assert!(fails.launch(&stream, (&mut before, &mut broken)).unwrap_err().is_poisoned());
    before.fill(0)?;
    broken.fill(0)?;
    assert!(fails.launch(&stream, (&mut before, &mut broken)).is_ok());
    assert!(stream.synchronize().is_err());
    // A failure that is not known at the launch: a copy inside reads what is written afterwards.
    let keeps = device.record((writes::<u32, _>(8),), |stream, (mut y,)| {
        let copy = stream.to_device(&y)?;
        stream.fill(&mut y, 0)?;
        Ok(copy)
    })?;
    for of in [&stream, &device.stream()?] {
        broken.fill(0)?;
        lab.delay(&stream)?;
        bad.launch(&stream, &config_for_items([8, 1, 1], [8, 1, 1]), (&mut broken, 1u32))?;
        let copy = keeps.launch(of, (&mut broken,))?;
        assert!(copy.copy_to_host().is_err(), "what failed work was to write was read");
        assert!(stream.synchronize().is_err());
        let _ = of.synchronize();
    }
    let _ = device.take_errors();
    Ok(())
}

/// Elements that are aligned to more than a launch compares.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
struct Wide([u8; 64]);
// SAFETY: any bits are bytes, and there is no padding.
unsafe impl bytemuck::Zeroable for Wide {}
// SAFETY: as above.
unsafe impl bytemuck::Pod for Wide {}

/// Elements that are aligned to more than the memory that a launch makes.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(512))]
struct Wider([u8; 512]);
// SAFETY: any bits are bytes, and there is no padding.
unsafe impl bytemuck::Zeroable for Wider {}
// SAFETY: as above.
unsafe impl bytemuck::Pod for Wider {}

fn a_body_relies_on_no_more_than_a_launch_has<B: Backend>(lab: &Lab<B>) -> Verdict {
    let (device, stream) = (lab.device(), lab.device().stream()?);
    let is_misaligned = |error: &LayoutError| matches!(error, LayoutError::Misaligned { .. });
    let x = device.device_array::<u8, _>(128)?;
    let mut verdict = Ok(());
    let graph = device.record((&x,), |_, (x,)| {
        verdict = refused_layout(x.reinterpret::<Wide>(), is_misaligned);
        Ok(())
    })?;
    verdict?;
    graph.launch(&stream, (&x,))?;
    // Temporaries and results.
    let mut verdict = Ok(());
    let graph = device.record((), |stream, ()| {
        for bytes in [512, 768, 512, 1024] {
            let temporary = stream.device_array::<u8, _>(bytes)?;
            let refused = refused_layout(temporary.slice(s![..512])?.reinterpret::<Wider>(), is_misaligned);
            verdict = std::mem::replace(&mut verdict, Ok(())).and(refused);
        }
        Ok(())
    })?;
    verdict?;
    graph.launch(&stream, ())?;
    // Elements that need it have it.
    let wide = device.device_array::<Wide, _>(4)?;
    let graph =
        device.record((reads::<Wide, _>(2),), |stream, (x,)| stream.to_device(&x.reinterpret::<u64>()?))?;
    let zeros = graph.launch(&stream, (&wide.slice(s![1..3])?,))?;
    same(zeros.copy_to_host()?.view(), Array1::zeros(16).view());
    // More elements than there is memory for.
    let one = ndarray::arr0(1u8);
    let huge = one.broadcast(1usize << 49).unwrap();
    let out_of_memory = device
        .record((writes::<u8, _>(1usize << 49),), |stream, (mut to,)| stream.copy_to_device(&mut to, &huge));
    refused(out_of_memory, |kind| matches!(kind, ErrorKind::OutOfMemory { .. }))
}
