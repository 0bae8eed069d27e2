//! Bytes of this process for the others, without a stream.

use super::{comm::Comm, inbox::Message, library, operation::Work, staging::BYTES_DIFFER, thread};
use crate::{
    Options,
    call::{Call, Kind},
    span::Span,
};
use gpumem_core::{CollectiveCause, Error, Result};
use std::{
    sync::Arc,
    task::{Wake, Waker},
    thread::Thread,
    time::Duration,
};

/// Whether there is a library.
pub(crate) fn is_there() -> bool {
    library::library().is_ok()
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Passes the bytes of rank 0 to all processes. Waits for them.
pub(crate) fn broadcast(bytes: &mut [u8], options: &Options) -> Result<()> {
    let comm = thread::join(options)?;
    let outcome = broadcast_in(&comm, bytes);
    comm.inbox.push(Message::Leave(comm.key));
    outcome
}

fn broadcast_in(comm: &Arc<Comm>, bytes: &mut [u8]) -> Result<()> {
    const NAP: Duration = Duration::from_millis(100);
    let call = Call::new::<u8>(Kind::Broadcast { root: 0 }, bytes.len());
    let failed = |error| Error::new("", "broadcast", error);
    let operation = comm.call(call).map_err(failed)?;
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    // SAFETY: the bytes are borrowed until the end of this function.
    let span = unsafe { Span::new(bytes.as_mut_ptr().expose_provenance(), bytes.len()) };
    let place = comm.place();
    // Only the root gives bytes.
    let source = if place.0 == 0 { span } else { Span::default() };
    let outcome = loop {
        // SAFETY: the bytes are borrowed until the end of this function.
        match unsafe { operation.poll(&waker, source) } {
            Some(outcome) => break outcome,
            None => std::thread::park_timeout(NAP),
        }
    };
    let note = |outcome| operation.note(outcome).map_err(failed);
    let staging = match outcome {
        Ok(staging) => staging,
        Err(cause) => return note(Err(cause)),
    };
    note(match &operation.work {
        // SAFETY: as above.
        Work::Call(call) if !unsafe { staging.empty(call, place, span) } => {
            let cause = CollectiveCause::PeerLost { rank: place.0, why: BYTES_DIFFER.to_owned() };
            Err(cause)
        }
        _ => Ok(()),
    })
}

#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;
    use std::{env, path::Path, process::Command};

    /// Starts itself under the launcher beside the library that `GPUMEM_MPI` names, where there is one.
    #[test]
    fn all_processes_get_the_bytes_of_rank_0() {
        const UNDER: &str = "GPUMEM_TEST_UNDER_MPI";
        if env::var_os(UNDER).is_some() {
            let rank: u8 = env::var("PMI_RANK").unwrap().parse().unwrap();
            let mut bytes = [rank + 5; 136];
            broadcast(&mut bytes, &Options::new().timeout(Duration::from_secs(20))).unwrap();
            assert_eq!(bytes, [5; 136]);
            return;
        }
        let library = env::var_os("GPUMEM_MPI").unwrap_or_default();
        let launcher =
            Path::new(&library).parent().and_then(Path::parent).map(|folder| folder.join("bin/mpiexec"));
        let Some(launcher) = launcher.filter(|launcher| launcher.is_file()) else {
            eprintln!("skipped: no mpiexec beside the library of GPUMEM_MPI");
            return;
        };
        let mut command = Command::new(launcher);
        command
            .args(["-n", "3"])
            .arg(env::current_exe().unwrap())
            .arg("all_processes_get_the_bytes_of_rank_0");
        let done = command.env(UNDER, "1").output().unwrap();
        let output = String::from_utf8_lossy(&done.stdout);
        assert!(done.status.success() && output.matches(". 1 passed; 0 failed;").count() == 3, "{output}");
    }
}
