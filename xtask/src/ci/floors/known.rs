//! What the check lets pass: lists that only become shorter.

/// Crates in which two files may name each other.
pub(super) const SMALL: [&str; 7] =
    ["gpumem", "gpumem-cuda", "gpumem-host", "gpumem-macros", "gpumem-python", "gpumem-roc", "gpumem-simt"];

/// Modules that still stand in a cycle. One that is cut out of its cycle leaves the list in the same change.
pub(super) const CYCLIC: &[(&str, &[&str])] = &[
    ("gpumem", &["any", "select"]),
    ("gpumem-core", &["error", "poison", "process"]),
    ("gpumem-cuda", &["device", "event", "pack", "reserve", "stream"]),
    ("gpumem-host", &["device", "engine", "event", "memory", "options", "probe", "process", "stream"]),
    ("gpumem-macros", &["lower", "split"]),
    ("gpumem-nccl-sys", &["(root)", "failure"]),
    ("gpumem-python", &["array", "host", "interchange", "ipc", "kernel", "make", "pinned"]),
    (
        "gpumem-roc",
        &["buffer", "device", "event", "fill", "hiprtc", "hsa", "info", "module", "pack", "probe", "stream"],
    ),
    (
        "gpumem-runtime",
        &[
            "array",
            "completion",
            "destination",
            "device",
            "event",
            "host",
            "interchange",
            "memory",
            "raw",
            "scope",
            "source",
            "stream",
            "track",
            "transfer",
        ],
    ),
    ("gpumem-simt", &["checker", "fault", "parameter", "group", "item", "wave"]),
];

/// The part of the lines of all crates that one may have, in percent.
pub(super) const LARGEST: f64 = 25.0;

/// Crates that are still larger, with what they may have.
pub(super) const LARGE: [(&str, f64); 1] = [("gpumem-runtime", 33.5)];
