//! Running a launch: groups on several threads, several groups a thread, their waves in turn.

use super::{
    environment::{DeviceMemory, Environment},
    instruction::Flow,
    launch::{Group, Kernel, Launch, Room},
    program::{Program, Undecoded},
    stop::{Cause, Place, Stop},
    wave::{State, Wave},
};
use parking_lot::Mutex;
use std::{
    cell::RefCell,
    collections::VecDeque,
    sync::{
        OnceLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

/// Why a launch has not run to its end.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The queue is to stand still.
    Stopped,
    Undecoded(Undecoded),
    Stop(Box<Stop>),
}

/// How many instructions a wave runs before the next one of its group does.
const TURN: u32 = 20_000;
/// How many turns a group gets before the next one does.
const ROUNDS: u32 = 8;
/// How many groups a thread begins before the first of them have ended: those that wait for a later one.
const GROUPS: usize = 32;
/// From how many waves on a launch is worth more than one thread.
const MANY_WAVES: u64 = 256;

/// The state that the threads of a launch share.
struct Shared<'a> {
    launch: &'a Launch,
    kernel: Kernel,
    program: &'a Program,
    checked: bool,
    counts: [u32; 3],
    next_group: AtomicU64,
    ended: AtomicBool,
    failure: Mutex<Option<Failure>>,
    instructions: AtomicU64,
}

/// Runs a launch to its end, and says how many instructions its waves have executed. `stopped` is asked now and then.
pub(crate) fn run(launch: &Launch, checked: bool, stopped: &dyn Fn() -> bool) -> Result<u64, Failure> {
    let kernel = Kernel::read(launch).map_err(|fault| Failure::Undecoded(fault.into()))?;
    let program =
        Program::get(launch.node, launch.isa, kernel.entry, kernel.shape).map_err(Failure::Undecoded)?;
    let counts = std::array::from_fn(|axis| launch.grid[axis].div_ceil(launch.group[axis].max(1)));
    let groups: u64 = counts.iter().map(|count: &u32| u64::from(*count)).product();
    let items: u64 = launch.group.iter().map(|count| u64::from(*count)).product();
    let waves = groups * items.div_ceil(kernel.shape.wave_size.into());
    let shared = Shared {
        launch,
        kernel,
        program: &program,
        checked,
        counts,
        next_group: AtomicU64::new(0),
        ended: AtomicBool::new(false),
        failure: Mutex::new(None),
        instructions: AtomicU64::new(0),
    };
    if waves < MANY_WAVES {
        shared.work(stopped);
    } else {
        thread::scope(|scope| {
            for _ in 1..processors().min(groups as usize) {
                scope.spawn(|| shared.work(&|| false));
            }
            shared.work(stopped);
        });
    }
    match shared.failure.into_inner() {
        Some(failure) => Err(failure),
        None => Ok(shared.instructions.into_inner()),
    }
}

/// How many processors there are. Asked once: the system reads files to say it.
fn processors() -> usize {
    static PROCESSORS: OnceLock<usize> = OnceLock::new();
    *PROCESSORS.get_or_init(|| thread::available_parallelism().map_or(1, usize::from))
}

thread_local! {
    /// The groups of the thread's last launch: most launches are like the one before.
    static UNUSED: RefCell<Option<(Room, Vec<Group>)>> = const { RefCell::new(None) };
}

/// The state of a group after its turn.
enum Turn {
    Ended,
    /// Its waves have all run as long as they may.
    GoesOn,
    /// All its waves wait for something outside.
    Idles,
}

impl Shared<'_> {
    /// Takes groups until there are none left.
    fn work(&self, stopped: &dyn Fn() -> bool) {
        let mut device = DeviceMemory::new(self.launch.node);
        let mut running: VecDeque<Group> = VecDeque::new();
        let room = self.kernel.room(self.launch, self.checked);
        let kept = UNUSED.with(RefCell::take).filter(|(of, _)| *of == room);
        let mut unused = kept.map_or_else(Vec::new, |(_, groups)| groups);
        let mut instructions = 0;
        while !self.ended.load(Ordering::Relaxed) {
            let mut group = match running.pop_front() {
                Some(group) => group,
                None => match self.begin(&room, &mut unused) {
                    Some(group) => group,
                    None => break,
                },
            };
            match self.turn(&mut group, &mut device, &mut instructions) {
                Ok(Turn::Ended) => unused.push(group),
                Ok(turn) => {
                    if stopped() {
                        self.fail(Failure::Stopped);
                        break;
                    }
                    running.push_back(group);
                    if running.len() < GROUPS {
                        running.extend(self.begin(&room, &mut unused));
                    }
                    if matches!(turn, Turn::Idles) {
                        thread::sleep(Duration::from_micros(20));
                    }
                }
                Err(stop) => {
                    self.fail(Failure::Stop(stop));
                    break;
                }
            }
        }
        UNUSED.set(Some((room, unused)));
        self.instructions.fetch_add(instructions, Ordering::Relaxed);
    }

    fn fail(&self, failure: Failure) {
        self.failure.lock().get_or_insert(failure);
        self.ended.store(true, Ordering::Relaxed);
    }

    /// The next group, ready to run.
    fn begin(&self, room: &Room, unused: &mut Vec<Group>) -> Option<Group> {
        let [x, y, z] = self.counts.map(u64::from);
        let number = self.next_group.fetch_add(1, Ordering::Relaxed);
        if number >= x * y * z {
            return None;
        }
        let id = [number % x, number / x % y, number / x / y].map(|place| place as u32);
        let mut group = unused.pop().unwrap_or_else(|| Group::new(room));
        group.begin(id, self.program.entry, &self.kernel, self.launch);
        Some(group)
    }

    /// Lets the waves of a group run for a while.
    fn turn(
        &self,
        group: &mut Group,
        device: &mut DeviceMemory,
        instructions: &mut u64,
    ) -> Result<Turn, Box<Stop>> {
        for _ in 0..ROUNDS {
            let (mut ran, mut yielded) = (0, 0);
            for wave in group.waves.iter_mut().filter(|wave| wave.state == State::Runs) {
                let checks = group.checks.as_deref_mut();
                let mut environment = Environment { shared: &mut group.shared, device, checks };
                let (flow, count) = if self.checked {
                    self.advance::<true>(wave, &mut environment)
                } else {
                    self.advance::<false>(wave, &mut environment)
                };
                *instructions += u64::from(count);
                wave.executed += u64::from(count);
                let goes_on = !matches!(flow, Flow::End | Flow::Stop);
                if goes_on && wave.executed > self.launch.most_instructions {
                    wave.stop = Some(Stop::new(Cause::Endless { instructions: wave.executed }, None));
                    return Err(self.place(wave, group.id));
                }
                ran += 1;
                match flow {
                    Flow::Barrier => wave.state = State::Waits,
                    Flow::End => wave.state = State::Ended,
                    Flow::Yield => yielded += 1,
                    Flow::Stop => return Err(self.place(wave, group.id)),
                    _ => {}
                }
            }
            let waits = |wave: &Wave| wave.state == State::Waits;
            if !group.waves.iter().any(|wave| wave.state == State::Runs) {
                if !group.waves.iter().any(waits) {
                    return Ok(Turn::Ended);
                }
                if let Some(checks) = &mut group.checks {
                    checks.barrier();
                }
                group.waves.iter_mut().filter(|wave| waits(wave)).for_each(|wave| wave.state = State::Runs);
            } else if ran == yielded {
                return Ok(Turn::Idles);
            }
        }
        Ok(Turn::GoesOn)
    }

    /// Runs a wave until its turn is over or something is to be done about it.
    fn advance<const CHECKED: bool>(
        &self,
        wave: &mut Wave,
        environment: &mut Environment<'_>,
    ) -> (Flow, u32) {
        let code = self.program.instructions.as_slice();
        let mut at = wave.next as usize;
        for count in 1..=TURN {
            let Some(i) = code.get(at) else {
                wave.stop = Some(Stop::new(Cause::Unknown("the end of the decoded code"), None));
                return (Flow::Stop, count);
            };
            if CHECKED {
                let checks = environment.checks.as_mut();
                if let Some(Err(cause)) = checks.map(|checks| checks.before(wave, i)) {
                    wave.stop = Some(Stop::new(cause, None));
                    wave.next = at as u32;
                    return (Flow::Stop, count);
                }
            }
            let flow = (i.op)(wave, i, environment);
            if CHECKED && let Some(checks) = environment.checks.as_mut() {
                checks.after(wave, i);
            }
            match flow {
                Flow::Next => at += 1,
                Flow::Branch => at = i.target as usize,
                Flow::Jump => match self.program.index(wave.goes_to) {
                    Some(index) => at = index as usize,
                    None => {
                        let why = "a jump to an address that is only known when it is made";
                        wave.stop = Some(Stop::new(Cause::Unknown(why), None));
                        wave.next = at as u32;
                        return (Flow::Stop, count);
                    }
                },
                Flow::Stop | Flow::End => {
                    wave.next = at as u32;
                    return (flow, count);
                }
                Flow::Barrier | Flow::Yield => {
                    wave.next = at as u32 + 1;
                    return (flow, count);
                }
            }
        }
        wave.next = at as u32;
        (Flow::Next, TURN)
    }

    /// Says where a wave has stopped.
    fn place(&self, wave: &mut Wave, group: [u32; 3]) -> Box<Stop> {
        let unsaid = || Stop::new(Cause::Unknown("nothing was said"), None);
        let mut stop = wave.stop.take().unwrap_or_else(unsaid);
        let instruction = self.program.instructions.get(wave.next as usize);
        let address = instruction.map_or(0, |instruction| instruction.address);
        stop.place = Place {
            kernel: self.launch.name.clone(),
            address,
            offset: address.wrapping_sub(self.kernel.entry),
            text: instruction.map_or_else(String::new, |instruction| instruction.text.to_string()),
            group,
            wave: wave.number,
        };
        stop
    }
}
