//! Arrays that are larger than a device, in chunks of rows.
//!
//! * [`Device::chunks`] uploads one chunk after the other. Each is an ordinary array, and the [access
//!   log](gpumem_memory::track::AccessLog) of its memory orders the next upload into it after the work on it.
//! * [`map`]: upload, work and download side by side.

mod map;

use crate::{
    ArrayBase, Device, DeviceArray, Source, Stream, ToDevice,
    array::rows,
    device::{Allocation, AllocationRef},
    layout::Layout,
    transfer::{ArrayRef, Upload},
};
use gpumem_core::{Backend, Element, LayoutError, Result};
use ndarray::Dimension;
use std::{collections::VecDeque, fmt, iter::FusedIterator, ops::Range};

/// Chunks whose memory is reused: one is uploaded while a second one is worked on and a third one is downloaded.
const KEPT: usize = 3;

/// How an array is cut into chunks: [`Device::chunks`], [`Device::map_chunks`].
///
/// An array whose rows have no bytes, because another axis has length 0, is one chunk: its rows are not bounded by any memory, and
/// may be too many to count up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chunks {
    size: Size,
    halo: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Size {
    /// Most bytes of the array of a chunk.
    Bytes(usize),
    /// Rows of a chunk, without its halo.
    Rows(usize),
}

impl Chunks {
    /// Chunks of at most `bytes` bytes on the device, with their [halo](Self::halo). A chunk has one row at least, however long that
    /// is.
    #[must_use]
    pub fn bytes(bytes: usize) -> Self {
        Self { size: Size::Bytes(bytes), halo: 0 }
    }

    /// Chunks of `rows` rows each; the last may be shorter.
    #[must_use]
    pub fn rows(rows: usize) -> Self {
        Self { size: Size::Rows(rows), halo: 0 }
    }

    /// Adds `rows` rows before and after each chunk to its array, or as many as there are. For operations that read neighbours.
    /// ```
    /// # use gpumem_runtime::Chunks; let device = gpumem_runtime::Device::<gpumem_host::Host>::open("host")?;
    /// for chunk in device.chunks(&[0, 1, 2, 3, 4, 5, 6], Chunks::rows(3).halo(1))? {
    ///     let (rows, array) = chunk?;
    ///     let first = rows.start.saturating_sub(1); // of the array
    ///     assert_eq!(array.get(rows.start - first)?, rows.start);
    ///     assert_eq!(array.len(), (rows.end + 1).min(7) - first);
    /// }
    /// # Ok::<(), gpumem_core::Error>(())
    /// ```
    #[must_use]
    pub fn halo(mut self, rows: usize) -> Self {
        self.halo = rows;
        self
    }

    /// Rows of a chunk without its halo, at least one, of so many rows.
    fn rows_of_chunk(self, total: usize, row_bytes: usize) -> Result<usize, LayoutError> {
        match (self.size, row_bytes) {
            (Size::Rows(0), _) => Err(LayoutError::ZeroSection),
            (_, 0) => Ok(total.max(1)),
            (Size::Rows(rows), _) => Ok(rows),
            (Size::Bytes(bytes), _) => {
                let both = self.halo.saturating_mul(2);
                Ok((bytes / row_bytes).saturating_sub(both).max(1))
            }
        }
    }

    /// The rows in the array of a chunk, of `total` rows.
    fn with_halo(self, rows: &Range<usize>, total: usize) -> Range<usize> {
        rows.start.saturating_sub(self.halo)..rows.end.saturating_add(self.halo).min(total)
    }
}

impl<B: Backend> Device<B> {
    /// Returns an iterator over `source` in chunks along its first axis, each with its rows and with an array of this device that
    /// holds them: for sources that are larger than the device. The array is yours: use it on any stream, write to it, drop it at
    /// once, or keep it.
    ///
    /// The iterator uploads on a stream of its own, so the upload of one chunk overlaps the work on those before. It reuses the
    /// memory of three chunks: an upload comes after the work on the chunk that had the memory before, as after any other work that
    /// uses it. Memory of an array that is kept is not reused; the iterator allocates other memory for the next chunk.
    ///
    /// Sources are those of [`to_device`](Self::to_device), of one axis or more. A source without rows has no chunks, one whose rows
    /// have no bytes has one. Forgetting the iterator leaks the memory of three chunks.
    /// ```
    /// # use {gpumem_runtime::Chunks, ndarray::Array2};
    /// # let device = gpumem_runtime::Device::<gpumem_host::Host>::open("host")?;
    /// let host = Array2::from_elem((1000, 100), 2.0f32);
    /// let (stream, mut copy) = (device.stream()?, device.device_array::<f32, _>((1000, 100))?);
    /// for chunk in device.chunks(&host, Chunks::bytes(16 << 10))? {
    ///     let (rows, array) = chunk?;
    ///     stream.copy_to_device(&mut copy.slice_mut(ndarray::s![rows, ..])?, &array)?;
    /// }
    /// assert_eq!(copy.copy_to_host()?, host);
    /// # Ok::<(), gpumem_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns [`NoSuchAxis`](LayoutError::NoSuchAxis) for a source of rank 0, and [`ZeroSection`](LayoutError::ZeroSection) for
    /// chunks of 0 rows. The iterator ends after its first error: [`OutOfMemory`](gpumem_core::ErrorKind::OutOfMemory) if the device
    /// has no room for a chunk, otherwise as for [`Stream::copy_to_device`].
    pub fn chunks<'a, S>(&self, source: &'a S, options: Chunks) -> Result<ChunkIter<'a, S::Elem, S::Dim, B>>
    where
        S: ToDevice<B> + ?Sized,
    {
        ChunkIter::new(self, "chunks", source.source(), options)
    }
}

/// The chunks of an array, uploaded one after the other: [`Device::chunks`].
#[must_use = "nothing is uploaded before it is asked for"]
pub struct ChunkIter<'a, T: Element, D: Dimension, B: Backend> {
    source: Source<'a, T, D, B>,
    operation: &'static str,
    /// The stream of the uploads.
    stream: Stream<B>,
    options: Chunks,
    /// Rows of a chunk without its halo.
    step: usize,
    total: usize,
    /// Bytes of the longest chunk, with its halo: any chunk fits in the memory of any other.
    bytes: usize,
    rest: Range<usize>,
    /// The memory of the last chunks, the oldest first. Users may have it, too.
    kept: VecDeque<AllocationRef<B>>,
}

impl<'a, T: Element, D: Dimension, B: Backend> ChunkIter<'a, T, D, B> {
    fn new(
        device: &Device<B>,
        operation: &'static str,
        source: Source<'a, T, D, B>,
        options: Chunks,
    ) -> Result<Self> {
        let core = device.core();
        let layout = source.layout(operation).map_err(|error| core.place(error))?;
        let total = rows::row_count(&layout).map_err(|error| core.error(operation, error))?;
        let row_bytes = layout.packed_bytes().checked_div(total).unwrap_or(0);
        let step = options.rows_of_chunk(total, row_bytes).map_err(|error| core.error(operation, error))?;
        let longest = step.saturating_add(options.halo.saturating_mul(2)).min(total);
        let (bytes, stream) = (row_bytes.saturating_mul(longest), device.stream()?);
        let kept = VecDeque::new();
        Ok(Self { source, operation, stream, options, step, total, bytes, rest: 0..total, kept })
    }

    /// A chunk on its way to the device.
    fn upload(&mut self, rows: &Range<usize>) -> Result<DeviceArray<T, D, B>> {
        let operation = self.operation;
        let memory = self.memory()?;
        let core = self.stream.device().core();
        let part = self.source.rows(self.options.with_halo(rows, self.total));
        let part = part.map_err(|kind| core.error(operation, kind))?;
        let layout: Layout = part.layout(operation).map_err(|error| core.place(error))?.like();
        let place = ArrayRef::new(&memory, &layout);
        part.copy_to(self.stream.timeline(), operation, place, Upload::Staged)?;
        Ok(ArrayBase::over(memory, layout))
    }

    /// Memory for the next chunk.
    fn memory(&mut self) -> Result<AllocationRef<B>> {
        let is_full = self.kept.len() >= KEPT;
        // The work on the oldest one has had the longest time.
        let oldest = if is_full { self.kept.pop_front() } else { None };
        let reused = oldest.filter(Allocation::is_only_handle);
        let memory = match reused {
            Some(memory) => memory,
            None => {
                let device = self.stream.device();
                let align = device.capabilities().allocation_alignment.max(align_of::<T>());
                Allocation::new(device, self.operation, self.bytes, align)?
            }
        };
        self.kept.push_back(memory.clone());
        Ok(memory)
    }
}

impl<T: Element, D: Dimension, B: Backend> Iterator for ChunkIter<'_, T, D, B> {
    type Item = Result<(Range<usize>, DeviceArray<T, D, B>)>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let start = self.rest.start;
        let rows = start..self.rest.end.min(start.saturating_add(self.step));
        self.rest.start = rows.end;
        let chunk = self.upload(&rows);
        if chunk.is_err() {
            self.rest.start = self.rest.end;
        }
        if self.rest.is_empty() {
            // No other chunk needs the memory.
            self.kept.clear();
        }
        Some(chunk.map(|array| (rows, array)))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        // Fewer after an error.
        (usize::from(!self.rest.is_empty()), Some(self.rest.len().div_ceil(self.step)))
    }
}

impl<T: Element, D: Dimension, B: Backend> FusedIterator for ChunkIter<'_, T, D, B> {}

impl<T: Element, D: Dimension, B: Backend> fmt::Debug for ChunkIter<'_, T, D, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChunkIter")
            .field("rest", &self.rest)
            .field("step", &self.step)
            .field("bytes", &self.bytes)
            .finish_non_exhaustive()
    }
}
