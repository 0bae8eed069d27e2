//! The folder in which ranks find each other.

use anyhow::{Result, ensure};
use std::{
    fs,
    path::PathBuf,
    thread,
    time::{Duration, Instant},
};

/// Longest wait for another rank.
const LONGEST: Duration = Duration::from_secs(60);

/// A folder that all ranks see.
#[derive(Debug, Clone)]
pub(super) struct Folder(pub(super) PathBuf);

impl Folder {
    /// Gives all ranks what rank 0 makes.
    pub(super) fn share(
        &self,
        rank: usize,
        name: &str,
        make: impl FnOnce() -> Result<Vec<u8>>,
    ) -> Result<Vec<u8>> {
        let path = self.0.join(name);
        if rank == 0 {
            let bytes = make()?;
            let draft = path.with_extension("draft");
            fs::write(&draft, &bytes)?;
            fs::rename(draft, path)?;
            return Ok(bytes);
        }
        let begin = Instant::now();
        loop {
            if let Ok(bytes) = fs::read(&path) {
                return Ok(bytes);
            }
            ensure!(begin.elapsed() < LONGEST, "rank 0 did not come");
            thread::sleep(Duration::from_millis(2));
        }
    }
}
