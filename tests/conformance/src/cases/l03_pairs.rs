//! Random pairs of layouts in every direction, with guards around and between, and transfers in many pieces.

use super::tools::{elements, same};
use crate::{Lab, Level, Verdict};
use gpumem_core::{Backend, Element, ErrorKind};
use gpumem_runtime::{Device, PinnedArray, TransferOptions};
use ndarray::{Array1, Array2, ArrayD, ArrayViewD, ArrayViewMutD, IxDyn, SliceInfo, SliceInfoElem, s};
use std::ops::ControlFlow;

cases! { Level::Copy;
    random_pairs_of_layouts: "A3 A4 A5 D1 D2 D22",
    long_transfers_in_pieces: "A3 A4 D1",
    progress_and_cancellation: "A3 A4",
}

/// The environment variable with another seed than 1.
const SEED_VARIABLE: &str = "GPUMEM_CONFORMANCE_SEED";
/// Pairs in one run; without optimisation each takes more than a millisecond.
const PAIRS: usize = if cfg!(debug_assertions) { 2_000 } else { 10_000 };
/// Most elements of one pair.
const ELEMENTS: usize = 100;
/// Most elements of the array around one side.
const AROUND: usize = 300;

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
struct Placement {
    /// Lengths of the array, in the order of memory.
    memory: Vec<usize>,
    /// For each axis of the view, which axis of the array it runs along.
    axes: Vec<usize>,
    part: Vec<SliceInfoElem>,
}

impl Placement {
    fn new(random: &mut Random, shape: &[usize]) -> Self {
        let axes = random.shuffled(shape.len());
        // Mostly as users have it, so that axes merge and runs are long too.
        let is_plain = random.below(3) == 0;
        let (mut memory, mut part) = (vec![0; shape.len()], Vec::new());
        let mut room = AROUND / shape.iter().product::<usize>().max(1);
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
        SliceInfo::try_from(&self.part[..]).map_err(|error| crate::Stop::Failed(error.to_string()))
    }

    fn array<T: Element>(&self, first: usize) -> Verdict<ArrayD<T>> {
        let len: usize = self.memory.iter().product();
        let values = elements::<T>(first + len).split_off(first);
        ArrayD::from_shape_vec(IxDyn(&self.memory), values)
            .map_err(|error| crate::Stop::Failed(error.to_string()))
    }

    fn view<'a, T>(&self, array: &'a ArrayD<T>) -> Verdict<ArrayViewD<'a, T>> {
        Ok(array.view().permuted_axes(&self.axes[..]).slice_move(self.info()?))
    }

    fn view_mut<'a, T>(&self, array: &'a mut ArrayD<T>) -> Verdict<ArrayViewMutD<'a, T>> {
        Ok(array.view_mut().permuted_axes(&self.axes[..]).slice_move(self.info()?))
    }
}

/// One pair, in one direction. What is around and between the elements stays as it was.
fn pair<B: Backend, T: Element>(device: &Device<B>, random: &mut Random) -> Verdict {
    let rank = random.below(7);
    let mut shape = Vec::new();
    for _ in 0..rank {
        let room = ELEMENTS / shape.iter().product::<usize>().max(1);
        let length = if random.below(60) == 0 { 0 } else { 1 + random.below(9) };
        shape.push(if random.below(8) == 0 { 1 + random.below(40) } else { length }.min(room.max(1)));
    }
    let narrow: Vec<_> =
        shape.iter().map(|length| if *length > 0 && random.below(9) == 0 { 1 } else { *length }).collect();
    let (source, target) = (Placement::new(random, &narrow), Placement::new(random, &shape));
    let (numbers, guards) = (source.array::<T>(0)?, target.array::<T>(17)?);
    let narrow = source.view(&numbers)?;
    let Some(wide) = narrow.broadcast(IxDyn(&shape)) else { return Ok(()) };
    let mut expected = guards.clone();
    target.view_mut(&mut expected)?.assign(&wide);
    let direction = random.below(4);
    let arrived = if direction == 0 {
        // Down, into the caller's array.
        let there = device.to_device(&numbers)?.permuted_axes(&source.axes)?;
        let part = there.slice(source.info()?)?;
        let mut arrived = guards.clone();
        part.broadcast(IxDyn(&shape))?.copy_to_host_into(target.view_mut(&mut arrived)?)?;
        arrived
    } else {
        let mut there = device.to_device(&guards)?;
        {
            let mut turned = there.view_mut().permuted_axes(&target.axes)?;
            let mut part = turned.slice_mut(target.info()?)?;
            match direction {
                1 => drop(part.copy_to_device(&wide)?),
                2 => {
                    let from = device.to_device(&numbers)?.permuted_axes(&source.axes)?;
                    part.copy_to_device(&from.slice(source.info()?)?.broadcast(IxDyn(&shape))?)?;
                }
                _ => {
                    let mut pinned: PinnedArray<T, IxDyn, B> = device.pinned_array(IxDyn(&shape))?;
                    pinned.view_mut()?.assign(&wide);
                    part.copy_to_device(&pinned)?;
                }
            }
        }
        there.copy_to_host()?
    };
    same(arrived.view(), expected.view());
    Ok(())
}

fn random_pairs_of_layouts<B: Backend>(lab: &Lab<B>) -> Verdict {
    let chosen = std::env::var(SEED_VARIABLE).ok().and_then(|text| text.trim().parse().ok());
    let mut random = Random(chosen.unwrap_or(1));
    let device = lab.device();
    for _ in 0..PAIRS / 20 {
        macro_rules! pairs {
            ($($t:ty),*) => { $(pair::<B, $t>(device, &mut random)?;)* };
        }
        pairs!(
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
        TransferOptions::new().threads(4).block_bytes(64 << 10).parallel_bytes(1).short_bytes(0),
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
        array.copy_to_device_watched(&source, |progress| {
            assert_eq!(progress.total, total);
            assert!(told.last().is_some_and(|before| *before < progress.done), "{told:?}, {progress:?}");
            told.push(progress.done);
            ControlFlow::Continue(())
        })?;
        assert_eq!(told.last(), Some(&total));
        let mut host = Array1::from_elem(source.len(), u32::MAX);
        let ended = array.copy_to_host_watched(host.view_mut(), |_| ControlFlow::Break(())).map(drop);
        assert!(matches!(&ended, Err(error) if *error.kind() == ErrorKind::Cancelled), "{ended:?}");
        let mut pairs = host.iter().zip(&source);
        assert!(pairs.all(|(found, wanted)| found == wanted || *found == u32::MAX));
        array.copy_to_host_watched(host.view_mut(), |_| ControlFlow::Continue(()))?;
        same(host.view(), source.view());
        Ok(())
    })
}
