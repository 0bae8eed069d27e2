//! A random call of all ranks, what one of them calls in its place, and the oracle.

use crate::common::random::Random;
use ndarray::Array2;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    AllToAllV,
    AllToAll,
    AllGather,
    AllReduce,
    Reduce,
    Broadcast,
    Gather,
    Scatter,
    ReduceScatter,
    /// Rank 0 sends, rank 1 receives.
    Pair,
}

use What::*;

const ALL: [What; 13] = [
    // Twice or more: what has a table.
    AllToAllV,
    AllToAllV,
    AllToAllV,
    AllToAllV,
    AllToAll,
    AllGather,
    AllReduce,
    Reduce,
    Broadcast,
    Gather,
    Scatter,
    ReduceScatter,
    Pair,
];

impl What {
    pub(super) fn has_root(self) -> bool {
        matches!(self, Reduce | Broadcast | Gather | Scatter)
    }

    pub(super) fn computes(self) -> bool {
        matches!(self, AllReduce | Reduce | ReduceScatter)
    }

    fn may_be_in_place(self) -> bool {
        matches!(self, AllGather | AllReduce | Reduce | ReduceScatter)
    }
}

/// Types of elements. Two have one size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Elements {
    U8,
    I32,
    F32,
    U64,
}

const ELEMENTS: [Elements; 4] = [Elements::U8, Elements::I32, Elements::F32, Elements::U64];

/// What one rank does that the others do not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wrong {
    /// A row more.
    Rows,
    Elements(Elements),
    Reduction,
    Root(usize),
    Barrier,
    /// A row more to or from this rank.
    SendsTo(usize),
    ReceivesFrom(usize),
    /// A row more to itself than from itself.
    OwnRows,
}

/// What one rank calls.
#[derive(Debug, Clone)]
pub(super) struct OfRank {
    pub(super) rank: usize,
    pub(super) what: What,
    pub(super) elements: Elements,
    pub(super) rows: usize,
    pub(super) width: usize,
    pub(super) root: usize,
    pub(super) max: bool,
    pub(super) in_place: bool,
    /// Whether the source and the destination have gaps.
    pub(super) strided: [bool; 2],
    pub(super) sends: Vec<usize>,
    pub(super) receives: Vec<usize>,
    pub(super) is_barrier: bool,
}

#[derive(Debug)]
pub(super) struct Case {
    ranks: Vec<OfRank>,
    pub(super) what: What,
    pub(super) wrong: Option<(usize, Wrong)>,
}

/// An element of a rank's source.
pub(super) fn value(rank: usize, row: usize, column: usize) -> i64 {
    ((rank * 17 + row * 3 + column) % 50) as i64
}

impl Case {
    pub(super) fn random(random: &mut Random, size: usize) -> Self {
        let what = loop {
            let what = ALL[random.below(ALL.len())];
            if what != Pair || size > 1 {
                break what;
            }
        };
        let (elements, rows, width) = (ELEMENTS[random.below(4)], random.below(5), 1 + random.below(3));
        let (root, max) = (random.below(size), random.coin());
        let table: Vec<Vec<usize>> =
            (0..size).map(|_| (0..size).map(|_| random.below(4)).collect()).collect();
        let ranks = (0..size).map(|rank| OfRank {
            rank,
            what,
            elements,
            rows,
            width,
            root,
            max,
            in_place: what.may_be_in_place() && random.coin(),
            strided: [random.coin(), random.coin()],
            sends: table[rank].clone(),
            receives: table.iter().map(|sends| sends[rank]).collect(),
            is_barrier: false,
        });
        let ranks: Vec<OfRank> = ranks.collect();
        let wrong = (random.below(3) > 0).then(|| wrong(random, &ranks)).flatten();
        Self { ranks, what, wrong }
    }

    /// Whether all ranks call the same.
    pub(super) fn agrees(&self) -> bool {
        matches!(self.wrong, None | Some((_, Wrong::OwnRows)))
    }

    /// What a rank calls at last: what is refused at the call does not count.
    pub(super) fn called(&self, rank: usize) -> OfRank {
        if self.agrees() { self.ranks[rank].clone() } else { self.of_rank(rank) }
    }

    /// What a rank calls at first.
    pub(super) fn of_rank(&self, rank: usize) -> OfRank {
        let mut own = self.ranks[rank].clone();
        match self.wrong.filter(|(wrong, _)| *wrong == rank).map(|(_, wrong)| wrong) {
            None => {}
            Some(Wrong::Rows) => own.rows += 1,
            Some(Wrong::Elements(elements)) => own.elements = elements,
            Some(Wrong::Reduction) => own.max = !own.max,
            Some(Wrong::Root(root)) => own.root = root,
            Some(Wrong::Barrier) => own.is_barrier = true,
            Some(Wrong::SendsTo(to)) => own.sends[to] += 1,
            Some(Wrong::ReceivesFrom(from)) => own.receives[from] += 1,
            Some(Wrong::OwnRows) => own.sends[rank] += 1,
        }
        own
    }

    /// The rows that a rank gets, if the ranks agree.
    pub(super) fn expected(&self, rank: usize) -> Option<Array2<i64>> {
        let size = self.ranks.len();
        let OfRank { what, rows, width, root, max, .. } = self.ranks[rank];
        let of = |rank: usize, from: usize, rows: usize| -> Vec<Vec<i64>> {
            (from..from + rows)
                .map(|row| (0..width).map(|column| value(rank, row, column)).collect())
                .collect()
        };
        let all = |from: usize| (0..size).flat_map(|rank| of(rank, from, rows)).collect::<Vec<_>>();
        let reduced = |from: usize| -> Vec<Vec<i64>> {
            let each = |row, column| {
                let values = (0..size).map(|rank| value(rank, row, column));
                if max { values.max().unwrap() } else { values.sum() }
            };
            (from..from + rows).map(|row| (0..width).map(|column| each(row, column)).collect()).collect()
        };
        let got = match what {
            AllToAllV => {
                let block = |from: &OfRank| {
                    let before = from.sends[..rank].iter().sum();
                    of(from.rank, before, from.sends[rank])
                };
                self.ranks.iter().flat_map(block).collect()
            }
            AllToAll => (0..size).flat_map(|from| of(from, rank * rows, rows)).collect(),
            AllGather => all(0),
            AllReduce => reduced(0),
            Reduce if rank == root => reduced(0),
            Broadcast => of(root, 0, rows),
            Gather if rank == root => all(0),
            Scatter => of(root, rank * rows, rows),
            ReduceScatter => reduced(rank * rows),
            Pair if rank == 1 => of(0, 0, rows),
            Reduce | Gather | Pair => return None,
        };
        let flat: Vec<i64> = got.iter().flatten().copied().collect();
        Some(Array2::from_shape_vec((got.len(), width), flat).unwrap())
    }
}

/// What one of the ranks does wrong, if there is something for it.
fn wrong(random: &mut Random, ranks: &[OfRank]) -> Option<(usize, Wrong)> {
    let OfRank { what, elements, root, .. } = ranks[0];
    let size = ranks.len();
    let rank = random.below(if what == Pair { 2 } else { size });
    let mut all = Vec::new();
    if what == AllToAllV {
        all.push(Wrong::OwnRows);
    }
    if size > 1 {
        let other = (rank + 1 + random.below(size - 1)) % size;
        let others: Vec<Elements> = ELEMENTS.into_iter().filter(|other| *other != elements).collect();
        all.push(Wrong::Elements(others[random.below(others.len())]));
        match what {
            AllToAllV => all.extend([Wrong::SendsTo(other), Wrong::ReceivesFrom(other)]),
            _ => all.push(Wrong::Rows),
        }
        if what != Pair {
            all.push(Wrong::Barrier);
        }
        if what.computes() {
            all.push(Wrong::Reduction);
        }
        if what.has_root() {
            all.push(Wrong::Root((root + 1 + random.below(size - 1)) % size));
        }
    }
    (!all.is_empty()).then(|| (rank, all[random.below(all.len())]))
}
