//! The prelude and the kernels that ship under the real compilers, where they are installed: NVRTC (or the library in
//! `GPUMEM_NVRTC`) and hipRTC (or the one in `GPUMEM_HIPRTC`; `off` means none). Neither needs a GPU.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // helpers of tests

mod compiler;
mod packs;
mod shipped;

use compiler::{Compiler, Flavour};
use gpumem_kernel::{Constant, ConstantArray, Slice, SliceMut, Value, View, ViewMut, portable_text};

#[derive(Debug, Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
struct CopyNest {
    a: f32,
    b: u32,
}

type Everything = (
    Slice<f32>,
    SliceMut<f32>,
    View<f32, 2>,
    ViewMut<f32, 3>,
    ViewMut<i64, 0>,
    Constant<f32, 5>,
    Value<CopyNest>,
    Constant<f32, 0>,
    SliceMut<f64>,
    SliceMut<u64>,
    u32,
);

/// Uses all of the prelude; four barriers of the group, two of the wave.
const EVERYTHING: &str = r#"using namespace gpumem;
struct pair { float a; u32 b; };
GPUMEM_KERNEL everything(slice<const float> x, slice<float> y, view<const float, 2> v, view<float, 3> w, view<i64, 0> z,
                         constant<float, 5> c, pair p, constant<float, 0> none, slice<double> d, slice<u64> l, u32 n) {
    GPUMEM_SHARED(float, tile, 32, 33);
    GPUMEM_SHARED(u32, bins, 16);
    GPUMEM_DYNAMIC_SHARED(double, dynamic);
    array<float, 3, 3> window;
    for (int i = 0; i < 3; ++i)
        for (int j = 0; j < 3; ++j) window(i, j) = v(i, j);
    u64 i = global_id(0);
    tile(local_id(1), local_id(0)) = x[i];
    bins(lane() % 16) = 0;
    dynamic[lane()] = 1;
    barrier(LOCAL);
    barrier(GLOBAL);
    barrier(BOTH);
    barrier();
    wavebarrier();
    memory_fence();
    wavebarrier();
    atomic_add(bins(1), n);
    atomic_add(y[0], 1.0f);
    atomic_add(d[0], 1.0);
    atomic_add(l[0], (u64)1);
    atomic_add(z(), (i64)1);
    atomic_min(y[1], 2.0f);
    atomic_max(z(), (i64)4);
    complex<float> q(p.a, (float)p.b);
    float s = wave_sum(tile(local_id(0), local_id(1))) + wave_scan(2.f) + wave_max(3.f) + wave_min(1.f);
    s += shuffle(q, 2).re + shuffle_xor(1.f, 3) + (float)shuffle_up(d[1], 1) + shuffle_down(f16(s), 1) + bf16(s);
    s += wave_any(i > 3) + wave_all(i > 4) + (float)wave_ballot(i > 2) + none.size() + wave_items() + group_linear();
    w(0, 1, 2) = s + window(1, 2) + c[3] + (q * q).norm_sqr() + (float)dynamic[3] + bins(2) + wave_id();
    y[i] = (float)global_size(1) + groups(2);
}
"#;

pub(crate) const NVIDIA: [&str; 2] = ["compute_80", "compute_90"];
pub(crate) const AMD: [(&str, u32); 3] = [("gfx906", 64), ("gfx90a", 64), ("gfx1030", 32)];

pub(crate) fn compiler(flavour: Flavour) -> Option<Compiler> {
    let found = Compiler::load(flavour);
    if found.is_none() {
        println!("skipped: {flavour:?} is not installed");
    }
    found
}

#[test]
fn nvrtc_compiles_the_prelude_and_its_barriers() {
    let Some(compiler) = compiler(Flavour::Nvrtc) else { return };
    for architecture in NVIDIA {
        for bounds in [false, true] {
            let text = portable_text::<Everything>(EVERYTHING, "everything", 32, bounds);
            let ptx = String::from_utf8(compiler.compile(&text, architecture).unwrap()).unwrap();
            assert_eq!(ptx.matches("bar.sync").count(), 4, "{architecture}");
            assert_eq!(ptx.matches("bar.warp.sync").count(), 2, "{architecture}");
            assert_eq!(ptx.contains("trap;"), bounds, "{architecture}");
        }
    }
}

#[test]
fn hiprtc_compiles_the_prelude_and_its_barriers() {
    let Some(compiler) = compiler(Flavour::Hiprtc) else { return };
    for (architecture, wave) in AMD {
        for bounds in [false, true] {
            let text = portable_text::<Everything>(EVERYTHING, "everything", wave, bounds);
            let code = compiler.compile(&text, architecture).unwrap();
            // `s_barrier` is this word on every architecture; the wave barrier emits no instruction.
            let barriers = code.chunks_exact(4).filter(|word| *word == [0, 0, 0x8a, 0xbf]).count();
            assert_eq!(barriers, 4, "{architecture}");
        }
    }
}

#[test]
fn a_declaration_that_the_source_does_not_fulfil_does_not_compile() {
    for flavour in [Flavour::Nvrtc, Flavour::Hiprtc] {
        let Some(compiler) = compiler(flavour) else { continue };
        let architecture = if flavour == Flavour::Nvrtc { NVIDIA[0] } else { AMD[0].0 };
        let source = "GPUMEM_KERNEL scale(gpumem::slice<float> x, float a) { x[0] *= a; }";
        let compile = |text: &str| compiler.compile(text, architecture);
        compile(&portable_text::<(SliceMut<f32>, f32)>(source, "scale", 32, false)).unwrap();
        compile(&portable_text::<(SliceMut<f32>, Value<f32>)>(source, "scale", 32, false)).unwrap();
        for wrong in [
            portable_text::<(SliceMut<f32>,)>(source, "scale", 32, false),
            portable_text::<(SliceMut<f32>, f64)>(source, "scale", 32, false),
            portable_text::<(SliceMut<u32>, f32)>(source, "scale", 32, false),
            portable_text::<(Slice<f32>, f32)>(source, "scale", 32, false),
            portable_text::<(f32, SliceMut<f32>)>(source, "scale", 32, false),
            portable_text::<(SliceMut<f32>, Value<[u8; 4]>)>(source, "scale", 32, false),
        ] {
            let log = compile(&wrong).unwrap_err();
            assert!(log.contains("was declared with the parameters"), "{log}");
        }
    }
}

#[test]
fn an_error_shows_the_users_own_lines() {
    for flavour in [Flavour::Nvrtc, Flavour::Hiprtc] {
        let Some(compiler) = compiler(flavour) else { continue };
        let architecture = if flavour == Flavour::Nvrtc { NVIDIA[0] } else { AMD[0].0 };
        let source = "// a comment\nGPUMEM_KERNEL bad() {\n    no_such_thing();\n}";
        let text = portable_text::<()>(source, "bad", 32, false);
        let log = compiler.compile(&text, architecture).unwrap_err();
        assert!(log.contains("no_such_thing"), "{log}");
        assert!(log.contains("kernel(3)") || log.contains("kernel:3:"), "{log}");
    }
}

/// Reads constants by a constant index, by one that differs among work-items, and of rank 0.
const CONSTANTS: &str = "using namespace gpumem;
GPUMEM_KERNEL weighted(constant_array<float, 2> w, constant_array<double, 0> scale, slice<float> y) {
    u64 i = global_id(0);
    if (i < y.size()) y[i] = (float)(w(1, 2) * scale()) + w(i % w.extent(0), 0);
}";

#[test]
fn constant_arrays_lie_in_constant_memory() {
    type Weighted = (ConstantArray<f32, 2>, ConstantArray<f64, 0>, SliceMut<f32>);
    if let Some(compiler) = compiler(Flavour::Nvrtc) {
        for bounds in [false, true] {
            let text = portable_text::<Weighted>(CONSTANTS, "weighted", 32, bounds);
            let ptx = String::from_utf8(compiler.compile(&text, NVIDIA[0]).unwrap()).unwrap();
            let declared = ".const .align 16 .b8 gpumem_constant_memory[65536]";
            assert!(
                ptx.contains(declared) && ptx.contains("ld.const.f32") && ptx.contains("ld.const.f64"),
                "{ptx}"
            );
        }
        // Kernels without such parameters have none.
        let text = portable_text::<(SliceMut<f32>,)>(
            "GPUMEM_KERNEL none(gpumem::slice<float> y) {}",
            "none",
            32,
            false,
        );
        let ptx = String::from_utf8(compiler.compile(&text, NVIDIA[0]).unwrap()).unwrap();
        assert!(!ptx.contains("gpumem_constant_memory"));
    }
    if let Some(compiler) = compiler(Flavour::Hiprtc) {
        for (architecture, wave) in AMD {
            let text = portable_text::<Weighted>(CONSTANTS, "weighted", wave, false);
            let code = compiler.compile(&text, architecture).unwrap();
            let name = b"gpumem_constant_memory\0";
            assert!(code.windows(name.len()).any(|part| part == name), "{architecture}: the symbol is there");
        }
    }
}
