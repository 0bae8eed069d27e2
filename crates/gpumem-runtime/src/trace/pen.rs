//! What a thread writes with: a chunk of its own for each recording, so that threads do not meet.

use super::{
    clock::clock,
    note::{Entry, Note},
    tape::{Chunk, Tape, Writer},
};
use gpumem_core::process::Origin;
use std::{
    cell::{Cell, RefCell},
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
    keeps_uses: bool,
    /// The last name that was written, with its number.
    name: Option<(Arc<str>, u32)>,
    origin: Origin,
}

/// The pens of a thread, one for each recording that it takes part in.
struct Pens(Vec<Pen>);

thread_local! {
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
pub(super) fn write(
    session: u64,
    mut note: Note,
    name: Option<&Arc<str>>,
    tape: impl Fn() -> Option<Arc<Tape>>,
) {
    let time = clock().now();
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
        let pen = &mut pens[at];
        pen.name(&mut note, name);
        pen.write(Entry { time, note });
        true
    });
    if !matches!(written, Ok(true))
        && let Some(tape) = tape().filter(|tape| tape.session == session)
    {
        // Destructors of a thread's own variables run after its pens are gone.
        if let (Some(name), Note::Allocate { request, .. } | Note::Fail { request }) = (name, &mut note) {
            request.name = tape.name(name);
        }
        tape.write_late(Entry { time, note });
    }
}

impl Pen {
    #[cold]
    fn new(tape: &Arc<Tape>) -> Self {
        let name = std::thread::current().name().map(ToOwned::to_owned);
        let writer = tape.writer(Writer { number: thread_number(), name });
        let chunk = tape.next(writer, None);
        let (session, keeps_uses) = (tape.session, tape.keeps_uses());
        Self {
            session,
            tape: Arc::downgrade(tape),
            chunk,
            writer,
            keeps_uses,
            name: None,
            origin: Origin::here(),
        }
    }

    #[inline]
    fn name(&mut self, note: &mut Note, name: Option<&Arc<str>>) {
        let (Some(name), Note::Allocate { request, .. } | Note::Fail { request }) = (name, note) else {
            return;
        };
        request.name = match &self.name {
            Some((last, number)) if Arc::ptr_eq(last, name) => *number,
            _ => {
                let number = self.tape.upgrade().map_or(0, |tape| tape.name(name));
                self.name = Some((name.clone(), number));
                number
            }
        };
    }

    #[inline]
    fn write(&mut self, entry: Entry) {
        if !self.keeps_uses && matches!(entry.note, Note::Use { .. } | Note::Wait { .. }) {
            return;
        }
        // SAFETY: the chunk was given to this pen alone, and to this thread.
        if !self.chunk.as_ref().is_some_and(|chunk| unsafe { chunk.push(entry) }) {
            self.turn(entry);
        }
    }

    /// Goes on in another chunk.
    #[cold]
    fn turn(&mut self, entry: Entry) {
        let Some(tape) = self.tape.upgrade() else { return };
        self.chunk = match self.chunk.take() {
            Some(filled) => tape.next(self.writer, Some(&filled)),
            // The tape is full, and stays so.
            None => None,
        };
        // SAFETY: as in `write`.
        if !self.chunk.as_ref().is_some_and(|chunk| unsafe { chunk.push(entry) }) {
            tape.lose();
        }
    }
}

impl Drop for Pen {
    fn drop(&mut self) {
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
