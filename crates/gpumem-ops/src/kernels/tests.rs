//! The compilers of GPUs take every kernel for every type of elements; no device is needed. On the host no work-items race.

use crate::{
    CastTo, Summable,
    functions::{self, Cast, is_larger, is_smaller, larger, plus, smaller},
    kernel::{HostForm, Kernel, KernelDef, Parameters, Value},
};
use gpumem_core::{Backend, ErrorKind, LaunchConfig};
use gpumem_cuda::Cuda;
use gpumem_host::{Host, HostOptions};
use gpumem_roc::Roc;
use gpumem_runtime::{Device, DeviceArray, Stream};
use half::{bf16, f16};
use ndarray::Ix1;

/// A function of two types of elements.
#[gpumem_macros::device(crate = crate)]
fn weighted(x: f32, y: u8) -> f16 {
    f16::from_f32(x * f32::from(y))
}

/// Whether the compiler takes the kernel; `None` if it is not installed. NVRTC may also be the library in `GPUMEM_NVRTC`, as in the tests
/// of kernels.
fn compiles<B: Backend, P: Parameters>(kernel: &KernelDef<P>, architecture: &str) -> Option<()> {
    let named = std::env::var_os("GPUMEM_NVRTC").map(std::path::PathBuf::from);
    gpumem_cuda::add_compiler_folders(named.iter().filter_map(|file| file.parent()).map(Into::into));
    match kernel.compile_with::<B>(architecture) {
        Ok(image) => {
            assert!(!image.is_empty());
            Some(())
        }
        Err(error) if matches!(error.kind(), ErrorKind::Load(_)) => {
            println!("skipped: {error}");
            None
        }
        Err(error) => panic!("{architecture}: {error}"),
    }
}

fn compiles_everywhere<P: Parameters>(kernel: KernelDef<P>) {
    let _ = compiles::<Cuda, _>(&kernel, "sm_90");
    // AMD's compiler takes a quarter of a second for each.
    for architecture in ["gfx906", "gfx90a", "gfx1030"] {
        if compiles::<Roc, _>(&kernel, architecture).is_none() {
            break;
        }
    }
}

fn all_of<T: Summable + CastTo<T>>() {
    type A<T> = <T as Summable>::Accumulator;
    type First<T> = Cast<T, A<T>>;
    compiles_everywhere(super::reduce::<T, T, A<T>, functions::First<T, A<T>>, plus<A<T>>>());
    compiles_everywhere(super::reduce::<T, T, T, functions::First<T, T>, smaller<T>>());
    compiles_everywhere(super::reduce::<T, T, T, functions::First<T, T>, larger<T>>());
    compiles_everywhere(super::reduce_index::<T, is_smaller<T>>());
    compiles_everywhere(super::reduce_index::<T, is_larger<T>>());
    compiles_everywhere(super::scan_tiles::<T, A<T>, T::Sum, First<T>, Cast<A<T>, T::Sum>>());
    compiles_everywhere(super::scan_columns::<T, A<T>, T::Sum, First<T>, Cast<A<T>, T::Sum>>());
    compiles_everywhere(super::divide::<
        A<T>,
        T::Divided,
        T::Mean,
        Cast<A<T>, T::Divided>,
        Cast<T::Divided, T::Mean>,
    >());
}

#[test]
#[cfg_attr(miri, ignore)] // Miri loads no libraries
fn the_compilers_take_the_kernels_for_floats() {
    all_of::<f16>();
    all_of::<f32>();
    type Fused = functions::after_both<f32, u8, f16, f32, weighted, Cast<f16, f32>>;
    compiles_everywhere(super::reduce::<f32, u8, f32, Fused, plus<f32>>());
}

#[test]
#[cfg_attr(miri, ignore)] // Miri loads no libraries
fn the_compilers_take_the_kernels_for_integers() {
    all_of::<i64>();
}

#[test]
#[cfg_attr(miri, ignore)] // Miri loads no libraries
fn the_compilers_take_the_kernels_of_random_numbers() {
    compiles_everywhere(super::random::<f32, 4, super::uniform_f32>());
    compiles_everywhere(super::random::<f32, 4, super::normal_f32>());
    compiles_everywhere(super::random::<f64, 2, super::uniform_f64>());
    compiles_everywhere(super::random::<f64, 2, super::normal_f64>());
}

#[test]
#[cfg_attr(miri, ignore)] // Miri loads no libraries
fn the_compilers_take_the_kernels_that_sort() {
    use super::{
        digits,
        sort::{self, count_digits, move_by_digit},
    };
    compiles_everywhere(count_digits::<f16, digits::digit_f16>());
    compiles_everywhere(move_by_digit::<f16, digits::digit_f16>());
    compiles_everywhere(move_by_digit::<f64, digits::digit_f64>());
    compiles_everywhere(move_by_digit::<i8, digits::digit_i8>());
    compiles_everywhere(move_by_digit::<u64, digits::digit_of_line>());
    compiles_everywhere(sort::sorted_elements::<f32>());
    compiles_everywhere(sort::sorted_positions());
}

#[test]
#[cfg_attr(miri, ignore)] // Miri loads no libraries
fn the_compilers_take_every_cast() {
    macro_rules! casts {
        ($($from:ident)*; $to:tt) => {$( casts!(@from $from $to); )*};
        (@from $from:ident [$($to:ident)*]) => {$(
            let _ = compiles::<Cuda, _>(&super::zip_map::<$from, $from, $to, functions::of_first<$from, $to, Cast<$from, $to>>>(), "sm_90");
        )*};
    }
    casts!(u8 i8 u16 i16 u32 i32 u64 i64 f16 bf16 f32 f64; [u8 i8 u16 i16 u32 i32 u64 i64 f16 bf16 f32 f64]);
    compiles_everywhere(super::zip_map::<f64, f64, f16, functions::of_first<f64, f16, Cast<f64, f16>>>());
    compiles_everywhere(super::zip_map::<f16, f16, bf16, functions::of_first<f16, bf16, Cast<f16, bf16>>>());
    compiles_everywhere(super::zip_map::<bf16, bf16, u8, functions::of_first<bf16, u8, Cast<bf16, u8>>>());
    compiles_everywhere(super::zip_map::<i64, i64, bf16, functions::of_first<i64, bf16, Cast<i64, bf16>>>());
}

/// A launch of a kernel that leaves floats in an array.
type Launch<'l, P> =
    &'l dyn Fn(&Kernel<P, Host>, &Stream<Host>, &mut DeviceArray<f32, Ix1, Host>) -> gpumem_core::Result<()>;

/// Runs a kernel on the host in both of its forms, in waves of 32 and of 64, and looks for races.
fn agrees<P: Parameters>(kernel: &KernelDef<P>, len: usize, launch: Launch<'_, P>) -> Vec<f32> {
    assert_eq!(kernel.host_form(), Some(HostForm::Phases), "a barrier costs nothing on the host");
    let mut answers = [(32, false), (32, true), (64, false), (64, true)].map(|(wave_size, check)| {
        let host = Host::open_with(&HostOptions::new().wave_size(wave_size)).unwrap();
        let device = Device::<Host>::from_raw(host);
        let stream = device.stream().unwrap();
        let mut out = stream.device_array::<f32, _>(len).unwrap();
        launch(&kernel.clone().race_checks(check).load(&device).unwrap(), &stream, &mut out).unwrap();
        out.copy_to_host().unwrap().to_vec()
    });
    let answer = std::mem::take(&mut answers[0]);
    assert!(answers[1..].iter().all(|other| *other == answer));
    answer
}

#[test]
fn work_items_do_not_race() {
    let x: Vec<f32> = (0..3 * 2100).map(|at| at as f32 * 0.1).collect();
    let reduce = super::reduce::<f32, f32, f32, functions::First<f32, f32>, plus<f32>>();
    // 3 lines of 2100 neighbours, in rows of 64 lanes; then 2100 lines of 3, of one lane.
    for (lanes, length, inner, len) in [(64, 2100, 1, 3), (1, 3, 2100, 2100)] {
        let sums = agrees(&reduce, len, &|kernel, stream, out| {
            let x = stream.to_device(&x)?;
            let groups = len.div_ceil(256 / lanes as usize) as u32;
            let dims = LaunchConfig::new(groups, (lanes, 256 / lanes));
            kernel.launch(stream, &dims, (&x, &x, out, Value(0.0), length, inner))
        });
        let (all, expected): (f32, f32) = (sums.iter().sum(), x.iter().sum());
        assert!((all - expected).abs() < expected * 1e-5, "{all} is not {expected}");
    }
    let scan = super::scan_tiles::<f32, f32, f32, Cast<f32, f32>, Cast<f32, f32>>();
    let sums = agrees(&scan, 2000, &|kernel, stream, out| {
        let (x, before) = (stream.to_device(&x[..2000])?, stream.to_device(&[5.0f32])?);
        kernel.launch(stream, &LaunchConfig::new(1, 256), (&x, &before, out, 2000, 1, true))
    });
    assert!((sums[0], sums[1], sums[3]) == (5.0, 5.0, 5.3), "{:?}", &sums[..4]);
    let place = super::reduce_index::<f32, is_larger<f32>>();
    let greatest = agrees(&place, 3, &|kernel, stream, out| {
        let (x, none) = (stream.to_device(&x)?, stream.device_array::<u64, _>(0)?);
        let mut places = stream.device_array::<u64, _>(3)?;
        let dims = LaunchConfig::new(1, (64, 4));
        kernel.launch(stream, &dims, (&x, &none, out, &mut places, 2100, 1))?;
        assert_eq!(places.copy_to_host()?.to_vec(), [2099; 3]);
        Ok(())
    });
    assert_eq!(greatest, [2099.0f32 * 0.1, 4199.0 * 0.1, 6299.0 * 0.1]);
}

#[test]
fn work_items_that_sort_do_not_race() {
    use super::{
        digits::digit_f32,
        sort::{count_digits, move_by_digit},
    };
    // Two tiles, with 16 different digits from bit 19 on.
    let x: Vec<f32> =
        (0..4500u32).map(|at| f32::from_bits(0x3f80_0000 | ((at * 7 % 16) << 19) | at)).collect();
    let dims = LaunchConfig::new(2, 256);
    let mut counts = vec![0u32; 32];
    x.iter().enumerate().for_each(|(at, x)| {
        counts[(x.to_bits() >> 19) as usize % 16 * 2 + at / 4096] += 1;
    });
    agrees(&count_digits::<f32, digit_f32>(), 1, &|kernel, stream, _| {
        let (x, mut found) = (stream.to_device(&x)?, stream.device_array::<u32, _>(32)?);
        kernel.launch(stream, &dims, (&x, &mut found, 19, 1, 1))?;
        assert_eq!(found.copy_to_host()?.to_vec(), counts);
        Ok(())
    });
    let before: Vec<u64> = (0..32).map(|at| counts[..at].iter().copied().map(u64::from).sum()).collect();
    let moved = agrees(&move_by_digit::<f32, digit_f32>(), x.len(), &|kernel, stream, out| {
        let (x, before) = (stream.to_device(&x)?, stream.to_device(&before)?);
        let (none, mut places) = (stream.device_array::<u64, _>(0)?, stream.device_array::<u64, _>(x.len())?);
        kernel.launch(stream, &dims, (&x, &none, &before, out, &mut places, 19, 1, 1))
    });
    let mut expected = x.clone();
    expected.sort_by_key(|x| (x.to_bits() >> 19) % 16);
    assert_eq!(moved, expected);
}

/// The checks of a text are those of all functions in it.
#[test]
fn a_function_of_the_callers_keeps_its_checks() {
    type Own = functions::of_first<f32, f32, Cast<f32, f32>>;
    type Theirs = functions::after_both<f32, u8, f16, f32, weighted, Cast<f16, f32>>;
    type InFirst =
        functions::of_first<f32, f32, functions::after<f32, f32, f32, Cast<f32, f32>, Cast<f32, f32>>>;
    let own = super::reduce::<f32, f32, f32, Own, plus<f32>>();
    let theirs = super::reduce::<f32, u8, f32, Theirs, plus<f32>>();
    let in_first = super::reduce::<f32, f32, f32, InFirst, plus<f32>>();
    let mapped = super::zip_map::<f32, u8, f16, weighted>();
    let settings =
        [format!("{own:?}"), format!("{theirs:?}"), format!("{in_first:?}"), format!("{mapped:?}")];
    assert_eq!(settings.map(|settings| settings.contains("bounds: Functions")), [false, true, true, true]);
}
