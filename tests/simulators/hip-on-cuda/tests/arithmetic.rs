//! The arithmetic of gpumem's kernels in Rust, as hipRTC gets it: what is for AMD's compiler alone is not for this one. Needs NVRTC
//! and no GPU.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)] // A test that cannot go on has failed.

use hip_on_cuda::{types::hiprtcResult, *};
use std::{
    ffi::CString,
    ptr::{null, null_mut},
};

const DEFINES: &str = "#define GPUMEM_WAVE 32\n#define GPUMEM_BOUNDS 1\n";
const PRELUDE: &str = include_str!("../../../../crates/gpumem-kernel/src/prelude.hpp");
const ARITHMETIC: &str = include_str!("../../../../crates/gpumem-kernel/src/codegen/arithmetic.hpp");

const KERNELS: &str = r#"
using namespace gpumem;
template <class T> __device__ void all(slice<const T> x, slice<T> y) {
    u64 i = global_id(0);
    T a = x[i], b = y[i];
    T short_one = (T)((u64)a & 0xffffff);
    y[i] = rust::mul<T>(rust::mul<T>(a, b), rust::mul<T>(short_one, (T)(b & 0x7f)));
    rust::div_to(y[i], b);
    y[i] = rust::add<T>(y[i], rust::rem<T>(a, (T)7));
}
GPUMEM_KERNEL of_u64(slice<const u64> x, slice<u64> y) { all(x, y); }
GPUMEM_KERNEL of_i64(slice<const i64> x, slice<i64> y) { all(x, y); }
GPUMEM_KERNEL of_u32(slice<const u32> x, slice<u32> y) { all(x, y); }
GPUMEM_KERNEL of_i16(slice<const i16> x, slice<i16> y) { all(x, y); }
GPUMEM_KERNEL of_halves(slice<const f16> x, slice<f16> y) { y[global_id(0)] = rust::neg(rust::rem(x[global_id(0)], y[0])); }
"#;

#[test]
fn kernels_of_all_integers_compile() {
    // SAFETY: the only test of this program; no other thread reads the environment.
    unsafe { std::env::set_var("HIP_ON_CUDA_ARCH", "sm_90") };
    let source = CString::new([DEFINES, PRELUDE, ARITHMETIC, KERNELS].join("\n")).unwrap();
    let options = [c"--gpu-architecture=gfx90a", c"-std=c++17"].map(|option| option.as_ptr());
    let mut program = null_mut();
    // SAFETY: the texts end with a zero and live as long as the program, which has no headers.
    let (outcome, log) = unsafe {
        let made = hiprtcCreateProgram(&mut program, source.as_ptr(), null(), 0, null_mut(), null_mut());
        assert_eq!(made, hiprtcResult::SUCCESS);
        let outcome = hiprtcCompileProgram(program, 2, options.as_ptr().cast_mut());
        let mut bytes = 0;
        assert_eq!(hiprtcGetProgramLogSize(program, &mut bytes), hiprtcResult::SUCCESS);
        let mut log = vec![0u8; bytes];
        assert_eq!(hiprtcGetProgramLog(program, log.as_mut_ptr().cast()), hiprtcResult::SUCCESS);
        assert_eq!(hiprtcDestroyProgram(&mut program), hiprtcResult::SUCCESS);
        (outcome, String::from_utf8(log).unwrap())
    };
    if outcome == hiprtcResult::INTERNAL_ERROR {
        println!("skipped: {log}");
        return;
    }
    assert_eq!(outcome, hiprtcResult::SUCCESS, "{log}");
}
