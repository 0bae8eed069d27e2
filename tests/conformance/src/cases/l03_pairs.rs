//! Random pairs of layouts in every direction, with guards around and between, and transfers in many pieces.

use super::tools::{elements, same};
use crate::{Lab, Level, Stop, Verdict};
use gpumem_core::{Backend, Element, ErrorKind};
use gpumem_runtime::{Device, DeviceArray, Order, PinnedArray, TransferOptions};
use ndarray::{
    Array1, Array2, ArrayView1, ArrayViewD, ArrayViewMut1, ArrayViewMutD, Ix1, IxDyn, SliceInfo,
    SliceInfoElem, s,
};
use std::ops::{ControlFlow, Range};

cases! { Level::Copy;
    random_pairs_of_layouts,
    long_transfers_in_pieces,
    progress_and_cancellation,
}

/// The environment variable with another seed than 1.
const SEED_VARIABLE: &str = "GPUMEM_CONFORMANCE_SEED";
/// The environment variable with another number of pairs in one run than this. By night there are more.
const PAIRS_VARIABLE: &str = "GPUMEM_CONFORMANCE_PAIRS";
const PAIRS: usize = 2000;
/// Pairs in one array on either side, so that preparing and checking take no longer than the pairs.
const TOGETHER: usize = 20;
/// With optimisation every pair goes in every direction; without, where each takes milliseconds on a simulated device, in
/// one of them in turn.
const ALL_DIRECTIONS: bool = !cfg!(debug_assertions);
/// Most elements of one pair, and of those that are long enough for kernels and for several threads.
const ELEMENTS: usize = 100;
const MANY_ELEMENTS: usize = 12_000;
/// Of so many pairs one is long.
const LONG_ONE_OF: usize = 199;

/// A small generator: the same pairs every time.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }

    fn shuffled(&mut self, len: usize) -> Vec<usize> {
        let mut order: Vec<_> = (0..len).collect();
        (1..len).rev().for_each(|end| order.swap(end, self.below(end + 1)));
        order
    }
}

/// A view of some shape inside a larger array.
#[derive(Debug)]
struct Placement {
    /// Lengths of the array, in the order of memory.
    memory: Vec<usize>,
    /// For each axis of the view, which axis of the array it runs along.
    axes: Vec<usize>,
    part: Vec<SliceInfoElem>,
}

impl Placement {
    /// In an array of about `around` elements at most.
    fn new(random: &mut Random, shape: &[usize], around: usize) -> Self {
        let axes = random.shuffled(shape.len());
        // Mostly as users have it, so that axes merge and runs are long too.
        let is_plain = random.below(3) == 0;
        let (mut memory, mut part) = (vec![0; shape.len()], Vec::new());
        let mut room = around / shape.iter().product::<usize>().max(1);
        for (&length, &axis) in shape.iter().zip(&axes) {
            let (mut step, mut before, mut after) =
                ([1, 1, 1, -1, -1, 2, 3, -2][random.below(8)], random.below(3), random.below(3));
            let span = |step: isize| length.saturating_sub(1) * step.unsigned_abs() + usize::from(length > 0);
            let grown = (before + span(step) + after).div_ceil(length.max(1));
            if is_plain || grown > room {
                (step, before, after) = (if is_plain { 1 } else { step.signum() }, 0, 0);
            } else {
                room /= grown.max(1);
            }
            let span = span(step);
            memory[axis] = before + span + after;
            let (start, end) = (before as isize, Some((before + span) as isize));
            part.push(SliceInfoElem::Slice { start, end, step });
        }
        Self { memory, axes, part }
    }

    fn info(&self) -> Verdict<SliceInfo<&[SliceInfoElem], IxDyn, IxDyn>> {
        SliceInfo::try_from(&self.part[..]).map_err(failed)
    }

    /// Elements of the array.
    fn len(&self) -> usize {
        self.memory.iter().product()
    }

    /// The view, where the array is a part of `field`.
    fn view<'a, T>(&self, field: ArrayView1<'a, T>) -> Verdict<ArrayViewD<'a, T>> {
        let array = field.into_shape_with_order(IxDyn(&self.memory)).map_err(failed)?;
        Ok(array.permuted_axes(&self.axes[..]).slice_move(self.info()?))
    }

    fn view_mut<'a, T>(&self, field: ArrayViewMut1<'a, T>) -> Verdict<ArrayViewMutD<'a, T>> {
        let array = field.into_shape_with_order(IxDyn(&self.memory)).map_err(failed)?;
        Ok(array.permuted_axes(&self.axes[..]).slice_move(self.info()?))
    }
}

fn failed(error: impl ToString) -> Stop {
    Stop::Failed(error.to_string())
}

/// Ways between the caller, the device and page-locked memory.
#[derive(Debug, Clone, Copy)]
enum Direction {
    Down,
    Up,
    Within,
    FromPinned,
}

const DIRECTIONS: [Direction; 4] = [Direction::Down, Direction::Up, Direction::Within, Direction::FromPinned];

/// A source, which is broadcast, and a target of that shape, each in its part of an array.
#[derive(Debug)]
struct Case {
    shape: Vec<usize>,
    source: Placement,
    from: Range<usize>,
    target: Placement,
    to: Range<usize>,
}

impl Case {
    /// Places the next case after others that end there.
    fn new(random: &mut Random, most: usize, from: usize, to: usize) -> Self {
        let longest = if most > ELEMENTS { 60 } else { 9 };
        let mut shape = Vec::new();
        for _ in 0..random.below(7) {
            let room = most / shape.iter().product::<usize>().max(1);
            let length = if random.below(60) == 0 { 0 } else { 1 + random.below(longest) };
            shape.push(if random.below(8) == 0 { 1 + random.below(40) } else { length }.min(room.max(1)));
        }
        let narrow = |length: &usize, random: &mut Random| {
            if *length > 0 && random.below(9) == 0 { 1 } else { *length }
        };
        let narrow: Vec<_> = shape.iter().map(|length| narrow(length, random)).collect();
        let source = Placement::new(random, &narrow, 3 * most);
        let target = Placement::new(random, &shape, 3 * most);
        let (from, to) = (from..from + source.len(), to..to + target.len());
        Self { shape, source, from, target, to }
    }

    /// The same copy on the host: the expected result.
    fn expect<T: Element>(&self, numbers: &Array1<T>, guards: &mut Array1<T>) -> Verdict {
        let narrow = self.source.view(numbers.slice(s![self.from.clone()]))?;
        let wide = narrow.broadcast(IxDyn(&self.shape)).ok_or_else(|| failed("no broadcast"))?;
        self.target.view_mut(guards.slice_mut(s![self.to.clone()]))?.assign(&wide);
        Ok(())
    }

    /// Into the caller's array.
    fn down<B: Backend, T: Element>(
        &self,
        there: &DeviceArray<T, Ix1, B>,
        arrived: &mut Array1<T>,
    ) -> Verdict {
        let source = there.slice(s![self.from.clone()])?;
        let source = source.reshape(IxDyn(&self.source.memory))?.permuted_axes(&self.source.axes)?;
        let part = source.slice(self.source.info()?)?;
        let target = self.target.view_mut(arrived.slice_mut(s![self.to.clone()]))?;
        part.broadcast(IxDyn(&self.shape))?.copy_to_host_into(target)?;
        Ok(())
    }

    /// Into the array on the device, out of `numbers` or, within the device, out of `there`.
    fn up<B: Backend, T: Element>(
        &self,
        direction: Direction,
        (numbers, there): (&Array1<T>, &DeviceArray<T, Ix1, B>),
        target: &mut DeviceArray<T, Ix1, B>,
    ) -> Verdict {
        let narrow = self.source.view(numbers.slice(s![self.from.clone()]))?;
        let wide = narrow.broadcast(IxDyn(&self.shape)).ok_or_else(|| failed("no broadcast"))?;
        let device = there.device()?;
        let mut field = target.slice_mut(s![self.to.clone()])?;
        let mut turned =
            field.reshape_mut(IxDyn(&self.target.memory), Order::C)?.permuted_axes(&self.target.axes)?;
        let mut part = turned.slice_mut(self.target.info()?)?;
        match direction {
            Direction::Within => {
                let source = there.slice(s![self.from.clone()])?;
                let source = source.reshape(IxDyn(&self.source.memory))?.permuted_axes(&self.source.axes)?;
                part.copy_to_device(&source.slice(self.source.info()?)?.broadcast(IxDyn(&self.shape))?)?;
            }
            Direction::FromPinned => {
                let mut pinned: PinnedArray<T, IxDyn, B> = device.pinned_array(IxDyn(&self.shape))?;
                pinned.view_mut()?.assign(&wide);
                part.copy_to_device(&pinned)?;
            }
            Direction::Up | Direction::Down => drop(part.copy_to_device(&wide)?),
        }
        Ok(())
    }
}

/// Some pairs of one element type. The bytes around and between the elements of each must not change.
fn pairs<B: Backend, T: Element>(device: &Device<B>, random: &mut Random, batch: usize) -> Verdict {
    let mut cases: Vec<Case> = Vec::new();
    for number in batch * TOGETHER..(batch + 1) * TOGETHER {
        let most = if number.is_multiple_of(LONG_ONE_OF) { MANY_ELEMENTS } else { ELEMENTS };
        let (from, to) = cases.last().map_or((0, 0), |last| (last.from.end, last.to.end));
        cases.push(Case::new(random, most, from, to));
    }
    let (from, to) = cases.last().map_or((0, 0), |last| (last.from.end, last.to.end));
    let numbers = Array1::from(elements::<T>(from));
    let guards = Array1::from(elements::<T>(17 + to).split_off(17));
    let mut expected = guards.clone();
    cases.iter().try_for_each(|case| case.expect(&numbers, &mut expected))?;
    let there = device.to_device(&numbers)?;
    let one = [DIRECTIONS[batch / TYPES % DIRECTIONS.len()]];
    for direction in if ALL_DIRECTIONS { &DIRECTIONS[..] } else { &one } {
        let arrived = if let Direction::Down = direction {
            let mut arrived = guards.clone();
            cases.iter().try_for_each(|case| case.down(&there, &mut arrived))?;
            arrived
        } else {
            let mut target = device.to_device(&guards)?;
            cases.iter().try_for_each(|case| case.up(*direction, (&numbers, &there), &mut target))?;
            target.copy_to_host()?
        };
        for case in &cases {
            let part = |array: &Array1<T>| array.slice(s![case.to.clone()]).to_vec();
            let (found, wanted) = (part(&arrived), part(&expected));
            if bytemuck::cast_slice::<T, u8>(&found) != bytemuck::cast_slice::<T, u8>(&wanted) {
                let name = std::any::type_name::<T>();
                return Err(failed(format!("batch {batch}, {direction:?}, elements of {name}: {case:?}")));
            }
        }
    }
    Ok(())
}

/// Element types: 1 to 16 bytes, with and without an alignment.
const TYPES: usize = 20;

fn random_pairs_of_layouts<B: Backend>(lab: &Lab<B>) -> Verdict {
    let chosen = |name| std::env::var(name).ok().and_then(|text| text.trim().parse::<u64>().ok());
    let mut random = Random(chosen(SEED_VARIABLE).unwrap_or(1));
    let most = chosen(PAIRS_VARIABLE).map_or(PAIRS, |pairs| pairs as usize);
    let device = lab.device();
    for round in 0..most.div_ceil(TOGETHER * TYPES) {
        let mut batch = round * TYPES;
        macro_rules! batches {
            ($($t:ty),*) => {
                $(
                    pairs::<B, $t>(device, &mut random, batch)?;
                    batch += 1;
                )*
                assert_eq!(batch, (round + 1) * TYPES);
            };
        }
        batches!(
            [u8; 1], [u8; 2], [u8; 3], [u8; 4], [u8; 5], [u8; 6], [u8; 7], [u8; 8], [u8; 9], [u8; 10],
            [u8; 11], [u8; 12], [u8; 13], [u8; 14], [u8; 15], [u8; 16], u16, u32, u64, u128
        );
    }
    Ok(())
}

/// Small pieces, so that a transfer of some hundred KiB is a long one.
fn with_small_pieces<B: Backend>(device: &Device<B>, act: impl FnOnce() -> Verdict) -> Verdict {
    let before = device.transfer_options();
    device.set_transfer_options(
        TransferOptions::new().threads(4).block_bytes(64 << 10).parallel_bytes(1).single_block_bytes(0),
    );
    let verdict = act();
    device.set_transfer_options(before);
    verdict
}

fn long_transfers_in_pieces<B: Backend>(lab: &Lab<B>) -> Verdict {
    let device = lab.device();
    with_small_pieces(device, || {
        let shape = if lab.is_slow() { (240, 361) } else { (700, 901) };
        let base = Array2::from_shape_fn(shape, |(i, j)| (i * 1000 + j) as u32);
        let parts = [
            base.view(),
            base.slice(s![.., ..;2]),
            base.slice(s![..;-1, ..;3]),
            base.slice(s![5..shape.0 - 10, 7..shape.1 - 101]),
            base.slice(s![..;-2, ..;-1]),
        ];
        for view in parts.iter().flat_map(|part| [part.view(), part.t()]) {
            let array = device.to_device(&view)?;
            same(array.copy_to_host()?.view(), view);
            // Every second column of something else, away from its edges, here and there.
            let inner = s![1..=view.nrows(), 1..=2 * view.ncols();2];
            let mut wide = Array2::from_elem((view.nrows() + 2, 2 * view.ncols() + 2), u32::MAX);
            let mut there = device.to_device(&wide)?;
            let mut expected = wide.clone();
            expected.slice_mut(inner).assign(&view);
            array.copy_to_host_into(wide.slice_mut(inner))?;
            same(wide.view(), expected.view());
            there.slice_mut(inner)?.copy_to_device(&view)?;
            same(there.copy_to_host()?.view(), expected.view());
            same(there.slice(inner)?.copy_to_host()?.view(), view);
            let mut turned = device.device_array::<u32, _>(view.t().raw_dim())?;
            turned.copy_to_device(&there.slice(inner)?.reversed_axes())?;
            same(turned.copy_to_host()?.view(), view.t());
        }
        Ok(())
    })
}

fn progress_and_cancellation<B: Backend>(lab: &Lab<B>) -> Verdict {
    let device = lab.device();
    with_small_pieces(device, || {
        let source = Array1::from_iter(0..if lab.is_slow() { 5_u32 << 17 } else { 5 << 20 });
        let total = 4 * source.len() as u64;
        let mut array = device.device_array::<u32, _>(source.len())?;
        let mut told = vec![0];
        array.copy_to_device_with_progress(&source, |progress| {
            assert_eq!(progress.total, total);
            assert!(told.last().is_some_and(|before| *before < progress.done), "{told:?}, {progress:?}");
            told.push(progress.done);
            ControlFlow::Continue(())
        })?;
        assert_eq!(told.last(), Some(&total));
        let mut host = Array1::from_elem(source.len(), u32::MAX);
        let ended = array.copy_to_host_with_progress(host.view_mut(), |_| ControlFlow::Break(())).map(drop);
        assert!(matches!(&ended, Err(error) if *error.kind() == ErrorKind::Cancelled), "{ended:?}");
        let mut pairs = host.iter().zip(&source);
        assert!(pairs.all(|(found, wanted)| found == wanted || *found == u32::MAX));
        array.copy_to_host_with_progress(host.view_mut(), |_| ControlFlow::Continue(()))?;
        same(host.view(), source.view());
        Ok(())
    })
}
