//! Planted faults: found by the checks, and named. The same kernels without the faults are not accused.

use super::{
    object::{Object, compile},
    rig::{ARCHITECTURES, Arguments, Array, NODE, Shape, launch},
};
use crate::isa::{
    check::{Access, Checks, Space},
    comgr::Line,
    decode::{Shape as Registers, decode},
    stop::Cause,
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
extern "C" __global__ void nobody_wrote(unsigned* out) {
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
"#;

fn outcome(name: &str, object: &Object, isa: (u32, u32, u32)) -> String {
    let array = Array::new(&[0u32; 1024]);
    let shape = Shape { checked: true, ..Shape::line(1, 256) };
    match launch(object, isa, name, &shape, Arguments::default().array(&array)) {
        Ok(_) => "nothing".to_owned(),
        Err(crate::isa::Failure::Stop(stop)) => stop.to_string(),
        Err(failure) => format!("{failure:?}"),
    }
}

#[test]
fn planted_faults_are_named() {
    let planted: &[(&str, &[&str])] = &[
        ("turned", &["nothing"]),
        ("atomics", &["nothing"]),
        ("no_barrier", &["wave", "lane"]),
        ("second_barrier_missing", &["a race in shared memory", "by wave", "`ds_", "lane"]),
        ("nobody_wrote", &["was never written", "ds_read_b32", "lane"]),
        ("in_global", &["a race in global memory", "by wave", "`global_", "lane"]),
        ("beyond", &["GPU node 1 touches 4 bytes at", "global_store", "group [0, 0, 0], wave", "lane"]),
    ];
    for (isa, version, _) in ARCHITECTURES {
        let Some(code) = compile(SOURCE, isa, &[]) else { return };
        let object = Object::load(NODE, &code);
        for (name, parts) in planted {
            let found = outcome(name, &object, version);
            assert!(parts.iter().all(|part| found.contains(part)), "{isa}, {name}: {found}");
            assert!(found == "nothing" || found.contains(&format!("({name}+0x")), "{found}");
        }
    }
}

#[test]
fn the_kernels_that_ship_are_not_accused() {
    for (isa, version, wave) in ARCHITECTURES {
        for name in ["reduce", "scan"] {
            let kernel = gpumem_kernels::all().into_iter().find(|kernel| kernel.name == name).unwrap();
            let Some(code) = compile(&kernel.text(wave, true), isa, &[]) else { return };
            let object = Object::load(NODE, &code);
            let arrays = [700, 3, 3, 700].map(|count| Array::new(&vec![0u32; count]));
            let count = if name == "scan" { 4 } else { 3 };
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

/// Runs instructions through the checks alone, and says what they find.
fn checked(lines: &[&str], counts_stores: bool) -> Result<(), String> {
    let (mut checks, wave) = (Checks::new(1, counts_stores), Wave::new(64, 64));
    for text in lines {
        let line = Line { text: (*text).to_owned(), bytes: 4, target: None };
        let i = decode(&line, 0, Registers { wave_size: 64, vectors: 64, accumulators: 64 });
        checks.before(&wave, &i).map_err(|cause| match cause {
            Cause::Check(what) => format!("{text}: {what}"),
            other => format!("{other:?}"),
        })?;
        checks.after(&wave, &i);
    }
    Ok(())
}

#[test]
fn registers_are_used_only_when_they_are_there() {
    let load = "global_load_dwordx2 v[2:3], v[0:1], off";
    let found = checked(&[load, "v_add_u32_e32 v4, v3, v3"], false).unwrap_err();
    assert!(found.contains("v3 is read before") && found.contains(load), "{found}");
    let found = checked(&[load, "v_mov_b32_e32 v2, 0"], false).unwrap_err();
    assert!(found.contains("v2 is written before"), "{found}");
    assert_eq!(checked(&[load, "s_waitcnt vmcnt(0)", "v_add_u32_e32 v4, v3, v3"], false), Ok(()));
    // The wrong counter.
    assert!(checked(&[load, "s_waitcnt lgkmcnt(0)", "v_add_u32_e32 v4, v3, v3"], false).is_err());
    let second = "global_load_dword v5, v[0:1], off";
    let one_left = [load, second, "s_waitcnt vmcnt(1)", "v_mov_b32_e32 v6, v2"];
    assert_eq!(checked(&one_left, false), Ok(()), "they end in order");
    assert!(checked(&[load, second, "s_waitcnt vmcnt(1)", "v_mov_b32_e32 v6, v5"], false).is_err());
    // Scalar loads end in any order, so that only waiting for all of them helps.
    let (one, two) = ("s_load_dword s4, s[0:1], 0x0", "s_load_dwordx2 s[6:7], s[0:1], 0x8");
    assert!(checked(&[one, two, "s_waitcnt lgkmcnt(1)", "s_mov_b32 s8, s4"], false).is_err());
    assert_eq!(checked(&[one, two, "s_waitcnt lgkmcnt(0)", "s_mov_b32 s8, s7"], false), Ok(()));
    assert!(checked(&[two, "v_mov_b32_e32 v0, s7"], false).is_err());
    let shared = ["ds_read_b32 v1, v0", "ds_read_b32 v2, v0", "s_waitcnt lgkmcnt(1)", "v_mov_b32_e32 v3, v1"];
    assert_eq!(checked(&shared, false), Ok(()));
    // A flat load may be either.
    let flat = "flat_load_dword v2, v[0:1]";
    assert!(checked(&[flat, "s_waitcnt vmcnt(0)", "v_mov_b32_e32 v3, v2"], false).is_err());
    assert_eq!(checked(&[flat, "s_waitcnt vmcnt(0) lgkmcnt(0)", "v_mov_b32_e32 v3, v2"], false), Ok(()));
}

#[test]
fn a_store_that_was_not_waited_for_is_not_before_the_barrier() {
    let text = |text: &str| Line { text: text.to_owned(), bytes: 4, target: None };
    let registers = Registers { wave_size: 64, vectors: 64, accumulators: 64 };
    let store = decode(&text("ds_write_b32 v0, v1"), 0, registers);
    let load = decode(&text("ds_read_b32 v1, v0"), 4, registers);
    let wait = decode(&text("s_waitcnt lgkmcnt(0)"), 8, registers);
    let (first, mut second) = (Wave::new(64, 64), Wave::new(64, 64));
    second.number = 1;
    for waits in [false, true] {
        let mut checks = Checks::new(2, false);
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
