//! A plain loop over the arrays of all ranks, on one thread.

use super::{
    Operation,
    raw::{Places, Raw, Taken},
};
use anyhow::Result;
use std::{hint::black_box, time::Instant};

/// Rank 0 does the work of all; the others do nothing.
#[derive(Debug)]
pub(super) struct PlainLoop {
    rank: usize,
    ranks: usize,
    sources: Vec<Vec<f32>>,
    destinations: Vec<Vec<f32>>,
}

impl PlainLoop {
    pub(super) fn new(rank: usize, ranks: usize) -> Self {
        Self { rank, ranks, sources: Vec::new(), destinations: Vec::new() }
    }

    /// Makes the arrays, if they are not there yet.
    fn prepare(&mut self, operation: Operation, count: usize) {
        let [given, got] = operation.blocks(self.ranks).map(|blocks| blocks * count);
        if self.sources.first().is_some_and(|source| source.len() == given)
            && self.destinations[0].len() == got
        {
            return;
        }
        self.sources = (0..self.ranks).map(|rank| vec![Operation::given(rank); given]).collect();
        self.destinations = vec![vec![-1.0; got]; self.ranks];
    }

    fn call(&mut self, operation: Operation, count: usize) {
        let Self { ranks, sources, destinations, .. } = self;
        let (sources, destinations) = (black_box(&*sources), black_box(destinations));
        match operation {
            Operation::AllReduce => {
                let (first, others) = destinations.split_at_mut(1);
                add(sources, 0, &mut first[0]);
                others.iter_mut().for_each(|other| other.copy_from_slice(&first[0]));
            }
            Operation::ReduceScatter => {
                for (rank, destination) in destinations.iter_mut().enumerate() {
                    add(sources, rank * count, destination);
                }
            }
            Operation::AllGather => {
                for destination in destinations {
                    for (block, source) in destination.chunks_exact_mut(count).zip(sources) {
                        block.copy_from_slice(source);
                    }
                }
            }
            Operation::Broadcast => {
                destinations.iter_mut().for_each(|destination| destination.copy_from_slice(&sources[0]));
            }
            Operation::SendReceive => {
                for (rank, destination) in destinations.iter_mut().enumerate() {
                    destination.copy_from_slice(&sources[(rank + *ranks - 1) % *ranks]);
                }
            }
        }
    }
}

/// Adds a block of all sources.
fn add(sources: &[Vec<f32>], at: usize, sum: &mut [f32]) {
    let len = sum.len();
    sum.copy_from_slice(&sources[0][at..at + len]);
    for source in &sources[1..] {
        sum.iter_mut().zip(&source[at..]).for_each(|(sum, value)| *sum += value);
    }
}

impl Raw for PlainLoop {
    fn name(&self) -> &'static str {
        "a plain loop on one thread"
    }

    fn run(&mut self, operation: Operation, places: Places, calls: usize) -> Result<Taken> {
        if self.rank != 0 {
            return Ok(Taken::default());
        }
        self.prepare(operation, places.count);
        let start = Instant::now();
        for _ in 0..calls {
            self.call(operation, places.count);
        }
        let all = start.elapsed();
        Ok(Taken { enqueue: all, all })
    }

    fn own_destination(&self) -> Option<&[f32]> {
        Some(self.destinations.first().map_or(&[], Vec::as_slice))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_loop_does_what_the_operations_do() {
        for operation in Operation::ALL {
            let mut plain = PlainLoop::new(0, 3);
            plain.run(operation, Places { source: 0, destination: 0, count: 4 }, 2).unwrap();
            for (rank, destination) in plain.destinations.iter().enumerate() {
                for (block, values) in destination.chunks_exact(4).enumerate() {
                    assert_eq!(
                        values,
                        [operation.expected((rank, 3), block); 4],
                        "{operation:?} of rank {rank}"
                    );
                }
            }
        }
    }
}
