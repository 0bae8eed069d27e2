//! The thread that calls the library: one for the process. It starts when the first communicator is made.

use super::{
    Comm, Lent, Mpi, MpiError,
    abi::{self, Object},
    comm::Unclaimed,
    inbox::{Ending, Inbox, Message},
    library,
    member::{Member, Parting, test_all},
    operation::Work,
    reduce::Made,
    split,
};
use crate::{Options, call_counts::CallCounts, report};
use gpumem_core::{
    CollectiveCause, CollectiveError, Error, LoadError, LoadFailure, Result,
    process::{OnceBeforeFork, ProcessGuard, at_exit},
};
use std::{
    ffi::{c_int, c_void},
    ptr::{null, null_mut},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
        mpsc::{RecvTimeoutError, Sender, channel},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

/// How long the thread asks the library again and again before it begins to sleep in between.
const EAGER: Duration = Duration::from_millis(1);
/// Its sleep while operations are under way, and while there are communicators only.
const NAP: Duration = Duration::from_micros(50);
const IDLE: Duration = Duration::from_millis(100);

/// How long the end of the process waits for ranks that may be gone.
const SPOILED: Duration = Duration::from_secs(1);

/// The running thread.
#[derive(Debug, Clone)]
struct Running {
    inbox: Arc<Inbox>,
    origin: ProcessGuard,
    process: u32,
    /// Rank and number of the processes that the launcher has started.
    place: (usize, usize),
}

static RUNNING: OnceBeforeFork<Result<Running, LoadError>> = OnceBeforeFork::new();
/// The same for the end of the process, which starts no thread.
static AT_EXIT: OnceLock<Running> = OnceLock::new();
/// The longest deadline of a communicator, in milliseconds: so long the end of the process waits for other ranks.
static LONGEST: AtomicU64 = AtomicU64::new(0);

/// Whether a communicator has failed, or did not come about: then a rank may be gone.
static IS_SPOILED: AtomicBool = AtomicBool::new(false);

/// Notes that a communicator has failed, or did not come about.
pub(crate) fn spoil() {
    // Relaxed: read at the end of the process, which may be too early for a failure of the same moment.
    IS_SPOILED.store(true, Ordering::Relaxed);
}

/// Makes a communicator of all processes. Waits for them.
pub(crate) fn join(options: &Options) -> Result<Arc<Comm>> {
    let failed = |error: LoadError| Error::new("", "join", error);
    let running = RUNNING.get_or_init(|| run(options.timeout));
    let Some(running) = running else { return Err(failed(LoadError::in_forked_child("MPI"))) };
    let running = running.as_ref().map_err(|error| failed(error.clone()))?;
    running.origin.check("", "join")?;
    let milliseconds = u64::try_from(options.timeout.as_millis()).unwrap_or(u64::MAX);
    // Relaxed: a number for the end of the process, and only its own order matters.
    LONGEST.fetch_max(milliseconds, Ordering::Relaxed);
    running.join(options)
}

impl Running {
    /// Makes a communicator of all processes.
    fn join(&self, options: &Options) -> Result<Arc<Comm>> {
        let (reply, answer) = channel();
        self.inbox.push(Message::Join(options.clone(), reply));
        let cause = match answer.recv_timeout(options.timeout) {
            Ok(Ok(comm)) => return Ok(comm.claim()),
            Ok(Err(error)) => CollectiveCause::PeerLost { rank: self.place.0, why: error.message },
            Err(RecvTimeoutError::Timeout) => {
                spoil();
                CollectiveCause::Timeout { after: options.timeout, missing: Vec::new() }
            }
            Err(RecvTimeoutError::Disconnected) => {
                CollectiveCause::PeerLost { rank: self.place.0, why: "its engine has ended".to_owned() }
            }
        };
        Err(Error::new("", "join", Box::new(CollectiveError::new("join", 0, self.place, cause))))
    }
}

/// Starts the thread, and waits until the library is initialised.
fn run(timeout: Duration) -> Result<Running, LoadError> {
    let mpi = library::library()?;
    let refused = |message: String| LoadError {
        library: "MPI",
        tried: vec![mpi.version.clone()],
        failure: LoadFailure::Refused { message },
    };
    let running = start(mpi, timeout, || {}).map_err(refused)?;
    if AT_EXIT.set(running.clone()).is_ok() {
        at_exit(finish);
    }
    Ok(running)
}

/// Starts a thread that calls the library, `before` on it first.
fn start(
    mpi: &'static Mpi,
    timeout: Duration,
    before: impl FnOnce() + Send + 'static,
) -> Result<Running, String> {
    let inbox = Arc::new(Inbox::default());
    let (started, answer) = channel();
    let own = inbox.clone();
    let main = move || {
        before();
        match Engine::start(mpi, own) {
            Ok((engine, place)) => {
                let _ = started.send(Ok(place));
                engine.run();
            }
            Err(message) => {
                let _ = started.send(Err(message));
            }
        }
    };
    let spawned = thread::Builder::new().name("gpumem:mpi".to_owned()).spawn(main);
    inbox.set_thread(spawned.map_err(|error| format!("no thread could be started: {error}"))?);
    let silent = |_| Err(format!("it was not initialised within {timeout:?}"));
    let place = answer.recv_timeout(timeout).unwrap_or_else(silent)?;
    Ok(Running { inbox, origin: ProcessGuard::of_driver(), process: std::process::id(), place })
}

/// A rank of a double of the library, on a thread of its own, for which the test prepares it.
#[cfg(all(test, not(miri)))]
#[derive(Debug)]
pub(crate) struct DoubleRank(Running);

#[cfg(all(test, not(miri)))]
impl DoubleRank {
    pub(crate) fn start(mpi: &'static Mpi, before: impl FnOnce() + Send + 'static) -> Result<Self, String> {
        start(mpi, Duration::from_secs(20), before).map(Self)
    }

    pub(crate) fn join(&self, options: &Options) -> Result<Arc<Comm>> {
        self.0.join(options)
    }

    /// What the end of the process does, within this time.
    pub(crate) fn end(&self, wait: Duration) {
        let _ = self.begin_end(Ending::Own).recv_timeout(wait);
    }

    /// Begins what an end does. The sender is dropped once the thread calls the library no more.
    pub(crate) fn begin_end(&self, ending: Ending) -> std::sync::mpsc::Receiver<()> {
        let (done, answer) = channel();
        self.0.inbox.push(Message::Finish(ending, done));
        answer
    }
}

/// Ends MPI at the end of the process: without that, its launcher takes the process for failed.
extern "C" fn finish() {
    let Some(running) = AT_EXIT.get() else { return };
    // The guard of the process may have noticed the end before this. A forked child has no such thread.
    if running.process == std::process::id() {
        let (done, answer) = channel();
        running.inbox.push(Message::Finish(Ending::Own, done));
        // Relaxed, both: a communicator that comes about at this moment is not waited for longer.
        let longest = Duration::from_millis(LONGEST.load(Ordering::Relaxed));
        let wait = if IS_SPOILED.load(Ordering::Relaxed) { longest.min(SPOILED) } else { longest };
        let _ = answer.recv_timeout(wait);
    }
}

/// A communicator of all processes that is being made.
#[derive(Debug)]
struct Joining {
    options: Options,
    reply: Sender<Result<Unclaimed, MpiError>>,
    /// The request, and where the library writes the communicator.
    request: Object,
    raw: Lent<Box<Object>>,
    number: u64,
}

#[derive(Debug)]
struct Engine {
    mpi: &'static Mpi,
    inbox: Arc<Inbox>,
    made: Made,
    members: Vec<Member>,
    joining: Vec<Joining>,
    joins: u64,
    /// Whether this thread has initialised the library, and so finalises it.
    is_owner: bool,
    /// Whether several threads may call the library.
    is_multiple: bool,
    /// Who waits for its end is told when these are dropped.
    finishing: Option<(Ending, Vec<Sender<()>>)>,
    /// Threads that make communicators of parts.
    splitting: Vec<JoinHandle<()>>,
}

impl Engine {
    /// Initialises the library, unless another part of the process has.
    fn start(mpi: &'static Mpi, inbox: Arc<Inbox>) -> Result<(Self, (usize, usize)), String> {
        let functions = &mpi.functions;
        let (mut initialised, mut finalised, mut provided) = (0, 0, 0);
        let told = |error: MpiError| error.message;
        // SAFETY: places for the answers; these may be called at any time.
        unsafe {
            mpi.check(functions.MPI_Initialized(&mut initialised)).map_err(told)?;
            mpi.check(functions.MPI_Finalized(&mut finalised)).map_err(told)?;
        }
        // MPI cannot be initialised a second time.
        if finalised != 0 {
            return Err("another library has initialised and finalised MPI".to_owned());
        }
        let is_owner = initialised == 0;
        // SAFETY: the library is initialised once, without arguments of the program; or it was, and is asked.
        let answer = unsafe {
            if is_owner {
                functions.MPI_Init_thread(null_mut(), null_mut(), abi::THREAD_MULTIPLE, &mut provided)
            } else {
                functions.MPI_Query_thread(&mut provided)
            }
        };
        mpi.check(answer).map_err(told)?;
        library::check_threads(provided, is_owner)?;
        // An owner before us has set what it wants.
        if is_owner {
            // Errors of no communicator are those of the process alone.
            for comm in [abi::COMM_WORLD, abi::COMM_SELF] {
                // SAFETY: the library was initialised above.
                mpi.check(unsafe { functions.MPI_Comm_set_errhandler(comm, abi::ERRORS_RETURN) })
                    .map_err(told)?;
            }
        }
        let place = place(mpi, abi::COMM_WORLD).map_err(told)?;
        watch_finalize(mpi, &inbox).map_err(told)?;
        let engine = Self {
            mpi,
            inbox,
            made: Made::default(),
            members: Vec::new(),
            joining: Vec::new(),
            joins: 0,
            is_owner,
            is_multiple: provided == abi::THREAD_MULTIPLE,
            finishing: None,
            splitting: Vec::new(),
        };
        Ok((engine, place))
    }

    fn run(mut self) {
        let mut last = Instant::now();
        loop {
            let is_busy = self.members.iter().any(Member::is_busy) || !self.joining.is_empty();
            let wait = match is_busy {
                // Small operations take microseconds: a sleep would be most of it.
                true if last.elapsed() < EAGER => {
                    thread::yield_now();
                    Some(Duration::ZERO)
                }
                true => Some(NAP),
                // Nothing can happen but a message.
                false if self.members.is_empty() => None,
                false => Some(IDLE),
            };
            // All at once, and without the lock: handling them may wake streams, which call operations.
            let messages = self.inbox.take(wait);
            let mut changed = !messages.is_empty();
            for message in messages {
                self.handle(message);
            }
            changed |= self.go_on();
            if changed {
                last = Instant::now();
            }
            if self.is_over() {
                return self.finish();
            }
        }
    }

    fn handle(&mut self, message: Message) {
        let mpi = self.mpi;
        match message {
            Message::Join(options, reply) => self.join(options, reply),
            Message::Add(operation) => {
                match self.member(operation.comm.key) {
                    Some(member) => member.add(operation),
                    // It was given up, or has failed, before the thread came to this.
                    None => {
                        let (rank, _) = operation.comm.place();
                        let gone = CollectiveCause::Aborted { rank };
                        let revoked = operation.comm.of_rank(|own| own.revoked.clone());
                        operation.conclude(Err(revoked.unwrap_or(gone)));
                    }
                }
            }
            // It may be gone already: an abort or a deadline has closed it.
            Message::Leave(key) => {
                if let Some(member) = self.member(key) {
                    member.leave(mpi);
                }
            }
            Message::Abort(key) => {
                if let Some(member) = self.member(key) {
                    member.abort(mpi);
                }
            }
            Message::Made(parting, made) => self.part(parting, made),
            Message::Finish(ending, done) => {
                if ending == Ending::Other {
                    self.members
                        .iter_mut()
                        .for_each(|member| member.cut_off(mpi, "another library has finalised MPI"));
                    // Their callers are told by the sender that is dropped.
                    self.joining.clear();
                }
                self.members.iter_mut().for_each(|member| member.leave(mpi));
                let (before, mut told) = self.finishing.take().unwrap_or((ending, Vec::new()));
                told.push(done);
                // MPI is finalised once, also if the process ends meanwhile.
                let ending = if before == Ending::Other { before } else { ending };
                self.finishing = Some((ending, told));
            }
        }
    }

    fn member(&mut self, key: u64) -> Option<&mut Member> {
        self.members.iter_mut().find(|member| member.comm.key == key)
    }

    /// Begins to make a communicator of all processes.
    fn join(&mut self, options: Options, reply: Sender<Result<Unclaimed, MpiError>>) {
        if self.finishing.is_some() {
            // It would not be given up before MPI is finalised. The caller is told by the sender that is dropped.
            return;
        }
        let (mut raw, mut request) = (Lent::new(Box::new(abi::COMM_NULL)), abi::REQUEST_NULL);
        // SAFETY: the communicator of the standard, and places for the new one and the request, kept until it is done.
        let begun = unsafe { self.mpi.functions.MPI_Comm_idup(abi::COMM_WORLD, &mut **raw, &mut request) };
        match self.mpi.check(begun) {
            Ok(()) => {
                self.joining.push(Joining { options, reply, request, raw, number: self.joins });
                self.joins += 1;
            }
            Err(error) => {
                let _ = reply.send(Err(error));
            }
        }
    }

    fn go_on(&mut self) -> bool {
        let (mut changed, mut partings) = (false, Vec::new());
        for member in &mut self.members {
            changed |= member.go_on(self.mpi, &mut self.made, &mut partings);
        }
        for parting in partings {
            self.begin_part(parting);
        }
        for index in (0..self.joining.len()).rev() {
            let mut requests = [self.joining[index].request];
            match test_all(self.mpi, &mut requests, &mut abi::Status::default()) {
                Ok(false) => {}
                Ok(true) => {
                    let Joining { options, reply, raw, number, .. } = self.joining.swap_remove(index);
                    let comm = self.joined(options, *raw.back(), number);
                    let _ = reply.send(comm.map(Unclaimed::new));
                    changed = true;
                }
                Err(error) => {
                    let _ = self.joining.swap_remove(index).reply.send(Err(error));
                    changed = true;
                }
            }
        }
        for index in (0..self.members.len()).rev() {
            if self.members[index].is_closed() {
                self.members.swap_remove(index).close(self.mpi);
                changed = true;
            }
        }
        changed
    }

    fn joined(&mut self, options: Options, raw: Object, number: u64) -> Result<Arc<Comm>, MpiError> {
        // SAFETY: the communicator was made.
        self.mpi.check(unsafe { self.mpi.functions.MPI_Comm_set_errhandler(raw, abi::ERRORS_RETURN) })?;
        let place = place(self.mpi, raw)?;
        let (call_counts, inbox) = (Arc::new(CallCounts::new(1)), self.inbox.clone());
        let comm = Comm::new((number, raw), place, options, call_counts, inbox);
        self.members.push(Member::new(self.mpi, comm.clone()));
        Ok(comm)
    }

    /// Makes the communicator of a part, on a thread of its own: that waits for other ranks, and this thread keeps all deadlines.
    fn begin_part(&mut self, parting: Parting) {
        if !self.is_multiple {
            let why = "a split needs MPI_THREAD_MULTIPLE, which this MPI does not provide".to_owned();
            return parting.operation.answer(Err(CollectiveCause::Library { why }));
        }
        let (mpi, inbox, raw) = (self.mpi, self.inbox.clone(), parting.operation.comm.raw);
        let make = move || {
            let made = split::make(mpi, raw, &parting.ranks, parting.tag);
            inbox.push(Message::Made(parting, made));
        };
        self.splitting.retain(|thread| !thread.is_finished());
        match thread::Builder::new().name("gpumem:split".to_owned()).spawn(make) {
            Ok(thread) => self.splitting.push(thread),
            // The split has failed with it. The other ranks stop waiting at their deadline.
            Err(error) => {
                report::warn(&format!("a split takes no part, as no thread could be started: {error}"));
            }
        }
    }

    fn part(&mut self, parting: Parting, made: Result<Object, MpiError>) {
        let Parting { operation, ranks, .. } = &parting;
        let parent = &operation.comm;
        let Work::Split(request) = &operation.work else { return };
        let (old, _) = parent.place();
        let (raw, rank) = match (made, ranks.iter().position(|rank| *rank == old)) {
            (Ok(raw), Some(rank)) => (raw, rank),
            (Err(error), _) => {
                return operation.answer(Err(CollectiveCause::PeerLost { rank: old, why: error.message }));
            }
            (Ok(_), None) => return,
        };
        let id = parent.part(operation.number, request.said.colour.unwrap_or(0));
        let (call_counts, inbox) = (parent.call_counts.clone(), self.inbox.clone());
        let part = Comm::new((id, raw), (rank, ranks.len()), parent.options.clone(), call_counts, inbox);
        self.members.push(Member::new(self.mpi, part.clone()));
        let part = Unclaimed::new(part);
        operation.answer(match self.finishing {
            None => Ok(Some(part)),
            // It is given up at once.
            Some(_) => Err(CollectiveCause::PeerLost { rank: old, why: "MPI is being finalised".to_owned() }),
        });
    }

    /// Whether MPI is to end, and all ranks have given all communicators up.
    fn is_over(&self) -> bool {
        self.finishing.is_some() && self.members.is_empty() && self.joining.is_empty()
    }

    /// Calls the library no more.
    fn finish(mut self) {
        // The library tells `before_finalize`, which must not wait for this thread.
        self.inbox.close();
        for thread in self.splitting.drain(..) {
            // All are over, as no member is left. A panic was told when it happened.
            let _ = thread.join();
        }
        if self.is_owner && matches!(self.finishing, Some((Ending::Own, _))) {
            // SAFETY: this thread has initialised the library, and calls nothing afterwards. Memory of operations that never
            // end is never freed.
            if let Err(error) = self.mpi.check(unsafe { self.mpi.functions.MPI_Finalize() }) {
                report::warn(&format!("MPI was not finalised: {}", error.message));
            }
        }
    }
}

/// Has MPI wait for the engine's thread wherever it is finalised: the standard has the attributes of `MPI_COMM_SELF` deleted
/// before anything else ends. A thread that calls the library meanwhile would use memory that is freed.
fn watch_finalize(mpi: &Mpi, inbox: &Arc<Inbox>) -> Result<(), MpiError> {
    let mut key = 0;
    let inbox: *const Inbox = Arc::into_raw(inbox.clone());
    let functions = &mpi.functions;
    // SAFETY: a place for the key. The function keeps to the ABI, and the inbox lives as long as the process.
    unsafe {
        mpi.check(functions.MPI_Comm_create_keyval(null(), before_finalize, &mut key, null_mut()))?;
        mpi.check(functions.MPI_Comm_set_attr(abi::COMM_SELF, key, inbox.cast_mut().cast()))
    }
}

/// Ends the engine's thread. Waits for it.
///
/// # Safety
/// The attribute is an inbox that lives.
unsafe extern "C" fn before_finalize(
    _comm: Object,
    _key: c_int,
    attribute: *mut c_void,
    _state: *mut c_void,
) -> c_int {
    // SAFETY: the caller's promise.
    let inbox = unsafe { &*attribute.cast_const().cast::<Inbox>() };
    let (done, answer) = channel();
    inbox.push(Message::Finish(Ending::Other, done));
    // The sender is dropped with the engine, or with the message if that is gone.
    let _ = answer.recv();
    // At the end of a thread the library frees what it keeps for it.
    inbox.join_thread();
    abi::SUCCESS
}

impl Drop for Engine {
    /// However the thread ends, what it has and what it is told is dropped: streams and callers that wait get an error.
    fn drop(&mut self) {
        self.inbox.close();
    }
}

/// Rank and size of a communicator.
fn place(mpi: &Mpi, comm: Object) -> Result<(usize, usize), MpiError> {
    let (mut rank, mut size): (c_int, c_int) = (0, 0);
    // SAFETY: a communicator of the library, and places for the numbers.
    unsafe {
        mpi.check(mpi.functions.MPI_Comm_rank(comm, &mut rank))?;
        mpi.check(mpi.functions.MPI_Comm_size(comm, &mut size))?;
    }
    let number = |number: c_int| usize::try_from(number).unwrap_or(0);
    Ok((number(rank), number(size)))
}
