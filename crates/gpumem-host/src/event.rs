//! Events: recorded positions in streams.

use crate::engine::{CapturePoint, Command, Engine, EventCore, Mark, Marks, Recording, is_inside};
use crate::error::{error, invalid};
use crate::inject::Operation;
use crate::stream::Stream;
use crate::sync::lock;
use gpumem_core::{ErrorKind, EventOptions, Result};
use std::mem;
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// A recorded position in a stream of a host device.
#[derive(Debug)]
pub struct Event {
    core: Arc<EventCore>,
}

impl Event {
    pub(crate) fn new(engine: &Arc<Engine>, options: EventOptions) -> Self {
        engine.counters().events_created.up();
        engine.counters().events.up();
        let (timing, generation) = (options.timing, engine.generation());
        let state = Mutex::default();
        Self { core: Arc::new(EventCore { engine: Arc::clone(engine), timing, generation, state }) }
    }

    fn admit(&self, operation: &'static str) -> Result<()> {
        if self.core.generation == self.core.engine.generation() {
            return Ok(());
        }
        Err(error(operation, ErrorKind::Stale { what: "event" }))
    }

    /// Replaces what was recorded: positions of an earlier recording do not count. Returns the number of the recording.
    fn replace(&self, marks: Marks, capture_point: Option<CapturePoint>) -> u64 {
        let mut state = lock(&self.core.state);
        let recording = state.recording + 1;
        let before = mem::replace(&mut *state, Recording { recording, marks, time: None, capture_point });
        drop(state);
        drop(before);
        recording
    }

    pub(crate) fn record(&self, stream: &Stream) -> Result<()> {
        let queue = stream.queue();
        let engine = &queue.engine;
        self.core.engine.origin().check(crate::NAME, "record")?;
        engine.enter("record", Operation::Record)?;
        if !Arc::ptr_eq(engine, &self.core.engine) {
            let told = |engine: &Engine| format!("host:{}", engine.ordinal());
            let (has, wants) = (told(&self.core.engine), told(engine));
            return Err(error("record", ErrorKind::WrongDevice { what: "event", has, wants }));
        }
        self.admit("record")?;
        if let Some(capture_point) = queue.capture_point() {
            self.replace(Marks::default(), Some(capture_point));
            return Ok(());
        }
        if self.core.timing || !engine.has_workers() {
            let recording = self.replace(Marks::default(), None);
            let command = Command::Record { event: Arc::clone(&self.core), recording };
            let submission = queue.enqueue("record", command)?;
            let mut state = lock(&self.core.state);
            if state.recording == recording {
                state.marks = Marks::one(Mark::new(queue, submission));
            }
            drop(state);
            engine.point();
        } else {
            // The end of the enqueued commands is a number, so no command is enqueued.
            let mark = {
                let state = lock(&queue.state);
                queue.admit("record")?;
                Mark::end(queue, &state)
            };
            self.replace(Marks::one(mark), None);
        }
        engine.counters().records.up();
        Ok(())
    }

    /// Records the ends of all streams of the device that have not been reached.
    pub(crate) fn record_all(&self, engine: &Arc<Engine>) -> Result<()> {
        engine.enter("record_device", Operation::Record)?;
        self.admit("record_device")?;
        let generation = engine.generation();
        let mut ends = engine.queues().into_iter().filter_map(|queue| {
            // A reset has waited for all older work.
            let mark = Mark::end(&queue, &lock(&queue.state));
            (mark.queue.generation == generation && mark.is_news()).then_some(mark)
        });
        let ends = Marks { first: ends.next(), more: ends.collect() };
        self.replace(ends, None);
        engine.counters().records.up();
        Ok(())
    }

    pub(crate) fn hold_back(&self, stream: &Stream) -> Result<()> {
        let queue = stream.queue();
        self.core.engine.origin().check(crate::NAME, "wait")?;
        queue.engine.enter("wait", Operation::Wait)?;
        self.admit("wait")?;
        let capture_point = lock(&self.core.state).capture_point.clone();
        if let Some(capture_point) = capture_point {
            let is_of_it = queue.join(&capture_point);
            return is_of_it.then_some(()).ok_or_else(|| invalid("wait", "the event is of another capture"));
        }
        if queue.is_captured("wait")? {
            return Err(invalid("wait", "the event is of no capture"));
        }
        // The stream's own past, or finished work: nothing to wait for.
        let news = |mark: &Mark| mark.queue.id != queue.id && mark.is_news();
        let Marks { first, more } = self.marks();
        let mut waits = false;
        for mark in first.into_iter().chain(more).filter(news) {
            queue.enqueue("wait", Command::Wait(mark))?;
            queue.engine.point();
            waits = true;
        }
        if !waits {
            let _state = lock(&queue.state);
            queue.admit("wait")?;
        }
        queue.engine.counters().waits.up();
        Ok(())
    }

    fn marks(&self) -> Marks {
        lock(&self.core.state).marks.clone()
    }

    fn verdicts(&self, operation: &'static str, marks: &Marks) -> Result<()> {
        if marks.first.is_none() {
            return Ok(());
        }
        self.core.engine.check_lost(operation)?;
        match marks.iter().find_map(|mark| mark.fault()) {
            Some(error) => Err(error.in_operation(operation)),
            None => Ok(()),
        }
    }
}

// SAFETY: the queue counts finished commands only.
unsafe impl gpumem_core::Event for Event {
    fn query(&self) -> Result<bool> {
        let engine = &self.core.engine;
        engine.origin().check(crate::NAME, "event query")?;
        self.admit("event query")?;
        let marks = self.marks();
        // As for a stream.
        if !marks.iter().all(|mark| mark.queue.poll(mark.submission)) {
            return Ok(false);
        }
        engine.check_lost("event query")?;
        engine.strike("event query", Operation::Query)?;
        self.verdicts("event query", &marks).map(|()| true)
    }

    fn synchronize(&self) -> Result<()> {
        let engine = &self.core.engine;
        engine.origin().check(crate::NAME, "event synchronize")?;
        self.admit("event synchronize")?;
        engine.counters().synchronizations.up();
        let marks = self.marks();
        for mark in marks.iter() {
            if mark.queue.completed() < mark.submission && is_inside(mark.queue.id) {
                return Err(error("event synchronize", ErrorKind::BlockingInCallback));
            }
            mark.queue.wait_until(mark.submission);
        }
        // Wait first, report after.
        engine.strike("event synchronize", Operation::Synchronize)?;
        engine.check_lost("event synchronize")?;
        self.verdicts("event synchronize", &marks)
    }

    fn destroy(self) -> Result<()> {
        self.core.engine.origin().check(crate::NAME, "destroy_event")?;
        self.core.engine.check_lost("destroy_event")
    }

    fn elapsed(&self, end: &Self) -> Result<f32> {
        for event in [self, end] {
            event.core.engine.enter("elapsed", Operation::Query)?;
            event.admit("elapsed")?;
            if !event.core.timing {
                return Err(invalid("elapsed", "the event was made without timing"));
            }
        }
        let time =
            |event: &Self| lock(&event.core.state).time.ok_or_else(|| error("elapsed", ErrorKind::NotReady));
        let (start, end) = (time(self)?, time(end)?);
        let milliseconds = |from: Instant, to: Instant| to.duration_since(from).as_secs_f32() * 1e3;
        Ok(if end >= start { milliseconds(start, end) } else { -milliseconds(end, start) })
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        if self.core.engine.origin().is_valid() {
            self.core.engine.counters().events.down();
        } else {
            // One count too many: nothing is ever freed in a process that does not own it.
            mem::forget(Arc::clone(&self.core));
        }
    }
}
