//! Heat spreads over a plate that several ranks share. Each has a band of rows, and exchanges the rows at its edges with its
//! neighbours before every step (a halo exchange). Any number of ranks gives the same picture.
//!
//! The ranks are threads, or the processes of a launcher:
//!
//! ```sh
//! cargo run --release --features collectives --example heat -- --ranks 4
//! mpiexec -n 4 target/release/examples/heat
//! target/release/examples/heat --device cuda:0,cuda:1   # built with the feature `cuda` too
//! ```

mod band;

use clap::Parser;
use gpumem::{
    Device,
    collectives::{Communicator, ProcessRank},
    ndarray::Array2,
};
use std::{path::PathBuf, thread};

/// The heat of a plate after some steps.
#[derive(Parser, Debug)]
pub(crate) struct Options {
    /// Ranks that share the plate; by default one for each device. A launcher such as mpiexec starts a rank in each process.
    #[arg(long)]
    ranks: Option<usize>,
    /// Rows and columns of the plate.
    #[arg(long, default_value_t = 240)]
    size: usize,
    /// Number of steps.
    #[arg(long, default_value_t = 500)]
    steps: usize,
    /// The devices of the ranks, in turn.
    #[arg(long, default_value = "host", value_delimiter = ',')]
    device: Vec<String>,
    /// The file of the picture.
    #[arg(long, default_value = "heat.png")]
    output: PathBuf,
}

/// A plate that is hot at its upper edge and in the middle.
pub(crate) fn plate(size: usize) -> Array2<f32> {
    Array2::from_shape_fn((size, size), |(y, x)| {
        let is_hot = y == 0 || (y.abs_diff(size / 2) < size / 8 && x.abs_diff(size / 2) < size / 8);
        if is_hot { 1.0 } else { 0.0 }
    })
}

/// The heat after so many steps, computed by a rank on each device, in a thread of its own.
///
/// # Errors
/// Returns the error of the first rank that failed.
pub(crate) fn spread(devices: &[Device], plate: &Array2<f32>, steps: usize) -> gpumem::Result<Array2<f32>> {
    let ranks = Communicator::all(devices)?;
    let all: Vec<gpumem::Result<Array2<f32>>> = thread::scope(|scope| {
        let start = |rank| scope.spawn(move || band::spread(rank, plate, steps));
        let threads: Vec<_> = ranks.iter().map(start).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    });
    // Every rank has the same.
    all.into_iter().reduce(Result::and).unwrap_or_else(|| Ok(plate.clone()))
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
    let plate = plate(size);
    let (rank, ranks, heat) = match ProcessRank::from_environment() {
        Ok(process) if process.size > 1 => {
            let local = process.local_rank.unwrap_or(process.rank);
            let rank = Communicator::from_environment(&Device::open(&device[local % device.len()])?)?;
            (rank.rank(), rank.size(), band::spread(&rank, &plate, steps)?)
        }
        // No launcher has started this process.
        _ => {
            let ranks = ranks.unwrap_or(device.len()).clamp(1, size);
            let opened: Vec<Device> =
                device.iter().map(|name| Device::open(name)).collect::<Result<_, _>>()?;
            let of_ranks: Vec<Device> = opened.iter().cycle().take(ranks).cloned().collect();
            (0, ranks, spread(&of_ranks, &plate, steps)?)
        }
    };
    if rank == 0 {
        picture(&heat).save(&output)?;
        println!("{ranks} ranks, {steps} steps, total heat {:.3}, {}", heat.sum(), output.display());
    }
    Ok(())
}
