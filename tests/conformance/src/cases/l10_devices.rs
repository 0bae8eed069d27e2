//! Two devices.

use super::tools::{cube, same};
use crate::{Lab, Level, Verdict, refused, skip};
use gpumem_core::{Backend, ErrorKind, MappedOptions};
use ndarray::{Array1, s};

cases! { Level::Devices;
    arrays_know_their_device,
    copies_between_devices,
    copies_between_devices_are_ordered,
    streams_of_another_device_are_refused,
    events_order_across_devices,
    portable_memory_serves_both,
    peers_can_be_asked,
}

const LEN: usize = 20_000;

fn arrays_know_their_device<B: Backend>(lab: &Lab<B>) -> Verdict {
    let (one, two) = (lab.device(), lab.second()?);
    assert_ne!(one, two);
    assert_ne!(one.name(), two.name());
    let array = two.to_device(&[1u8, 2])?;
    assert_eq!(array.device()?, two);
    assert_eq!(array.copy_to_host()?.to_vec(), [1, 2]);
    Ok(())
}

fn copies_between_devices<B: Backend>(lab: &Lab<B>) -> Verdict {
    let (one, two) = (lab.device(), lab.second()?);
    let here = one.to_device(&cube())?;
    let mut there = two.to_device(&here)?;
    assert_eq!(there.device()?, two);
    same(there.copy_to_host()?.view(), cube().view());
    there.slice_mut(s![..;-1, .., ..;2])?.copy_to_device(&here.slice(s![.., ..;-1, 2..])?)?;
    let mut expected = cube();
    expected.slice_mut(s![..;-1, .., ..;2]).assign(&cube().slice(s![.., ..;-1, 2..]));
    same(there.copy_to_host()?.view(), expected.view());
    let mut back = one.device_array::<u32, _>((2, 3, 4))?;
    back.assign(&there.slice(s![1, 2, ..])?)?;
    same(back.slice(s![0, 0, ..])?.copy_to_host()?.view(), expected.slice(s![1, 2, ..]));
    Ok(())
}

fn copies_between_devices_are_ordered<B: Backend>(lab: &Lab<B>) -> Verdict {
    let (here, there) = (lab.device().stream()?, lab.second()?.stream()?);
    let mut one = lab.device().device_array::<u32, _>(LEN)?;
    let mut two = lab.second()?.device_array::<u32, _>(LEN)?;
    for value in 1..4 {
        lab.delay(&here)?;
        here.fill(&mut one, value)?;
        there.copy_to_device(&mut two, &one)?;
        here.fill(&mut one, 1000)?;
        let read = there.copy_to_host(&two)?;
        same(read.view()?, Array1::from_elem(LEN, value).view());
    }
    Ok(())
}

fn streams_of_another_device_are_refused<B: Backend>(lab: &Lab<B>) -> Verdict {
    let stream = lab.second()?.stream()?;
    let mut array = lab.device().to_device(&[1u8, 2, 3])?;
    let wrong = |kind: &ErrorKind| matches!(kind, ErrorKind::WrongDevice { .. });
    refused(stream.fill(&mut array, 9), wrong)?;
    refused(stream.copy_to_device(&mut array, &[9u8; 3]), wrong)?;
    assert_eq!(array.copy_to_host()?.to_vec(), [1, 2, 3]);
    Ok(())
}

fn events_order_across_devices<B: Backend>(lab: &Lab<B>) -> Verdict {
    let (here, there) = (lab.device().stream()?, lab.second()?.stream()?);
    lab.delay(&here)?;
    let event = here.record_event()?;
    there.wait(&event)?;
    there.record_event()?.synchronize()?;
    assert!(event.query()?);
    Ok(())
}

fn portable_memory_serves_both<B: Backend>(lab: &Lab<B>) -> Verdict {
    let (one, two) = (lab.device(), lab.second()?);
    if !one.capabilities().mapped || !two.capabilities().mapped {
        return skip("the devices have no mapped memory");
    }
    let options = MappedOptions { portable: true, write_combined: false };
    let mut mapped = one.mapped_array::<u32, _>(LEN, options)?;
    mapped.view_mut()?.fill(6);
    same(two.to_device(&mapped)?.copy_to_host()?.view(), Array1::from_elem(LEN, 6).view());
    let mut array = two.device_array::<u32, _>(LEN)?;
    two.stream()?.copy_to_device(&mut array, &mapped)?;
    mapped.view_mut()?.fill(7);
    same(array.copy_to_host()?.view(), Array1::from_elem(LEN, 6).view());
    Ok(())
}

fn peers_can_be_asked<B: Backend>(lab: &Lab<B>) -> Verdict {
    let (one, two) = (lab.device(), lab.second()?);
    match one.can_access_peer(two)? {
        true => {
            one.set_peer_access(two, true)?;
            one.set_peer_access(two, true)?;
            same(one.to_device(&two.to_device(&cube())?)?.copy_to_host()?.view(), cube().view());
            one.set_peer_access(two, false)?;
            one.set_peer_access(two, false)?;
        }
        false => {
            refused(one.set_peer_access(two, true), |kind| matches!(kind, ErrorKind::Unsupported { .. }))?
        }
    }
    Ok(())
}
