//! The tensors of a model as arrays of a device, read in few passes.

use crate::{SafeTensors, TensorInfo, fail};
use gpumem_core::{Backend, Element, Result};
use gpumem_runtime::{DeviceArray, FileView, Progress, Stream};
use ndarray::{Dimension, Ix1, IxDyn};
use std::{collections::HashMap, ops::ControlFlow};

/// Tensors on a device, by name; made by [`SafeTensors::load`].
#[derive(Debug)]
pub struct LoadedTensors<B: Backend> {
    /// Without the tensors that were not chosen.
    model: SafeTensors,
    bytes: HashMap<Box<str>, DeviceArray<u8, Ix1, B>>,
}

impl SafeTensors {
    /// Copies the tensors for which `chosen` says so into arrays of a device, in stream order. Tensors that lie near each other are
    /// read in one pass, in the order of their bytes. All have been read when this returns.
    /// ```
    /// # use gpumem_files::{named, safetensors, save_safetensors};
    /// # use ndarray::{Ix1, Ix2, array};
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("model.safetensors");
    /// # let device = gpumem_runtime::Device::<gpumem_host::Host>::open("host")?;
    /// # let (w, b) = (device.to_device(&array![[1.0f32, 2.0]])?, device.to_device(&[3.0f32])?);
    /// # save_safetensors(&path, &[named("layers.0.w", &w), named("layers.0.b", &b)], [("format", "pt")])?;
    /// let model = safetensors(&path)?;
    /// let mut tensors = model.load(&device.stream()?, |tensor| tensor.name().starts_with("layers."))?;
    /// let w = tensors.take::<f32, Ix2>("layers.0.w")?;
    /// let b = tensors.take::<f32, Ix1>("layers.0.b")?;
    /// assert_eq!((w.copy_to_host()?, b.get(0)?), (array![[1.0, 2.0]], 3.0));
    /// # Ok::<(), gpumem_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`Stream::to_device_all`]. Nothing is loaded then.
    pub fn load<B: Backend>(
        &self,
        stream: &Stream<B>,
        chosen: impl FnMut(&TensorInfo) -> bool,
    ) -> Result<LoadedTensors<B>> {
        self.load_by(chosen, |views| stream.to_device_all(views))
    }

    /// As [`load`](Self::load), and calls `progress` on this thread with the bytes read so far. [`ControlFlow::Break`] ends the load.
    ///
    /// # Errors
    /// As for [`Stream::to_device_all_with_progress`]. Nothing is loaded then.
    pub fn load_with_progress<B: Backend>(
        &self,
        stream: &Stream<B>,
        chosen: impl FnMut(&TensorInfo) -> bool,
        progress: impl FnMut(Progress) -> ControlFlow<()>,
    ) -> Result<LoadedTensors<B>> {
        self.load_by(chosen, |views| stream.to_device_all_with_progress(views, progress))
    }

    fn load_by<B: Backend>(
        &self,
        chosen: impl FnMut(&TensorInfo) -> bool,
        copy: impl FnOnce(&[FileView<u8, Ix1>]) -> Result<Vec<DeviceArray<u8, Ix1, B>>>,
    ) -> Result<LoadedTensors<B>> {
        const OPERATION: &str = "load";
        let model = self.only(chosen);
        let views = model.tensors().map(|tensor| model.tensor_bytes(tensor.name()));
        let views: Vec<FileView<u8, Ix1>> = views.collect::<Result<_>>()?;
        let arrays = copy(&views).map_err(|error| error.in_operation(OPERATION))?;
        let names = model.tensors().map(|tensor| tensor.name().into());
        let bytes = names.zip(arrays).collect();
        Ok(LoadedTensors { model, bytes })
    }
}

impl<B: Backend> LoadedTensors<B> {
    /// Number of tensors that have not been taken.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// What the files say of the tensors, also of those that have been taken.
    pub fn tensors(&self) -> impl ExactSizeIterator<Item = &TensorInfo> {
        self.model.tensors()
    }

    /// Takes a tensor. Floats of eight bits are `u8`.
    ///
    /// # Errors
    /// As for [`SafeTensors::tensor`]. Returns [`File`](gpumem_core::ErrorKind::File) also if it has been taken. Otherwise it stays.
    pub fn take<T: Element, D: Dimension>(&mut self, name: &str) -> Result<DeviceArray<T, D, B>> {
        const OPERATION: &str = "take";
        // All that can be wrong, before the tensor leaves.
        let shape = self.model.tensor::<T, D>(name).map_err(|error| error.in_operation(OPERATION))?;
        self.take_bytes(name)?.into_elements::<T, _>(IxDyn(shape.shape()))?.into_dimensionality()
    }

    /// Takes the bytes of a tensor of any type.
    ///
    /// # Errors
    /// Returns [`File`](gpumem_core::ErrorKind::File) if there is no such tensor, or it has been taken.
    pub fn take_bytes(&mut self, name: &str) -> Result<DeviceArray<u8, Ix1, B>> {
        self.bytes.remove(name).ok_or_else(|| fail("take", self.model.no_such(name)))
    }
}
