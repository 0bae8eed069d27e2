//! One rank with its band of the plate.

use gpumem::{
    AnyBackend, DeviceArray, LaunchConfig, Stream,
    collectives::Communicator,
    kernel::prelude::*,
    ndarray::{Array2, Ix2, s},
};

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

/// One rank with its band of the plate.
struct Band<'a> {
    rank: &'a Communicator<AnyBackend>,
    stream: Stream,
    /// The rows of the band, with a row of each neighbour: now, and after the next step.
    heat: DeviceArray<f32, Ix2>,
    next: DeviceArray<f32, Ix2>,
    /// Whether there is a neighbour above and below.
    neighbours: [bool; 2],
}

/// The heat of the whole plate after so many steps. Each rank calls it, and gets the same.
///
/// # Errors
/// Returns the first error of this rank: those of others end its operations too.
pub(crate) fn spread(
    rank: &Communicator<AnyBackend>,
    plate: &Array2<f32>,
    steps: usize,
) -> gpumem::Result<Array2<f32>> {
    let kernel = step().load(rank.device())?;
    let mut band = Band::new(rank, plate)?;
    let (rows, columns) = (band.heat.shape()[0] as u32, band.heat.shape()[1] as u32);
    let config = LaunchConfig::new((columns.div_ceil(32), rows.div_ceil(8)), (32, 8));
    for _ in 0..steps {
        band.exchange()?;
        kernel.launch(&band.stream, &config, (&band.heat, &mut band.next))?;
        std::mem::swap(&mut band.heat, &mut band.next);
    }
    band.gather(plate)
}

/// The first row of a rank's band, and that of the next rank's.
fn rows(plate: &Array2<f32>, rank: usize, ranks: usize) -> (usize, usize) {
    (rank * plate.nrows() / ranks, (rank + 1) * plate.nrows() / ranks)
}

impl<'a> Band<'a> {
    fn new(rank: &'a Communicator<AnyBackend>, plate: &Array2<f32>) -> gpumem::Result<Self> {
        let neighbours = [rank.rank() > 0, rank.rank() + 1 < rank.size()];
        let [above, below] = neighbours.map(usize::from);
        let (start, end) = rows(plate, rank.rank(), rank.size());
        let stream = rank.device().stream()?;
        let heat = stream.to_device(&plate.slice(s![start - above..end + below, ..]))?;
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

    /// Gathers the bands of all ranks.
    fn gather(&self, plate: &Array2<f32>) -> gpumem::Result<Array2<f32>> {
        let [above, below] = self.neighbours.map(usize::from);
        let own = self.heat.slice(s![above..self.heat.shape()[0] - below, ..])?;
        let each = (0..self.rank.size()).map(|rank| rows(plate, rank, self.rank.size()));
        let lengths: Vec<usize> = each.map(|(start, end)| end - start).collect();
        let mut whole = self.stream.device_array(plate.raw_dim())?;
        self.rank.on(&self.stream).all_gather_v(&own, (&mut whole, &lengths))?;
        whole.copy_to_host()
    }
}
