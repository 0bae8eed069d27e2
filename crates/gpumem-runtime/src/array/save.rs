//! Writing arrays to files.

use super::{ArrayBase, Storage};
use crate::{
    NewFile,
    layout::{Layout, Order},
    transfer::{self, FileSide},
};
use gpumem_core::Result;
use ndarray::Dimension;

impl NewFile {
    /// Writes the elements of an array at `offset`, packed in that order of axes, and returns when they have been written. Several
    /// threads write, while the device copies.
    /// ```
    /// # use gpumem_runtime::{NewFile, Order}; use ndarray::array;
    /// # let path = std::env::temp_dir().join(format!("gpumem-new-{}.bin", std::process::id()));
    /// # let device = gpumem_runtime::Device::<gpumem_host::Host>::open("host")?;
    /// let array = device.to_device(&array![[1_u8, 2], [3, 4]])?;
    /// let file = NewFile::create(&path, 5)?;
    /// file.write_at(0, &[9])?;
    /// file.write_array(1, &array, Order::F)?;
    /// file.commit()?;
    /// assert_eq!(std::fs::read(&path).unwrap(), [9, 1, 3, 2, 4]);
    /// # std::fs::remove_file(&path).unwrap();
    /// # Ok::<(), gpumem_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns [`File`](gpumem_core::ErrorKind::File) if they cannot be written, or would lie behind the end. Otherwise as
    /// [`ArrayBase::copy_to_host`].
    pub fn write_array<S: Storage, D: Dimension>(
        &self,
        offset: u64,
        array: &ArrayBase<S, D>,
        order: Order,
    ) -> Result<()> {
        const OPERATION: &str = "write_array";
        self.check_process(OPERATION)?;
        let layout = Layout::packed(array.shape(), size_of::<S::Elem>(), order)
            .map_err(|error| array.fail(OPERATION, error))?;
        self.check(offset, layout.packed_bytes() as u64)
            .map_err(|error| array.memory.core().error(OPERATION, Box::new(error)))?;
        let side = FileSide { file: self.written(), into: Some(&self.file), start: offset, layout };
        let timeline = array.device()?.default_timeline()?;
        transfer::download_file::<S::Elem, S::Backend>(&timeline, OPERATION, array.place(), &side)
    }
}
