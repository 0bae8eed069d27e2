//! Kernels without `unsafe`, on the host and on the GPUs of this machine: their results, and the launches that are
//! refused.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // helpers of tests

#[path = "subset/names.rs"]
mod names;
#[forbid(unsafe_code)]
#[path = "subset/own.rs"]
mod own;

use gpumem::{
    Backend, Bool, ErrorKind, LaunchConfig,
    generic::{Device, Stream},
    host::Host,
    kernel::{HostForm, In, InOut, KernelDef, Out, Own, Parameters, SliceMut, Value, config_for_items},
    ndarray::{Array2, Array3},
    s,
};
use gpumem_cuda::Cuda;
use gpumem_roc::Roc;
use own::*;

/// A trait of a user's for a type that expansions use.
#[allow(dead_code)] // no expansion calls it
trait Printed {
    fn source(self) -> String;
}

impl Printed for gpumem::kernel::codegen::PrintedProgram {
    fn source(self) -> String {
        "any C++".to_owned()
    }
}

#[gpumem::kernel]
fn printed(y: Own<u32>) {
    y[own()] = 1u32;
}

#[test]
fn a_kernels_source_is_the_librarys() {
    assert!(printed().source_text().unwrap().contains("GPUMEM_KERNEL printed_("));
}

/// Functions of which each calls the next at two places, of which it reaches one.
macro_rules! chain {
    ($last:ident) => {
        #[gpumem::device]
        fn $last(x: u32) -> u32 {
            x + 1
        }
    };
    ($first:ident $next:ident $($rest:ident)*) => {
        #[gpumem::device]
        fn $first(x: u32) -> u32 {
            if x % 2 == 0 { $next(x + 1) } else { $next(x + 3) }
        }
        chain!($next $($rest)*);
    };
}

chain!(f0 f1 f2 f3 f4 f5 f6 f7 f8 f9 f10 f11 f12 f13 f14 f15 f16 f17 f18 f19 f20 f21 f22 f23);

#[gpumem::kernel]
fn chained(y: Own<u32>) {
    y[own()] = f0(2);
}

#[test]
fn a_function_is_built_once_however_many_call_it() {
    let kernel = chained();
    let source = kernel.source_text().unwrap();
    // Built for each call, there would be millions of them.
    assert_eq!(source.matches("GPUMEM_DEVICE u32 f").count(), 24, "{source}");
    let (device, stream) = on::<Host>("host").unwrap();
    let mut y = stream.to_device(&[0u32; 4]).unwrap();
    kernel.load(&device).unwrap().launch(&stream, &config_for_items(4, 4), (&mut y,)).unwrap();
    let expected = (0..23).fold(2, |x, _| if x % 2 == 0 { x + 1 } else { x + 3 }) + 1;
    assert_eq!(stream.copy_to_host(&y).unwrap().view().unwrap().to_vec(), [expected; 4]);
}

// SAFETY: it writes nothing.
#[gpumem::kernel(unsafe)]
fn promised(_y: SliceMut<u32>) {}

fn on<B: Backend>(name: &'static str) -> Option<(Device<B>, Stream<B>)> {
    match Device::<B>::open(name) {
        Ok(device) => {
            let stream = device.stream().unwrap();
            Some((device, stream))
        }
        Err(error) => {
            println!("skipped: no {name}: {error}");
            None
        }
    }
}

fn rows<B: Backend>((device, stream): (Device<B>, Stream<B>)) {
    let dims = config_for_items(1000, 256);
    let x: Vec<f32> = (0..1000).map(|i| i as f32).collect();
    let mut y = stream.to_device(&vec![1.0f32; 1000]).unwrap();
    let kernel = scale::<f32>().load(&device).unwrap();
    kernel.launch(&stream, &dims, (&stream.to_device(&x).unwrap(), &mut y, 2.0)).unwrap();
    let mut z = vec![1.0f32; 1000];
    kernel.launch(&stream, &dims, (In(&x), InOut(&mut z), 2.0)).unwrap();
    assert_eq!(z, x.iter().map(|x| 2.0 * x + 1.0).collect::<Vec<_>>());
    assert_eq!(stream.copy_to_host(&y).unwrap().view().unwrap().to_vec(), z);

    let at = |number: f32| Particle { place: [number, 2.0 * number, 0.0], mass: number };
    let mut particles = stream.to_device(&(0..100).map(|i| at(i as f32)).collect::<Vec<_>>()).unwrap();
    let kernel = accelerate().load(&device).unwrap();
    kernel.launch(&stream, &config_for_items(100, 32), (&mut particles, Value(at(8.0)))).unwrap();
    assert_eq!(particles.get(4).unwrap(), Particle { place: [4.0, 8.0 + 16.0 / 8.0, 0.0], mass: 8.0 });
    assert_eq!(particles.get(64).unwrap(), Particle { place: [64.0, 128.0 + 16.0 / 64.0, 0.0], mass: 64.0 });

    // Any bits but 0 are true.
    let bytes = stream.to_device(&[0u8, 1, 2, 255]).unwrap();
    let mut negated = stream.to_device(&[Bool::from(false); 4]).unwrap();
    let kernel = negate().load(&device).unwrap();
    let truths = bytes.reinterpret::<Bool>().unwrap();
    kernel.launch(&stream, &config_for_items(4, 4), (&truths, &mut negated)).unwrap();
    assert_eq!(
        stream.copy_to_host(&negated).unwrap().view().unwrap().to_vec(),
        [true, false, false, false].map(Bool::from)
    );

    // A wave of 32, or a half of one of 64. The sums are 32, 1024 % 1000, and 768.
    let mut sums = stream.to_device(&[1u32; 32]).unwrap();
    settle().load(&device).unwrap().launch(&stream, &config_for_items(32, 32), (&mut sums, 3)).unwrap();
    assert_eq!(sums.get(31).unwrap(), 768);
}

fn views<B: Backend>((device, stream): (Device<B>, Stream<B>)) {
    let kernel = mark().load(&device).unwrap();
    let before = Array2::from_elem((30, 50), 7u32);
    let mut image = stream.to_device(&Array2::<u32>::zeros((60, 50))).unwrap();
    // Every other row, from the last to the first.
    let mut part = image.slice_mut(s![..;-2, ..]).unwrap();
    kernel
        .launch(
            &stream,
            &config_for_items((50, 30), (16, 4)),
            (&stream.to_device(&before).unwrap(), &mut part),
        )
        .unwrap();
    drop(part);
    let found = stream.copy_to_host(&image).unwrap();
    let found = found.view().unwrap();
    let expected = |row: usize, column: usize| match row % 2 {
        1 => 7 + (59 - row as u32) / 2 * 100 + column as u32,
        _ => 0,
    };
    assert_eq!(found, Array2::from_shape_fn((60, 50), |(row, column)| expected(row, column)));

    let mut cube = Array3::<u32>::zeros((3, 4, 5));
    let kernel = volume().load(&device).unwrap();
    kernel.launch(&stream, &config_for_items((5, 4, 3), (4, 2, 2)), (Out(&mut cube),)).unwrap();
    assert_eq!(cube, Array3::from_shape_fn((3, 4, 5), |(z, y, x)| (x + 10 * y + 100 * z) as u32));
}

fn launches<B: Backend>((device, stream): (Device<B>, Stream<B>)) {
    let refused = |error: gpumem::Error| match error.kind() {
        ErrorKind::InvalidArgument { why } => why.starts_with("each work-item writes its own element"),
        _ => false,
    };
    let (mut y, x) = (stream.to_device(&[0.0f32; 64]).unwrap(), stream.to_device(&[1.0f32; 64]).unwrap());
    let row = scale::<f32>().load(&device).unwrap();
    for dims in [
        LaunchConfig { groups: [2, 2, 1], group_size: [32, 1, 1], shared_bytes: 0 },
        LaunchConfig { groups: [2, 1, 2], group_size: [32, 1, 1], shared_bytes: 0 },
        LaunchConfig { groups: [2, 1, 1], group_size: [8, 4, 1], shared_bytes: 0 },
        LaunchConfig { groups: [2, 1, 1], group_size: [8, 1, 4], shared_bytes: 0 },
    ] {
        assert!(refused(row.launch(&stream, &dims, (&x, &mut y, 1.0)).unwrap_err()), "{dims:?}");
    }
    let (mut image, before) = (Array2::<u32>::zeros((4, 4)), Array2::<u32>::zeros((4, 4)));
    let grid = mark().load(&device).unwrap();
    let flat = LaunchConfig { groups: [1, 1, 1], group_size: [4, 4, 1], shared_bytes: 0 };
    let deep = LaunchConfig { groups: [1, 1, 2], ..flat };
    assert!(refused(grid.launch(&stream, &deep, (In(&before), InOut(&mut image))).unwrap_err()));
    grid.launch(&stream, &flat, (In(&before), InOut(&mut image))).unwrap();
    assert_eq!(image[[3, 2]], 302);
    assert_eq!(y.get(0).unwrap(), 0.0); // nothing was launched
}

macro_rules! on_every_backend {
    ($($name:ident: $check:ident;)*) => {$(
        #[test]
        fn $name() {
            $check(on::<Host>("host").unwrap());
            if let Some(gpu) = on::<Cuda>("cuda") {
                $check(gpu);
            }
            if let Some(gpu) = on::<Roc>("roc") {
                $check(gpu);
            }
        }
    )*};
}
on_every_backend! {
    each_work_item_writes_its_element_of_a_row: rows;
    each_work_item_writes_its_element_of_a_view: views;
    a_launch_of_more_axes_than_the_array_is_refused: launches;
}

#[test]
fn an_own_element_past_the_end_is_a_fault_and_nothing_races() {
    let (device, stream) = on::<Host>("host").unwrap();
    let mut y = stream.to_device(&[5u32; 64]).unwrap();
    let dims = config_for_items(96, 32);
    let kernel = settle().load(&device).unwrap();
    kernel.launch(&stream, &dims, (&mut y, 1)).unwrap();
    let error = stream.synchronize().unwrap_err().to_string();
    assert!(error.contains("uses index [64] of an array of shape [64]"), "{error}");

    let checked = settle().race_checks(true).load(&device).unwrap();
    let mut y = stream.to_device(&[5u32; 64]).unwrap();
    checked.launch(&stream, &config_for_items(64, 32), (&mut y, 2)).unwrap();
    stream.synchronize().unwrap();
    assert_eq!(settle().host_form(), Some(HostForm::Phases));
    assert_eq!(scale::<f32>().host_form(), Some(HostForm::Loop));
}

#[test]
fn a_kernel_in_rust_accepts_no_other_program() {
    let (device, _) = on::<Host>("host").unwrap();
    refuses_other_programs(&device, scale::<f32>);
    refuses_other_programs(&device, promised);
    // SAFETY: the body does nothing.
    let other = unsafe { promised().unsealed() }.host_loop(|_, _| {}).bounds_checks(false);
    other.load(&device).unwrap();
    other.sealed().bounds_checks(false).load(&device).unwrap_err();
}

fn refuses_other_programs<P: Parameters>(device: &Device<Host>, declaration: impl Fn() -> KernelDef<P>) {
    let refused = [
        declaration().source("GPUMEM_KERNEL scale() {}"),
        declaration().image("sm_90", vec![1]),
        declaration().fatbin(vec![1]),
        declaration().ptx("text"),
        declaration().host_body(async |_, _| {}),
        declaration().host_loop(|_, _| {}),
        declaration().compiler_flag("-DGPUMEM_BOUNDS=0"),
        declaration().bounds_checks(false),
        declaration().bounds_checks(false).bounds_checks(true).clone(),
        declaration().bounds_checks(false).sealed(),
    ];
    for declaration in refused {
        let error = declaration.load(device).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::InvalidArgument { .. }), "{error}");
    }
    declaration().contract(true).race_checks(true).bounds_checks(true).load(device).unwrap();
}

#[gpumem::device]
fn twice(x: u32) -> u32 {
    x * 2
}

/// In the place of a macro of the standard library. No expansion calls it.
#[allow(unused_macros)]
macro_rules! leave {
    () => {
        return <twice as gpumem::kernel::codegen::DeviceFunction>::program(
            &gpumem::kernel::codegen::Calls::of_kernel(),
        )
    };
}
#[allow(unused_imports)]
pub(crate) use leave;

/// gpumem but for one macro.
mod elsewhere {
    pub(crate) mod kernel {
        pub(crate) use gpumem::kernel::*;
        pub(crate) mod codegen {
            pub(crate) use gpumem::kernel::codegen::*;
            #[allow(unused_imports)] // as above
            pub(crate) mod rust {
                pub(crate) use crate::leave as file;
                pub(crate) use std::*;
            }
        }
    }
}

#[gpumem::device(crate = elsewhere)]
fn once(x: u32) -> u32 {
    x
}

#[gpumem::kernel(crate = elsewhere)]
fn copied(y: Own<u32>) {
    y[own()] = once(y[own()]);
}

#[test]
fn no_macro_gives_another_program() {
    let source = copied().source_text().unwrap().to_owned();
    assert!(source.contains("functions::once_(") && !source.contains("twice"), "{source}");
}
