//! The structures of device properties, old and new, from the driver's attributes.

use crate::{
    error::Outcome,
    state::Cuda,
    types::{hipDevice_t, hipDeviceProp_t, hipDeviceProp6_t, hipUUID},
};
use cudarc::driver::sys::{CUdevice, CUdevice_attribute_enum as Attribute, CUuuid};
use std::{
    ffi::{c_char, c_int, c_uchar},
    mem::zeroed,
};

/// Reads attributes of one device.
pub(crate) struct Reader<'a> {
    cuda: &'a Cuda,
    handle: CUdevice,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(cuda: &'a Cuda, ordinal: hipDevice_t) -> Outcome<Self> {
        Ok(Self { cuda, handle: cuda.handle(ordinal)? })
    }

    pub(crate) fn number(&self, attribute: Attribute) -> Outcome<c_int> {
        let mut value = 0;
        // SAFETY: a place for a number.
        unsafe { self.cuda.api.cuDeviceGetAttribute(&mut value, attribute, self.handle) }.hip()?;
        Ok(value)
    }

    fn size(&self, attribute: Attribute) -> Outcome<usize> {
        self.number(attribute).map(|value| usize::try_from(value).unwrap_or(0))
    }

    pub(crate) fn total_memory(&self) -> Outcome<usize> {
        let mut bytes = 0;
        // SAFETY: a place for a size.
        unsafe { self.cuda.api.cuDeviceTotalMem_v2(&mut bytes, self.handle) }.hip()?;
        Ok(bytes)
    }

    pub(crate) fn name(&self) -> Outcome<[c_uchar; 256]> {
        let mut name = [0; 256];
        // SAFETY: the buffer has the length that is named, and C's characters are bytes.
        unsafe { self.cuda.api.cuDeviceGetName(name.as_mut_ptr().cast::<c_char>(), 256, self.handle) }
            .hip()?;
        Ok(name)
    }

    pub(crate) fn uuid(&self) -> Outcome<hipUUID> {
        let mut uuid = CUuuid { bytes: [0; 16] };
        // SAFETY: a place for a UUID.
        unsafe { self.cuda.api.cuDeviceGetUuid_v2(&mut uuid, self.handle) }.hip()?;
        Ok(hipUUID { bytes: uuid.bytes })
    }

    /// The architecture as NVIDIA's compiler names it: it is no AMD architecture, and does not pretend to be one.
    pub(crate) fn architecture(&self) -> Outcome<String> {
        let major = self.number(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?;
        let minor = self.number(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?;
        Ok(format!("sm_{major}{minor}"))
    }

    fn architecture_text(&self) -> Outcome<[c_uchar; 256]> {
        let mut text = [0; 256];
        for (to, from) in text.iter_mut().zip(self.architecture()?.bytes()) {
            *to = from;
        }
        Ok(text)
    }

    fn block(&self) -> Outcome<[c_int; 3]> {
        Ok([
            self.number(Attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X)?,
            self.number(Attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y)?,
            self.number(Attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z)?,
        ])
    }

    fn grid(&self) -> Outcome<[c_int; 3]> {
        Ok([
            self.number(Attribute::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X)?,
            self.number(Attribute::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y)?,
            self.number(Attribute::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z)?,
        ])
    }
}

/// Fills fields of both structures that have the same name from attributes, as `field: number` or `field: size`.
macro_rules! fill {
    ($properties:ident, $reader:ident, $($field:ident: $kind:ident $attribute:ident,)*) => {
        $($properties.$field = $reader.$kind(Attribute::$attribute)?;)*
    };
}

/// The fields that both structures have.
macro_rules! common {
    ($properties:ident, $reader:ident) => {
        $properties.name = $reader.name()?;
        $properties.gcnArchName = $reader.architecture_text()?;
        $properties.totalGlobalMem = $reader.total_memory()?;
        $properties.maxThreadsDim = $reader.block()?;
        $properties.maxGridSize = $reader.grid()?;
        fill! { $properties, $reader,
            sharedMemPerBlock: size CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK,
            regsPerBlock: number CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK,
            warpSize: number CU_DEVICE_ATTRIBUTE_WARP_SIZE,
            maxThreadsPerBlock: number CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK,
            clockRate: number CU_DEVICE_ATTRIBUTE_CLOCK_RATE,
            memoryClockRate: number CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE,
            memoryBusWidth: number CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH,
            totalConstMem: size CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY,
            major: number CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
            minor: number CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
            multiProcessorCount: number CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT,
            l2CacheSize: number CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE,
            maxThreadsPerMultiProcessor: number CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR,
            computeMode: number CU_DEVICE_ATTRIBUTE_COMPUTE_MODE,
            concurrentKernels: number CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS,
            pciDomainID: number CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID,
            pciBusID: number CU_DEVICE_ATTRIBUTE_PCI_BUS_ID,
            pciDeviceID: number CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID,
            maxSharedMemoryPerMultiProcessor: size CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR,
            isMultiGpuBoard: number CU_DEVICE_ATTRIBUTE_MULTI_GPU_BOARD,
            canMapHostMemory: number CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY,
            integrated: number CU_DEVICE_ATTRIBUTE_INTEGRATED,
            cooperativeLaunch: number CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH,
            memPitch: size CU_DEVICE_ATTRIBUTE_MAX_PITCH,
            textureAlignment: size CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT,
            texturePitchAlignment: size CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT,
            kernelExecTimeoutEnabled: number CU_DEVICE_ATTRIBUTE_KERNEL_EXEC_TIMEOUT,
            ECCEnabled: number CU_DEVICE_ATTRIBUTE_ECC_ENABLED,
            tccDriver: number CU_DEVICE_ATTRIBUTE_TCC_DRIVER,
            managedMemory: number CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY,
            directManagedMemAccessFromHost:
                number CU_DEVICE_ATTRIBUTE_DIRECT_MANAGED_MEM_ACCESS_FROM_HOST,
            concurrentManagedAccess: number CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS,
            pageableMemoryAccess: number CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS,
            pageableMemoryAccessUsesHostPageTables:
                number CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES,
        }
    };
}

/// The properties as ROCm 5 has them.
pub(crate) fn old(reader: &Reader<'_>) -> Outcome<hipDeviceProp_t> {
    // SAFETY: numbers, arrays of numbers and pointers, for all of which zero is a value.
    let mut properties: hipDeviceProp_t = unsafe { zeroed() };
    common!(properties, reader);
    Ok(properties)
}

/// The properties as ROCm 6 and 7 have them.
pub(crate) fn new(reader: &Reader<'_>) -> Outcome<hipDeviceProp6_t> {
    // SAFETY: as above.
    let mut properties: hipDeviceProp6_t = unsafe { zeroed() };
    common!(properties, reader);
    properties.uuid = reader.uuid()?;
    fill! { properties, reader,
        surfaceAlignment: size CU_DEVICE_ATTRIBUTE_SURFACE_ALIGNMENT,
        asyncEngineCount: number CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT,
        unifiedAddressing: number CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING,
        streamPrioritiesSupported: number CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED,
        sharedMemPerMultiprocessor: size CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR,
        regsPerMultiprocessor: number CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR,
        hostNativeAtomicSupported: number CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED,
        canUseHostPointerForRegisteredMem:
            number CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM,
        sharedMemPerBlockOptin: size CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
        maxBlocksPerMultiProcessor: number CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR,
        reservedSharedMemPerBlock: size CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK,
        hostRegisterSupported: number CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED,
    }
    Ok(properties)
}
