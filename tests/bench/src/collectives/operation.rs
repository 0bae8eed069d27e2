//! The operations, as nccl-tests measures them.

use serde::{Deserialize, Serialize};

/// An operation that is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Operation {
    /// Sum over all ranks, to all.
    AllReduce,
    /// The blocks of all ranks, to all.
    AllGather,
    /// Sum over all ranks, a block to each.
    ReduceScatter,
    /// From rank 0 to all.
    Broadcast,
    /// Each rank sends to the next one, and receives from the one before it.
    SendReceive,
}

impl Operation {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::AllReduce, Self::AllGather, Self::ReduceScatter, Self::Broadcast, Self::SendReceive];

    /// The name in the table.
    pub fn name(self) -> &'static str {
        match self {
            Self::AllReduce => "all_reduce",
            Self::AllGather => "all_gather",
            Self::ReduceScatter => "reduce_scatter",
            Self::Broadcast => "broadcast",
            Self::SendReceive => "send_receive",
        }
    }

    /// The bus bandwidth as a multiple of the bytes a second: what each rank moves over its link, of each byte of the result.
    pub fn factor(self, ranks: usize) -> f64 {
        let (all, others) = (ranks as f64, ranks.saturating_sub(1) as f64);
        match self {
            Self::AllReduce => 2.0 * others / all,
            Self::AllGather | Self::ReduceScatter => others / all,
            Self::Broadcast | Self::SendReceive => 1.0,
        }
    }

    /// Blocks of the source and of the destination: one of each rank, or a single one.
    pub(super) fn blocks(self, ranks: usize) -> [usize; 2] {
        match self {
            Self::AllGather => [1, ranks],
            Self::ReduceScatter => [ranks, 1],
            _ => [1, 1],
        }
    }

    /// The elements of a block, if the whole is to have about so many bytes: a power of two.
    pub(super) fn block(self, bytes: usize, ranks: usize) -> usize {
        let blocks = self.blocks(ranks).into_iter().fold(1, usize::max);
        let elements = (bytes / size_of::<f32>() / blocks).max(1);
        1 << elements.ilog2()
    }

    /// The value of each element of a rank's source.
    pub(super) fn given(rank: usize) -> f32 {
        (rank + 1) as f32
    }

    /// The value that a rank gets in a block of its destination.
    pub(super) fn expected(self, (rank, ranks): (usize, usize), block: usize) -> f32 {
        match self {
            Self::AllReduce | Self::ReduceScatter => (ranks * (ranks + 1) / 2) as f32,
            Self::AllGather => Self::given(block),
            Self::Broadcast => Self::given(0),
            Self::SendReceive => Self::given((rank + ranks - 1) % ranks),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors_are_those_of_nccl_tests() {
        assert_eq!(Operation::AllReduce.factor(2), 1.0);
        assert_eq!(Operation::AllReduce.factor(8), 1.75);
        assert_eq!(Operation::AllGather.factor(4), 0.75);
        assert_eq!(Operation::ReduceScatter.factor(2), 0.5);
        assert_eq!(Operation::Broadcast.factor(8), 1.0);
        assert_eq!(Operation::SendReceive.factor(8), 1.0);
        assert_eq!(Operation::AllReduce.factor(1), 0.0);
    }

    #[test]
    fn blocks_together_have_the_bytes_that_were_asked_for() {
        assert_eq!(Operation::AllReduce.block(1024, 4), 256);
        assert_eq!(Operation::AllGather.block(1024, 4), 64);
        assert_eq!(Operation::ReduceScatter.block(8, 4), 1, "there is one element for each rank at least");
        assert_eq!(Operation::AllGather.block(1024, 3), 64, "a power of two");
    }
}
