//! Page-locked arrays as arguments of graphs.

use super::{
    GraphArgument, GraphParameter, Sealed,
    arguments::{Places, Recorder, check_memory, lowest},
};
use crate::{PinnedArray, PinnedHost, Source, ToDevice};
use gpumem_core::{Backend, Element, MemoryKind, Result};
use ndarray::Dimension;
use std::{fmt, marker::PhantomData, ops::Deref};

const OPERATION: &str = "record";

/// A page-locked parameter that is read.
pub struct PinnedReadForm<T, D>(PhantomData<fn(T, D)>);
/// A page-locked parameter that may be written.
pub struct PinnedWriteForm<T, D>(PhantomData<fn(T, D)>);

/// What the body of a graph gets for a page-locked array that it reads: a source of copies to the device. One that it may write is
/// a [`PinnedHost`].
///
/// ```
/// # let device = gpumem_runtime::Device::<gpumem_host::Host>::open("host")?; let stream = device.stream()?;
/// let mut input = device.pinned_array::<f32, _>(3)?;
/// let graph = device.record((&input,), |stream, (input,)| stream.to_device(&input))?;
/// input.copy_from(&[1.0, 2.0, 3.0])?;
/// let on_device = graph.launch(&stream, (&input,))?;
/// input.view_mut()?.fill(0.0); // waits for the copy
/// assert_eq!(on_device.copy_to_host()?.to_vec(), [1.0, 2.0, 3.0]);
/// # Ok::<(), gpumem_core::Error>(())
/// ```
#[derive(Debug)]
pub struct PinnedView<'g, T: Element, D: Dimension, B: Backend>(PinnedHost<'g, T, D, B>);

impl<'g, T: Element, D: Dimension, B: Backend> Deref for PinnedView<'g, T, D, B> {
    type Target = PinnedHost<'g, T, D, B>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

#[diagnostic::do_not_recommend]
impl<T: Element, D: Dimension, B: Backend> ToDevice<B> for PinnedView<'_, T, D, B> {
    type Elem = T;
    type Dim = D;

    fn source(&self) -> Source<'_, T, D, B> {
        self.0.source()
    }
}

/// An array over placeholder memory.
fn record<'g, T: Element, D: Dimension, B: Backend>(
    array: &PinnedArray<T, D, B>,
    recorder: &mut Recorder<'_, B>,
) -> Result<PinnedHost<'g, T, D, B>> {
    let place = array.place();
    check_memory(OPERATION, place.memory, MemoryKind::Pinned)?;
    let address = lowest(place.memory, &place.layout.extent());
    let (memory, layout) = recorder.placeholder::<T>(place.layout, address, MemoryKind::Pinned)?;
    PinnedHost::over(OPERATION, memory, layout)
}

macro_rules! parameters {
    ($($array:ty, $form:ident, $inside:ident, $make:expr;)*) => {$(
        impl<T: Element, D: Dimension, B: Backend> Sealed for $array {}
        impl<T: Element, D: Dimension, B: Backend> GraphParameter<B> for $array {
            type Form = $form<T, D>;
            type Inside<'g> = $inside<'g, T, D, B>;

            fn record<'g>(&self, recorder: &mut Recorder<'_, B>) -> Result<Self::Inside<'g>> {
                record(self, recorder).map($make)
            }
        }
        impl<T: Element, D: Dimension, B: Backend> GraphArgument<B> for $array {
            fn bind<'a>(&'a self, to: &mut Places<'a, B>) {
                to.arrays.push(self.place());
            }
        }
        impl<T, D> fmt::Debug for $form<T, D> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(stringify!($form))
            }
        }
    )*};
}
parameters! {
    &PinnedArray<T, D, B>, PinnedReadForm, PinnedView, PinnedView;
    &mut PinnedArray<T, D, B>, PinnedWriteForm, PinnedHost, |array| array;
}
