//! The device under test, and steps that every case shares.

use gpumem_conformance::RanOn;
use gpumem_core::{
    AllocationRequest, Backend, CopyRegion, DeviceSelector, DriverDevice, MemoryKind, Space, Stream,
    StreamOptions,
};
use gpumem_roc::{Roc, RocBuffer, RocDevice, RocStream};

pub(super) struct Lab {
    pub(super) device: RocDevice,
    pub(super) stream: RocStream,
    pub(super) ran_on: RanOn,
}

pub(super) type Skip = &'static str;
pub(super) type Case = (&'static str, fn(&Lab) -> Result<(), Skip>);

impl Lab {
    pub(super) fn open(ran_on: RanOn) -> gpumem_core::Result<Self> {
        let device = Roc::open(&DeviceSelector::ordinal("roc", 0))?;
        let stream = device.create_stream(&StreamOptions::default())?;
        Ok(Self { device, stream, ran_on })
    }
}

pub(super) fn needs_hsa(lab: &Lab) -> Result<(), Skip> {
    if lab.ran_on == RanOn::HipOnCuda { Err("there is no HSA runtime under this HIP") } else { Ok(()) }
}

pub(super) fn request(bytes: usize, kind: MemoryKind) -> AllocationRequest {
    AllocationRequest { bytes, align: 1, kind }
}

pub(super) fn allocate(lab: &Lab, bytes: usize, kind: MemoryKind) -> RocBuffer {
    // SAFETY: at least one byte; every case writes before it reads.
    unsafe { lab.device.allocate(&request(bytes, kind)) }.unwrap()
}

pub(super) fn release(lab: &Lab, buffer: RocBuffer) {
    // SAFETY: made by this device, and every case has waited for its work.
    unsafe { lab.device.release(buffer) }.map_err(|(_, error)| error).unwrap();
}

/// Copies between device memory and the host, and waits.
pub(super) fn upload(lab: &Lab, to: u64, contents: &[u8]) {
    let from = contents.as_ptr().expose_provenance() as u64;
    let own = Space::Device(0);
    let region = CopyRegion::linear((from, Space::Host), (to, own), contents.len());
    // SAFETY: both sides are that long, and are waited for.
    unsafe { lab.stream.copy(&region) }.unwrap();
    lab.stream.synchronize().unwrap();
}

pub(super) fn download(lab: &Lab, from: u64, bytes: usize) -> Vec<u8> {
    let mut contents = vec![0u8; bytes];
    let to = contents.as_mut_ptr().expose_provenance() as u64;
    let region = CopyRegion::linear((from, Space::Device(0)), (to, Space::Host), bytes);
    // SAFETY: both sides are that long, and are waited for.
    unsafe { lab.stream.copy(&region) }.unwrap();
    lab.stream.synchronize().unwrap();
    contents
}
