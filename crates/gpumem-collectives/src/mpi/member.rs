//! A communicator on the engine's thread: what waits, what is under way, and what the other ranks tell.

mod failures;
mod peers;

use super::{
    Buffer, Comm, Lent, Mpi, MpiError, Operation, Staging,
    abi::{self, Object, Status},
    control::{Event, PeerStatus},
    exchange::Exchange,
    operation::{Found, Owned, Sequence, Work},
    reduce::Made,
    start,
};
use crate::{fingerprint::SUMMARY, report};
use std::{
    collections::{BTreeMap, VecDeque},
    ffi::c_int,
    sync::{Arc, Weak},
    time::{Duration, Instant},
};

/// How long a rank that waited too long listens to the others, before it says which ones are missing.
const GRACE: Duration = Duration::from_millis(300);

/// An operation that the library has.
#[derive(Debug)]
struct Active {
    operation: Owned,
    requests: Vec<Object>,
    stage: Stage,
}

#[derive(Debug)]
enum Stage {
    /// All ranks say in a few bytes what they have called. A rank that cannot take part has no buffers, but why.
    Agree(Lent<Exchange>, Result<Staging, String>),
    /// The ranks compare what they have called: two of them at once, and all where these do not suffice.
    Check(Lent<Exchange>, Result<Staging, String>),
    Move(Lent<Staging>),
    /// The ranks say where they go.
    Split(Lent<Exchange>),
}

/// A split whose communicator is to be made.
#[derive(Debug)]
pub(crate) struct Parting {
    pub(crate) operation: Owned,
    pub(crate) ranks: Vec<usize>,
    pub(crate) tag: c_int,
}

/// The wait of a rank that has waited too long.
#[derive(Debug)]
struct Late {
    since: Instant,
    /// What the library says, if it has failed.
    why: Option<String>,
}

#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) comm: Arc<Comm>,
    waiting: BTreeMap<Sequence, VecDeque<Owned>>,
    active: Vec<Active>,
    /// Where the next status of another rank comes.
    control: Option<(Object, Lent<Buffer>)>,
    outgoing: Vec<(Object, Lent<Buffer>, Instant)>,
    late: Option<Late>,
    has_left: bool,
    /// It has told the others so, as the last status.
    has_ended: bool,
    is_dead: bool,
    splits: c_int,
    /// The splits whose communicators are being made.
    partings: Vec<Weak<Operation>>,
    /// Whether the library may use something for ever.
    has_abandoned: bool,
}

impl Member {
    pub(crate) fn new(mpi: &Mpi, comm: Arc<Comm>) -> Self {
        let mut member = Self {
            comm,
            waiting: BTreeMap::new(),
            active: Vec::new(),
            control: None,
            outgoing: Vec::new(),
            late: None,
            has_left: false,
            has_ended: false,
            is_dead: false,
            splits: 0,
            partings: Vec::new(),
            has_abandoned: false,
        };
        member.listen(mpi);
        member
    }

    pub(crate) fn add(&mut self, operation: Owned) {
        // It was called before the thread heard what makes it fail.
        let failed = self.comm.of_rank(|own| own.revoked.clone()).filter(|_| self.is_dead);
        if let Some(cause) = failed.or_else(|| self.comm.left(operation.of, operation.number)) {
            return operation.conclude(Err(cause));
        }
        self.waiting.entry(operation.of).or_default().push_back(operation);
    }

    /// Whether the library has to be asked again soon.
    pub(crate) fn is_busy(&self) -> bool {
        !self.active.is_empty() || !self.outgoing.is_empty() || self.late.is_some()
    }

    /// Goes on with everything. Tells whether anything has changed. Splits to be made are added to `partings`.
    pub(crate) fn go_on(&mut self, mpi: &Mpi, made: &mut Made, partings: &mut Vec<Parting>) -> bool {
        let mut changed = self.hear(mpi);
        // A status first: an operation that has failed by them is not begun any more.
        changed |= self.begin(mpi);
        changed |= self.test(mpi, made, partings);
        self.flush(mpi);
        // After the library was asked: what it has just done is not late.
        self.check_deadlines(mpi);
        self.try_end(mpi);
        changed
    }

    /// Starts what is next and ready.
    fn begin(&mut self, mpi: &Mpi) -> bool {
        let mut changed = false;
        for of in self.waiting.keys().copied().collect::<Vec<_>>() {
            // Each sequence by itself: a send may begin while an operation of all ranks waits for its stream.
            while let Some(next) = self.next(of) {
                changed = true;
                match next.take() {
                    Found::NotReady | Found::Over => {}
                    // The others learn why from the exchange, and fail with the same cause.
                    Found::GivenUp(why) => self.agree(mpi, next, Err(why)),
                    Found::Ready(staging) => self.agree(mpi, next, Ok(staging)),
                }
            }
        }
        changed
    }

    /// Takes the next operation, if it may begin.
    fn next(&mut self, of: Sequence) -> Option<Owned> {
        // Two exchanges of what was called must not overtake each other; nor must a split and what follows it.
        let is_alone = |active: &Active| !matches!(active.stage, Stage::Move(_));
        if self.active.iter().any(|active| active.operation.of == of && is_alone(active)) {
            return None;
        }
        let waiting = self.waiting.get_mut(&of)?;
        // Only the oldest may begin: the library matches operations of a communicator by their order.
        waiting.front().filter(|next| next.is_ready())?;
        waiting.pop_front()
    }

    /// Asks whether the ranks have called the same, before anything is moved: ranks that do not agree would get bytes that
    /// no rank has sent.
    fn agree(&mut self, mpi: &Mpi, operation: Owned, staging: Result<Staging, String>) {
        if operation.of != Sequence::OfAll {
            return self.check(mpi, operation, staging);
        }
        // A rank that cannot take part agrees with none.
        let said = staging.as_ref().map(|_| operation.fingerprint.summary(self.comm.options.check));
        let exchange = Exchange::of_all(mpi, &self.comm, &said.unwrap_or([0; SUMMARY]));
        self.activate(mpi, operation, exchange, |exchange| Stage::Agree(exchange, staging));
    }

    /// Compares what the ranks have called.
    fn check(&mut self, mpi: &Mpi, operation: Owned, staging: Result<Staging, String>) {
        let exchange = Exchange::of_call(mpi, &operation, staging.as_ref().err().cloned());
        self.activate(mpi, operation, exchange, |exchange| Stage::Check(exchange, staging));
    }

    fn activate(
        &mut self,
        mpi: &Mpi,
        operation: Owned,
        exchange: Result<(Lent<Exchange>, Vec<Object>), MpiError>,
        stage: impl FnOnce(Lent<Exchange>) -> Stage,
    ) {
        match exchange {
            Ok((exchange, requests)) => {
                let stage = stage(exchange);
                self.active.push(Active { operation, requests, stage });
            }
            Err(error) => self.abandon(mpi, operation, error),
        }
    }

    /// Moves the bytes, or what a split says.
    fn transfer(&mut self, mpi: &Mpi, made: &mut Made, operation: Owned, staging: Staging) {
        let call = match &operation.work {
            Work::Call(call) => call,
            Work::Split(request) => {
                let exchange = Exchange::of_all(mpi, &self.comm, &request.said.to_bytes());
                return self.activate(mpi, operation, exchange, Stage::Split);
            }
        };
        let (rank, _) = self.comm.place();
        let mut staging = Lent::new(staging);
        match start::start(mpi, made, (self.comm.raw, rank), call, &mut staging) {
            Ok(request) => {
                let (requests, stage) = (vec![request], Stage::Move(staging));
                self.active.push(Active { operation, requests, stage });
            }
            Err(error) => self.abandon(mpi, operation, error),
        }
    }

    /// Asks the library what is done.
    fn test(&mut self, mpi: &Mpi, made: &mut Made, partings: &mut Vec<Parting>) -> bool {
        let (mut changed, mut index) = (false, 0);
        while let Some(active) = self.active.get_mut(index) {
            // One step of each: the library makes progress only while it is asked.
            match test_all(mpi, &mut active.requests, &mut Status::default()) {
                Ok(false) => index += 1,
                Ok(true) => {
                    let active = self.active.remove(index);
                    self.finish(mpi, made, active, partings);
                    changed = true;
                }
                Err(error) => {
                    let Active { operation, .. } = self.active.remove(index);
                    self.abandon(mpi, operation, error);
                    changed = true;
                }
            }
        }
        changed
    }

    /// The library is done with an operation.
    fn finish(&mut self, mpi: &Mpi, made: &mut Made, active: Active, partings: &mut Vec<Parting>) {
        let Active { operation, stage, .. } = active;
        match (stage, &operation.work) {
            (Stage::Agree(exchange, staging), _) => {
                let asks_more = self.comm.options.check || operation.fingerprint.has_blocks();
                match (exchange.back().is_unanimous() && !asks_more, staging) {
                    (true, Ok(staging)) => self.transfer(mpi, made, operation, staging),
                    // On all ranks alike: none has agreed with all others.
                    (_, staging) => self.check(mpi, operation, staging),
                }
            }
            (Stage::Check(exchange, staging), _) => match (exchange.back().verdict(&operation), staging) {
                (Some(cause), _) => operation.conclude(Err(cause)),
                (None, Ok(staging)) => self.transfer(mpi, made, operation, staging),
                (None, Err(_)) => {}
            },
            (Stage::Move(staging), Work::Call(_)) => operation.conclude(Ok(staging.back())),
            (Stage::Split(exchange), Work::Split(request)) => {
                // On all ranks alike, also on those that take no part: so they agree on the tag of this split and of later ones.
                self.splits = (self.splits + 1) % start::SPLITS;
                match request.said.part(exchange.back().theirs()) {
                    None => operation.answer(Ok(None)),
                    Some(ranks) => {
                        self.partings.retain(|parting| parting.strong_count() > 0);
                        self.partings.push(operation.downgrade());
                        partings.push(Parting { operation, ranks, tag: start::FIRST_SPLIT + self.splits });
                    }
                }
            }
            _ => {}
        }
    }

    /// Whether this rank and all others have given it up, or it is dead and was given up.
    pub(crate) fn is_closed(&self) -> bool {
        // A split that is being made uses this communicator on another thread.
        let is_parting = self.partings.iter().any(|parting| parting.strong_count() > 0);
        let is_idle = self.has_ended && self.outgoing.is_empty() && !is_parting;
        let told = self.comm.statuses();
        let have_ended = || self.comm.others().all(|rank| has_ended(told.get(rank).and_then(Option::as_ref)));
        is_idle && (self.is_dead || have_ended())
    }

    /// Frees it in the library, unless the library may still use its memory.
    pub(crate) fn close(self, mpi: &Mpi) {
        // Freeing is an operation of all ranks, and a dead communicator has ranks that do not come.
        if self.is_dead || self.has_abandoned || self.control.is_some() {
            return;
        }
        let mut raw = self.comm.raw;
        // SAFETY: no request of it is left, and this rank calls no operation of it any more.
        if let Err(error) = mpi.check(unsafe { mpi.functions.MPI_Comm_free(&mut raw) }) {
            report::warn(&format!("a communicator is not freed: {}", error.message));
        }
    }
}

fn has_ended(status: Option<&PeerStatus>) -> bool {
    status.is_some_and(|status| status.event == Event::Ended)
}

/// Asks whether requests are done. Those that are become null.
pub(crate) fn test_all(mpi: &Mpi, requests: &mut [Object], status: &mut Status) -> Result<bool, MpiError> {
    let mut all = true;
    for request in requests {
        if *request == abi::REQUEST_NULL {
            continue;
        }
        let mut done = 0;
        // SAFETY: a request that is not done, and places for the answers. Its buffers are kept until it is.
        mpi.check(unsafe { mpi.functions.MPI_Test(request, &mut done, status) })?;
        all &= done != 0;
    }
    Ok(all)
}
