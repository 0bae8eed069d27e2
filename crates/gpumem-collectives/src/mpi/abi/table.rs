//! The declarations, which the macro makes public. They are seen in this crate alone.

use super::*;

#[cfg(all(test, not(miri)))]
pub(crate) mod double;

gpumem_sys::functions! {
    /// The functions.
    Functions {
        fn MPI_Abi_get_version(major: *mut c_int, minor: *mut c_int) -> c_int;
        fn MPI_Get_library_version(text: *mut c_char, length: *mut c_int) -> c_int;
        fn MPI_Initialized(flag: *mut c_int) -> c_int;
        fn MPI_Finalized(flag: *mut c_int) -> c_int;
        fn MPI_Init_thread(argc: *mut c_int, argv: *mut c_void, required: c_int, provided: *mut c_int) -> c_int;
        fn MPI_Query_thread(provided: *mut c_int) -> c_int;
        fn MPI_Finalize() -> c_int;
        fn MPI_Error_string(code: c_int, text: *mut c_char, length: *mut c_int) -> c_int;
        fn MPI_Comm_set_errhandler(comm: Object, handler: Object) -> c_int;
        fn MPI_Comm_create_keyval(copy: *const c_void, delete: DeleteAttribute, key: *mut c_int, state: *mut c_void) -> c_int;
        fn MPI_Comm_set_attr(comm: Object, key: c_int, value: *mut c_void) -> c_int;
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
