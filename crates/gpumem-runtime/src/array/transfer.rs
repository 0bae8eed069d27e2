//! Copies, assignment, fills and single elements. Without a stream, all of them have finished on return.

use super::{ArrayBase, Storage, StorageMut};
use crate::{
    CopyPlan, Progress, ToDevice, completion,
    host::UninitBuffer,
    layout::Layout,
    track::Timeline,
    transfer::{self, ArrayRef, Upload},
};
use gpumem_core::Result;
use ndarray::{Array, ArrayViewMut, Dimension, Ix0, IxDyn, NdIndex, ShapeBuilder};
use std::{ops::ControlFlow, sync::Arc};

impl<S: Storage, D: Dimension> ArrayBase<S, D> {
    fn default_timeline(&self) -> Result<Arc<Timeline<S::Backend>>> {
        self.device()?.default_timeline()
    }

    /// A new host array with the elements: packed, its axes in the same order. A lost device or work that failed is an
    /// error, never a wrong element.
    ///
    /// # Errors
    /// What the work that wrote the elements did wrong; of the driver.
    pub fn copy_to_host(&self, /* with a stream: stream.copy_to_host(&a) */) -> Result<Array<S::Elem, D>> {
        const OPERATION: &str = "copy_to_host";
        let packed = self.layout.like();
        let size = size_of::<S::Elem>().max(1) as isize;
        let mut strides = D::zeros(self.ndim());
        for (slot, stride) in strides.slice_mut().iter_mut().zip(packed.strides()) {
            *slot = (stride / size).unsigned_abs();
        }
        let shape = match self.is_empty() {
            true => self.raw_dim().into(),
            false => self.raw_dim().strides(strides),
        };
        let mut host = UninitBuffer::<S::Elem, D>::new(OPERATION, shape)
            .map_err(|error| self.memory.core().place(error))?;
        let timeline = self.default_timeline()?;
        // SAFETY: there is room for the elements of the packed layout, which nothing else uses.
        unsafe {
            transfer::download_new::<S::Elem, _>(
                &timeline,
                OPERATION,
                self.place(),
                host.as_mut_ptr(),
                packed,
            )?
        };
        // SAFETY: the download has written all of them.
        unsafe { host.into_array(OPERATION) }.map_err(|error| self.memory.core().place(error))
    }

    /// Copies the elements into an array of the caller, of any layout, and returns it. Bytes between its elements stay
    /// as they are.
    ///
    /// # Errors
    /// Different shapes, before anything moves; as [`copy_to_host`](Self::copy_to_host).
    pub fn copy_to_host_into<'h>(
        &self,
        destination: impl Into<ArrayViewMut<'h, S::Elem, D>>,
    ) -> Result<ArrayViewMut<'h, S::Elem, D>> {
        let mut destination = destination.into();
        self.device()?.on_default(|timeline| {
            if transfer::try_download_inline(timeline, self.place(), &mut destination) {
                return Ok(());
            }
            let view = destination.view_mut().into_dyn();
            transfer::download(timeline, "copy_to_host", self.place(), view, None)
        })?;
        Ok(destination)
    }

    /// As [`copy_to_host_into`](Self::copy_to_host_into), and tells `progress` on this thread how far it has come: between
    /// the pieces of the transfer, a few MiB each, with rising numbers of bytes, the last time with all of them.
    /// [`ControlFlow::Break`] ends the transfer between two pieces; what has landed by then stays.
    ///
    /// # Errors
    /// [`Cancelled`](gpumem_core::ErrorKind::Cancelled) after a `Break`; as [`copy_to_host`](Self::copy_to_host).
    pub fn copy_to_host_with_progress<'h>(
        &self,
        destination: impl Into<ArrayViewMut<'h, S::Elem, D>>,
        mut progress: impl FnMut(Progress) -> ControlFlow<()>,
    ) -> Result<ArrayViewMut<'h, S::Elem, D>> {
        let (mut destination, timeline) = (destination.into(), self.default_timeline()?);
        let view = destination.view_mut().into_dyn();
        transfer::download(&timeline, "copy_to_host", self.place(), view, Some(&mut progress))?;
        Ok(destination)
    }

    /// The element at an index. A blocking copy of one element: for looking at, not for loops.
    ///
    /// # Errors
    /// [`IndexOutOfBounds`](gpumem_core::LayoutError::IndexOutOfBounds); as [`copy_to_host`](Self::copy_to_host).
    pub fn get<I: NdIndex<D> + ndarray::IntoDimension>(&self, index: I) -> Result<S::Elem> {
        let layout = self.element("get", index.into_dimension().slice())?;
        let mut value = [<S::Elem as bytemuck::Zeroable>::zeroed()];
        let view = ArrayViewMut::from(&mut value[..]).into_shape_with_order(IxDyn(&[]));
        if let Ok(view) = view {
            let place = ArrayRef::new(&self.memory, &layout);
            transfer::download(&self.default_timeline()?, "get", place, view, None)?;
        }
        Ok(value[0])
    }

    fn element(&self, operation: &'static str, index: &[usize]) -> Result<Layout> {
        let fail = |error| self.fail(operation, error);
        let offset = self.layout.index(index).map_err(fail)?;
        let item = Layout::packed(&[], self.layout.item(), crate::Order::C).map_err(fail)?;
        item.with_offset(offset).map_err(fail)
    }
}

impl<S: Storage, D: Dimension> ArrayBase<S, D> {
    /// How [`copy_to_device`](ArrayBase::copy_to_device) of `source` into this array would be done. Nothing is moved; the
    /// time that it takes depends on the number of axes only. Print it.
    ///
    /// # Errors
    /// Different shapes; of the driver.
    pub fn copy_plan<Src>(&self, source: &Src) -> Result<CopyPlan>
    where
        Src: ToDevice<S::Backend, Elem = S::Elem, Dim = D> + ?Sized,
    {
        source.source().plan(&*self.default_timeline()?, "copy_plan", self.place())
    }
}

impl<S: StorageMut, D: Dimension> ArrayBase<S, D> {
    /// Copies a source of equal shape and any layout here, from the host or from any device, and returns the array.
    ///
    /// The source is free again on return, and what comes through the library is ordered behind the copy. Of a short one from
    /// the host (up to [`TransferOptions::single_block_bytes`](crate::TransferOptions::single_block_bytes)) the elements may still be on
    /// their way from memory of the library, as with `cuMemcpyHtoD`: what goes wrong there is told by the next wait.
    ///
    /// # Errors
    /// Different shapes ([`ShapeMismatch`](gpumem_core::LayoutError::ShapeMismatch)), before anything moves;
    /// [`Overlap`](gpumem_core::ErrorKind::Overlap) of the two sides; of the driver.
    pub fn copy_to_device<Src>(&mut self, source: &Src) -> Result<&mut Self>
    where
        Src: ToDevice<S::Backend, Elem = S::Elem, Dim = D> + ?Sized,
    {
        self.device()?.on_default(|timeline| {
            source.source().copy_to(timeline, "copy_to_device", self.place(), Upload::Blocking)
        })?;
        Ok(self)
    }

    /// As [`copy_to_device`](Self::copy_to_device), and tells `progress` on this thread how far it has come: between the
    /// pieces of the transfer where the source is memory of the caller, else once at the end.
    /// [`ControlFlow::Break`] ends the transfer between two pieces; what has arrived by then stays.
    ///
    /// # Errors
    /// [`Cancelled`](gpumem_core::ErrorKind::Cancelled) after a `Break`; as [`copy_to_device`](Self::copy_to_device).
    pub fn copy_to_device_with_progress<Src>(
        &mut self,
        source: &Src,
        mut progress: impl FnMut(Progress) -> ControlFlow<()>,
    ) -> Result<&mut Self>
    where
        Src: ToDevice<S::Backend, Elem = S::Elem, Dim = D> + ?Sized,
    {
        let timeline = self.default_timeline()?;
        source.source().copy_with_progress(&timeline, "copy_to_device", self.place(), &mut progress)?;
        Ok(self)
    }

    /// Copies a source here that is broadcast to the shape of the array, by NumPy's rules.
    ///
    /// # Errors
    /// [`CannotBroadcast`](gpumem_core::LayoutError::CannotBroadcast); as [`copy_to_device`](Self::copy_to_device).
    pub fn assign<Src>(&mut self, source: &Src) -> Result<()>
    where
        Src: ToDevice<S::Backend, Elem = S::Elem> + ?Sized,
    {
        let timeline = self.default_timeline()?;
        source.source().broadcast_to(&timeline, "assign", self.place(), Upload::Blocking)?;
        Ok(())
    }

    /// Sets every element.
    ///
    /// # Errors
    /// Of the driver.
    pub fn fill(&mut self, value: S::Elem) -> Result<()> {
        completion::may_block("fill")?;
        let timeline = self.default_timeline()?;
        let submission = transfer::fill(&timeline, "fill", self.place(), value)?;
        timeline.wait_host(submission).result.map_err(|error| error.in_operation("fill"))
    }

    /// Sets the element at an index. A blocking copy of one element: for looking after, not for loops.
    ///
    /// # Errors
    /// [`IndexOutOfBounds`](gpumem_core::LayoutError::IndexOutOfBounds); of the driver.
    pub fn set<I: NdIndex<D> + ndarray::IntoDimension>(&mut self, index: I, value: S::Elem) -> Result<()> {
        let layout = self.element("set", index.into_dimension().slice())?;
        let timeline = self.default_timeline()?;
        let place = ArrayRef::new(&self.memory, &layout);
        transfer::upload(
            &timeline,
            "set",
            ndarray::aview0(&value).into_dyn(),
            place,
            Upload::Blocking,
            None,
        )?;
        Ok(())
    }
}

impl<S: Storage> ArrayBase<S, Ix0> {
    /// The value, read as a whole.
    ///
    /// # Errors
    /// As [`copy_to_host`](Self::copy_to_host).
    pub fn read(&self) -> Result<S::Elem> {
        self.get(())
    }
}

impl<S: StorageMut> ArrayBase<S, Ix0> {
    /// Writes the value as a whole.
    ///
    /// # Errors
    /// Of the driver.
    pub fn write(&mut self, value: S::Elem) -> Result<()> {
        self.set((), value)
    }
}
