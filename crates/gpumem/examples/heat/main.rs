//! Heat spreads over a plate that several ranks share. Each has a band of rows, and exchanges the rows at its edges with its
//! neighbours before every step (a halo exchange). Any number of ranks gives the same picture.
//!
//! `cargo run --release --features collectives --example heat -- --ranks 4`

use clap::Parser;
use gpumem::{
    Device, DeviceArray, LaunchConfig, Stream,
    collectives::Communicator,
    kernel::prelude::*,
    ndarray::{Array2, Axis, Ix2, concatenate, s},
};
use std::path::PathBuf;

/// The heat of a plate after some steps.
#[derive(Parser, Debug)]
pub(crate) struct Options {
    /// Ranks that share the plate.
    #[arg(long, default_value_t = 1)]
    ranks: usize,
    /// Rows and columns of the plate.
    #[arg(long, default_value_t = 240)]
    size: usize,
    /// Number of steps.
    #[arg(long, default_value_t = 500)]
    steps: usize,
    /// The device of all ranks.
    #[arg(long, default_value = "host")]
    device: String,
    /// The file of the picture.
    #[arg(long, default_value = "heat.png")]
    output: PathBuf,
}

/// One step: each cell gets the mean of its neighbours. The outer cells stay as they are.
#[gpumem::kernel]
fn step(before: View<f32, 2>, after: OwnView<f32, 2>) {
    let (y, x, height, width) = (global_id(1), global_id(0), before.extent(0), before.extent(1));
    if y >= height || x >= width {
        return;
    }
    let inside = y > 0 && y + 1 < height && x > 0 && x + 1 < width;
    after[own()] = if inside {
        0.25 * ((before[[y - 1, x]] + before[[y + 1, x]]) + (before[[y, x - 1]] + before[[y, x + 1]]))
    } else {
        before[[y, x]]
    };
}

/// A plate that is hot at its upper edge and in the middle.
pub(crate) fn plate(size: usize) -> Array2<f32> {
    Array2::from_shape_fn((size, size), |(y, x)| {
        let is_hot = y == 0 || (y.abs_diff(size / 2) < size / 8 && x.abs_diff(size / 2) < size / 8);
        if is_hot { 1.0 } else { 0.0 }
    })
}

/// One rank with its band of the plate.
struct Band {
    rank: Communicator<gpumem::AnyBackend>,
    stream: Stream,
    /// The rows of the band, with a row of each neighbour: now, and after the next step.
    heat: DeviceArray<f32, Ix2>,
    next: DeviceArray<f32, Ix2>,
    /// Whether there is a neighbour above and below.
    neighbours: [bool; 2],
}

impl Band {
    fn new(rank: Communicator<gpumem::AnyBackend>, plate: &Array2<f32>) -> gpumem::Result<Self> {
        let (number, ranks, rows) = (rank.rank(), rank.size(), plate.nrows());
        let neighbours = [number > 0, number + 1 < ranks];
        let [above, below] = neighbours.map(usize::from);
        let (start, end) = (number * rows / ranks - above, (number + 1) * rows / ranks + below);
        let stream = rank.device().stream()?;
        let heat = stream.to_device(&plate.slice(s![start..end, ..]))?;
        let next = stream.device_array(heat.raw_dim())?;
        Ok(Self { rank, stream, heat, next, neighbours })
    }

    /// Exchanges the rows at the edges with the neighbours. Returns at once.
    fn exchange(&mut self) -> gpumem::Result<()> {
        let [has_above, has_below] = self.neighbours;
        let number = self.rank.rank();
        let (mut above, mut rest) = self.heat.split_at_mut(0, usize::from(has_above))?;
        let rows = rest.shape()[0] - usize::from(has_below);
        let (own, mut below) = rest.split_at_mut(0, rows)?;
        let (first, last) = (own.slice(s![..1, ..])?, own.slice(s![-1.., ..])?);
        self.rank.group(&self.stream, |group| {
            if has_above {
                group.send(&first, number - 1)?;
                group.receive(&mut above, number - 1)?;
            }
            if has_below {
                group.send(&last, number + 1)?;
                group.receive(&mut below, number + 1)?;
            }
            Ok(())
        })
    }

    /// The rows of the band itself.
    fn rows(&self) -> gpumem::Result<Array2<f32>> {
        let [above, below] = self.neighbours.map(usize::from);
        self.heat.slice(s![above..self.heat.shape()[0] - below, ..])?.copy_to_host()
    }
}

/// The heat after so many steps, computed by so many ranks on a device.
///
/// # Errors
/// Returns the first error of a rank.
pub(crate) fn spread(
    device: &Device,
    plate: &Array2<f32>,
    ranks: usize,
    steps: usize,
) -> gpumem::Result<Array2<f32>> {
    let ranks = ranks.clamp(1, plate.nrows());
    let kernel = step().load(device)?;
    let ranks = Communicator::all(&vec![device.clone(); ranks])?;
    let mut bands: Vec<Band> =
        ranks.into_iter().map(|rank| Band::new(rank, plate)).collect::<Result<_, _>>()?;
    for _ in 0..steps {
        for band in &mut bands {
            band.exchange()?;
            let (rows, columns) = (band.heat.shape()[0] as u32, band.heat.shape()[1] as u32);
            let config = LaunchConfig::new((columns.div_ceil(32), rows.div_ceil(8)), (32, 8));
            kernel.launch(&band.stream, &config, (&band.heat, &mut band.next))?;
            std::mem::swap(&mut band.heat, &mut band.next);
        }
    }
    let rows: Vec<Array2<f32>> = bands.iter().map(Band::rows).collect::<Result<_, _>>()?;
    let views: Vec<_> = rows.iter().map(|rows| rows.view()).collect();
    Ok(concatenate(Axis(0), &views).unwrap_or_default())
}

/// The heat as a picture.
pub(crate) fn picture(heat: &Array2<f32>) -> image::GrayImage {
    let (rows, columns) = heat.dim();
    image::GrayImage::from_fn(columns as u32, rows as u32, |x, y| {
        image::Luma([(heat[[y as usize, x as usize]] * 255.0) as u8])
    })
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let Options { ranks, size, steps, device, output } = Options::parse();
    let heat = spread(&Device::open(&device)?, &plate(size), ranks, steps)?;
    picture(&heat).save(&output)?;
    println!("{ranks} ranks, {steps} steps, total heat {:.3}, {}", heat.sum(), output.display());
    Ok(())
}
