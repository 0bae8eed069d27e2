//! What a thread writes with: a chunk of its own for each recording, so that threads do not meet.

use super::{
    clock::clock,
    code::Words,
    note::Note,
    tape::{Chunk, Tape, Writer},
};
use gpumem_core::process::Origin;
use std::{
    cell::{Cell, RefCell},
    ptr,
    sync::{
        Arc, Weak,
        atomic::{AtomicU64, Ordering},
    },
};

struct Pen {
    session: u64,
    /// Weak, so that a recording that has ended does not live on in idle threads.
    tape: Weak<Tape>,
    chunk: Option<Arc<Chunk>>,
    writer: u32,
    /// The last name that was written, with its number.
    name: Option<(Arc<str>, u32)>,
    origin: Origin,
}

/// The pens of a thread, one for each recording that it takes part in.
struct Pens(Vec<Pen>);

/// The chunk of the pen that was used last. It needs no destructor, so that looking at it costs a load, also while a thread
/// ends.
struct Hand {
    /// The recording, or 0.
    session: Cell<u64>,
    chunk: Cell<*const Chunk>,
}

impl Hand {
    /// Puts a pen down that is about to let its chunk go.
    fn put_down(&self, session: u64) {
        if self.session.get() == session {
            self.session.set(0);
            self.chunk.set(ptr::null());
        }
    }
}

thread_local! {
    static HAND: Hand = const { Hand { session: Cell::new(0), chunk: Cell::new(ptr::null()) } };
    static PENS: RefCell<Pens> = const { RefCell::new(Pens(Vec::new())) };
    static THREAD: Cell<u64> = const { Cell::new(0) };
}

/// A number that no other thread of the process has had.
fn thread_number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    THREAD.with(|number| {
        if number.get() == 0 {
            number.set(NEXT.fetch_add(1, Ordering::Relaxed));
        }
        number.get()
    })
}

/// Writes a note on the tape of a session. `tape` is asked for the first time that the thread writes there.
#[inline(always)]
pub(super) fn write(session: u64, note: &Note, tape: impl Fn() -> Option<Arc<Tape>>) {
    let words = Words::of(clock().now(), note);
    let written = HAND.with(|hand| {
        hand.session.get() == session
            // SAFETY: the pen of that session holds the chunk, and puts it down before it lets it go; the chunk was given
            // to this pen alone, and to this thread.
            && unsafe { (*hand.chunk.get()).push(words.as_slice()) }
    });
    if !written {
        // A copy, so that only this way needs the words in memory: stores that are read back at once in wider pieces make
        // the processor wait.
        let words = { words };
        write_on(session, &words, &tape);
    }
}

/// As [`write`], about an allocation that goes by a name.
#[cold]
pub(super) fn write_named(
    session: u64,
    mut note: Note,
    name: &Arc<str>,
    tape: impl Fn() -> Option<Arc<Tape>>,
) {
    if let Note::Allocate { request, .. } | Note::Fail { request } = &mut note {
        let of_pen = PENS.try_with(|pens| {
            let mut pens = pens.try_borrow_mut().ok()?;
            pens.0.iter_mut().find(|pen| pen.session == session).map(|pen| pen.name(name))
        });
        let of_tape = || tape().filter(|tape| tape.session == session).map_or(0, |tape| tape.name(name));
        request.name = of_pen.ok().flatten().unwrap_or_else(of_tape);
    }
    write(session, &note, tape);
}

/// Writes with a pen that is not in the hand, or whose chunk is full.
#[cold]
#[inline(never)]
fn write_on(session: u64, words: &Words, tape: &dyn Fn() -> Option<Arc<Tape>>) {
    let written = PENS.try_with(|pens| {
        let Ok(mut pens) = pens.try_borrow_mut() else { return false };
        let pens = &mut pens.0;
        let at = match pens.iter().position(|pen| pen.session == session) {
            Some(at) => at,
            None => match tape() {
                Some(tape) if tape.session == session => {
                    pens.retain(|pen| pen.tape.strong_count() > 0);
                    pens.push(Pen::new(&tape));
                    pens.len() - 1
                }
                // The recording has ended in this moment.
                _ => return true,
            },
        };
        pens[at].write(words);
        true
    });
    if !matches!(written, Ok(true))
        && let Some(tape) = tape().filter(|tape| tape.session == session)
    {
        // Destructors of a thread's own variables run after its pens are gone.
        tape.write_late(words);
    }
}

impl Pen {
    fn new(tape: &Arc<Tape>) -> Self {
        let name = std::thread::current().name().map(ToOwned::to_owned);
        let writer = tape.writer(Writer { number: thread_number(), name });
        let chunk = tape.next(writer, None);
        let (tape, session) = (Arc::downgrade(tape), tape.session);
        Self { session, tape, chunk, writer, name: None, origin: Origin::here() }
    }

    fn name(&mut self, name: &Arc<str>) -> u32 {
        match &self.name {
            Some((last, number)) if Arc::ptr_eq(last, name) => *number,
            _ => {
                let number = self.tape.upgrade().map_or(0, |tape| tape.name(name));
                self.name = Some((name.clone(), number));
                number
            }
        }
    }

    fn write(&mut self, words: &Words) {
        // SAFETY: the chunk was given to this pen alone, and to this thread.
        if !self.chunk.as_ref().is_some_and(|chunk| unsafe { chunk.push(words.as_slice()) }) {
            self.turn(words);
        }
        let chunk = self.chunk.as_ref().map(Arc::as_ptr);
        HAND.with(|hand| {
            hand.session.set(if chunk.is_some() { self.session } else { 0 });
            hand.chunk.set(chunk.unwrap_or(ptr::null()));
        });
    }

    /// Goes on in another chunk.
    fn turn(&mut self, words: &Words) {
        let Some(tape) = self.tape.upgrade() else { return };
        HAND.with(|hand| hand.put_down(self.session));
        self.chunk = match self.chunk.take() {
            Some(filled) => tape.next(self.writer, Some(&filled)),
            // The tape is full, and stays so.
            None => None,
        };
        // SAFETY: as in `write`.
        if !self.chunk.as_ref().is_some_and(|chunk| unsafe { chunk.push(words.as_slice()) }) {
            tape.lose();
        }
    }
}

impl Drop for Pen {
    fn drop(&mut self) {
        HAND.with(|hand| hand.put_down(self.session));
        if !self.origin.is_usable() {
            // In a forked child a thread that is not there may hold the lock for ever.
            std::mem::forget((std::mem::take(&mut self.tape), self.chunk.take()));
            return;
        }
        if let (Some(tape), Some(chunk)) = (self.tape.upgrade(), self.chunk.take()) {
            tape.give_back(&chunk);
        }
    }
}
