//! The objects of the enabled backends: devices, memory, streams, events, barriers and kernels.

use super::typed::{Named, Typed};
use gpumem_core::{
    Backend, Barrier, BarrierPoint, DeviceBuffer, Event, Lowering, MemoryKind, RawStream, Result, Stream,
};
use std::ptr::NonNull;

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

/// Functions that the backend's own value has as well.
macro_rules! forward {
    ($any:ident: $(fn $name:ident($($argument:ident: $of:ty)?) -> $result:ty;)*) => { $(
        #[inline]
        fn $name(&self $(, $argument: $of)?) -> $result {
            let own = self;
            on!($any, own, B => { own.$name($($argument)?) })
        }
    )* };
}

// SAFETY: the backend's own type implements the trait, and every call is forwarded to it.
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
unsafe impl Stream for AnyStream {
    forward! { AnyStream:
        fn synchronize() -> Result<()>;
        fn query() -> Result<bool>;
        fn raw() -> RawStream;
    }
}

// SAFETY: the backend's own type implements the trait, and every call is forwarded to it.
unsafe impl Event for AnyEvent {
    forward! { AnyEvent:
        fn query() -> Result<bool>;
        fn synchronize() -> Result<()>;
    }
}

// SAFETY: the backend's own type implements the trait, and every call is forwarded to it.
unsafe impl Barrier for AnyBarrier {
    forward! { AnyBarrier:
        fn wave_size() -> u32;
        fn lowering(point: BarrierPoint) -> Lowering;
    }
}
