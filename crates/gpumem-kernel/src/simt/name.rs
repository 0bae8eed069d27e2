//! What a body's shared arrays, and the places where its work-items wait, are known by.

use std::panic::Location;

pub(crate) type Place = &'static Location<'static>;

/// The number in the body, or without one the place in the source.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SiteName {
    pub(crate) number: u32,
    /// With a number, only told.
    pub(crate) place: Place,
}

impl SiteName {
    pub(crate) const UNNUMBERED: u32 = u32::MAX;

    #[inline(always)]
    pub(crate) const fn at(place: Place) -> Self {
        Self { number: Self::UNNUMBERED, place }
    }

    #[inline(always)]
    pub(crate) const fn numbered(number: u32, place: Place) -> Self {
        Self { number, place }
    }

    #[inline(always)]
    pub(crate) fn is(self, other: Self) -> bool {
        // The same place usually has the same address, but may have several.
        self.number == other.number
            && (self.number != Self::UNNUMBERED
                || std::ptr::eq(self.place, other.place)
                || self.place == other.place)
    }
}
