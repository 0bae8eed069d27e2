//! Kernels with functions, records, enums, tuples, complex numbers and the rest of the atomics. Each gives one number for
//! each of 64 work-items in groups of 32, so that every device can be compared with every other.
#![allow(clippy::nonminimal_bool, clippy::zero_repeat_side_effects)] // an expression that tells its grouping; empty arrays

use gpumem::{Bool, DeviceRecord, kernel::prelude::*};
use half::{bf16, f16};
use num_complex::Complex;

/// Another name for a type of arrays.
type Numbers = SliceMut<i64>;

#[derive(Clone, Copy, Debug, PartialEq, DeviceRecord)]
#[repr(C)]
pub(crate) struct Body {
    pub place: [f32; 3],
    pub mass: f32,
    pub bright: Complex<f32>,
    pub tag: Tag,
}

#[derive(Clone, Copy, Debug, PartialEq, DeviceRecord)]
#[repr(C)]
pub(crate) struct Tag {
    pub number: i32,
    pub class: i32,
}

#[derive(Clone, Copy, Debug, PartialEq, DeviceRecord)]
#[repr(u8)]
pub(crate) enum Side {
    Left = 1,
    Right = 4,
    Both = 7,
}

#[gpumem::device]
pub(crate) fn nearest<T: Numeric>(at: T, most: T) -> T {
    if at > most {
        return most;
    }
    at
}

/// Calls another function, and declares constants.
#[gpumem::device]
pub(crate) fn weighted(mut at: i64, by: usize) -> i64 {
    let mut sum = 0;
    for step in 0..STEPS.len() {
        sum += nearest(at, 20) * STEPS[(step + by) % STEPS.len()];
        at += 1;
    }
    sum
}

const STEPS: [i64; 4] = [1, -2, 3, 5];
const GRID: [[i64; 3]; 2] = [[1, 2, 3], [40, 50, 60]];

#[gpumem::device]
pub(crate) fn put<T: Numeric>(out: SliceMut<T>, at: usize, value: T) {
    out[at] = value;
}

#[gpumem::device]
pub(crate) fn heavier(a: Body, b: Body) -> Body {
    if a.mass < b.mass { b } else { a }
}

#[gpumem::device]
pub(crate) fn product(a: i64, b: i64) -> i64 {
    a * b % 1009
}

pub(crate) mod elsewhere {
    #[gpumem::device]
    pub(crate) fn scaled<const BY: i64>(value: i64) -> i64 {
        value * BY
    }
}

#[gpumem::kernel(unsafe)]
pub(crate) fn functions(out: SliceMut<i64>) {
    let i = global_id(0);
    let n = i as i64;
    let small = nearest(n as f32 * 0.5, 11.25);
    let sum = weighted(n, i % 3) + nearest(n, 40) + (small * 4.0) as i64;
    put(out, i, sum + elsewhere::scaled::<3>(n) + elsewhere::scaled::<7>(1));
}

#[gpumem::kernel(unsafe)]
pub(crate) fn records(out: SliceMut<i64>) {
    let bodies = shared::<Body>([32]);
    let (i, local) = (global_id(0), local_id(0));
    let n = i as f32;
    let tag = Tag { number: i as i32, class: 2 };
    let first = Body { mass: n, place: [n, 1.0, 2.0], tag, bright: Complex::new(1.0, -n) };
    bodies[local] = Body { mass: n * 2.0, ..first };
    bodies[local].place[1] = n + 0.5;
    bodies[local].place[2] *= 3.0;
    bodies[local].tag.number += 5;
    bodies[local].bright = bodies[local].bright * Complex::new(0.0, 2.0);
    barrier(Local);
    // A neighbour's field is read while its owner writes another one.
    let neighbour = bodies[(local + 1) % 32].tag.number;
    bodies[local].mass += 1.0;
    let Body { place, mass, .. } = heavier(bodies[local], first);
    let mut own = bodies[local];
    own.tag.class = neighbour;
    own.place[0] += 1.0;
    let mut kept = local::<Tag>([2]);
    kept[1].class = own.tag.class;
    kept[1].number -= 3;
    let mut sum = place[0] as i64 + place[1] as i64 * 3 + place[2] as i64 * 5 + mass as i64 * 7;
    sum += own.bright.re as i64 * 11 + own.bright.im as i64 * 13 + own.place[0] as i64;
    out[i] = sum + kept[1].class as i64 * 17 + kept[1].number as i64 + kept[0].number as i64;
}

#[gpumem::kernel(unsafe)]
pub(crate) fn enums(out: Numbers) {
    let i = global_id(0);
    let side = match i % 5 {
        0 | 1 => Side::Left,
        2 => Side::Right,
        _ => Side::Both,
    };
    let turned = match (side, i.is_multiple_of(2)) {
        (Side::Left, true) => 10,
        (Side::Left, false) => 20,
        (Side::Both, _) if i > 30 => 30,
        (_, even) => {
            if even {
                40
            } else {
                50
            }
        }
    };
    let pair = (i as i64 % 4, (turned, side == Side::Right));
    let matched = match pair {
        (0, (10 | 20, _)) => 1,
        (1..=2, (most, true)) => most,
        (k, (most, _)) if k == 3 => most * k,
        _ => -1,
    };
    let tag = Tag { number: i as i32 % 3, class: 8 };
    let tagged = match tag {
        Tag { number: 0, .. } => 100,
        Tag { number, class: 8 } => number as i64 * 1000,
        Tag { .. } => 5,
    };
    let Tag { class, number: _ } = tag;
    out[i] = turned + matched * 3 + tagged + side as i64 * 7 + class as i64;
}

#[gpumem::kernel(unsafe)]
pub(crate) fn complex_numbers(out: SliceMut<i64>) {
    let i = global_id(0);
    let z = Complex::new(i as f64, 2.0);
    let unit = Complex { re: 0.0, im: 1.0 };
    let mut w = z * unit + z.conj() - 1.0;
    w *= Complex::new(0.5, -3.0);
    w += 2.0 * z / Complex::new(2.0, 2.0);
    let turned = -w / 4.0;
    let mut parts = [turned, w];
    parts[1] -= unit;
    let same = if parts[1].re == w.re { 1 } else { 0 };
    let equal = (parts[1] == w) as i64 + (z != w) as i64 * 2 + (z == Complex::new(5.0, 2.0)) as i64 * 4;
    let mut rest = (w % z + 7.5 % z) % 2.5;
    rest %= unit * 1.5;
    let bits = rest.re.to_bits() as i64 % 1009 + rest.im.to_bits() as i64 % 1013;
    out[i] = (turned.re * 64.0) as i64 * 3
        + (parts[1].im * 64.0) as i64
        + z.norm_sqr() as i64
        + same
        + equal * 1_000_000
        + bits;
}

#[gpumem::kernel(unsafe)]
pub(crate) fn atomics(out: SliceMut<i64>) {
    let counts = shared::<i64>([4]);
    let floats = shared::<f32>([1]);
    let (i, local) = (global_id(0), local_id(0));
    if local < 4 {
        counts[local] = 100;
    }
    if local == 0 {
        floats[0] = -0.0;
    }
    barrier(Local);
    if local == 5 {
        counts[0] = counts.atomic_exchange(1, 7) + 1;
        let seen = counts.atomic_compare_exchange(2, 100, 3);
        let not_seen = counts.atomic_compare_exchange(3, 99, 3);
        out[i] = seen * 2 + not_seen;
        // Other bits, though an equal number.
        floats.atomic_compare_exchange(0, 0.0, 5.0);
    }
    barrier(Local);
    counts.atomic_update(1, |old| old ^ (1 << local));
    counts.atomic_max(3, i as i64);
    counts.atomic_min(2, -(local as i64));
    barrier(Local);
    let all = counts[0] + counts[1] * 3 + counts[2] * 5 + counts[3] * 7;
    out[i] = all + if floats[0] == 5.0 { 1000 } else { 0 } + if local == 5 { out[i] } else { 0 };
}

#[gpumem::kernel(unsafe)]
pub(crate) fn reductions(out: SliceMut<i64>) {
    let i = global_id(0);
    let n = i as i64 + 1;
    let most = 97;
    let by_closure = wave_reduce(n, |a, b| (a * 3 + b) % most);
    let by_name = wave_reduce(n, product);
    let up = shuffle_up(n, 1) + shuffle_down(n, 2) * 2 + shuffle_xor(n, 5) * 3 + shuffle(n, 3) * 5;
    let all = if wave_all(n > 0) && !wave_any(n > 1000) { 1 } else { 0 };
    let scanned = wave_scan(n) + wave_min(n) * 2 + wave_max(n) * 3 + wave_sum(n) * 5;
    let votes = wave_ballot(lane() % 2 == 0) as u32 as i64;
    out[i] = by_closure + by_name * 7 + up + all + scanned + votes;
}

/// What the lanes give that are asked for no more, the function would not take.
#[gpumem::kernel(unsafe)]
pub(crate) fn reductions_that_stop(out: SliceMut<i64>) {
    let lane = local_id(0) % 32;
    let ends = if lane < 12 { 5 } else { 1 };
    let n = if lane < 4 {
        1000
    } else if lane < 8 {
        4
    } else {
        ends
    };
    out[global_id(0)] = wave_reduce(n, |a, b| a / b);
}

/// Numbers of two types in one place.
#[gpumem::kernel(unsafe)]
pub(crate) fn puns(out: SliceMut<i64>) {
    let whole = dynamic_shared::<u32>();
    let single = dynamic_shared::<f32>();
    let (i, at) = (global_id(0), local_id(0));
    whole[at] = 5;
    single[at + out[i] as usize] = 1.0;
    out[i] = whole[at] as i64;
}

#[gpumem::device]
pub(crate) fn of_a_wave<T: Numeric>(number: T, least: T, most: T) -> T {
    nearest(number * most, most) - least / most + T::ONE
}

#[gpumem::kernel(unsafe)]
pub(crate) fn halves_in_waves(out: SliceMut<i64>) {
    let i = global_id(0);
    let n = i as f32 * 0.37 - 5.0;
    let (half, brain) = (f16::from_f32(n), bf16::from_f32(n));
    let (least, most) = (wave_min(half), wave_max(half));
    let sum = of_a_wave(wave_sum(half), least, most);
    let (brain_least, brain_most) = (wave_min(brain), wave_max(brain));
    let brain_sum = of_a_wave(wave_sum(brain), brain_least, brain_most);
    let (scanned, moved) = (wave_scan(brain), shuffle_xor(half, 3));
    let low = sum.to_bits() as i64 + ((moved.to_bits() as i64) << 16);
    out[i] = low + ((brain_sum.to_bits() as i64 * 3) << 20) + ((scanned.to_bits() as i64 * 5) << 24);
}

#[gpumem::kernel(unsafe)]
pub(crate) fn arrays(out: SliceMut<i64>) {
    let all = dynamic_shared::<i64>();
    let (i, local) = (global_id(0), local_id(0));
    let mut flags = local::<bool>([4]);
    flags[local % 4] = true;
    flags[1] = flags[1] ^ flags[2] | !flags[3] & flags[0];
    let mut deep = local::<i32>([2, 2, 3, 2]);
    deep[[1, 0, 2, 1]] = 9;
    deep[[1, 0, 2, 1]] <<= 2;
    let mut nested = [[0; 3]; 2];
    nested[1][2] = 5;
    nested[1][2] += deep[[1, 0, 2, 1]];
    all[local] = GRID[local % 2][local % 3];
    barrier(Local);
    let flag = flags[1] as i64 * 2 + flags[0] as i64;
    out[i] = all[(local + 1) % all.extent(0)] + flag * 100 + nested[1][2] as i64 + nested[0][0] as i64;
}

/// An index past the end of the dynamic shared memory.
#[gpumem::kernel(unsafe)]
pub(crate) fn past_the_dynamic_end(out: SliceMut<i64>) {
    let all = dynamic_shared::<i64>();
    let i = global_id(0);
    all[local_id(0) + 1] = 1;
    out[i] = 1;
}

/// Parameters of every kind.
#[gpumem::kernel(unsafe)]
pub(crate) fn settings(out: Numbers, tag: Value<Tag>, add: bool, bodies: View<Body, 1>) {
    let i = global_id(0);
    let mass = bodies[[i % bodies.extent(0)]].mass as i64;
    out[i] = if add { mass + tag.number as i64 } else { tag.class as i64 };
}

/// Truth values as elements of shared, local and plain arrays.
#[gpumem::kernel(unsafe)]
pub(crate) fn truths(out: SliceMut<i64>) {
    let thirds = shared::<Bool>([32]);
    let mut seen = local::<Bool>([2]);
    let (i, boolean) = (local_id(0), Bool::from(local_id(0) > 7));
    thirds[i] = Bool::from(i % 3 == 0);
    barrier(Local);
    seen[1] = thirds[31 - i];
    let pair = [thirds[i], seen[1]];
    let mut sum = 0;
    if bool::from(seen[1]) {
        sum += 1;
    }
    if pair[0] == pair[1] {
        sum += 2;
    }
    if bool::from(seen[0]) != bool::from(boolean) {
        sum += 4;
    }
    out[global_id(0)] = sum;
}

mod sums {
    /// What a type and a function of one name are: the function in the kernels' module is another.
    #[gpumem::device]
    pub(crate) fn mixed(a: i64, b: i64) -> i64 {
        a + b
    }
}
#[allow(unused_imports)] // the type
use sums::*;

#[allow(dead_code)]
fn mixed(a: i64, b: i64) -> i64 {
    a * 100 + b
}

/// An operation by the name of a function of kernels, beside which another function has its name.
#[gpumem::kernel(unsafe)]
pub(crate) fn operations_by_name(out: SliceMut<i64>) {
    let i = global_id(0);
    let sum = wave_reduce(local_id(0) as i64, mixed);
    out[i] = sum;
}

const TABLE: [i64; 2] = [3, 5];

/// Variables with the names that the C++ of loops and of arrays has for its own.
#[gpumem::kernel(unsafe)]
#[allow(non_snake_case)]
pub(crate) fn names_of_the_source(out: SliceMut<i64>) {
    let i_end = global_id(0) % 5 + 1;
    let (i_step, j_steps, k_step, turn_end) = (2usize, 7i64, 3usize, 11i64);
    let mut sum = 0;
    for i in 0..i_end {
        sum += (i_end * 10 + i) as i64;
    }
    for i in (0..9u8).step_by(i_step) {
        sum += i as i64 * i_step as i64;
    }
    for j in (0..4).rev() {
        sum += j * j_steps;
    }
    for k in (0..i_end).step_by(k_step) {
        let k_end = 1000;
        sum += k_end + k as i64;
    }
    for _ in 0..2 {
        sum += turn_end;
    }
    let constant_0 = [100i64, 200];
    let all_memory = 13;
    let all = dynamic_shared::<i64>();
    all[local_id(0)] = TABLE[1] + constant_0[1] + all_memory;
    out[global_id(0)] = sum + all[local_id(0)];
}

/// One variable and one label in two spellings.
#[gpumem::kernel(unsafe)]
#[allow(unused_variables, clippy::never_loop)]
pub(crate) fn spellings(out: SliceMut<i64>) {
    let x = 1;
    let r#x = x * global_id(0) as i64;
    let mut r#type = x;
    let mut turns = 0;
    'out: loop {
        turns += 1;
        loop {
            turns += 10;
            if turns > 60 {
                break 'r#out;
            }
            if x % 2 == 0 {
                continue 'out;
            }
        }
    }
    r#type += r#turns;
    out[r#global_id(0)] = r#type + x * 1000;
}

/// Lengths of axes whose numbers only the kernel knows, of arrays with more axes than a launch.
#[gpumem::kernel(unsafe)]
pub(crate) fn many_axes(out: SliceMut<i64>) {
    let grid = shared::<i64>([2, 3, 4, 5, 6]);
    if local_id(0) == 0 {
        grid[[1, 2, 3, 4, 5]] = 1;
    }
    barrier(Local);
    let mut sum = grid[[1, 2, 3, 4, 5]];
    for axis in 0..8 {
        sum = sum * 10 + grid.extent(axis) as i64;
    }
    out[global_id(0)] = sum + global_id(local_id(0) + 3) as i64;
}

/// Parts of elements where a statement begins.
#[gpumem::kernel(unsafe)]
pub(crate) fn parts_first(out: SliceMut<i64>) {
    let tags = shared::<Tag>([64]);
    let (i, n) = (local_id(0), global_id(0) as i32);
    tags[i] = Tag { number: n, class: n * 2 };
    let less = tags[i].number - 1;
    let more = if n > 3 { tags[i].class * 2 } else { tags[i].class as i64 as i32 };
    let most = match n % 2 {
        0 => tags[i].class & 3,
        _ => tags[i].number - 7,
    };
    out[global_id(0)] = (less + more * 10 + most * 100) as i64;
}

const EDGES: [f32; 3] = [f32::INFINITY, f32::NEG_INFINITY, f32::from_bits(0x7fc0_1234)];
const WIDE_EDGES: [f64; 2] = [f64::from_bits(0xfff8_0000_0000_0001), -0.0];
const HALVES: [f16; 2] = [f16::from_bits(0x3c01), f16::NEG_INFINITY];
const SHORT: [bf16; 2] = [bf16::from_bits(0x3f81), bf16::NAN];
const TURNS: [Complex<f32>; 2] = [Complex::new(1.0, 0.0), Complex::new(0.0, f32::INFINITY)];

/// Tables of numbers that have no literal in C++.
#[gpumem::kernel(unsafe)]
pub(crate) fn tables(out: SliceMut<i64>) {
    let n = global_id(0);
    let bits = EDGES[n % 3].to_bits() as i64 + HALVES[n % 2].to_bits() as i64 + SHORT[n % 2].to_bits() as i64;
    let turn = TURNS[n % 2];
    out[n] = bits + (WIDE_EDGES[n % 2].to_bits() >> 32) as i64 + turn.im.to_bits() as i64;
}

/// A trait of a user's with the names of lengths.
#[allow(dead_code, clippy::len_without_is_empty, clippy::wrong_self_convention)] // no kernel calls it
pub(crate) trait Length: Sized {
    fn len(self) -> usize {
        1000
    }
    fn is_empty(self) -> bool {
        true
    }
    fn extent(self, _axis: usize) -> usize {
        1000
    }
}
impl<T> Length for T {}

/// Lengths are those of the arrays, whatever traits there are.
#[gpumem::kernel(unsafe)]
pub(crate) fn lengths(out: SliceMut<i64>) {
    let local = [1i64, 2, 3];
    let grid = shared::<i64>([5, 7]);
    if local_id(0) == 0 {
        grid[[0, 0]] = 1;
    }
    let all = if out.is_empty() || local.is_empty() { 1 } else { 0 };
    out[global_id(0)] = (local.len() + TABLE.len() * 10 + grid.extent(1) * 100 + all * 1000) as i64;
}

type Count = i64;

/// What a value changes is seen by what stands after it, and by nothing before it.
#[gpumem::kernel(unsafe)]
pub(crate) fn changes(out: SliceMut<i64>) {
    let cells = shared::<i64>([64]);
    let local = local_id(0) * 2;
    let mut at = local;
    cells[local] = 0;
    cells[at] = {
        at += 1;
        7
    };
    cells[local] = 100;
    at = local;
    cells.atomic_add(at, {
        at += 1;
        20
    });
    out[global_id(0)] = cells[local] * 1000 + cells[local + 1] + at as i64;
}

/// A number by another name of its type is a variable as all others.
#[gpumem::kernel(unsafe)]
pub(crate) fn named_number(out: SliceMut<i64>, mut n: Count) {
    out[global_id(0)] = n * 100 + {
        n += 1;
        n
    };
}

const NONE: [i64; 0] = [];

#[gpumem::device]
fn sum_of(none: [i64; 0]) -> i64 {
    let mut sum = 0;
    for at in 0..none.len() {
        sum += none[at];
    }
    sum
}

/// Arrays without elements.
// SAFETY: each work-item writes its own element.
#[gpumem::kernel(unsafe)]
pub(crate) fn empty(out: SliceMut<i64>) {
    let (listed, filled): ([i64; 0], [f16; 0]) = ([], [f16::from_f32(1.0); 0]);
    let nested = [[1.5f32; 0]; 2];
    let row = local::<Complex<f32>>([0]);
    let grid = local::<i64>([3, 0]);
    let tile = shared::<Body>([0]);
    let plane = shared::<u8>([0, 5]);
    let mut sum = sum_of(NONE) + sum_of(listed);
    for at in 0..NONE.len() + filled.len() + row.len() + tile.extent(0) {
        tile[at].tag.number = 1;
        sum += NONE[at] + filled[at].to_f32() as i64 + nested[1][at] as i64 + row[at].re as i64;
        sum += grid[[2, at]] + tile[at].place[0] as i64 + plane[[at, 4]] as i64;
    }
    let extents = nested.len() + grid.extent(0) * 10 + grid.extent(1) + plane.extent(1) * 100;
    out[global_id(0)] = sum + extents as i64;
}

/// All of them that take one array, in which each work-item writes one number.
#[allow(dead_code)] // not every test program runs all of them
pub(crate) fn all() -> Vec<gpumem::kernel::KernelDef<super::Integers>> {
    let mut all = vec![functions(), records(), enums(), complex_numbers(), atomics(), reductions(), arrays()];
    all.extend([truths(), halves_in_waves(), operations_by_name(), names_of_the_source(), spellings()]);
    all.extend([
        reductions_that_stop(),
        puns(),
        changes(),
        many_axes(),
        given(),
        parts_first(),
        tables(),
        lengths(),
        empty(),
    ]);
    all
}

/// A kernel whose expressions a `macro_rules` has been given.
macro_rules! given {
    ($name:ident, $integer:ty, $e:expr, $less:expr, $range:expr) => {
        #[gpumem::kernel(unsafe)]
        pub(crate) fn $name(out: SliceMut<i64>) {
            let n: $integer = global_id(0) as $integer;
            assert!($e * 2 == 6, "{}", 1);
            let mut sum = $e * 2 - $e + n - -$e;
            sum *= $e;
            if $less == false {
                sum += 1000;
            }
            for i in $range.rev() {
                sum = sum * 3 + i;
            }
            out[global_id(0)] = sum + ($e as u8 as i64) + $e.abs();
        }
    };
}
given!(given, i64, 1i64 + 2, true && false, 0..4);
