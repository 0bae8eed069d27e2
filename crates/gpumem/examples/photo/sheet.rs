//! Where everything is on the contact sheet.
//!
//! ```text
//! +-------------+ +-----+ +-----+ +---+
//! |             | | red | |green| |   |
//! |    photo    | +-----+ +-----+ +---+
//! |             | |blue | |grey | |   |
//! +-------------+ +-----+ +-----+ +---+
//! +-----+ +-----+ +-----+ +-----+  turned
//! |     | |     | |     | |crop |
//! +-----+ +-----+ +-----+ +-----+
//! +-----+ +-----+ +-----+ +-----+
//! |blur | |sharp| |blur | |sharp|
//! +-----+ +-----+ +-----+ +-----+
//! ```

use super::{
    Result,
    filter::Filter,
    place::{FRAME, Frame, Place},
    views::{Then, View},
};
use gpumem::{
    ndarray::{Array3, Ix3, SliceArg},
    s,
};

/// Grey of the sheet.
pub(crate) const BACKGROUND: u8 = 24;

/// The longest side of the photo as it appears on the sheet; a larger photo is shown with fewer of its pixels.
const LONGEST: usize = 640;

/// Sizes in pixels. Small views show every second pixel of the large one.
pub(crate) struct Sheet {
    photo: (usize, usize),
    /// Every how many pixels of the photo the large view shows one.
    step: usize,
    large: (usize, usize),
    small: (usize, usize),
    margin: usize,
}

impl Sheet {
    pub(crate) fn new((height, width, _): (usize, usize, usize)) -> Self {
        let step = height.max(width).div_ceil(LONGEST);
        let large = (height.div_ceil(step), width.div_ceil(step));
        let margin = (large.0.min(large.1) / 20).clamp(2, 16);
        // Two small views and the margin between them are as long as the large one.
        let half = |len: usize| (len.saturating_sub(margin) / 2).max(1);
        Self { photo: (height, width), step, large, small: (half(large.0), half(large.1)), margin }
    }

    /// Shape of the sheet.
    pub(crate) fn shape(&self) -> (usize, usize, usize) {
        let places = self.views();
        let end = |of: fn(&Place) -> usize| places.iter().map(|view| of(&view.place)).max().unwrap_or(0);
        let (rows, columns) = (end(|at| at.row + at.rows), end(|at| at.column + at.columns));
        (rows + self.margin, columns + self.margin, 3)
    }

    /// Top left corner of a cell of the grid.
    fn corner(&self, row: usize, column: usize) -> (usize, usize) {
        let at = |index, len| self.margin + index * (len + self.margin);
        (at(row, self.small.0), at(column, self.small.1))
    }

    fn place(&self, (row, column): (usize, usize), (rows, columns): (usize, usize)) -> Place {
        Place { row, column, rows, columns, line: (self.margin / 8).max(1) }
    }

    /// The views, each with its place.
    pub(crate) fn views(&self) -> Vec<View> {
        let (h, w) = self.small;
        let (full, two) = (self.step as isize, 2 * self.step as isize);
        // The rows and columns of which the small views show every second one.
        let (e, f) = (self.photo.0.min(h * 2 * self.step), self.photo.1.min(w * 2 * self.step));
        let (y, x) = ((self.photo.0 - h) / 2, (self.photo.1 - w) / 2);
        let mut views = Vec::new();
        let mut add = |name, slice: &dyn SliceArgs, then, place| {
            views.push(View { name, slice: slice.elements(), then, place });
        };
        let cell = |row, column| self.place(self.corner(row, column), self.small);

        add("photo", &s![..;full, ..;full, ..], Then::Nothing, self.place(self.corner(0, 0), self.large));
        add("red", &s![..e;two, ..f;two, 0], Then::Channel(0), cell(0, 2));
        add("green", &s![..e;two, ..f;two, 1], Then::Channel(1), cell(0, 3));
        add("blue", &s![..e;two, ..f;two, 2], Then::Channel(2), cell(1, 2));
        add("green, broadcast", &s![..e;two, ..f;two, 1..2], Then::Spread, cell(1, 3));
        add("every second pixel", &s![..e;two, ..f;two, ..], Then::Nothing, cell(2, 0));
        add("mirrored", &s![..e;two, ..f;-two, ..], Then::Nothing, cell(2, 1));
        add("upside down", &s![..e;-two, ..f;two, ..], Then::Nothing, cell(2, 2));
        add("crop", &s![y..y + h, x..x + w, ..], Then::Nothing, cell(2, 3));
        add("blurred", &s![..e;two, ..f;two, ..], Then::Filter(Filter::Blur), cell(3, 0));
        add("sharpened", &s![..e;two, ..f;two, ..], Then::Filter(Filter::Sharpen), cell(3, 1));
        add("crop, blurred", &s![y..y + h, x..x + w, ..], Then::Filter(Filter::Blur), cell(3, 2));
        add("crop, sharpened", &s![y..y + h, x..x + w, ..], Then::Filter(Filter::Sharpen), cell(3, 3));

        // Turned views are in a separate column, as many as fit beside the grid.
        let bottom = self.corner(3, 0).0 + h;
        let turned = |index: usize| {
            let place = self.place(self.corner(0, 4), (w, h));
            Place { row: place.row + index * (w + self.margin), ..place }
        };
        add("transposed", &s![..e;two, ..f;two, ..], Then::Turn, turned(0));
        add("turned left, BGR", &s![..e;two, ..f;-two, ..;-1], Then::Turn, turned(1));
        if turned(2).row + w <= bottom {
            add("turned right", &s![..e;-two, ..f;two, ..], Then::Turn, turned(2));
        }
        views
    }

    /// The sheet as ndarray makes it on the host.
    pub(crate) fn on_host(&self, photo: &Array3<u8>) -> Result<Array3<u8>> {
        let mut sheet = Array3::from_elem(self.shape(), BACKGROUND);
        for view in self.views() {
            let Frame { outer, inner } = view.place.frame();
            sheet.slice_mut(s![outer.0, outer.1, ..]).fill(FRAME);
            let mut pixels = sheet.slice_mut(s![inner.0, inner.1, ..]);
            view.on_host(photo, |elements| {
                match view.then {
                    Then::Channel(channel) => {
                        pixels.fill(0);
                        pixels.slice_mut(s![.., .., channel]).into_dyn().assign(&elements);
                    }
                    _ => pixels.into_dyn().assign(&elements),
                }
                Ok(())
            })?;
        }
        Ok(sheet)
    }
}

/// The result of `s![]`, for any number of indices.
trait SliceArgs {
    fn elements(&self) -> Vec<gpumem::ndarray::SliceInfoElem>;
}

impl<I: SliceArg<Ix3>> SliceArgs for I {
    fn elements(&self) -> Vec<gpumem::ndarray::SliceInfoElem> {
        self.as_ref().to_vec()
    }
}
