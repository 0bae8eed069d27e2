//! The headers, and the declarations taken from each.

use super::place::Place;

/// The headers of one crate.
pub(super) struct Headers {
    /// The file that is made of them.
    pub(super) output: &'static str,
    /// The includes, in order.
    pub(super) includes: &'static [&'static str],
    /// Macros that choose among the declarations.
    pub(super) defines: &'static [&'static str],
    /// Where the headers lie.
    pub(super) place: Place,
    /// Headers of other libraries that they include, and the little that is needed of each.
    pub(super) stubs: &'static [(&'static str, &'static str)],
    /// A file whose text tells their version, and what it must contain.
    version: (&'static str, &'static [&'static str]),
    /// The package that brings them, for the messages.
    package: &'static str,
    /// The version in words, for the head of the file.
    pub(super) title: &'static str,
    /// Tables of functions: the name, a description, and the functions, as regular expressions.
    pub(super) tables: &'static [Table],
    /// Types that no function names, and constants; regular expressions.
    pub(super) types: &'static [&'static str],
    pub(super) constants: &'static [&'static str],
    /// Values of enumerations of which only some are used: how their names begin, and those that are kept.
    pub(super) values: &'static [(&'static str, &'static [&'static str])],
    /// Structures that are only handed on, made as so many bytes.
    pub(super) opaque: &'static [&'static str],
}

/// While a thread captures a stream in HIP's default mode, these fail on every thread that is not in the relaxed mode, and end the
/// capture.
const RELAXED: &[&str] = &[
    "hipMalloc",
    "hipExtMallocWithFlags",
    "hipMallocManaged",
    "hipFree",
    "hipHostMalloc",
    "hipHostFree",
    "hipHostRegister",
    "hipHostUnregister",
    "hipMemAdvise",
    "hipMemGetAddressRange",
    "hipIpcOpenMemHandle",
    "hipIpcCloseMemHandle",
    "hipDeviceEnablePeerAccess",
    "hipDeviceDisablePeerAccess",
    "hipStreamCreateWithPriority",
    "hipStreamDestroy",
    "hipStreamQuery",
    "hipStreamSynchronize",
    "hipStreamBeginCapture",
    "hipStreamEndCapture",
    "hipEventCreateWithFlags",
    "hipEventDestroy",
    "hipEventQuery",
    "hipEventSynchronize",
    "hipEventElapsedTime",
    "hipModuleLoadData",
    "hipModuleUnload",
    "hipGraphInstantiateWithFlags",
    "hipGraphExecDestroy",
    "hipGraphDestroy",
];

pub(super) struct Table {
    pub(super) name: &'static str,
    pub(super) what: &'static str,
    /// The functions of this table begin so, and those of an earlier table do not.
    pub(super) prefix: &'static str,
    pub(super) functions: &'static [&'static str],
    /// Those that are called in the relaxed mode of captures.
    pub(super) relaxed: &'static [&'static str],
}

impl Headers {
    /// Why the bindings cannot be made from the installed headers.
    pub(super) fn missing(&self) -> Option<String> {
        let (file, words) = self.version;
        let Some(folder) = self.place.find(file) else {
            return Some(format!("{} is not installed (no {file} in {})", self.package, self.place));
        };
        let Ok(text) = std::fs::read_to_string(folder.join(file)) else {
            return Some(format!("{} cannot be read", folder.join(file).display()));
        };
        let other = words.iter().find(|word| !text.contains(**word))?;
        Some(format!("{file} is another version than {}: it lacks {other:?}", self.title))
    }
}

pub(super) const HEADERS: &[Headers] = &[
    NCCL,
    Headers {
        output: "crates/gpumem-sys/src/hip/bindings.rs",
        includes: &["hip/hip_runtime_api.h", "hip/hiprtc.h"],
        defines: &["__HIP_PLATFORM_AMD__"],
        place: Place::System,
        stubs: &[],
        version: ("hip/hip_version.h", &["HIP_VERSION_MAJOR 5", "HIP_VERSION_MINOR 2"]),
        package: "libamdhip64-dev",
        title: "HIP 5.2",
        tables: &[
            Table {
                name: "Hiprtc",
                what: "hipRTC, the run-time compiler.",
                prefix: "hiprtc",
                functions: &[
                    "hiprtc(Version|CreateProgram|CompileProgram|DestroyProgram)",
                    "hiprtcGet(ProgramLog|ProgramLogSize|Code|CodeSize)",
                ],
                relaxed: &[],
            },
            Table {
                name: "Hip",
                what: "The HIP runtime (`libamdhip64`).",
                prefix: "hip",
                functions: &[
                    "hip(Init|RuntimeGetVersion|GetLastError|GetErrorName)",
                    "hip(GetDevice|SetDevice|GetDeviceCount|GetDeviceProperties)",
                    "hipDevice(GetName|GetUuid|TotalMem|GetAttribute)",
                    "hipDevice(Synchronize|Reset|CanAccessPeer|EnablePeerAccess|DisablePeerAccess)",
                    "hipDeviceGetStreamPriorityRange",
                    "hip(Malloc|Free|MallocManaged|ExtMallocWithFlags)",
                    "hip(HostMalloc|HostFree|HostRegister|HostUnregister|HostGetDevicePointer)",
                    "hipMem(GetInfo|GetAddressRange|Advise|PrefetchAsync)",
                    "hipPointerGetAttributes",
                    "hipIpc(Get|Open|Close)MemHandle",
                    "hipMemcpy(PeerAsync|Async|WithStream|2DAsync|3DAsync)",
                    "hipMemset(2DAsync|D8Async|D16Async|D32Async)",
                    "hipStream(CreateWithPriority|Destroy|Query|Synchronize|WaitEvent|IsCapturing)",
                    "hipStream(BeginCapture|EndCapture|GetCaptureInfo_v2)",
                    "hipThreadExchangeStreamCaptureMode",
                    "hipGraph(GetNodes|InstantiateWithFlags|Launch|ExecKernelNodeSetParams|ExecDestroy|Destroy)",
                    "hipEvent(CreateWithFlags|Destroy|Record|Query|Synchronize|ElapsedTime)",
                    "hipModule(LoadData|Unload|GetFunction|GetGlobal|LaunchKernel)",
                    "hipFuncGetAttribute",
                ],
                relaxed: RELAXED,
            },
        ],
        types: &["hipMemoryType", "hipPointerAttribute_t", "hipFunction_attribute", "hipMemoryAdvise"],
        constants: &[
            "hipHostMalloc(Portable|Mapped|WriteCombined|Coherent|NonCoherent)",
            "hipHostRegister(Portable|Mapped)|hipMemAttach(Global|Host)|hipDeviceMallocFinegrained",
            "hipEvent(BlockingSync|DisableTiming|ReleaseToSystem)|hipStream(Default|NonBlocking)",
            "hipIpcMemLazyEnablePeerAccess",
        ],
        values: &[
            (
                "hipDeviceAttribute",
                &[
                    "CanMapHostMemory",
                    "ConcurrentManagedAccess",
                    "ManagedMemory",
                    "MaxBlockDimX",
                    "MaxBlockDimY",
                    "MaxBlockDimZ",
                    "MaxGridDimX",
                    "MaxGridDimY",
                    "MaxGridDimZ",
                    "MaxPitch",
                    "MaxSharedMemoryPerBlock",
                    "MaxThreadsPerBlock",
                    "MultiprocessorCount",
                    "PciBusId",
                    "PciDeviceId",
                    "PciDomainID",
                    "TotalConstantMemory",
                    "WarpSize",
                ],
            ),
            ("HIP_FUNC_ATTRIBUTE_", &["MAX_THREADS_PER_BLOCK", "SHARED_SIZE_BYTES"]),
        ],
        opaque: &["hipDeviceArch_t", "hipArray"],
    },
    Headers {
        output: "crates/gpumem-sys/src/hsa/bindings.rs",
        includes: &["hsa/hsa.h", "hsa/hsa_ext_amd.h"],
        defines: &[],
        place: Place::System,
        stubs: &[],
        version: ("hsa/hsa_ext_amd.h", &["hsa_amd_memory_lock_to_pool", "hsa_amd_svm_attributes_get"]),
        package: "libhsa-runtime-dev",
        title: "the HSA runtime of ROCm 5.2",
        tables: &[Table {
            name: "Hsa",
            what: "The HSA runtime (`libhsa-runtime64`).",
            prefix: "hsa_",
            functions: &[
                "hsa_(init|iterate_agents|agent_get_info)",
                "hsa_memory_(register|deregister)",
                "hsa_amd_(agent_iterate_memory_pools|memory_pool_get_info)",
                "hsa_amd_memory_(pool_allocate|pool_free|lock|lock_to_pool|unlock)",
                "hsa_amd_(agents_allow_access|pointer_info)",
            ],
            relaxed: &[],
        }],
        types: &[
            "hsa_agent_info_t",
            "hsa_amd_agent_info_t",
            "hsa_amd_memory_pool_(info|global_flag)_t",
            "hsa_amd_segment_t",
            "hsa_device_type_t",
        ],
        constants: &[],
        values: &[
            (
                "HSA_STATUS_",
                &[
                    "SUCCESS",
                    "ERROR",
                    "ERROR_INVALID_ALLOCATION",
                    "ERROR_OUT_OF_RESOURCES",
                    "ERROR_EXCEPTION",
                ],
            ),
            ("HSA_AGENT_INFO_", &["NAME", "WAVEFRONT_SIZE", "DEVICE"]),
            ("HSA_AMD_AGENT_INFO_", &["DRIVER_NODE_ID", "BDFID", "DOMAIN"]),
            ("HSA_EXT_POINTER_TYPE_", &[]),
        ],
        opaque: &[],
    },
];

const NCCL: Headers = Headers {
    output: "crates/gpumem-sys/src/nccl/bindings.rs",
    includes: &["nccl.h"],
    defines: &[],
    place: Place::BesideLibrary("GPUMEM_NCCL"),
    // Streams and events of CUDA and of HIP are pointers to something unknown.
    stubs: &[
        ("cuda_runtime.h", "#include <stddef.h>\ntypedef void *cudaStream_t;\ntypedef void *cudaEvent_t;\n"),
        ("cuda_fp16.h", ""),
    ],
    version: ("nccl.h", &["NCCL_MAJOR 2\n", "NCCL_MINOR 32\n", "NCCL_PATCH 3\n"]),
    package: "nvidia-nccl-cu13 (PyPI)",
    title: "NCCL 2.32.3",
    tables: &[Table {
        name: "Nccl",
        what: "NCCL (`libnccl`) and RCCL (`librccl`).",
        prefix: "nccl",
        functions: &[
            "ncclGet(Version|UniqueId|ErrorString|LastError)",
            "ncclComm(InitRank|Destroy|Abort|Revoke|GetAsyncError|Register|Deregister)",
            "nccl(AllReduce|Broadcast|Reduce|AllGather|ReduceScatter|AlltoAll|Send|Recv)",
            "nccl(GroupStart|GroupEnd)",
        ],
        relaxed: &[],
    }],
    types: &["ncclRedOp_t"],
    constants: &[],
    values: &[],
    opaque: &[],
};

/// RCCL's, of which nothing is made.
pub(super) const RCCL: Headers = Headers {
    output: "",
    includes: &["rccl/rccl.h"],
    defines: &[],
    place: Place::BesideLibrary("GPUMEM_RCCL"),
    stubs: &[
        ("hip/hip_runtime.h", "#include <stddef.h>\ntypedef void *hipStream_t;\n"),
        ("hip/hip_fp16.h", ""),
    ],
    version: ("rccl/rccl.h", &["NCCL_MAJOR 2\n"]),
    package: "librccl-dev",
    title: "RCCL",
    tables: &[Table {
        name: "Rccl",
        what: "RCCL (`librccl`).",
        prefix: "nccl",
        functions: &["nccl.*"],
        relaxed: &[],
    }],
    types: &[],
    constants: &[],
    values: &[],
    opaque: &[],
};
