//! Two backends that record the calls to them. They are in the list under test only, so that the dispatch is tested
//! with more than one backend on every machine and with every feature set.

use gpumem_core::{
    Advice, AllocationRequest, Backend, BarrierPoint, Capabilities, CompileOptions, Compiler, CopyRegion,
    DeviceBuffer, DeviceInfo, DeviceSelector, Error, ErrorKind, EventOptions, Fill, KernelArguments,
    KernelSource, LaunchConfig, LoadError, Location, Lowering, MemoryInfo, MemoryKind, RawStream,
    RegisterOptions, Result, StreamOptions, StridedCopy,
};
use std::{cell::RefCell, fmt::Debug, ptr::NonNull};

thread_local! { static LOG: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) } }

/// Takes the calls to the backends on this thread since the last time.
pub(crate) fn log() -> Vec<String> {
    LOG.take()
}

const fn name(n: usize) -> &'static str {
    if n == 0 { "left" } else { "right" }
}

fn note(n: usize, call: &str, arguments: impl Debug) {
    LOG.with_borrow_mut(|log| log.push(format!("{} {call} {arguments:?}", name(n))));
}

/// Blocks of this many bytes cannot be freed.
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
pub struct FakeDevice<const N: usize>(DeviceInfo, Capabilities);
#[derive(Debug)]
pub struct Buffer<const N: usize>(AllocationRequest, NonNull<u8>);
#[derive(Debug)]
pub struct FakeStream<const N: usize>(u64);
#[derive(Debug)]
pub struct FakeEvent<const N: usize>;
#[derive(Debug, Clone)]
pub struct Barrier<const N: usize>;
#[derive(Debug, Clone)]
pub struct FakeName<const N: usize>(String);

// SAFETY: the address is never used.
unsafe impl<const N: usize> Send for Buffer<N> {}
// SAFETY: as above.
unsafe impl<const N: usize> Sync for Buffer<N> {}

impl<const N: usize> Drop for FakeStream<N> {
    fn drop(&mut self) {
        note(N, "drop stream", ());
    }
}

impl<const N: usize> Drop for FakeEvent<N> {
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
unsafe impl<const N: usize> gpumem_core::Stream for FakeStream<N> {
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
unsafe impl<const N: usize> gpumem_core::Event for FakeEvent<N> {
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

    type Device = FakeDevice<N>;
    type Buffer = Buffer<N>;
    type Stream = FakeStream<N>;
    type Event = FakeEvent<N>;
    type Barrier = Barrier<N>;
    type Module = FakeName<N>;
    type Kernel = FakeName<N>;

    fn probe() -> Result<(), LoadError> {
        Ok(())
    }

    fn devices() -> Result<Vec<DeviceInfo>> {
        Ok(vec![INFO[N].clone()])
    }

    fn open(selector: &DeviceSelector) -> Result<FakeDevice<N>> {
        selector.choose(Self::NAME, &INFO[N..=N])?;
        let mut capabilities = Capabilities::minimal();
        capabilities.wave_size = [32, 64][N];
        Ok(FakeDevice(INFO[N].clone(), capabilities))
    }

    fn info(device: &FakeDevice<N>) -> &DeviceInfo {
        &device.0
    }

    fn capabilities(device: &FakeDevice<N>) -> &Capabilities {
        &device.1
    }

    fn barrier(_: &FakeDevice<N>) -> Barrier<N> {
        Barrier
    }

    fn memory_info(_: &FakeDevice<N>) -> Result<MemoryInfo> {
        Ok(MemoryInfo { free: N, total: N + 1 })
    }

    fn synchronize(_: &FakeDevice<N>) -> Result<()> {
        note(N, "synchronize device", ());
        Ok(())
    }

    unsafe fn reset(_: &FakeDevice<N>) -> Result<()> {
        note(N, "reset", ());
        Ok(())
    }

    fn can_access_peer(_: &FakeDevice<N>, _: &FakeDevice<N>) -> Result<bool> {
        note(N, "can_access_peer", ());
        Ok(N == 1)
    }

    fn set_peer_access(_: &FakeDevice<N>, _: &FakeDevice<N>, enabled: bool) -> Result<()> {
        note(N, "set_peer_access", enabled);
        Ok(())
    }

    unsafe fn allocate(_: &FakeDevice<N>, request: &AllocationRequest) -> Result<Buffer<N>> {
        note(N, "allocate", request.bytes);
        Ok(Buffer(*request, NonNull::dangling()))
    }

    unsafe fn release(_: &FakeDevice<N>, buffer: Buffer<N>) -> Result<(), (Buffer<N>, Error)> {
        note(N, "release", buffer.0.bytes);
        if buffer.0.bytes == STUBBORN {
            return Err((buffer, Error::new(Self::NAME, "release", ErrorKind::Exiting)));
        }
        Ok(())
    }

    unsafe fn register(
        _: &FakeDevice<N>,
        host: NonNull<u8>,
        bytes: usize,
        options: RegisterOptions,
    ) -> Result<Buffer<N>> {
        note(N, "register", bytes);
        Ok(Buffer(AllocationRequest { bytes, align: 1, kind: MemoryKind::Registered(options) }, host))
    }

    unsafe fn advise(_: &FakeDevice<N>, address: u64, bytes: usize, advice: Advice) -> Result<()> {
        note(N, "advise", (address, bytes, advice));
        Ok(())
    }

    fn create_stream(_: &FakeDevice<N>, options: &StreamOptions) -> Result<FakeStream<N>> {
        note(N, "create_stream", options.priority);
        Ok(FakeStream(0))
    }

    unsafe fn wrap_stream(_: &FakeDevice<N>, raw: RawStream) -> Result<FakeStream<N>> {
        Ok(FakeStream(raw.0))
    }

    fn destroy_stream(_: &FakeDevice<N>, stream: FakeStream<N>) -> Result<()> {
        note(N, "destroy_stream", stream.0);
        Ok(())
    }

    unsafe fn copy(_: &FakeStream<N>, region: &CopyRegion) -> Result<()> {
        note(N, "copy", region.bytes);
        Ok(())
    }

    unsafe fn copy_strided(_: &FakeStream<N>, copy: &StridedCopy) -> Result<()> {
        note(N, "copy_strided", copy.item);
        Ok(())
    }

    unsafe fn fill(_: &FakeStream<N>, fill: &Fill) -> Result<()> {
        note(N, "fill", fill.count);
        Ok(())
    }

    unsafe fn prefetch(_: &FakeStream<N>, address: u64, bytes: usize, to: Location) -> Result<()> {
        note(N, "prefetch", (address, bytes, to));
        Ok(())
    }

    fn create_event(_: &FakeDevice<N>, options: EventOptions) -> Result<FakeEvent<N>> {
        note(N, "create_event", options.timing);
        Ok(FakeEvent)
    }

    fn destroy_event(_: &FakeDevice<N>, _: FakeEvent<N>) -> Result<()> {
        note(N, "destroy_event", ());
        Ok(())
    }

    fn record(_: &FakeStream<N>, _: &FakeEvent<N>) -> Result<()> {
        note(N, "record", ());
        Ok(())
    }

    fn wait(_: &FakeStream<N>, _: &FakeEvent<N>) -> Result<()> {
        note(N, "wait", ());
        Ok(())
    }

    fn elapsed(_: &FakeEvent<N>, _: &FakeEvent<N>) -> Result<f32> {
        Ok(N as f32)
    }

    fn compile(_: &FakeDevice<N>, source: &KernelSource, _: &CompileOptions) -> Result<FakeName<N>> {
        note(N, "compile", source);
        Ok(FakeName(String::new()))
    }

    fn compiler(_: &FakeDevice<N>) -> Result<Compiler> {
        Ok(Compiler { version: format!("compiler {N}"), target: Self::NAME.to_owned() })
    }

    fn compile_image(_: &FakeDevice<N>, text: &str, _: &CompileOptions) -> Result<Vec<u8>> {
        note(N, "compile_image", text);
        Ok(vec![N as u8])
    }

    fn compile_for(architecture: &str, text: &dyn Fn(u32) -> String, _: &CompileOptions) -> Result<Vec<u8>> {
        match architecture == format!("fake{N}") {
            true => Ok(text(N as u32).into_bytes()),
            false => Err(Error::new(Self::NAME, "compile_for", ErrorKind::Unsupported { what: "that" })),
        }
    }

    fn variable(_: &FakeName<N>, name: &str) -> Result<(u64, usize)> {
        Ok((N as u64, name.len()))
    }

    fn kernel(_: &FakeName<N>, name: &str) -> Result<FakeName<N>> {
        Ok(FakeName(name.to_owned()))
    }

    unsafe fn launch(
        _: &FakeStream<N>,
        kernel: &FakeName<N>,
        dims: &LaunchConfig,
        arguments: &KernelArguments,
    ) -> Result<()> {
        note(N, "launch", (&kernel.0, dims.groups, arguments.len()));
        Ok(())
    }
}
