//! Kernels whose meaning is one that only rustc knows: types that it infers, places that a pattern names, the order of operands.
//! Each stands beside what it gives for a work-item.

use super::divisions::{divisions, of_divisions};
use gpumem::kernel::prelude::*;
use half::{bf16, f16};
use num_complex::Complex;

/// The type of a `const` block is that of its place.
#[gpumem::kernel(unsafe)]
pub(crate) fn const_blocks(out: SliceMut<i64>) {
    let i = global_id(0);
    let large: u64 = const { 3_000_000_000 };
    let scaled = i as f32 * 1.3f32 * const { 0.1 };
    let tenth = 0.1f32;
    let is_alike = tenth == const { 0.1 };
    let byte: u8 = const { 200 };
    out[i] = large as i64 + scaled.to_bits() as i64 + is_alike as i64 * 7 + byte as i64;
}

/// Operators of truth values give one in C++ too, and no number.
#[gpumem::kernel(unsafe)]
pub(crate) fn truths(out: SliceMut<i64>) {
    let i = global_id(0);
    let (a, b) = (i % 2 == 1, i % 3 == 1);
    let pair = (a & b, a ^ b);
    let list = [a | b, b];
    let most = (a ^ b).max(b & a);
    out[i] = pair.0 as i64 + pair.1 as i64 * 10 + list[0] as i64 * 100 + most as i64 * 1000;
}

/// Shared arrays whose elements are arrays.
#[gpumem::kernel(unsafe)]
pub(crate) fn shared_rows(out: SliceMut<i64>) {
    let i = global_id(0) % 32;
    let rows = shared::<[i64; 2]>([32]);
    rows[i] = [i as i64, 5];
    rows[i][1] += 2;
    out[global_id(0)] = rows[i][0] * 10 + rows[i][1];
}

/// Extents of the same words that are not the same.
#[gpumem::kernel(unsafe)]
pub(crate) fn shared_lines(out: SliceMut<i64>) {
    let i = global_id(0) % 32;
    let first = shared::<i64>([line!() as usize % 2 + 1, 32]);
    let second = shared::<i64>([line!() as usize % 2 + 1, 32]);
    first[[0, i]] = i as i64;
    second[[0, i]] = 3;
    out[global_id(0)] = first[[0, i]] + second[[0, i]] + (first.extent(0) + second.extent(0)) as i64 * 100;
}

/// Literals that are too large for their types wrap, where their lint allows them.
#[allow(overflowing_literals)]
#[gpumem::kernel(unsafe)]
pub(crate) fn long_literals(out: SliceMut<i64>) {
    let i = global_id(0);
    let least = -2_147_483_648i32;
    out[i] = 5_000_000_000i32 as i64 + (7_000_000_000u32 / 2) as i64 + 300u8 as i64 + least as i64 + i as i64;
}

/// An axis beyond all others has the id 0, however many digits it has.
#[gpumem::kernel(unsafe)]
pub(crate) fn far_axes(out: SliceMut<i64>) {
    out[global_id(0)] = local_id(4_294_967_296) as i64 + 10 * local_id(2_147_483_648) as i64;
}

/// A name in `|` for one part.
#[gpumem::kernel(unsafe)]
pub(crate) fn one_part(out: SliceMut<i64>) {
    let i = global_id(0) as i64;
    out[global_id(0)] = match (i % 3, i % 4) {
        (a, 1) | (a, 2) if a > 0 => a * 10,
        (1, b) | (0, b) => b,
        _ => -1,
    };
}

/// Jumps in the condition of a `while`: to a loop around it, to itself, and out of the function.
#[gpumem::device]
fn below(most: i64, limit: i64) -> i64 {
    let mut n = 0;
    while {
        if n == limit {
            return -n;
        }
        n < most
    } {
        n += 1;
    }
    n
}

#[gpumem::kernel(unsafe)]
pub(crate) fn jumps_in_conditions(out: SliceMut<i64>) {
    let i = global_id(0) as i64;
    let (mut count, mut turns) = (0, 0);
    'around: while turns < 4 {
        turns += 1;
        while {
            if count > i {
                count -= 1;
                continue 'around;
            }
            if count == 20 {
                break 'around;
            }
            count < 13
        } {
            count += 1;
        }
        count += 3;
    }
    'own: while {
        let odd = turns % 2 == 1;
        if odd && turns < 9 {
            turns += 3;
            loop {
                if turns > 5 {
                    continue 'own;
                }
                turns += 1;
            }
        }
        if turns > 20 {
            break 'own;
        }
        true
    } {
        turns += 5;
    }
    out[global_id(0)] = turns * 100 + count + below(9, i) * 10_000;
}

#[derive(Clone, Copy, gpumem::DeviceRecord)]
#[repr(C)]
struct Pair {
    parts: [i64; 2],
}

#[gpumem::device]
fn pair(a: i64) -> Pair {
    Pair { parts: [a, a + 50] }
}

/// An array that is a value is there before its index, and changes no more.
#[gpumem::kernel(unsafe)]
pub(crate) fn array_before_index(out: SliceMut<i64>) {
    let i = global_id(0);
    let mut n = i as i64;
    let listed = [n, 50][{
        n += 7;
        i % 2
    }];
    let made = pair(n).parts[{
        n *= 3;
        i % 2
    }];
    let mut rows = [[n, 1], [2, 3]];
    let row = rows[0][{
        rows[0][0] = -1;
        0
    }];
    out[i] = n;
    let read = [out[i], 9][(out.atomic_add(i, 4) - n) as usize];
    out[i] = listed + made * 1000 + row * 1_000_000 + rows[0][0] + read * 100_000_000;
}

/// The least numbers as constants have their types.
#[gpumem::kernel(unsafe)]
pub(crate) fn least_numbers(out: SliceMut<i64>) {
    let bits = i8::MIN.count_ones() + i16::MIN.count_ones() * 10 + i32::MIN.count_ones() * 100;
    let swapped = i16::MIN.swap_bytes() as i64 + i8::MIN.reverse_bits() as i64 * 1000;
    let absolute = i8::MIN.wrapping_abs() as i64 + i16::MIN.wrapping_neg() as i64;
    let clamped = i8::MIN.clamp(-5, 5) as i64 + i64::MIN.count_ones() as i64;
    out[global_id(0)] = bits as i64 + swapped * 1000 + absolute * 10 + clamped;
}

macro_rules! which {
    ($name:ident, $least:literal, $most:literal) => {
        /// A literal of a macro has its sign in it.
        #[gpumem::kernel(unsafe)]
        pub(crate) fn $name(out: SliceMut<i64>) {
            let i = global_id(0) as i64;
            out[global_id(0)] = match i - 20 {
                $least => 1,
                $least..=$most => 2,
                _ => 3 - $most + i,
            };
        }
    };
}
which!(signed_literals, -9, -2i64);

/// Halves of all signs, of zero and of NaN.
#[gpumem::kernel(unsafe)]
pub(crate) fn signs_of_halves(out: SliceMut<i64>) {
    let sign = (global_id(0) as u16 & 1) << 15;
    let (zero, nan) = (f16::from_bits(sign), f16::from_bits(sign | 0x7e00));
    let (small, brain) = (bf16::from_bits(sign), bf16::from_bits(sign | 0x7fc0));
    let signs = zero.signum().to_f32() as i64 + small.signum().to_f32() as i64 * 10;
    let nans = nan.signum().is_nan() as i64 + brain.signum().is_nan() as i64;
    let negative = nan.is_sign_negative() as i64 + brain.is_sign_negative() as i64 * 10;
    let positive = zero.is_sign_positive() as i64 + brain.is_sign_positive() as i64 * 10;
    let negated = (-nan).to_bits() as i64 * 65536 + (-brain).to_bits() as i64;
    out[global_id(0)] = signs + nans * 100 + negative * 1000 + positive * 100_000 + negated * 10_000_000;
}

/// Halves of doubles, which are rounded to `f32` before: here up to the middle of two halves.
#[gpumem::kernel(unsafe)]
pub(crate) fn halves_of_doubles(out: SliceMut<i64>) {
    let below = global_id(0) as f64 * 0.0 + 1e-12;
    let (half, brain) = (f16::from_f64(1.00146484375 - below), bf16::from_f64(1.01171875 - below));
    out[global_id(0)] = half.to_bits() as i64 * 65536 + brain.to_bits() as i64;
}

trait Floor {
    const WIDTH: i64;

    /// As a method of floats, and of another type.
    fn floor(self) -> f64;
}

impl Floor for f32 {
    const WIDTH: i64 = 4;

    fn floor(self) -> f64 {
        1.0
    }
}

impl Floor for f64 {
    const WIDTH: i64 = 8;

    fn floor(self) -> f64 {
        1.0
    }
}

#[gpumem::device]
fn size<T: Numeric + Floor>(_value: T) -> i64 {
    T::WIDTH
}

#[gpumem::device]
fn lowered<T: Numeric + Floor>(value: T) -> i64 {
    size(value.floor())
}

#[gpumem::kernel(unsafe)]
pub(crate) fn methods(out: SliceMut<i64>) {
    out[global_id(0)] = lowered(1.5f32) * 10 + lowered(1.5f64);
}

#[gpumem::device]
fn raised(x: SliceMut<i64>, i: usize) -> [i64; 2] {
    x[i] += 10;
    [x[i], x[i] + 1]
}

#[gpumem::device]
fn read(x: Slice<i64>, i: usize) -> i64 {
    x[i] + x.len() as i64
}

/// A function that reads, of an array that is written.
#[gpumem::kernel(unsafe)]
pub(crate) fn read_by_functions(out: SliceMut<i64>) {
    let i = global_id(0);
    out[i] = i as i64 * 3;
    out[i] = read(out, i) - out.len() as i64 + 1;
}

/// A function that writes, beside what it writes.
#[gpumem::kernel(unsafe)]
pub(crate) fn in_order(out: SliceMut<i64>) {
    let i = global_id(0);
    out[i] = i as i64;
    let sum = out[i] * 1000 + raised(out, i)[1] + out[i] * 1_000_000;
    let len = [out.atomic_add(i, 5), 2].len() as i64;
    out[i] = sum + len * 3 + out[i];
}

/// An element of an array in a tuple.
#[gpumem::kernel(unsafe)]
pub(crate) fn in_tuples(out: SliceMut<i64>) {
    let i = global_id(0);
    let mut pair = (i as i64, [3i64, 4]);
    pair.1[1] = pair.0 * 2;
    pair.1[0] += 1;
    out[i] = pair.1[0] + pair.1[1];
}

/// The same in an array of tuples that a tuple has, with an index that changes something.
#[gpumem::kernel(unsafe)]
pub(crate) fn in_tuples_of_tuples(out: SliceMut<i64>) {
    let i = global_id(0);
    let (mut pair, mut n) = ((i as i64, [(1i64, [2i64, 3]); 2]), 0);
    let mut rows = (0u8, [[i as i64; 2]; 2]);
    pair.1[{
        n += 1;
        n
    }]
    .1[n - 1] += 10;
    pair.1[i % 2].0 = 7;
    rows.1[1][0] *= 3;
    let (first, second) = (pair.1[0], pair.1[1]);
    out[i] = first.0
        + second.0 * 10
        + second.1[0] * 100
        + first.1[0] * 10_000
        + n as i64 * 100_000
        + rows.1[1][0] * 1_000_000;
}

/// Names that are macros, words and functions in C++, and that differ by what C++ has no letters for.
#[derive(Clone, Copy, gpumem::DeviceRecord)]
#[repr(C)]
#[allow(non_snake_case)]
struct Names {
    a__b: i64,
    a_u_b: i64,
    ä: i64,
    ue4: i64,
    INT_MAX: i64,
    r#struct: i64,
    re: i64,
}

mod a {
    #[derive(Clone, Copy, gpumem::DeviceRecord)]
    #[repr(C)]
    pub(super) struct B_c {
        pub one: i64,
    }
}

#[allow(non_snake_case)]
mod a_B {
    #[derive(Clone, Copy, gpumem::DeviceRecord)]
    #[repr(C)]
    pub(super) struct c {
        pub two: i32,
    }

    #[derive(Clone, Copy, gpumem::DeviceRecord)]
    #[repr(C)]
    pub(super) struct B_c {
        pub three: i32,
        pub four: i32,
    }
}

/// As the table of [`printf`] was called in C++.
#[gpumem::device]
fn printf_constant_0(x: i64) -> i64 {
    x
}

const STEPS: [i64; 3] = [3, 1, 2];

#[gpumem::device]
fn printf(x: i64) -> i64 {
    STEPS[(x % 3) as usize] + printf_constant_0(x)
}

#[allow(non_snake_case)]
#[gpumem::kernel(unsafe)]
pub(crate) fn names_of_cpp(out: SliceMut<i64>) {
    let NULL = global_id(0) as i64;
    let INT_MAX = 1;
    let assert = Names { a__b: NULL, a_u_b: 2, ä: 3, ue4: 4, INT_MAX: 5, r#struct: 6, re: 7 };
    let (one, two, three) = (a::B_c { one: 8 }, a_B::c { two: 9 }, a_B::B_c { three: 10, four: 11 });
    let (mut value, mut end) = (printf(NULL), 0);
    for i in 0..3i64 {
        let i_end = i;
        let iend = i * 2;
        end += i_end + iend;
    }
    value += assert.a__b * 2 + assert.a_u_b * 3 + assert.ä * 5 + assert.ue4 * 7 + assert.INT_MAX * 11;
    value +=
        assert.r#struct * 13 + assert.re * 17 + one.one * 19 + two.two as i64 * 23 + three.four as i64 * 29;
    out[global_id(0)] = value + end + INT_MAX + three.three as i64;
}

/// As a table of its own was called in C++.
#[gpumem::kernel(unsafe)]
pub(crate) fn constant_0(out: SliceMut<i64>) {
    out[global_id(0)] = STEPS[global_id(0) % 3];
}

/// Records of one name, in blocks of one function.
pub(crate) fn records_of_blocks() -> gpumem::kernel::KernelDef<super::Integers> {
    #[gpumem::device]
    fn first(x: i64) -> i64 {
        x * 2
    }
    {
        #[derive(Clone, Copy, gpumem::DeviceRecord)]
        #[repr(C)]
        struct Local {
            x: i64,
        }

        #[gpumem::device]
        fn of_block(x: i64) -> i64 {
            let local = Local { x };
            first(local.x)
        }

        {
            #[derive(Clone, Copy, gpumem::DeviceRecord)]
            #[repr(C)]
            struct Local {
                x: i32,
                y: i32,
            }

            #[gpumem::kernel(unsafe)]
            pub(crate) fn blocks(out: SliceMut<i64>) {
                let local = Local { x: 3, y: 4 };
                out[global_id(0)] =
                    of_block(global_id(0) as i64) + local.x as i64 * 100 + local.y as i64 * 1000;
            }

            blocks()
        }
    }
}

#[derive(Clone, Copy, gpumem::DeviceRecord)]
#[repr(C)]
struct Place {
    at: [usize; 2],
}

#[gpumem::device]
fn place(i: usize) -> Place {
    Place { at: [i % 2, i % 3] }
}

#[gpumem::device]
fn crossed(i: usize) -> [usize; 2] {
    [1 - i % 2, i % 3]
}

/// Arrays of indices that are no variables.
#[gpumem::kernel(unsafe)]
pub(crate) fn indices_of_blocks(out: SliceMut<i64>) {
    let i = global_id(0);
    let mut grid = local::<i64>([2, 3]);
    let mut row = local::<i64>([2]);
    let places = [place(i), place(i + 1)];
    grid[{
        let row = i % 2;
        [row, 2]
    }] = 5;
    grid[crossed(i)] += 7;
    grid[if i > 3 { [0, 1] } else { [1, 0] }] -= 3;
    grid[places[1].at] += 11;
    row[place(i).at[0]] = 13;
    row[{
        let other = i % 2;
        1 - other
    }] += 17;
    let mut total = row[0] * 3 + row[1] * 5;
    for a in 0..2usize {
        for b in 0..3usize {
            total = total * 3 + grid[[a, b]];
        }
    }
    out[i] = total;
}

/// The same of an array that is shared, with a value that changes the index.
#[gpumem::kernel(unsafe)]
pub(crate) fn shared_indices(out: SliceMut<i64>) {
    let i = global_id(0);
    let grid = shared::<u32>([2, 3]);
    if local_id(0) < 6 {
        grid[[local_id(0) / 3, local_id(0) % 3]] = 0;
    }
    barrier(Local);
    let mut at = [1, 0];
    at[1] += 1;
    grid.atomic_add(at, {
        at[0] = 0;
        2u32
    });
    grid.atomic_add(crossed(1), 1);
    barrier(Local);
    out[i] =
        grid[if i < 500 { [1, 1] } else { [0, 0] }] as i64 * 1000 + grid[crossed(1)] as i64 + at[0] as i64;
}

/// The lengths of local arrays.
#[gpumem::kernel(unsafe)]
pub(crate) fn local_lengths(out: SliceMut<i64>) {
    let i = global_id(0);
    let (row, grid, block) = (out.len() / 64, i % 3, i % 4);
    let mut window = local::<i64>([5]);
    let tile = local::<u8>([2, 7]);
    let deep = local::<f32>([2, 3, 4]);
    window[window.len() - row] = 1;
    out[i] = (window.len() * 100 + tile.extent(grid) * 10 + deep.extent(block)) as i64 + window[4];
}

/// What is left of complex numbers.
#[gpumem::kernel(unsafe)]
pub(crate) fn complex_rests(out: SliceMut<i64>) {
    let i = global_id(0) as f32;
    let (a, b) = (Complex::new(i * 2.5 + 1.0, 20.0 - i), Complex::new(3.0f32, 1.5));
    let mut rest = a % b;
    rest %= 0.75f32;
    let sum = rest + a % 2.0f32;
    out[global_id(0)] = (sum.re * 64.0) as i64 * 1_000_000 + (sum.im * 64.0) as i64;
}

/// Each kernel, and what it gives for a work-item.
#[allow(dead_code)] // not every test program runs all of them
#[allow(clippy::type_complexity)]
pub(crate) fn pairs() -> Vec<(gpumem::kernel::KernelDef<super::Integers>, fn(i64) -> i64)> {
    vec![
        (divisions(), of_divisions),
        (const_blocks(), |i| 3_000_000_000 + i64::from((i as f32 * 1.3f32 * 0.1).to_bits()) + 7 + 200),
        (long_literals(), |i| 705_032_704 + 1_352_516_352 + 44 - 2_147_483_648 + i),
        (far_axes(), |_| 0),
        (one_part(), |i| match (i % 3, i % 4) {
            (a, 1) | (a, 2) if a > 0 => a * 10,
            (1, b) | (0, b) => b,
            _ => -1,
        }),
        (jumps_in_conditions(), |i| {
            // As the compiler of the host has it, without the attribute.
            let (mut count, mut turns) = (0, 0);
            'around: while turns < 4 {
                turns += 1;
                while {
                    if count > i {
                        count -= 1;
                        continue 'around;
                    }
                    if count == 20 {
                        break 'around;
                    }
                    count < 13
                } {
                    count += 1;
                }
                count += 3;
            }
            'own: while {
                let odd = turns % 2 == 1;
                if odd && turns < 9 {
                    turns += 3;
                    loop {
                        if turns > 5 {
                            continue 'own;
                        }
                        turns += 1;
                    }
                }
                if turns > 20 {
                    break 'own;
                }
                true
            } {
                turns += 5;
            }
            turns * 100 + count + if i <= 9 { -i } else { 9 } * 10_000
        }),
        (array_before_index(), |i| {
            let (listed, n) = ([i, 50][i as usize % 2], i + 7);
            let (made, n) = ([n, n + 50][i as usize % 2], n * 3);
            listed + made * 1000 + n * 1_000_000 - 1 + n * 100_000_000
        }),
        (least_numbers(), |_| 111 + (128 + 1000) * 1000 - (128 + 32768) * 10 - 5 + 1),
        (signs_of_halves(), |i| match i % 2 {
            0 => 11 + 200 + 1_100_000 + (0xfe00 * 65536 + 0xffc0) * 10_000_000,
            _ => -11 + 200 + 11_000 + (0x7e00 * 65536 + 0x7fc0) * 10_000_000,
        }),
        (halves_of_doubles(), |_| 0x3c02 * 65536 + 0x3f82),
        (signed_literals(), |i| match i - 20 {
            -9 => 1,
            -8..=-2 => 2,
            _ => 5 + i,
        }),
        (methods(), |_| 48),
        (read_by_functions(), |i| i * 3 + 1),
        (in_order(), |i| i * 1000 + i + 11 + (i + 10) * 1_000_000 + 6 + i + 15),
        (in_tuples(), |i| 4 + i * 2),
        (in_tuples_of_tuples(), |i| if i % 2 == 0 { 17 } else { 71 } + 121_200 + i * 3_000_000),
        (names_of_cpp(), |i| {
            let called = STEPS[i as usize % 3] + i;
            called + i * 2 + 6 + 15 + 28 + 55 + 78 + 119 + 152 + 207 + 319 + 9 + 1 + 10
        }),
        (constant_0(), |i| STEPS[i as usize % 3]),
        (records_of_blocks(), |i| i * 2 + 4300),
        (indices_of_blocks(), |i| {
            let i = i as usize;
            let (mut grid, mut row) = ([[0; 3]; 2], [0; 2]);
            grid[i % 2][2] = 5;
            grid[1 - i % 2][i % 3] += 7;
            let [a, b] = if i > 3 { [0, 1] } else { [1, 0] };
            grid[a][b] -= 3;
            grid[(i + 1) % 2][(i + 1) % 3] += 11;
            row[i % 2] = 13;
            row[1 - i % 2] += 17;
            let sums = row[0] * 3 + row[1] * 5;
            grid.iter().flatten().fold(sums, |total, element| total * 3 + element)
        }),
        (truths(), |i| {
            let (a, b) = (i % 2 == 1, i % 3 == 1);
            (a & b) as i64 + (a ^ b) as i64 * 10 + (a | b) as i64 * 1000 + (a | b) as i64 * 100
        }),
        (shared_rows(), |i| i % 32 * 10 + 7),
        (shared_lines(), |i| i % 32 + 303),
        (local_lengths(), |i| 501 + [2, 7, 1][i as usize % 3] * 10 + [2, 3, 4, 1][i as usize % 4]),
        (complex_rests(), |i| {
            let i = i as f32;
            let (a, b) = (Complex::new(i * 2.5 + 1.0, 20.0 - i), Complex::new(3.0f32, 1.5));
            let sum = a % b % 0.75 + a % 2.0;
            (sum.re * 64.0) as i64 * 1_000_000 + (sum.im * 64.0) as i64
        }),
    ]
}
