//! The functions and constants of MPI's standard ABI (version 1, of MPI 5.0) that the engine uses.
//!
//! Handles are pointers that the library makes, or small numbers of the standard. So every implementation of the ABI takes
//! them.

use crate::step::Combine;
use std::ffi::{c_char, c_int, c_void};

/// An object of the library. The numbers below are those of the standard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub(crate) struct Object(pub(crate) usize);

pub(crate) const COMM_NULL: Object = Object(0x100);
pub(crate) const COMM_WORLD: Object = Object(0x101);
pub(crate) const COMM_SELF: Object = Object(0x102);
pub(crate) const GROUP_NULL: Object = Object(0x108);
pub(crate) const ERRORS_RETURN: Object = Object(0x143);
pub(crate) const REQUEST_NULL: Object = Object(0x180);

pub(crate) const OP_NULL: Object = Object(0x20);
pub(crate) const SUM: Object = Object(0x21);
pub(crate) const MIN: Object = Object(0x22);
pub(crate) const MAX: Object = Object(0x23);
pub(crate) const PROD: Object = Object(0x24);

pub(crate) const DATATYPE_NULL: Object = Object(0x200);
pub(crate) const FLOAT: Object = Object(0x210);
pub(crate) const C_FLOAT_COMPLEX: Object = Object(0x212);
pub(crate) const DOUBLE: Object = Object(0x214);
pub(crate) const C_DOUBLE_COMPLEX: Object = Object(0x216);
pub(crate) const INT8_T: Object = Object(0x240);
pub(crate) const UINT8_T: Object = Object(0x241);
pub(crate) const BYTE: Object = Object(0x247);
pub(crate) const INT32_T: Object = Object(0x250);
pub(crate) const UINT32_T: Object = Object(0x251);
pub(crate) const INT64_T: Object = Object(0x258);
pub(crate) const UINT64_T: Object = Object(0x259);

pub(crate) const SUCCESS: c_int = 0;
pub(crate) const ERR_TRUNCATE: c_int = 15;
pub(crate) const ANY_SOURCE: c_int = -1;
pub(crate) const THREAD_MULTIPLE: c_int = 4096;
pub(crate) const MAX_ERROR_STRING: usize = 512;
pub(crate) const MAX_LIBRARY_VERSION_STRING: usize = 8192;
/// A pointer that stands for the other buffer of a call.
pub(crate) const IN_PLACE: usize = 1;

/// `MPI_Count` and `MPI_Aint`.
pub(crate) type Count = i64;
/// `MPI_Status`.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct Status {
    pub(crate) source: c_int,
    pub(crate) tag: c_int,
    pub(crate) error: c_int,
    internal: [c_int; 5],
}

/// The declarations, which the macro makes public. They are seen in this crate alone.
pub(crate) mod table {
    use super::*;

    gpumem_hsa_sys::functions! {
        /// The functions.
        Functions {
            fn MPI_Abi_get_version(major: *mut c_int, minor: *mut c_int) -> c_int;
            fn MPI_Get_library_version(text: *mut c_char, length: *mut c_int) -> c_int;
            fn MPI_Initialized(flag: *mut c_int) -> c_int;
            fn MPI_Finalized(flag: *mut c_int) -> c_int;
            fn MPI_Init_thread(argc: *mut c_int, argv: *mut c_void, required: c_int, provided: *mut c_int) -> c_int;
            fn MPI_Query_thread(provided: *mut c_int) -> c_int;
            fn MPI_Finalize() -> c_int;
            fn MPI_Error_class(code: c_int, class: *mut c_int) -> c_int;
            fn MPI_Error_string(code: c_int, text: *mut c_char, length: *mut c_int) -> c_int;
            fn MPI_Comm_set_errhandler(comm: Object, handler: Object) -> c_int;
            fn MPI_Comm_rank(comm: Object, rank: *mut c_int) -> c_int;
            fn MPI_Comm_size(comm: Object, size: *mut c_int) -> c_int;
            fn MPI_Comm_idup(comm: Object, copy: *mut Object, request: *mut Object) -> c_int;
            fn MPI_Comm_group(comm: Object, group: *mut Object) -> c_int;
            fn MPI_Comm_create_group(comm: Object, group: Object, tag: c_int, part: *mut Object) -> c_int;
            fn MPI_Comm_free(comm: *mut Object) -> c_int;
            fn MPI_Group_incl(group: Object, count: c_int, ranks: *const c_int, part: *mut Object) -> c_int;
            fn MPI_Group_free(group: *mut Object) -> c_int;
            fn MPI_Type_contiguous_c(count: Count, element: Object, datatype: *mut Object) -> c_int;
            fn MPI_Type_commit(datatype: *mut Object) -> c_int;
            fn MPI_Op_create_c(function: Combine, commutes: c_int, operation: *mut Object) -> c_int;
            fn MPI_Test(request: *mut Object, flag: *mut c_int, status: *mut Status) -> c_int;
            fn MPI_Cancel(request: *mut Object) -> c_int;
            fn MPI_Get_count_c(status: *const Status, datatype: Object, count: *mut Count) -> c_int;
            fn MPI_Isend_c(data: *const c_void, count: Count, datatype: Object, to: c_int, tag: c_int, comm: Object, request: *mut Object) -> c_int;
            fn MPI_Irecv_c(data: *mut c_void, count: Count, datatype: Object, from: c_int, tag: c_int, comm: Object, request: *mut Object) -> c_int;
            fn MPI_Ibarrier(comm: Object, request: *mut Object) -> c_int;
            fn MPI_Ibcast_c(data: *mut c_void, count: Count, datatype: Object, root: c_int, comm: Object, request: *mut Object) -> c_int;
            fn MPI_Iallreduce_c(send: *const c_void, receive: *mut c_void, count: Count, datatype: Object, operation: Object, comm: Object, request: *mut Object) -> c_int;
            fn MPI_Ireduce_c(send: *const c_void, receive: *mut c_void, count: Count, datatype: Object, operation: Object, root: c_int, comm: Object, request: *mut Object) -> c_int;
            fn MPI_Ireduce_scatter_block_c(send: *const c_void, receive: *mut c_void, count: Count, datatype: Object, operation: Object, comm: Object, request: *mut Object) -> c_int;
            fn MPI_Iallgather_c(send: *const c_void, send_count: Count, send_type: Object, receive: *mut c_void, receive_count: Count, receive_type: Object, comm: Object, request: *mut Object) -> c_int;
            fn MPI_Igather_c(send: *const c_void, send_count: Count, send_type: Object, receive: *mut c_void, receive_count: Count, receive_type: Object, root: c_int, comm: Object, request: *mut Object) -> c_int;
            fn MPI_Iscatter_c(send: *const c_void, send_count: Count, send_type: Object, receive: *mut c_void, receive_count: Count, receive_type: Object, root: c_int, comm: Object, request: *mut Object) -> c_int;
            fn MPI_Ialltoall_c(send: *const c_void, send_count: Count, send_type: Object, receive: *mut c_void, receive_count: Count, receive_type: Object, comm: Object, request: *mut Object) -> c_int;
            fn MPI_Ialltoallv_c(send: *const c_void, send_counts: *const Count, send_offsets: *const Count, send_type: Object, receive: *mut c_void, receive_counts: *const Count, receive_offsets: *const Count, receive_type: Object, comm: Object, request: *mut Object) -> c_int;
        }
    }
}
