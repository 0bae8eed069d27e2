//! Arrays in files, as sources of copies to a device.

use crate::{
    DataFile, DeviceArray, Progress, Source, Stream, ToDevice, UninitArray,
    array::rows,
    layout::{IntoArraySpec, Layout},
    transfer::{self, FileSide},
};
use gpumem_core::{Backend, Element, Error, ErrorKind, FileFailure, LayoutError, Result};
use ndarray::{Dimension, SliceArg};
use std::{
    fmt,
    marker::PhantomData,
    ops::{ControlFlow, Range},
};

/// An array in a file, whole or a part of one: a source of copies to a device. It reads what it needs, when it is copied.
pub struct FileView<T, D> {
    file: DataFile,
    start: u64,
    layout: Layout,
    of: PhantomData<fn() -> (T, D)>,
}

impl<T: Element, D: Dimension> FileView<T, D> {
    /// An array whose elements begin `offset` bytes into a file. Nothing is read, and elements need not be aligned.
    /// ```
    /// # use gpumem_runtime::{DataFile, FileView};
    /// # let device = gpumem_runtime::Device::<gpumem_host::Host>::open("host")?;
    /// # let path = std::env::temp_dir().join(format!("gpumem-{}.bin", std::process::id()));
    /// std::fs::write(&path, [0, 0, 1, 2, 3, 4]).unwrap();
    /// let file = DataFile::open(&path)?;
    /// let view = FileView::<u8, _>::new(&file, 2, (2, 2))?; // from byte 2 on, two rows of two
    /// assert_eq!(device.to_device(&view)?.copy_to_host()?, ndarray::array![[1, 2], [3, 4]]);
    /// # std::fs::remove_file(&path).unwrap();
    /// # Ok::<(), gpumem_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns [`File`](ErrorKind::File) if the file ends before the elements do, and [`TooLarge`](LayoutError::TooLarge) if they
    /// exceed `isize::MAX` bytes.
    pub fn new(file: &DataFile, offset: u64, spec: impl IntoArraySpec<Dim = D>) -> Result<Self> {
        const OPERATION: &str = "view";
        let layout =
            spec.into_spec().layout(size_of::<T>()).map_err(|error| Error::new("", OPERATION, error))?;
        let end = offset.saturating_add(layout.extent().end as u64);
        if end > file.len() {
            let error = file.error(FileFailure::Truncated { wanted: end, found: file.len() });
            return Err(Error::new("", OPERATION, Box::new(error)));
        }
        Ok(Self { file: file.clone(), start: offset, layout, of: PhantomData })
    }

    /// Lengths of the axes.
    pub fn shape(&self) -> &[usize] {
        self.layout.shape()
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.layout.len()
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.layout.is_empty()
    }

    /// Where the elements lie in the file, from [`start`](Self::start) on.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The byte of the file from which the [layout](Self::layout) counts.
    pub fn start(&self) -> u64 {
        self.start
    }

    /// The file.
    pub fn file(&self) -> &DataFile {
        &self.file
    }

    /// Returns a part, in ndarray's notation: `view.slice(s![1000..2000, ..;2])`. A copy of it reads the runs of its elements, with
    /// the bytes between them where these are at most three times as many.
    ///
    /// # Errors
    /// As for [`ArrayBase::slice`](crate::ArrayBase::slice).
    pub fn slice<I: SliceArg<D>>(&self, info: I) -> Result<FileView<T, I::OutDim>> {
        let layout = self
            .layout
            .slice(info.as_ref())
            .map_err(|error| Error::new("", "slice", ErrorKind::Layout(error)))?;
        Ok(self.with(layout))
    }

    /// The elements of some rows.
    pub(crate) fn rows(&self, rows: Range<usize>) -> Result<Self, LayoutError> {
        rows::of_layout(&self.layout, rows).map(|layout| self.with(layout))
    }

    /// Returns the array with its axes in reverse order.
    pub fn t(&self) -> Self {
        self.with(self.layout.reversed_axes())
    }

    /// Returns the array with another type for its rank.
    ///
    /// # Errors
    /// Returns [`RankMismatch`](LayoutError::RankMismatch) if the ranks differ.
    pub fn into_dimensionality<D2: Dimension>(self) -> Result<FileView<T, D2>> {
        match D2::NDIM {
            Some(expected) if expected != self.layout.ndim() => {
                let error = LayoutError::RankMismatch { found: self.layout.ndim(), expected };
                Err(Error::new("", "into_dimensionality", error))
            }
            _ => Ok(self.with(self.layout.clone())),
        }
    }

    /// The elements as the pipeline sees them, in this layout.
    pub(crate) fn side(&self, layout: Layout) -> FileSide<'_> {
        FileSide { file: &self.file, into: None, start: self.start, layout }
    }
}

impl<T, D> FileView<T, D> {
    fn with<D2>(&self, layout: Layout) -> FileView<T, D2> {
        FileView { file: self.file.clone(), start: self.start, layout, of: PhantomData }
    }
}

// Whatever the elements are.
impl<T, D> Clone for FileView<T, D> {
    fn clone(&self) -> Self {
        self.with(self.layout.clone())
    }
}

impl<T, D> fmt::Debug for FileView<T, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, start, layout, .. } = self;
        let shape = layout.shape();
        f.debug_struct("FileView")
            .field("path", &file.path())
            .field("start", start)
            .field("shape", &shape)
            .finish()
    }
}

impl<B: Backend> Stream<B> {
    /// Copies arrays in files into new arrays, in stream order: as [`to_device`](Self::to_device) for each. Those that lie near each
    /// other are read in one pass. All have been read when this returns.
    /// ```
    /// # use gpumem_runtime::{DataFile, FileView};
    /// # let device = gpumem_runtime::Device::<gpumem_host::Host>::open("host")?;
    /// # let path = std::env::temp_dir().join(format!("gpumem-all-{}.bin", std::process::id()));
    /// std::fs::write(&path, [1, 2, 3, 4, 5]).unwrap();
    /// let file = DataFile::open(&path)?;
    /// let parts = [FileView::<u8, _>::new(&file, 0, 2)?, FileView::new(&file, 2, 3)?];
    /// let arrays = device.stream()?.to_device_all(&parts)?;
    /// assert_eq!(arrays[1].copy_to_host()?.to_vec(), [3, 4, 5]);
    /// # std::fs::remove_file(&path).unwrap();
    /// # Ok::<(), gpumem_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`Device::to_device`](crate::Device::to_device), for the first array that cannot be copied. None is made then.
    pub fn to_device_all<T: Element, D: Dimension>(
        &self,
        views: &[FileView<T, D>],
    ) -> Result<Vec<DeviceArray<T, D, B>>> {
        self.copies_of(views, None)
    }

    /// As [`to_device_all`](Self::to_device_all), and calls `progress` on this thread with the bytes read so far, those between
    /// arrays that are read in one pass among them. [`ControlFlow::Break`] ends it between two pieces. In the recording of a graph
    /// it is not called.
    ///
    /// # Errors
    /// Returns [`Cancelled`](gpumem_core::ErrorKind::Cancelled) after a `Break`. Otherwise as for
    /// [`to_device_all`](Self::to_device_all).
    pub fn to_device_all_with_progress<T: Element, D: Dimension>(
        &self,
        views: &[FileView<T, D>],
        mut progress: impl FnMut(Progress) -> ControlFlow<()>,
    ) -> Result<Vec<DeviceArray<T, D, B>>> {
        self.copies_of(views, Some(&mut progress))
    }

    fn copies_of<T: Element, D: Dimension>(
        &self,
        views: &[FileView<T, D>],
        progress: Option<transfer::ProgressFn<'_>>,
    ) -> Result<Vec<DeviceArray<T, D, B>>> {
        const OPERATION: &str = "to_device_all";
        let allocate = |view: &FileView<T, D>| {
            let array = UninitArray::with_layout(self.device(), OPERATION, view.layout().like())?;
            // SAFETY: the copies below are ordered before every later use of the array, and no caller gets it if one fails.
            Ok(unsafe { array.assume_init() })
        };
        let arrays = views.iter().map(allocate).collect::<Result<Vec<DeviceArray<T, D, B>>>>()?;
        let sides = views.iter().map(|view| view.side(view.layout().clone()));
        let copies: Vec<_> = sides.zip(arrays.iter().map(DeviceArray::place)).collect();
        transfer::upload_files::<T, B>(self.timeline(), OPERATION, &copies, progress)?;
        Ok(arrays)
    }
}

#[diagnostic::do_not_recommend]
impl<T: Element, D: Dimension, B: Backend> ToDevice<B> for FileView<T, D> {
    type Elem = T;
    type Dim = D;

    fn source(&self) -> Source<'_, T, D, B> {
        Source::file(self)
    }
}
