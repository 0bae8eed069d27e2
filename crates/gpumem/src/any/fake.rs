//! Two backends that record the calls to them. They are in the list under test only, so that the dispatch is tested
//! with more than one backend on every machine and with every feature set.

use gpumem_core::{
    Advice, AllocationRequest, Backend, BarrierPoint, Capabilities, CompileOptions, Compiler, CopyRegion,
    DeviceBuffer, DeviceInfo, DeviceSelector, DriverDevice, DriverModule, Error, ErrorKind, EventOptions,
    Failure, Fill, KernelArguments, KernelSource, LaunchConfig, LoadError, Location, Lowering, MemoryInfo,
    MemoryKind, MemoryUse, RawStream, RegisterOptions, Result, StreamOptions, StridedCopy,
};
use std::{cell::RefCell, fmt::Debug, ptr::NonNull, sync::Arc};

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

fn done(n: usize, call: &str, arguments: impl Debug) -> Result<()> {
    note(n, call, arguments);
    Ok(())
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

    fn compile_for(architecture: &str, text: &dyn Fn(u32) -> String, _: &CompileOptions) -> Result<Vec<u8>> {
        match architecture == format!("fake{N}") {
            true => Ok(text(N as u32).into_bytes()),
            false => Err(Error::new(Self::NAME, "compile_for", ErrorKind::Unsupported { what: "that" })),
        }
    }
}

// SAFETY: a double that has no memory and does no work.
unsafe impl<const N: usize> DriverDevice<Fake<N>> for FakeDevice<N> {
    fn info(&self) -> &DeviceInfo {
        &self.0
    }

    fn capabilities(&self) -> &Capabilities {
        &self.1
    }

    fn barrier(&self) -> Barrier<N> {
        Barrier
    }

    fn memory_info(&self) -> Result<MemoryInfo> {
        Ok(MemoryInfo { free: N, total: N + 1 })
    }

    fn synchronize(&self) -> Result<()> {
        done(N, "synchronize device", ())
    }

    unsafe fn reset(&self) -> Result<()> {
        done(N, "reset", ())
    }

    fn can_access_peer(&self, _: &Self) -> Result<bool> {
        note(N, "can_access_peer", ());
        Ok(N == 1)
    }

    fn set_peer_access(&self, _: &Self, enabled: bool) -> Result<()> {
        done(N, "set_peer_access", enabled)
    }

    unsafe fn allocate(&self, request: &AllocationRequest) -> Result<Buffer<N>> {
        note(N, "allocate", request.bytes);
        Ok(Buffer(*request, NonNull::dangling()))
    }

    unsafe fn release(&self, buffer: Buffer<N>) -> Result<(), (Buffer<N>, Error)> {
        note(N, "release", buffer.0.bytes);
        if buffer.0.bytes == STUBBORN {
            return Err((buffer, Error::new(name(N), "release", ErrorKind::Exiting)));
        }
        Ok(())
    }

    unsafe fn register(
        &self,
        host: NonNull<u8>,
        bytes: usize,
        options: RegisterOptions,
    ) -> Result<Buffer<N>> {
        note(N, "register", bytes);
        Ok(Buffer(AllocationRequest { bytes, align: 1, kind: MemoryKind::Registered(options) }, host))
    }

    unsafe fn advise(&self, address: u64, bytes: usize, advice: Advice) -> Result<()> {
        done(N, "advise", (address, bytes, advice))
    }

    fn create_stream(&self, options: &StreamOptions) -> Result<FakeStream<N>> {
        note(N, "create_stream", options.priority);
        Ok(FakeStream(0))
    }

    unsafe fn wrap_stream(&self, raw: RawStream) -> Result<FakeStream<N>> {
        Ok(FakeStream(raw.0))
    }

    fn create_event(&self, options: EventOptions) -> Result<FakeEvent<N>> {
        note(N, "create_event", options.timing);
        Ok(FakeEvent)
    }

    fn compile(&self, source: &KernelSource, _: &CompileOptions) -> Result<FakeName<N>> {
        note(N, "compile", source);
        Ok(FakeName(String::new()))
    }

    fn compiler(&self) -> Result<Compiler> {
        Ok(Compiler { version: format!("compiler {N}"), target: name(N).to_owned() })
    }

    fn compile_image(&self, text: &str, _: &CompileOptions) -> Result<Vec<u8>> {
        note(N, "compile_image", text);
        Ok(vec![N as u8])
    }
}

// SAFETY: a double that has no memory and does no work.
unsafe impl<const N: usize> gpumem_core::Stream<Fake<N>> for FakeStream<N> {
    fn synchronize(&self) -> Result<()> {
        done(N, "synchronize stream", ())
    }

    fn query(&self) -> Result<bool> {
        Ok(N == 1)
    }

    fn raw(&self) -> RawStream {
        RawStream(self.0)
    }

    fn destroy(self) -> Result<()> {
        done(N, "destroy_stream", self.0)
    }

    unsafe fn copy(&self, region: &CopyRegion) -> Result<()> {
        done(N, "copy", region.bytes)
    }

    unsafe fn copy_strided(&self, copy: &StridedCopy) -> Result<()> {
        done(N, "copy_strided", copy.item)
    }

    unsafe fn fill(&self, fill: &Fill) -> Result<()> {
        done(N, "fill", fill.count)
    }

    unsafe fn prefetch(&self, address: u64, bytes: usize, to: Location) -> Result<()> {
        done(N, "prefetch", (address, bytes, to))
    }

    unsafe fn poison(&self, torn: &[MemoryUse], failure: &Arc<Failure>) -> Result<()> {
        done(N, "poison", (torn.len(), &failure.work))
    }

    fn record(&self, _: &FakeEvent<N>) -> Result<()> {
        done(N, "record", ())
    }

    fn wait(&self, _: &FakeEvent<N>) -> Result<()> {
        done(N, "wait", ())
    }

    unsafe fn launch(
        &self,
        kernel: &FakeName<N>,
        dims: &LaunchConfig,
        arguments: &KernelArguments,
    ) -> Result<()> {
        done(N, "launch", (&kernel.0, dims.groups, arguments.len()))
    }
}

// SAFETY: a double that has no memory and does no work.
unsafe impl<const N: usize> gpumem_core::Event for FakeEvent<N> {
    fn query(&self) -> Result<bool> {
        Ok(N == 1)
    }

    fn synchronize(&self) -> Result<()> {
        done(N, "synchronize event", ())
    }

    fn destroy(self) -> Result<()> {
        done(N, "destroy_event", ())
    }

    fn elapsed(&self, _: &Self) -> Result<f32> {
        Ok(N as f32)
    }
}

// SAFETY: a double that has no memory and does no work.
unsafe impl<const N: usize> DriverModule<Fake<N>> for FakeName<N> {
    fn variable(&self, name: &str) -> Result<(u64, usize)> {
        Ok((N as u64, name.len()))
    }

    fn kernel(&self, name: &str) -> Result<FakeName<N>> {
        Ok(FakeName(name.to_owned()))
    }
}
