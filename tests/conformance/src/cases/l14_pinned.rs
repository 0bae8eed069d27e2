//! Graphs: page-locked arrays as arguments.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a panic of a case is its failure")]

use super::tools::{elements, load, same};
use crate::{Lab, Level, Verdict, refused, skip};
use gpumem_core::{Backend, ErrorKind, LayoutError, NotRecorded, Result};
use gpumem_kernel::{Own, Slice, config_for_items};
use gpumem_runtime::{ArraySpec, Order};
use ndarray::{Array1, Array2, s};

mod facade {
    pub(super) use gpumem_kernel as kernel;
}

cases! { Level::Graphs;
    page_locked_arguments_come_in_and_go_out,
    page_locked_arguments_of_any_layout,
    page_locked_arguments_of_graphs_in_graphs,
    page_locked_arguments_stay_in_their_place,
    a_failure_poisons_page_locked_arguments,
}

#[gpumem_macros::kernel(crate = self::facade)]
fn add_one(x: Slice<u32>, y: Own<u32>) {
    let at = global_id(0);
    if at < x.len() {
        y[own()] = x[at] + 1;
    }
}

#[gpumem_macros::kernel(crate = self::facade)]
fn checked_add_one(x: Slice<u32>, y: Own<u32>) {
    let at = global_id(0);
    if at < x.len() {
        assert!(x[at] != 13, "13 is refused");
        y[own()] = x[at] + 1;
    }
}

const LEN: usize = 1000;

fn grid(len: usize) -> gpumem_core::LaunchConfig {
    config_for_items([len, 1, 1], [64, 1, 1])
}

fn page_locked_arguments_come_in_and_go_out<B: Backend>(lab: &Lab<B>) -> Verdict {
    let (device, kernel) = (lab.device(), load(lab, &add_one())?);
    let streams = [device.stream()?, device.stream()?];
    let mut input = device.pinned_array::<u32, _>(LEN)?;
    let mut output = device.pinned_array::<u32, _>(LEN)?;
    let graph = device.record((&input, &mut output), |stream, (input, mut output)| {
        let x = stream.to_device(&input)?;
        let mut y = stream.device_array::<u32, _>(input.len())?;
        kernel.launch(stream, &grid(input.len()), (&x, &mut y))?;
        stream.copy_to_host_into(&y, &mut output)?;
        Ok(y)
    })?;
    let mut other = device.pinned_array::<u32, _>(LEN)?;
    for round in 0..12_u32 {
        let stream = &streams[round as usize % 2];
        input.view_mut()?.fill(round);
        if round % 3 == 0 {
            lab.delay(stream)?;
        }
        let to = if round % 4 == 3 { &mut other } else { &mut output };
        let made = graph.launch(stream, (&input, &mut *to))?;
        // Waits for the copy out of it.
        input.view_mut()?.fill(u32::MAX);
        let expected = Array1::from(vec![round + 1; LEN]);
        same(to.view()?, expected.view());
        same(made.copy_to_host()?.view(), expected.view());
    }
    same(other.view()?, Array1::from(vec![12; LEN]).view());
    Ok(())
}

fn page_locked_arguments_of_any_layout<B: Backend>(lab: &Lab<B>) -> Verdict {
    let (device, stream) = (lab.device(), lab.device().stream()?);
    let source = Array2::from_shape_vec((6, 5), elements::<u32>(30)).unwrap();
    for order in [Order::C, Order::F] {
        let mut input = device.pinned_array::<u32, _>(ArraySpec::new((6, 5)).order(order))?;
        let mut output = device.pinned_array::<u32, _>(ArraySpec::new((6, 5)).order(order))?;
        input.view_mut()?.assign(&source);
        let graph = device.record((&input, &mut output), |stream, (input, mut output)| {
            let x = stream.to_device(&input)?;
            stream.copy_to_host_into(&x, &mut output)?;
            let mut packed = stream.device_array::<u32, _>((6, 5))?;
            stream.copy_to_device(&mut packed, &input)?;
            Ok((x, packed))
        })?;
        for _ in 0..2 {
            let (x, packed) = graph.launch(&stream, (&input, &mut output))?;
            same(output.view()?, source.view());
            same(x.copy_to_host()?.view(), source.view());
            same(packed.copy_to_host()?.view(), source.view());
            output.view_mut()?.fill(0);
        }
        let other = if order == Order::C { Order::F } else { Order::C };
        let wrong = device.pinned_array::<u32, _>(ArraySpec::new((6, 5)).order(other))?;
        let mismatch =
            |kind: &ErrorKind| matches!(kind, ErrorKind::Layout(LayoutError::LayoutMismatch { .. }));
        refused(graph.launch(&stream, (&wrong, &mut output)).map(drop), mismatch)?;
    }
    let (input, mut output) =
        (device.pinned_array::<u32, _>((0, 3))?, device.pinned_array::<u32, _>((0, 3))?);
    let graph = device.record((&input, &mut output), |stream, (input, mut output)| {
        let x = stream.to_device(&input)?;
        stream.copy_to_host_into(&x, &mut output)?;
        Ok(x)
    })?;
    assert_eq!(graph.launch(&stream, (&input, &mut output))?.shape(), [0, 3]);
    Ok(())
}

fn page_locked_arguments_of_graphs_in_graphs<B: Backend>(lab: &Lab<B>) -> Verdict {
    let (device, stream) = (lab.device(), lab.device().stream()?);
    let mut input = device.pinned_array::<u32, _>(LEN)?;
    let mut output = device.pinned_array::<u32, _>(LEN)?;
    let inner = device.record((&input, &mut output), |stream, (input, mut output)| {
        let x = stream.to_device(&input)?;
        stream.copy_to_host_into(&x, &mut output)
    })?;
    // The output of the first launch is the input of the second: it is made in the recording.
    let outer = device.record((&input,), |stream, (input,)| {
        let mut between = stream.copy_to_host(&stream.to_device(&input)?)?;
        let mut last = stream.device().pinned_array::<u32, _>(LEN)?;
        inner.launch(stream, (&between, &mut last))?;
        inner.launch(stream, (&last, &mut between))?;
        Ok((between, last))
    })?;
    for round in 0..3 {
        input.view_mut()?.fill(round);
        lab.delay(&stream)?;
        let (between, last) = outer.launch(&stream, (&input,))?;
        let expected = Array1::from(vec![round; LEN]);
        same(between.view()?, expected.view());
        same(last.view()?, expected.view());
    }
    Ok(())
}

fn refused_by_recording(result: Result<()>) {
    let error = result.unwrap_err();
    let by_recording =
        matches!(error.kind(), ErrorKind::NotRecordable { .. } | ErrorKind::OfRecording { .. });
    assert!(by_recording, "{error}");
}

fn page_locked_arguments_stay_in_their_place<B: Backend>(lab: &Lab<B>) -> Verdict {
    let (device, stream) = (lab.device(), lab.device().stream()?);
    let (input, mut output) = (device.pinned_array::<u32, _>(LEN)?, device.pinned_array::<u32, _>(LEN)?);
    // The host sees none of it inside.
    let seen = device.record((&input, &mut output), |_, (input, mut output)| {
        refused_by_recording(input.view().map(drop));
        refused_by_recording(output.view_mut().map(drop));
        refused_by_recording(output.copy_from(&Array1::<u32>::zeros(LEN)));
        Ok(())
    })?;
    assert_eq!(seen.report().nodes, 0);
    seen.launch(&stream, (&input, &mut output))?;
    // Page-locked memory of outside is no argument.
    let outside =
        |kind: &ErrorKind| matches!(kind, ErrorKind::NotRecordable { what: NotRecorded::OutsideArray });
    refused(device.record((), |stream, ()| stream.to_device(&input)).map(drop), outside)?;
    // A part of a larger array.
    let whole = device.to_device(&Array1::from(elements::<u32>(3 * LEN)))?;
    let graph = device.record((&whole, &mut output), |stream, (whole, mut output)| {
        stream.copy_to_host_into(&whole.slice(s![LEN..2 * LEN])?, &mut output)
    })?;
    graph.launch(&stream, (&whole, &mut output))?;
    same(output.view()?, Array1::from(elements::<u32>(3 * LEN)).slice(s![LEN..2 * LEN]));
    Ok(())
}

fn a_failure_poisons_page_locked_arguments<B: Backend>(lab: &Lab<B>) -> Verdict {
    if !lab.device().capabilities().survives_faults {
        return skip("a fault of a kernel loses the device");
    }
    let (device, kernel) = (lab.device(), load(lab, &checked_add_one())?);
    let stream = device.stream()?;
    let mut input = device.pinned_array::<u32, _>(LEN)?;
    let mut output = device.pinned_array::<u32, _>(LEN)?;
    let graph = device.record((&input, &mut output), |stream, (input, mut output)| {
        let x = stream.to_device(&input)?;
        let mut y = stream.device_array::<u32, _>(LEN)?;
        kernel.launch(stream, &grid(LEN), (&x, &mut y))?;
        stream.copy_to_host_into(&y, &mut output)
    })?;
    input.view_mut()?.fill(13);
    graph.launch(&stream, (&input, &mut output))?;
    assert!(stream.synchronize().is_err());
    refused(output.view().map(drop), |kind| matches!(kind, ErrorKind::Poisoned { .. }))?;
    assert_eq!(input.view()?[0], 13, "what is read is good");
    refused(graph.launch(&stream, (&input, &mut output)), |kind| matches!(kind, ErrorKind::Poisoned { .. }))?;
    output.copy_from(&Array1::zeros(LEN))?;
    input.view_mut()?.fill(1);
    graph.launch(&stream, (&input, &mut output))?;
    same(output.view()?, Array1::from(vec![2; LEN]).view());
    Ok(())
}
