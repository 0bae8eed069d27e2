//! What a graph is recorded with and launched with.

use super::{Sealed, varying::NumberRef};
use crate::{
    ArrayBase, ArraySpec, Device, DeviceView, DeviceViewMut, IntoArraySpec, Layout, Storage, StorageMut,
    device::{Allocation, AllocationRef},
    recording::{Content, GraphRecording, Region},
    transfer::ArrayRef,
};
use gpumem_core::{Backend, Element, ErrorKind, LayoutError, MemoryKind, Result, Space};
use gpumem_memory::track::Access;
use ndarray::Dimension;
use smallvec::SmallVec;
use std::{fmt, marker::PhantomData, ops::Range};

const OPERATION: &str = "record";
/// Calls rely on the last bits of an address, as far as drivers and the host's copies look at them.
pub(super) const CONGRUENT: usize = 16;

/// What is given to a launch.
#[derive(Debug)]
pub struct Places<'a, B: Backend> {
    pub(super) arrays: SmallVec<[Given<'a, B>; 4]>,
    pub(super) numbers: SmallVec<[NumberRef<'a, B>; 4]>,
    /// Of each vector.
    pub(super) lengths: SmallVec<[usize; 4]>,
}

/// An array that is given to a launch.
#[derive(Debug)]
pub(super) struct Given<'a, B: Backend> {
    pub(super) array: ArrayRef<'a, B>,
    /// Of its elements, in bytes of its memory.
    pub(super) extent: Range<usize>,
}

impl<'a, B: Backend> Given<'a, B> {
    /// The use of the elements by a launch.
    pub(super) fn access(&self, write: bool) -> Access<'a, B> {
        Access::new(self.array.memory, self.extent.clone(), write).of_elements(self.array.layout)
    }
}

impl<'a, B: Backend> Places<'a, B> {
    pub(super) fn add(&mut self, array: ArrayRef<'a, B>) {
        self.arrays.push(Given { extent: array.layout.extent(), array });
    }
}

/// What one parameter of a graph is recorded with:
/// * `&array` or `&mut array` for an array or a view, whose elements are not used; [`reads`] and [`writes`] where there is no array
///   yet
/// * the same of a [`PinnedArray`](crate::PinnedArray)
/// * a number, a `bool` or a [`Value`](crate::Value) for one that each launch gives anew
/// * a vector of either
pub trait GraphParameter<B: Backend>: Sealed {
    /// The type of the parameter, which is also that of the argument of a launch.
    type Form;
    /// What the body gets: a view of an array, a [`PinnedView`](crate::PinnedView), a [`Varying`](crate::Varying) number.
    type Inside<'g>;

    #[doc(hidden)]
    fn record<'g>(&self, recorder: &mut Recorder<'_, B>) -> Result<Self::Inside<'g>>;
}

/// What one parameter of a graph gets at a launch: `&array` or `&mut array`, with the shape and the strides that were recorded, any
/// number, or a vector as long as the recorded one.
pub trait GraphArgument<B: Backend>: GraphParameter<B> {
    #[doc(hidden)]
    fn bind<'a>(&'a self, to: &mut Places<'a, B>);
}

/// What all parameters of a graph are recorded with: a tuple of [`GraphParameter`]s.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not what a graph is recorded with",
    note = "that is a tuple of `&array`, `&mut array`, `reads(..)`, `writes(..)` and numbers, also of one: `(&array,)`"
)]
pub trait GraphParameters<B: Backend>: Sealed {
    /// The types of the parameters.
    type Form;
    /// What the body gets: a tuple.
    type Inside<'g>;

    #[doc(hidden)]
    fn record<'g>(&self, recorder: &mut Recorder<'_, B>) -> Result<Self::Inside<'g>>;
}

/// What all parameters of a graph get at a launch: a tuple of [`GraphArgument`]s.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not what a graph is launched with",
    note = "that is a tuple of `&array`, `&mut array` and numbers, also of one: `(&array,)`"
)]
pub trait GraphArguments<B: Backend>: GraphParameters<B> {
    #[doc(hidden)]
    fn bind<'a>(&'a self, to: &mut Places<'a, B>);
}

/// Types that stand for arrays in the type of a graph.
macro_rules! forms {
    ($($(#[$about:meta])* $form:ident;)*) => {$(
        $(#[$about])*
        pub struct $form<T, D>(PhantomData<fn(T, D)>);

        impl<T, D> fmt::Debug for $form<T, D> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(stringify!($form))
            }
        }
    )*};
}
forms! {
    /// A parameter that is read.
    ReadForm;
    /// A parameter that may be written.
    WriteForm;
    /// A page-locked parameter that is read.
    PinnedReadForm;
    /// A page-locked parameter that may be written.
    PinnedWriteForm;
}

/// An array that a graph reads, by its shape; made by [`reads`].
#[derive(Debug, Clone)]
pub struct Reads<T, D>(ArraySpec<D>, PhantomData<T>);
/// An array that a graph may write, by its shape; made by [`writes`].
#[derive(Debug, Clone)]
pub struct Writes<T, D>(ArraySpec<D>, PhantomData<T>);

/// Stands for an array that a graph reads, where there is none yet to record it with: its shape, with an order or strides if it is
/// not packed in row-major order.
pub fn reads<T: Element, S: IntoArraySpec>(spec: S) -> Reads<T, S::Dim> {
    Reads(spec.into_spec(), PhantomData)
}

/// As [`reads`], for an array that the graph may write.
pub fn writes<T: Element, S: IntoArraySpec>(spec: S) -> Writes<T, S::Dim> {
    Writes(spec.into_spec(), PhantomData)
}

/// The parameters of a graph, which a launch is compared with.
#[derive(Debug, Default)]
pub(super) struct Signature {
    pub(super) arrays: Vec<Parameter>,
    pub(super) numbers: Vec<Number>,
    /// Of each vector.
    pub(super) lengths: SmallVec<[usize; 4]>,
}

impl Signature {
    /// Whether the region is that of a parameter.
    pub(super) fn has(&self, region: usize) -> bool {
        let arrays = self.arrays.iter().map(|parameter| parameter.region);
        arrays.chain(self.numbers.iter().map(|number| number.region)).any(|own| own == Some(region))
    }
}

/// A number of each launch.
#[derive(Debug)]
pub(super) struct Number {
    pub(super) bytes: usize,
    /// `None` without bytes.
    pub(super) region: Option<usize>,
}

/// The layout of an array, and its memory.
#[derive(Debug)]
pub(super) struct Parameter {
    /// Which of the parameters it is, or is part of; from 1 on.
    pub(super) position: usize,
    /// From the lowest byte on.
    pub(super) layout: Layout,
    /// `None` without elements.
    pub(super) region: Option<usize>,
    /// The address of an array has the recorded rest modulo this.
    pub(super) align: usize,
    pub(super) kind: MemoryKind,
}

/// Makes the views that a body gets.
pub struct Recorder<'a, B: Backend> {
    pub(super) device: &'a Device<B>,
    pub(super) recording: &'a GraphRecording<B>,
    pub(super) signature: Signature,
    /// Which parameter comes now, from 1 on.
    pub(super) position: usize,
}

impl<B: Backend> Recorder<'_, B> {
    /// A view of placeholder memory for an argument. `address` is that of the lowest byte of the array that was given to `record`.
    fn view<S: Storage<Backend = B, Owner = ()>, D: Dimension>(
        &mut self,
        layout: &Layout,
        address: u64,
    ) -> Result<ArrayBase<S, D>> {
        let (memory, layout) = self.placeholder::<S::Elem>(layout, address, MemoryKind::Device)?;
        Ok(ArrayBase::over(memory, layout))
    }

    /// Placeholder memory for an argument, and the layout of the argument in it.
    pub(super) fn placeholder<T>(
        &mut self,
        layout: &Layout,
        address: u64,
        kind: MemoryKind,
    ) -> Result<(AllocationRef<B>, Layout)> {
        let fail = |error: LayoutError| self.device.core().error(OPERATION, error);
        let extent = layout.extent();
        let layout = layout.clone().with_offset(layout.offset() - extent.start).map_err(fail)?;
        let (bytes, align, position) = (extent.len(), align_of::<T>(), self.position);
        if bytes == 0 {
            let parameter = Parameter { position, layout: layout.clone(), region: None, align, kind };
            self.signature.arrays.push(parameter);
            return Ok((Allocation::empty(self.device, OPERATION, align, kind)?, layout));
        }
        let align = align.max(CONGRUENT);
        let address = self.recording.reserve_like(OPERATION, (bytes, align), address)?;
        let memory = Allocation::placeholder_at(self.device, address, bytes, kind);
        let region = self.recording.add(memory.id(), Region::new(address, (bytes, align), kind));
        let parameter = Parameter { position, layout: layout.clone(), region: Some(region), align, kind };
        self.signature.arrays.push(parameter);
        Ok((memory, layout))
    }

    /// Placeholder memory for a number.
    pub(super) fn number(&mut self, bytes: &[u8]) -> Result<AllocationRef<B>> {
        let (bytes, kind) = (bytes.len(), MemoryKind::Device);
        if bytes == 0 {
            self.signature.numbers.push(Number { bytes, region: None });
            return Allocation::empty(self.device, OPERATION, 1, kind);
        }
        let address = self.recording.reserve(OPERATION, (bytes, 1), kind)?;
        let memory = Allocation::placeholder_at(self.device, address, bytes, kind);
        let region = Region { content: Content::Number, ..Region::new(address, (bytes, 1), kind) };
        let region = Some(self.recording.add(memory.id(), region));
        self.signature.numbers.push(Number { bytes, region });
        Ok(memory)
    }

    fn of_array<I: Storage<Backend = B, Owner = ()>, S: Storage<Backend = B>, D: Dimension>(
        &mut self,
        array: &ArrayBase<S, D>,
    ) -> Result<ArrayBase<I, D>> {
        check_memory(OPERATION, &array.memory, MemoryKind::Device)?;
        self.view(&array.layout, lowest(&array.memory, &array.layout.extent()))
    }

    fn of_spec<S: Storage<Backend = B, Owner = ()>, D: Dimension>(
        &mut self,
        spec: &ArraySpec<D>,
    ) -> Result<ArrayBase<S, D>> {
        let layout = spec.aligned_layout(size_of::<S::Elem>(), align_of::<S::Elem>());
        let layout = layout.map_err(|error| self.device.core().error(OPERATION, error))?;
        self.view(&layout, 0)
    }
}

/// Refuses memory that copies do not go to as to memory of this kind: by the address of the device, or by that of the host.
/// Returns [`InvalidArgument`](ErrorKind::InvalidArgument).
pub(super) fn check_memory<B: Backend>(
    operation: &'static str,
    memory: &Allocation<B>,
    kind: MemoryKind,
) -> Result<()> {
    let by_host = matches!(memory.endpoint().1, Space::Host);
    if by_host == (kind == MemoryKind::Pinned) {
        return Ok(());
    }
    let why = "a graph takes arrays in memory of the device and page-locked arrays; it copies from and to other memory inside of it";
    Err(memory.core().error(operation, ErrorKind::InvalidArgument { why }))
}

/// The address of the lowest byte of an array, by which copies go to it.
pub(super) fn lowest<B: Backend>(memory: &Allocation<B>, extent: &Range<usize>) -> u64 {
    memory.endpoint().0.wrapping_add(extent.start as u64)
}

/// Parameters of graphs: the generics of the type, and those beside them; the type and the backend; what stands for it in the types of
/// a graph, and what a body gets; how it is recorded, and how a launch binds it.
macro_rules! parameters {
    (not bound: $([$($own:tt)*] [$($beside:tt)*] $type:ty, $backend:ty: $form:ty => $inside:ty,
        |$this:ident, $recorder:ident| $record:expr;)*) => {$(
        impl<$($own)*> Sealed for $type {}
        impl<$($own)* $($beside)*> GraphParameter<$backend> for $type {
            type Form = $form;
            type Inside<'g> = $inside;

            fn record<'g>(&self, $recorder: &mut Recorder<'_, $backend>) -> Result<Self::Inside<'g>> {
                let $this = self;
                $record
            }
        }
    )*};
    ($([$($own:tt)*] [$($beside:tt)*] $type:ty, $backend:ty: $form:ty => $inside:ty,
        |$this:ident, $recorder:ident| $record:expr, |$given:ident, $to:ident| $bind:expr;)*) => {
        parameters! { not bound: $(
            [$($own)*] [$($beside)*] $type, $backend: $form => $inside, |$this, $recorder| $record;
        )*}
        $(impl<$($own)* $($beside)*> GraphArgument<$backend> for $type {
            fn bind<'a>(&'a self, $to: &mut Places<'a, $backend>) {
                let $given = self;
                $bind
            }
        })*
    };
}
pub(super) use parameters;

parameters! {
    [S: Storage, D: Dimension] [] &ArrayBase<S, D>, S::Backend:
        ReadForm<S::Elem, D> => DeviceView<'g, S::Elem, D, S::Backend>,
        |array, recorder| recorder.of_array(array), |array, to| to.add(array.place());
    [S: StorageMut, D: Dimension] [] &mut ArrayBase<S, D>, S::Backend:
        WriteForm<S::Elem, D> => DeviceViewMut<'g, S::Elem, D, S::Backend>,
        |array, recorder| recorder.of_array(array), |array, to| to.add(array.place());
}
parameters! { not bound:
    [T: Element, D: Dimension,] [B: Backend] Reads<T, D>, B: ReadForm<T, D> => DeviceView<'g, T, D, B>,
        |array, recorder| recorder.of_spec(&array.0);
    [T: Element, D: Dimension,] [B: Backend] Writes<T, D>, B: WriteForm<T, D> => DeviceViewMut<'g, T, D, B>,
        |array, recorder| recorder.of_spec(&array.0);
}

impl<B: Backend, P: GraphParameter<B>> GraphParameter<B> for Vec<P> {
    type Form = Vec<P::Form>;
    type Inside<'g> = Vec<P::Inside<'g>>;

    fn record<'g>(&self, recorder: &mut Recorder<'_, B>) -> Result<Self::Inside<'g>> {
        recorder.signature.lengths.push(self.len());
        self.iter().map(|one| one.record(recorder)).collect()
    }
}
impl<B: Backend, P: GraphArgument<B>> GraphArgument<B> for Vec<P> {
    fn bind<'a>(&'a self, to: &mut Places<'a, B>) {
        to.lengths.push(self.len());
        self.iter().for_each(|one| one.bind(to));
    }
}

macro_rules! tuples {
    ($(($($one:ident)*))*) => {$(
        impl<$($one: Sealed),*> Sealed for ($($one,)*) {}

        #[diagnostic::do_not_recommend]
        impl<BE: Backend, $($one: GraphParameter<BE>),*> GraphParameters<BE> for ($($one,)*) {
            type Form = ($($one::Form,)*);
            type Inside<'g> = ($($one::Inside<'g>,)*);

            #[allow(non_snake_case, unused_variables, clippy::unused_unit)]
            fn record<'g>(&self, recorder: &mut Recorder<'_, BE>) -> Result<Self::Inside<'g>> {
                let ($($one,)*) = self;
                Ok(($({
                    recorder.position += 1;
                    $one.record(recorder)?
                },)*))
            }
        }

        #[diagnostic::do_not_recommend]
        impl<BE: Backend, $($one: GraphArgument<BE>),*> GraphArguments<BE> for ($($one,)*) {
            #[allow(non_snake_case, unused_variables)]
            fn bind<'a>(&'a self, to: &mut Places<'a, BE>) {
                let ($($one,)*) = self;
                $($one.bind(to);)*
            }
        }
    )*};
}
tuples! {
    () (A1) (A1 A2) (A1 A2 A3) (A1 A2 A3 A4) (A1 A2 A3 A4 A5) (A1 A2 A3 A4 A5 A6) (A1 A2 A3 A4 A5 A6 A7) (A1 A2 A3 A4 A5 A6 A7 A8)
    (A1 A2 A3 A4 A5 A6 A7 A8 A9) (A1 A2 A3 A4 A5 A6 A7 A8 A9 A10) (A1 A2 A3 A4 A5 A6 A7 A8 A9 A10 A11)
    (A1 A2 A3 A4 A5 A6 A7 A8 A9 A10 A11 A12)
}

impl<B: Backend> fmt::Debug for Recorder<'_, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorder").field("signature", &self.signature).finish_non_exhaustive()
    }
}
