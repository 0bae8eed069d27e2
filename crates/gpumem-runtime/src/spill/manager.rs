//! The arrays of one device that may leave it, as their user has them.

use super::{
    Spillable,
    options::{SpillOptions, SpillOrder},
    shared::{Manager, SpillReport},
};
use crate::{Device, DeviceArray, FileView, Stream};
use gpumem_core::{Backend, Element, Error, NotRecorded, Result, SpillPressure};
use ndarray::Dimension;
use std::{
    cmp::Reverse,
    collections::BTreeMap,
    fmt,
    panic::{RefUnwindSafe, UnwindSafe},
    sync::Arc,
};

/// Arrays of one device that leave it when its memory is short, and come back when they are used: for programs whose data is larger
/// than the device. Clones are the same manager.
///
/// When any allocation on the device finds no memory, arrays of the manager are copied to page-locked memory and
/// their own is freed, in the [order](SpillOrder) of the options, until the allocation can be served. The copies are enqueued behind
/// the work that uses the arrays, and the allocated memory is used after them, so no thread waits. Where the driver alone says that
/// the device is full, each such allocation asks it in vain first: set a
/// [limit](crate::memory::LimitingResource) below the device's size.
///
/// An array stays while a view of it exists, while it is lent to another library, and while its page-locked copy would exceed
/// [`host_bytes`](SpillOptions::host_bytes).
/// ```
/// # use gpumem_runtime::{SpillManager, SpillOptions, memory::LimitingResource};
/// # let device = gpumem_runtime::Device::<gpumem_host::Host>::open("host")?;
/// # let kind = gpumem_core::MemoryKind::Device;
/// let limit = LimitingResource::new(device.memory_resource(kind)?, 10 << 20);
/// device.set_memory_resource(kind, std::sync::Arc::new(limit))?;
///
/// let (spilling, stream) = (SpillManager::new(&device, SpillOptions::new())?, device.stream()?);
/// let mut layers = Vec::new();
/// for layer in 0..5 {
///     let weights = device.to_device(&vec![layer as f32; 1 << 20])?; // 4 MiB each, 20 MiB in all
///     layers.push(spilling.add(weights).map_err(|(_, error)| error)?);
/// }
/// for (layer, weights) in layers.iter().enumerate() {
///     assert_eq!(weights.get(&stream)?.get(7)?, layer as f32);
/// }
/// assert!(spilling.report().device_bytes <= 10 << 20);
/// # Ok::<(), gpumem_core::Error>(())
/// ```
pub struct SpillManager<B: Backend>(Arc<Manager<B>>);

/// What [`SpillManager::sleep`] has done.
#[derive(Debug)]
#[non_exhaustive]
pub struct Slept {
    /// Bytes of the arrays that have left the device.
    pub evicted: usize,
    /// Bytes that have gone back to the driver.
    pub returned: usize,
    /// Bytes of the arrays that stay, because a view of them exists, because they are lent, or for [`error`](Self::error).
    pub kept: usize,
    /// The names of these arrays, with the bytes of each name, the largest first. Arrays without a name are left out.
    pub kept_names: Vec<(Arc<str>, usize)>,
    /// The first error of an array that stays for it.
    pub error: Option<Error>,
}

impl<B: Backend> SpillManager<B> {
    /// Returns a manager without arrays.
    ///
    /// # Errors
    /// Returns [`Driver`](gpumem_core::ErrorKind::Driver) if a stream cannot be made, [`NotRecordable`](gpumem_core::ErrorKind::NotRecordable) for the device of
    /// the recording of a graph, and otherwise as [`Device::on_exhaustion`](Device::on_exhaustion).
    pub fn new(device: &Device<B>, options: SpillOptions) -> Result<Self> {
        if device.recording().is_some() {
            return Err(device.core().not_recordable("new", NotRecorded::Spilling));
        }
        Ok(Self(Manager::new(device, options)?))
    }

    /// Takes an array in, which may leave the device from now on. Its strides are kept.
    ///
    /// # Errors
    /// Returns the array with the error: [`WrongDevice`](gpumem_core::ErrorKind::WrongDevice) if it is on another device,
    /// [`OfRecording`](gpumem_core::ErrorKind::OfRecording) for an array of a recording, and [`Stale`](gpumem_core::ErrorKind::Stale) after a reset.
    #[allow(clippy::result_large_err, clippy::type_complexity)] // the array itself comes back
    pub fn add<T: Element, D: Dimension>(
        &self,
        array: DeviceArray<T, D, B>,
    ) -> std::result::Result<Spillable<T, D, B>, (DeviceArray<T, D, B>, Error)> {
        match self.check(&array) {
            Ok(()) => Ok(Spillable::resident(&self.0, array)),
            Err(error) => Err((array, error)),
        }
    }

    fn check<T: Element, D: Dimension>(&self, array: &DeviceArray<T, D, B>) -> Result<()> {
        const OPERATION: &str = "add";
        array.memory.check(OPERATION)?;
        self.0.device().core().check_same(OPERATION, "array", array.memory.context())
    }

    /// An array that is read from its file when it is used, and read again after it has left the device, unless it was written: it
    /// takes no page-locked memory, and nothing is copied when it leaves. Nothing is read here.
    ///
    /// # Errors
    /// Returns [`ForkedChild`](gpumem_core::ErrorKind::ForkedChild) in a forked child. A file that has changed or cannot be read is an error of
    /// the use.
    pub fn open<T: Element, D: Dimension + 'static>(
        &self,
        source: FileView<T, D>,
    ) -> Result<Spillable<T, D, B>> {
        self.0.device().core().check_process("open")?;
        Ok(Spillable::in_file(&self.0, source))
    }

    /// Makes all arrays leave the device that can, and returns what was dropped and idle memory of the device to the driver: for a program that leaves the
    /// device to another one for a while. Waits for the work that uses the arrays. [`wake`](Self::wake) brings back the arrays that have left here; each use brings back its own.
    ///
    /// # Errors
    /// As for [`Device::flush`]. An array that cannot leave is no error: see [`Slept`].
    pub fn sleep(&self) -> Result<Slept> {
        const OPERATION: &str = "sleep";
        self.0.device().core().check_process(OPERATION)?;
        let (mut evicted, mut first_error) = (0, None);
        let cells = self.0.sorted(SpillOrder::LeastRecent);
        for cell in &cells {
            match cell.put_to_sleep(OPERATION) {
                Ok(bytes) => evicted += bytes,
                Err(error) => first_error = first_error.or(Some(error)),
            }
        }
        // Memory of a resource that does not recycle waits in the queue.
        let returned = self.0.device().give_back(OPERATION)?;
        let mut names = BTreeMap::<Arc<str>, usize>::new();
        for cell in cells {
            let SpillPressure { evictable_bytes, pinned_bytes, .. } = cell.pressure();
            if let (Some(name), 1..) = (cell.name(), evictable_bytes + pinned_bytes) {
                *names.entry(name.clone()).or_default() += evictable_bytes + pinned_bytes;
            }
        }
        let mut kept_names: Vec<_> = names.into_iter().collect();
        kept_names.sort_by_key(|(_, bytes)| Reverse(*bytes));
        Ok(Slept { evicted, returned, kept: self.report().device_bytes, kept_names, error: first_error })
    }

    /// Brings back the arrays that have left by [`sleep`](Self::sleep) and have not been used since, the one that was used last first.
    /// The copies are enqueued on `stream`. Returns their bytes.
    ///
    /// # Errors
    /// Returns the first error of [`Spillable::get`]. The arrays after it stay where they are.
    pub fn wake(&self, stream: &Stream<B>) -> Result<usize> {
        const OPERATION: &str = "wake";
        self.0.device().core().check_process(OPERATION)?;
        let mut bytes = 0;
        for cell in self.0.sorted(SpillOrder::MostRecent) {
            bytes += cell.wake(OPERATION, stream)?;
        }
        Ok(bytes)
    }

    /// Returns the bytes of the arrays.
    pub fn report(&self) -> SpillReport {
        self.0.report()
    }
}

// As a device.
impl<B: Backend> UnwindSafe for SpillManager<B> {}
impl<B: Backend> RefUnwindSafe for SpillManager<B> {}

impl<B: Backend> Clone for SpillManager<B> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<B: Backend> fmt::Debug for SpillManager<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SpillManager")
            .field("options", &self.0.options())
            .field("report", &self.report())
            .finish_non_exhaustive()
    }
}
