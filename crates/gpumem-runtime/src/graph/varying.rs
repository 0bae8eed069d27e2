//! Numbers that each launch gives anew.

use super::{
    Sealed,
    arguments::{GraphArgument, GraphParameter, Places, Recorder, parameters},
};
use crate::device::AllocationRef;
use gpumem_core::{Backend, Element, Result};
use half::{bf16, f16};
use smallvec::SmallVec;
use std::{fmt, marker::PhantomData};

/// The bytes of a number.
pub(crate) type Bytes = SmallVec<[u8; 16]>;

/// A plain value of any element type, for kernels and graphs: records, `f16`, complex numbers. Numbers need no wrapper.
#[derive(Debug, Clone, Copy, PartialEq)]
#[repr(transparent)]
pub struct Value<T>(pub T);

/// What the body of a graph gets for a number: an argument of kernels, whose value each launch of the graph gives. The body cannot
/// look at it.
///
/// ```
/// # use {gpumem_host::Host, gpumem_kernel::{Kernel, Own, config_for_items}, gpumem_runtime::{Device, writes}};
/// # fn example(device: &Device<Host>, scale: &Kernel<(Own<f32>, f32), Host>) -> gpumem_core::Result<()> {
/// let graph = device.record((writes::<f32, _>(100), 1.0f32), |stream, (mut x, factor)| {
///     scale.launch(stream, &config_for_items([100, 1, 1], [32, 1, 1]), (&mut x, factor))
/// })?;
/// let (stream, mut x) = (device.stream()?, device.device_array::<f32, _>(100)?);
/// for factor in [0.5f32, 2.0] {
///     graph.launch(&stream, (&mut x, factor))?;
/// }
/// # Ok(())
/// # }
/// ```
pub struct Varying<T, B: Backend> {
    /// Placeholder memory of the recording, whose bytes are the number. So every use is checked as that of an array is.
    pub(crate) memory: AllocationRef<B>,
    /// The number that was given to `record`.
    pub(crate) bytes: Bytes,
    pub(super) number: PhantomData<fn() -> T>,
}

/// A number of a launch.
#[derive(Debug, Clone, Copy)]
pub(super) struct NumberRef<'a, B: Backend> {
    pub(super) bytes: &'a [u8],
    /// Of a number of the recording that the launch is part of.
    pub(super) memory: Option<&'a AllocationRef<B>>,
}

/// A number by its bytes, for bindings of languages whose types are known when the program runs.
#[doc(hidden)]
#[derive(Debug, Clone, PartialEq)]
pub struct UntypedValue(pub SmallVec<[u8; 16]>);

/// As [`UntypedValue`], or a number of the recording that a launch is part of: one parameter may get either.
#[doc(hidden)]
#[derive(Debug)]
pub enum UntypedNumber<B: Backend> {
    Known(UntypedValue),
    Varying(Varying<UntypedValue, B>),
}

impl<T: 'static, B: Backend> Varying<T, B> {
    fn record(recorder: &mut Recorder<'_, B>, bytes: &[u8]) -> Result<Self> {
        Ok(Self { memory: recorder.number(bytes)?, bytes: bytes.into(), number: PhantomData })
    }
}

impl<T, B: Backend> Clone for Varying<T, B> {
    fn clone(&self) -> Self {
        Self { memory: self.memory.clone(), bytes: self.bytes.clone(), number: PhantomData }
    }
}

impl<T, B: Backend> fmt::Debug for Varying<T, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Varying")
    }
}

parameters! {
    // A number of a recording, given to a graph that is launched there.
    [T: 'static, B: Backend] [] Varying<T, B>, B: T => Self,
        |number, recorder| Varying::record(recorder, &number.bytes),
        |number, to| to.numbers.push(NumberRef { bytes: &number.bytes, memory: Some(&number.memory) });
    [B: Backend] [] UntypedNumber<B>, B: UntypedValue => Varying<UntypedValue, B>,
        |number, recorder| match number {
            Self::Known(value) => GraphParameter::record(value, recorder),
            Self::Varying(number) => GraphParameter::record(number, recorder),
        },
        |number, to| match number {
            Self::Known(value) => value.bind(to),
            Self::Varying(number) => number.bind(to),
        };
}

macro_rules! numbers {
    ($([$($generic:tt)*] $type:ty, $number:ident => $bytes:expr;)*) => { parameters! {$(
        [$($generic)*] [B: Backend] $type, B: Self => Varying<Self, B>,
            |$number, recorder| Varying::record(recorder, $bytes),
            |$number, to| to.numbers.push(NumberRef { bytes: $bytes, memory: None });
    )*} };
    ($($type:ident)*) => { numbers! { $([] $type, number => bytemuck::bytes_of(number);)* } };
}
numbers! { u8 i8 u16 i16 u32 i32 u64 i64 f16 bf16 f32 f64 }
numbers! {
    [] bool, number => if *number { &[1] } else { &[0] };
    [T: Element,] Value<T>, number => bytemuck::bytes_of(&number.0);
    [] UntypedValue, number => &number.0;
}
