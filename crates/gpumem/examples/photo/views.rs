//! The views: each is one slice of the photo, perhaps turned, repeated or filtered, and the place on the sheet that it
//! goes to.
//!
//! gpumem slices with ndarray's own `s![]`, so the same description makes the view on the device and on the host.

use super::{
    Result,
    filter::Filter,
    place::{FRAME, Frame, Place},
};
use gpumem::{
    DeviceArray, DeviceView, Stream,
    ndarray::{Array3, ArrayViewD, Ix3, IxDyn, SliceInfoElem},
    s,
};

/// A view of the photo.
pub(crate) struct View {
    pub(crate) name: &'static str,
    /// The result of `s![]`.
    pub(crate) slice: Vec<SliceInfoElem>,
    pub(crate) then: Then,
    /// Where it goes. A view of one channel goes to that channel of the sheet.
    pub(crate) place: Place,
}

/// The step after slicing.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Then {
    Nothing,
    /// Rows and columns change places.
    Turn,
    /// The last axis, of length 1, is repeated three times.
    Spread,
    /// The slice is two-dimensional: this channel.
    Channel(usize),
    /// A kernel computes each pixel from those around it.
    Filter(Filter),
}

impl View {
    /// Passes the view on the device to `then`; it is not filtered yet.
    pub(crate) fn on_device<R>(
        &self,
        photo: &DeviceArray<u8, Ix3>,
        then: impl FnOnce(DeviceView<'_, u8, IxDyn>) -> Result<R>,
    ) -> Result<R> {
        let whole = photo.view().into_dyn();
        let view = whole.slice(&self.slice[..])?;
        match self.then {
            Then::Turn => then(view.permuted_axes(&[1, 0, 2])?),
            Then::Spread => then(view.broadcast(spread(view.shape()))?),
            Then::Nothing | Then::Channel(_) | Then::Filter(_) => then(view),
        }
    }

    /// The same view of the photo on the host, filtered.
    pub(crate) fn on_host<R>(
        &self,
        photo: &Array3<u8>,
        then: impl FnOnce(ArrayViewD<'_, u8>) -> Result<R>,
    ) -> Result<R> {
        let whole = photo.view().into_dyn();
        let view = whole.slice(&self.slice[..]);
        match self.then {
            Then::Turn => then(view.permuted_axes(IxDyn(&[1, 0, 2]))),
            Then::Spread => {
                then(view.broadcast(spread(view.shape())).ok_or("ndarray cannot repeat the axis")?)
            }
            Then::Filter(filter) => then(filter.on_host(&view).view()),
            Then::Nothing | Then::Channel(_) => then(view),
        }
    }

    /// Copies the packed view to its place on the sheet, in the order of `stream`.
    pub(crate) fn paste(
        &self,
        stream: &Stream,
        packed: &DeviceArray<u8, IxDyn>,
        sheet: &mut DeviceArray<u8, Ix3>,
    ) -> Result<()> {
        let Frame { outer, inner } = self.place.frame();
        stream.fill(&mut sheet.slice_mut(s![outer.0, outer.1, ..])?, FRAME)?;
        let mut pixels = sheet.slice_mut(s![inner.0, inner.1, ..])?;
        match self.then {
            Then::Channel(channel) => {
                stream.fill(&mut pixels, 0)?;
                let mut channel = pixels.slice_mut(s![.., .., channel])?.into_dyn();
                stream.copy_to_device(&mut channel, packed)?;
            }
            _ => stream.copy_to_device(&mut pixels.into_dyn(), packed)?,
        }
        Ok(())
    }
}

fn spread(shape: &[usize]) -> IxDyn {
    let mut shape = shape.to_vec();
    if let Some(last) = shape.last_mut() {
        *last = 3;
    }
    IxDyn(&shape)
}
