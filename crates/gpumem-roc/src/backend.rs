//! The backend: finding ROCm is all that it can do.

use crate::{Barrier, Buffer, Device, Event, Kernel, Module, Stream, probe::why_not};
use gpumem_core::{
    Advice, AllocationRequest, Backend, Capabilities, CompileOptions, CopyRegion, DeviceInfo, DeviceSelector,
    Error, EventOptions, Fill, KernelArgument, KernelSource, LaunchDims, LoadError, Location, MemoryInfo,
    RawStream, RegisterOptions, Result, StreamOptions, StridedCopy,
};
use std::ptr::NonNull;

/// AMD GPUs through ROCm, as a type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Roc;

impl Backend for Roc {
    const NAME: &'static str = "roc";

    type Device = Device;
    type Buffer = Buffer;
    type Stream = Stream;
    type Event = Event;
    type Barrier = Barrier;
    type Module = Module;
    type Kernel = Kernel;

    fn probe() -> Result<(), LoadError> {
        Err(why_not())
    }

    fn devices() -> Result<Vec<DeviceInfo>> {
        Err(Error::new(Self::NAME, "devices", why_not()))
    }

    fn open(_: &DeviceSelector) -> Result<Device> {
        Err(Error::new(Self::NAME, "open", why_not()))
    }

    fn info(device: &Device) -> &DeviceInfo {
        match *device {}
    }

    fn capabilities(device: &Device) -> &Capabilities {
        match *device {}
    }

    fn barrier(device: &Device) -> Barrier {
        match *device {}
    }

    fn memory_info(device: &Device) -> Result<MemoryInfo> {
        match *device {}
    }

    fn synchronize(device: &Device) -> Result<()> {
        match *device {}
    }

    unsafe fn reset(device: &Device) -> Result<()> {
        match *device {}
    }

    fn can_access_peer(device: &Device, _: &Device) -> Result<bool> {
        match *device {}
    }

    fn set_peer_access(device: &Device, _: &Device, _: bool) -> Result<()> {
        match *device {}
    }

    unsafe fn allocate(device: &Device, _: &AllocationRequest) -> Result<Buffer> {
        match *device {}
    }

    unsafe fn release(device: &Device, _: Buffer) -> Result<(), (Buffer, Error)> {
        match *device {}
    }

    unsafe fn register(device: &Device, _: NonNull<u8>, _: usize, _: RegisterOptions) -> Result<Buffer> {
        match *device {}
    }

    unsafe fn advise(device: &Device, _: u64, _: usize, _: Advice) -> Result<()> {
        match *device {}
    }

    fn create_stream(device: &Device, _: &StreamOptions) -> Result<Stream> {
        match *device {}
    }

    unsafe fn wrap_stream(device: &Device, _: RawStream) -> Result<Stream> {
        match *device {}
    }

    fn destroy_stream(device: &Device, _: Stream) -> Result<()> {
        match *device {}
    }

    unsafe fn copy(stream: &Stream, _: &CopyRegion) -> Result<()> {
        match *stream {}
    }

    unsafe fn copy_strided(stream: &Stream, _: &StridedCopy) -> Result<()> {
        match *stream {}
    }

    unsafe fn fill(stream: &Stream, _: &Fill) -> Result<()> {
        match *stream {}
    }

    unsafe fn prefetch(stream: &Stream, _: u64, _: usize, _: Location) -> Result<()> {
        match *stream {}
    }

    fn create_event(device: &Device, _: EventOptions) -> Result<Event> {
        match *device {}
    }

    fn destroy_event(device: &Device, _: Event) -> Result<()> {
        match *device {}
    }

    fn record(stream: &Stream, _: &Event) -> Result<()> {
        match *stream {}
    }

    fn wait(stream: &Stream, _: &Event) -> Result<()> {
        match *stream {}
    }

    fn elapsed(start: &Event, _: &Event) -> Result<f32> {
        match *start {}
    }

    fn compile(device: &Device, _: &KernelSource, _: &CompileOptions) -> Result<Module> {
        match *device {}
    }

    fn kernel(module: &Module, _: &str) -> Result<Kernel> {
        match *module {}
    }

    unsafe fn launch(stream: &Stream, _: &Kernel, _: &LaunchDims, _: &[KernelArgument]) -> Result<()> {
        match *stream {}
    }
}

#[cfg(test)]
mod tests {
    use super::Roc;
    use gpumem_core::{Backend, DeviceSelector, Error, ErrorKind};

    #[test]
    fn every_way_in_gives_the_same_reason() {
        let reason = Roc::probe().unwrap_err();
        assert!(!reason.tried.is_empty(), "{reason}");
        let listed = Roc::devices().unwrap_err();
        assert_eq!(listed, Error::new("roc", "devices", reason.clone()));
        let opened = Roc::open(&DeviceSelector::ordinal("roc", 0)).unwrap_err();
        assert_eq!(opened, Error::new("roc", "open", reason));
    }

    #[test]
    fn the_message_names_the_backend_and_what_was_tried() {
        let error = Roc::devices().unwrap_err();
        let ErrorKind::Load(reason) = error.kind() else { panic!("{error}") };
        let message = error.to_string();
        assert!(message.starts_with("devices on roc: "), "{message}");
        for tried in &reason.tried {
            assert!(message.contains(tried), "{message} lacks {tried}");
        }
    }
}
