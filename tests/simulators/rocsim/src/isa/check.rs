//! Finds faults that only a simulator can find: registers used before the load into them has ended, races between
//! barriers, and reads of a group's memory that no lane has written.

use super::{
    instruction::{Instruction, Use, Value},
    stop::Cause,
    wave::Wave,
};
use std::collections::HashMap;

/// How memory is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    Read,
    Write,
    Atomic,
}

/// Which memory is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Space {
    Shared,
    Global,
}

/// An operation that an instruction begins and that ends later, and how to wait for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Begins {
    Nothing,
    /// A load of scalar registers, which end in any order.
    Scalar,
    /// An access to the group's memory.
    Shared,
    /// A load, or an atomic that gives the old value back.
    Load,
    /// A store, or an atomic that gives nothing back.
    Store,
    /// An access that may be to either memory.
    FlatLoad,
    FlatStore,
    /// Nothing: it waits, with the limits of [`Instruction::extra`].
    Wait,
}

/// Counters of what is pending: vector memory, scalar memory and the group's, stores where they have one of their own,
/// and the group's memory where it has one of its own.
const COUNTERS: usize = 4;

/// Which counters an architecture has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Counters {
    /// Stores have one of their own, as from gfx10 on.
    pub(super) stores: bool,
    /// The group's memory has one of its own, as from gfx12 on.
    pub(super) shared: bool,
}

impl Counters {
    /// Those of the instruction sets of that major version.
    pub(super) fn of(major: u32) -> Self {
        Self { stores: major >= 10, shared: major >= 12 }
    }
}

/// Something that has begun and may not have ended.
#[derive(Debug)]
struct Pending {
    begins: Begins,
    /// The counters that still count it.
    counted: [bool; COUNTERS],
    /// The counters that must be waited for before its registers are there. They are fewer for flat loads: which memory
    /// a load reaches says which counter its result comes with.
    guards: [bool; COUNTERS],
    registers: Vec<Use>,
    written: Vec<(Space, u64)>,
    text: Box<str>,
}

/// The last access to a byte, and its time.
#[derive(Debug, Clone, Copy, Default)]
struct Byte {
    initialized: bool,
    write: Option<Touch>,
    read: Option<Touch>,
    /// Waves other than the one in `read` have read it since the same barrier.
    read_by_others: bool,
}

#[derive(Debug, Clone, Copy)]
struct Touch {
    wave: u32,
    lane: u32,
    epoch: u32,
    atomic: bool,
    address: u64,
}

/// The checks of one group.
#[derive(Debug, Default)]
pub(super) struct Checks {
    /// How many barriers the group has passed.
    epoch: u32,
    bytes: HashMap<(Space, u64), Byte>,
    /// By the number of the wave.
    pending: Vec<Vec<Pending>>,
    /// The registers that the running instruction has written.
    writing: Vec<(Space, u64)>,
    /// Whether it has reached memory of the GPU, and that of the group.
    reached: [bool; 2],
    counters: Counters,
}

impl Checks {
    pub(super) fn new(waves: usize, counters: Counters) -> Self {
        let pending = (0..waves).map(|_| Vec::new()).collect();
        Self { pending, counters, ..Self::default() }
    }

    /// Called before an instruction runs: its registers must be there.
    pub(super) fn before(&mut self, wave: &Wave, i: &Instruction) -> Result<(), Cause> {
        self.writing.clear();
        self.reached = [false; 2];
        let Some(pending) = self.pending.get_mut(wave.number as usize) else { return Ok(()) };
        if i.begins == Begins::Wait {
            wait(pending, i.extra);
            return Ok(());
        }
        for used in &i.uses {
            let overlaps = |filled: &Use| filled.writes && overlap(used, filled);
            let awaited = |pending: &&Pending| {
                let guards = pending.counted.iter().zip(pending.guards);
                guards.into_iter().any(|(counted, guard)| *counted && guard)
                    && pending.registers.iter().any(overlaps)
            };
            if let Some(first) = pending.iter().find(awaited) {
                let verb = if used.writes { "written" } else { "read" };
                return Err(Cause::NotWaitedFor { register: name(used), verb, load: first.text.clone() });
            }
        }
        Ok(())
    }

    /// Called after an instruction has run: the operations that it began are pending.
    pub(super) fn after(&mut self, wave: &Wave, i: &Instruction) {
        let own = self.counters;
        let counts = |vector: bool, scalar: bool, store: bool, shared: bool| {
            let lgkm = scalar || shared && !own.shared;
            [vector || store && !own.stores, lgkm, store && own.stores, shared && own.shared]
        };
        let counted = match i.begins {
            Begins::Nothing | Begins::Wait => return,
            Begins::Scalar => counts(false, true, false, false),
            Begins::Shared => counts(false, false, false, true),
            Begins::Load => counts(true, false, false, false),
            Begins::FlatLoad => counts(true, false, false, true),
            Begins::Store => counts(false, false, true, false),
            Begins::FlatStore => counts(false, false, true, true),
        };
        let guards = match self.reached {
            [global, shared] if i.begins == Begins::FlatLoad && (global || shared) => {
                counts(global, false, false, shared)
            }
            _ => counted,
        };
        if let Some(pending) = self.pending.get_mut(wave.number as usize) {
            pending.push(Pending {
                begins: i.begins,
                counted,
                guards,
                registers: i.uses.iter().filter(|used| used.writes).copied().collect(),
                written: std::mem::take(&mut self.writing),
                text: i.text.clone(),
            });
        }
    }

    /// Called when all waves have come to a barrier. A store that was not waited for counts as one after it.
    pub(super) fn barrier(&mut self) {
        self.epoch += 1;
        for (space, address) in self.pending.iter().flatten().flat_map(|pending| &pending.written) {
            if let Some(Byte { write: Some(write), .. }) = self.bytes.get_mut(&(*space, *address)) {
                write.epoch = self.epoch;
            }
        }
    }

    /// Notes an access of a lane, and returns what is wrong with it.
    #[allow(clippy::too_many_arguments, reason = "an access is all of these")]
    pub(super) fn access(
        &mut self,
        wave: &Wave,
        i: &Instruction,
        lane: usize,
        space: Space,
        address: u64,
        bytes: u64,
        access: Access,
    ) -> Result<(), Cause> {
        // Stores that go past the caches are how compilers write atomic ones. Loads race with stores, and not with atomics:
        // AMD's headers begin the loop of an atomic addition with a plain load.
        let atomic = access == Access::Atomic
            || space == Space::Global && i.modifiers.past_caches
            || access == Access::Read;
        let touch =
            Touch { wave: wave.number, lane: lane as u32, epoch: self.epoch, atomic, address: i.address };
        self.reached[usize::from(space == Space::Shared)] = true;
        for address in address..address + bytes {
            let byte = self.bytes.entry((space, address)).or_default();
            if space == Space::Shared && access != Access::Write && !byte.initialized {
                return Err(Cause::Unwritten { address });
            }
            let races = |other: &&Touch| {
                other.epoch == touch.epoch && other.wave != touch.wave && !(other.atomic && atomic)
            };
            let writer = byte.write.as_ref().filter(races).map(|other| ("written", *other));
            let reader = byte
                .read
                .as_ref()
                .filter(|other| races(other) || byte.read_by_others && other.epoch == touch.epoch && !atomic);
            let reader = reader.filter(|_| access != Access::Read).map(|other| ("read", *other));
            if let Some((verb, other)) = writer.or(reader) {
                return Err(race(space, address, verb, &other));
            }
            if access == Access::Read {
                let same = byte.read.is_some_and(|read| read.epoch == touch.epoch);
                byte.read_by_others =
                    same && (byte.read_by_others || byte.read.is_some_and(|read| read.wave != touch.wave));
                byte.read = Some(touch);
            } else {
                byte.initialized = true;
                byte.write = Some(touch);
                self.writing.push((space, address));
            }
        }
        Ok(())
    }
}

fn race(space: Space, address: u64, verb: &'static str, other: &Touch) -> Cause {
    let space = if space == Space::Shared { "shared" } else { "global" };
    let Touch { wave, lane, address: by, .. } = *other;
    Cause::Race { space, address, verb, wave, lane, by }
}

/// Removes the operations that have ended by the limits of a wait.
fn wait(pending: &mut Vec<Pending>, limits: u32) {
    for counter in 0..COUNTERS {
        let limit = (limits >> (8 * counter) & 0xff) as usize;
        let counts = |pending: &Pending| pending.counted.get(counter).copied().unwrap_or(false);
        let in_order = matches!(counter, 0 | 2)
            || pending
                .iter()
                .filter(|pending| counts(pending))
                .all(|pending| pending.begins == Begins::Shared);
        if limit == 255 || limit != 0 && !in_order {
            continue;
        }
        let outstanding = pending.iter().filter(|pending| counts(pending)).count();
        let ended = outstanding.saturating_sub(limit);
        for pending in pending.iter_mut().filter(|pending| counts(pending)).take(ended) {
            if let Some(counted) = pending.counted.get_mut(counter) {
                *counted = false;
            }
        }
    }
    pending.retain(|pending| pending.counted.contains(&true));
}

fn overlap(one: &Use, two: &Use) -> bool {
    let range = |of: &Use, first: u32| first..first + u32::from(of.words);
    let (one, two) = match (one.register, two.register) {
        (Value::Vector(first), Value::Vector(second)) => {
            (range(one, first.into()), range(two, second.into()))
        }
        (Value::Scalar(first), Value::Scalar(second)) => {
            (range(one, first.into()), range(two, second.into()))
        }
        _ => return false,
    };
    one.start < two.end && two.start < one.end
}

fn name(used: &Use) -> String {
    match used.register {
        Value::Vector(register) => format!("v{}", usize::from(register).saturating_sub(super::wave::HIDDEN)),
        Value::Scalar(register) => format!("s{register}"),
        _ => String::new(),
    }
}
