//! Compiles every kernel that ships for every architecture, and checks the barriers in the output.

use crate::{
    AMD, NVIDIA, compiler as load,
    compiler::{Compiler, Flavour},
};
use gpumem_kernel::KernelDef;
use gpumem_kernel_suite::{
    Shipped, all,
    by_hand::{self, Twin},
};

/// Barriers of the group and of the wave in a kernel's own source. The compiler may repeat the body of a loop.
fn written(kernel: &Shipped) -> (usize, usize) {
    let text = kernel.text(32, false);
    let (_, behind) = text.split_once("#line 1 \"kernel\"").expect("the source follows the prelude");
    let (source, _) = behind.split_once("#line 1 \"declaration\"").expect("the check follows the source");
    let wave = source.matches("wavebarrier(").count();
    (source.matches("barrier(").count() - wave, wave)
}

#[track_caller]
fn same_barriers(kernel: &Shipped, architecture: &str, found: (usize, usize)) {
    let (group, wave) = written(kernel);
    for (what, written, found) in [("group", group, found.0), ("wave", wave, found.1)] {
        let fits = if written == 0 { found == 0 } else { found >= written };
        assert!(fits, "{} for {architecture}: {found} barriers of the {what} of {written}", kernel.name);
    }
}

#[test]
fn the_kernels_have_barriers_of_both_kinds() {
    let all: Vec<_> = all().iter().map(|kernel| (kernel.name.clone(), written(kernel))).collect();
    assert!(all.contains(&("saxpy_".to_owned(), (0, 0))), "{all:?}");
    assert!(all.contains(&("transpose_".to_owned(), (1, 0))), "{all:?}");
    assert!(all.contains(&("reduce_".to_owned(), (3, 1))), "{all:?}");
    assert_eq!(all.iter().filter(|(_, (group, _))| *group > 0).count(), 8, "{all:?}");
}

#[test]
fn nvrtc_compiles_every_kernel_and_its_barriers() {
    let Some(compiler) = load(Flavour::Nvrtc) else { return };
    for architecture in NVIDIA {
        for kernel in all() {
            for bounds in [false, true] {
                let text = kernel.text(32, bounds);
                let ptx = String::from_utf8(told(&compiler, &kernel, &text, architecture)).unwrap();
                assert!(ptx.contains(&format!(".entry {}(", kernel.name)), "{}: {architecture}", kernel.name);
                // With bounds, a kernel whose indices are shown to be inside may need no check.
                assert!(bounds || !ptx.contains("trap;"), "{}: {architecture}", kernel.name);
                let count =
                    |what: &str| ptx.lines().filter(|line| line.trim_start().starts_with(what)).count();
                same_barriers(&kernel, architecture, (count("bar.sync"), count("bar.warp.sync")));
            }
            // The image that the CUDA backend loads: machine code of the real architecture, by the assembler inside
            // NVRTC.
            let real = architecture.replace("compute", "sm");
            let cubin = compiler.cubin(&kernel.text(32, false), &real).unwrap();
            assert!(cubin.starts_with(b"\x7fELF"), "{}: {real}", kernel.name);
        }
    }
}

#[test]
fn hiprtc_compiles_every_kernel_and_its_barriers() {
    let Some(compiler) = load(Flavour::Hiprtc) else { return };
    for (architecture, wave_size) in AMD {
        for kernel in all() {
            let listing = compiler.listing(&kernel.text(wave_size, false), architecture);
            let listing = listing.unwrap_or_else(|log| panic!("{} for {architecture}:\n{log}", kernel.name));
            assert!(listing.contains(&format!(".amdhsa_kernel {}", kernel.name)), "{}", kernel.name);
            assert!(listing.contains(&format!("amdgcn-amd-amdhsa--{architecture}")), "{}", kernel.name);
            // The barrier of the wave emits no instruction, and leaves a comment.
            let count = |what: &str| listing.lines().filter(|line| line.trim() == what).count();
            same_barriers(&kernel, architecture, (count("s_barrier"), count("; wave barrier")));
        }
    }
    let (architecture, wave_size) = AMD[1];
    for kernel in all() {
        told(&compiler, &kernel, &kernel.text(wave_size, true), architecture);
    }
}

fn told(compiler: &Compiler, kernel: &Shipped, text: &str, architecture: &str) -> Vec<u8> {
    let code = compiler.compile(text, architecture);
    code.unwrap_or_else(|log| panic!("{} for {architecture}:\n{log}", kernel.name))
}

/// The backends pass these options unless a declaration asks for contraction.
#[test]
fn products_and_sums_are_not_contracted_when_the_flag_is_off() {
    let saxpy = all().into_iter().find(|kernel| kernel.name == "saxpy_").unwrap();
    if let Some(compiler) = load(Flavour::Nvrtc) {
        let joined = |ptx: Vec<u8>| String::from_utf8(ptx).unwrap().contains("fma.rn");
        for architecture in NVIDIA {
            assert!(joined(told(&compiler, &saxpy, &saxpy.text(32, false), architecture)), "the default");
            for kernel in all() {
                let ptx = compiler.compile_with(&kernel.text(32, false), architecture, "--fmad=false");
                assert!(!joined(ptx.unwrap()), "{}: {architecture}", kernel.name);
            }
        }
    }
    if let Some(compiler) = load(Flavour::Hiprtc) {
        for (architecture, wave_size) in AMD {
            let text = saxpy.text(wave_size, false);
            let apart = compiler.compile_with(&text, architecture, "-ffp-contract=off").unwrap();
            assert_ne!(apart, told(&compiler, &saxpy, &text, architecture), "{architecture}");
        }
    }
}

/// Instructions of a kernel in PTX.
fn instructions(ptx: &str) -> usize {
    let body = ptx.split_once(".entry").map_or("", |(_, entry)| entry);
    let is_one = |line: &str| {
        let line = line.trim();
        line.ends_with(';') && !line.starts_with(['.', '/']) && !line.starts_with("ret")
    };
    body.lines().filter(|line| is_one(line)).count()
}

/// The name of a kernel that has more instructions than it may, and how many.
fn too_many<P: gpumem_kernel::Parameters>(compiler: &Compiler, twin: fn() -> Twin<P>) -> Vec<String> {
    let mut found = Vec::new();
    for bounds in [false, true] {
        let Twin { rust, cpp } = twin().bounds_checks(bounds);
        let count = |kernel: &KernelDef<P>| {
            let text = kernel.portable_text(32, bounds).unwrap();
            let ptx = compiler.compile(&text, "compute_90").unwrap_or_else(|log| panic!("{log}"));
            instructions(&String::from_utf8(ptx).unwrap())
        };
        let (in_rust, by_hand) = (count(&rust), count(&cpp));
        let line = format!("{}, bounds {bounds}: {in_rust} instructions, by hand {by_hand}", rust.name());
        println!("{line}");
        if by_hand < 10 || in_rust * 100 > by_hand * 105 {
            found.push(line);
        }
    }
    found
}

#[test]
fn rust_needs_no_more_instructions_than_cpp_by_hand() {
    let Some(compiler) = load(Flavour::Nvrtc) else { return };
    let found = [
        too_many(&compiler, by_hand::saxpy),
        too_many(&compiler, by_hand::update),
        too_many(&compiler, by_hand::stencil),
        too_many(&compiler, by_hand::transpose),
        too_many(&compiler, by_hand::matmul),
        too_many(&compiler, by_hand::reduce),
        too_many(&compiler, by_hand::scan),
        too_many(&compiler, by_hand::histogram),
        too_many(&compiler, by_hand::convolution),
    ];
    assert!(found.iter().all(Vec::is_empty), "{found:#?}");
}
