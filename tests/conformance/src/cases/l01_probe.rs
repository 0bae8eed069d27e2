//! Finding and opening a device.

use crate::{Lab, Level, Verdict, refused};
use gpumem_core::{Backend, Barrier as _, DeviceSelector, ErrorKind};
use gpumem_runtime::Device;

cases! { Level::Probe;
    opening_again_gives_the_same_device,
    facts_need_no_driver_and_make_sense,
    every_listed_device_opens,
    what_is_not_there_is_refused,
    names_that_are_none_are_refused,
}

fn opening_again_gives_the_same_device<B: Backend>(lab: &Lab<B>) -> Verdict {
    let again = Device::<B>::from_raw(lab.device().raw().clone());
    assert_eq!(&again, lab.device());
    assert_eq!(again.name(), lab.device().name());
    again.device_array::<u8, _>(3)?.copy_to_device(&lab.device().to_device(&[1u8, 2, 3])?)?;
    Ok(())
}

fn facts_need_no_driver_and_make_sense<B: Backend>(lab: &Lab<B>) -> Verdict {
    let device = lab.device();
    let (info, capabilities) = (device.info(), device.capabilities());
    assert_eq!(device.name(), format!("{}:{}", info.backend, info.ordinal));
    assert!(!info.name.is_empty() && !info.architecture.is_empty(), "{info:?}");
    assert!(matches!(capabilities.wave_size, 32 | 64), "a wavefront of {}", capabilities.wave_size);
    assert_eq!(device.barrier().wave_size(), capabilities.wave_size);
    assert!(capabilities.allocation_alignment.is_power_of_two());
    assert!(capabilities.max_group_size >= capabilities.wave_size);
    assert!(capabilities.compute_units >= 1);
    let memory = device.memory_info()?;
    assert!(memory.free <= memory.total && memory.total > 0, "{memory:?}");
    Ok(())
}

fn every_listed_device_opens<B: Backend>(_: &Lab<B>) -> Verdict {
    B::probe().map_err(|error| gpumem_core::Error::new(B::NAME, "probe", error))?;
    let list = Device::<B>::list()?;
    assert!(!list.is_empty(), "a driver with a device lists it");
    for info in list {
        let device = Device::<B>::open(&format!("{}:{}", info.backend, info.ordinal))?;
        assert_eq!(device.info(), &info);
        if let Some(uuid) = info.uuid {
            let which = gpumem_core::DeviceId::Uuid(uuid);
            let same = Device::<B>::select(&DeviceSelector { backend: info.backend.to_owned(), which })?;
            assert_eq!(same, device, "by its UUID");
        }
    }
    Ok(())
}

fn what_is_not_there_is_refused<B: Backend>(lab: &Lab<B>) -> Verdict {
    let backend = lab.device().info().backend;
    let beyond = Device::<B>::select(DeviceSelector::ordinal(backend, 99_999));
    refused(beyond, |kind| matches!(kind, ErrorKind::NoSuchDevice { .. }))?;
    let unknown = Device::<B>::select(DeviceSelector::ordinal("unknown", 0));
    // The choice among all backends knows all names, one backend only its own.
    refused(unknown, |kind| {
        matches!(kind, ErrorKind::BackendNotEnabled { .. } | ErrorKind::UnknownBackend { .. })
    })
}

fn names_that_are_none_are_refused<B: Backend>(lab: &Lab<B>) -> Verdict {
    let backend = lab.device().info().backend;
    for rest in ["", "x", "-1", "1:2", "uuid-12"] {
        let opened = Device::<B>::open(&format!("{backend}:{rest}"));
        refused(opened, |kind| matches!(kind, ErrorKind::InvalidSelector { .. }))?;
    }
    refused(Device::<B>::open(""), |kind| matches!(kind, ErrorKind::InvalidSelector { .. }))
}
