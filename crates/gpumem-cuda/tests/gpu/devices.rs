//! Finding and opening devices.

use crate::{Case, Skip, fixture::Lab, processes};
use gpumem_core::{Backend, Barrier, DeviceId, DeviceSelector, DriverDevice, ErrorKind};
use gpumem_cuda::{Cuda, CudaExt};

pub(crate) const CASES: &[Case] = &[
    ("devices_are_described", described),
    ("opening_again_gives_the_same_device", opened),
    ("capabilities_are_those_of_the_device", capabilities),
    ("listing_makes_no_context", listing),
];

fn described(_lab: &Lab) -> Result<(), Skip> {
    let devices = Cuda::devices().unwrap();
    for (ordinal, info) in devices.iter().enumerate() {
        println!("    {info:?}");
        assert_eq!((info.backend, info.ordinal), ("cuda", ordinal));
        assert!(info.name.contains("NVIDIA") || info.name.contains("Tesla") || info.name.contains("Quadro"));
        assert!(info.uuid.unwrap().iter().any(|byte| *byte != 0));
        assert!(info.pci.is_some());
        assert!(info.total_memory > 1 << 28);
        let digits = info.architecture.strip_prefix("sm_").unwrap();
        assert!(digits.parse::<u32>().unwrap() >= 50);
    }
    Ok(())
}

fn opened(lab: &Lab) -> Result<(), Skip> {
    let info = lab.device.info();
    let context = Cuda::context(&lab.device);
    for which in [DeviceId::Ordinal(0), DeviceId::Uuid(info.uuid.unwrap()), DeviceId::Pci(info.pci.unwrap())]
    {
        let device = Cuda::open(&DeviceSelector { backend: "cuda".to_owned(), which }).unwrap();
        assert_eq!(device.info(), info);
        assert_eq!(Cuda::context(&device), context);
    }
    let error = Cuda::open(&DeviceSelector::ordinal("cuda", 999)).unwrap_err();
    let found = Cuda::devices().unwrap().len();
    assert_eq!(error.kind(), &ErrorKind::NoSuchDevice { wanted: "cuda:999".to_owned(), found });
    Ok(())
}

fn capabilities(lab: &Lab) -> Result<(), Skip> {
    let has = lab.device.capabilities();
    println!("    {has:?}");
    assert_eq!((has.wave_size, lab.device.barrier().wave_size()), (32, 32));
    assert!(has.shared_memory >= 48 << 10 && has.constant_memory == 64 << 10);
    assert!((2..1000).contains(&has.compute_units), "multiprocessors");
    assert!(has.max_group_size >= 1024 && has.max_group_dims[0] >= 1024 && has.max_grid_dims[1] >= 65_535);
    assert!(has.stream_priorities[0] >= has.stream_priorities[1]);
    assert!(has.mapped && has.register && !has.pageable_direct && has.strided_copy);
    let memory = lab.device.memory_info().unwrap();
    assert!(memory.free > 0 && memory.free <= memory.total);
    assert!(memory.total <= lab.device.info().total_memory);
    lab.device.synchronize().unwrap();
    Ok(())
}

fn listing(_lab: &Lab) -> Result<(), Skip> {
    // In a process that has opened nothing.
    processes::again(processes::LISTING, &[]);
    Ok(())
}
