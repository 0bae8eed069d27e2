//! Functions, structures, numbers and names are those of AMD's headers, wherever those are installed.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![allow(clippy::unwrap_used, clippy::panic)] // A test that cannot go on has failed.

use hip_on_cuda::{RESULTS, STATUSES, attributes::ATTRIBUTES, signatures, types::*};
use rocsim::installed::{Part, is_skipped};
use std::{collections::BTreeSet, fmt::Write, mem::offset_of, path::Path, process::Command};

/// What the comparison needs.
const NEEDED: &[Part] = &[Part::HipHeaders, Part::Cc];

/// Functions that came after the header of ROCm 5.2.
const LATER: [&str; 2] = ["hipGetDevicePropertiesR0000", "hipGetDevicePropertiesR0600"];

/// Translates a Rust type, as in the source, to C.
fn c_type(rust: &str) -> String {
    if let Some(target) = rust.strip_prefix("*mut ") {
        return format!("{} *", c_type(target));
    }
    if let Some(target) = rust.strip_prefix("*const ") {
        return format!("{} const *", c_type(target));
    }
    match rust {
        "c_char" => "char",
        "c_uchar" => "unsigned char",
        "c_ushort" => "unsigned short",
        "c_int" => "int",
        "c_uint" => "unsigned int",
        "c_ulonglong" => "unsigned long long",
        "c_void" => "void",
        "f32" => "float",
        "u32" => "uint32_t",
        "u64" => "uint64_t",
        "usize" => "size_t",
        // The header gives it no name without `enum`.
        "hipLimit_t" => "enum hipLimit_t",
        // The types of HIP have HIP's names.
        name => name,
    }
    .to_owned()
}

macro_rules! layout {
    ($c:ident, $($type:ident { $($field:ident = $member:literal),* $(,)? })*) => {$(
        writeln!($c, "_Static_assert(sizeof({}) == {}, \"size\");", stringify!($type), size_of::<$type>())
            .unwrap();
        $(writeln!(
            $c,
            "_Static_assert(offsetof({}, {}) == {}, \"offset\");",
            stringify!($type), $member, offset_of!($type, $field)
        ).unwrap();)*
    )*};
}

/// Structures and enumerations.
fn layouts() -> String {
    let mut c = String::new();
    layout! { c,
        hipError_t {} hipMemcpyKind {} hipMemoryType {} hipDeviceAttribute_t {} hipDeviceP2PAttr {}
        hipFunction_attribute {} hipJitOption {} hipMemoryAdvise {} hipPointer_attribute {}
        hipStreamCaptureMode {} hipStreamCaptureStatus {} hiprtcResult {} hipDevice_t {} hipUUID {}
        hipIpcMemHandle_t {} hipIpcEventHandle_t {} hipExtent { height = "height", depth = "depth" }
        hipPos { y = "y", z = "z" } hipPitchedPtr { pitch = "pitch", xsize = "xsize", ysize = "ysize" }
        hipPointerAttribute_t {
            memoryType = "memoryType", device = "device", devicePointer = "devicePointer",
            hostPointer = "hostPointer", isManaged = "isManaged", allocationFlags = "allocationFlags",
        }
        hipMemcpy3DParms {
            srcArray = "srcArray", srcPos = "srcPos", srcPtr = "srcPtr", dstArray = "dstArray",
            dstPos = "dstPos", dstPtr = "dstPtr", extent = "extent", kind = "kind",
        }
        dim3 { y = "y", z = "z" }
        hipKernelNodeParams {
            blockDim = "blockDim", extra = "extra", func = "func", gridDim = "gridDim",
            kernelParams = "kernelParams", sharedMemBytes = "sharedMemBytes",
        }
        hip_Memcpy2D {
            srcMemoryType = "srcMemoryType", srcHost = "srcHost", srcDevice = "srcDevice",
            srcPitch = "srcPitch", dstXInBytes = "dstXInBytes", dstMemoryType = "dstMemoryType",
            dstHost = "dstHost", dstDevice = "dstDevice", dstPitch = "dstPitch",
            WidthInBytes = "WidthInBytes", Height = "Height",
        }
        HIP_MEMCPY3D {
            srcLOD = "srcLOD", srcMemoryType = "srcMemoryType", srcHost = "srcHost",
            srcDevice = "srcDevice", srcPitch = "srcPitch", srcHeight = "srcHeight",
            dstXInBytes = "dstXInBytes", dstMemoryType = "dstMemoryType", dstHost = "dstHost",
            dstDevice = "dstDevice", dstPitch = "dstPitch", dstHeight = "dstHeight",
            WidthInBytes = "WidthInBytes", Height = "Height", Depth = "Depth",
        }
        hipDeviceProp_t {
            totalGlobalMem = "totalGlobalMem", warpSize = "warpSize", maxGridSize = "maxGridSize",
            totalConstMem = "totalConstMem", multiProcessorCount = "multiProcessorCount", arch = "arch",
            pciDomainID = "pciDomainID", canMapHostMemory = "canMapHostMemory", gcnArch = "gcnArch",
            gcnArchName = "gcnArchName", integrated = "integrated", memPitch = "memPitch",
            cooperativeMultiDeviceUnmatched = "cooperativeMultiDeviceUnmatchedFunc",
            isLargeBar = "isLargeBar", managedMemory = "managedMemory",
            pageableMemoryAccessUsesHostPageTables = "pageableMemoryAccessUsesHostPageTables",
        }
    }
    c
}

/// The text of a C program that compiles if everything agrees.
fn program() -> String {
    let mut c = "#include <stddef.h>\n#include <stdint.h>\n#include <hip/hip_runtime_api.h>\n\
                 #include <hip/hiprtc.h>\n"
        .to_owned();
    for signature in signatures() {
        if LATER.contains(&signature.name) {
            continue;
        }
        let parameters: Vec<String> = signature.parameters.iter().map(|rust| c_type(rust)).collect();
        let parameters = if parameters.is_empty() { "void".to_owned() } else { parameters.join(", ") };
        // A second declaration must be the same. One without a first would be none: the address needs it.
        let (name, result) = (signature.name, c_type(signature.result));
        writeln!(c, "static void *const declared_{name} = (void *)&{name};").unwrap();
        writeln!(c, "{result} {name}({parameters});").unwrap();
    }
    for (number, name, _) in ATTRIBUTES {
        writeln!(c, "_Static_assert({name} == {number}, \"attribute\");").unwrap();
    }
    for (status, name) in STATUSES {
        writeln!(c, "_Static_assert({} == {}, \"status\");", name.to_str().unwrap(), status.0).unwrap();
    }
    for (result, name) in RESULTS {
        writeln!(c, "_Static_assert({} == {}, \"result\");", name.trim_end_matches('\0'), result.0).unwrap();
    }
    c + &layouts()
}

/// Compiles a program; returns the compiler's messages if it fails.
fn compile(name: &str, text: &str) -> Result<(), String> {
    let source = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&source, text).unwrap();
    let arguments = ["-D__HIP_PLATFORM_AMD__=1", "-std=c11", "-w", "-fsyntax-only"];
    let output = Command::new("cc").args(arguments).arg(&source).output().unwrap();
    if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).into_owned()) }
}

#[test]
fn everything_is_as_amds_headers_have_it() {
    if is_skipped(NEEDED) {
        return;
    }
    assert!(signatures().len() > 120, "{}", signatures().len());
    if let Err(message) = compile("headers.c", &program()) {
        panic!("{message}");
    }
}

#[test]
fn differences_from_the_headers_are_found() {
    if is_skipped(NEEDED) {
        return;
    }
    let good = program();
    for (part, wrong) in [
        ("hipError_t hipMalloc(void * *, size_t);", "hipError_t hipMalloc(void * *, int);"),
        ("hipError_t hipHostFree(void *);", "hipError_t hipHostFree(void const *);"),
        ("hipDeviceAttributeWarpSize == 87", "hipDeviceAttributeWarpSize == 10"),
        ("hipErrorNotReady == 600", "hipErrorNotReady == 601"),
        ("declared_hipFree =", "declared_hipFree = (void *)&hipNoSuchFunction; static void *const other ="),
    ] {
        assert!(good.contains(part), "{part}");
        assert!(compile("wrong.c", &good.replace(part, wrong)).is_err(), "{wrong}");
    }
}

#[test]
fn every_function_is_exported_once() {
    let names: BTreeSet<&str> = signatures().iter().map(|signature| signature.name).collect();
    assert_eq!(names.len(), signatures().len());
    let library = std::env::current_exe().unwrap().with_file_name("libhip_on_cuda.so");
    // SAFETY: the library has no initialisers with preconditions.
    let library = unsafe { libloading::Library::new(&library) }.unwrap();
    for name in names {
        // SAFETY: the function is looked up and not called.
        let found = unsafe { library.get::<unsafe extern "C" fn()>(name.as_bytes()) };
        assert!(found.is_ok(), "{name}");
    }
}
