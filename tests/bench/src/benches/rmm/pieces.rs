//! An exact best fit that has to take its memory from a driver too: in pieces, by the rules of our pool.
//!
//! Best fit in one piece has an advantage over any allocator over a driver: one range of addresses that grows by any
//! number of bytes. This one shows the effect of perfect fitting; the difference between the two is the cost of pieces.

use super::{
    best_fit::{BestFit, rounded},
    workload::Step,
};
use anyhow::{Context, Result};
use gpumem_runtime::memory::PoolOptions;
use std::collections::BTreeMap;

/// Drivers count in pages of so many bytes.
const PAGE: u64 = 2 << 20;

struct Pieces {
    free: BestFit,
    /// By their first byte: length, and allocated bytes.
    pieces: BTreeMap<u64, (u64, u64)>,
    options: PoolOptions,
    reserved: u64,
    peak: u64,
    /// Where the next piece lies; no two touch.
    next: u64,
}

impl Pieces {
    fn count(&mut self, block: u64, change: impl FnOnce(&mut u64)) {
        if let Some((_, (_, allocated))) = self.pieces.range_mut(..=block).next_back() {
            change(allocated);
        }
    }

    fn allocate(&mut self, bytes: u64) -> Result<u64> {
        let block = match self.free.allocate(bytes) {
            Some(block) => block,
            None => {
                self.grow(rounded(bytes));
                self.free.allocate(bytes).context("the new piece holds the request")?
            }
        };
        self.count(block, |allocated| *allocated += rounded(bytes));
        Ok(block)
    }

    fn free(&mut self, block: u64, bytes: u64) {
        self.free.free(block, bytes);
        self.count(block, |allocated| *allocated -= rounded(bytes));
    }

    fn grow(&mut self, bytes: u64) {
        let unused = |(_, (_, allocated)): &(&u64, &(u64, u64))| *allocated == 0;
        let unused: Vec<(u64, u64)> =
            self.pieces.iter().filter(unused).map(|(start, (len, _))| (*start, *len)).collect();
        let mut gone = unused.iter().map(|(_, len)| len).sum();
        if gone > self.reserved / 16 {
            for (start, len) in unused {
                self.pieces.remove(&start);
                self.free.remove(start, len);
            }
            self.reserved -= gone;
        } else {
            gone = 0;
        }
        let len = self.options.next_chunk(bytes as usize, gone as usize, self.reserved as usize) as u64;
        let len = len.next_multiple_of(PAGE);
        self.free.insert(self.next, len);
        self.pieces.insert(self.next, (len, 0));
        self.next += len + PAGE;
        self.reserved += len;
        self.peak = self.peak.max(self.reserved);
    }
}

/// The most that it ever reserved, in MiB.
pub(super) fn reserved(steps: &[Step]) -> Result<u64> {
    let (free, pieces, options) = (BestFit::default(), BTreeMap::new(), PoolOptions::device(256));
    let mut resource_id = Pieces { free, pieces, options, reserved: 0, peak: 0, next: 1 << 40 };
    let mut alive = Vec::new();
    for step in steps {
        match *step {
            Step::Allocate(bytes) => alive.push((resource_id.allocate(bytes)?, bytes)),
            Step::Free(index) => {
                let (block, bytes) = alive.swap_remove(index as usize);
                resource_id.free(block, bytes);
            }
        }
    }
    Ok(resource_id.peak >> 20)
}
