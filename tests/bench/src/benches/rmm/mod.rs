//! RMM's random workload: what the free lists cost, and how much memory it takes.
//!
//! `rmm/tlsf` is the arithmetic alone, over offsets: no driver and no memory, one operation a step. The same steps run
//! through an exact best fit, which is slower and wastes nothing; `rmm/peak` compares the highest byte that either ever
//! allocated. `rmm/pool` and `rmm/arrays` are the steps through a pool, as RMM measures its own, and through the whole
//! library. `rmm/reserved` compares what the pool reserves with best fit in one piece, which grows by any number of
//! bytes, and `rmm/pieces` with best fit that takes the pieces that the pool takes.

mod arrays;
mod best_fit;
mod pieces;
mod workload;

use crate::{Bench, Measure, Pair, Routine};
use anyhow::{Context, Result, ensure};
use best_fit::{BestFit, rounded};
use gpumem::memory::tlsf::{BlockId, Tlsf};
use std::time::{Duration, Instant};
use workload::{CELLS, Cell, Step, hash, steps};

/// More than any cell needs.
const SPACE: u64 = 1 << 45;
/// The alignment of RMM and CUDA.
const GRANULE: u64 = 256;

pub(super) fn all() -> Vec<Bench> {
    let speed = CELLS.into_iter().map(|cell| {
        Bench::new(name("tlsf", cell), "best fit over trees", Measure::Latency, move || {
            let steps = checked(cell)?;
            Ok(Pair {
                ours: each_step(steps.clone(), || Ours::new(SPACE)),
                reference: each_step(steps, || Trees::new(SPACE)),
            })
        })
    });
    let peaks = CELLS.into_iter().map(|cell| {
        Bench::new(name("peak_MiB", cell), "best fit over trees", Measure::Count, move || {
            let steps = checked(cell)?;
            let again = steps.clone();
            Ok(Pair {
                ours: Routine::count(move || peak(&steps, &mut Ours::new(SPACE))),
                reference: Routine::count(move || peak(&again, &mut Trees::new(SPACE))),
            })
        })
    });
    let pool = CELLS.into_iter().map(|cell| {
        Bench::new(name("pool", cell), "the allocator alone", Measure::Latency, move || {
            let steps = checked(cell)?;
            Ok(Pair {
                ours: arrays::each_block(steps.clone())?,
                reference: each_step(steps, || Ours::new(SPACE)),
            })
        })
    });
    let arrays = CELLS.into_iter().map(|cell| {
        Bench::new(name("arrays", cell), "the allocator alone", Measure::Latency, move || {
            let steps = checked(cell)?;
            Ok(Pair {
                ours: arrays::each_step(steps.clone())?,
                reference: each_step(steps, || Ours::new(SPACE)),
            })
        })
    });
    let reserved = CELLS.into_iter().map(|cell| {
        Bench::new(
            name("reserved_MiB", cell),
            "best fit over trees, in one piece",
            Measure::Count,
            move || {
                let steps = checked(cell)?;
                let again = steps.clone();
                Ok(Pair {
                    ours: Routine::count(move || arrays::reserved(&steps)),
                    reference: Routine::count(move || peak(&again, &mut Trees::new(SPACE))),
                })
            },
        )
    });
    let pieces = CELLS.into_iter().map(|cell| {
        Bench::new(name("pieces_MiB", cell), "best fit over trees, in as many", Measure::Count, move || {
            let steps = checked(cell)?;
            let again = steps.clone();
            Ok(Pair {
                ours: Routine::count(move || arrays::reserved(&steps)),
                reference: Routine::count(move || pieces::reserved(&again)),
            })
        })
    });
    let speed = speed.chain(pool).chain(arrays);
    speed.chain(peaks).chain(reserved).chain(pieces).collect()
}

fn name(what: &str, cell: Cell) -> String {
    format!("rmm/{what}/{}_of_{}MiB", cell.allocations, cell.largest_mib)
}

fn checked(cell: Cell) -> Result<Vec<Step>> {
    let steps = steps(cell);
    ensure!(hash(&steps) == (cell.hash, cell.most_alive), "the steps are not those of RMM");
    Ok(steps)
}

/// An allocator of blocks.
trait BlockAllocator {
    type Block: Copy;
    /// Allocates a block; also returns the address of its end.
    fn allocate(&mut self, bytes: u64) -> Option<(Self::Block, u64)>;
    fn free(&mut self, block: Self::Block);
}

struct Ours(Tlsf);

impl Ours {
    fn new(space: u64) -> Self {
        let mut tlsf = Tlsf::new(GRANULE);
        tlsf.add_region(0, space);
        Self(tlsf)
    }
}

impl BlockAllocator for Ours {
    type Block = BlockId;

    #[inline]
    fn allocate(&mut self, bytes: u64) -> Option<(BlockId, u64)> {
        let block = self.0.allocate(Tlsf::IDLE, bytes, GRANULE)?;
        Some((block.block, block.start + block.len))
    }

    #[inline]
    fn free(&mut self, block: BlockId) {
        self.0.free(block, Tlsf::IDLE, 0);
    }
}

struct Trees(BestFit);

impl Trees {
    fn new(space: u64) -> Self {
        Self(BestFit::new(space))
    }
}

impl BlockAllocator for Trees {
    type Block = (u64, u64);

    fn allocate(&mut self, bytes: u64) -> Option<((u64, u64), u64)> {
        let start = self.0.allocate(bytes)?;
        Some(((start, bytes), start + rounded(bytes)))
    }

    fn free(&mut self, (start, bytes): (u64, u64)) {
        self.0.free(start, bytes);
    }
}

/// Nanoseconds of one step. The steps run from an empty lender as often as it takes; emptying it is not measured.
fn each_step<L: BlockAllocator + 'static>(steps: Vec<Step>, make: impl Fn() -> L + 'static) -> Routine {
    let mut allocator = make();
    let mut alive: Vec<L::Block> = Vec::new();
    Routine::clocked(move |calls| {
        let (mut done, mut took) = (0, Duration::ZERO);
        while done < calls {
            let start = Instant::now();
            for step in &steps {
                match *step {
                    Step::Allocate(bytes) => alive.push(allocator.allocate(bytes).context("no block")?.0),
                    Step::Free(index) => allocator.free(alive.swap_remove(index as usize)),
                }
            }
            took += start.elapsed();
            alive.drain(..).for_each(|block| allocator.free(block));
            done += steps.len() as u64;
        }
        Ok(took.mul_f64(calls as f64 / done as f64))
    })
}

/// The highest byte ever allocated, in MiB.
fn peak<L: BlockAllocator>(steps: &[Step], allocator: &mut L) -> Result<u64> {
    let mut alive = Vec::new();
    let mut highest = 0;
    for step in steps {
        match *step {
            Step::Allocate(bytes) => {
                let (block, end) = allocator.allocate(bytes).context("no block")?;
                highest = highest.max(end);
                alive.push(block);
            }
            Step::Free(index) => allocator.free(alive.swap_remove(index as usize)),
        }
    }
    Ok(highest >> 20)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constant_time_takes_hardly_more_memory_than_best_fit() {
        for (cell, steps) in small_cells() {
            let ours = peak(&steps, &mut Ours::new(SPACE)).unwrap();
            let best = peak(&steps, &mut Trees::new(SPACE)).unwrap();
            assert!(ours as f64 <= best as f64 * 1.05 + 1.0, "{cell:?}: {ours} MiB against {best}");
        }
    }

    /// Cells that a test without optimisation has time for.
    fn small_cells() -> impl Iterator<Item = (Cell, Vec<Step>)> {
        let cells = CELLS.into_iter().filter(|cell| cell.allocations <= 10_000 || !cfg!(debug_assertions));
        cells.map(|cell| (cell, checked(cell).unwrap()))
    }

    #[test]
    fn the_pool_reserves_hardly_more_than_best_fit_in_pieces() {
        for (cell, steps) in small_cells() {
            let ours = arrays::reserved(&steps).unwrap() as f64;
            let best = pieces::reserved(&steps).unwrap() as f64;
            assert!(ours <= best * 1.05, "{cell:?}: {ours} MiB against {best}");
        }
    }

    /// One piece has no borders, and grows by any number of bytes.
    #[test]
    fn pieces_take_hardly_more_memory_than_one() {
        let mut above = 0;
        for (cell, steps) in small_cells() {
            let ours = arrays::reserved(&steps).unwrap() as f64;
            let best = peak(&steps, &mut Trees::new(SPACE)).unwrap() as f64;
            assert!(ours <= best * 1.11, "{cell:?}: {ours} MiB against {best}");
            above += usize::from(ours > best * 1.05);
        }
        assert!(above <= 5, "{above} of 18 cells are above 1.05");
    }
}
