//! The start of a kernel: its descriptor, and the registers of its waves.

use super::{
    check::{Checks, Counters},
    decode::Shape,
    memory::ADD_LANE,
    mode::Mode,
    text::scalar,
    wave::{HIDDEN, Lanes, PRIVATE_APERTURE, SHARED_APERTURE, State, Wave},
};
use crate::memory::{self, Fault};

/// A launch, as the packet of the queue says it.
#[derive(Debug, Clone)]
pub(crate) struct Launch {
    pub(crate) node: u32,
    /// Major, minor and stepping of the instruction set.
    pub(crate) isa: (u32, u32, u32),
    pub(crate) name: String,
    pub(crate) grid: [u32; 3],
    pub(crate) group: [u32; 3],
    pub(crate) shared_bytes: u32,
    pub(crate) private_bytes: u32,
    /// Addresses of the GPU: the kernel's descriptor, its arguments, the packet and the queue.
    pub(crate) object: u64,
    pub(crate) arguments: u64,
    pub(crate) packet: u64,
    pub(crate) queue: u64,
    /// How many instructions a wave may execute before it is said to be endless.
    pub(crate) most_instructions: u64,
}

/// The descriptor of a kernel.
#[derive(Debug)]
pub(super) struct Kernel {
    pub(super) entry: u64,
    pub(super) shape: Shape,
    private_bytes: u32,
    resources: [u32; 2],
    properties: u32,
    mode: Mode,
    /// The three parts of a work-item's place in its group come in one register.
    packs_places: bool,
}

impl Kernel {
    /// Reads the descriptor.
    pub(super) fn read(launch: &Launch) -> Result<Self, Fault> {
        let span = memory::span(launch.node, launch.object, 64)?;
        // SAFETY: the span has 64 bytes, whatever their alignment.
        let words: [u32; 16] = unsafe { span.as_ptr().cast::<[u32; 16]>().read_unaligned() };
        let (resources, properties) = ([words[12], words[13]], words[14]);
        // One file of registers for both kinds, and a wave's places in one register.
        let is_unified = matches!(launch.isa, (9, 0, 10) | (9, 4.., _));
        let wave_size = if launch.isa.0 >= 10 && properties >> 10 & 1 == 1 { 32 } else { 64 };
        let granule = if is_unified || wave_size == 32 { 8 } else { 4 };
        let vectors = ((resources[0] & 0x3f) as u16 + 1) * granule;
        let (vectors, accumulators) = match launch.isa {
            _ if is_unified => (vectors, ((words[11] & 0x3f) as u16 + 1) * 4),
            // They have a file of their own, of the same size.
            (9, 0, 8) => (2 * vectors, vectors),
            _ => (vectors, vectors),
        };
        let offset = u64::from(words[4]) | u64::from(words[5]) << 32;
        Ok(Self {
            entry: launch.object.wrapping_add(offset),
            shape: Shape { wave_size, vectors, accumulators },
            private_bytes: words[1].max(launch.private_bytes),
            resources,
            properties,
            mode: Mode::from_bits(resources[0] >> 12 & 0xff),
            packs_places: is_unified || launch.isa.0 >= 11,
        })
    }
}

/// The memory that a group needs. Groups with equal needs can replace each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Room {
    waves: u32,
    shape: Shape,
    private_bytes: usize,
    shared_bytes: usize,
    keeps_upper_half: bool,
    counters: Counters,
    /// Groups keep the places of their lanes.
    packs_places: bool,
    checked: bool,
}

impl Kernel {
    /// The memory that the groups of a launch need.
    pub(super) fn room(&self, launch: &Launch, checked: bool) -> Room {
        let items: u32 = launch.group.iter().product();
        Room {
            waves: items.div_ceil(self.shape.wave_size),
            shape: self.shape,
            private_bytes: self.private_bytes as usize,
            shared_bytes: launch.shared_bytes as usize,
            keeps_upper_half: launch.isa.0 >= 10,
            counters: Counters::of(launch.isa.0),
            packs_places: self.packs_places,
            checked,
        }
    }
}

/// A group that runs.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) id: [u32; 3],
    /// How many work-items along each axis the places of the lanes were worked out for.
    size: [u32; 3],
    pub(super) shared: Vec<u8>,
    pub(super) waves: Vec<Wave>,
    pub(super) checks: Option<Box<Checks>>,
}

impl Group {
    /// A group with room for all that the kernel needs, to be used again and again.
    pub(super) fn new(room: &Room) -> Self {
        let wave = |number: u32| {
            let mut wave = Wave::new(room.shape.wave_size, room.shape.vectors.into());
            wave.number = number;
            wave.keeps_upper_half = room.keeps_upper_half;
            wave.private_bytes = room.private_bytes;
            wave.private = vec![0; room.private_bytes * 64];
            wave
        };
        let checks = room.checked.then(|| Box::new(Checks::new(room.waves as usize, room.counters)));
        Self {
            id: [0; 3],
            size: [0; 3],
            shared: vec![0; room.shared_bytes],
            waves: (0..room.waves).map(wave).collect(),
            checks,
        }
    }

    /// Begins the group with that number.
    pub(super) fn begin(&mut self, id: [u32; 3], entry: u32, kernel: &Kernel, launch: &Launch) {
        self.id = id;
        // The contents must not be relied on.
        self.shared.fill(0xcc);
        if let Some(checks) = &mut self.checks {
            **checks = Checks::new(self.waves.len(), Counters::of(launch.isa.0));
        }
        // A group at the edge of the grid has fewer work-items.
        let size: [u32; 3] = std::array::from_fn(|axis| {
            launch.group[axis].min(launch.grid[axis].saturating_sub(id[axis] * launch.group[axis]))
        });
        let items: u32 = size.iter().product();
        let axes = (kernel.resources[1] >> 11 & 3).min(2) as usize + 1;
        let mut first = 0;
        for wave in &mut self.waves {
            begin_wave(wave, kernel, launch, id);
            wave.next = entry;
            let count = items.saturating_sub(first).min(wave.size);
            wave.set_exec(if count == 64 { u64::MAX } else { (1 << count) - 1 });
            wave.state = if count == 0 { State::Ended } else { State::Runs };
            if self.size != size {
                wave.places = places(wave.size, kernel.packs_places, first, size);
            }
            let registers = if kernel.packs_places { 1 } else { axes };
            for (register, places) in wave.places.iter().enumerate().take(registers) {
                wave.vectors[HIDDEN + register] = *places;
            }
            first += wave.size;
        }
        self.size = size;
    }
}

/// The place of each lane in its group along the three axes; all three in the first register where they are packed.
fn places(wave_size: u32, packed: bool, first: u32, size: [u32; 3]) -> [Lanes; 3] {
    let mut places = [[0; 64]; 3];
    let mut place = [first % size[0], first / size[0] % size[1], first / size[0] / size[1]];
    for lane in 0..wave_size as usize {
        let [x, y, z] = &mut places;
        if packed {
            x[lane] = place[0] | place[1] << 10 | place[2] << 20;
        } else {
            (x[lane], y[lane], z[lane]) = (place[0], place[1], place[2]);
        }
        place[0] += 1;
        if place[0] == size[0] {
            place = [0, place[1] + 1, place[2]];
        }
        if place[1] == size[1] {
            place = [place[0], 0, place[2] + 1];
        }
    }
    places
}

/// Bits of a kernel's properties: which scalar registers it wants to begin with.
mod wants {
    pub(super) const PRIVATE_BUFFER: u32 = 1;
    pub(super) const PACKET: u32 = 2;
    pub(super) const QUEUE: u32 = 4;
    pub(super) const ARGUMENTS: u32 = 8;
    pub(super) const DISPATCH_ID: u32 = 16;
    pub(super) const FLAT_SCRATCH: u32 = 32;
    pub(super) const PRIVATE_BYTES: u32 = 64;
}

/// Sets the registers that all lanes share.
fn begin_wave(wave: &mut Wave, kernel: &Kernel, launch: &Launch, id: [u32; 3]) {
    wave.scalars = [0; 256];
    wave.mode = kernel.mode;
    wave.stop = None;
    wave.executed = 0;
    wave.signalled = false;
    let bases = [
        (scalar::SHARED_BASE, SHARED_APERTURE),
        (scalar::PRIVATE_BASE, PRIVATE_APERTURE),
        (scalar::SHARED_LIMIT, SHARED_APERTURE),
        (scalar::PRIVATE_LIMIT, PRIVATE_APERTURE),
    ];
    for (register, aperture) in bases {
        wave.set_pair(register, u64::from(aperture) << 32);
    }
    let mut next = 0u8;
    let mut put = |wave: &mut Wave, words: &[u32]| {
        for word in words {
            wave.set_scalar(next, *word);
            next += 1;
        }
    };
    let pair = |address: u64| [address as u32, (address >> 32) as u32];
    let wanted = |bit: u32| kernel.properties & bit != 0;
    if wanted(wants::PRIVATE_BUFFER) {
        put(wave, &[0, 0, u32::MAX, ADD_LANE]);
    }
    if wanted(wants::PACKET) {
        put(wave, &pair(launch.packet));
    }
    if wanted(wants::QUEUE) {
        put(wave, &pair(launch.queue));
    }
    if wanted(wants::ARGUMENTS) {
        put(wave, &pair(launch.arguments));
    }
    if wanted(wants::DISPATCH_ID) {
        put(wave, &[0, 0]);
    }
    if wanted(wants::FLAT_SCRATCH) {
        put(wave, &[0, 0]);
    }
    if wanted(wants::PRIVATE_BYTES) {
        put(wave, &[kernel.private_bytes]);
    }
    // The group's number comes in registers of the trap handler from gfx12 on.
    if launch.isa.0 >= 12 {
        wave.set_scalar(scalar::TTMP + 9, id[0]);
        wave.set_scalar(scalar::TTMP + 7, id[1] | id[2] << 16);
        wave.set_scalar(scalar::TTMP + 8, wave.number << 25);
        return;
    }
    let resources = kernel.resources[1];
    next = next.max((resources >> 1 & 31) as u8);
    let system = [(7, id[0]), (8, id[1]), (9, id[2]), (10, 0), (0, 0)];
    for (bit, value) in system {
        if resources >> bit & 1 == 1 {
            wave.set_scalar(next, value);
            next += 1;
        }
    }
}
