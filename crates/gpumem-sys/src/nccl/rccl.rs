//! Functions that only RCCL has.

use super::{cudaStream_t, functions, ncclComm_t, ncclDataType_t, ncclResult_t};
use core::ffi::c_void;

functions! {
    /// Functions that RCCL (`librccl`) has and NCCL does not. NCCL's `ncclAlltoAll` is spelled otherwise.
    Rccl {
        fn ncclAllToAll(sendbuff: *const c_void, recvbuff: *mut c_void, count: usize, datatype: ncclDataType_t, comm: ncclComm_t, stream: cudaStream_t) -> ncclResult_t;
    }
}
