//! The message of every kind of error, and the page of the book that lists them.

use super::*;
use crate::DescriptorError;
use std::{env, fmt::Write, fs, path::Path, sync::Arc};

/// A row of the page: the name of the kind, when it is returned, and an example.
struct Row {
    name: &'static str,
    when: &'static str,
    error: Error,
}

/// The name of a kind and when it is returned. The `match` makes the compiler demand every kind.
fn about(kind: &ErrorKind) -> (&'static str, &'static str) {
    match kind {
        ErrorKind::Load(_) => ("Load", "a driver or compiler library cannot be used"),
        ErrorKind::NoSuchDevice { .. } => ("NoSuchDevice", "the backend has no such device"),
        ErrorKind::InvalidSelector { .. } => ("InvalidSelector", "a text does not name a device"),
        ErrorKind::UnknownBackend { .. } => ("UnknownBackend", "there is no backend of that name"),
        ErrorKind::BackendNotEnabled { .. } => ("BackendNotEnabled", "the feature of the backend is off"),
        ErrorKind::BackendMismatch { .. } => ("BackendMismatch", "things of two backends meet in one call"),
        ErrorKind::WrongDevice { .. } => ("WrongDevice", "something belongs to another device"),
        ErrorKind::OutOfMemory { .. } => {
            ("OutOfMemory", "the memory does not suffice; the message goes on with what holds it")
        }
        ErrorKind::Layout(_) => ("Layout", "a shape, a stride or an index does not fit (`LayoutError`)"),
        ErrorKind::Descriptor(_) => {
            ("Descriptor", "another library's description of memory cannot be taken (`DescriptorError`)")
        }
        ErrorKind::File(_) => {
            ("File", "a file cannot be read or written, or is not what it was said to be (`FileError`)")
        }
        ErrorKind::Overlap { .. } => {
            ("Overlap", "an array that is written shares bytes with another one of the operation")
        }
        ErrorKind::Registration { .. } => ("Registration", "memory cannot be page-locked"),
        ErrorKind::InvalidArgument { .. } => ("InvalidArgument", "an argument makes no sense"),
        ErrorKind::LaunchTooLarge { .. } => {
            ("LaunchTooLarge", "a launch is larger than the device or the kernel allows")
        }
        ErrorKind::Unsupported { .. } => ("Unsupported", "the device or the backend cannot do that"),
        ErrorKind::Build { .. } => {
            ("Build", "a kernel cannot be compiled or loaded; the compiler's words follow")
        }
        ErrorKind::NoProgram { .. } => ("NoProgram", "none of a kernel's programs is for this device"),
        ErrorKind::NoSuchKernel { .. } => ("NoSuchKernel", "a program has no kernel of that name"),
        ErrorKind::AsynchronousFault { .. } => ("AsynchronousFault", "work that was enqueued earlier failed"),
        ErrorKind::Poisoned { .. } => ("Poisoned", "data were to be written by work that failed"),
        ErrorKind::Collective(_) => {
            ("Collective", "an operation of several ranks failed (`CollectiveError`)")
        }
        ErrorKind::UserCodePanicked { .. } => {
            ("UserCodePanicked", "code of the caller that the library runs panicked")
        }
        ErrorKind::DeviceLost { .. } => ("DeviceLost", "the device is lost since a failure"),
        ErrorKind::Stale { .. } => ("Stale", "something is older than a reset of its device"),
        ErrorKind::NotRecordable { .. } => ("NotRecordable", "a graph cannot record it"),
        ErrorKind::OfRecording { .. } => {
            ("OfRecording", "something that belongs to the recording of a graph is used outside of it")
        }
        ErrorKind::WrongThread => ("WrongThread", "the per-thread default stream of another thread is used"),
        ErrorKind::BlockingInCallback => ("BlockingInCallback", "a callback waits"),
        ErrorKind::CallbackPanicked { .. } => {
            ("CallbackPanicked", "a callback panicked; `take_errors` has it")
        }
        ErrorKind::ForkedChild => ("ForkedChild", "a device of the parent process is used after a fork"),
        ErrorKind::Exiting => ("Exiting", "the process is ending"),
        ErrorKind::HostMemoryInUse { .. } => {
            ("HostMemoryInUse", "a reset would take memory that the host sees")
        }
        ErrorKind::NotReady => ("NotReady", "what was asked for is not finished"),
        ErrorKind::Cancelled => ("Cancelled", "the caller has ended the operation"),
        ErrorKind::Driver { .. } => ("Driver", "the driver reports an error that has no kind here"),
    }
}

fn on(operation: &'static str, kind: impl Into<ErrorKind>) -> Error {
    Error::new("", operation, kind).on_device("cuda", 0)
}

/// One error of every kind.
fn errors() -> Vec<Error> {
    let text = str::to_owned;
    let missing = LoadError {
        library: "the CUDA driver",
        tried: vec![text("libcuda.so.1"), text("libcuda.so")],
        failure: LoadFailure::Missing,
    };
    let out_of_memory = ErrorKind::OutOfMemory {
        requested: 1 << 33,
        kind: "device",
        free: 1 << 30,
        total: 1 << 34,
        pressure: None,
    };
    vec![
        Error::new("cuda", "open", missing).with_hint(
            "this is the default device; for another one set GPUMEM_DEVICE=host or call `Device::open_first_available`",
        ),
        Error::new("cuda", "open", ErrorKind::NoSuchDevice { wanted: text("cuda:7"), found: 2 }),
        Error::new(
            "",
            "open",
            ErrorKind::InvalidSelector {
                text: text("cuda:one"),
                why: "the part after the colon must be a position, a PCI address or a UUID",
            },
        ),
        Error::new("", "open", ErrorKind::UnknownBackend { wanted: text("gpu"), known: text("cuda, roc, host") }),
        Error::new("", "open", ErrorKind::BackendNotEnabled { wanted: text("roc"), enabled: text("cuda, host") })
            .with_hint("enable the feature `roc` of gpumem"),
        on("copy", ErrorKind::BackendMismatch { left: "cuda", right: "host" }),
        on("launch", ErrorKind::WrongDevice { what: "array", has: text("cuda:1"), wants: text("cuda:0") })
            .in_kernel("saxpy")
            .at_argument(2),
        on("device_array", out_of_memory),
        on("launch", LayoutError::RankMismatch { found: 2, expected: 1 }).in_kernel("saxpy").at_argument(1),
        on("from_cuda_array_interface", DescriptorError::NullAddress { bytes: 16 }),
        Error::new("", "npy", Box::new(FileError {
            path: "weights.npy".into(),
            failure: FileFailure::Truncated { wanted: 4224, found: 2048 },
        })),
        on("copy_to_device", ErrorKind::Overlap { source_bytes: 0..400, destination_bytes: 200..600 }),
        on("register", ErrorKind::Registration { why: "a page of it is locked already, with other options" }),
        on("elapsed_since", ErrorKind::InvalidArgument {
            why: "an event without a time; make it with record_timed_event",
        }),
        on("launch", ErrorKind::LaunchTooLarge { what: "work-items of a group", requested: 2000, most: 1024 })
            .in_kernel("saxpy"),
        on("load", ErrorKind::Unsupported { what: "a kernel without source for a GPU" }).in_kernel("saxpy"),
        on("load", ErrorKind::Build { log: text("kernel(3): error: identifier \"q\" is undefined") })
            .in_kernel("saxpy"),
        on("load", ErrorKind::NoProgram {
            name: text("saxpy"),
            architecture: text("sm_90"),
            has: text("gfx90a, sm_80"),
        }),
        on("load", ErrorKind::NoSuchKernel { name: text("saxpy") }),
        on("copy_to_host", ErrorKind::AsynchronousFault { what: text("index 9 is outside axis 0 of length 3") }),
        on("copy_to_host", ErrorKind::Poisoned { bytes: 0..32, failure: Arc::new(crate::Failure::new(
                "kernel \"scale\"",
                "stream 1 of cuda:0",
                "index 9 is outside axis 0 of length 3",
            )) }),
        on("all_reduce", Box::new(crate::CollectiveError::new("all_reduce", 3, (1, 4), crate::CollectiveCause::Timeout {
                after: std::time::Duration::from_secs(30),
                missing: vec![2],
            }))),
        on("to_device", ErrorKind::UserCodePanicked {
            what: "a memory resource",
            message: text("no chunk"),
        }),
        on("synchronize", ErrorKind::DeviceLost { cause: text("CUDA_ERROR_ILLEGAL_ADDRESS (700)") }),
        on("copy_to_host", ErrorKind::Stale { what: "array" }),
        on("synchronize", ErrorKind::NotRecordable { what: NotRecorded::Wait }),
        on("copy_to_host", ErrorKind::OfRecording { what: "array" }),
        on("copy", ErrorKind::WrongThread),
        on("synchronize", ErrorKind::BlockingInCallback),
        on("callback", ErrorKind::CallbackPanicked { message: text("index out of bounds") }),
        on("to_device", ErrorKind::ForkedChild),
        on("to_device", ErrorKind::Exiting),
        on("reset", ErrorKind::HostMemoryInUse { count: 2 }),
        on("query", ErrorKind::NotReady),
        on("copy_to_device", ErrorKind::Cancelled),
        on("cuStreamCreate", ErrorKind::Driver { code: 304, name: "CUDA_ERROR_OPERATING_SYSTEM" }),
    ]
}

fn rows() -> Vec<Row> {
    let row = |error: Error| {
        let (name, when) = about(error.kind());
        Row { name, when, error }
    };
    errors().into_iter().map(row).collect()
}

fn page() -> String {
    let mut page = String::from(HEAD);
    for Row { name, when, error } in rows() {
        let _ = writeln!(page, "| `{name}` | {when} | {error} |");
    }
    page
}

const HEAD: &str = "# Errors

Every call that can fail returns `gpumem::Result`. An `Error` has `kind()`, `operation()`, `backend()`, `device()`, for a launch
`kernel()` and `argument()` (counted from 1), and a `hint()` at what can be done. Its message has all of that in one line:

```text
launch of saxpy on cuda:0: argument #1: 2 axes given where 1 are needed
```

`{}` and `{:?}` print that message, so that `fn main() -> gpumem::Result<()>` ends with it. `{:#?}` prints all fields. `source()` is
empty, so a report prints the cause once.

A launch on bytes that failed work was to write is `Poisoned`: at the call if the failure is known by then, else the kernel does
not run and the next wait for its stream returns the error. [Safety](safety.md#no-results-of-failed-work) has the rules.

The kinds, each with an example. A test of `gpumem-core` writes this table and compares it
(`GPUMEM_BLESS=1 cargo test -p gpumem-core error` writes it anew).

| kind | returned when | example |
|---|---|---|
";

#[test]
#[cfg_attr(miri, ignore = "reads a page of the book")]
fn every_kind_has_one_message_and_the_page_lists_them() {
    let rows = rows();
    let mut names: Vec<_> = rows.iter().map(|row| row.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), rows.len(), "each kind once");
    // One arm of `about` for each kind, and one row for each arm.
    let arms = include_str!("tests.rs")
        .lines()
        .filter(|line| line.starts_with("        ErrorKind::") && line.contains("=>"));
    assert_eq!(rows.len(), arms.count());
    for Row { error, .. } in &rows {
        let message = error.to_string();
        assert!(message.starts_with(error.operation()), "{message}");
        assert_eq!(message.matches(&error.kind().to_string()).count(), 1, "{message}");
        assert!(!message.contains('\n') && !message.contains(" any:"), "{message}");
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/src/errors.md");
    if env::var_os("GPUMEM_BLESS").is_some() {
        fs::write(&path, page()).unwrap();
    }
    // The page does not go with a published crate.
    if path.parent().is_some_and(Path::exists) {
        assert_eq!(fs::read_to_string(&path).unwrap(), page(), "GPUMEM_BLESS=1 writes the page anew");
    }
}

#[test]
fn the_message_has_all_there_is_in_order() {
    let error = Error::new("cuda", "launch", LayoutError::RankMismatch { found: 2, expected: 1 });
    let told = |error: &Error| error.to_string();
    assert_eq!(told(&error), "launch on cuda: 2 axes given where 1 are needed");
    let error = error.on_device("cuda", 1).in_kernel("saxpy").at_argument(2).with_hint("declare a `View`");
    let whole = "launch of saxpy on cuda:1: argument #2: 2 axes given where 1 are needed (declare a `View`)";
    assert_eq!(told(&error), whole);
    assert_eq!((error.backend(), error.device().as_deref()), ("cuda", Some("cuda:1")));
    assert_eq!((error.kernel(), error.argument()), (Some("saxpy"), Some(2)));
    assert_eq!((error.operation(), error.hint()), ("launch", Some("declare a `View`")));
    // Fields that are set already stay.
    let again = error.clone().on_device("cuda", 7).in_kernel("other").at_argument(9);
    assert_eq!(again, error);
    let other = Error::new("roc", "launch", ErrorKind::NotReady).on_device("cuda", 1);
    assert_eq!((other.backend(), other.device()), ("roc", None));
}

#[test]
fn the_message_is_printed_once_by_main_and_by_reports() {
    let error = on("get", LayoutError::IndexOutOfBounds { index: 9, axis: 0, length: 3 });
    assert_eq!(format!("{error:?}"), "get on cuda:0: index 9 is outside axis 0 of length 3");
    assert!(std::error::Error::source(&error).is_none(), "the message has the cause in it");
    let dump = format!("{error:#?}");
    assert!(dump.contains("operation: \"get\"") && dump.contains("IndexOutOfBounds"), "{dump}");
}

#[test]
fn uncounted_memory_is_not_reported_as_zero() {
    let error = |total| {
        let kind = ErrorKind::OutOfMemory { requested: 10, kind: "pinned", free: 0, total, pressure: None };
        on("pinned_array", kind).to_string()
    };
    assert_eq!(error(0), "pinned_array on cuda:0: out of memory: 10 bytes of pinned memory requested");
    assert_eq!(
        error(9),
        "pinned_array on cuda:0: out of memory: 10 bytes of pinned memory requested, 0 of 9 free"
    );
}

#[test]
#[cfg_attr(miri, ignore = "reads a page of the book")]
fn all_that_a_graph_does_not_record_has_a_hint_and_a_row_of_the_book() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/src/graphs.md");
    // The page does not go with a published crate.
    let page = path.exists().then(|| fs::read_to_string(&path).unwrap());
    for what in NotRecorded::ALL {
        let error = on("call", ErrorKind::NotRecordable { what: *what });
        assert!(!what.to_string().is_empty() && !what.hint().is_empty(), "{what:?}");
        assert_eq!(error.hint(), Some(what.hint()));
        assert_eq!(
            error.to_string(),
            format!("call on cuda:0: a graph cannot record this: {what} ({})", what.hint())
        );
        if let Some(page) = &page {
            let row = format!("| {what} | {} |", what.hint());
            assert!(page.contains(&row), "docs/src/graphs.md lacks {row}");
        }
    }
}
