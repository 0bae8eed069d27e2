//! Kernels compiled by AMD's compiler run from their machine code and as functions of the host, on every GPU that is
//! simulated.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

mod common;

use common::{
    Simulator,
    hip::{HipApi, NOT_FOUND, TO_DEVICE, TO_HOST},
    hsa::host_bytes,
    ok,
};
use rocsim::{
    installed::{Part, is_skipped},
    kernels::registry::Dispatch,
};
use std::{
    env,
    ffi::{CStr, c_void},
    ptr,
};

const SOURCE: &str = r#"
extern "C" __global__ void axpy(const float* x, float* y, float a, int n) {
    extern __shared__ float scratch[];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) { scratch[threadIdx.x] = x[i]; y[i] += a * scratch[threadIdx.x]; }
}
extern "C" __global__ void unknown(int* x) { asm volatile("s_cbranch_cdbgsys 0"); *x = 1; }
"#;

const N: usize = 10_000;

/// The arguments of `axpy`, as the compiler lays them out.
#[repr(C)]
struct Axpy {
    x: u64,
    y: u64,
    a: f32,
    n: i32,
}

unsafe extern "C" fn axpy(arguments: *const c_void, dispatch: *const Dispatch) -> i32 {
    // SAFETY: the simulator passes the kernel's arguments and a dispatch that lives during the call.
    let (arguments, dispatch) = unsafe { (&*arguments.cast::<Axpy>(), &*dispatch) };
    assert_eq!((dispatch.bytes as usize, dispatch.node), (size_of::<Dispatch>(), 1));
    // SAFETY: the name is a C string.
    assert_eq!(unsafe { CStr::from_ptr(dispatch.name) }, c"axpy");
    assert_eq!((dispatch.grid, dispatch.workgroup), ([10_240, 1, 1], [256, 1, 1]));
    assert_eq!((dispatch.group_segment_bytes, dispatch.group_segment_fixed_bytes), (1024, 0));
    assert!(dispatch.kernarg_bytes as usize >= size_of::<Axpy>());
    let bytes = arguments.n as u64 * 4;
    // SAFETY: `translate` takes the dispatch that was passed.
    let (x, y) = unsafe {
        let x = (dispatch.translate)(dispatch, arguments.x, bytes).cast::<f32>();
        (x, (dispatch.translate)(dispatch, arguments.y, bytes).cast::<f32>())
    };
    if x.is_null() || y.is_null() {
        return 1;
    }
    for index in 0..arguments.n as usize {
        // SAFETY: both have `n` elements, and no other work runs on the device meanwhile.
        unsafe { *y.add(index) += arguments.a * *x.add(index) };
    }
    0
}

unsafe extern "C" fn trap(_arguments: *const c_void, _dispatch: *const Dispatch) -> i32 {
    3
}

/// Launches `axpy` on a stream with these addresses.
fn launch(hip: &HipApi, function: *mut c_void, stream: *mut c_void, mut x: *mut u8, mut y: *mut u8) {
    let (mut a, mut n) = (2.0f32, N as i32);
    let mut arguments =
        [(&raw mut x).cast(), (&raw mut y).cast(), (&raw mut a).cast(), (&raw mut n).cast::<c_void>()];
    let groups = N.div_ceil(256) as u32;
    let list = arguments.as_mut_ptr();
    ok!(hip.hipModuleLaunchKernel(function, groups, 1, 1, 256, 1, 1, 1024, stream, list, ptr::null_mut()));
}

fn gfx() -> String {
    env::var("ROCSIM_GFX").unwrap_or_else(|_| "gfx906".into())
}

#[test]
fn a_compiled_kernel_runs_in_the_order_of_its_stream() {
    const TEST: &str = "a_compiled_kernel_runs_in_the_order_of_its_stream";
    let Some(role) = common::role() else {
        if !is_skipped(&[Part::Hip]) {
            for gfx in ["gfx900", "gfx906", "gfx908", "gfx90a", "gfx1010", "gfx1030"] {
                common::child_succeeds(TEST, "machine code", &[("ROCSIM_GFX", gfx)]);
                common::child_succeeds(TEST, "host function", &[("ROCSIM_GFX", gfx)]);
            }
        }
        return;
    };
    let (hip, simulator) = (HipApi::start(), Simulator::load());
    let by_host = role == "host function";
    if by_host {
        ok!(simulator.rocsim_register_kernel(c"axpy".as_ptr(), axpy));
    }
    let module = hip.module(&hip.compile(SOURCE, &gfx()));
    let function = hip.function(module, "axpy");
    let mut missing = ptr::null_mut();
    assert_eq!(hip.hipModuleGetFunction(&mut missing, module, c"missing".as_ptr()), NOT_FOUND);

    let values: Vec<f32> = (0..N).map(|index| index as f32).collect();
    let bytes = N * 4;
    let host = hip.pinned(host_bytes(values.as_ptr().cast(), bytes));
    let (x, y, stream) = (hip.allocate(bytes), hip.allocate(bytes), hip.stream());
    ok!(hip.hipMemcpyAsync(x, host, bytes, TO_DEVICE, stream));
    ok!(hip.hipMemsetAsync(y, 0, bytes, stream));
    for _ in 0..3 {
        launch(&hip, function, stream, x, y);
    }
    ok!(hip.hipMemcpyAsync(host, y, bytes, TO_HOST, stream));
    ok!(hip.hipStreamSynchronize(stream));
    for (index, value) in host_bytes(host, bytes).chunks_exact(4).enumerate() {
        assert_eq!(f32::from_ne_bytes(value.try_into().unwrap()), 6.0 * index as f32);
    }
    let counter = |name: &CStr| simulator.rocsim_counter(name.as_ptr());
    let blits = counter(c"blit_dispatches");
    let expected = if by_host { (3, blits) } else { (0, blits + 3) };
    assert_eq!((counter(c"host_function_dispatches"), counter(c"machine_code_dispatches")), expected);
    ok!(hip.hipModuleUnload(module));
    if by_host {
        ok!(simulator.rocsim_unregister_kernel(c"axpy".as_ptr()));
    }
    assert_eq!(simulator.rocsim_unregister_kernel(c"axpy".as_ptr()), -1);
}

#[test]
fn faulty_kernels_are_reported_by_amds_runtime() {
    const TEST: &str = "faulty_kernels_are_reported_by_amds_runtime";
    let Some(role) = common::role() else {
        if !is_skipped(&[Part::Hip]) {
            const FAULT: &str = "Memory access fault by GPU node-1";
            common::child_aborts(
                TEST,
                "host address",
                &[],
                &[FAULT, "AQL packet", "nothing is mapped there"],
            );
            let exact = [("HSA_DISABLE_FRAGMENT_ALLOCATOR", "1")];
            common::child_aborts(
                TEST,
                "too small",
                &exact,
                &[FAULT, "touches 40000 bytes", "has 4096 bytes"],
            );
            common::child_aborts(TEST, "trap", &[], &["has returned 3", "HSA_STATUS_ERROR_EXCEPTION"]);
            let unknown = ["by `s_cbranch_cdbgsys", "(unknown+0x", "INVALID_CODE_OBJECT"];
            common::child_aborts(TEST, "unknown", &[], &unknown);
        }
        return;
    };
    let (hip, simulator) = (HipApi::start(), Simulator::load());
    let body = if role == "trap" { trap } else { axpy };
    ok!(simulator.rocsim_register_kernel(c"axpy".as_ptr(), body));
    let module = hip.module(&hip.compile(SOURCE, &gfx()));
    let stream = hip.stream();
    let mut host = vec![0u8; N * 4];
    match role.as_str() {
        "unknown" => {
            let mut x = hip.allocate(4);
            let function = hip.function(module, "unknown");
            let mut arguments: [*mut c_void; 1] = [(&raw mut x).cast()];
            let (list, none) = (arguments.as_mut_ptr(), ptr::null_mut());
            ok!(hip.hipModuleLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, list, none));
        }
        "host address" => {
            let y = hip.allocate(N * 4);
            launch(&hip, hip.function(module, "axpy"), stream, host.as_mut_ptr(), y);
        }
        _ => {
            // One page is all that the GPU has there, because the runtime's own pooling is off.
            let (x, y) = (hip.allocate(N * 4), hip.allocate(100));
            launch(&hip, hip.function(module, "axpy"), stream, x, y);
        }
    }
    let status = hip.hipStreamSynchronize(stream);
    println!("synchronised with {status}, which must not happen");
}
