//! The rectangle of a view on the sheet, with the line around it.

use std::ops::Range;

/// Grey of the line around each view.
pub(crate) const FRAME: u8 = 230;

/// The rectangle of a view, without its line.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    pub(crate) row: usize,
    pub(crate) column: usize,
    pub(crate) rows: usize,
    pub(crate) columns: usize,
    pub(crate) line: usize,
}

/// Rows and columns of a rectangle with its line, and without.
pub(crate) struct Frame {
    pub(crate) outer: (Range<usize>, Range<usize>),
    pub(crate) inner: (Range<usize>, Range<usize>),
}

impl Place {
    pub(crate) fn frame(&self) -> Frame {
        let grow = |start: usize, len: usize| start - self.line..start + len + self.line;
        Frame {
            outer: (grow(self.row, self.rows), grow(self.column, self.columns)),
            inner: (self.row..self.row + self.rows, self.column..self.column + self.columns),
        }
    }
}
