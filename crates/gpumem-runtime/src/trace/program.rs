//! A recording of a whole program, asked for from outside.

use super::{
    Trace, assemble, clock,
    recording::{self, RecorderOptions},
    tape::Tape,
};
use crate::device::DeviceCore;
use gpumem_core::{
    Backend,
    process::{OnceBeforeFork, Origin, at_exit},
};
use parking_lot::Mutex;
#[cfg(unix)]
use std::fs::OpenOptions;
use std::{
    fs::File,
    io,
    panic::{self, AssertUnwindSafe},
    path::{Path, PathBuf},
    sync::Arc,
};

/// Environment variable: the file to which a recording of every device is written when the process ends by itself, as a
/// page if the name ends in `.html`, else as JSON. `%p` in the name stands for the number of the process.
pub const RECORD_VARIABLE: &str = "GPUMEM_RECORD";

/// The recordings of the process.
struct Program {
    file: PathBuf,
    origin: Origin,
    tapes: Mutex<Vec<Arc<Tape>>>,
}

fn program() -> Option<&'static Program> {
    static PROGRAM: OnceBeforeFork<Option<Program>> = OnceBeforeFork::new();
    PROGRAM
        .get_or_init(|| {
            let name = std::env::var(RECORD_VARIABLE).ok().filter(|name| !name.is_empty())?;
            let file = name.replace("%p", &std::process::id().to_string()).into();
            let program = Program { file, origin: Origin::here(), tapes: Mutex::default() };
            if !at_exit(write) {
                tracing::warn!(
                    "{RECORD_VARIABLE} has no effect: this system does not tell when a process ends"
                );
                return None;
            }
            Some(program)
        })
        .and_then(Option::as_ref)
}

/// Records a device that has just been opened, if that is asked for.
pub(crate) fn begin<B: Backend>(core: &Arc<DeviceCore<B>>) {
    // In a forked child the recording is the parent's, and its lock may be held for ever.
    let Some(program) = program().filter(|program| program.origin.is_usable() && clock::is_there()) else {
        return;
    };
    if let Some(tape) = recording::start(core, RecorderOptions::default()) {
        program.tapes.lock().push(tape);
    }
}

/// At the end of the process. Other threads may still be running, and may still be recording.
extern "C" fn write() {
    // A forked child has its parent's recording in its memory, and is not to write it.
    let Some(program) = program().filter(|program| program.origin.is_usable()) else { return };
    let written = panic::catch_unwind(AssertUnwindSafe(|| {
        let tapes = program.tapes.try_lock().map(|tapes| tapes.clone()).unwrap_or_default();
        let trace = tapes.iter().map(|tape| assemble::trace(tape)).reduce(Trace::merge);
        let Some(trace) = trace else { return Ok(()) };
        let _reader = has_reader(&program.file)?;
        trace.write(&program.file)
    }));
    if let Ok(Err(error)) = written {
        // Nobody is left to be told otherwise, and somebody is waiting for the file.
        eprintln!("gpumem: {RECORD_VARIABLE}: cannot write {}: {error}", program.file.display());
    }
}

/// Opens a pipe without a wait, which fails where nothing reads it: the process is to end all the same.
#[cfg(unix)]
fn has_reader(path: &Path) -> io::Result<Option<File>> {
    use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
    match path.metadata() {
        Ok(metadata) if metadata.file_type().is_fifo() => {
            OpenOptions::new().write(true).custom_flags(libc::O_NONBLOCK).open(path).map(Some)
        }
        _ => Ok(None),
    }
}

#[cfg(not(unix))]
fn has_reader(_: &Path) -> io::Result<Option<File>> {
    Ok(None)
}
