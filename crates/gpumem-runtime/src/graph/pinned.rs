//! Page-locked arrays as arguments of graphs.

use super::{
    GraphArgument, GraphParameter, Sealed,
    arguments::{PinnedReadForm, PinnedWriteForm, Places, Recorder, check_memory, lowest, parameters},
};
use crate::{PinnedArray, PinnedHost, Source, ToDevice};
use gpumem_core::{Backend, Element, MemoryKind, Result};
use ndarray::Dimension;
use std::ops::Deref;

const OPERATION: &str = "record";

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

parameters! {
    [T: Element, D: Dimension, B: Backend] [] &PinnedArray<T, D, B>, B:
        PinnedReadForm<T, D> => PinnedView<'g, T, D, B>,
        |array, recorder| record(array, recorder).map(PinnedView), |array, to| to.add(array.place());
    [T: Element, D: Dimension, B: Backend] [] &mut PinnedArray<T, D, B>, B:
        PinnedWriteForm<T, D> => PinnedHost<'g, T, D, B>,
        |array, recorder| record(array, recorder), |array, to| to.add(array.place());
}
