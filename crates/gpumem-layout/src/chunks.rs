//! A pair in pieces, which are cut on demand.

use crate::layout::CopyNest;
use smallvec::{SmallVec, smallvec};

/// Cuts a pair into pieces, in the order of its destination. Every piece may be of another size.
#[derive(Debug)]
pub struct Chunks {
    /// The parts left to do, the next one last: at most one for each axis, and one for the run.
    rest: SmallVec<[CopyNest; 2]>,
    left: usize,
}

impl Chunks {
    /// Chunks of all that a pair of layouts copies.
    pub fn new(nest: &CopyNest) -> Self {
        Self { rest: smallvec![nest.clone()], left: nest.len.saturating_mul(nest.item) }
    }

    /// Bytes that have not been cut off yet.
    pub fn left(&self) -> usize {
        self.left
    }

    /// Whether all has been cut off.
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Cuts off the next chunk: at most `limit` bytes, but at least one element.
    pub fn next(&mut self, limit: usize) -> Option<CopyNest> {
        let mut piece = self.rest.pop()?;
        while piece.len.saturating_mul(piece.item) > limit {
            let Some(axis) = piece.axes.first().copied() else {
                let run = ((limit / piece.item).max(1) * piece.item).min(piece.run);
                if run < piece.run {
                    let (src, dst, rest) = (piece.src + run, piece.dst + run, piece.run - run);
                    self.rest.push(CopyNest { src, dst, run: rest, len: rest / piece.item, ..piece.clone() });
                }
                (piece.run, piece.len) = (run, run / piece.item);
                break;
            };
            let inner = piece.len / axis.len;
            let steps = (limit / (inner * piece.item)).max(1);
            let mut rest = piece.clone();
            rest.src = rest.src.wrapping_add_signed(axis.src * steps as isize);
            rest.dst = rest.dst.wrapping_add_signed(axis.dst * steps as isize);
            shorten(&mut rest, axis.len - steps);
            self.rest.push(rest);
            shorten(&mut piece, steps);
        }
        self.left -= piece.len * piece.item;
        Some(piece)
    }
}

/// Leaves so many steps of the first axis, which has at least as many.
fn shorten(nest: &mut CopyNest, steps: usize) {
    nest.len = nest.len / nest.axes[0].len * steps;
    match steps {
        1 => drop(nest.axes.remove(0)),
        _ => nest.axes[0].len = steps,
    }
}

/// Calls `each` with pieces of one size until one fails.
pub fn for_each_chunk<E>(
    nest: &CopyNest,
    limit: usize,
    each: &mut impl FnMut(&CopyNest) -> Result<(), E>,
) -> Result<(), E> {
    let mut chunks = Chunks::new(nest);
    while let Some(piece) = chunks.next(limit) {
        each(&piece)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::region_loop::tests::{expected, samples};
    use std::collections::BTreeSet;

    #[test]
    fn pieces_cover_a_pair() {
        for nest in samples() {
            for limits in [&[1][..], &[7], &[16], &[50], &[200], &[10_000], &[4, 8, 16, 100, 30], &[300, 5]] {
                let (mut all, mut chunks) = (BTreeSet::new(), Chunks::new(&nest));
                let mut limit = limits.iter().cycle();
                while let Some((piece, limit)) = limit.next().and_then(|l| Some((chunks.next(*l)?, *l))) {
                    assert!(piece.len * piece.item <= limit.max(piece.item), "{piece:?} for {limit}");
                    assert!(piece.axes.iter().all(|axis| axis.len > 1), "{piece:?}");
                    for byte in expected(&piece) {
                        assert!(all.insert(byte));
                    }
                    assert_eq!(chunks.left(), nest.len * nest.item - all.len());
                }
                assert!(chunks.is_empty());
                assert_eq!(all, expected(&nest), "{nest:?}");
            }
        }
    }
}
