//! Compiling kernels for architectures of which this machine has no device: by NVRTC and by hipRTC, where they are installed.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // helpers of tests

use gpumem::{
    Backend, ErrorKind,
    kernel::{KernelDef, Parameters, prelude::*},
};
use gpumem_cuda::Cuda;
use gpumem_roc::Roc;

#[gpumem::kernel]
fn scale(y: Own<f32>, by: f32) {
    y[own()] *= by;
}

/// A kernel from source; with a mistake in line 3 of it, if asked for.
fn from_source(is_right: bool) -> KernelDef<(SliceMut<f32>,)> {
    let name = if is_right { "y" } else { "no_such_name" };
    // SAFETY: it is never launched.
    unsafe { KernelDef::new("clear") }.source(&format!(
        "using namespace gpumem;\nGPUMEM_KERNEL clear(slice<float> y) {{\n    {name}[wave_size() + global_id(0)] = 0.0f;\n}}"
    ))
}

/// The compiler's output, or `None` if the compiler is not installed.
fn compiled<B: Backend, P: Parameters>(
    kernel: &KernelDef<P>,
    architecture: &str,
) -> Option<Result<Vec<u8>, gpumem::Error>> {
    let image = kernel.compile_with::<B>(architecture);
    match &image {
        Err(error) if matches!(error.kind(), ErrorKind::Load(_)) => {
            println!("skipped: {error}");
            None
        }
        _ => Some(image),
    }
}

fn log<B: Backend, P: Parameters>(kernel: &KernelDef<P>, architecture: &str) -> Option<String> {
    let error = compiled::<B, P>(kernel, architecture)?.unwrap_err();
    let ErrorKind::Build { log } = error.kind() else { panic!("{architecture}: {error}") };
    assert_eq!(error.kernel(), Some(kernel.name().trim_end_matches('_')));
    Some(log.clone())
}

#[test]
fn kernels_compile_for_architectures_without_a_device() {
    for architecture in ["sm_80", "sm_90", "sm_90a"] {
        let Some(image) = compiled::<Cuda, _>(&scale(), architecture) else { break };
        assert!(image.unwrap().starts_with(b"\x7fELF"), "{architecture}");
        assert!(compiled::<Cuda, _>(&from_source(true), architecture).unwrap().is_ok(), "{architecture}");
    }
    for architecture in ["gfx906", "gfx90a", "gfx90a:xnack-", "gfx1030"] {
        let Some(image) = compiled::<Roc, _>(&scale(), architecture) else { break };
        assert!(!image.unwrap().is_empty(), "{architecture}");
        assert!(compiled::<Roc, _>(&from_source(true), architecture).unwrap().is_ok(), "{architecture}");
    }
}

#[test]
fn an_error_has_the_compilers_message() {
    let logs = [log::<Cuda, _>(&from_source(false), "sm_90"), log::<Roc, _>(&from_source(false), "gfx90a")];
    for log in logs.into_iter().flatten() {
        assert!(
            log.contains("no_such_name") && (log.contains("kernel(3)") || log.contains("kernel:3:")),
            "{log}"
        );
    }
}

/// hipRTC of ROCm 5 ends the process for these, so a test that comes back has not asked it.
#[test]
fn an_unknown_architecture_is_refused_before_compiling() {
    for architecture in ["sm_1", "sm_", "sm_90x", "sm_90 --use_fast_math", "sm_99999999999"] {
        let Some(log) = log::<Cuda, _>(&scale(), architecture) else { break };
        assert!(log.contains("does not know the architecture") && log.contains("sm_90"), "{log}");
    }
    for architecture in ["gfx", "gfx9", "gfx9999", "gfxabc", "gfx90z", "gfx-906", "gfx90a -O0", "gfx1030x"] {
        let Some(log) = log::<Roc, _>(&scale(), architecture) else { break };
        assert!(log.contains("architecture"), "{log}");
    }
}

#[test]
fn a_name_of_another_backend_is_unsupported() {
    let errors = [
        scale().compile_with::<Cuda>("gfx90a").unwrap_err(),
        scale().compile_with::<Cuda>("compute_90").unwrap_err(),
        scale().compile_with::<Roc>("sm_90").unwrap_err(),
        scale().compile_with::<gpumem::host::Host>("sm_90").unwrap_err(),
        // SAFETY: it is never launched.
        unsafe { KernelDef::<()>::new("without_source") }.compile_with::<Cuda>("sm_90").unwrap_err(),
    ];
    for error in errors {
        assert!(matches!(error.kind(), ErrorKind::Unsupported { .. }), "{error}");
    }
}
