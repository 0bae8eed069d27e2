//! Planted faults: found by the checks, and named. The same kernels without the faults are not accused.

use super::{
    object::{Object, compile},
    rig::{Arguments, Array, NODE, Shape, architectures, launch},
};
use crate::isa::{
    Failure,
    check::{Access, Checks, Counters, Space},
    comgr::Line,
    decode::{Shape as Registers, decode},
    stop::{Cause, Stop},
    wave::Wave,
};

const SOURCE: &str = r#"
#define BARRIER __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup"); __builtin_amdgcn_s_barrier(); \
                __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup")
extern "C" __global__ void turned(unsigned* out) {
    __shared__ unsigned t[256]; unsigned i = threadIdx.x;
    t[i] = i; BARRIER; out[blockIdx.x * 256 + i] = t[255 - i];
}
extern "C" __global__ void no_barrier(unsigned* out) {
    __shared__ unsigned t[256]; unsigned i = threadIdx.x;
    if (i < 128) t[i] = i;
    t[i] = i; __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "wavefront"); out[i] = t[255 - i];
}
extern "C" __global__ void second_barrier_missing(unsigned* out) {
    __shared__ unsigned t[256]; unsigned i = threadIdx.x;
    t[i] = i; BARRIER; unsigned x = t[255 - i]; t[i] = x + 1; BARRIER; out[i] = t[i];
}
extern "C" __global__ void never_written(unsigned* out) {
    __shared__ unsigned t[256]; unsigned i = threadIdx.x;
    if (i != 77) t[i] = i;
    BARRIER; out[i] = t[i];
}
extern "C" __global__ void in_global(unsigned* out) {
    unsigned i = threadIdx.x; out[i] = i; __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "wavefront"); out[512 + i] = out[255 - i];
}
extern "C" __global__ void atomics(unsigned* out) {
    unsigned i = threadIdx.x; atomicAdd(out + i % 3, 1u);
}
extern "C" __global__ void beyond(unsigned* out) { out[threadIdx.x * 100] = 1; }
extern "C" __global__ void freed(unsigned* out) { out[threadIdx.x] = 1; }
extern "C" __global__ void misaligned(char* out) { atomicAdd((unsigned*)(out + 2), 1u); }
extern "C" __global__ void misaligned_shared(const char* in, unsigned* out) {
    __shared__ unsigned t[256]; t[threadIdx.x] = 0; BARRIER;
    atomicAdd((unsigned*)((char*)t + 1 + in[0]), 1u); BARRIER; out[threadIdx.x] = t[threadIdx.x];
}
extern "C" __global__ void beyond_shared(const unsigned* in, unsigned* out) {
    __shared__ unsigned t[256]; t[threadIdx.x] = 5; BARRIER; out[threadIdx.x] = t[in[0] + 256 + threadIdx.x];
}
extern "C" __global__ void beyond_private(const volatile unsigned* in, unsigned* out) {
    unsigned a[100]; for (int k = 0; k < 100; ++k) a[k] = in[k];
    out[threadIdx.x] = a[in[0] + 100000];
}
extern "C" __global__ void not_waited_for(const unsigned* in, unsigned* out) {
    unsigned x;
    asm volatile("global_load_dword %0, %1, off\n\tv_or_b32_e32 %0, 1, %0\n\ts_waitcnt vmcnt(0)" : "=&v"(x) : "v"(in));
    out[threadIdx.x] = x;
}
extern "C" __global__ void trapped(unsigned* out) { out[0] = 1; __builtin_trap(); }
extern "C" __global__ void endless(volatile unsigned* out) { while (out[threadIdx.x] != 7) {} }
extern "C" __global__ void endless_barriers(volatile unsigned* out) { while (out[0] != 7) { BARRIER; } }
"#;

/// Why a kernel that is checked stops; `None` if it comes to its end.
fn outcome(name: &str, object: &Object, isa: (u32, u32, u32)) -> Option<Box<Stop>> {
    let (first, second) = (Array::new(&[0u32; 1024]), Array::new(&[0u32; 1024]));
    let arguments = Arguments::default().array(&first).array(&second);
    if name == "freed" {
        drop(first);
    }
    let shape = Shape { checked: true, most: 100_000, ..Shape::line(1, 256) };
    match launch(object, isa, name, &shape, arguments) {
        Ok(_) => None,
        Err(Failure::Stop(stop)) => Some(stop),
        Err(failure) => panic!("{name}: {failure:?}"),
    }
}

/// The findings, by the names of their types.
fn kind(cause: &Cause) -> &'static str {
    match cause {
        Cause::Unknown(_) => "Unknown",
        Cause::Trap => "Trap",
        Cause::Fault(_) => "Fault",
        Cause::BadAddress { .. } => "BadAddress",
        Cause::NotWaitedFor { .. } => "NotWaitedFor",
        Cause::Race { .. } => "Race",
        Cause::Unwritten { .. } => "Unwritten",
        Cause::Endless { .. } => "Endless",
    }
}

#[test]
fn planted_faults_are_named() {
    let planted: &[(&str, &str, &[&str])] = &[
        ("no_barrier", "", &["lane"]),
        ("second_barrier_missing", "Race", &["a race in shared memory", "by wave", "`ds_", "lane"]),
        ("never_written", "Unwritten", &["was never written", "`ds_", "lane"]),
        ("in_global", "Race", &["a race in global memory", "by wave", "`global_", "lane"]),
        (
            "beyond",
            "Fault",
            &["GPU node 1 touches 4 bytes at", "global_store", "group [0, 0, 0], wave", "lane"],
        ),
        ("freed", "Fault", &["GPU node 1 touches 4 bytes at", "global_store", "lane 0"]),
        (
            "misaligned",
            "BadAddress",
            &["4 bytes at 0x", "of global memory", "not aligned", "`global_atomic_add"],
        ),
        ("misaligned_shared", "BadAddress", &["of shared memory", "not aligned", "`ds_add_"]),
        ("beyond_shared", "BadAddress", &["4 bytes at 0x400 of shared memory", "`ds_", "lane 0"]),
        ("beyond_private", "BadAddress", &["of private memory: the lane has less", "lane 0"]),
        ("not_waited_for", "NotWaitedFor", &["before `global_load_", "`v_or_b32_e32 v"]),
        ("trapped", "Trap", &["`s_trap"]),
        ("endless", "Endless", &["has not ended after 1", "group [0, 0, 0], wave 0"]),
        ("endless_barriers", "Endless", &["has not ended after 1", "group [0, 0, 0], wave 0"]),
    ];
    for (isa, version, _) in architectures() {
        let Some(code) = compile(SOURCE, isa, &[]) else { return };
        let object = Object::load(NODE, &code);
        for name in ["turned", "atomics"] {
            let found = outcome(name, &object, version);
            assert!(found.is_none(), "{isa}, {name}: {}", found.unwrap());
        }
        for (name, expected, parts) in planted {
            let Some(stop) = outcome(name, &object, version) else { panic!("{isa}, {name}: not found") };
            let text = stop.to_string();
            assert!(expected.is_empty() || kind(&stop.cause) == *expected, "{isa}, {name}: {text}");
            assert!(parts.iter().all(|part| text.contains(part)), "{isa}, {name}: {text}");
            assert_eq!(stop.place.kernel, *name);
            assert!(text.contains(&format!("({name}+0x")), "{text}");
        }
    }
}

#[test]
fn shipped_kernels_have_no_findings() {
    for (isa, version, wave) in architectures() {
        for name in ["reduce_", "scan_"] {
            let kernel = gpumem_kernel_suite::all().into_iter().find(|kernel| kernel.name == name).unwrap();
            let Some(code) = compile(&kernel.text(wave, true), isa, &[]) else { return };
            let object = Object::load(NODE, &code);
            let arrays = [700, 3, 3, 700].map(|count| Array::new(&vec![0u32; count]));
            let count = if name == "scan_" { 4 } else { 3 };
            let arguments = arrays.iter().take(count).fold(Arguments::default(), Arguments::slice);
            let shape = Shape { checked: true, ..Shape::line(3, 256) };
            let outcome = launch(&object, version, name, &shape, arguments);
            assert!(
                outcome.is_ok(),
                "{isa}, {name}: {}",
                match outcome {
                    Err(crate::isa::Failure::Stop(stop)) => stop.to_string(),
                    other => format!("{other:?}"),
                }
            );
        }
    }
}

fn instruction(text: &str) -> crate::isa::instruction::Instruction {
    let line = Line { text: text.to_owned(), bytes: 4, target: None };
    decode(&line, 0, Registers { wave_size: 64, vectors: 64, accumulators: 64 })
}

/// Runs instructions through the checks alone, and returns the findings.
fn checked(lines: &[&str], major: u32) -> Result<(), String> {
    let (mut checks, wave) = (Checks::new(1, Counters::of(major)), Wave::new(64, 64));
    for text in lines {
        let i = instruction(text);
        checks.before(&wave, &i).map_err(|cause| match cause {
            Cause::NotWaitedFor { register, verb, load } => {
                format!("{text}: {register} is {verb} before {load}")
            }
            other => format!("{other:?}"),
        })?;
        checks.after(&wave, &i);
    }
    Ok(())
}

#[test]
fn registers_are_used_only_after_their_load() {
    let load = "global_load_dwordx2 v[2:3], v[0:1], off";
    let found = checked(&[load, "v_add_u32_e32 v4, v3, v3"], 9).unwrap_err();
    assert!(found.contains("v3 is read before") && found.contains(load), "{found}");
    let found = checked(&[load, "v_mov_b32_e32 v2, 0"], 9).unwrap_err();
    assert!(found.contains("v2 is written before"), "{found}");
    assert_eq!(checked(&[load, "s_waitcnt vmcnt(0)", "v_add_u32_e32 v4, v3, v3"], 9), Ok(()));
    // The wrong counter.
    assert!(checked(&[load, "s_waitcnt lgkmcnt(0)", "v_add_u32_e32 v4, v3, v3"], 9).is_err());
    let second = "global_load_dword v5, v[0:1], off";
    let one_left = [load, second, "s_waitcnt vmcnt(1)", "v_mov_b32_e32 v6, v2"];
    assert_eq!(checked(&one_left, 9), Ok(()), "they end in order");
    assert!(checked(&[load, second, "s_waitcnt vmcnt(1)", "v_mov_b32_e32 v6, v5"], 9).is_err());
    // Scalar loads end in any order, so that only waiting for all of them helps.
    let (one, two) = ("s_load_dword s4, s[0:1], 0x0", "s_load_dwordx2 s[6:7], s[0:1], 0x8");
    assert!(checked(&[one, two, "s_waitcnt lgkmcnt(1)", "s_mov_b32 s8, s4"], 9).is_err());
    assert_eq!(checked(&[one, two, "s_waitcnt lgkmcnt(0)", "s_mov_b32 s8, s7"], 9), Ok(()));
    assert!(checked(&[two, "v_mov_b32_e32 v0, s7"], 9).is_err());
    let shared = ["ds_read_b32 v1, v0", "ds_read_b32 v2, v0", "s_waitcnt lgkmcnt(1)", "v_mov_b32_e32 v3, v1"];
    assert_eq!(checked(&shared, 9), Ok(()));
    // A flat load may be either.
    let flat = "flat_load_dword v2, v[0:1]";
    assert!(checked(&[flat, "s_waitcnt vmcnt(0)", "v_mov_b32_e32 v3, v2"], 9).is_err());
    assert_eq!(checked(&[flat, "s_waitcnt vmcnt(0) lgkmcnt(0)", "v_mov_b32_e32 v3, v2"], 9), Ok(()));
    // One of the counters is enough if the kind of memory is known.
    for (space, right, wrong) in [
        (Space::Global, "s_waitcnt vmcnt(0)", "s_waitcnt lgkmcnt(0)"),
        (Space::Shared, "s_waitcnt lgkmcnt(0)", "s_waitcnt vmcnt(0)"),
    ] {
        for wait in [right, wrong] {
            let [flat, wait, used] = [flat, wait, "v_mov_b32_e32 v3, v2"].map(instruction);
            let (mut checks, wave) = (Checks::new(1, Counters::of(9)), Wave::new(64, 64));
            checks.before(&wave, &flat).unwrap();
            checks.access(&wave, &flat, 0, space, 64, 4, Access::Write).unwrap();
            checks.after(&wave, &flat);
            checks.before(&wave, &wait).unwrap();
            assert_eq!(checks.before(&wave, &used).is_ok(), wait.text.contains(&right[10..]), "{space:?}");
        }
    }
}

#[test]
fn a_pending_store_is_not_ordered_by_the_barrier() {
    let text = |text: &str| Line { text: text.to_owned(), bytes: 4, target: None };
    let registers = Registers { wave_size: 64, vectors: 64, accumulators: 64 };
    let store = decode(&text("ds_write_b32 v0, v1"), 0, registers);
    let load = decode(&text("ds_read_b32 v1, v0"), 4, registers);
    let wait = decode(&text("s_waitcnt lgkmcnt(0)"), 8, registers);
    let (first, mut second) = (Wave::new(64, 64), Wave::new(64, 64));
    second.number = 1;
    for waits in [false, true] {
        let mut checks = Checks::new(2, Counters::of(9));
        checks.before(&first, &store).unwrap();
        checks.access(&first, &store, 3, Space::Shared, 16, 4, Access::Write).unwrap();
        checks.after(&first, &store);
        if waits {
            checks.before(&first, &wait).unwrap();
        }
        checks.barrier();
        let found = checks.access(&second, &load, 5, Space::Shared, 16, 4, Access::Read);
        assert_eq!(found.is_ok(), waits, "{found:?}");
    }
}
