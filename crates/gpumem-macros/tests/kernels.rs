//! Kernels that are written in Rust, on the host: their results and their faults.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // helpers of tests

mod subset;

use features::{Side, Tag, nearest, weighted};
use gpumem::{
    Device, DeviceArray, ErrorKind, Result, Stream,
    kernel::{HostForm, KernelDef, config_for_items},
    ndarray::Ix1,
};
use half::{bf16, f16};
use num_complex::Complex;
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

/// Returns the results of a kernel of one `i64` per work-item, for 64 work-items in groups of 32.
fn integers(declaration: KernelDef<subset::Integers>) -> Vec<i64> {
    let (device, stream) = host();
    let mut out = zeros::<i64>(&stream, 64);
    let dims = config_for_items([64, 1, 1], [32, 1, 1]).shared_bytes(32 * 8);
    declaration.load(&device).unwrap().launch(&stream, &dims, (&mut out,)).unwrap();
    back(&stream, &out)
}

#[track_caller]
fn expect(declaration: KernelDef<subset::Integers>, of: impl Fn(i64) -> i64) {
    let found = integers(declaration.clone());
    assert_eq!(found, (0..64).map(&of).collect::<Vec<_>>());
    // In check mode the work-items do the same, and nothing races.
    assert_eq!(integers(declaration.race_checks(true)), found);
}

#[test]
fn saxpy_is_a_loop_and_equals_plain_rust() {
    let (device, stream) = host();
    let (x, y): (Vec<f32>, Vec<f32>) = (0..1000).map(|i| (i as f32 * 0.1, 1.0 / (i + 1) as f32)).unzip();
    let declaration = saxpy();
    assert_eq!(declaration.host_form(), Some(HostForm::Loop));
    let (x_there, mut y_there) = (stream.to_device(&x).unwrap(), stream.to_device(&y).unwrap());
    let kernel = declaration.load(&device).unwrap();
    kernel
        .launch(&stream, &config_for_items([1000, 1, 1], [256, 1, 1]), (&x_there, &mut y_there, 2.5))
        .unwrap();
    let expected: Vec<f32> = x.iter().zip(&y).map(|(x, y)| 2.5 * x + y).collect();
    assert_eq!(back(&stream, &y_there), expected);
}

#[test]
fn a_generic_kernel_is_one_for_each_type() {
    fn run<T: Numeric>(numbers: [T; 4], a: T) -> Result<Vec<T>> {
        let (device, stream) = host();
        let x = stream.to_device(&numbers.to_vec())?;
        let mut y = zeros::<T>(&stream, 4);
        axpb::<T>().load(&device)?.launch(
            &stream,
            &config_for_items([4, 1, 1], [32, 1, 1]),
            (&x, &mut y, a),
        )?;
        Ok(back(&stream, &y))
    }
    use gpumem::kernel::Numeric;
    assert_eq!(run([0.0f32, 1.0, -2.0, 0.5], 3.0).unwrap(), [1.0, 4.0, -5.0, 2.5]);
    assert_eq!(run([0.0f64, 1.0, -2.0, 0.5], 3.0).unwrap(), [1.0, 4.0, -5.0, 2.5]);
    assert_eq!(run([0i32, 1, -2, 5], 3).unwrap(), [1, 4, -5, 16]);
    assert_eq!(run([0u8, 1, 2, 5], 3).unwrap(), [1, 4, 7, 16]);
    assert_eq!(run([0i64, 1, -2, 5], 3).unwrap(), [1, 4, -5, 16]);
    assert_eq!(
        run([0.0, 1.0, -2.0, 0.1].map(f16::from_f32), f16::from_f32(3.0)).unwrap(),
        [1.0, 4.0, -5.0, 1.2998047].map(f16::from_f32)
    );
    assert_eq!(
        run([0.0, 1.0, -2.0, 0.1].map(bf16::from_f32), bf16::from_f32(3.0)).unwrap(),
        [1.0, 4.0, -5.0, 1.296875].map(bf16::from_f32)
    );
    let sources = [axpb::<f32>(), axpb::<f32>()].map(|kernel| kernel.source_text().unwrap().to_owned());
    assert_eq!(sources[0], sources[1]);
    assert!(sources[0].contains("slice<const float> x_"), "{}", sources[0]);
    assert!(axpb::<i32>().source_text().unwrap().contains("rust::add<i32>"));
}

#[test]
fn min_and_max_of_equal_numbers_are_the_first() {
    #[gpumem::device]
    fn least(a: f32, b: f32) -> f32 {
        a.min(b)
    }
    #[gpumem::kernel]
    fn zeros_of_both_signs(x: Slice<f32>, y: OwnView<[f32; 7], 1>) {
        let (a, b) = (x[global_id(0)], x[global_id(0) + 1]);
        y[own()] = [a.min(b), a.max(b), a.min(0.0), a.max(0.0), a.min(-0.0), a.max(-0.0), least(a, b)];
    }
    use gpumem::{kernel::prelude::*, prelude::*};
    let (device, stream) = host();
    // Of two, the second is the first's opposite.
    let x: Vec<f32> = (0..=64).map(|at| if at % 2 == 0 { 0.0 } else { -0.0 }).collect();
    let mut y = zeros::<[f32; 7]>(&stream, 64);
    let kernel = zeros_of_both_signs().load(&device).unwrap();
    kernel.launch(&stream, &config_for_items(64, 32), (&stream.to_device(&x).unwrap(), &mut y)).unwrap();
    for (at, found) in back(&stream, &y).into_iter().enumerate() {
        assert_eq!(found.map(f32::to_bits), [x[at].to_bits(); 7], "{at}");
    }
    let (x, turned) = (stream.to_device(&x[..64]).unwrap(), stream.to_device(&x[1..]).unwrap());
    let found = back(&stream, &x.on(&stream).zip_map::<least, _>(&turned).unwrap());
    assert_eq!(found.map_bits(), back(&stream, &x).map_bits());
}

trait Bits {
    fn map_bits(&self) -> Vec<u32>;
}

impl Bits for Vec<f32> {
    fn map_bits(&self) -> Vec<u32> {
        self.iter().map(|value| value.to_bits()).collect()
    }
}

#[test]
fn a_kernel_of_twelve_parameters_is_launched() {
    #[gpumem::kernel]
    fn twelve(
        y: Own<u32>,
        a: u32,
        b: u32,
        c: u32,
        d: u32,
        e: u32,
        f: u32,
        g: u32,
        h: u32,
        i: u32,
        j: u32,
        k: u32,
    ) {
        y[own()] = a + b + c + d + e + f + g + h + i + j + k;
    }
    use gpumem::kernel::prelude::*;
    let (device, stream) = host();
    let mut y = zeros::<u32>(&stream, 32);
    let arguments = (&mut y, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11);
    twelve().load(&device).unwrap().launch(&stream, &config_for_items(32, 32), arguments).unwrap();
    assert_eq!(back(&stream, &y), [66; 32]);
}

#[test]
fn shared_memory_and_barriers_multiply_matrices() {
    let (device, stream) = host();
    let (rows, depth, columns) = (37, 53, 41);
    let a = ndarray::Array2::from_shape_fn((rows, depth), |(i, j)| ((i * 7 + j * 3) % 11) as f32);
    let b = ndarray::Array2::from_shape_fn((depth, columns), |(i, j)| ((i * 5 + j) % 13) as f32);
    for declaration in [matmul::<f32, 8>(), matmul::<f32, 16>(), matmul::<f32, 16>().race_checks(true)] {
        assert_eq!(declaration.host_form(), Some(HostForm::Phases));
        let (left, right) = (stream.to_device(&a).unwrap(), stream.to_device(&b).unwrap());
        let mut product = stream.to_device(&ndarray::Array2::<f32>::zeros((rows, columns))).unwrap();
        let tile = if declaration.source_text().unwrap().contains("8ull> left_") { 8 } else { 16 };
        let kernel = declaration.load(&device).unwrap();
        let dims = config_for_items([columns, rows, 1], [tile, tile, 1]);
        kernel.launch(&stream, &dims, (&left, &right, &mut product)).unwrap();
        assert_eq!(stream.copy_to_host(&product).unwrap().view().unwrap(), a.dot(&b));
    }
}

#[test]
fn operations_of_waves_equal_the_reference_tree() {
    let (device, stream) = host();
    let numbers: Vec<f32> = (0..1000).map(|i| (i % 17) as f32).collect();
    let x = stream.to_device(&numbers).unwrap();
    let (mut tree, mut wave) = (zeros::<f32>(&stream, 4), zeros::<f32>(&stream, 4));
    let kernel = reduce().load(&device).unwrap();
    kernel.launch(&stream, &config_for_items([1000, 1, 1], [256, 1, 1]), (&x, &mut tree, &mut wave)).unwrap();
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
    let kernel = histogram().race_checks(true).load(&device).unwrap();
    kernel.launch(&stream, &config_for_items([1024, 1, 1], [256, 1, 1]), (&there, &mut totals)).unwrap();
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
fn names_of_a_macro_are_others_than_those_of_its_caller() {
    for (kernel, plain) in hygiene::pairs() {
        expect(kernel, plain);
    }
}

#[test]
fn values_are_those_of_plain_rust() {
    for (kernel, plain) in meanings::pairs() {
        expect(kernel, plain);
    }
}

#[test]
fn an_array_of_indices_is_read_before_what_changes_it() {
    expect(meanings::shared_indices(), |_| 64_032);
}

#[test]
fn keywords_of_cpp_can_be_names() {
    expect(cpp_words(), |n| n + 1 + 2 + 3 + 4 + 5);
    let source = cpp_words().source_text().unwrap().to_owned();
    assert!(source.contains("const i64 float_ = ") && source.contains("template_"), "{source}");
}

#[test]
fn positions_have_32_bits_where_their_values_fit() {
    expect(positions(), |n| {
        let (local, group) = (n as u64 % 32, n as u64 / 32);
        let (y, x) = (local / 16, local % 16);
        let (beyond, below) = ((local + 1) * 1_000_000_000_000, local.wrapping_sub(100));
        let tree = [16, 8, 4, 2, 1].iter().map(|step| (y * 16 + (x + step) % 16) * step).sum::<u64>();
        let by_13 = (local..64).step_by(13).sum::<u64>();
        let by_16 = (x..32).step_by(16).sum::<u64>();
        let large = (4_294_967_290..4_294_967_298 + group).sum::<u64>();
        let narrow = u64::from(beyond as u32 ^ below as u32);
        let wide = (beyond >> 3) + (local + 8_000_000_000).wrapping_add(below);
        (tree + by_13 + by_16 + large + narrow + wide) as i64
    });
    let source = positions().source_text().unwrap().to_owned();
    for declared in
        ["u32 local", "u32 group", "u32 y", "u32 x", "u32 step", "u64 beyond", "u64 below", "u64 grown"]
    {
        assert!(source.contains(&format!("{declared}_ = ")), "{declared}\n{source}");
    }
}

#[test]
fn operands_with_effects_keep_their_order() {
    let (device, stream) = host();
    let mut out = zeros::<u32>(&stream, 4);
    let kernel = order().load(&device).unwrap();
    kernel.launch(&stream, &config_for_items([1, 1, 1], [1, 1, 1]), (&mut out,)).unwrap();
    // 1000 * 0 + 100 * 1 + 10 * 3 + 3
    assert_eq!(back(&stream, &out), [133, 0, 0, 3]);
    let source = order().source_text().unwrap().to_owned();
    assert!(source.contains("const u32 value_ = atomic_add("), "{source}");
}

#[test]
fn constants_are_values() {
    let (device, stream) = host();
    let mut out = zeros::<f32>(&stream, 4);
    let dims = config_for_items([4, 1, 1], [4, 1, 1]);
    constants::<3>().load(&device).unwrap().launch(&stream, &dims, (&mut out,)).unwrap();
    assert_eq!(back(&stream, &out), [1.5, 2.5, 4.0, 1.5].map(|weight| weight * 3.0 + 49.0 + f32::EPSILON));
    let source = constants::<3>().source_text().unwrap().to_owned();
    assert!(source.contains("__constant__ array<float, 3>"), "{source}");
    assert!(source.contains("{{1.5f, 2.5f, 4.0f}}"), "{source}");
}

#[test]
fn errors_name_a_kernel_as_it_is_written() {
    use gpumem::{kernel::prelude::*, prelude::*};
    /// C++ has this word for itself.
    #[gpumem::kernel(unsafe)]
    fn double(out: SliceMut<u32>) {
        out[global_id(0) + 100] = 1;
    }
    let (device, stream) = host();
    assert_eq!(double().name(), "double_");
    let kernel = double().load(&device).unwrap();
    assert_eq!(kernel.name(), "double");
    let mut out = zeros::<u32>(&stream, 32);
    kernel.launch(&stream, &config_for_items([32, 1, 1], [32, 1, 1]), (&mut out,)).unwrap();
    let text = stream.synchronize().unwrap_err().to_string();
    assert!(text.contains("kernel \"double\""), "{text}");
}

/// Returns the error of a kernel over 64 work-items in groups of 32, with an array of `len`.
fn fault(declaration: KernelDef<subset::Integers>, len: usize) -> String {
    let (device, stream) = host();
    let mut out = zeros::<i64>(&stream, len);
    let kernel = declaration.load(&device).unwrap();
    let outcome = kernel.launch(&stream, &config_for_items([64, 1, 1], [32, 1, 1]), (&mut out,));
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
    let text = fault(race().race_checks(true), 64);
    assert!(text.contains("races in shared memory") && text.contains("subset/mod.rs:"), "{text}");
}

#[test]
fn functions_are_called_with_the_types_that_rustc_infers() {
    expect(features::functions(), |n| {
        let small = nearest(n as f32 * 0.5, 11.25);
        weighted(n, n as usize % 3) + nearest(n, 40) + (small * 4.0) as i64 + n * 3 + 7
    });
    let source = features::functions().source_text().unwrap().to_owned();
    // One for each set of types, however often it is called, and one for each constant.
    assert_eq!(source.matches("float nearest").count(), 1, "{source}");
    assert_eq!(source.matches("i64 nearest").count(), 1, "{source}");
    assert_eq!(source.matches("GPUMEM_DEVICE i64 scaled").count(), 2, "{source}");
}

#[test]
fn records_are_read_and_written_by_their_fields() {
    expect(features::records(), |n| {
        let neighbour = (n / 32 * 32) + (n % 32 + 1) % 32 + 5;
        // The one in shared memory is the heavier one, with `1.0` more than twice its number.
        let (place, mass) = ([n as f32, n as f32 + 0.5, 6.0], n * 2 + 1);
        let bright = Complex::new(1.0, -n as f32) * Complex::new(0.0, 2.0);
        let mut sum = place[0] as i64 + place[1] as i64 * 3 + place[2] as i64 * 5 + mass * 7;
        sum += bright.re as i64 * 11 + bright.im as i64 * 13 + n + 1;
        sum + neighbour * 17 - 3
    });
    let source = features::records().source_text().unwrap().to_owned();
    assert!(source.contains("struct Body_ {"), "{source}");
}

#[test]
fn enums_tuples_and_records_are_matched() {
    expect(features::enums(), |n| {
        let side = [Side::Left, Side::Left, Side::Right, Side::Both, Side::Both][n as usize % 5];
        let even = n % 2 == 0;
        let turned = match (side, even) {
            (Side::Left, true) => 10,
            (Side::Left, false) => 20,
            (Side::Both, _) if n > 30 => 30,
            (_, true) => 40,
            (_, false) => 50,
        };
        let matched = match (n % 4, (turned, side == Side::Right)) {
            (0, (10 | 20, _)) => 1,
            (1..=2, (most, true)) => most,
            (3, (most, _)) => most * 3,
            _ => -1,
        };
        let tagged = if n % 3 == 0 { 100 } else { n % 3 * 1000 };
        turned + matched * 3 + tagged + side as i64 * 7 + 8
    });
}

#[test]
fn truth_values_are_elements_of_all_arrays() {
    expect(features::truths(), |n| {
        let (i, third) = (n % 32, |i: i64| i % 3 == 0);
        i64::from(third(31 - i)) + i64::from(third(i) == third(31 - i)) * 2 + i64::from(i > 7) * 4
    });
}

/// Three variables of the most bytes that one may have.
#[gpumem::kernel]
fn large_variables(y: gpumem::kernel::Own<f32>) {
    let mut a = local::<f32>([131_072]);
    let mut b = local::<f32>([131_072]);
    let mut c = local::<f32>([131_072]);
    let at = global_id(0);
    a[at] = y[own()];
    b[131_071 - at] = a[at] + 1.0;
    c[at] = b[131_071 - at] + a[131_071];
    y[own()] = c[at] + b[0];
}

/// The thread that launches takes part.
#[test]
fn threads_have_room_for_variables() {
    let launch = || {
        let (device, stream) = host();
        let mut y = stream.to_device(&[1.0f32; 64]).unwrap();
        let kernel = large_variables().load(&device).unwrap();
        kernel.launch(&stream, &config_for_items(64, 1), (&mut y,)).unwrap();
        back(&stream, &y)
    };
    let found = std::thread::Builder::new().stack_size(8 << 20).spawn(launch).unwrap().join().unwrap();
    assert_eq!(found, [2.0; 64]);
}

#[test]
fn an_operation_is_the_function_of_the_type() {
    expect(features::operations_by_name(), |_| (0..32).sum());
}

#[test]
fn names_of_the_source_are_free() {
    expect(features::names_of_the_source(), |n| {
        let end = n % 5 + 1;
        let counted: i64 = (0..end).map(|i| end * 10 + i).sum();
        let stepped: i64 = (0..end).step_by(3).map(|k| 1000 + k).sum();
        counted + (2 + 4 + 6 + 8) * 2 + (1 + 2 + 3) * 7 + stepped + 22 + 5 + 200 + 13
    });
}

#[test]
fn an_expression_that_a_macro_was_given_is_one() {
    expect(features::given(), |n| {
        let sum = (6 - 3 + n + 3) * 3 + 1000;
        (0..4).rev().fold(sum, |sum, i| sum * 3 + i) + 6
    });
}

#[test]
fn a_part_of_an_element_begins_a_statement() {
    expect(features::parts_first(), |n| {
        let more = if n > 3 { n * 4 } else { n * 2 };
        n - 1 + more * 10 + if n % 2 == 0 { (n * 2) & 3 } else { n - 7 } * 100
    });
}

#[test]
fn a_name_is_the_same_in_both_spellings() {
    expect(features::spellings(), |n| n + if n % 2 == 0 { 66 } else { 61 } + n * 1000);
}

#[test]
fn an_axis_beyond_those_of_a_launch_has_its_length() {
    expect(features::many_axes(), |_| 123_456_111);
}

#[test]
fn constant_tables_hold_any_number() {
    expect(features::tables(), |n| {
        let (third, half) = (n as usize % 3, n as usize % 2);
        let bits =
            [0x7f80_0000, 0xff80_0000, 0x7fc0_1234][third] + [0x3c01, 0xfc00][half] + [0x3f81, 0x7fc0][half];
        bits + [0xfff8_0000, 0x8000_0000][half] + [0, 0x7f80_0000][half]
    });
}

#[test]
fn lengths_are_those_of_the_arrays() {
    expect(features::empty(), |_| 2 + 30 + 500);
    expect(features::lengths(), |_| 3 + 2 * 10 + 7 * 100);
}

#[test]
fn a_value_is_computed_before_the_index_that_it_changes() {
    expect(features::changes(), |n| 120_000 + 7 + n % 32 * 2 + 1);
}

#[test]
fn a_number_by_another_name_may_change() {
    let (device, stream) = host();
    let mut out = zeros::<i64>(&stream, 1);
    let kernel = features::named_number().load(&device).unwrap();
    kernel.launch(&stream, &config_for_items(1, 1), (&mut out, 5)).unwrap();
    assert_eq!(back(&stream, &out), [506]);
    let declaration = features::named_number();
    let text = declaration.source_text().unwrap();
    assert!(text.contains("const i64 value_1_ = rust::mul<i64>(n_, 100ll);"), "{text}");
}

#[test]
fn complex_numbers_are_those_of_num_complex() {
    expect(features::complex_numbers(), |n| {
        let z = Complex::new(n as f64, 2.0);
        let unit = Complex::new(0.0, 1.0);
        let mut w = z * unit + z.conj() - 1.0;
        w *= Complex::new(0.5, -3.0);
        w += 2.0 * z / Complex::new(2.0, 2.0);
        let turned = -w / 4.0;
        let equal =
            i64::from(w - unit == w) + i64::from(z != w) * 2 + i64::from(z == Complex::new(5.0, 2.0)) * 4;
        let rest = ((w % z + 7.5 % z) % 2.5) % (unit * 1.5);
        let bits = rest.re.to_bits() as i64 % 1009 + rest.im.to_bits() as i64 % 1013;
        let parts = (turned.re * 64.0) as i64 * 3 + ((w - unit).im * 64.0) as i64 + z.norm_sqr() as i64 + 1;
        parts + equal * 1_000_000 + bits
    });
}

#[test]
fn elements_are_exchanged_and_compared_atomically() {
    expect(features::atomics(), |n| {
        let group_end = n / 32 * 32 + 31;
        let counts = [101, 7 ^ 0xffff_ffff, -31, 100.max(group_end)];
        let all = counts[0] + counts[1] * 3 + counts[2] * 5 + counts[3] * 7;
        all + if n % 32 == 5 { 300 } else { 0 }
    });
}

#[test]
fn waves_reduce_numbers_of_half_precision() {
    fn of_a_wave<T: gpumem::kernel::Numeric>(values: &[T]) -> (T, T, T) {
        let mut tree = values.to_vec();
        let mut distance = 16;
        while distance > 0 {
            for lane in 0..distance {
                tree[lane] = tree[lane].plus(tree[lane + distance]);
            }
            distance /= 2;
        }
        let least = values.iter().copied().reduce(T::least).unwrap();
        let most = values.iter().copied().reduce(T::greatest).unwrap();
        (tree[0], least, most)
    }
    fn scan<T: gpumem::kernel::Numeric>(values: &[T]) -> Vec<T> {
        let mut sums = values.to_vec();
        for distance in [1, 2, 4, 8, 16] {
            let before = sums.clone();
            for lane in distance..sums.len() {
                sums[lane] = before[lane - distance].plus(before[lane]);
            }
        }
        sums
    }
    expect(features::halves_in_waves(), |n| {
        let wave = n / 32 * 32;
        let numbers = (wave..wave + 32).map(|i| i as f32 * 0.37 - 5.0);
        let halves: Vec<f16> = numbers.clone().map(f16::from_f32).collect();
        let brains: Vec<bf16> = numbers.map(bf16::from_f32).collect();
        let (sum, least, most) = of_a_wave(&halves);
        let sum = features::of_a_wave(sum, least, most);
        let (brain_sum, least, most) = of_a_wave(&brains);
        let brain_sum = features::of_a_wave(brain_sum, least, most);
        let lane = (n - wave) as usize;
        let (scanned, moved) = (scan(&brains)[lane], halves[lane ^ 3]);
        i64::from(sum.to_bits())
            + (i64::from(moved.to_bits()) << 16)
            + ((i64::from(brain_sum.to_bits()) * 3) << 20)
            + ((i64::from(scanned.to_bits()) * 5) << 24)
    });
}

#[test]
fn waves_are_reduced_by_any_function() {
    expect(features::reductions(), |n| {
        let first = n / 32 * 32;
        let of = |lane: i64| first + lane + 1;
        let reduce = |op: fn(i64, i64) -> i64| {
            let mut values: Vec<i64> = (0..32).map(of).collect();
            let mut distance = 16;
            while distance > 0 {
                for lane in 0..distance {
                    values[lane] = op(values[lane], values[lane + distance]);
                }
                distance /= 2;
            }
            values[0]
        };
        let lane = n - first;
        let up = of((lane - 1).max(0)) + of(if lane + 2 < 32 { lane + 2 } else { lane }) * 2;
        let all: i64 = (0..32).map(of).sum();
        let scanned = (0..=lane).map(of).sum::<i64>() + of(0) * 2 + of(31) * 3 + all * 5;
        let closure = reduce(|a, b| (a * 3 + b) % 97) + reduce(features::product) * 7;
        closure + up + of(lane ^ 5) * 3 + of(3) * 5 + 1 + scanned + 0x5555_5555
    });
}

#[test]
fn arrays_have_any_rank_and_any_element() {
    const GRID: [[i64; 3]; 2] = [[1, 2, 3], [40, 50, 60]];
    expect(features::arrays(), |n| {
        let local = n as usize % 32;
        let mut flags = [false; 4];
        flags[local % 4] = true;
        flags[1] = flags[1] ^ flags[2] | !flags[3] & flags[0];
        let next = (local + 1) % 32;
        GRID[next % 2][next % 3] + (i64::from(flags[1]) * 2 + i64::from(flags[0])) * 100 + 41
    });
    let text = fault(features::past_the_dynamic_end(), 64);
    assert!(text.contains("index [0] of an array of shape [0]") || text.contains("index [1]"), "{text}");
}

#[test]
fn parameters_are_records_and_conditions() {
    let (device, stream) = host();
    let tag = Tag { number: 5, class: 9 };
    let bodies: Vec<features::Body> = (0..4)
        .map(|i| features::Body { place: [0.0; 3], mass: i as f32 * 10.0, bright: Complex::default(), tag })
        .collect();
    let bodies = stream.to_device(&bodies).unwrap();
    for (add, expected) in [(true, [5, 15, 25, 35, 5]), (false, [9; 5])] {
        let mut out = zeros::<i64>(&stream, 5);
        let kernel = features::settings().load(&device).unwrap();
        let arguments = (&mut out, gpumem::kernel::Value(tag), add, &bodies);
        kernel.launch(&stream, &config_for_items([5, 1, 1], [5, 1, 1]), arguments).unwrap();
        assert_eq!(back(&stream, &out), expected);
    }
}
