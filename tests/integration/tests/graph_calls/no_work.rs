//! Calls without a row: they give a device nothing to do, or are not made here.

/// Calls that give a device nothing to do, of each type: they look at a handle, make views, or belong to what no recording has.
pub(crate) const NO_WORK: &[(&str, &str)] = &[
    ("Stream", "device kind submission_index"),
    (
        "Device",
        "barrier can_access_peer capabilities counters defer_cleanup deferred_limits driver_memory flush from_raw info \
         list memory_info memory_report memory_request memory_resource name on_exhaustion open open_default open_first_available \
         pending_frees pool_options raw record_memory select set_deferred_limits set_memory_resource set_peer_access \
         set_transfer_options take_errors transfer_options trim with_current",
    ),
    // Memory of the caller: what is made of it is from outside.
    (
        "Device",
        "adopt_array foreign_array mapped pinned register register_foreign register_foreign_mapped register_mapped",
    ),
    (
        "ArrayBase",
        "address broadcast byte_len copy_plan detach detach_as device driver_block field field_mut freeze host_address index_axis \
         index_axis_mut insert_axis into_array into_dimensionality into_dyn into_elements inverted_axis is_c_contiguous is_empty \
         is_f_contiguous is_read_only kind layout len ndim permuted_axes ravel raw_dim reinterpret reshape reshape_infer \
         reshape_mut reshape_with_order reversed_axes shape slice slice_mut split split_at split_at_mut split_mut squeeze \
         squeeze_axis strides t try_into_array view view_mut",
    ),
    // As a drop.
    ("ArrayBase", "free"),
    ("HostArray", "free"),
    (
        "HostArray",
        "advise deregister device device_view device_view_mut give_back is_empty kind layout len shape",
    ),
    ("UninitArray", "assume_init raw_access shape"),
    ("UninitHostArray", "assume_init shape"),
    ("IpcArray", "into_array layout shape"),
    // There is none of a recording.
    ("Event", "completed elapsed_since query synchronize"),
    ("Graph", "device dot report"),
    ("GraphMemory", "new"),
    ("Scope", "mapped pinned stream"),
    // Of arrays from outside. What leaves the device does so on a stream of the manager.
    ("SpillManager", "add open report sleep"),
    ("Spillable", "evict is_empty is_resident len shape"),
    ("Kernel", "name"),
    (
        "KernelDef",
        "bounds_checks compile compile_with compiler_flag constant_bytes contract entry fatbin host_body host_form host_loop \
         image launch_bounds name new portable_text ptx race_checks sealed shared_bytes shown_as source source_text unsealed",
    ),
    ("UntypedKernelDef", "bounds_checks compiler_flag contract host_body new portable_text source"),
    ("UntypedArguments", "new slice slice_mut value varying view view_mut"),
    ("ArrayOps", "on"),
    ("OnStream", "on"),
    ("Communicator", "abort destroy device failure on rank recent size split split_all wait_until_joined"),
    ("CommunicatorId", "from_bytes mpi new to_bytes"),
    ("Operations", "name_elements"),
    ("gpumem_runtime", "cuda_array cuda_array_mut is_cuda_array reads view_at view_mut_at writes"),
];

/// Calls that this test does not make: of other processes and of other libraries, and the end of a device.
pub(crate) const NOT_RUN: &[(&str, &str)] = &[
    ("Device", "as_cuda_array from_cuda_array_interface ipc_array open_ipc reset"),
    ("ArrayBase", "ipc_handle"),
    ("IpcArray", "copy_to_device copy_to_host snapshot"),
];
