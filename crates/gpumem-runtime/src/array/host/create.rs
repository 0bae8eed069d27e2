//! Making host arrays.

use super::{HostArray, HostKind, ManagedArray, MappedArray, PinnedArray};
use crate::{Device, IntoArraySpec, Layout, array::align, device::Allocation};
use gpumem_core::{Attach, Backend, Element, ErrorKind, MappedOptions, MemoryKind, Result};
use gpumem_memory::memory::DeviceCore;
use ndarray::Dimension;

impl<K: HostKind, T: Element, D: Dimension, B: Backend> HostArray<K, T, D, B> {
    /// A new array of zeros.
    pub(crate) fn allocate(
        device: &Device<B>,
        operation: &'static str,
        layout: Layout,
        kind: MemoryKind,
    ) -> Result<Self> {
        let align = align::<T, B>(device);
        let memory = Allocation::for_host(device, operation, layout.extent().end, align, kind)?;
        // Zeros make every later read defined.
        memory.zero(operation)?;
        Self::over(operation, memory.into_memory(), layout)
    }
}

impl<B: Backend> Device<B> {
    /// Creates a page-locked array of zeros: source and destination of truly asynchronous copies.
    /// ```
    /// # let device = gpumem_runtime::Device::<gpumem_host::Host>::open("host")?;
    /// let mut pinned = device.pinned_array::<f32, _>((480, 640))?;
    /// pinned.view_mut()?[[0, 0]] = 1.0;
    /// assert_eq!(pinned.shape(), [480, 640]);
    /// # Ok::<(), gpumem_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns [`TooLarge`](gpumem_core::LayoutError::TooLarge) if the array has more than `isize::MAX` bytes.
    /// Returns [`SelfOverlap`](gpumem_core::LayoutError::SelfOverlap) or
    /// [`Misaligned`](gpumem_core::LayoutError::Misaligned) if strides overlap or do not count in whole elements.
    /// Returns [`OutOfMemory`](gpumem_core::ErrorKind::OutOfMemory) if the host has no room.
    pub fn pinned_array<T: Element, S: IntoArraySpec>(&self, spec: S) -> Result<PinnedArray<T, S::Dim, B>> {
        let layout = layout_of::<T, S, B>("pinned_array", spec, self.core())?;
        HostArray::allocate(self, "pinned_array", layout, MemoryKind::Pinned)
    }

    /// Creates a page-locked array of zeros that kernels can use.
    /// ```
    /// # use gpumem_core::MappedOptions; let device = gpumem_runtime::Device::<gpumem_host::Host>::open("host")?;
    /// let mut mapped = device.mapped_array::<f32, _>(1000, MappedOptions::default())?;
    /// mapped.device_view_mut().fill(1.0)?; // no copy to the host is needed
    /// assert_eq!(mapped.view()?[999], 1.0);
    /// # Ok::<(), gpumem_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns [`Unsupported`](gpumem_core::ErrorKind::Unsupported) if
    /// [`Capabilities::mapped`](gpumem_core::Capabilities::mapped) is false. Otherwise as
    /// [`pinned_array`](Self::pinned_array).
    pub fn mapped_array<T: Element, S: IntoArraySpec>(
        &self,
        spec: S,
        options: MappedOptions,
    ) -> Result<MappedArray<T, S::Dim, B>> {
        let layout = layout_of::<T, S, B>("mapped_array", spec, self.core())?;
        require("mapped_array", self.capabilities().mapped, "mapped memory", self.core())?;
        HostArray::allocate(self, "mapped_array", layout, MemoryKind::Mapped(options))
    }

    /// Creates an array of zeros that migrates between host and device.
    /// ```
    /// # use gpumem_core::Attach; let device = gpumem_runtime::Device::<gpumem_host::Host>::open("host")?;
    /// let mut managed = device.managed_array::<f32, _>(1000, Attach::Global)?;
    /// managed.view_mut()?.fill(1.0); // by the host
    /// managed.device_view_mut().fill(2.0)?; // by the device
    /// assert_eq!(managed.view()?[0], 2.0);
    /// # Ok::<(), gpumem_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns [`Unsupported`](gpumem_core::ErrorKind::Unsupported) if
    /// [`Capabilities::managed`](gpumem_core::Capabilities::managed) is false. Otherwise as
    /// [`pinned_array`](Self::pinned_array).
    pub fn managed_array<T: Element, S: IntoArraySpec>(
        &self,
        spec: S,
        attach: Attach,
    ) -> Result<ManagedArray<T, S::Dim, B>> {
        let layout = layout_of::<T, S, B>("managed_array", spec, self.core())?;
        require("managed_array", self.capabilities().managed, "managed memory", self.core())?;
        HostArray::allocate(self, "managed_array", layout, MemoryKind::Managed(attach))
    }
}

/// Refuses a kind of memory that the device does not have.
pub(super) fn require<B: Backend>(
    operation: &'static str,
    has: bool,
    what: &'static str,
    core: &DeviceCore<B>,
) -> Result<()> {
    if has { Ok(()) } else { Err(core.error(operation, ErrorKind::Unsupported { what })) }
}

pub(super) fn layout_of<T: Element, S: IntoArraySpec, B: Backend>(
    operation: &'static str,
    spec: S,
    core: &DeviceCore<B>,
) -> Result<Layout> {
    spec.into_spec().layout(size_of::<T>()).map_err(|error| core.error(operation, error))
}
