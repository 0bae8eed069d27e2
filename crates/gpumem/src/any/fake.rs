//! Two backends that write down what they are asked for. They are in the list under test only, so that the dispatch
//! is tested with more than one backend on every machine and with every feature set.

use gpumem_core::{
    Advice, AllocationRequest, Backend, BarrierPoint, Capabilities, CompileOptions, Compiler, CopyRegion,
    DeviceBuffer, DeviceInfo, DeviceSelector, Error, ErrorKind, EventOptions, Fill, KernelArguments,
    KernelSource, LaunchDims, LoadError, Location, Lowering, MemoryInfo, MemoryKind, RawStream,
    RegisterOptions, Result, StreamOptions, StridedCopy,
};
use std::{cell::RefCell, fmt::Debug, ptr::NonNull};

thread_local! { static LOG: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) } }

/// What the backends were asked for on this thread since the last time.
pub(crate) fn log() -> Vec<String> {
    LOG.take()
}

const fn name(n: usize) -> &'static str {
    if n == 0 { "left" } else { "right" }
}

fn note(n: usize, call: &str, arguments: impl Debug) {
    LOG.with_borrow_mut(|log| log.push(format!("{} {call} {arguments:?}", name(n))));
}

/// Blocks of this many bytes cannot be given back.
pub(crate) const STUBBORN: usize = 13;

pub(crate) const INFO: [DeviceInfo; 2] = [info(0), info(1)];

const fn info(n: usize) -> DeviceInfo {
    DeviceInfo {
        backend: name(n),
        ordinal: 0,
        name: String::new(),
        uuid: None,
        pci: None,
        total_memory: n,
        architecture: String::new(),
    }
}

#[derive(Debug, Clone)]
pub struct Fake<const N: usize>;

#[derive(Debug, Clone)]
pub struct Device<const N: usize>(DeviceInfo, Capabilities);
#[derive(Debug)]
pub struct Buffer<const N: usize>(AllocationRequest, NonNull<u8>);
#[derive(Debug)]
pub struct Stream<const N: usize>(u64);
#[derive(Debug)]
pub struct Event<const N: usize>;
#[derive(Debug, Clone)]
pub struct Barrier<const N: usize>;
#[derive(Debug, Clone)]
pub struct Named<const N: usize>(String);

// SAFETY: the address is never used.
unsafe impl<const N: usize> Send for Buffer<N> {}
// SAFETY: as above.
unsafe impl<const N: usize> Sync for Buffer<N> {}

impl<const N: usize> Drop for Stream<N> {
    fn drop(&mut self) {
        note(N, "drop stream", ());
    }
}

impl<const N: usize> Drop for Event<N> {
    fn drop(&mut self) {
        note(N, "drop event", ());
    }
}

// SAFETY: a double that has no memory and does no work.
unsafe impl<const N: usize> DeviceBuffer for Buffer<N> {
    fn address(&self) -> u64 {
        N as u64
    }

    fn host_address(&self) -> Option<NonNull<u8>> {
        Some(self.1)
    }

    fn len(&self) -> usize {
        self.0.bytes
    }

    fn kind(&self) -> MemoryKind {
        self.0.kind
    }
}

// SAFETY: a double that has no memory and does no work.
unsafe impl<const N: usize> gpumem_core::Stream for Stream<N> {
    fn synchronize(&self) -> Result<()> {
        note(N, "synchronize stream", ());
        Ok(())
    }

    fn query(&self) -> Result<bool> {
        Ok(N == 1)
    }

    fn raw(&self) -> RawStream {
        RawStream(self.0)
    }
}

// SAFETY: a double that has no memory and does no work.
unsafe impl<const N: usize> gpumem_core::Event for Event<N> {
    fn query(&self) -> Result<bool> {
        Ok(N == 1)
    }

    fn synchronize(&self) -> Result<()> {
        note(N, "synchronize event", ());
        Ok(())
    }
}

// SAFETY: a double that has no memory and does no work.
unsafe impl<const N: usize> gpumem_core::Barrier for Barrier<N> {
    fn wave_size(&self) -> u32 {
        [32, 64][N]
    }

    fn lowering(&self, point: BarrierPoint) -> Lowering {
        note(N, "lowering", point);
        Lowering::Source(name(N))
    }
}

// SAFETY: a double that has no memory and does no work.
unsafe impl<const N: usize> Backend for Fake<N> {
    const NAME: &'static str = name(N);

    type Device = Device<N>;
    type Buffer = Buffer<N>;
    type Stream = Stream<N>;
    type Event = Event<N>;
    type Barrier = Barrier<N>;
    type Module = Named<N>;
    type Kernel = Named<N>;

    fn probe() -> Result<(), LoadError> {
        Ok(())
    }

    fn devices() -> Result<Vec<DeviceInfo>> {
        Ok(vec![INFO[N].clone()])
    }

    fn open(selector: &DeviceSelector) -> Result<Device<N>> {
        selector.choose(Self::NAME, &INFO[N..=N])?;
        let mut capabilities = Capabilities::minimal();
        capabilities.wave_size = [32, 64][N];
        Ok(Device(INFO[N].clone(), capabilities))
    }

    fn info(device: &Device<N>) -> &DeviceInfo {
        &device.0
    }

    fn capabilities(device: &Device<N>) -> &Capabilities {
        &device.1
    }

    fn barrier(_: &Device<N>) -> Barrier<N> {
        Barrier
    }

    fn memory_info(_: &Device<N>) -> Result<MemoryInfo> {
        Ok(MemoryInfo { free: N, total: N + 1 })
    }

    fn synchronize(_: &Device<N>) -> Result<()> {
        note(N, "synchronize device", ());
        Ok(())
    }

    unsafe fn reset(_: &Device<N>) -> Result<()> {
        note(N, "reset", ());
        Ok(())
    }

    fn can_access_peer(_: &Device<N>, _: &Device<N>) -> Result<bool> {
        note(N, "can_access_peer", ());
        Ok(N == 1)
    }

    fn set_peer_access(_: &Device<N>, _: &Device<N>, enabled: bool) -> Result<()> {
        note(N, "set_peer_access", enabled);
        Ok(())
    }

    unsafe fn allocate(_: &Device<N>, request: &AllocationRequest) -> Result<Buffer<N>> {
        note(N, "allocate", request.bytes);
        Ok(Buffer(*request, NonNull::dangling()))
    }

    unsafe fn release(_: &Device<N>, buffer: Buffer<N>) -> Result<(), (Buffer<N>, Error)> {
        note(N, "release", buffer.0.bytes);
        if buffer.0.bytes == STUBBORN {
            return Err((buffer, Error::new(Self::NAME, "release", ErrorKind::Exiting)));
        }
        Ok(())
    }

    unsafe fn register(
        _: &Device<N>,
        host: NonNull<u8>,
        bytes: usize,
        options: RegisterOptions,
    ) -> Result<Buffer<N>> {
        note(N, "register", bytes);
        Ok(Buffer(AllocationRequest { bytes, align: 1, kind: MemoryKind::Registered(options) }, host))
    }

    unsafe fn advise(_: &Device<N>, address: u64, bytes: usize, advice: Advice) -> Result<()> {
        note(N, "advise", (address, bytes, advice));
        Ok(())
    }

    fn create_stream(_: &Device<N>, options: &StreamOptions) -> Result<Stream<N>> {
        note(N, "create_stream", options.priority);
        Ok(Stream(0))
    }

    unsafe fn wrap_stream(_: &Device<N>, raw: RawStream) -> Result<Stream<N>> {
        Ok(Stream(raw.0))
    }

    fn destroy_stream(_: &Device<N>, stream: Stream<N>) -> Result<()> {
        note(N, "destroy_stream", stream.0);
        Ok(())
    }

    unsafe fn copy(_: &Stream<N>, region: &CopyRegion) -> Result<()> {
        note(N, "copy", region.bytes);
        Ok(())
    }

    unsafe fn copy_strided(_: &Stream<N>, copy: &StridedCopy) -> Result<()> {
        note(N, "copy_strided", copy.item);
        Ok(())
    }

    unsafe fn fill(_: &Stream<N>, fill: &Fill) -> Result<()> {
        note(N, "fill", fill.count);
        Ok(())
    }

    unsafe fn prefetch(_: &Stream<N>, address: u64, bytes: usize, to: Location) -> Result<()> {
        note(N, "prefetch", (address, bytes, to));
        Ok(())
    }

    fn create_event(_: &Device<N>, options: EventOptions) -> Result<Event<N>> {
        note(N, "create_event", options.timing);
        Ok(Event)
    }

    fn destroy_event(_: &Device<N>, _: Event<N>) -> Result<()> {
        note(N, "destroy_event", ());
        Ok(())
    }

    fn record(_: &Stream<N>, _: &Event<N>) -> Result<()> {
        note(N, "record", ());
        Ok(())
    }

    fn wait(_: &Stream<N>, _: &Event<N>) -> Result<()> {
        note(N, "wait", ());
        Ok(())
    }

    fn elapsed(_: &Event<N>, _: &Event<N>) -> Result<f32> {
        Ok(N as f32)
    }

    fn compile(_: &Device<N>, source: &KernelSource, _: &CompileOptions) -> Result<Named<N>> {
        note(N, "compile", source);
        Ok(Named(String::new()))
    }

    fn compiler(_: &Device<N>) -> Result<Compiler> {
        Ok(Compiler { version: format!("compiler {N}"), target: Self::NAME.to_owned() })
    }

    fn compile_image(_: &Device<N>, text: &str, _: &CompileOptions) -> Result<Vec<u8>> {
        note(N, "compile_image", text);
        Ok(vec![N as u8])
    }

    fn variable(_: &Named<N>, name: &str) -> Result<(u64, usize)> {
        Ok((N as u64, name.len()))
    }

    fn kernel(_: &Named<N>, name: &str) -> Result<Named<N>> {
        Ok(Named(name.to_owned()))
    }

    unsafe fn launch(
        _: &Stream<N>,
        kernel: &Named<N>,
        dims: &LaunchDims,
        arguments: &KernelArguments,
    ) -> Result<()> {
        note(N, "launch", (&kernel.0, dims.groups, arguments.len()));
        Ok(())
    }
}
