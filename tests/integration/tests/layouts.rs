//! Random pairs of layouts: the copy equals ndarray's, and no other bytes change.
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use bytemuck::{Pod, Zeroable};
use common::{double, host, packing_double};
use gpumem_core::{Backend, Element};
use gpumem_host::HostOptions;
use gpumem_runtime::{Device, DeviceArray, DeviceViewMut, TransferOptions};
use ndarray::{ArrayD, ArrayViewD, ArrayViewMutD, Axis, IxDyn, SliceInfo, SliceInfoElem};
use proptest::{prelude::*, test_runner::TestRunner};
use std::fmt::Debug;

/// How an axis lies in a larger array.
#[derive(Debug, Clone, Copy)]
struct Walk {
    step: isize,
    before: usize,
    after: usize,
    /// Axes lie in memory in the order of their keys.
    key: u8,
}

/// An axis of a pair.
#[derive(Debug, Clone, Copy)]
struct AxisCase {
    len: usize,
    source: Walk,
    destination: Walk,
    /// The source repeats one step over the whole axis.
    is_spread: bool,
}

fn walk() -> impl Strategy<Value = Walk> {
    let step = prop_oneof![4 => Just(1isize), 2 => Just(-1), 1 => Just(2), 1 => Just(-2), 1 => Just(3), 1 => Just(-3)];
    (step, 0..3usize, 0..3usize, 0..6u8).prop_map(|(step, before, after, key)| Walk {
        step,
        before,
        after,
        key,
    })
}

fn cases() -> impl Strategy<Value = Vec<AxisCase>> {
    let axis = (0..5usize, walk(), walk(), prop::bool::weighted(0.2))
        .prop_map(|(len, source, destination, is_spread)| AxisCase { len, source, destination, is_spread });
    // Few zeros, or most arrays of five axes would be empty.
    let axis = axis.prop_flat_map(|case| {
        (Just(case), 0..8u8).prop_map(|(case, luck)| AxisCase {
            len: if luck > 0 { case.len.max(1) } else { case.len },
            ..case
        })
    });
    prop::collection::vec(axis, 0..=5)
}

/// A view of `shape` inside a larger array: the array's shape in the order of memory, the order of the axes, and the part.
struct Placement {
    memory: Vec<usize>,
    axes: Vec<usize>,
    part: Vec<SliceInfoElem>,
}

impl Placement {
    fn new(shape: &[usize], walks: &[Walk]) -> Self {
        let mut order: Vec<_> = (0..shape.len()).collect();
        order.sort_by_key(|axis| (walks[*axis].key, *axis));
        let length = |axis: usize| {
            let Walk { step, before, after, .. } = walks[axis];
            before
                + shape[axis].saturating_sub(1) * step.unsigned_abs()
                + usize::from(shape[axis] > 0)
                + after
        };
        let part = (0..shape.len()).map(|axis| {
            let Walk { step, before, after, .. } = walks[axis];
            let end = length(axis) - after;
            SliceInfoElem::Slice { start: before as isize, end: Some(end as isize), step }
        });
        let mut axes = vec![0; shape.len()];
        order.iter().enumerate().for_each(|(place, axis)| axes[*axis] = place);
        Self { memory: order.iter().map(|axis| length(*axis)).collect(), axes, part: part.collect() }
    }

    fn info(&self) -> SliceInfo<&[SliceInfoElem], IxDyn, IxDyn> {
        SliceInfo::try_from(&self.part[..]).unwrap()
    }

    fn guards<T: Sample>(&self) -> ArrayD<T> {
        let mut next = 0u64;
        ArrayD::from_shape_simple_fn(IxDyn(&self.memory), || {
            next += 1;
            T::sample(u64::MAX - next)
        })
    }

    fn numbers<T: Sample>(&self) -> ArrayD<T> {
        let mut next = 0u64;
        ArrayD::from_shape_simple_fn(IxDyn(&self.memory), || {
            next += 1;
            T::sample(next)
        })
    }

    fn view<'a, T>(&self, memory: &'a ArrayD<T>) -> ArrayViewD<'a, T> {
        memory.view().permuted_axes(&self.axes[..]).slice_move(self.info())
    }

    fn view_mut<'a, T>(&self, memory: &'a mut ArrayD<T>) -> ArrayViewMutD<'a, T> {
        memory.view_mut().permuted_axes(&self.axes[..]).slice_move(self.info())
    }

    /// The array on a device, its axes in the order of the view. Guards and all.
    fn on_device<T: Element, B: Backend>(
        &self,
        device: &Device<B>,
        memory: &ArrayD<T>,
    ) -> DeviceArray<T, IxDyn, B> {
        device.to_device(memory).unwrap().permuted_axes(&self.axes).unwrap()
    }

    fn part_of<'a, T: Element, B: Backend>(
        &self,
        array: &'a mut DeviceArray<T, IxDyn, B>,
    ) -> DeviceViewMut<'a, T, IxDyn, B> {
        array.slice_mut(self.info()).unwrap()
    }
}

/// Elements with a pattern that differs from its neighbours'.
trait Sample: Element + PartialEq + Debug {
    fn sample(number: u64) -> Self;
}

macro_rules! samples {
    ($($t:ty),*) => { $(impl Sample for $t {
        fn sample(number: u64) -> Self { number.wrapping_mul(0x9E37_79B9_7F4A_7C15) as $t }
    })* };
}
samples!(u8, u16, u32, u64, u128);

/// Twelve bytes, aligned to four: no power of two.
#[derive(Debug, Clone, Copy, PartialEq, Pod, Zeroable)]
#[repr(C)]
struct Twelve([u32; 3]);

impl Sample for Twelve {
    fn sample(number: u64) -> Self {
        Self([u32::sample(number), u32::sample(number.wrapping_add(7)), u32::sample(number.wrapping_add(13))])
    }
}

/// Every transfer there is, for one pair of layouts. `expected` is always ndarray's.
fn check<T: Sample, B: Backend>(device: &Device<B>, axes: &[AxisCase]) {
    let shape: Vec<_> = axes.iter().map(|axis| axis.len).collect();
    let narrow: Vec<_> =
        axes.iter().map(|axis| if axis.is_spread && axis.len > 0 { 1 } else { axis.len }).collect();
    let source = Placement::new(&narrow, &axes.iter().map(|axis| axis.source).collect::<Vec<_>>());
    let target = Placement::new(&shape, &axes.iter().map(|axis| axis.destination).collect::<Vec<_>>());
    let (numbers, guards) = (source.numbers::<T>(), target.guards::<T>());
    let part = source.view(&numbers);
    let wide = part.broadcast(IxDyn(&shape)).unwrap();
    let mut expected = guards.clone();
    target.view_mut(&mut expected).assign(&wide);
    let expected_on_device = expected.view().permuted_axes(&target.axes[..]);
    let stream = device.stream().unwrap();

    // Up: a new array, packed, its axes in the order of the source's.
    for array in [device.to_device(&wide).unwrap(), stream.to_device(&wide).unwrap()] {
        assert_eq!(array.copy_to_host().unwrap(), wide, "to_device");
        assert!(
            array.is_empty() || array.layout().packed_bytes() == array.layout().extent().len(),
            "to_device: not packed"
        );
    }

    // Up, into a part of an array.
    let fresh = || target.on_device(device, &guards);
    let whole = |array: &DeviceArray<T, IxDyn, B>| array.copy_to_host().unwrap();
    let mut array = fresh();
    target.part_of(&mut array).copy_to_device(&wide).unwrap();
    assert_eq!(whole(&array), expected_on_device, "copy_to_device from the host");
    let mut array = fresh();
    stream.copy_to_device(&mut target.part_of(&mut array), &wide).unwrap();
    assert_eq!(whole(&array), expected_on_device, "copy_to_device from the host, on a stream");
    let mut array = fresh();
    target.part_of(&mut array).assign(&part).unwrap();
    assert_eq!(whole(&array), expected_on_device, "assign from the host");
    let mut array = fresh();
    stream.assign(&mut target.part_of(&mut array), &part).unwrap();
    assert_eq!(whole(&array), expected_on_device, "assign from the host, on a stream");

    // Device to device.
    let mut on_device = source.on_device(device, &numbers);
    let narrow_view = source.part_of(&mut on_device);
    let wide_view = narrow_view.broadcast(IxDyn(&shape)).unwrap();
    let mut array = fresh();
    target.part_of(&mut array).copy_to_device(&wide_view).unwrap();
    assert_eq!(whole(&array), expected_on_device, "copy_to_device");
    let mut array = fresh();
    stream.assign(&mut target.part_of(&mut array), &narrow_view).unwrap();
    assert_eq!(whole(&array), expected_on_device, "assign, on a stream");

    // Down.
    assert_eq!(wide_view.copy_to_host().unwrap(), wide, "copy_to_host");
    assert_eq!(stream.copy_to_host(&wide_view).unwrap().view().unwrap(), wide, "copy_to_host, on a stream");
    let mut host = guards.clone();
    wide_view.copy_to_host_into(target.view_mut(&mut host)).unwrap();
    assert_eq!(host, expected, "copy_to_host_into");
    let mut host = guards.clone();
    stream.scope(|scope| scope.copy_to_host(&wide_view, target.view_mut(&mut host))).unwrap().unwrap();
    assert_eq!(host, expected, "copy_to_host in a scope");

    // One value everywhere, with a pattern that the driver knows and one that it does not.
    for value in [T::zeroed(), T::sample(3)] {
        let mut array = fresh();
        target.part_of(&mut array).fill(value).unwrap();
        let mut filled = guards.clone();
        target.view_mut(&mut filled).fill(value);
        assert_eq!(whole(&array), filled.view().permuted_axes(&target.axes[..]), "fill");
    }
}

fn check_all<B: Backend>(device: &Device<B>, count: u32) {
    let config = ProptestConfig { cases: count, failure_persistence: None, ..ProptestConfig::default() };
    TestRunner::new(config)
        .run(&(cases(), 0..6u8), |(axes, element)| {
            match element {
                0 => check::<u8, B>(device, &axes),
                1 => check::<u16, B>(device, &axes),
                2 => check::<u32, B>(device, &axes),
                3 => check::<u64, B>(device, &axes),
                4 => check::<Twelve, B>(device, &axes),
                _ => check::<u128, B>(device, &axes),
            }
            Ok(())
        })
        .unwrap();
    device.synchronize().unwrap();
    assert_eq!(device.take_errors(), []);
}

#[test]
fn directly() {
    check_all(&host(HostOptions::new()).0, 150);
}

#[test]
fn through_staging() {
    check_all(&double(HostOptions::new()).0, 150);
}

#[test]
fn through_packing() {
    check_all(&packing_double(HostOptions::new()).0, 60);
}

#[test]
fn through_a_ring_of_tiny_blocks() {
    let (device, _) = double(HostOptions::new());
    device.set_transfer_options(TransferOptions::new().threads(3).block_bytes(4096).parallel_bytes(1));
    check_all(&device, 60);
}

#[test]
fn under_adversarial_schedules() {
    for seed in 0..8 {
        check_all(&host(HostOptions::new().adversarial(seed)).0, 8);
        check_all(&double(HostOptions::new().adversarial(seed)).0, 8);
    }
}

fn large<T: Sample>(shape: &[usize]) -> ArrayD<T> {
    let mut next = 0;
    ArrayD::from_shape_simple_fn(IxDyn(shape), || {
        next += 1;
        T::sample(next)
    })
}

/// There and back by every way, for an array of several staging blocks.
fn in_pieces<T: Sample>(view: ArrayViewD<'_, T>) {
    let (device, _) = double(HostOptions::new());
    let (other, _) = double(HostOptions::new());
    let stream = device.stream().unwrap();
    let array = device.to_device(&view).unwrap();
    assert!(array.copy_to_host().unwrap() == view);
    let mut out = ArrayD::from_elem(view.raw_dim(), T::zeroed());
    // The caller's array in the reversed order of the device's.
    let mut turned = out.view_mut();
    (0..view.ndim()).for_each(|axis| turned.invert_axis(Axis(axis)));
    array.copy_to_host_into(turned.view_mut()).unwrap();
    assert!(turned == view);
    let streamed = stream.to_device(&view).unwrap();
    let mut landed = ArrayD::from_elem(view.raw_dim(), T::zeroed());
    stream.scope(|scope| scope.copy_to_host(&streamed, landed.view_mut())).unwrap().unwrap();
    assert!(landed == view);
    // To another device, and with axes in the other order.
    let there = other.to_device(&array.t()).unwrap();
    assert!(there.copy_to_host().unwrap() == view.t());
}

#[test]
fn one_long_run_is_cut() {
    // Twelve bytes do not divide a block.
    in_pieces(large::<Twelve>(&[750_003]).view());
}

#[test]
fn rows_are_cut() {
    in_pieces(large::<u128>(&[600, 601]).view());
    let memory = large::<u128>(&[4, 400, 401]);
    let every_second = memory.slice(ndarray::s![.., ..;-2, ..]);
    in_pieces(every_second.into_dyn().permuted_axes(&[1, 2, 0][..]));
    // One axis that is longer than a block at every step.
    in_pieces(large::<u128>(&[2, 280_000]).view());
}

#[test]
fn a_repeated_row_is_cut() {
    let row = large::<u128>(&[1, 1001]);
    in_pieces(row.broadcast(IxDyn(&[300, 1001])).unwrap());
}

#[test]
fn too_many_calls_go_through_the_host() {
    let (device, double) = double(HostOptions::new());
    let memory = large::<u16>(&[70, 71]);
    let source = device.to_device(&memory).unwrap();
    let mut target = device.to_device(&ArrayD::from_elem(IxDyn(&[70, 71]), 0u16)).unwrap();
    let mut reversed = target.view_mut().inverted_axis(0).unwrap().inverted_axis(1).unwrap();
    let before = double.host().counters().copies;
    reversed.copy_to_device(&source).unwrap();
    assert!(double.host().counters().copies - before < 4970, "one call for each element");
    assert_eq!(target.copy_to_host().unwrap(), memory.slice(ndarray::s![..;-1, ..;-1]).into_dyn());
}

#[test]
fn the_double_copies_as_a_gpu_does() {
    let (device, double) = double(HostOptions::new());
    let array = device.to_device(&[1u32, 2, 3]).unwrap();
    assert_eq!(array.get(1).unwrap(), 2);
    let counters = double.host().counters();
    assert!(counters.live_pinned_bytes > 0, "the elements went through page-locked blocks");
    assert_eq!(counters.strided_copies, 0);
}
