//! Attributes of devices. HIP's numbers have nothing in common with CUDA's.

use crate::types::hipDeviceAttribute_t;
use cudarc::driver::sys::CUdevice_attribute_enum as Cuda;

/// Where the value of an attribute comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The driver.
    Driver(Cuda),
    /// A constant.
    Constant(i32),
}

use Source::{Constant, Driver};

macro_rules! attributes {
    ($($number:literal $name:literal: $source:expr,)*) => {
        /// Number and name in HIP's header, and where the value comes from.
        pub const ATTRIBUTES: &[(hipDeviceAttribute_t, &str, Source)] = &[
            $(($number, concat!("hipDeviceAttribute", $name), $source),)*
        ];
    };
}

attributes! {
    0 "EccEnabled": Driver(Cuda::CU_DEVICE_ATTRIBUTE_ECC_ENABLED),
    2 "AsyncEngineCount": Driver(Cuda::CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT),
    3 "CanMapHostMemory": Driver(Cuda::CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY),
    4 "CanUseHostPointerForRegisteredMem":
        Driver(Cuda::CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM),
    5 "ClockRate": Driver(Cuda::CU_DEVICE_ATTRIBUTE_CLOCK_RATE),
    6 "ComputeMode": Driver(Cuda::CU_DEVICE_ATTRIBUTE_COMPUTE_MODE),
    7 "ComputePreemptionSupported": Driver(Cuda::CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED),
    8 "ConcurrentKernels": Driver(Cuda::CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS),
    9 "ConcurrentManagedAccess": Driver(Cuda::CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS),
    10 "CooperativeLaunch": Driver(Cuda::CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH),
    13 "DirectManagedMemAccessFromHost":
        Driver(Cuda::CU_DEVICE_ATTRIBUTE_DIRECT_MANAGED_MEM_ACCESS_FROM_HOST),
    14 "GlobalL1CacheSupported": Driver(Cuda::CU_DEVICE_ATTRIBUTE_GLOBAL_L1_CACHE_SUPPORTED),
    15 "HostNativeAtomicSupported": Driver(Cuda::CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED),
    16 "Integrated": Driver(Cuda::CU_DEVICE_ATTRIBUTE_INTEGRATED),
    17 "IsMultiGpuBoard": Driver(Cuda::CU_DEVICE_ATTRIBUTE_MULTI_GPU_BOARD),
    18 "KernelExecTimeout": Driver(Cuda::CU_DEVICE_ATTRIBUTE_KERNEL_EXEC_TIMEOUT),
    19 "L2CacheSize": Driver(Cuda::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE),
    20 "LocalL1CacheSupported": Driver(Cuda::CU_DEVICE_ATTRIBUTE_LOCAL_L1_CACHE_SUPPORTED),
    23 "ComputeCapabilityMajor": Driver(Cuda::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR),
    24 "ManagedMemory": Driver(Cuda::CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY),
    25 "MaxBlocksPerMultiProcessor": Driver(Cuda::CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR),
    26 "MaxBlockDimX": Driver(Cuda::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X),
    27 "MaxBlockDimY": Driver(Cuda::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y),
    28 "MaxBlockDimZ": Driver(Cuda::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z),
    29 "MaxGridDimX": Driver(Cuda::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X),
    30 "MaxGridDimY": Driver(Cuda::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y),
    31 "MaxGridDimZ": Driver(Cuda::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z),
    56 "MaxThreadsPerBlock": Driver(Cuda::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK),
    57 "MaxThreadsPerMultiProcessor": Driver(Cuda::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR),
    58 "MaxPitch": Driver(Cuda::CU_DEVICE_ATTRIBUTE_MAX_PITCH),
    59 "MemoryBusWidth": Driver(Cuda::CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH),
    60 "MemoryClockRate": Driver(Cuda::CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE),
    61 "ComputeCapabilityMinor": Driver(Cuda::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR),
    63 "MultiprocessorCount": Driver(Cuda::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT),
    65 "PageableMemoryAccess": Driver(Cuda::CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS),
    66 "PageableMemoryAccessUsesHostPageTables":
        Driver(Cuda::CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES),
    67 "PciBusId": Driver(Cuda::CU_DEVICE_ATTRIBUTE_PCI_BUS_ID),
    68 "PciDeviceId": Driver(Cuda::CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID),
    69 "PciDomainID": Driver(Cuda::CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID),
    71 "MaxRegistersPerBlock": Driver(Cuda::CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK),
    72 "MaxRegistersPerMultiprocessor": Driver(Cuda::CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR),
    73 "ReservedSharedMemPerBlock": Driver(Cuda::CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK),
    74 "MaxSharedMemoryPerBlock": Driver(Cuda::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK),
    75 "SharedMemPerBlockOptin": Driver(Cuda::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN),
    76 "SharedMemPerMultiprocessor": Driver(Cuda::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR),
    78 "StreamPrioritiesSupported": Driver(Cuda::CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED),
    79 "SurfaceAlignment": Driver(Cuda::CU_DEVICE_ATTRIBUTE_SURFACE_ALIGNMENT),
    80 "TccDriver": Driver(Cuda::CU_DEVICE_ATTRIBUTE_TCC_DRIVER),
    81 "TextureAlignment": Driver(Cuda::CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT),
    82 "TexturePitchAlignment": Driver(Cuda::CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT),
    83 "TotalConstantMemory": Driver(Cuda::CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY),
    85 "UnifiedAddressing": Driver(Cuda::CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING),
    87 "WarpSize": Driver(Cuda::CU_DEVICE_ATTRIBUTE_WARP_SIZE),
    // This library has no stream-ordered allocation.
    88 "MemoryPoolsSupported": Constant(0),
    10_002 "MaxSharedMemoryPerMultiprocessor":
        Driver(Cuda::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR),
    // The host does not see the memory of these devices.
    10_011 "IsLargeBar": Constant(0),
    10_012 "AsicRevision": Constant(0),
    10_013 "CanUseStreamWaitValue": Constant(1),
    10_014 "ImageSupport": Constant(0),
    10_015 "PhysicalMultiProcessorCount": Driver(Cuda::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT),
    10_016 "FineGrainSupport": Constant(0),
}

/// Attributes that came after HIP 5.2's header.
pub const LATER_ATTRIBUTES: &[(hipDeviceAttribute_t, Source)] = &[
    // hipDeviceAttributeVirtualMemoryManagementSupported: this library has none.
    (89, Constant(0)),
    // hipDeviceAttributeHostRegisterSupported
    (90, Driver(Cuda::CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED)),
];

/// Where the value of an attribute comes from, if it is one that this library knows.
#[must_use]
pub fn source(attribute: hipDeviceAttribute_t) -> Option<Source> {
    let known = ATTRIBUTES.iter().map(|(number, _, source)| (*number, *source));
    known.chain(LATER_ATTRIBUTES.iter().copied()).find(|(number, _)| *number == attribute).map(|pair| pair.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_lead_to_the_attribute_of_that_name() {
        assert_eq!(source(87), Some(Driver(Cuda::CU_DEVICE_ATTRIBUTE_WARP_SIZE)));
        assert_eq!(source(90), Some(Driver(Cuda::CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED)));
        assert_eq!(source(10_011), Some(Constant(0)));
        // CUDA's number of the warp size is a texture's width in HIP, which is not known here.
        assert_eq!(source(39), None);
        assert_eq!(source(9_000), None);
    }

    #[test]
    fn no_number_comes_twice() {
        assert!(ATTRIBUTES.windows(2).all(|pair| pair[0].0 < pair[1].0));
    }
}
