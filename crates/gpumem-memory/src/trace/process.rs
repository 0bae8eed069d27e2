//! A recording of a whole program, asked for from outside.

use super::{clock, event_log::EventLog, format::Trace, options::RecorderOptions};
use crate::sync::{PlainMutex, Rank};
use gpumem_core::process::{OnceBeforeFork, ProcessGuard, at_exit};

use std::{
    ffi::OsString,
    panic::{self, AssertUnwindSafe},
    path::PathBuf,
    sync::Arc,
};
#[cfg(unix)]
use std::{
    fs::OpenOptions,
    os::unix::fs::{FileTypeExt, OpenOptionsExt},
};

/// Environment variable: the file to which a recording of every device is written when the process ends by itself
/// ([`Trace::write`]). `%p` in the name is replaced by the process's number.
pub const ENV_TRACE_FILE: &str = "GPUMEM_TRACE_FILE";

/// The recordings of the process.
struct ProcessRecording {
    file: PathBuf,
    origin: ProcessGuard,
    tapes: PlainMutex<Vec<Arc<EventLog>>>,
}

fn program() -> Option<&'static ProcessRecording> {
    static PROGRAM: OnceBeforeFork<Option<ProcessRecording>> = OnceBeforeFork::new();
    let mut is_told = true;
    let program = PROGRAM
        .get_or_init(|| {
            let name = std::env::var_os(ENV_TRACE_FILE).filter(|name| !name.is_empty())?;
            let file = file(name, &std::process::id().to_string());
            let tapes = PlainMutex::new(Rank::ProcessTrace, Vec::new());
            let program = ProcessRecording { file, origin: ProcessGuard::current(), tapes };
            is_told = at_exit(write);
            is_told.then_some(program)
        })
        .and_then(Option::as_ref);
    // Now that the value is there: a subscriber may open a device, which asks for it.
    if !is_told {
        gpumem_core::tell!(warn: "{ENV_TRACE_FILE} has no effect: this system does not tell when a process ends");
    }
    program
}

/// The name with the number of the process in place of `%p`. Names of Unix are bytes, which need not be text.
#[cfg(unix)]
fn file(name: OsString, process: &str) -> PathBuf {
    use std::os::unix::ffi::OsStringExt;
    let mut name = name.into_vec();
    while let Some(at) = name.windows(2).position(|pair| pair == b"%p") {
        name.splice(at..at + 2, process.bytes());
    }
    OsString::from_vec(name).into()
}

#[cfg(not(unix))]
fn file(name: OsString, process: &str) -> PathBuf {
    name.into_string().map_or_else(PathBuf::from, |name| name.replace("%p", process).into())
}

/// Records a device that has just been opened, if the variable is set. `start` starts the recording.
pub fn begin(start: impl FnOnce(RecorderOptions) -> Option<Arc<EventLog>>) {
    // In a forked child the recording is the parent's, and its lock may be held for ever.
    let Some(program) = program().filter(|program| program.origin.is_valid() && clock::is_available()) else {
        return;
    };
    if let Some(log) = start(RecorderOptions::default()) {
        // Recording has started: the lock is not held while the device is asked.
        program.tapes.lock().push(log);
    }
}

/// At the end of the process. Other threads may still be running, and may still be recording.
extern "C" fn write() {
    // A forked child has its parent's recording in its memory, and is not to write it.
    let Some(program) = program().filter(|program| program.origin.is_valid()) else { return };
    let written = panic::catch_unwind(AssertUnwindSafe(|| {
        // Another thread may be ended while it holds the lock: a wait would keep the process from ending.
        let tapes = program.tapes.try_lock().map(|tapes| tapes.clone()).unwrap_or_default();
        // One after the other, without the lock of the list: a device may still be opened.
        let trace = tapes.iter().map(|log| log.trace()).reduce(Trace::merge);
        let Some(trace) = trace else { return std::io::Result::Ok(()) };
        // A pipe is opened without a wait, which fails where nothing reads it: the process is to end all the same.
        #[cfg(unix)]
        let _reader = match program.file.metadata() {
            Ok(metadata) if metadata.file_type().is_fifo() => {
                Some(OpenOptions::new().write(true).custom_flags(libc::O_NONBLOCK).open(&program.file)?)
            }
            _ => None,
        };
        trace.write(&program.file)
    }));
    if let Ok(Err(error)) = written {
        // No caller is left to receive an error, and a user expects the file.
        eprintln!("gpumem: {ENV_TRACE_FILE}: cannot write {}: {error}", program.file.display());
    }
}
