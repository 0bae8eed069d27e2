//! Views that a kernel computes: blurred and sharpened, on the device and once more on the host.

use super::{Result, convolution};
use gpumem::{
    DeviceArray, DeviceView, Kernel, Stream,
    kernel::{Constant, config_for_items},
    ndarray::{ArrayD, ArrayViewD, Axis, IxDyn},
};

/// The kernel for the device of the photo.
pub(crate) type Convolution = Kernel<convolution::Parameters>;

/// The filter for the pixels of a view.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Filter {
    Blur,
    Sharpen,
}

impl Filter {
    fn weights(self) -> (Constant<i32, 25>, u32) {
        match self {
            Filter::Blur => convolution::BLUR,
            Filter::Sharpen => convolution::SHARPEN,
        }
    }

    /// How often: one blur over five pixels is hardly seen.
    fn passes(self) -> usize {
        match self {
            Filter::Blur => 2,
            Filter::Sharpen => 1,
        }
    }

    /// The kernel reads the view where it is, with its strides, and writes a packed array.
    pub(crate) fn on_device(
        self,
        stream: &Stream,
        kernel: &Convolution,
        view: &DeviceView<'_, u8, IxDyn>,
    ) -> Result<DeviceArray<u8, IxDyn>> {
        let &[height, width, channels] = view.shape() else {
            return Err("a filter takes pixels of several channels".into());
        };
        let dims = config_for_items([width, height, channels], convolution::GROUP);
        let (weights, shift) = self.weights();
        let mut result = stream.device_array::<u8, _>(IxDyn(view.shape()))?;
        kernel.launch(stream, &dims, (view, &mut result, weights, shift))?;
        for _ in 1..self.passes() {
            let before = std::mem::replace(&mut result, stream.device_array(IxDyn(view.shape()))?);
            // `before` is dropped while it is still being read: its memory waits for that.
            kernel.launch(stream, &dims, (&before, &mut result, weights, shift))?;
        }
        Ok(result)
    }

    /// The same on the host, with loops over rows: a border of two pixels around the view, and for each weight the whole
    /// moved to its place.
    pub(crate) fn on_host(self, view: &ArrayViewD<'_, u8>) -> ArrayD<u8> {
        let (weights, shift) = self.weights();
        let mut pixels = view.as_standard_layout().into_owned();
        for _ in 0..self.passes() {
            let border = bordered(&bordered(&pixels, 0), 1);
            let (width, channels) = (pixels.len_of(Axis(1)), pixels.len_of(Axis(2)));
            let rows = border.as_slice().unwrap_or_default().chunks_exact((width + 4) * channels);
            let rows: Vec<&[u8]> = rows.collect();
            let results = pixels.as_slice_mut().unwrap_or_default().chunks_exact_mut(width * channels);
            let mut sums = vec![0; width * channels];
            for (y, result) in results.enumerate() {
                sums.fill(1 << shift >> 1);
                for (at, weight) in weights.0.iter().enumerate() {
                    let moved = &rows[y + at / 5][at % 5 * channels..];
                    sums.iter_mut().zip(moved).for_each(|(sum, pixel)| *sum += weight * i32::from(*pixel));
                }
                result.iter_mut().zip(&sums).for_each(|(to, sum)| *to = (sum >> shift).clamp(0, 255) as u8);
            }
        }
        pixels
    }
}

/// With the first and the last of an axis twice more, packed.
fn bordered(pixels: &ArrayD<u8>, axis: usize) -> ArrayD<u8> {
    let len = pixels.len_of(Axis(axis));
    let indices: Vec<usize> =
        (0..len + 4).map(|at| at.saturating_sub(2).min(len.saturating_sub(1))).collect();
    pixels.select(Axis(axis), &indices).as_standard_layout().into_owned()
}
