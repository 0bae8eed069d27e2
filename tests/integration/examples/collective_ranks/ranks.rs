//! A rank, and how it finds the others.

use gpumem::{
    BackendDevice, Device, Stream,
    any::AnyBackend,
    collectives::{Communicator, CommunicatorId, Options},
};
use std::{
    cell::Cell,
    fs,
    path::PathBuf,
    thread,
    time::{Duration, Instant},
};

pub(crate) type Comm = Communicator<AnyBackend>;

/// A rank of a phase.
pub(crate) struct Rank {
    pub(crate) rank: usize,
    pub(crate) size: usize,
    pub(crate) device: BackendDevice<AnyBackend>,
    /// Calls of the phase that makes many.
    pub(crate) rounds: usize,
    folder: PathBuf,
    phase: String,
    joined: Cell<usize>,
}

impl Rank {
    pub(crate) fn new(
        (rank, size): (usize, usize),
        device: &str,
        folder: PathBuf,
        rounds: usize,
        phase: &str,
    ) -> Self {
        let (device, phase) = (Device::open(device).unwrap(), phase.to_owned());
        Self { rank, size, device, rounds, folder, phase, joined: Cell::new(0) }
    }

    pub(crate) fn stream(&self) -> Stream {
        self.device.stream().unwrap()
    }

    /// Prints a line that names the rank.
    pub(crate) fn say(&self, line: &str) {
        println!("{} rank {}: {line}", self.phase, self.rank);
    }

    /// Joins a new communicator of all ranks.
    pub(crate) fn join(&self, options: &Options) -> Comm {
        let number = self.joined.replace(self.joined.get() + 1);
        let path = self.folder.join(format!("id-{number}"));
        if self.rank == 0 {
            let id = CommunicatorId::for_device(&self.device).unwrap();
            let draft = path.with_extension("draft");
            fs::write(&draft, id.to_bytes()).unwrap();
            fs::rename(draft, &path).unwrap();
        }
        let bytes = self.wait_for(|| fs::read(&path).ok());
        let id = CommunicatorId::from_bytes(&bytes).unwrap();
        Communicator::join(&self.device, &id, self.rank, self.size, options).unwrap()
    }

    /// Tells the other ranks that this one has come so far, and waits for them.
    pub(crate) fn meet(&self, place: &str) {
        let path = |rank: usize| self.folder.join(format!("{place}-{rank}"));
        fs::write(path(self.rank), "").unwrap();
        for rank in 0..self.size {
            self.wait_for(|| path(rank).exists().then_some(()));
        }
    }

    fn wait_for<T>(&self, look: impl Fn() -> Option<T>) -> T {
        let begin = Instant::now();
        loop {
            if let Some(found) = look() {
                return found;
            }
            assert!(begin.elapsed() < Duration::from_secs(60), "rank {}: another rank is missing", self.rank);
            thread::sleep(Duration::from_millis(2));
        }
    }
}
