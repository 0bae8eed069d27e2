//! Arrays of any layout, with numbers that look random.

use gpumem_core::{Backend, Element, Result};
use gpumem_ops::CastTo;
use gpumem_runtime::{Device, DeviceArray, DeviceView};
use ndarray::{ArrayD, ArrayViewD, IxDyn, SliceInfoElem};

/// Numbers that look random, the same on every machine.
pub(super) struct Dice(pub(super) u64);

impl Dice {
    pub(super) fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }
}

/// An array of one to four axes, and how a view of it is made.
pub(super) struct Layout {
    pub(super) base: ArrayD<i64>,
    slices: Vec<SliceInfoElem>,
    axes: Vec<usize>,
}

impl Layout {
    /// Small numbers, all of which every type has.
    pub(super) fn roll(dice: &mut Dice, longest: usize) -> Self {
        let rank = 1 + dice.below(4);
        let long = dice.below(rank);
        let lengths: Vec<usize> = (0..rank)
            .map(|axis| 1 + dice.below(if axis == long { longest >> (2 * (rank - 1)) } else { 4 }))
            .collect();
        let mut values = Dice(dice.0);
        let base = ArrayD::from_shape_fn(IxDyn(&lengths), |_| values.below(12) as i64);
        let plain = dice.below(3) == 0;
        let slices = lengths.iter().map(|length| {
            let start = if plain { 0 } else { dice.below(length.div_ceil(2)) as isize };
            let step = if plain { 1 } else { [1, 1, 2, -1, -2][dice.below(5)] };
            SliceInfoElem::Slice { start, end: None, step }
        });
        let slices = slices.collect();
        let mut axes: Vec<usize> = (0..rank).collect();
        if dice.below(2) == 0 {
            (1..rank).for_each(|at| axes.swap(at, dice.below(at + 1)));
        }
        Self { base, slices, axes }
    }

    pub(super) fn host(&self) -> ArrayViewD<'_, i64> {
        self.base.slice(&self.slices[..]).permuted_axes(self.axes.clone())
    }

    pub(super) fn upload<T: Element, B: Backend>(
        &self,
        device: &Device<B>,
    ) -> Result<DeviceArray<T, IxDyn, B>>
    where
        i64: CastTo<T>,
    {
        device.to_device(&self.base.mapv(|value| value.cast_to()))
    }

    pub(super) fn view<'a, T: Element, B: Backend>(
        &self,
        array: &'a DeviceArray<T, IxDyn, B>,
    ) -> Result<DeviceView<'a, T, IxDyn, B>> {
        array.slice(&self.slices[..])?.permuted_axes(&self.axes)
    }
}

/// Runs a function for elements of some types, each with layouts of its own.
macro_rules! types {
    ($lab:expr, $longest:expr, $check:ident: $($element:ident)*) => {{
        let rounds = if $lab.is_slow() { 1 } else { 4 };
        types!(@each $lab, rounds, $longest, $check: $($element)*);
        Ok(())
    }};
    (@each $lab:expr, $rounds:ident, $longest:expr, $check:ident: $($element:ident)*) => {$({
        let mut dice = Dice(stringify!($element).bytes().fold(7, |all, byte| all * 31 + u64::from(byte)));
        for _ in 0..$rounds {
            $check::<$element, B>($lab, &Layout::roll(&mut dice, $longest))?;
        }
    })*};
}
pub(super) use types;
