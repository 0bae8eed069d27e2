//! Constant arrays in a module's constant memory, written in stream order.

use super::{Argument, ArgumentCollector, In};
use crate::{ConstantArray, source::CONSTANT_ALIGN as ALIGN};
use gpumem_core::{
    Backend, DriverModule, Element, Error, ErrorKind, LayoutError, MemoryInfo, NotRecorded, Result,
};
use gpumem_runtime::{
    Device, Layout, Order, ToDevice,
    internal::{Access, Allocation, AllocationRef, ArrayRef, StagedBytes, Timeline, may_block},
};
use parking_lot::{Mutex, MutexGuard};
use smallvec::SmallVec;
use std::{fmt, sync::Arc};

const OPERATION: &str = "launch";
/// The name of the memory in the prelude.
const NAME: &str = "gpumem_constant_memory";

/// The constant memory of one module: all launches of its kernel share it, so that it is an allocation like any other,
/// which launches read and copies write.
pub(crate) struct Constants<B: Backend> {
    memory: AllocationRef<B>,
    /// Its contents after all enqueued work; `None` if they are not known.
    written: Mutex<Option<Vec<u8>>>,
}

impl<B: Backend> Constants<B> {
    /// That of a loaded program, which `kernel` keeps loaded.
    pub(crate) fn of_module(device: &Device<B>, module: &B::Module, kernel: &B::Kernel) -> Result<Self> {
        let (address, bytes) = device.core_by(crate::KEY).note_loss(module.variable(NAME))?;
        Ok(Self::over(Allocation::foreign_by(crate::KEY, device, address, bytes, Box::new(kernel.clone()))))
    }

    /// Ordinary memory, where kernels are functions of the host.
    pub(crate) fn on_host(device: &Device<B>, bytes: usize) -> Result<Self> {
        Ok(Self::over(Allocation::new_by(crate::KEY, device, "load", bytes, ALIGN)?))
    }

    fn over(memory: AllocationRef<B>) -> Self {
        Self { memory, written: Mutex::new(None) }
    }

    fn lock(&self) -> Result<MutexGuard<'_, Option<Vec<u8>>>> {
        match self.written.try_lock() {
            Some(written) => Ok(written),
            None => {
                // Who has the lock may wait for the body of a kernel: none waits for it.
                may_block(OPERATION)?;
                Ok(self.written.lock())
            }
        }
    }

    /// Whether the contents begin with these bytes.
    fn has(&self, contents: &Option<Vec<u8>>, bytes: &[u8]) -> bool {
        contents.as_ref().is_some_and(|contents| contents.starts_with(bytes))
            && !self.memory.is_poisoned(&(0..bytes.len()))
    }
}

/// The constant arrays of one launch, side by side.
pub(crate) struct ConstantUpload<'a, B: Backend> {
    constants: Option<&'a Constants<B>>,
    /// `None` while there are none, as in most launches.
    bytes: Option<Vec<u8>>,
}

impl<'a, B: Backend> ConstantUpload<'a, B> {
    #[inline]
    pub(crate) fn new(constants: Option<&'a Constants<B>>) -> Self {
        Self { constants, bytes: None }
    }

    /// Takes up an array. Its address, and its place in the memory.
    fn add(&mut self, elements: &[u8]) -> Result<(u64, u64)> {
        let Some(constants) = self.constants else {
            let what = "constant arrays of a kernel that was declared without any";
            return Err(Error::new("", OPERATION, ErrorKind::Unsupported { what }));
        };
        let bytes = self.bytes.get_or_insert_default();
        let (place, total) = (bytes.len().next_multiple_of(ALIGN), constants.memory.len());
        if place.checked_add(elements.len()).is_none_or(|end| end > total) {
            let (free, requested) = (total.saturating_sub(place), elements.len());
            let kind = ErrorKind::out_of_memory(requested, "constant", MemoryInfo { free, total });
            return Err(Error::new("", OPERATION, kind));
        }
        let needs = place + elements.len() - bytes.len();
        if bytes.try_reserve(needs).is_err() {
            let kind = ErrorKind::out_of_memory(needs, "host", MemoryInfo { free: 0, total: 0 });
            return Err(Error::new("", OPERATION, kind));
        }
        bytes.resize(place, 0);
        bytes.extend_from_slice(elements);
        Ok((constants.memory.address() + place as u64, place as u64))
    }

    /// Whether there are none.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.is_none()
    }

    /// The contents to write, if any.
    pub(crate) fn fill(&mut self) -> Option<ConstantWrite<'a, B>> {
        let bytes = self.bytes.take_if(|bytes| !bytes.is_empty())?;
        Some(ConstantWrite { constants: self.constants?, bytes })
    }
}

/// The constant memory that a launch needs.
pub(crate) struct ConstantWrite<'a, B: Backend> {
    constants: &'a Constants<B>,
    bytes: Vec<u8>,
}

impl<'a, B: Backend> ConstantWrite<'a, B> {
    /// Writes it in stream order, unless it is there already, and adds the launch's use of it. While the guard lives,
    /// no other launch writes it.
    pub(crate) fn write(
        self,
        device: &Device<B>,
        timeline: &Arc<Timeline<B>>,
        accesses: &mut SmallVec<[Access<'a, B>; 8]>,
    ) -> Result<WrittenConstants<'a, B>> {
        let Self { constants, bytes } = self;
        accesses.push(Access::read(&constants.memory, 0..bytes.len()));
        let contents = constants.lock()?;
        if constants.has(&contents, &bytes) {
            return Ok(WrittenConstants { _contents: contents, _staged: None });
        }
        drop(contents);
        // Not under the lock: the memory may be the user's, whose code may launch this kernel.
        let staged = StagedBytes::new(crate::KEY, device, OPERATION, &bytes)?;
        let layout =
            Layout::packed(&[bytes.len()], 1, Order::C).map_err(|error| Error::new("", OPERATION, error))?;
        let mut contents = constants.lock()?;
        if !constants.has(&contents, &bytes) {
            // If it fails half-way, the contents are unknown.
            *contents = None;
            staged.send(crate::KEY, timeline, OPERATION, ArrayRef::new(&constants.memory, &layout))?;
            *contents = Some(bytes);
        }
        Ok(WrittenConstants { _contents: contents, _staged: Some(staged) })
    }
}

/// Constant memory that a launch is about to read, and no other one writes meanwhile.
pub(crate) struct WrittenConstants<'a, B: Backend> {
    _contents: MutexGuard<'a, Option<Vec<u8>>>,
    /// Dropped after the lock.
    _staged: Option<StagedBytes<B>>,
}

impl<T: Element, const N: usize, B: Backend, S: ToDevice<B, Elem = T>> Argument<ConstantArray<T, N>, B>
    for In<S>
{
    fn collect<'a>(&'a mut self, to: &mut ArgumentCollector<'a, B>) -> Result<()> {
        const {
            assert!(align_of::<T>() <= ALIGN, "elements of constant arrays are aligned to at most 16 bytes");
        }
        let timeline = to.host.timeline();
        if timeline.is_recording() {
            return Err(timeline.context.not_recordable(OPERATION, NotRecorded::ConstantArray));
        }
        let source = self.0.source();
        let layout = source.layout(OPERATION)?.like();
        if layout.ndim() != N {
            let error = LayoutError::RankMismatch { found: layout.ndim(), expected: N };
            return Err(Error::new("", OPERATION, error));
        }
        let (address, place) = match layout.is_empty() {
            true => (0, 0),
            false => {
                let packed = source.packed(timeline, to.host.device(), OPERATION, &layout)?;
                let elements = packed.as_slice_memory_order().unwrap_or_default();
                to.constants.add(bytemuck::cast_slice(elements))?
            }
        };
        let mut words: SmallVec<[u64; 16]> = SmallVec::from_slice(&[address, place]);
        words.extend(layout.shape().iter().map(|extent| *extent as u64));
        words.extend(layout.strides().iter().map(|stride| *stride as u64));
        to.bytes(bytemuck::cast_slice(&words))
    }
}

impl<B: Backend> fmt::Debug for ConstantUpload<'_, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Packed")
            .field("bytes", &self.bytes.as_ref().map_or(0, Vec::len))
            .finish_non_exhaustive()
    }
}
