//! The objects of the enabled backends: devices, memory, streams, events, barriers and kernels.

use super::{
    AnyBackend,
    typed::{Named, Typed, any, come_back, into_same, same},
};
use gpumem_core::{
    AddressRange, Advice, AllocationRequest, Backend, Barrier, BarrierPoint, Capabilities, CaptureStart,
    CompileOptions, Compiler, CopyRegion, DeviceBuffer, DeviceInfo, DlpackDevice, DriverDevice, DriverModule,
    Error, ErrorKind, Event, EventOptions, ExecutableGraph, Failure, Fill, GraphNode, HostFuture, IpcMemory,
    KernelArguments, KernelSource, LaunchConfig, Location, Lowering, MemoryInfo, MemoryKind, MemoryUse,
    RawStream, RegisterOptions, Result, Stream, StreamOptions, StridedCopy,
};
use std::{ptr::NonNull, sync::Arc};

backends! { any!
    /// A device of one of the enabled backends.
    #[derive(Clone)]
    AnyDevice(Device)
}

backends! { any!
    /// A block of memory of one of the enabled backends.
    AnyBuffer(Buffer)
}

backends! { any!
    /// A stream of one of the enabled backends.
    AnyStream(Stream)
}

backends! { any!
    /// An event of one of the enabled backends.
    AnyEvent(Event)
}

backends! { any!
    /// A barrier of one of the enabled backends.
    #[derive(Clone)]
    AnyBarrier(Barrier)
}

backends! { any!
    /// A module of one of the enabled backends.
    #[derive(Clone)]
    AnyModule(Module)
}

backends! { any!
    /// A kernel of one of the enabled backends.
    #[derive(Clone)]
    AnyKernel(Kernel)
}

/// Functions that the backend's own value has as well. An argument `as same` is of the same backend, or the call is an
/// error; a result `as any` becomes a run-time choice. The crate `enum_dispatch` converts neither, and wants traits of
/// this crate.
macro_rules! forward {
    ($any:ident: $(fn $name:ident(
        $($argument:ident: $of:ty $(as $same:ident)?),*) -> $result:ty $(as $choice:ident)?;)*) => { $(
        #[inline]
        fn $name(&self, $($argument: $of),*) -> $result {
            let own = self;
            on!($any, own, B => {
                $($(let $argument = $same::<B, _>(stringify!($name), $argument)?;)?)*
                let answer = own.$name($($argument),*);
                $(let answer = $choice::<B, _>(answer);)?
                answer
            })
        }
    )* };
    ($any:ident: $(unsafe fn $name:ident(
        $($argument:ident: $of:ty $(as $same:ident)?),*) -> $result:ty $(as $choice:ident)?;)*) => { $(
        #[inline]
        unsafe fn $name(&self, $($argument: $of),*) -> $result {
            let own = self;
            on!($any, own, B => {
                $($(let $argument = $same::<B, _>(stringify!($name), $argument)?;)?)*
                // SAFETY: the caller meets the conditions of the trait's function, which are the backend's.
                let answer = unsafe { own.$name($($argument),*) };
                $(let answer = $choice::<B, _>(answer);)?
                answer
            })
        }
    )* };
}

// SAFETY: the backend's own type implements the trait, and every call is forwarded to it.
#[deny(clippy::missing_trait_methods, reason = "a default would not ask the backend")]
unsafe impl DriverDevice<AnyBackend> for AnyDevice {
    forward! { AnyDevice:
        fn info() -> &DeviceInfo;
        fn capabilities() -> &Capabilities;
        fn memory_info() -> Result<MemoryInfo>;
        fn synchronize() -> Result<()>;
        fn pointer_info(address: u64) -> Result<Option<AddressRange>>;
        fn dlpack_device(kind: MemoryKind) -> Option<DlpackDevice>;
        fn with_current(work: &mut dyn FnMut()) -> ();
        fn create_stream(options: &StreamOptions) -> Result<AnyStream> as any;
        fn create_event(options: EventOptions) -> Result<AnyEvent> as any;
        fn record_device(event: &AnyEvent as same) -> Result<()>;
        fn compile(source: &KernelSource, options: &CompileOptions) -> Result<AnyModule> as any;
        fn compiler() -> Result<Compiler>;
        fn compile_image(text: &str, options: &CompileOptions) -> Result<Vec<u8>>;
    }

    forward! { AnyDevice:
        unsafe fn reset() -> Result<()>;
        unsafe fn allocate(request: &AllocationRequest) -> Result<AnyBuffer> as any;
        unsafe fn register(host: NonNull<u8>, bytes: usize, options: RegisterOptions) -> Result<AnyBuffer> as any;
        unsafe fn advise(address: u64, bytes: usize, advice: Advice) -> Result<()>;
        unsafe fn export_memory(address: u64, bytes: usize) -> Result<IpcMemory>;
        unsafe fn open_memory(memory: &IpcMemory) -> Result<AnyBuffer> as any;
        unsafe fn wrap_stream(raw: RawStream) -> Result<AnyStream> as any;
    }

    #[inline]
    fn barrier(&self) -> AnyBarrier {
        let own = self;
        on!(AnyDevice, own, B => { Typed::<B>::from_typed(own.barrier()) })
    }

    #[inline]
    fn can_access_peer(&self, peer: &Self) -> Result<bool> {
        let own = self;
        on!(AnyDevice, own, B => {
            // Devices of two backends exist side by side; no driver knows a path from one to the other.
            Typed::<B>::as_typed(peer).map_or(Ok(false), |peer| own.can_access_peer(peer))
        })
    }

    #[inline]
    fn set_peer_access(&self, peer: &Self, enabled: bool) -> Result<()> {
        let own = self;
        on!(AnyDevice, own, B => {
            match Typed::<B>::as_typed(peer) {
                Some(peer) => own.set_peer_access(peer, enabled),
                None if !enabled => Ok(()),
                None => {
                    let what = "access to the memory of another backend's device";
                    Err(Error::new(B::NAME, "set_peer_access", ErrorKind::Unsupported { what }))
                }
            }
        })
    }

    #[inline]
    unsafe fn release(&self, buffer: AnyBuffer) -> Result<(), (AnyBuffer, Error)> {
        let own = self;
        on!(AnyDevice, own, B => {
            let buffer = into_same::<B, _>("release", buffer)?;
            // SAFETY: the caller meets the conditions of the trait's function, which are the backend's.
            unsafe { own.release(buffer) }.map_err(come_back::<B, _>)
        })
    }
}

// SAFETY: the backend's own type implements the trait, and every call is forwarded to it.
#[deny(clippy::missing_trait_methods, reason = "a default would not ask the backend")]
unsafe impl Stream<AnyBackend> for AnyStream {
    forward! { AnyStream:
        fn synchronize() -> Result<()>;
        fn query() -> Result<bool>;
        fn raw() -> RawStream;
        fn lent() -> RawStream;
        fn unique_id() -> Result<Option<u64>>;
        fn is_capturing() -> Result<bool>;
        fn captured_node() -> Result<GraphNode>;
        fn record(event: &AnyEvent as same) -> Result<()>;
        fn wait(event: &AnyEvent as same) -> Result<()>;
    }

    forward! { AnyStream:
        unsafe fn copy(region: &CopyRegion) -> Result<()>;
        unsafe fn try_copy_sync(region: &CopyRegion) -> bool;
        unsafe fn copy_strided(copy: &StridedCopy) -> Result<()>;
        unsafe fn fill(fill: &Fill) -> Result<()>;
        unsafe fn prefetch(address: u64, bytes: usize, to: Location) -> Result<()>;
        unsafe fn begin_capture() -> Result<CaptureStart>;
        unsafe fn enqueue_future(future: HostFuture) -> Result<()>;
        unsafe fn poison(torn: &[MemoryUse], failure: &Arc<Failure>) -> Result<()>;
        unsafe fn launch(kernel: &AnyKernel as same, dims: &LaunchConfig, arguments: &KernelArguments) -> Result<()>;
    }

    fn end_capture(&self, changes: bool) -> Result<Box<dyn ExecutableGraph<AnyBackend>>> {
        let own = self;
        on!(AnyStream, own, B => { Ok(Box::new(AnyGraph::<B>(own.end_capture(changes)?))) })
    }

    #[inline]
    fn destroy(self) -> Result<()> {
        let own = self;
        on!(AnyStream, own, B => { own.destroy() })
    }
}

/// A graph of one of the backends.
#[derive(Debug)]
struct AnyGraph<B: Backend>(Box<dyn ExecutableGraph<B>>);

// SAFETY: every call is forwarded to the backend's own graph.
#[deny(clippy::missing_trait_methods, reason = "a default would not ask the backend")]
unsafe impl<B: Backend> ExecutableGraph<AnyBackend> for AnyGraph<B>
where
    AnyStream: Typed<B, Of = B::Stream>,
    AnyKernel: Typed<B, Of = B::Kernel>,
{
    #[inline]
    unsafe fn launch(&mut self, stream: &AnyStream) -> Result<()> {
        let stream = same::<B, _>("launch", stream)?;
        // SAFETY: the caller meets the conditions of the trait's function, which are the backend's.
        unsafe { self.0.launch(stream) }
    }

    unsafe fn set_launch(
        &mut self,
        node: GraphNode,
        kernel: &AnyKernel,
        dims: &LaunchConfig,
        arguments: &KernelArguments,
    ) -> Result<()> {
        let kernel = same::<B, _>("set_launch", kernel)?;
        // SAFETY: as in `launch`.
        unsafe { self.0.set_launch(node, kernel, dims, arguments) }
    }
}

// SAFETY: the backend's own type implements the trait, and every call is forwarded to it.
#[deny(clippy::missing_trait_methods, reason = "a default would not ask the backend")]
unsafe impl Event for AnyEvent {
    forward! { AnyEvent:
        fn query() -> Result<bool>;
        fn synchronize() -> Result<()>;
        fn elapsed(end: &Self as same) -> Result<f32>;
    }

    #[inline]
    fn destroy(self) -> Result<()> {
        let own = self;
        on!(AnyEvent, own, B => { own.destroy() })
    }
}

// SAFETY: the backend's own type implements the trait, and every call is forwarded to it.
#[deny(clippy::missing_trait_methods, reason = "a default would not ask the backend")]
unsafe impl DriverModule<AnyBackend> for AnyModule {
    // One type may be the module of several backends.
    #[inline]
    fn variable(&self, name: &str) -> Result<(u64, usize)> {
        let own = self;
        on!(AnyModule, own, B => { DriverModule::<B>::variable(own, name) })
    }

    #[inline]
    fn kernel(&self, name: &str) -> Result<AnyKernel> {
        let own = self;
        on!(AnyModule, own, B => { any::<B, _>(DriverModule::<B>::kernel(own, name)) })
    }
}

// SAFETY: the backend's own type implements the trait, and every call is forwarded to it.
#[deny(clippy::missing_trait_methods, reason = "a default would not ask the backend")]
unsafe impl DeviceBuffer for AnyBuffer {
    forward! { AnyBuffer:
        fn address() -> u64;
        fn host_address() -> Option<NonNull<u8>>;
        fn len() -> usize;
        fn is_empty() -> bool;
        fn kind() -> MemoryKind;
    }
}

// SAFETY: the backend's own type implements the trait, and every call is forwarded to it.
#[deny(clippy::missing_trait_methods, reason = "a default would not ask the backend")]
unsafe impl Barrier for AnyBarrier {
    forward! { AnyBarrier:
        fn wave_size() -> u32;
        fn lowering(point: BarrierPoint) -> Lowering;
    }
}
