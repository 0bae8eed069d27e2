//! A device with helpers for the cases. All memory comes from here and lives until its work is waited for.

use cudarc::driver::sys::CUstream;
use gpumem_core::{
    AllocationRequest, Backend, CompileOptions, CopyRegion, DeviceBuffer, DeviceSelector, DriverDevice,
    DriverModule, Fill, KernelArguments, KernelSource, LaunchConfig, MappedOptions, MemoryKind, Pattern,
    Space, Stream, StreamOptions,
};
use gpumem_cuda::{CUcontext, Cuda, CudaBuffer, CudaDevice, CudaExt, CudaKernel, CudaModule, CudaStream};
use std::{ops::Deref, ptr::NonNull};

/// A kernel that runs until the host lets it end, and no longer than `limit` nanoseconds.
const GATE: &str = "
.version 7.0
.target sm_52
.address_size 64
.visible .entry gate(.param .u64 flag, .param .u64 limit)
{
    .reg .pred %p<3>;
    .reg .b32 %r<2>;
    .reg .b64 %rd<6>;
    ld.param.u64 %rd1, [flag];
    ld.param.u64 %rd2, [limit];
    mov.u64 %rd3, %globaltimer;
again:
    ld.volatile.global.u32 %r1, [%rd1];
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra done;
    mov.u64 %rd4, %globaltimer;
    sub.u64 %rd5, %rd4, %rd3;
    setp.lt.u64 %p2, %rd5, %rd2;
    @%p2 bra again;
done:
    ret;
}
";
const GATE_LIMIT: u64 = 3_000_000_000;

pub(crate) struct Lab {
    pub(crate) device: CudaDevice,
    stream: CudaStream,
    gate: CudaKernel,
}

impl Lab {
    pub(crate) fn open() -> Result<Self, String> {
        Cuda::open(&DeviceSelector::ordinal("cuda", 0)).map(Self::on).map_err(|error| error.to_string())
    }

    pub(crate) fn on(device: CudaDevice) -> Self {
        let module = device.compile(&KernelSource::Ptx(GATE.to_owned()), &CompileOptions::default());
        let gate = module.unwrap().kernel("gate").unwrap();
        let stream = device.create_stream(&StreamOptions::default()).unwrap();
        let lab = Self { device, stream, gate };
        // The driver loads kernels, its own too, on first use, and waits for the device to do so. That must not happen
        // after a closed gate.
        drop(lab.close(&lab.stream));
        let block = lab.allocate(MemoryKind::Device, 4096);
        for (pattern, count) in [(Pattern::U8(0), 16), (Pattern::U16(0), 8), (Pattern::U32(0), 4)] {
            for rows in [1, 3] {
                lab.fill(&lab.stream, &Fill { address: block.address(), pattern, count, rows, pitch: 64 });
            }
        }
        lab.stream.synchronize().unwrap();
        drop(block);
        lab
    }

    pub(crate) fn here(&self) -> Space {
        Space::Device(self.device.info().ordinal)
    }

    pub(crate) fn stream(&self) -> CudaStream {
        self.device.create_stream(&StreamOptions::default()).unwrap()
    }

    pub(crate) fn allocate(&self, kind: MemoryKind, bytes: usize) -> Block {
        self.allocate_aligned(kind, bytes, 16)
    }

    pub(crate) fn allocate_aligned(&self, kind: MemoryKind, bytes: usize, align: usize) -> Block {
        let request = AllocationRequest { bytes, align, kind };
        // SAFETY: the sizes are sound, and device memory is written before it is read.
        self.own(unsafe { self.device.allocate(&request) }.unwrap())
    }

    pub(crate) fn own(&self, buffer: CudaBuffer) -> Block {
        Block { device: self.device.clone(), buffer: Some(buffer) }
    }

    pub(crate) fn copy(&self, stream: &CudaStream, region: &CopyRegion) {
        // SAFETY: the cases keep both sides alive and unused until they have waited.
        unsafe { stream.copy(region) }.unwrap();
    }

    pub(crate) fn fill(&self, stream: &CudaStream, fill: &Fill) {
        // SAFETY: the cases keep the memory alive and unused until they have waited.
        unsafe { stream.fill(fill) }.unwrap();
    }

    /// Writes bytes to an address of the device, and waits.
    pub(crate) fn write(&self, to: u64, bytes: &[u8]) {
        let region = CopyRegion::linear((host(bytes.as_ptr()), Space::Host), (to, self.here()), bytes.len());
        self.copy(&self.stream, &region);
        self.stream.synchronize().unwrap();
    }

    /// Reads bytes from an address of the device, and waits.
    pub(crate) fn read(&self, from: u64, bytes: usize) -> Vec<u8> {
        let mut found = vec![0u8; bytes];
        let to = (host(found.as_mut_ptr()), Space::Host);
        self.copy(&self.stream, &CopyRegion::linear((from, self.here()), to, bytes));
        self.stream.synchronize().unwrap();
        found
    }

    pub(crate) fn compile(&self, text: &str) -> CudaModule {
        self.device.compile(&KernelSource::Text(text.to_owned()), &CompileOptions::default()).unwrap()
    }

    pub(crate) fn kernel(&self, text: &str, name: &str) -> CudaKernel {
        self.compile(text).kernel(name).unwrap()
    }

    pub(crate) fn launch(
        &self,
        stream: &CudaStream,
        kernel: &CudaKernel,
        dims: LaunchConfig,
        with: &KernelArguments,
    ) {
        // SAFETY: the cases pass arguments of the kernel's signature and keep the memory alive until they have waited.
        unsafe { stream.launch(kernel, &dims, with) }.unwrap();
    }

    /// Holds the stream until the gate is opened or dropped.
    pub(crate) fn close(&self, stream: &CudaStream) -> Gate {
        let flag = self.allocate(MemoryKind::Mapped(MappedOptions::default()), 4);
        let arguments = KernelArguments::new().with(flag.address()).with(GATE_LIMIT);
        self.launch(stream, &self.gate, LaunchConfig::linear(1, 1), &arguments);
        Gate { flag }
    }
}

impl Lab {
    /// As [`close`](Self::close), a stream of another type.
    pub(crate) fn close_raw(&self, stream: CUstream) -> Gate {
        // SAFETY: the stream is alive, and its wrapper is gone when this returns.
        self.close(&unsafe { Cuda::wrap_cuda_stream(&self.device, stream) }.unwrap())
    }
}

/// Memory that goes back when it is dropped. The cases have waited for its work by then.
pub(crate) struct Block {
    device: CudaDevice,
    buffer: Option<CudaBuffer>,
}

impl Block {
    pub(crate) fn into_inner(mut self) -> CudaBuffer {
        self.buffer.take().unwrap()
    }

    /// The bytes of memory that the host can reach and that is not written meanwhile.
    pub(crate) fn bytes(&self) -> &[u8] {
        let start = self.host_address().expect("memory of the host");
        // SAFETY: the memory is alive, was zeroed when it was allocated, and the device does not write it now.
        unsafe { std::slice::from_raw_parts(start.as_ptr(), self.len()) }
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        let start = self.host_address().expect("memory of the host");
        // SAFETY: as above, and the device does not read it either.
        unsafe { std::slice::from_raw_parts_mut(start.as_ptr(), self.len()) }
    }
}

impl Deref for Block {
    type Target = CudaBuffer;

    fn deref(&self) -> &CudaBuffer {
        self.buffer.as_ref().unwrap()
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        let Some(buffer) = self.buffer.take() else { return };
        // Also on the way out of a case that has failed before it waited.
        let waited = self.device.synchronize();
        // SAFETY: everything that was enqueued is done.
        let released = unsafe { self.device.release(buffer) };
        if !std::thread::panicking() {
            waited.unwrap();
            released.map_err(|(_, error)| error).unwrap();
        }
    }
}

/// A kernel that a stream waits for.
pub(crate) struct Gate {
    flag: Block,
}

impl Gate {
    pub(crate) fn open(&self) {
        let flag: NonNull<u32> = self.flag.host_address().unwrap().cast();
        // SAFETY: the flag is alive; the device reads it with a volatile load.
        unsafe { flag.write_volatile(1) };
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.open();
    }
}

/// An address of the host's memory as a number.
pub(crate) fn host<T>(pointer: *const T) -> u64 {
    pointer.expose_provenance() as u64
}

/// The context that is current on this thread.
pub(crate) fn current_context() -> CUcontext {
    let mut context = std::ptr::null_mut();
    // SAFETY: a place for a handle.
    unsafe { cudarc::driver::sys::cuCtxGetCurrent(&mut context).result().unwrap() };
    context
}

/// Numbers that look random and are the same each time.
pub(crate) struct Numbers(pub(crate) u64);

impl Numbers {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.next() as usize % limit
    }

    pub(crate) fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.next() as u8).collect()
    }
}
