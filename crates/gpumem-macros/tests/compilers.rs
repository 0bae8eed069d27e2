//! The C++ of kernels that are written in Rust, under the real compilers where they are installed: NVRTC (or the
//! library in `GPUMEM_NVRTC`) and hipRTC (or the one in `GPUMEM_HIPRTC`). Neither needs a GPU.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::large_const_arrays)] // helpers of tests

#[path = "../../gpumem-kernel/tests/compilers/compiler.rs"]
#[allow(dead_code)] // its other users need more of it
mod compiler;
#[allow(dead_code)] // launched elsewhere
mod operators;
#[allow(dead_code)] // launched elsewhere
mod subset;

use compiler::{Compiler, Flavour};
use gpumem::{
    Device, ErrorKind,
    kernel::{In, KernelDef, Out, Parameters, config_for_items, prelude::*},
};
use half::{bf16, f16};
use subset::features::Body;

/// A kernel's name, and its whole text for a wave size, with or without bounds.
type Text = (String, Box<dyn Fn(u32, bool) -> String>);

fn text<P: Parameters>(declaration: KernelDef<P>) -> Text {
    let name = declaration.name().to_owned();
    (name, Box::new(move |wave, bounds| declaration.portable_text(wave, bounds).unwrap()))
}

fn all() -> Vec<Text> {
    use {operators::*, subset::*};
    let features = features::all().into_iter().map(text);
    let mut all: Vec<Text> = features.collect();
    all.extend(endless::all().into_iter().map(text));
    all.extend(hygiene::pairs().into_iter().map(|(kernel, _)| text(kernel)));
    all.extend(meanings::pairs().into_iter().map(|(kernel, _)| text(kernel)));
    all.extend([
        text(features::past_the_dynamic_end()),
        text(features::settings()),
        text(meanings::shared_indices()),
        text(saxpy()),
        text(axpb::<f32>()),
        text(axpb::<f64>()),
        text(axpb::<i32>()),
        text(axpb::<u8>()),
        text(axpb::<i64>()),
        text(axpb::<f16>()),
        text(axpb::<bf16>()),
        text(matmul::<f32, 8>()),
        text(matmul::<f64, 16>()),
        text(matmul::<u32, 4>()),
        text(reduce()),
        text(histogram()),
        text(ranges()),
        text(labels()),
        text(values()),
        text(shapes()),
        text(cpp_words()),
        text(order()),
        text(constants::<3>()),
        text(past_the_end()),
        text(race()),
        text(outside_of_a_local_array()),
        text(asserts()),
        text(beyond_nothing()),
        text(integers_i8()),
        text(overflowing_i8()),
        text(integers_u8()),
        text(overflowing_u8()),
        text(integers_i16()),
        text(overflowing_i16()),
        text(integers_u16()),
        text(overflowing_u16()),
        text(integers_i32()),
        text(overflowing_i32()),
        text(integers_u32()),
        text(overflowing_u32()),
        text(integers_i64()),
        text(overflowing_i64()),
        text(integers_u64()),
        text(overflowing_u64()),
        text(floats_f32()),
        text(floats_f64()),
        text(casts()),
        text(halves::<f16>()),
        text(halves::<bf16>()),
        text(waves()),
        text(read_views()),
        text(own::scale::<f32>()),
        text(own::scale::<i64>()),
        text(own::mark()),
        text(own::volume()),
        text(own::accelerate()),
        text(own::settle()),
        text(own::negate()),
    ]);
    all
}

fn compile_all(flavour: Flavour, architectures: &[(&str, u32)]) {
    let Some(compiler) = Compiler::load(flavour) else {
        println!("skipped: {flavour:?} is not installed");
        return;
    };
    let has_both = matches!(flavour, Flavour::Nvrtc);
    for (architecture, wave) in architectures {
        for (name, text) in all() {
            // Without bounds for one compiler only, and one architecture: the omitted checks are the same for all.
            for bounds in [true, false].into_iter().take(if has_both { 2 } else { 1 }) {
                let text = text(*wave, bounds);
                let code = compiler.compile_without_warnings(&text, architecture);
                if let Err(log) = code {
                    let (_, source) = text.split_once("using namespace gpumem;").unwrap();
                    panic!("{name} for {architecture}, bounds {bounds}:\n{log}\n{source}");
                }
            }
        }
    }
}

#[test]
fn nvrtc_compiles_every_kernel_without_a_warning() {
    compile_all(Flavour::Nvrtc, &[("compute_90", 32)]);
}

#[test]
fn hiprtc_compiles_every_kernel_without_a_warning() {
    compile_all(Flavour::Hiprtc, &[("gfx90a", 64)]);
}

#[test]
#[ignore = "a minute and a half: by night"]
fn hiprtc_compiles_every_kernel_for_waves_of_32() {
    compile_all(Flavour::Hiprtc, &[("gfx1030", 32)]);
}

#[test]
fn loops_have_a_way_out_that_may_have_no_end() {
    let has_one = |kernel: KernelDef<_>| {
        let source = kernel.source_text().unwrap();
        source.split_once("\"records\"").unwrap().1.contains("rust::never()")
    };
    assert!(subset::endless::all().into_iter().all(has_one));
    assert!(!has_one(subset::endless::ending()));
}

// SAFETY: it is never launched.
#[gpumem::kernel(unsafe, unchecked)]
fn conditions(out: SliceMut<i64>, x: i64, least: i64) {
    assert!(x != 7);
    out[0] = x.clamp(least, 3) / least;
}

/// Without checks of indices, divisors and steps, what the author has written as a condition is one still.
#[test]
fn conditions_stop_a_kernel_that_is_unchecked() {
    let Some(compiler) = Compiler::load(Flavour::Nvrtc) else { return };
    // `assert!` and `clamp`; and the divisor; and the index.
    for (bounds, stops) in [(0, 2), (2, 3), (1, 4)] {
        let text = conditions().portable_text(32, false).unwrap();
        let text = text.replace("#define GPUMEM_BOUNDS 0\n", &format!("#define GPUMEM_BOUNDS {bounds}\n"));
        let code = String::from_utf8(compiler.compile(&text, "compute_90").unwrap()).unwrap();
        assert_eq!(code.matches("trap;").count(), stops, "bounds {bounds}: {code}");
    }
}

const WEIGHTS: [f32; 4] = [1.0, 2.0, 3.0, 4.0];
const STEPS: [u8; 3] = [1, 2, 3];
const ALL: [f32; 16384] = [1.0; 16384];
const MORE: [u8; 65537] = [1; 65537];

#[gpumem::device]
fn step(i: usize) -> f32 {
    WEIGHTS[i % 4] * STEPS[i % 3] as f32
}

/// Three tables, of which one is that of a function which is called twice.
#[gpumem::kernel]
fn weighted(by: ConstantArray<u8, 1>, y: Own<f32>) {
    let i = global_id(0);
    y[own()] = WEIGHTS[i % 4] * step(i) + by[i] as f32 * step(i + 1);
}

#[gpumem::kernel]
fn large_table(y: Own<f32>) {
    y[own()] = ALL[global_id(0)];
}

#[gpumem::kernel]
fn large_table_and_parameter(by: ConstantArray<u8, 1>, y: Own<f32>) {
    y[own()] = ALL[global_id(0)] * by[0] as f32;
}

#[gpumem::kernel]
fn larger_table(y: Own<u8>) {
    y[own()] = MORE[global_id(0)];
}

const HALF: [f32; 9000] = [1.0; 9000];

#[gpumem::device]
fn entry<const N: usize>(at: usize) -> f32 {
    HALF[at]
}

#[gpumem::kernel]
fn one_table(y: Own<f32>) {
    let at = own();
    if at[0] < y.len() {
        y[at] = entry::<1>(at[0]) + entry::<2>(at[0]);
    }
}

/// NVIDIA's constant memory has room for both, and what fits is the same on every device.
#[test]
fn constants_of_the_body_and_of_the_launch_share_their_memory() {
    if let Some(compiler) = Compiler::load(Flavour::Nvrtc) {
        for text in [weighted().portable_text(32, true), large_table().portable_text(32, true)] {
            compiler.cubin(&text.unwrap(), "sm_90").unwrap();
        }
    }
    let (device, left) = (Device::open("host").unwrap(), 65536 - 3 * 16);
    let (stream, dims) = (device.stream().unwrap(), config_for_items(4, 4));
    let kernel = weighted().load(&device).unwrap();
    let (by, mut y) = (vec![1u8; left + 1], [0.0f32; 4]);
    kernel.launch(&stream, &dims, (In(&by[..left]), Out(&mut y))).unwrap();
    assert_eq!(y, [5.0, 17.0, 31.0, 18.0]);
    let error = kernel.launch(&stream, &dims, (In(&by), Out(&mut y))).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::OutOfMemory { total, .. } if *total == left), "{error}");

    large_table().load(&device).unwrap();
    // One text, and so one table, of two instances.
    one_table().load(&device).unwrap();
    for error in
        [large_table_and_parameter().load(&device).unwrap_err(), larger_table().load(&device).unwrap_err()]
    {
        assert!(matches!(error.kind(), ErrorKind::Build { .. }), "{error}");
        assert!(error.to_string().contains("bytes together"), "{error}");
    }
}

// SAFETY: it is never launched.
#[gpumem::kernel(unsafe)]
fn most_shared(y: SliceMut<u8>) {
    let (i, all) = (global_id(0), y.len());
    let few = shared::<u8>([4]);
    let many = shared::<u64>([6142]);
    let rest = shared::<u32>([1]);
    few[i] = y[i];
    many[i] = all as u64;
    rest[i] = 1;
    barrier(Local);
    y[i] = few[all] + many[all] as u8 + rest[all] as u8;
}

#[test]
fn nvidia_takes_the_shared_arrays_that_fit() {
    let Some(compiler) = Compiler::load(Flavour::Nvrtc) else { return };
    compiler.cubin(&most_shared().portable_text(32, true).unwrap(), "sm_90").unwrap();
}

// SAFETY: it is never launched.
#[gpumem::kernel(unsafe)]
fn beyond_nothing(w: Constant<f32, 0>, records: Constant<Body, 0>, y: SliceMut<f32>) {
    let (i, none) = (y.len(), [0.0f32; 0]);
    for at in 0..i + w.len() {
        y[at] = none[i] + w[i] + records[i].mass;
    }
}

#[test]
fn an_index_of_what_has_no_elements_stops_the_kernel() {
    let Some(compiler) = Compiler::load(Flavour::Nvrtc) else { return };
    let text = beyond_nothing().portable_text(32, true).unwrap();
    let code = String::from_utf8(compiler.compile(&text, "compute_90").unwrap()).unwrap();
    assert!(code.contains("trap;"), "{code}");
}

/// NVIDIA's operations on floats give one NaN for all.
#[test]
fn a_negation_of_a_half_changes_one_bit() {
    let Some(compiler) = Compiler::load(Flavour::Nvrtc) else { return };
    let text = subset::meanings::signs_of_halves().portable_text(32, false).unwrap();
    let code = String::from_utf8(compiler.compile(&text, "compute_90").unwrap()).unwrap();
    assert!(code.contains("xor.b16") && !code.contains("neg.f32"), "{code}");
}

/// A compiler that takes them for ended leaves no jump, and no check of what the loop says.
#[test]
fn loops_stay_that_do_not_end() {
    let wanted = [(Flavour::Nvrtc, ["compute_90", "compute_120"]), (Flavour::Hiprtc, ["gfx906", "gfx1030"])];
    for (flavour, architectures) in wanted {
        let Some(compiler) = Compiler::load(flavour) else { continue };
        for (architecture, (name, text)) in architectures
            .iter()
            .flat_map(|one| subset::endless::all().into_iter().map(move |all| (one, text(all))))
        {
            let text = text(32, false);
            let (code, jump) = match flavour {
                Flavour::Nvrtc => (
                    compiler.compile(&text, architecture).map(|code| String::from_utf8(code).unwrap()),
                    "bra",
                ),
                Flavour::Hiprtc => (compiler.listing(&text, architecture), "branch"),
            };
            match code {
                Ok(code) => assert!(code.contains(jump), "{name} for {architecture}:\n{code}"),
                Err(log) => println!("skipped: {log}"), // an older one does not know the architecture
            }
        }
    }
}

#[test]
fn a_compiler_warning_fails_the_check() {
    for (flavour, architecture) in [(Flavour::Nvrtc, "compute_90"), (Flavour::Hiprtc, "gfx90a")] {
        let Some(compiler) = Compiler::load(flavour) else { continue };
        let text = subset::past_the_end().portable_text(32, true).unwrap();
        let text = text.replace("out_[global_id(0)] = 1ll;", "int i = 1; i == 2; out_[global_id(0)] = i;");
        assert!(compiler.compile(&text, architecture).is_ok());
        assert!(compiler.compile_without_warnings(&text, architecture).is_err(), "{flavour:?}");
    }
}

#[test]
fn the_compilers_name_the_lines_of_the_rust_file() {
    for (flavour, architecture) in [(Flavour::Nvrtc, "compute_90"), (Flavour::Hiprtc, "gfx90a")] {
        let Some(compiler) = Compiler::load(flavour) else { continue };
        let text = subset::past_the_end().portable_text(32, true).unwrap();
        let broken = text.replace("out_[global_id(0)]", "no_such_name[global_id(0)]");
        assert_ne!(text, broken);
        let log = compiler.compile(&broken, architecture).unwrap_err();
        let line = subset::PAST_THE_END;
        let places = [format!("subset/mod.rs({line})"), format!("subset/mod.rs:{line}:")];
        assert!(places.iter().any(|place| log.contains(place)), "{log}");
    }
}
