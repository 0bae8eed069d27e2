//! Arrays that several processes on one machine share.
//!
//! One process exports an array and sends the [`IpcArrayHandle`] to another one, which opens it as a [`IpcArray`].
//! Neither process knows how the other uses the memory, so a shared mapping has its own type: safe code only gets
//! copies of its elements ([`IpcArray::snapshot`]), and never a reference to them (law 4).

use crate::{
    ArrayBase, Device, DeviceArray, IntoArraySpec, Layout, Storage, ToDevice, UninitArray,
    device::{Allocation, exported},
    frozen,
};
use gpumem_core::{
    Backend, DriverDevice, Element, Error, ErrorKind, HostAccess, IpcMemory, LayoutError, Result,
};
use ndarray::{Array, Dimension};
use std::{fmt, marker::PhantomData};

/// Where another process finds an array: memory, shape and strides. Plain data, to be sent as
/// [bytes](Self::to_bytes).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IpcArrayHandle<T, D> {
    memory: IpcMemory,
    shape: Vec<usize>,
    strides: Vec<isize>,
    /// From the first shared byte to element `[0, 0, ..]`.
    offset: usize,
    marker: PhantomData<fn() -> (T, D)>,
}

/// What bytes end with, so that others are not taken for them (FNV-1a).
fn check_word(bytes: &[u8]) -> [u8; 8] {
    let mix = |word: u64, byte: &u8| (word ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, mix).to_le_bytes()
}

impl<T: Element, D: Dimension> IpcArrayHandle<T, D> {
    /// Makes a handle of one of the driver's that another library has sent. `layout` says where the elements lie from the first
    /// shared byte on.
    ///
    /// # Errors
    /// Returns [`InvalidArgument`](gpumem_core::ErrorKind::InvalidArgument) for a layout of elements of another size, or of
    /// another rank.
    pub fn from_parts(memory: IpcMemory, layout: &Layout) -> Result<Self> {
        let fail = |why| Err(Error::new("", "IpcArray::from_parts", ErrorKind::InvalidArgument { why }));
        if layout.item() != size_of::<T>() {
            return fail("the elements are of another size");
        }
        if D::NDIM.is_some_and(|expected| expected != layout.ndim()) {
            return fail("the array is of another rank");
        }
        let (shape, strides) = (layout.shape().to_vec(), layout.strides().to_vec());
        Ok(Self { memory, shape, strides, offset: layout.offset(), marker: PhantomData })
    }

    /// The driver's handle, with the part of the allocation that the array takes.
    pub fn memory(&self) -> &IpcMemory {
        &self.memory
    }

    /// Lengths of the axes.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Bytes from one element to the next along each axis.
    pub fn strides(&self) -> &[isize] {
        &self.strides
    }

    /// The same as bytes (little-endian), for a pipe or a file.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = self.memory.to_bytes().to_vec();
        let head = [size_of::<T>(), self.offset, self.shape.len()].map(|word| word as i64);
        let axes = self.shape.iter().map(|length| *length as i64);
        let words = head.into_iter().chain(axes).chain(self.strides.iter().map(|stride| *stride as i64));
        bytes.extend(words.flat_map(i64::to_le_bytes));
        bytes.extend(check_word(&bytes));
        bytes
    }

    /// Reads the bytes that [`to_bytes`](Self::to_bytes) returned. Opening checks the range of the layout.
    ///
    /// # Errors
    /// Returns [`InvalidArgument`](gpumem_core::ErrorKind::InvalidArgument) for bytes that were cut or changed on their way, of
    /// elements of another size, or of another rank.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let fail = |why| Error::new("", "IpcArray::from_bytes", ErrorKind::InvalidArgument { why });
        let whole = bytes.split_last_chunk::<8>().filter(|(bytes, word)| check_word(bytes) == **word);
        let (bytes, _) = whole.ok_or_else(|| fail("the bytes were cut or changed on their way"))?;
        let (memory, words) = bytes
            .split_first_chunk::<{ IpcMemory::ENCODED_LEN }>()
            .ok_or_else(|| fail("there are fewer bytes than an exported array has"))?;
        let (words, rest) = words.as_chunks::<8>();
        let words: Vec<i64> = words.iter().map(|word| i64::from_le_bytes(*word)).collect();
        let [item, offset, rank, axes @ ..] = &words[..] else {
            return Err(fail("there are fewer bytes than an exported array has"));
        };
        let ndim = usize::try_from(*rank).map_err(|_| fail("the rank is negative"))?;
        if !rest.is_empty() || ndim.checked_mul(2) != Some(axes.len()) {
            return Err(fail("the length does not fit the rank"));
        }
        if usize::try_from(*item) != Ok(size_of::<T>()) {
            return Err(fail("the elements are of another size"));
        }
        if D::NDIM.is_some_and(|expected| expected != ndim) {
            return Err(fail("the array is of another rank"));
        }
        let (shape, strides) = axes.split_at(ndim);
        let lengths = shape.iter().map(|length| usize::try_from(*length)).collect::<Result<_, _>>();
        let strides = strides.iter().map(|stride| isize::try_from(*stride)).collect::<Result<_, _>>();
        Ok(Self {
            memory: IpcMemory::from_bytes(memory),
            shape: lengths.map_err(|_| fail("a length is negative"))?,
            strides: strides.map_err(|_| fail("a stride is too long"))?,
            offset: usize::try_from(*offset).map_err(|_| fail("the offset is negative"))?,
            marker: PhantomData,
        })
    }
}

impl<S: Storage, D: Dimension> ArrayBase<S, D> {
    /// Describes the array, or the part that a view shows, so that another process on this machine can open it. Waits
    /// for work that writes it. Numba's `get_ipc_handle`.
    ///
    /// # Safety
    /// * The memory stays alive, here, for as long as another process has it open. The other process sees the whole
    ///   allocation: of a view, all of the array.
    /// * The two processes order their accesses to it themselves.
    ///
    /// # Errors
    /// Returns [`Unsupported`](gpumem_core::ErrorKind::Unsupported) if the backend shares no memory between
    /// processes. Returns [`InvalidArgument`](gpumem_core::ErrorKind::InvalidArgument) for an array without elements,
    /// for memory that is not the device's, for memory that may only be read, and for an array in a pool: the other
    /// process would see all that shares its piece of memory, so make the array with [`Device::ipc_array`]. Returns
    /// [`Driver`](gpumem_core::ErrorKind::Driver) if the driver reports a failure.
    pub unsafe fn ipc_handle(&self) -> Result<IpcArrayHandle<S::Elem, D>> {
        const OPERATION: &str = "export";
        let extent = self.layout.extent();
        if extent.is_empty() {
            let why = "an array without elements has no memory to share";
            return Err(self.memory.core().error(OPERATION, ErrorKind::InvalidArgument { why }));
        }
        if self.memory.is_owned() && !self.memory.is_alone() {
            let why =
                "the array is in a pool, whose other arrays would be shared as well: make it with ipc_array";
            return Err(self.memory.core().error(OPERATION, ErrorKind::InvalidArgument { why }));
        }
        if self.memory.is_read_only() || frozen::find(self.memory.id()).is_some() {
            let why = "the memory may only be read, and the other process could write it: share a copy";
            return Err(self.memory.core().error(OPERATION, ErrorKind::InvalidArgument { why }));
        }
        gpumem_memory::may_block(OPERATION)?;
        self.memory.show_to_host(OPERATION, &extent, HostAccess::Read)?;
        let core = self.memory.core();
        let start = self.memory.address().wrapping_add(extent.start as u64);
        // SAFETY: the range is that of this array, which is alive; for later the caller vouches.
        let memory = unsafe { core.raw.export_memory(start, extent.len()) };
        let memory = core.note_loss(memory).map_err(|error| error.in_operation(OPERATION))?;
        if self.memory.is_owned() {
            // Others may write it from here on, so it is not frozen.
            self.memory.note_exported();
            exported::note(self.memory.id(), *memory.handle());
        }
        Ok(IpcArrayHandle {
            memory,
            shape: self.shape().to_vec(),
            strides: self.strides().to_vec(),
            offset: self.layout.offset() - extent.start,
            marker: PhantomData,
        })
    }
}

impl<B: Backend> Device<B> {
    /// Creates an array of zeros that may be [exported](ArrayBase::ipc_handle). Its memory comes from the driver and
    /// not from a pool, so that another process sees no other memory. It takes whole pages of 2 MiB, because a driver
    /// puts several small blocks into one. Creating it is as slow as the driver is; dropping it leaves it to the
    /// deferred queue.
    /// ```
    /// # let device = gpumem_runtime::Device::<gpumem_host::Host>::open("host")?;
    /// let array = device.ipc_array::<f32, _>(1000)?;
    /// // SAFETY: the array outlives the use by the other process, and the two take turns.
    /// match unsafe { array.ipc_handle() } {
    ///     Ok(handle) => println!("{:?}", handle.to_bytes()), // the other process: `from_bytes`, `open_ipc`
    ///     Err(error) => println!("{error}"), // this backend shares no memory
    /// }
    /// # Ok::<(), gpumem_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`device_array`](Self::device_array).
    pub fn ipc_array<T: Element, S: IntoArraySpec>(&self, spec: S) -> Result<DeviceArray<T, S::Dim, B>> {
        UninitArray::exportable(self, "ipc_array", spec.into_spec())
    }

    /// Opens an array of another process. Dropping the result closes it, once its last use here is over. Numba's
    /// `open_ipc_array`.
    ///
    /// # Safety
    /// * The array was exported by another process that keeps it alive, from a device of the same kind.
    /// * The two processes order their accesses to it themselves.
    ///
    /// # Errors
    /// Returns [`Unsupported`](gpumem_core::ErrorKind::Unsupported) if the backend shares no memory between
    /// processes. Returns [`InvalidArgument`](gpumem_core::ErrorKind::InvalidArgument) if this process has exported the array, and
    /// if the one that has is gone. Returns [`OutOfBuffer`](gpumem_core::LayoutError::OutOfBuffer) or
    /// [`SelfOverlap`](gpumem_core::LayoutError::SelfOverlap) if the layout leaves the memory or overlaps itself, and
    /// [`Driver`](gpumem_core::ErrorKind::Driver) if the driver reports a failure.
    pub unsafe fn open_ipc<T: Element, D: Dimension>(
        &self,
        array: &IpcArrayHandle<T, D>,
    ) -> Result<IpcArray<T, D, B>> {
        const OPERATION: &str = "open_ipc";
        self.core().check(OPERATION)?;
        let fail = |error| self.core().error(OPERATION, error);
        let layout = Layout::strided(&array.shape, &array.strides, size_of::<T>())
            .and_then(|layout| layout.with_offset(array.offset))
            .map_err(fail)?;
        if layout.has_self_overlap() {
            // An array may be written, other than a view that is broadcast.
            let (shape, strides) = (array.shape.clone(), array.strides.clone());
            return Err(fail(LayoutError::SelfOverlap { shape, strides }));
        }
        layout.fits(array.memory.len()).map_err(fail)?;
        layout.check_alignment(align_of::<T>()).map_err(fail)?;
        if exported::is_own(array.memory.handle()) {
            // Some drivers open it once more, at another address: no work on one would wait for work on the other.
            let why = "the array was exported by this process: use the array itself, or a view of it";
            return Err(self.core().error(OPERATION, ErrorKind::InvalidArgument { why }));
        }
        // SAFETY: the caller's promise.
        let memory =
            Allocation::opened(self, OPERATION, || unsafe { self.raw().open_memory(&array.memory) })?;
        crate::array::check_address::<T, B>(self.core(), OPERATION, memory.address())?;
        Ok(IpcArray(ArrayBase::over(memory, layout)))
    }
}

/// An array of another process, mapped into this one. The other process may change it at any time, so its elements are
/// copied out and in, and never lent.
#[must_use = "the memory is unmapped when this is dropped"]
pub struct IpcArray<T: Element, D: Dimension, B: Backend>(DeviceArray<T, D, B>);

impl<T: Element, D: Dimension, B: Backend> IpcArray<T, D, B> {
    /// Lengths of the axes.
    pub fn shape(&self) -> &[usize] {
        self.0.shape()
    }

    /// Shape and strides.
    pub fn layout(&self) -> &Layout {
        self.0.layout()
    }

    /// Copies the elements as they are now into an array of this process.
    ///
    /// # Errors
    /// As for [`Device::to_device`].
    pub fn snapshot(&self) -> Result<DeviceArray<T, D, B>> {
        self.0.try_clone()
    }

    /// Copies the elements as they are now into memory of the host.
    ///
    /// # Errors
    /// As for [`ArrayBase::copy_to_host`].
    pub fn copy_to_host(&self) -> Result<Array<T, D>> {
        self.0.copy_to_host()
    }

    /// Copies elements into the array, for the other process to see.
    ///
    /// # Errors
    /// As for [`ArrayBase::copy_to_device`].
    pub fn copy_to_device<Src>(&mut self, source: &Src) -> Result<()>
    where
        Src: ToDevice<B, Elem = T, Dim = D> + ?Sized,
    {
        self.0.copy_to_device(source).map(drop)
    }

    /// The mapping as an ordinary array, for kernels and views.
    ///
    /// # Safety
    /// The other process changes nothing of it as long as the result is used, and reads nothing that is written here.
    pub unsafe fn into_array(self) -> DeviceArray<T, D, B> {
        self.0
    }
}

impl<T: Element, D: Dimension, B: Backend> fmt::Debug for IpcArray<T, D, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("IpcArray").field(&self.0).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::{Ix1, Ix2, IxDyn};

    /// The memory, followed by the size of an element, the offset and the rank.
    const HEAD: usize = IpcMemory::ENCODED_LEN + 3 * 8;

    fn sample() -> IpcArrayHandle<f32, Ix2> {
        let memory = IpcMemory::new([7; 64], 256, 96);
        IpcArrayHandle { memory, shape: vec![3, 4], strides: vec![32, -8], offset: 24, marker: PhantomData }
    }

    #[test]
    fn handles_survive_serialisation() {
        let bytes = sample().to_bytes();
        assert_eq!(bytes.len(), HEAD + 4 * 8 + 8);
        assert_eq!(IpcArrayHandle::from_bytes(&bytes), Ok(sample()));
        assert_eq!(IpcArrayHandle::<f32, IxDyn>::from_bytes(&bytes).unwrap().strides(), [32, -8]);
        let layout = Layout::strided(&[3, 4], &[32, -8], 4).unwrap().with_offset(24).unwrap();
        assert_eq!(IpcArrayHandle::from_parts(*sample().memory(), &layout), Ok(sample()));
        assert!(IpcArrayHandle::<f64, Ix2>::from_parts(*sample().memory(), &layout).is_err());
        assert!(IpcArrayHandle::<f32, Ix1>::from_parts(*sample().memory(), &layout).is_err());
    }

    #[test]
    fn bytes_that_were_changed_are_refused() {
        let bytes = sample().to_bytes();
        for at in 0..bytes.len() {
            for bit in 0..8 {
                let mut changed = bytes.clone();
                changed[at] ^= 1 << bit;
                assert!(
                    IpcArrayHandle::<f32, IxDyn>::from_bytes(&changed).is_err(),
                    "bit {bit} of byte {at}"
                );
            }
        }
        assert!(IpcArrayHandle::<f32, IxDyn>::from_bytes(&[&bytes[..], &[0; 8]].concat()).is_err());
    }

    #[test]
    fn layouts_that_do_not_fit_are_refused() {
        let bytes = sample().to_bytes();
        for length in 0..bytes.len() {
            assert!(IpcArrayHandle::<f32, Ix2>::from_bytes(&bytes[..length]).is_err(), "{length} bytes");
        }
        assert!(IpcArrayHandle::<f64, Ix2>::from_bytes(&bytes).is_err(), "elements of another size");
        assert!(IpcArrayHandle::<f32, Ix1>::from_bytes(&bytes).is_err(), "another rank");
        let with = |range: std::ops::Range<usize>, word: i64| {
            let mut bytes = bytes[..bytes.len() - 8].to_vec();
            bytes[range].copy_from_slice(&word.to_le_bytes());
            bytes.extend(check_word(&bytes));
            bytes
        };
        assert!(
            IpcArrayHandle::<f32, Ix2>::from_bytes(&with(HEAD..HEAD + 8, -1)).is_err(),
            "a negative length"
        );
        let endless = with(HEAD - 8..HEAD, i64::MAX);
        assert!(IpcArrayHandle::<f32, IxDyn>::from_bytes(&endless).is_err(), "a rank without end");
    }
}
