//! The form of parameters in device code, and how their values come out of a launch's arguments.

use crate::simt::{
    Constant, ConstantArray, Inside, MemoryReach, Parameter, Slice, SliceMut, Value, View, ViewMut,
    argument::Cells, checker::Checker, inside::assume_within, number::device_name,
};
use gpumem_core::Element;
use half::{bf16, f16};
use std::hint::assert_unchecked;

fn words<const COUNT: usize>(bytes: &[u8]) -> Option<[u64; COUNT]> {
    let mut words = [0; COUNT];
    for (word, chunk) in words.iter_mut().zip(bytes.chunks_exact(8)) {
        *word = u64::from_ne_bytes(chunk.try_into().ok()?);
    }
    (bytes.len() == COUNT * 8).then_some(words)
}

// SAFETY: an address and a length; `bind` takes 16 bytes.
unsafe impl<T: Element> Parameter for Slice<T> {
    const SIZE: usize = 16;
    const ALIGN: usize = 8;
    const IS_MEMORY: bool = true;

    fn device_type() -> Option<String> {
        device_name::<T>().map(|name| format!("gpumem::slice<const {name}>"))
    }

    fn reach(argument: &[u8]) -> Option<MemoryReach> {
        let [start, len] = words(argument)?;
        Some(MemoryReach { start, bytes: len.checked_mul(size_of::<T>() as u64)? })
    }

    fn narrow(&self, inside: &mut Inside) {
        inside.below(self.len);
    }

    #[inline(always)]
    unsafe fn assume(&self, [x, ..]: [usize; 3]) {
        // SAFETY: the caller's promise.
        unsafe {
            assert_unchecked(self.cells.checker.is_none());
            assert_unchecked(x < self.len);
        }
    }

    unsafe fn bind(argument: &[u8], checker: Option<&Checker>) -> Option<Self> {
        let [address, len] = words(argument)?;
        Some(Self { cells: Cells::new(address, checker), len: usize::try_from(len).ok()? })
    }
}

// SAFETY: an address, the lengths and the strides of the axes; `bind` takes as many bytes.
unsafe impl<T: Element, const N: usize> Parameter for View<T, N> {
    const SIZE: usize = 8 + 16 * N;
    const ALIGN: usize = 8;
    const IS_MEMORY: bool = true;

    fn device_type() -> Option<String> {
        device_name::<T>().map(|name| format!("gpumem::view<const {name}, {N}>"))
    }

    fn reach(argument: &[u8]) -> Option<MemoryReach> {
        let (address, extents, strides) = view_words::<N>(argument)?;
        let (mut below, mut above) = (0u64, 0u64);
        if extents.contains(&0) {
            return Some(MemoryReach { start: address, bytes: 0 });
        }
        for (extent, stride) in extents.iter().zip(strides) {
            let side = if stride < 0 { &mut below } else { &mut above };
            *side = side.checked_add((extent - 1).checked_mul(stride.unsigned_abs())?)?;
        }
        let bytes = below.checked_add(above)?.checked_add(size_of::<T>() as u64)?;
        Some(MemoryReach { start: address.checked_sub(below)?, bytes })
    }

    fn narrow(&self, inside: &mut Inside) {
        inside.within(&self.extents);
        if self.strides.last().is_some_and(|stride| *stride != size_of::<T>() as isize) {
            inside.none();
        }
    }

    #[inline(always)]
    unsafe fn assume(&self, ids: [usize; 3]) {
        // SAFETY: the caller's promise.
        unsafe {
            assert_unchecked(self.cells.checker.is_none());
            assert_unchecked(self.strides.last().is_none_or(|stride| *stride == size_of::<T>() as isize));
        }
        // Not a loop: the compiler drops loops that do nothing, and with them what they tell it.
        let along = |axis: usize| {
            if let Some(extent) = N.checked_sub(1 + axis).and_then(|axis| self.extents.get(axis)) {
                // SAFETY: the caller's promise.
                unsafe { assume_within(ids[axis], *extent) };
            }
        };
        along(0);
        along(1);
        along(2);
    }

    unsafe fn bind(argument: &[u8], checker: Option<&Checker>) -> Option<Self> {
        let (address, extents, strides) = view_words::<N>(argument)?;
        let cells = Cells::new(address, checker);
        Some(Self {
            cells,
            extents: extents.map(|extent| extent as usize),
            strides: strides.map(|stride| stride as isize),
        })
    }
}

fn view_words<const N: usize>(bytes: &[u8]) -> Option<(u64, [u64; N], [i64; N])> {
    let (address, rest) = bytes.split_at_checked(8)?;
    let (extents, strides) = rest.split_at_checked(8 * N)?;
    let [address] = words(address)?;
    Some((address, words(extents)?, words(strides)?.map(|word| word as i64)))
}

/// Arrays that are passed as the array in them: how many axes have an own element, and the type in device code.
macro_rules! wrappers {
    ($([$($generics:tt)*] $type:ty as $of:ty, $axes:expr, $device_type:expr;)*) => {$(
        // SAFETY: as the array in it.
        unsafe impl<T: Element, $($generics)*> Parameter for $type {
            const SIZE: usize = <$of>::SIZE;
            const ALIGN: usize = <$of>::ALIGN;
            const IS_MEMORY: bool = true;
            const OWN_AXES: usize = $axes;

            fn device_type() -> Option<String> {
                $device_type
            }

            fn reach(argument: &[u8]) -> Option<MemoryReach> {
                <$of>::reach(argument)
            }

            fn narrow(&self, inside: &mut Inside) {
                self.0.narrow(inside);
            }

            #[inline(always)]
            unsafe fn assume(&self, ids: [usize; 3]) {
                // SAFETY: the caller's promise.
                unsafe { self.0.assume(ids) }
            }

            unsafe fn bind(argument: &[u8], checker: Option<&Checker>) -> Option<Self> {
                // SAFETY: the caller's promise.
                unsafe { <$of>::bind(argument, checker) }.map(Self)
            }
        }
    )*};
}
pub(super) use wrappers;

wrappers! {
    [] SliceMut<T> as Slice<T>, Slice::<T>::OWN_AXES, device_name::<T>().map(|name| format!("gpumem::slice<{name}>"));
    [const N: usize] ViewMut<T, N> as View<T, N>, View::<T, N>::OWN_AXES,
        device_name::<T>().map(|name| format!("gpumem::view<{name}, {N}>"));
}

// SAFETY: the address, the place in the module's constant memory, the lengths and the strides of the axes; `bind` takes as
// many bytes.
unsafe impl<T: Element, const N: usize> Parameter for ConstantArray<T, N> {
    const SIZE: usize = 16 + 16 * N;
    const ALIGN: usize = 8;
    const IS_MEMORY: bool = true;
    const IS_CONSTANT: bool = true;

    fn device_type() -> Option<String> {
        device_name::<T>().map(|name| format!("gpumem::constant_array<{name}, {N}>"))
    }

    fn reach(argument: &[u8]) -> Option<MemoryReach> {
        View::<T, N>::reach(&without_place(argument)?)
    }

    #[inline(always)]
    unsafe fn assume(&self, _: [usize; 3]) {
        // SAFETY: it is bound without a checker.
        unsafe { assert_unchecked(self.0.cells.checker.is_none()) }
    }

    unsafe fn bind(argument: &[u8], _: Option<&Checker>) -> Option<Self> {
        // Nothing writes constants, so there is nothing to check. SAFETY: the caller's promise.
        unsafe { View::bind(&without_place(argument)?, None) }.map(Self)
    }
}

/// The argument of a view from that of a constant array: the second word is the device's alone.
fn without_place(argument: &[u8]) -> Option<Vec<u8>> {
    let (address, rest) = argument.split_at_checked(8)?;
    Some([address, rest.get(8..)?].concat())
}

// SAFETY: the value itself.
unsafe impl<T: Element> Parameter for Value<T> {
    const SIZE: usize = size_of::<T>();
    const ALIGN: usize = align_of::<T>();

    fn device_type() -> Option<String> {
        device_name::<T>().map(str::to_owned)
    }

    unsafe fn bind(argument: &[u8], _: Option<&Checker>) -> Option<Self> {
        bytemuck::try_pod_read_unaligned(argument).ok().map(Self)
    }
}

// SAFETY: the elements side by side; a class without any has one byte in C++.
unsafe impl<T: Element, const LEN: usize> Parameter for Constant<T, LEN> {
    const SIZE: usize = if LEN == 0 { 1 } else { size_of::<T>() * LEN };
    const ALIGN: usize = if LEN == 0 { 1 } else { align_of::<T>() };

    fn device_type() -> Option<String> {
        device_name::<T>().map(|name| format!("gpumem::constant<{name}, {LEN}>"))
    }

    unsafe fn bind(argument: &[u8], _: Option<&Checker>) -> Option<Self> {
        let mut elements = [T::zeroed(); LEN];
        if argument.len() != Self::SIZE {
            return None;
        }
        for (element, bytes) in elements.iter_mut().zip(argument.chunks_exact(size_of::<T>().max(1))) {
            *element = bytemuck::try_pod_read_unaligned(bytes).ok()?;
        }
        Some(Self(elements))
    }
}

// SAFETY: one byte.
unsafe impl Parameter for bool {
    const SIZE: usize = 1;
    const ALIGN: usize = 1;

    fn device_type() -> Option<String> {
        Some("bool".to_owned())
    }

    unsafe fn bind(argument: &[u8], _: Option<&Checker>) -> Option<Self> {
        match argument {
            [byte] => Some(*byte != 0),
            _ => None,
        }
    }
}

macro_rules! numbers {
    ($($type:ty)*) => {$(
        // SAFETY: the number itself.
        unsafe impl Parameter for $type {
            const SIZE: usize = size_of::<$type>();
            const ALIGN: usize = align_of::<$type>();

            fn device_type() -> Option<String> {
                device_name::<$type>().map(str::to_owned)
            }

            unsafe fn bind(argument: &[u8], _: Option<&Checker>) -> Option<Self> {
                bytemuck::try_pod_read_unaligned(argument).ok()
            }
        }
    )*};
}
numbers!(u8 i8 u16 i16 u32 i32 u64 i64 f16 bf16 f32 f64);
