//! Managed memory.

use super::tools::same;
use crate::{Lab, Level, Verdict, refused, refused_layout, skip};
use gpumem_core::{Advice, Attach, Backend, ErrorKind, LayoutError, Location, MemoryKind};
use ndarray::{Array1, Array2, s};

cases! { Level::Managed;
    managed_arrays_on_both_sides,
    host_access_waits_for_the_device,
    hints_change_nothing,
    managed_memory_needs_the_capability,
}

const LEN: usize = 20_000;

fn managed_arrays_on_both_sides<B: Backend>(lab: &Lab<B>) -> Verdict {
    if !lab.device().capabilities().managed {
        return skip("the device has no managed memory");
    }
    for attach in [Attach::Global, Attach::Host] {
        let mut array = lab.device().managed_array::<f32, _>((6, 5), attach)?;
        assert_eq!(array.kind(), MemoryKind::Managed(attach));
        assert_eq!(array.view()?, Array2::<f32>::zeros((6, 5)));
        let host = Array2::from_shape_fn((6, 5), |(i, j)| i as f32 + j as f32 / 8.0);
        array.view_mut()?.assign(&host);
        if attach == Attach::Host {
            continue;
        }
        same(array.device_view().t().copy_to_host()?.view(), host.t());
        array.device_view_mut().slice_mut(s![..;2, ..])?.fill(2.5)?;
        let mut expected = host;
        expected.slice_mut(s![..;2, ..]).fill(2.5);
        same(array.view()?, expected.view());
    }
    let much = lab.device().managed_array::<u64, _>((1 << 40, 1 << 40), Attach::Global);
    refused_layout(much, |error| matches!(error, LayoutError::TooLarge { .. }))
}

fn host_access_waits_for_the_device<B: Backend>(lab: &Lab<B>) -> Verdict {
    if !lab.device().capabilities().managed {
        return skip("the device has no managed memory");
    }
    let stream = lab.device().stream()?;
    let mut array = lab.device().managed_array::<u32, _>(LEN, Attach::Global)?;
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

fn hints_change_nothing<B: Backend>(lab: &Lab<B>) -> Verdict {
    if !lab.device().capabilities().managed {
        return skip("the device has no managed memory");
    }
    let stream = lab.device().stream()?;
    let mut array = lab.device().managed_array::<u32, _>(LEN, Attach::Global)?;
    array.view_mut()?.fill(3);
    let hints = [
        Advice::ReadMostly(true),
        Advice::ReadMostly(false),
        Advice::PreferredLocation(Some(Location::Device)),
        Advice::PreferredLocation(None),
        Advice::AccessedBy(Location::Host, true),
        Advice::AccessedBy(Location::Host, false),
    ];
    let mut results: Vec<_> = hints.into_iter().map(|hint| array.advise(hint)).collect();
    results.push(array.prefetch(&stream, Location::Device));
    stream.fill(&mut array.device_view_mut(), 4)?;
    results.push(array.prefetch(&stream, Location::Host));
    for result in results.into_iter().filter(Result::is_err) {
        refused(result, |kind| matches!(kind, ErrorKind::Unsupported { .. }))?;
    }
    same(array.view()?, Array1::from_elem(LEN, 4).view());
    let empty = lab.device().managed_array::<u32, _>(0, Attach::Global)?;
    empty.prefetch(&stream, Location::Device)?;
    empty.advise(Advice::ReadMostly(true))?;
    Ok(())
}

fn managed_memory_needs_the_capability<B: Backend>(lab: &Lab<B>) -> Verdict {
    let made = lab.device().managed_array::<u8, _>(16, Attach::Global);
    match lab.device().capabilities().managed {
        true => made.map(drop).map_err(Into::into),
        false => refused(made, |kind| matches!(kind, ErrorKind::Unsupported { .. })),
    }
}
