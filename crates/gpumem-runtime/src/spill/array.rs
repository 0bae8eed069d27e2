//! An array that may leave the device, as its user has it.

use super::{
    cell::Cell,
    shared::{Manager, Member},
};
use crate::{
    ArrayBase, DeviceArray, DeviceView, DeviceViewMut, FileView, Stream, array::align, key::Key,
    layout::Layout,
};
use gpumem_core::{Backend, Element, Error, Result};
use ndarray::Dimension;
use std::{
    fmt,
    marker::PhantomData,
    panic::{RefUnwindSafe, UnwindSafe},
    sync::Arc,
};

/// An array that may leave the device when its memory is short: [`SpillManager::add`](super::SpillManager::add),
/// [`SpillManager::open`](super::SpillManager::open). It stays while a view of it exists, and while it is lent.
/// ```
/// # use gpumem_runtime::{SpillManager, SpillOptions};
/// # let device = gpumem_runtime::Device::<gpumem_host::Host>::open("host")?;
/// let (spilling, stream) = (SpillManager::new(&device, SpillOptions::new())?, device.stream()?);
/// let mut array = spilling.add(device.to_device(&[1, 2, 3])?).map_err(|(_, error)| error)?;
/// assert!(array.evict()?); // otherwise done when another allocation needs the memory
/// assert!(!array.is_resident()?);
/// array.get_mut(&stream)?.set(0, 10)?; // it is back
/// let array = array.into_array(&stream).map_err(|(_, error)| error)?;
/// assert_eq!(array.copy_to_host()?.to_vec(), [10, 2, 3]);
/// # Ok::<(), gpumem_core::Error>(())
/// ```
#[must_use = "an array that is dropped at once does nothing"]
pub struct Spillable<T: Element, D: Dimension, B: Backend> {
    cell: Arc<Cell<B>>,
    layout: Layout,
    marker: PhantomData<(T, D)>,
}

impl<T: Element, D: Dimension, B: Backend> Spillable<T, D, B> {
    pub(super) fn resident(manager: &Arc<Manager<B>>, array: DeviceArray<T, D, B>) -> Self {
        let ArrayBase { memory, layout, .. } = array;
        let align = align::<T, B>(manager.device());
        Self::over(manager, Cell::resident(manager, memory, layout.extent(), align), layout)
    }

    pub(super) fn in_file(manager: &Arc<Manager<B>>, source: FileView<T, D>) -> Self
    where
        D: 'static,
    {
        let layout = source.layout().like();
        let bytes = layout.extent().end;
        let reload = move |stream: &Stream<B>| Ok(stream.to_device(&source)?.memory);
        Self::over(
            manager,
            Cell::in_file(manager, bytes, align::<T, B>(manager.device()), Box::new(reload)),
            layout,
        )
    }

    fn over(manager: &Arc<Manager<B>>, cell: Cell<B>, layout: Layout) -> Self {
        let cell = Arc::new(cell);
        let member: Arc<dyn Member<B>> = cell.clone();
        manager.register(Arc::downgrade(&member));
        Self { cell, layout, marker: PhantomData }
    }

    /// Returns the lengths of the axes.
    pub fn shape(&self) -> &[usize] {
        self.layout.shape()
    }

    /// Returns the number of elements.
    pub fn len(&self) -> usize {
        self.layout.len()
    }

    /// Returns whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.layout.is_empty()
    }

    /// Returns a view of the array, which is brought back in the order of `stream` if it has left the device. It stays as long as the
    /// view exists. Work on any stream may use it.
    ///
    /// # Errors
    /// Returns [`OutOfMemory`](gpumem_core::ErrorKind::OutOfMemory) if the device has no room for the array although all others that
    /// can have left it, [`WrongDevice`](gpumem_core::ErrorKind::WrongDevice) for a stream of another device, and
    /// [`File`](gpumem_core::ErrorKind::File) if its file has changed or cannot be read. For an array that has left the device, or that
    /// another thread moves: [`BlockingInCallback`](gpumem_core::ErrorKind::BlockingInCallback) in a callback,
    /// [`NotRecordable`](gpumem_core::ErrorKind::NotRecordable) in the recording of a graph, and
    /// [`Unsupported`](gpumem_core::ErrorKind::Unsupported) in code that runs while an array moves, such as a memory resource.
    pub fn get(&self, stream: &Stream<B>) -> Result<DeviceView<'_, T, D, B>> {
        Ok(ArrayBase::over(self.cell.get("get", stream, false)?, self.layout.clone()))
    }

    /// As [`get`](Self::get), to write it. What the array has left on the host, or has in its file, counts as old from now on.
    ///
    /// # Errors
    /// As for [`get`](Self::get).
    pub fn get_mut(&mut self, stream: &Stream<B>) -> Result<DeviceViewMut<'_, T, D, B>> {
        Ok(ArrayBase::over(self.cell.get("get_mut", stream, true)?, self.layout.clone()))
    }

    /// As [`get`](Self::get), or with `writes` as [`get_mut`](Self::get_mut): for bindings of languages whose arrays have several owners,
    /// which write by way of such a view.
    ///
    /// # Errors
    /// As for [`get`](Self::get).
    #[doc(hidden)]
    pub fn get_by(&self, _: Key, stream: &Stream<B>, writes: bool) -> Result<DeviceView<'_, T, D, B>> {
        Ok(ArrayBase::over(self.cell.get("get", stream, writes)?, self.layout.clone()))
    }

    /// Brings the array back in the order of `stream`, for a use that follows on another one.
    ///
    /// # Errors
    /// As for [`get`](Self::get).
    pub fn prefetch(&self, stream: &Stream<B>) -> Result<()> {
        self.cell.get("prefetch", stream, false).map(drop)
    }

    /// Makes the array leave the device, if it can. Returns whether it has left just now. It does not wait for the work that uses the
    /// array.
    ///
    /// # Errors
    /// Returns [`OutOfMemory`](gpumem_core::ErrorKind::OutOfMemory) if there is no page-locked memory for it, and otherwise as for
    /// [`Stream::copy_to_host`]. The array stays then.
    pub fn evict(&self) -> Result<bool> {
        self.cell.manager().device().core().check_process("evict")?;
        Ok(self.cell.evict("evict")? > 0)
    }

    /// Returns whether the array is on the device.
    ///
    /// # Errors
    /// As for [`get`](Self::get), where another thread moves the array, and in a forked child.
    pub fn is_resident(&self) -> Result<bool> {
        self.cell.is_resident("is_resident")
    }

    /// Returns the array as one that never leaves the device.
    ///
    /// # Errors
    /// As for [`get`](Self::get), with the array.
    #[allow(clippy::result_large_err)] // the array itself comes back
    pub fn into_array(self, stream: &Stream<B>) -> std::result::Result<DeviceArray<T, D, B>, (Self, Error)> {
        match self.cell.take("into_array", stream) {
            Ok(memory) => Ok(ArrayBase::over(memory, self.layout)),
            Err(error) => Err((self, error)),
        }
    }
}

// As an array.
impl<T: Element, D: Dimension, B: Backend> UnwindSafe for Spillable<T, D, B> {}
impl<T: Element, D: Dimension, B: Backend> RefUnwindSafe for Spillable<T, D, B> {}

impl<T: Element, D: Dimension, B: Backend> fmt::Debug for Spillable<T, D, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Spillable").field("layout", &self.layout).finish_non_exhaustive()
    }
}
