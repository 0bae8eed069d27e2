//! Kernels that are written in Rust, on the host: what they compute, and what they do wrong.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // helpers of tests

mod subset;

use gpumem::{
    Device, DeviceArray, ErrorKind, Result, Stream,
    kernel::{HostForm, KernelDeclaration, cover},
    ndarray::Ix1,
};
use subset::*;

fn host() -> (Device, Stream) {
    let device = Device::open("host").unwrap();
    let stream = device.stream().unwrap();
    (device, stream)
}

fn zeros<T: gpumem::Element>(stream: &Stream, len: usize) -> DeviceArray<T, Ix1> {
    stream.to_device(&vec![T::zeroed(); len]).unwrap()
}

fn back<T: gpumem::Element>(stream: &Stream, array: &DeviceArray<T, Ix1>) -> Vec<T> {
    stream.copy_to_host(array).unwrap().view().unwrap().to_vec()
}

/// What a kernel of one `i64` per work-item gives, for 64 work-items in groups of 32.
fn integers(declaration: KernelDeclaration<subset::Integers>) -> Vec<i64> {
    let (device, stream) = host();
    let mut out = zeros::<i64>(&stream, 64);
    let dims = cover([64, 1, 1], [32, 1, 1]);
    declaration.load(&device).unwrap().launch(&stream, &dims, (&mut out,)).unwrap();
    back(&stream, &out)
}

#[track_caller]
fn expect(declaration: KernelDeclaration<subset::Integers>, of: impl Fn(i64) -> i64) {
    let found = integers(declaration.clone());
    assert_eq!(found, (0..64).map(&of).collect::<Vec<_>>());
    // In check mode the work-items do the same, and nothing races.
    assert_eq!(integers(declaration.check(true)), found);
}

#[test]
fn saxpy_is_a_loop_and_gives_what_plain_rust_gives() {
    let (device, stream) = host();
    let (x, y): (Vec<f32>, Vec<f32>) = (0..1000).map(|i| (i as f32 * 0.1, 1.0 / (i + 1) as f32)).unzip();
    let declaration = saxpy();
    assert_eq!(declaration.host_form(), Some(HostForm::Loop));
    let (x_there, mut y_there) = (stream.to_device(&x).unwrap(), stream.to_device(&y).unwrap());
    let kernel = declaration.load(&device).unwrap();
    kernel.launch(&stream, &cover([1000, 1, 1], [256, 1, 1]), (&x_there, &mut y_there, 2.5)).unwrap();
    let expected: Vec<f32> = x.iter().zip(&y).map(|(x, y)| 2.5 * x + y).collect();
    assert_eq!(back(&stream, &y_there), expected);
}

#[test]
fn a_generic_kernel_is_one_for_each_type() {
    fn run<T: Numeric + gpumem::kernel::Argument<T, gpumem::Any>>(numbers: [T; 4], a: T) -> Result<Vec<T>> {
        let (device, stream) = host();
        let x = stream.to_device(&numbers.to_vec())?;
        let mut y = zeros::<T>(&stream, 4);
        axpb::<T>().load(&device)?.launch(&stream, &cover([4, 1, 1], [32, 1, 1]), (&x, &mut y, a))?;
        Ok(back(&stream, &y))
    }
    use gpumem::kernel::Numeric;
    assert_eq!(run([0.0f32, 1.0, -2.0, 0.5], 3.0).unwrap(), [1.0, 4.0, -5.0, 2.5]);
    assert_eq!(run([0.0f64, 1.0, -2.0, 0.5], 3.0).unwrap(), [1.0, 4.0, -5.0, 2.5]);
    assert_eq!(run([0i32, 1, -2, 5], 3).unwrap(), [1, 4, -5, 16]);
    assert_eq!(run([0u8, 1, 2, 5], 3).unwrap(), [1, 4, 7, 16]);
    assert_eq!(run([0i64, 1, -2, 5], 3).unwrap(), [1, 4, -5, 16]);
    let sources = [axpb::<f32>(), axpb::<f32>()].map(|kernel| kernel.source().unwrap().to_owned());
    assert_eq!(sources[0], sources[1]);
    assert!(sources[0].contains("slice<const float> x"), "{}", sources[0]);
    assert!(axpb::<i32>().source().unwrap().contains("rust::add<i32>"));
}

#[test]
fn shared_memory_and_barriers_multiply_matrices() {
    let (device, stream) = host();
    let (rows, depth, columns) = (37, 53, 41);
    let a = ndarray::Array2::from_shape_fn((rows, depth), |(i, j)| ((i * 7 + j * 3) % 11) as f32);
    let b = ndarray::Array2::from_shape_fn((depth, columns), |(i, j)| ((i * 5 + j) % 13) as f32);
    for declaration in [matmul::<f32, 8>(), matmul::<f32, 16>(), matmul::<f32, 16>().check(true)] {
        assert_eq!(declaration.host_form(), Some(HostForm::WorkItems));
        let (left, right) = (stream.to_device(&a).unwrap(), stream.to_device(&b).unwrap());
        let mut product = stream.to_device(&ndarray::Array2::<f32>::zeros((rows, columns))).unwrap();
        let tile = if declaration.source().unwrap().contains("left, 8ull") { 8 } else { 16 };
        let kernel = declaration.load(&device).unwrap();
        let dims = cover([columns, rows, 1], [tile, tile, 1]);
        kernel.launch(&stream, &dims, (&left, &right, &mut product)).unwrap();
        assert_eq!(stream.copy_to_host(&product).unwrap().view().unwrap(), a.dot(&b));
    }
}

#[test]
fn operations_of_waves_give_what_the_tree_gives() {
    let (device, stream) = host();
    let numbers: Vec<f32> = (0..1000).map(|i| (i % 17) as f32).collect();
    let x = stream.to_device(&numbers).unwrap();
    let (mut tree, mut wave) = (zeros::<f32>(&stream, 4), zeros::<f32>(&stream, 4));
    let kernel = reduce().load(&device).unwrap();
    kernel.launch(&stream, &cover([1000, 1, 1], [256, 1, 1]), (&x, &mut tree, &mut wave)).unwrap();
    let sums: Vec<f32> = numbers.chunks(256).map(|chunk| chunk.iter().sum()).collect();
    assert_eq!(back(&stream, &tree), sums);
    assert_eq!(back(&stream, &wave), sums);
}

#[test]
fn atomics_count() {
    let (device, stream) = host();
    let values: Vec<u8> = (0..5000u32).map(|i| (i * i % 251) as u8).collect();
    let there = stream.to_device(&values).unwrap();
    let mut totals = zeros::<u32>(&stream, 256);
    let kernel = histogram().check(true).load(&device).unwrap();
    kernel.launch(&stream, &cover([1024, 1, 1], [256, 1, 1]), (&there, &mut totals)).unwrap();
    let mut expected = vec![0u32; 256];
    values.iter().for_each(|value| expected[usize::from(*value)] += 1);
    assert_eq!(back(&stream, &totals), expected);
}

#[test]
fn ranges_of_all_kinds_count_as_in_rust() {
    expect(ranges(), |n| {
        let mut sum = 0;
        for i in 0..n {
            sum += i;
        }
        for i in 1..=n {
            sum = sum * 3 % 1009 + i;
        }
        for i in (0..n).rev() {
            sum = sum * 5 % 2003 + i;
        }
        for i in (2..=n).step_by(3) {
            sum = sum * 7 % 3001 + i;
        }
        for i in (0..n).step_by(4) {
            sum += i * i;
        }
        for i in (0..=n).rev().step_by(5) {
            sum = sum * 11 % 4001 + i;
        }
        for i in 250..=255u8 {
            sum += i64::from(i);
        }
        for i in (-128..=-120i8).rev() {
            sum += i64::from(i);
        }
        for _ in 0..3 {
            sum += 1;
        }
        sum
    });
}

#[test]
fn labels_lead_out_of_loops_and_on_in_them() {
    expect(labels(), |n| {
        let mut sum = 0;
        'outer: for i in 0..10 {
            let step = i + 1;
            for j in 0..10 {
                if j > i {
                    continue 'outer;
                }
                if i * j > n {
                    break 'outer;
                }
                let product = step * j;
                sum += product;
            }
            sum += 1000;
        }
        sum
    });
}

#[test]
fn blocks_ifs_matches_and_loops_are_values() {
    expect(values(), |n| {
        let square = n * n;
        let kind = match n % 7 {
            0 => 100,
            1 | 2 => 200 + square,
            3..=4 => 300,
            k if k > 5 => 400 + k,
            _ => 500,
        };
        let root = (0..).find(|root| root * root >= n).unwrap();
        let sign = if n > 32 {
            -1
        } else if n == 32 {
            0
        } else {
            1
        };
        let by_bool = if n % 2 == 0 && n > 4 { 7 } else { 9 };
        kind + root * 10 + sign + by_bool + if n > 60 { 5 } else { 0 }
    });
}

#[test]
#[allow(clippy::needless_range_loop)] // as in the kernel
fn tuples_arrays_and_shadowed_names_are_as_in_rust() {
    expect(shapes(), |n| {
        let (a, b) = (n + 1, n * 2);
        let (a, b) = (b, a);
        let pair = (a, b as f32);
        let mut window = [0i64; 5];
        for k in 0..5usize {
            window[k] = a * k as i64;
        }
        window[2] += b;
        let mut grid = [[0i64; 3]; 2];
        for row in 0..2 {
            for column in 0..3 {
                grid[row][column] = row as i64 * 10 + column as i64;
            }
        }
        let later = if n > 5 { 3 } else { 4 };
        let total: i64 = window.iter().sum();
        let total = total + grid[1][2] + later + pair.0 + pair.1 as i64 + [5, 6, 7][(n % 3) as usize];
        total + 1000
    });
}

#[test]
fn words_of_cpp_are_names_like_any_other() {
    expect(cpp_words(), |n| n + 1 + 2 + 3 + 4 + 5);
    let source = cpp_words().source().unwrap().to_owned();
    assert!(source.contains("const i64 float_ = ") && source.contains("template_"), "{source}");
}

#[test]
fn operands_with_effects_keep_their_order() {
    let (device, stream) = host();
    let mut out = zeros::<u32>(&stream, 4);
    let kernel = order().load(&device).unwrap();
    kernel.launch(&stream, &cover([1, 1, 1], [1, 1, 1]), (&mut out,)).unwrap();
    // 1000 * 0 + 100 * 1 + 10 * 3 + 3
    assert_eq!(back(&stream, &out), [133, 0, 0, 3]);
    let source = order().source().unwrap().to_owned();
    assert!(source.contains("const u32 value = atomic_add("), "{source}");
}

#[test]
fn constants_are_values() {
    let (device, stream) = host();
    let mut out = zeros::<f32>(&stream, 4);
    let dims = cover([4, 1, 1], [4, 1, 1]);
    constants::<3>().load(&device).unwrap().launch(&stream, &dims, (&mut out,)).unwrap();
    assert_eq!(back(&stream, &out), [1.5, 2.5, 4.0, 1.5].map(|weight| weight * 3.0 + 49.0 + f32::EPSILON));
    let source = constants::<3>().source().unwrap().to_owned();
    assert!(source.contains("__constant__ array<float, 3>"), "{source}");
    assert!(source.contains("{{1.5f, 2.5f, 4.0f}}"), "{source}");
}

/// What is told of a kernel over 64 work-items in groups of 32, with an array of `len`.
fn fault(declaration: KernelDeclaration<subset::Integers>, len: usize) -> String {
    let (device, stream) = host();
    let mut out = zeros::<i64>(&stream, len);
    let kernel = declaration.load(&device).unwrap();
    let outcome = kernel.launch(&stream, &cover([64, 1, 1], [32, 1, 1]), (&mut out,));
    let error = outcome.and_then(|()| stream.synchronize()).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::AsynchronousFault { .. }), "{error:?}");
    error.to_string()
}

#[test]
fn a_fault_names_the_line_and_the_work_item() {
    let text = fault(past_the_end(), 40);
    assert!(text.contains("work-item (8, 0, 0) of group (1, 0, 0)"), "{text}");
    assert!(text.contains("index [40] of an array of shape [40]"), "{text}");
    assert!(text.contains(&format!("subset/mod.rs:{PAST_THE_END}:")), "{text}");
    let text = fault(outside_of_a_local_array(), 64);
    assert!(text.contains("work-item (3, 0, 0) of group (0, 0, 0)"), "{text}");
    assert!(text.contains("index [3] of an array of shape [3]") && text.contains("subset/mod.rs:"), "{text}");
    let text = fault(asserts(), 64);
    assert!(text.contains("work-item (1, 0, 0) of group (1, 0, 0)") && text.contains("too far"), "{text}");
}

#[test]
fn check_mode_finds_races_at_the_users_line() {
    let text = fault(race().check(true), 64);
    assert!(text.contains("races in shared memory") && text.contains("subset/mod.rs:"), "{text}");
}
