//! What ranks tell each other about themselves.

use super::{GRACE, Member, has_ended, test_all};
use crate::{
    mpi::{
        Buffer, Lent, Mpi,
        abi::{self, BYTE, Count, Status},
        control::{self, Event, PeerStatus},
        start,
    },
    report,
};
use gpumem_core::CollectiveCause;
use std::{ffi::c_int, time::Instant};

impl Member {
    /// Asks for the next status.
    pub(super) fn listen(&mut self, mpi: &Mpi) {
        let told = self.comm.statuses();
        let is_silent = |rank: usize| told.get(rank).is_some_and(|status| has_ended(status.as_ref()));
        // A receive that nothing will match would keep the communicator from being freed.
        if self.comm.others().all(is_silent) {
            return;
        }
        let (mut buffer, mut request) = (Lent::new(Buffer::new(control::BYTES)), abi::REQUEST_NULL);
        // From any rank: one receive serves however many there are.
        // SAFETY: the buffer has so many bytes, and is kept until the request is done.
        let asked = unsafe {
            let (to, bytes) = (buffer.as_mut_ptr(), control::BYTES as Count);
            mpi.functions.MPI_Irecv_c(
                to,
                bytes,
                BYTE,
                abi::ANY_SOURCE,
                start::CONTROL,
                self.comm.raw,
                &mut request,
            )
        };
        match mpi.check(asked) {
            Ok(()) => self.control = Some((request, buffer)),
            Err(error) => report::warn(&format!("other ranks are not heard any more: {}", error.message)),
        }
    }

    /// Takes the status of other ranks.
    pub(super) fn hear(&mut self, mpi: &Mpi) -> bool {
        let mut changed = false;
        while let Some((request, _)) = &mut self.control {
            let mut status = Status::default();
            let mut requests = vec![*request];
            match test_all(mpi, &mut requests, &mut status) {
                Ok(true) => {}
                Ok(false) => return changed,
                Err(error) => {
                    report::warn(&format!("other ranks are not heard any more: {}", error.message));
                    self.control = None;
                    self.has_abandoned = true;
                    return changed;
                }
            }
            changed = true;
            let Some(buffer) = self.control.take().map(|(_, buffer)| buffer.back()) else { return changed };
            let (_, size) = self.comm.place();
            if let (Some(rank), Some(status)) =
                (control::rank(status.source, size), PeerStatus::from_bytes(buffer.as_slice()))
            {
                // Noted before it is acted on: what fails by it asks how far that rank has come.
                self.comm.note(rank, status.clone());
                self.react(mpi, rank, status.event);
            }
            self.listen(mpi);
        }
        changed
    }

    fn react(&mut self, mpi: &Mpi, rank: usize, event: Event) {
        match event {
            Event::Left | Event::Ended => {
                let comm = self.comm.clone();
                // Only operations that the rank has not called before it left.
                self.fail(|operation| comm.left(operation.of, operation.number));
            }
            Event::Late => self.be_late(mpi, None),
            Event::Aborted => self.revoke(CollectiveCause::Aborted { rank }),
            Event::Lost(why) => self.revoke(CollectiveCause::PeerLost { rank, why }),
        }
    }

    /// This rank calls nothing more.
    pub(crate) fn leave(&mut self, mpi: &Mpi) {
        // Without anything under way, the status of the end says the same.
        if !std::mem::replace(&mut self.has_left, true) && self.operations().next().is_some() {
            self.tell(mpi, &Event::Left);
        }
        self.try_end(mpi);
    }

    /// Tells the others when nothing of this rank can fail any more.
    pub(super) fn try_end(&mut self, mpi: &Mpi) {
        // The last status: after it the others do not listen to this rank.
        if self.has_left && !self.has_ended && self.operations().next().is_none() {
            self.tell(mpi, &Event::Ended);
            self.has_ended = true;
        }
    }

    /// No operation of this communicator takes place any more, on any rank.
    pub(crate) fn abort(&mut self, mpi: &Mpi) {
        let (rank, _) = self.comm.place();
        self.tell(mpi, &Event::Aborted);
        self.revoke(CollectiveCause::Aborted { rank });
    }

    /// Tells the others what has happened to this rank.
    pub(super) fn tell(&mut self, mpi: &Mpi, event: &Event) {
        if self.has_ended {
            return;
        }
        // The same for all ranks: it is of the moment of the event.
        let so_far = (self.pending(), self.waiting());
        for rank in self.comm.others() {
            let status = self.comm.status(event.clone(), so_far, rank);
            // A buffer for each rank: what it is told about its sends and receives differs.
            let (buffer, mut request) = (Lent::new(Buffer::of(&status.to_bytes())), abi::REQUEST_NULL);
            // SAFETY: the buffer has so many bytes, and is kept until the request is done.
            let sent = unsafe {
                let (from, bytes) = (buffer.as_ptr(), control::BYTES as Count);
                mpi.functions.MPI_Isend_c(
                    from,
                    bytes,
                    BYTE,
                    rank as c_int,
                    start::CONTROL,
                    self.comm.raw,
                    &mut request,
                )
            };
            match mpi.check(sent) {
                Ok(()) => self.outgoing.push((request, buffer, Instant::now())),
                Err(error) => report::warn(&format!("rank {rank} is not told: {}", error.message)),
            }
        }
    }

    /// Drops what has been told.
    pub(super) fn flush(&mut self, mpi: &Mpi) {
        let mut index = 0;
        while let Some((request, _, since)) = self.outgoing.get(index) {
            let mut requests = vec![*request];
            let done = test_all(mpi, &mut requests, &mut Status::default());
            if done == Ok(true) {
                let (_, buffer, _) = self.outgoing.swap_remove(index);
                drop(buffer.back());
            } else if done.is_err() || (self.is_dead && since.elapsed() >= GRACE) {
                // A rank that is gone is not told any more.
                self.outgoing.swap_remove(index);
                self.has_abandoned = true;
            } else {
                index += 1;
            }
        }
    }
}
