//! The thunk's other functions: debugging, performance counters, graphics. None is simulated.

use super::export;
use crate::abi::Status;

/// Functions that say so. C lets a function be called with arguments that it does not look at.
macro_rules! unsupported {
    ($($symbol:literal => $name:ident,)*) => {
        export! {$(
            $symbol => unsafe fn $name() -> Status { Status::NOT_SUPPORTED }
        )*}
    };
}

unsupported! {
    "hsaKmtAllocQueueGWS" => alloc_queue_gws,
    "hsaKmtDbgAddressWatch" => dbg_address_watch,
    "hsaKmtDbgRegister" => dbg_register,
    "hsaKmtDbgUnregister" => dbg_unregister,
    "hsaKmtDbgWavefrontControl" => dbg_wavefront_control,
    "hsaKmtGetKernelDebugTrapVersionInfo" => get_kernel_debug_trap_version_info,
    "hsaKmtGetQueueInfo" => get_queue_info,
    "hsaKmtMapGraphicHandle" => map_graphic_handle,
    "hsaKmtPmcAcquireTraceAccess" => pmc_acquire_trace_access,
    "hsaKmtPmcGetCounterProperties" => pmc_get_counter_properties,
    "hsaKmtPmcQueryTrace" => pmc_query_trace,
    "hsaKmtPmcRegisterTrace" => pmc_register_trace,
    "hsaKmtPmcReleaseTraceAccess" => pmc_release_trace_access,
    "hsaKmtPmcStartTrace" => pmc_start_trace,
    "hsaKmtPmcStopTrace" => pmc_stop_trace,
    "hsaKmtPmcUnregisterTrace" => pmc_unregister_trace,
    "hsaKmtProcessVMRead" => process_vm_read,
    "hsaKmtProcessVMWrite" => process_vm_write,
    "hsaKmtRegisterGraphicsHandleToNodes" => register_graphics_handle_to_nodes,
    "hsaKmtReportQueue" => report_queue,
    "hsaKmtSPMAcquire" => spm_acquire,
    "hsaKmtSPMRelease" => spm_release,
    "hsaKmtSPMSetDestBuffer" => spm_set_dest_buffer,
    "hsaKmtUnmapGraphicHandle" => unmap_graphic_handle,
}
