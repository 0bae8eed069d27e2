//! Bodies on the host have loops of their own for work-items that stand well inside all arrays. Over views of many extents and
//! strides they give the same, or the same fault, as in check mode, which has no such loops.
#![allow(clippy::unwrap_used)] // helpers of tests

use gpumem::{
    generic::{Device, Stream},
    host::Host,
    kernel::{HostForm, config_for_items, prelude::*},
    ndarray::{Array2, Array3},
    s,
};

/// The elements around one, also two away, where there are such. `reach` beyond the array is a fault.
#[gpumem::kernel]
fn around(before: View<f32, 2>, after: OwnView<f32, 2>, reach: u32) {
    let (y, x, height, width) = (global_id(1), global_id(0), before.extent(0), before.extent(1));
    if y >= height || x >= width {
        return;
    }
    let mut sum = before[[y, x]];
    if y > 0 && y + 1 < height && x > 0 && x + 1 < width {
        sum += 0.25 * ((before[[y - 1, x]] + before[[y + 1, x]]) + (before[[y, x - 1]] + before[[y, x + 1]]));
    }
    if x > 1 && x + 2 < width {
        sum -= before[[y, x - 2]] * before[[y, x + 2]];
    }
    if reach > 0 && y == 3 {
        sum += before[[y, x + reach as usize]];
    }
    after[own()] = sum;
}

/// Through shared memory, of which a group uses all or a part, or more than there is.
// SAFETY: each work-item writes its own element, and the tile is shared after a barrier.
#[gpumem::kernel(unsafe)]
fn through(before: View<f32, 2>, after: ViewMut<f32, 2>, reach: u32) {
    let tile = shared::<f32>([8, 9]);
    let (x, y, row, column) = (local_id(0), local_id(1), global_id(1), global_id(0));
    let is_there = row < before.extent(0) && column < before.extent(1);
    tile[[y, x]] = if is_there { before[[row, column]] } else { 0.5 };
    barrier(Local);
    let mut near = tile[[y, if x > 0 { x - 1 } else { x }]];
    if is_there && row > 0 {
        near += before[[row - 1, column]];
    }
    if reach > 0 && row == 3 {
        near += before[[row, column + reach as usize]];
    }
    barrier(Local);
    if row < after.extent(0) && column < after.extent(1) {
        after[[row, column]] = near * tile[[y, x]];
    }
}

/// Three axes, of which the last is not along x.
// SAFETY: each work-item writes its own elements.
#[gpumem::kernel(unsafe)]
fn channels(before: View<u8, 3>, after: ViewMut<u8, 3>, reach: u32) {
    let (y, x) = (global_id(1), global_id(0));
    if y >= before.extent(0) || x >= before.extent(1) {
        return;
    }
    for channel in 0..before.extent(2) {
        let value = before[[y, x, channel + reach as usize]];
        after[[y, x, channel]] = value.wrapping_mul(3).wrapping_add(channel as u8);
    }
}

/// Runs a kernel over each pair of views of two whole arrays, in the form that it has and in check mode, for groups of several
/// sizes, with indices that stay inside and with some that do not. Counts the faults.
macro_rules! agree {
    ($kernel:expr, $form:expr, $image:expr, $dims:expr, |$whole:ident, $out:ident| [$(($from:expr, $to:expr)),* $(,)?]) => {{
        let device = Device::<Host>::open("host").unwrap();
        let image = $image;
        assert_eq!($kernel.host_form(), Some($form));
        let mut faults = 0;
        $(for (group, reach) in [((8, 8), 0u32), ((5, 3), 0), ((32, 1), 0), ((8, 8), 30), ((5, 3), 30)] {
            let [found, expected] = [false, true].map(|check| {
                let stream = device.stream().unwrap();
                let ($whole, mut $out) = (stream.to_device(&image).unwrap(), stream.to_device(&image).unwrap());
                let kernel = $kernel.race_checks(check).load(&device).unwrap();
                kernel.launch(&stream, &$dims(group), (&$from.unwrap(), &mut $to.unwrap(), reach)).unwrap();
                finish(&stream)?;
                Ok::<_, String>(stream.copy_to_host(&$out).unwrap().view().unwrap().to_owned())
            });
            assert_eq!(found, expected, "{} of {:?}", stringify!($from), image.shape());
            faults += usize::from(found.is_err());
        })*
        faults
    }};
}

fn finish(stream: &Stream<Host>) -> Result<(), String> {
    stream.synchronize().map_err(|error| {
        let text = error.to_string();
        text.find("work-item").map_or(text.clone(), |at| text[at..].to_owned())
    })
}

fn image(height: usize, width: usize) -> Array2<f32> {
    Array2::from_shape_fn((height, width), |(y, x)| ((y * 31 + x * 7) % 53) as f32 * 0.375 - 4.0)
}

/// Extents of arrays: nothing inside, something, most.
const SIZES: [(usize, usize); 6] = [(1, 1), (2, 40), (9, 3), (12, 9), (20, 41), (5, 70)];

/// The views of two axes: packed, a part of longer rows, every other element, backwards, empty, the other way round, of one
/// row for all, and results that are shorter than what is read.
macro_rules! of_two_axes {
    ($kernel:expr, $form:expr) => {{
        let mut faults = 0;
        for (height, width) in SIZES {
            let dims = |group: (u32, u32)| config_for_items((height, width), group);
            faults += agree!($kernel, $form, image(height, width), dims, |whole, out| [
                (whole.slice(s![.., ..]), out.slice_mut(s![.., ..])),
                (whole.slice(s![.., ..width - 1]), out.slice_mut(s![.., 1..])),
                (whole.slice(s![..;2, ..;3]), out.slice_mut(s![..;2, ..;3])),
                (whole.slice(s![.., ..;-1]), out.slice_mut(s![.., ..])),
                (whole.slice(s![..;-1, ..]), out.slice_mut(s![..;-1, ..])),
                (whole.slice(s![..0, ..]), out.slice_mut(s![..0, ..])),
                (whole.slice(s![.., ..0]), out.slice_mut(s![.., ..])),
                (whole.slice(s![..1, ..]).as_ref().unwrap().broadcast((height, width)), out.slice_mut(s![.., ..])),
                (whole.slice(s![.., ..]), out.slice_mut(s![.., ..width.div_ceil(2)])),
                (whole.slice(s![.., ..]), out.slice_mut(s![..height / 2, ..])),
            ]);
        }
        faults
    }};
}

#[test]
fn loops_without_barriers_agree() {
    let faults = of_two_axes!(around(), HostForm::Loop);
    assert!(faults > 20, "{faults}");
}

#[test]
fn phases_agree() {
    let faults = of_two_axes!(through(), HostForm::Phases);
    assert!(faults > 20, "{faults}");
}

#[test]
fn axes_that_no_launch_has_agree() {
    let mut faults = 0;
    for (height, width, depth) in [(4, 9, 1), (20, 33, 3), (6, 8, 40)] {
        let dims = |group: (u32, u32)| config_for_items((height, width), group);
        let image = Array3::from_shape_fn((height, width, depth), |(y, x, z)| (y * 31 + x * 7 + z * 3) as u8);
        faults += agree!(channels(), HostForm::Loop, image, dims, |whole, out| [
            (whole.slice(s![.., .., ..]), out.slice_mut(s![.., .., ..])),
            (whole.slice(s![.., .., ..;-1]), out.slice_mut(s![.., .., ..])),
            (whole.slice(s![..;-1, ..;2, ..]), out.slice_mut(s![.., ..;2, ..])),
        ]);
    }
    assert!(faults > 4, "{faults}");
}
