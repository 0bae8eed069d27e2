//! A wave: its registers, and how instructions get at them.

use super::{
    instruction::{Instruction, Operand, Value},
    mode::Mode,
    stop::Stop,
    text::scalar,
};

/// One vector register: 32 bits of each lane. Waves of 32 use the first half.
pub(super) type Lanes = [u32; 64];

/// Registers at the start of the file that no program can name: the first for results that go nowhere, the others for
/// operands that are not in vector registers.
pub(super) const HIDDEN: usize = 10;
const ROOM: usize = 1;

/// The upper halves of the addresses under which a lane finds the memory of its group and its own.
pub(super) const SHARED_APERTURE: u32 = 0x0002_0000;
pub(super) const PRIVATE_APERTURE: u32 = 0x0001_0000;

/// The state of a wave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Runs,
    Waits,
    Ended,
}

/// A wave and all that belongs to it alone.
#[derive(Debug)]
pub(super) struct Wave {
    /// Vector registers, after the hidden ones.
    pub(super) vectors: Vec<Lanes>,
    /// Scalar registers by the numbers of [`scalar`].
    pub(super) scalars: [u32; 256],
    pub(super) mode: Mode,
    /// 32 or 64.
    pub(super) size: u32,
    /// One bit for each lane that the wave has room for.
    pub(super) full: u64,
    /// Its number in the group.
    pub(super) number: u32,
    pub(super) state: State,
    /// The next instruction, as an index into the program.
    pub(super) next: u32,
    pub(super) goes_to: u64,
    /// Whether it has signalled a barrier for which it has not waited yet.
    pub(super) signalled: bool,
    /// Private memory of all lanes, lane after lane.
    pub(super) private: Vec<u8>,
    pub(super) private_bytes: usize,
    /// The place of each lane in its group along the three axes, as the wave begins with.
    pub(super) places: [Lanes; 3],
    pub(super) stop: Option<Box<Stop>>,
    /// How many instructions it has executed.
    pub(super) executed: u64,
    /// Whether results of 16 bits leave the upper half of a register as it is, as from gfx10 on.
    pub(super) keeps_upper_half: bool,
    /// The execution mask as a mask for each lane, and the bits that it was made from.
    lane_mask: Lanes,
    lane_mask_of: u64,
}

impl Wave {
    /// A wave with so many vector registers, all zero.
    pub(super) fn new(size: u32, vectors: usize) -> Self {
        Self {
            vectors: vec![[0; 64]; HIDDEN + vectors],
            scalars: [0; 256],
            mode: Mode::default(),
            size,
            full: if size == 64 { u64::MAX } else { u64::from(u32::MAX) },
            number: 0,
            state: State::Runs,
            next: 0,
            goes_to: 0,
            signalled: false,
            private: Vec::new(),
            private_bytes: 0,
            places: [[0; 64]; 3],
            stop: None,
            executed: 0,
            keeps_upper_half: false,
            lane_mask: [0; 64],
            lane_mask_of: 0,
        }
    }

    /// The lanes that take part.
    #[inline(always)]
    pub(super) fn exec(&self) -> u64 {
        self.pair(scalar::EXEC) & self.full
    }

    pub(super) fn set_exec(&mut self, mask: u64) {
        self.set_mask_register(scalar::EXEC, mask);
    }

    /// Two scalar registers.
    #[inline(always)]
    pub(super) fn pair(&self, first: u8) -> u64 {
        u64::from(self.scalars[usize::from(first)])
            | u64::from(self.scalars[usize::from(first.wrapping_add(1))]) << 32
    }

    #[inline(always)]
    pub(super) fn set_scalar(&mut self, register: u8, value: u32) {
        if register != scalar::NULL {
            self.scalars[usize::from(register)] = value;
        }
    }

    #[inline(always)]
    pub(super) fn set_pair(&mut self, first: u8, value: u64) {
        if first != scalar::NULL {
            self.scalars[usize::from(first)] = value as u32;
            self.scalars[usize::from(first.wrapping_add(1))] = (value >> 32) as u32;
        }
    }

    #[inline(always)]
    pub(super) fn scc(&self) -> bool {
        self.scalars[usize::from(scalar::SCC)] != 0
    }

    #[inline(always)]
    pub(super) fn set_scc(&mut self, value: bool) {
        self.scalars[usize::from(scalar::SCC)] = u32::from(value);
    }

    /// A mask of lanes, of which a wave of 32 has one register.
    #[inline(always)]
    pub(super) fn mask_register(&self, first: u8) -> u64 {
        if self.size == 64 { self.pair(first) } else { u64::from(self.scalars[usize::from(first)]) }
    }

    #[inline(always)]
    pub(super) fn set_mask_register(&mut self, first: u8, mask: u64) {
        if self.size == 64 {
            self.set_pair(first, mask);
        } else {
            self.set_scalar(first, mask as u32);
        }
    }

    /// Writes a result of a scalar instruction.
    #[inline(always)]
    pub(super) fn write(&mut self, to: &Operand, value: u32) {
        if let Value::Scalar(register) = to.value {
            self.set_scalar(register, value);
        }
    }

    /// Writes a result of two scalar registers.
    #[inline(always)]
    pub(super) fn write_pair(&mut self, to: &Operand, value: u64) {
        if let Value::Scalar(register) = to.value {
            self.set_pair(register, value);
        }
    }

    /// Writes a mask of lanes.
    #[inline(always)]
    pub(super) fn write_mask(&mut self, to: &Operand, mask: u64) {
        if let Value::Scalar(register) = to.value {
            self.set_mask_register(register, mask);
        }
    }

    /// A value that is the same for all lanes; of a vector register, the first active lane's.
    #[inline(always)]
    pub(super) fn read(&self, operand: &Operand) -> u32 {
        match operand.value {
            Value::Scalar(register) => self.scalars[usize::from(register)],
            Value::Constant(value) => value as u32,
            Value::Vector(register) => {
                let lane = self.exec().trailing_zeros() as usize & 63;
                self.vectors.get(usize::from(register)).map_or(0, |lanes| lanes[lane])
            }
            Value::VccZero => u32::from(self.mask_register(scalar::VCC) == 0),
            Value::ExecZero => u32::from(self.exec() == 0),
            Value::Absent => 0,
        }
    }

    /// A value of 64 bits that is the same for all lanes.
    #[inline(always)]
    pub(super) fn read_pair(&self, operand: &Operand) -> u64 {
        match operand.value {
            Value::Scalar(register) => self.pair(register),
            Value::Constant(value) => value,
            _ => u64::from(self.read(operand)),
        }
    }

    /// A mask of lanes.
    #[inline(always)]
    pub(super) fn read_mask(&self, operand: &Operand) -> u64 {
        match operand.value {
            Value::Scalar(register) => self.mask_register(register),
            Value::Constant(value) => value,
            _ => 0,
        }
    }

    /// The number of the vector register in which an operand of 32 bits can be read, as it is.
    #[inline(always)]
    pub(super) fn source(&mut self, instruction: &Instruction, index: usize) -> usize {
        let operand = &instruction.operands[index];
        match operand.value {
            Value::Vector(register) => usize::from(register),
            _ => {
                self.vectors[ROOM + index] = [self.read(operand); 64];
                ROOM + index
            }
        }
    }

    /// As [`source`](Self::source), with the operand's sign changed as the instruction says: `sign` is its bit.
    #[inline(always)]
    pub(super) fn signed_source(&mut self, instruction: &Instruction, index: usize, sign: u32) -> usize {
        let register = self.source(instruction, index);
        let operand = &instruction.operands[index];
        if !operand.negate && !operand.absolute {
            return register;
        }
        let keep = if operand.absolute { !sign } else { u32::MAX };
        let flip = if operand.negate { sign } else { 0 };
        let mut lanes = self.vectors[register];
        for lane in &mut lanes {
            *lane = (*lane & keep) ^ flip;
        }
        self.vectors[ROOM + index] = lanes;
        ROOM + index
    }

    /// The lanes of an operand of 64 bits, with its sign changed as the instruction says.
    #[inline(always)]
    pub(super) fn wide_source(&self, operand: &Operand) -> [u64; 64] {
        let mut lanes = [0; 64];
        match operand.value {
            Value::Vector(register) => {
                let register = usize::from(register);
                let (low, high) = (&self.vectors[register], &self.vectors[register + 1]);
                for lane in 0..64 {
                    lanes[lane] = u64::from(low[lane]) | u64::from(high[lane]) << 32;
                }
            }
            _ => lanes = [self.read_pair(operand); 64],
        }
        if operand.absolute {
            lanes.iter_mut().for_each(|lane| *lane &= !(1 << 63));
        }
        if operand.negate {
            lanes.iter_mut().for_each(|lane| *lane ^= 1 << 63);
        }
        lanes
    }

    /// One mask of all bits or none for each lane that takes part.
    #[inline(always)]
    fn make_lane_mask(&mut self, exec: u64) {
        if self.lane_mask_of != exec {
            self.lane_mask_of = exec;
            for lane in 0..64 {
                self.lane_mask[lane] = 0u32.wrapping_sub((exec >> lane) as u32 & 1);
            }
        }
    }

    /// Writes a vector register in the lanes that take part.
    #[inline(always)]
    pub(super) fn put(&mut self, register: usize, lanes: &Lanes) {
        let exec = self.exec();
        if exec == self.full {
            self.vectors[register] = *lanes;
            return;
        }
        self.make_lane_mask(exec);
        let (to, mask) = (&mut self.vectors[register], &self.lane_mask);
        for lane in 0..64 {
            to[lane] = to[lane] & !mask[lane] | lanes[lane] & mask[lane];
        }
    }

    /// Writes two vector registers in the lanes that take part.
    #[inline(always)]
    pub(super) fn put_wide(&mut self, register: usize, lanes: &[u64; 64]) {
        let (mut low, mut high) = ([0; 64], [0; 64]);
        for lane in 0..64 {
            low[lane] = lanes[lane] as u32;
            high[lane] = (lanes[lane] >> 32) as u32;
        }
        self.put(register, &low);
        self.put(register + 1, &high);
    }
}

/// One bit for each lane in which the byte is 1.
#[inline(always)]
pub(super) fn bits(lanes: &[u8; 64]) -> u64 {
    let mut mask = 0;
    for (index, eight) in lanes.chunks_exact(8).enumerate() {
        let mut word = 0u64;
        for (at, byte) in eight.iter().enumerate() {
            word |= u64::from(*byte) << (8 * at);
        }
        // Brings the lowest bits of eight bytes together in the highest byte.
        mask |= (word.wrapping_mul(0x0102_0408_1020_4080) >> 56) << (8 * index);
    }
    mask
}
