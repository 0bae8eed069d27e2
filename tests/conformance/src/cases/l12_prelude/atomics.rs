//! Atomic operations in shared and in global memory: their results, and the old values.

use super::{Parameters, Probe, case, random};
use crate::Case;
use gpumem_core::{Backend, BarrierScope, Element, LaunchConfig};
use gpumem_kernel::{Atomic, Change, KernelDef, WorkItem, WorkItemIds};
use std::{fmt::Debug, marker::PhantomData};

pub(super) fn cases<B: Backend>() -> Vec<Case<B>> {
    vec![
        case::<Atomics<u32>, B>(),
        case::<Atomics<i32>, B>(),
        case::<Atomics<u64>, B>(),
        case::<Atomics<i64>, B>(),
        case::<Atomics<f32>, B>(),
        case::<Atomics<f64>, B>(),
        case::<Update, B>(),
    ]
}

/// A number that atomics change.
trait Counter: Element + Atomic + PartialOrd + Debug {
    const TYPE: &'static str;
    const NAME: &'static str;
    const LEAST: Self;
    const GREATEST: Self;
    fn number(number: usize) -> Self;
    /// From random bits; no NaN.
    fn any(random: u64) -> Self;
}

macro_rules! counters {
    ($($type:ty: $device:literal;)*) => {$(
        impl Counter for $type {
            const TYPE: &'static str = $device;
            const NAME: &'static str = stringify!($type);
            const LEAST: Self = <$type>::MIN;
            const GREATEST: Self = <$type>::MAX;
            fn number(number: usize) -> Self { number as $type }
            fn any(random: u64) -> Self { random as i64 as $type }
        }
    )*};
}
counters! { u32: "u32"; i32: "i32"; u64: "u64"; i64: "i64"; f32: "float"; f64: "double"; }

/// Counters that work-items share by threes.
const COUNTERS: usize = 3;
/// Counters, smallest and largest.
const TOTALS: usize = COUNTERS + 2;

/// `atomic_add`, `atomic_min` and `atomic_max`. The output: totals of global memory, totals of shared memory, the old
/// values of both.
struct Atomics<T>(PhantomData<T>);

impl<T: Counter> Probe for Atomics<T> {
    type In = T;
    type Out = T;

    fn declaration() -> KernelDef<Parameters<Self>> {
        let (name, element) = (format!("atomics_{}", T::NAME), T::TYPE);
        let source = format!(
            "using namespace gpumem;
GPUMEM_KERNEL {name}(slice<const {element}> x, slice<{element}> y) {{
    GPUMEM_SHARED({element}, totals, 5);
    u32 i = local_linear(), n = (u32)x.size();
    for (u32 k = i; k < 5; k += n) totals(k) = y[5 + k];
    barrier(LOCAL);
    y[10 + i] = atomic_add(y[i % 3], ({element})1);
    atomic_min(y[3], x[i]);
    atomic_max(y[4], x[i]);
    y[10 + n + i] = atomic_add(totals(i % 3), ({element})1);
    atomic_min(totals(3), x[i]);
    atomic_max(totals(4), x[i]);
    barrier(LOCAL);
    for (u32 k = i; k < 5; k += n) y[5 + k] = totals(k);
}}"
        );
        // SAFETY: elements that several work-items change are changed atomically; barriers separate that from other
        // accesses.
        unsafe { KernelDef::new(&name) }.shared_bytes(5 * size_of::<T>()).source(&source).host_body(
            async |item: WorkItem<'_>, (x, y): &Parameters<Self>| {
                let totals = item.shared::<T, 1>([TOTALS]);
                let (i, n, one) = (item.local_linear(), x.len(), T::number(1));
                (i..TOTALS).step_by(n).for_each(|k| totals.set(k, y.get(TOTALS + k)));
                item.barrier(BarrierScope::Local).await;
                y.set(2 * TOTALS + i, y.atomic_add(i % COUNTERS, one));
                y.atomic_min(COUNTERS, x.get(i));
                y.atomic_max(COUNTERS + 1, x.get(i));
                y.set(2 * TOTALS + n + i, totals.atomic_add(i % COUNTERS, one));
                totals.atomic_min(COUNTERS, x.get(i));
                totals.atomic_max(COUNTERS + 1, x.get(i));
                item.barrier(BarrierScope::Local).await;
                (i..TOTALS).step_by(n).for_each(|k| y.set(TOTALS + k, totals.get(k)));
            },
        )
    }

    fn input(items: usize) -> Vec<T> {
        random(items).map(T::any).collect()
    }

    fn before(items: usize) -> Vec<T> {
        let mut all = vec![T::number(0); 2 * TOTALS + 2 * items];
        for totals in [0, TOTALS] {
            all[totals + COUNTERS] = T::GREATEST;
            all[totals + COUNTERS + 1] = T::LEAST;
        }
        all
    }

    fn after(input: &[T], _: &LaunchConfig, _: usize) -> Vec<T> {
        let mut all = Self::before(input.len());
        for (totals, olds) in [(0, 2 * TOTALS), (TOTALS, 2 * TOTALS + input.len())] {
            for (i, x) in input.iter().enumerate() {
                all[olds + i] = T::number(i / COUNTERS);
                all[totals + i % COUNTERS] = T::number(i / COUNTERS + 1);
                if *x < all[totals + COUNTERS] {
                    all[totals + COUNTERS] = *x;
                }
                if *x > all[totals + COUNTERS + 1] {
                    all[totals + COUNTERS + 1] = *x;
                }
            }
        }
        all
    }

    /// Each counter's old values are all numbers below its total, each once, in any order.
    fn normalise(output: &mut [T]) {
        let olds = &mut output[2 * TOTALS..];
        let half = olds.len() / 2;
        for part in olds.chunks_mut(half) {
            for counter in 0..COUNTERS {
                let mut values: Vec<T> = part.iter().skip(counter).step_by(COUNTERS).copied().collect();
                values.sort_by(|a, b| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal));
                let places = part.iter_mut().skip(counter).step_by(COUNTERS);
                places.zip(values).for_each(|(place, value)| *place = value);
            }
        }
    }
}

/// `atomic_update` by a change whose order does not matter.
struct Update;

impl Probe for Update {
    type In = u64;
    type Out = u64;

    fn declaration() -> KernelDef<Parameters<Self>> {
        let source = "using namespace gpumem;
GPUMEM_KERNEL atomic_updates(slice<const u64> x, slice<u64> y) {
    atomic_update(y[0], [](u64 old) { return old * 3 + 1; });
    u64 add = x[local_linear()];
    atomic_update(y[1], [add](u64 old) { return old ^ add; });
}";
        // SAFETY: the elements are changed atomically.
        unsafe { KernelDef::new("atomic_updates") }.source(source).host_loop(
            |ids: &WorkItemIds<'_>, (x, y): &Parameters<Self>| {
                y.atomic_update(0, |old| old.wrapping_mul(3).wrapping_add(1));
                let add = x.get(ids.local_linear());
                y.atomic_update(1, |old| old ^ add);
            },
        )
    }

    fn input(items: usize) -> Vec<u64> {
        random(items).collect()
    }

    fn before(_: usize) -> Vec<u64> {
        vec![7, 0]
    }

    fn after(input: &[u64], _: &LaunchConfig, _: usize) -> Vec<u64> {
        let first = (0..input.len()).fold(7u64, |old, _| old.wrapping_mul(3).wrapping_add(1));
        vec![first, input.iter().fold(0, |all, x| all ^ x)]
    }
}
