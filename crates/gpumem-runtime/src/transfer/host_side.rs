//! The host's side of the pipeline: memory of the caller, or a file.

use super::{
    Direction, TUNING,
    chunks::Chunks,
    sides::HostSpan,
    staged::{self, move_nest},
    store_policy::StorePolicy,
};
use crate::{
    DataFile,
    layout::{CopyNest, Layout},
};
use gpumem_core::{ErrorKind, FileError, WritableFile};
use std::{io, ops::Range};

/// Where the elements are that do not lie in memory of the library.
#[derive(Debug, Clone, Copy)]
pub(super) enum HostSide<'a> {
    Memory(&'a HostSpan),
    File(&'a FileSide<'a>),
}

impl HostSide<'_> {
    pub(super) fn is_file(self) -> bool {
        matches!(self, Self::File(_))
    }

    /// Moves one run between a block and what lies so many bytes into this side.
    ///
    /// # Safety
    /// The caller's memory and the block are valid for so many bytes, for writes the one that is written, and share none.
    pub(super) unsafe fn move_run(
        self,
        offset: usize,
        block: *mut u8,
        bytes: usize,
        direction: Direction,
        stores: StorePolicy,
    ) -> Result<(), FileError> {
        match self {
            Self::Memory(span) => {
                // SAFETY: the caller's promise.
                unsafe { staged::move_run(span.base.wrapping_add(offset), block, bytes, direction, stores) };
                Ok(())
            }
            Self::File(file) => {
                // SAFETY: the caller's promise; a block has been initialised by the driver, or by the host backend.
                let block = unsafe { std::slice::from_raw_parts_mut(block, bytes) };
                match direction {
                    Direction::HostToDevice => file.read(offset, block),
                    Direction::DeviceToHost => file.write(offset, block),
                }
            }
        }
    }

    /// Moves a part, whose runs lie side by side in a block.
    ///
    /// # Safety
    /// As for [`move_nest`].
    pub(super) unsafe fn move_nest(
        self,
        part: &CopyNest,
        block: *mut u8,
        direction: Direction,
        stores: StorePolicy,
    ) -> Result<(), FileError> {
        match self {
            Self::Memory(span) => {
                // SAFETY: the caller's promise.
                unsafe { move_nest(part, span.base, block, direction, stores) };
                Ok(())
            }
            // SAFETY: the caller's promise.
            Self::File(file) => unsafe {
                match direction {
                    Direction::HostToDevice => file.read_nest(part, block),
                    Direction::DeviceToHost => file.write_nest(part, block),
                }
            },
        }
    }
}

/// Elements in a file: where its first byte is that counts, and the layout of the elements from there.
#[derive(Debug)]
pub(crate) struct FileSide<'a> {
    pub(crate) file: &'a DataFile,
    /// The same one, if elements go into it.
    pub(crate) into: Option<&'a WritableFile>,
    pub(crate) start: u64,
    pub(crate) layout: Layout,
}

impl FileSide<'_> {
    fn read(&self, offset: usize, into: &mut [u8]) -> Result<(), FileError> {
        self.file.fill(self.start.saturating_add(offset as u64), into)
    }

    fn write(&self, offset: usize, from: &[u8]) -> Result<(), FileError> {
        let denied = || FileError::io(self.file.path(), &io::ErrorKind::PermissionDenied.into());
        self.into.ok_or_else(denied)?.put(self.start.saturating_add(offset as u64), from)
    }

    /// Writes a part out of a block, run by run: bytes between the runs stay as they are.
    ///
    /// # Safety
    /// The block is valid for reads of all bytes of the part, and no other code writes them.
    unsafe fn write_nest(&self, part: &CopyNest, block: *mut u8) -> Result<(), FileError> {
        let Some((axis, rest)) = part.axes.split_first() else {
            let ours = block.wrapping_add(part.dst);
            // SAFETY: the caller's promise; a block has been initialised by the driver, or by the host backend.
            return self.write(part.src, unsafe { std::slice::from_raw_parts(ours, part.run) });
        };
        let mut step = CopyNest { axes: rest.into(), len: part.len / axis.len, ..part.clone() };
        for _ in 0..axis.len {
            // SAFETY: a part of the part.
            unsafe { self.write_nest(&step, block)? };
            step.src = step.src.wrapping_add_signed(axis.src);
            step.dst = step.dst.wrapping_add_signed(axis.dst);
        }
        Ok(())
    }

    /// Reads a part into a block: in one piece, with the bytes between its runs, while these are few; else step by step of its first
    /// axis.
    ///
    /// # Safety
    /// The block is valid for writes of all bytes of the part, and no other code uses them.
    unsafe fn read_nest(&self, part: &CopyNest, block: *mut u8) -> Result<(), FileError> {
        let Some((axis, rest)) = part.axes.split_first() else {
            let ours = block.wrapping_add(part.dst);
            // SAFETY: the caller's promise; a block has been initialised by the driver, or by the host backend.
            return self.read(part.src, unsafe { std::slice::from_raw_parts_mut(ours, part.run) });
        };
        let (extent, bytes) = (extent(part), part.len * part.item);
        let is_dense = extent.len() <= bytes.saturating_mul(TUNING.file_extent);
        let mut scratch = Vec::new();
        // Without memory for it, the runs are read one by one.
        if is_dense && scratch.try_reserve_exact(extent.len()).is_ok() {
            scratch.resize(extent.len(), 0);
            self.read(extent.start, &mut scratch)?;
            let part = CopyNest { src: part.src - extent.start, ..part.clone() };
            let from = scratch.as_mut_ptr();
            // SAFETY: the runs lie within the extent that was read; the rest is the caller's promise.
            unsafe { move_nest(&part, from, block, Direction::HostToDevice, StorePolicy::Temporal) };
            return Ok(());
        }
        let mut step = CopyNest { axes: rest.into(), len: part.len / axis.len, ..part.clone() };
        for _ in 0..axis.len {
            // SAFETY: a part of the part.
            unsafe { self.read_nest(&step, block)? };
            step.src = step.src.wrapping_add_signed(axis.src);
            step.dst = step.dst.wrapping_add_signed(axis.dst);
        }
        Ok(())
    }

    /// Reads the elements on this thread, into memory where they are to lie packed in this layout.
    pub(crate) fn read_packed(&self, packed: &Layout, into: &mut [u8]) -> Result<(), ErrorKind> {
        packed.fits(into.len())?;
        let mut chunks = Chunks::new(&CopyNest::new(&self.layout, packed)?);
        while let Some(piece) = chunks.next(TUNING.file_part) {
            if piece.len > 0 && piece.item > 0 {
                // SAFETY: the layout, and so each piece of it, lies within the memory.
                unsafe { self.read_nest(&piece, into.as_mut_ptr()).map_err(Box::new)? };
            }
        }
        self.file.check_unchanged().map_err(Box::new)?;
        Ok(())
    }
}

/// Bytes from the lowest run of a part to the end of the highest one.
fn extent(part: &CopyNest) -> Range<usize> {
    let (mut start, mut end) = (part.src, part.src + part.run);
    for axis in &part.axes {
        let span = axis.src.wrapping_mul(axis.len as isize - 1);
        let side = if span < 0 { &mut start } else { &mut end };
        *side = side.wrapping_add_signed(span);
    }
    start..end
}
