//! Bodies for the host that take a group at once, in loops that the compiler turns into vector instructions. Their results are those
//! of the kernels, bit by bit: the same additions in the same order. Check mode runs the kernels themselves.

use super::{CHUNK, GROUP, RUN, TILE};
use crate::kernel::{
    BinaryFunction, DeviceType, Numeric, Slice, SliceMut, UnaryFunction, Value,
    codegen::{Fault, Phases},
};
use gpumem_core::Element;

/// The parameters of [`reduce`](super::reduce()).
pub(crate) type Reduce<T, U, A> = (Slice<T>, Slice<U>, SliceMut<A>, Value<A>, u64, u64);
/// The parameters of [`reduce_index`](super::reduce_index()).
pub(crate) type ReduceIndex<T> = (Slice<T>, Slice<u64>, SliceMut<T>, SliceMut<u64>, u64, u64);
/// The parameters of [`scan_tiles`](super::scan_tiles()).
pub(crate) type Scan<T, A, R> = (Slice<T>, Slice<A>, SliceMut<R>, u64, u64, bool);

/// The parameters of [`zip_map`](super::zip_map()).
pub(crate) type ZipMap<T, U, R> = (Slice<T>, Slice<U>, SliceMut<R>);

/// Lanes of a group, or its lines of one lane each.
const PLACES: usize = GROUP as usize;

/// As [`reduce`](super::reduce()).
pub(crate) fn reduce<T, U, A, First, Join>(
    phases: &mut Phases<'_>,
    (x, y, out, start, length, inner): &Reduce<T, U, A>,
) -> Result<(), Fault>
where
    T: Element + DeviceType,
    U: Element + DeviceType,
    A: Numeric,
    First: BinaryFunction<T, U, Output = A>,
    Join: BinaryFunction<A, A, Output = A>,
{
    let join = Join::pointer();
    let (start, length, inner) = (start.0, *length as usize, *inner as usize);
    let mut eighths = [[start; PLACES]; 8];
    while phases.next_group() {
        let group = phases.first();
        let (lanes, lines) = (group.group_size(0), group.group_size(1));
        let chunk_length = lanes * CHUNK;
        let chunks = length.div_ceil(chunk_length);
        let mut at = group.group_id(0) * lines;
        let end = (at + lines).min(out.len());
        while at < end {
            let (column, rest) = (at % inner, at / inner);
            let first = (rest % chunks) * chunk_length;
            let from = ((rest / chunks) * length + first) * inner + column;
            let count = chunk_length.min(length - first);
            // The lanes of a line, or lines of one lane that are neighbours.
            let (places, across) = match lanes {
                1 => ((end - at).min(inner - column), 1),
                _ => (lanes, inner),
            };
            for eighth in &mut eighths {
                eighth[..places].fill(start);
            }
            for (row, at) in (0..count).step_by(lanes).enumerate() {
                let filled = if lanes == 1 { places } else { lanes.min(count - at) };
                add::<T, U, A, First, Join>(
                    &mut eighths[row % 8][..filled],
                    (x, y),
                    from + at * inner,
                    across,
                );
            }
            let [a, b, c, d, e, f, g, h] = &mut eighths;
            for p in 0..places {
                a[p] =
                    join(join(join(a[p], b[p]), join(c[p], d[p])), join(join(e[p], f[p]), join(g[p], h[p])));
            }
            if lanes == 1 {
                a[..places].iter().enumerate().for_each(|(p, all)| out.set(at + p, *all));
                at += places;
                continue;
            }
            let mut distance = lanes / 2;
            while distance > 0 {
                let (near, far) = a.split_at_mut(distance);
                near.iter_mut().zip(far).for_each(|(near, far)| *near = join(*near, *far));
                distance /= 2;
            }
            out.set(at, a[0]);
            at += 1;
        }
    }
    Ok(())
}

/// Joins elements at a distance of `across` to the sum of each place.
#[inline(always)]
fn add<T, U, A, First, Join>(sums: &mut [A], (x, y): (&Slice<T>, &Slice<U>), from: usize, across: usize)
where
    T: Element + DeviceType,
    U: Element + DeviceType,
    A: Numeric,
    First: BinaryFunction<T, U, Output = A>,
    Join: BinaryFunction<A, A, Output = A>,
{
    let add = |sum: &mut A, x: T, y: U| {
        *sum = Join::pointer()(*sum, First::pointer()(x, y));
    };
    match across {
        1 => {
            let run = x.run(from, sums.len()).zip(y.run(from, sums.len()));
            sums.iter_mut().zip(run).for_each(|(sum, (x, y))| add(sum, x, y));
        }
        _ => sums.iter_mut().enumerate().for_each(|(p, sum)| {
            let at = from + p * across;
            add(sum, x.get(at), y.get(at));
        }),
    }
}

/// As [`zip_map`](super::zip_map()).
pub(crate) fn zip_map<T, U, R, F>(phases: &mut Phases<'_>, (x, y, out): &ZipMap<T, U, R>) -> Result<(), Fault>
where
    T: Element + DeviceType,
    U: Element + DeviceType,
    R: Element + DeviceType,
    F: BinaryFunction<T, U, Output = R>,
{
    let most = RUN * PLACES;
    while phases.next_group() {
        let from = phases.first().group_id(0) * most;
        let count = most.min(out.len() - from);
        let run = x.run(from, count).zip(y.run(from, count));
        out.set_run(from, run.map(|(x, y)| F::pointer()(x, y)));
    }
    Ok(())
}

/// As [`reduce_index`](super::reduce_index()).
pub(crate) fn reduce_index<T, Before>(
    phases: &mut Phases<'_>,
    (x, places, values, out, length, inner): &ReduceIndex<T>,
) -> Result<(), Fault>
where
    T: Numeric,
    Before: BinaryFunction<T, T, Output = bool>,
{
    let before = Before::pointer();
    let (length, inner) = (*length as usize, *inner as usize);
    while phases.next_group() {
        let group = phases.first();
        let (lanes, lines) = (group.group_size(0), group.group_size(1));
        let chunk_length = lanes * CHUNK;
        let chunks = length.div_ceil(chunk_length);
        let begin = group.group_id(0) * lines;
        for at in begin..(begin + lines).min(out.len()) {
            let (column, rest) = (at % inner, at / inner);
            let first = (rest % chunks) * chunk_length;
            let from = ((rest / chunks) * length + first) * inner + column;
            let count = chunk_length.min(length - first);
            // The first of those that no other comes before, in whatever order they are looked at.
            let mut best = (x.get(from), from, first);
            let mut look = |k: usize, value: T| {
                if before(value, best.0) {
                    best = (value, from + k * inner, first + k);
                }
            };
            match inner {
                1 => x.run(from, count).enumerate().for_each(|(k, value)| look(k, value)),
                _ => (1..count).for_each(|k| look(k, x.get(from + k * inner))),
            }
            let (value, index, k) = best;
            values.set(at, value);
            out.set(at, if places.is_empty() { k as u64 } else { places.get(index) });
        }
    }
    Ok(())
}

/// As [`scan_tiles`](super::scan_tiles()).
pub(crate) fn scan_tiles<T, A, R, First, Last>(
    phases: &mut Phases<'_>,
    (x, before, out, length, inner, exclusive): &Scan<T, A, R>,
) -> Result<(), Fault>
where
    T: Numeric,
    A: Numeric,
    R: Numeric,
    First: UnaryFunction<T, Output = A>,
    Last: UnaryFunction<A, Output = R>,
{
    let (length, inner) = (*length as usize, *inner as usize);
    let tiles = length.div_ceil(TILE);
    let mut tile = [A::ZERO; TILE];
    let (mut sums, mut parts) = ([A::ZERO; PLACES], [A::ZERO; 16]);
    while phases.next_group() {
        let group = phases.first().group_id(0);
        let rest = group / inner;
        let start = (rest % tiles) * TILE;
        let from = ((rest / tiles) * length + start) * inner + group % inner;
        let count = TILE.min(length - start);
        let first = First::pointer();
        let places = tile[..count].iter_mut();
        match inner {
            1 => places.zip(x.run(from, count)).for_each(|(place, value)| *place = first(value)),
            _ => places.enumerate().for_each(|(k, place)| *place = first(x.get(from + k * inner))),
        }
        tile[count..].fill(A::ZERO);
        for (neighbours, sum) in tile.chunks_exact_mut(8).zip(&mut sums) {
            *sum = scan(neighbours);
        }
        for (neighbours, part) in sums.chunks_exact_mut(16).zip(&mut parts) {
            *part = scan(neighbours);
        }
        scan(&mut parts);
        for (lane, neighbours) in tile.chunks_exact_mut(8).enumerate() {
            let mut offset = if lane % 16 > 0 { sums[lane - 1] } else { A::ZERO };
            if lane >= 16 {
                offset = parts[lane / 16 - 1].plus(offset);
            }
            if !before.is_empty() {
                offset = before.get(group).plus(offset);
            }
            if *exclusive {
                neighbours.rotate_right(1);
                neighbours[0] = A::ZERO;
            }
            neighbours.iter_mut().for_each(|place| *place = offset.plus(*place));
        }
        let sums = tile[..count].iter().map(|sum| Last::pointer()(*sum));
        match inner {
            1 => out.set_run(from, sums),
            _ => sums.enumerate().for_each(|(k, sum)| out.set(from + k * inner, sum)),
        }
    }
    Ok(())
}

/// Scans the values where they are, and returns the last sum.
#[inline(always)]
fn scan<A: Numeric>(values: &mut [A]) -> A {
    let mut values = values.iter_mut();
    let Some(first) = values.next() else { return A::ZERO };
    let mut sum = *first;
    for value in values {
        sum = sum.plus(*value);
        *value = sum;
    }
    sum
}
