//! The structures have the layout of AMD's headers, wherever those are installed.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![allow(clippy::unwrap_used)] // Writing into a string does not fail.

use rocsim::{
    abi,
    installed::{Part, is_skipped},
};
use std::{ffi::CString, fmt::Write, mem::offset_of, path::Path, process::Command};

/// Text of a C program that compiles if sizes and offsets are equal.
#[derive(Default)]
struct Checks(String);

macro_rules! check {
    ($checks:ident, $rust:ty = $c:literal { $($field:ident = $member:literal),* $(,)? }) => {
        writeln!($checks.0, "_Static_assert(sizeof({}) == {}, \"size\");", $c, size_of::<$rust>()).unwrap();
        $(writeln!(
            $checks.0,
            "_Static_assert(offsetof({}, {}) == {}, \"offset\");",
            $c, $member, offset_of!($rust, $field)
        ).unwrap();)*
    };
}

fn checks() -> String {
    let mut c = Checks::default();
    check!(c, abi::Status = "HSAKMT_STATUS" {});
    check!(c, abi::VersionInfo = "HsaVersionInfo" {});
    check!(c, abi::SystemProperties = "HsaSystemProperties" { num_nodes = "NumNodes" });
    check!(c, abi::NodeProperties = "HsaNodeProperties" {
        num_io_links = "NumIOLinks", capability = "Capability", wave_front_size = "WaveFrontSize",
        num_simd_per_cu = "NumSIMDPerCU", engine_id = "EngineId", device_id = "DeviceId",
        local_mem_size = "LocalMemSize", drm_render_minor = "DrmRenderMinor",
        marketing_name = "MarketingName", amd_name = "AMDName", debug_properties = "DebugProperties",
        hive_id = "HiveID", num_sdma_engines = "NumSdmaEngines", num_cp_queues = "NumCpQueues",
        domain = "Domain", unique_id = "UniqueID", sgpr_size_per_cu = "SGPRSizePerCU",
    });
    check!(c, abi::MemoryProperties = "HsaMemoryProperties" {
        size_in_bytes = "SizeInBytes", virtual_base_address = "VirtualBaseAddress",
    });
    check!(c, abi::CacheProperties = "HsaCacheProperties" { cache_type = "CacheType" });
    check!(c, abi::IoLinkProperties = "HsaIoLinkProperties" { node_to = "NodeTo", flags = "Flags" });
    check!(c, abi::ClockCounters = "HsaClockCounters" { system_clock_counter = "SystemClockCounter" });
    check!(c, abi::GpuTileConfig = "HsaGpuTileConfig" { num_ranks = "NumRanks" });
    check!(c, abi::MemFlags = "HsaMemFlags" {});
    check!(c, abi::PointerInfo = "HsaPointerInfo" {
        mem_flags = "MemFlags", cpu_address = "CPUAddress", gpu_address = "GPUAddress",
        n_mapped_nodes = "NMappedNodes", mapped_nodes = "MappedNodes", user_data = "UserData",
    });
    check!(c, abi::SharedMemoryHandle = "HsaSharedMemoryHandle" {});
    check!(c, abi::SvmAttribute = "HSA_SVM_ATTRIBUTE" { value = "value" });
    check!(c, abi::EventDescriptor = "HsaEventDescriptor" { sync_var = "SyncVar" });
    check!(c, abi::MemoryAccessFault = "HsaMemoryAccessFault" {
        virtual_address = "VirtualAddress", failure = "Failure", flags = "Flags",
    });
    check!(c, abi::EventData = "HsaEventData" { payload = "EventData", hw_data1 = "HWData1", hw_data3 = "HWData3" });
    check!(c, abi::Event = "HsaEvent" { event_data = "EventData" });
    check!(c, abi::QueueResource = "HsaQueueResource" {
        doorbell = "Queue_DoorBell", write_ptr = "Queue_write_ptr", read_ptr = "Queue_read_ptr",
        error_reason = "ErrorReason",
    });
    check!(c, abi::AmdSignal = "amd_signal_t" {
        value = "value", event_mailbox_ptr = "event_mailbox_ptr", event_id = "event_id", start_ts = "start_ts",
        end_ts = "end_ts",
    });
    check!(c, abi::AmdQueue = "amd_queue_t" {
        write_dispatch_id = "write_dispatch_id", read_dispatch_id = "read_dispatch_id",
        queue_properties = "queue_properties", queue_inactive_signal = "queue_inactive_signal",
    });
    check!(c, abi::DispatchPacket = "hsa_kernel_dispatch_packet_t" {
        workgroup_size = "workgroup_size_x", grid_size = "grid_size_x", group_segment_size = "group_segment_size",
        kernel_object = "kernel_object", kernarg_address = "kernarg_address",
        completion_signal = "completion_signal",
    });
    check!(c, abi::BarrierPacket = "hsa_barrier_and_packet_t" {
        dep_signal = "dep_signal", completion_signal = "completion_signal",
    });
    check!(c, abi::BarrierValuePacket = "hsa_amd_barrier_value_packet_t" {
        signal = "signal", value = "value", mask = "mask", cond = "cond", completion_signal = "completion_signal",
    });
    for (value, name) in [
        (abi::Status::NO_MEMORY.0, "HSAKMT_STATUS_NO_MEMORY"),
        (abi::Status::NOT_SUPPORTED.0, "HSAKMT_STATUS_NOT_SUPPORTED"),
        (abi::Status::WAIT_TIMEOUT.0, "HSAKMT_STATUS_WAIT_TIMEOUT"),
        (abi::Status::MEMORY_NOT_REGISTERED.0, "HSAKMT_STATUS_MEMORY_NOT_REGISTERED"),
        (abi::heap::MMIO_REMAP, "HSA_HEAPTYPE_MMIO_REMAP"),
        (abi::heap::FRAME_BUFFER_PRIVATE, "HSA_HEAPTYPE_FRAME_BUFFER_PRIVATE"),
        (abi::pointer::REGISTERED_SHARED, "HSA_POINTER_REGISTERED_SHARED"),
        (abi::svm::GRANULARITY, "HSA_SVM_ATTR_GRANULARITY"),
        (abi::event_type::MEMORY, "HSA_EVENTTYPE_MEMORY"),
        (abi::queue_type::COMPUTE_AQL, "HSA_QUEUE_COMPUTE_AQL"),
        (abi::queue_type::SDMA_XGMI, "HSA_QUEUE_SDMA_XGMI"),
        (u32::from(abi::packet::BARRIER_OR), "HSA_PACKET_TYPE_BARRIER_OR"),
        (u32::from(abi::amd_format::BARRIER_VALUE), "HSA_AMD_PACKET_TYPE_BARRIER_VALUE"),
    ] {
        writeln!(c.0, "_Static_assert({name} == {value}, \"value\");").unwrap();
    }
    c.0
}

/// The bits of a bit field, as the C compiler lays them out: asked by a program that prints them.
const BITS: &str = r#"
#include <stdio.h>
int main(void) {
    HSA_CAPABILITY c = {0}; c.ui32.DoorbellType = 1; printf("%u ", c.Value);
    c.Value = 0; c.ui32.ASICRevision = 1; printf("%u ", c.Value);
    c.Value = 0; c.ui32.WatchPointsTotalBits = 1; printf("%u ", c.Value);
    c.Value = 0; c.ui32.SRAM_EDCSupport = 1; printf("%u ", c.Value);
    c.Value = 0; c.ui32.SVMAPISupported = 1; printf("%u ", c.Value);
    HsaMemFlags f; f.Value = 0; f.ui32.HostAccess = 1; printf("%u ", f.Value);
    f.Value = 0; f.ui32.Scratch = 1; printf("%u ", f.Value);
    f.Value = 0; f.ui32.ExecuteAccess = 1; printf("%u ", f.Value);
    f.Value = 0; f.ui32.FixedAddress = 1; printf("%u ", f.Value);
    HSA_ENGINE_ID e; e.Value = 0; e.ui32.Major = 1; printf("%u ", e.Value);
    e.Value = 0; e.ui32.Minor = 1; printf("%u ", e.Value);
    e.Value = 0; e.ui32.Stepping = 1; printf("%u ", e.Value);
    return 0;
}
"#;

#[test]
fn layouts_equal_those_of_amds_headers() {
    if is_skipped(&[Part::ThunkHeaders, Part::HsaHeaders, Part::Cc]) {
        return;
    }
    let includes = "#include <stddef.h>\n#include <hsakmttypes.h>\n#include <hsa/hsa.h>\n\
                    #include <hsa/hsa_ext_amd.h>\n#include <hsa/amd_hsa_queue.h>\n#include <hsa/amd_hsa_signal.h>\n";
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (source, program) = (directory.join("abi.c"), directory.join("abi"));
    std::fs::write(&source, format!("{includes}{}{BITS}", checks())).unwrap();
    let output =
        Command::new("cc").args(["-I/usr/include/hsa", "-o"]).args([&program, &source]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));

    let printed = Command::new(&program).output().unwrap().stdout;
    let bits: Vec<u32> =
        String::from_utf8_lossy(&printed).split_whitespace().map(|bit| bit.parse().unwrap()).collect();
    let expected = [
        1 << abi::capability::DOORBELL_TYPE_SHIFT,
        1 << abi::capability::ASIC_REVISION_SHIFT,
        1 << abi::capability::WATCH_POINTS_TOTAL_BITS_SHIFT,
        abi::capability::SRAM_EDC_SUPPORT,
        abi::capability::SVM_API_SUPPORTED,
        abi::MemFlags::HOST_ACCESS,
        abi::MemFlags::SCRATCH,
        abi::MemFlags::EXECUTE_ACCESS,
        abi::MemFlags::FIXED_ADDRESS,
        1 << 10,
        1 << 16,
        1 << 24,
    ];
    assert_eq!(bits, expected);
}

#[test]
fn every_function_of_the_header_is_there_in_amds_version() {
    if is_skipped(&[Part::ThunkHeaders]) {
        return;
    }
    let text = std::fs::read_to_string("/usr/include/hsakmt.h").unwrap();
    // Declarations put the name at the start of a line, comments do not.
    let names: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with("hsaKmt"))
        .map(|line| line.split(|c: char| !c.is_alphanumeric()).next().unwrap_or(line))
        .collect();
    assert!(names.len() > 60, "{names:?}");
    let library = std::env::current_exe().unwrap().with_file_name("librocsim.so");
    let library = CString::new(library.to_str().unwrap()).unwrap();
    // SAFETY: the library has no initialisers with preconditions.
    let handle = unsafe { libc::dlopen(library.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    assert!(!handle.is_null());
    for name in names {
        let name = CString::new(name).unwrap();
        let version = if cfg!(rocsim_versioned) { c"HSAKMT_1" } else { c"" };
        // SAFETY: the handle is valid and both names are C strings.
        let found = unsafe {
            if version.is_empty() {
                libc::dlsym(handle, name.as_ptr())
            } else {
                libc::dlvsym(handle, name.as_ptr(), version.as_ptr())
            }
        };
        assert!(!found.is_null(), "{name:?} {version:?}");
    }
}
