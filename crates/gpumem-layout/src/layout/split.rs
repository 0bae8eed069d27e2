//! Parts of an array.

use super::{Layout, Result};
use gpumem_core::LayoutError;
use std::iter::FusedIterator;

impl Layout {
    /// The parts of `section` positions each along the first axis; the last may be shorter. An array without
    /// positions along that axis has no parts.
    ///
    /// # Errors
    /// Returns [`LayoutError::ZeroSection`] if `section` is 0, and [`LayoutError::NoSuchAxis`] for an array without
    /// axes.
    pub fn split(&self, section: usize) -> Result<Split> {
        if section == 0 {
            return Err(LayoutError::ZeroSection);
        }
        self.axis(0)?;
        Ok(Split { rest: self.clone(), section })
    }

    /// The parts before and from position `index` of an axis on.
    ///
    /// # Errors
    /// Returns [`LayoutError::NoSuchAxis`] if there is no such axis, and [`LayoutError::IndexOutOfBounds`] if `index`
    /// exceeds its length.
    pub fn split_at(&self, axis: usize, index: usize) -> Result<(Layout, Layout)> {
        let (length, stride) = self.axis(axis)?;
        if index > length {
            let index = isize::try_from(index).unwrap_or(isize::MAX);
            return Err(LayoutError::IndexOutOfBounds { index, axis, length });
        }
        let (mut head, mut tail) = (self.clone(), self.clone());
        head.shape[axis] = index;
        tail.shape[axis] = length - index;
        // An empty tail stays where it is: one past the end may lie outside the memory.
        if index < length {
            tail.offset = self.shifted(self.offset, index, stride);
        }
        Ok((head, tail))
    }

    /// One field of every element, `item` bytes long and `offset` bytes into it.
    ///
    /// # Errors
    /// Returns [`LayoutError::OutOfBuffer`] if the field reaches past the element.
    pub fn field(&self, offset: usize, item: usize) -> Result<Layout> {
        let end = offset.checked_add(item).filter(|&end| end <= self.item);
        if end.is_none() {
            let needs = offset..offset.saturating_add(item);
            return Err(LayoutError::OutOfBuffer { needs, length: self.item });
        }
        let mut field = self.clone();
        field.item = item;
        field.offset = if self.is_empty() { self.offset } else { self.offset + offset };
        Ok(field)
    }
}

/// The parts of a layout along its first axis, in order: what [`Layout::split`] gives.
#[derive(Debug, Clone)]
pub struct Split {
    rest: Layout,
    section: usize,
}

impl Split {
    fn rest_length(&self) -> usize {
        self.rest.shape.first().copied().unwrap_or(0)
    }
}

impl Iterator for Split {
    type Item = Layout;

    fn next(&mut self) -> Option<Layout> {
        let length = self.rest_length();
        if length == 0 {
            return None;
        }
        let (part, rest) = self.rest.split_at(0, self.section.min(length)).ok()?;
        self.rest = rest;
        Some(part)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let parts = self.rest_length().div_ceil(self.section);
        (parts, Some(parts))
    }
}

impl ExactSizeIterator for Split {}
impl FusedIterator for Split {}
