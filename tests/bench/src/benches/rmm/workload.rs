//! RMM's random workload (`RANDOM_ALLOCATIONS_BENCH`), bit for bit.
//!
//! The C++ bench draws from `std::default_random_engine` through `std::uniform_int_distribution`. Both are rebuilt here
//! as libstdc++ has them, so that the sequence of sizes and frees is the same; [`CELLS`] carries a check value for each.

/// One cell of the grid: allocations, largest size in MiB, and the hash of its steps.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cell {
    pub(super) allocations: u64,
    pub(super) largest_mib: u64,
    pub(super) hash: u64,
    /// Most blocks that are alive at once.
    pub(super) most_alive: usize,
}

const fn cell(allocations: u64, largest_mib: u64, most_alive: usize, hash: u64) -> Cell {
    Cell { allocations, largest_mib, hash, most_alive }
}

/// The grid that RMM measures, without allocations that fail.
pub(super) const CELLS: [Cell; 18] = [
    cell(1000, 1, 638, 0x3592_bdb3_87b0_233a),
    cell(1000, 4, 642, 0x48bf_d82f_eac8_3a23),
    cell(1000, 64, 528, 0x6b34_e72d_9391_b99d),
    cell(1000, 256, 150, 0x12a6_f0a2_bc39_4010),
    cell(1000, 1024, 44, 0x6083_8f8d_374d_39b3),
    cell(1000, 4096, 15, 0x6072_7338_6d22_2633),
    cell(10_000, 1, 6204, 0x9955_79d8_2d19_0fa4),
    cell(10_000, 4, 6203, 0x86eb_4027_a36e_27da),
    cell(10_000, 64, 634, 0x647f_dc6e_21cc_6da8),
    cell(10_000, 256, 167, 0xd375_fd96_8f77_d571),
    cell(10_000, 1024, 51, 0x0691_6bb1_cff8_da63),
    cell(10_000, 4096, 16, 0x7b06_c885_26e4_9663),
    cell(100_000, 1, 36_071, 0x1f31_7750_495a_00b0),
    cell(100_000, 4, 9714, 0xa593_242c_3f8f_9b66),
    cell(100_000, 64, 644, 0x60e9_5424_b82b_3bb2),
    cell(100_000, 256, 176, 0x4232_a07f_109c_dbf1),
    cell(100_000, 1024, 53, 0x9737_5bba_b745_e84e),
    cell(100_000, 4096, 19, 0xcfe1_13e2_fd85_6bed),
];

/// A step of the workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// A block of so many bytes; it goes to the end of the list of live blocks.
    Allocate(u64),
    /// The live block at that position goes; the last one takes its place.
    Free(u32),
}

const MIB: u64 = 1 << 20;
/// Bytes alive stay below this.
const CAP: u64 = 16_000 * MIB;
/// Percent of the steps that allocate, where they may.
const ALLOCATING: u64 = 73;

/// `std::minstd_rand0`, seeded with 1.
struct Engine(u64);

impl Engine {
    /// Largest number that it draws, less the smallest, which is 1.
    const RANGE: u64 = 2_147_483_645;

    fn draw(&mut self) -> u64 {
        self.0 = self.0 * 16_807 % 2_147_483_647;
        self.0 - 1
    }

    /// `std::uniform_int_distribution` over `low..=high`.
    fn uniform(&mut self, low: u64, high: u64) -> u64 {
        let span = high - low;
        if span < Self::RANGE {
            let wanted = span + 1;
            let scale = Self::RANGE / wanted;
            loop {
                let drawn = self.draw();
                if drawn < wanted * scale {
                    return drawn / scale + low;
                }
            }
        }
        if span == Self::RANGE {
            return self.draw() + low;
        }
        loop {
            let high_part = self.uniform(0, span / (Self::RANGE + 1)) * (Self::RANGE + 1);
            let drawn = high_part + self.draw();
            if drawn <= span {
                return drawn + low;
            }
        }
    }
}

/// The steps of a cell, twice as many as allocations.
pub(super) fn steps(cell: Cell) -> Vec<Step> {
    let mut engine = Engine(1);
    let mut alive: Vec<u64> = Vec::new();
    let (mut count, mut bytes) = (0, 0);
    (0..2 * cell.allocations)
        .map(|_| {
            let size = engine.uniform(1, cell.largest_mib * MIB);
            let allocates = alive.is_empty() || {
                let is_drawn = engine.uniform(0, 99) < ALLOCATING;
                is_drawn && count < cell.allocations && bytes + size < CAP
            };
            if allocates {
                alive.push(size);
                count += 1;
                bytes += size;
                Step::Allocate(size)
            } else {
                let index = engine.uniform(0, cell.allocations - 1) as usize % alive.len();
                bytes -= alive.swap_remove(index);
                Step::Free(index as u32)
            }
        })
        .collect()
}

/// The check value of steps, and the most blocks that were alive at once.
pub(super) fn hash(steps: &[Step]) -> (u64, usize) {
    let (mut alive, mut most) = (0usize, 0);
    let hash = steps.iter().fold(1_469_598_103_934_665_603, |hash: u64, step| {
        let value = match step {
            Step::Allocate(size) => {
                alive += 1;
                most = most.max(alive);
                *size
            }
            Step::Free(index) => {
                alive -= 1;
                !u64::from(*index)
            }
        };
        (hash ^ value).wrapping_mul(1_099_511_628_211)
    });
    (hash, most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_steps_are_those_of_the_reference() {
        for cell in CELLS {
            // The large cells take a second without optimisation.
            if cell.allocations <= 10_000 || !cfg!(debug_assertions) {
                assert_eq!(hash(&steps(cell)), (cell.hash, cell.most_alive), "{cell:?}");
            }
        }
    }
}
