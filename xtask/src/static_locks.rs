//! Finds the locks of the whole process in the sources. A forked child waits for ever for one that a thread of its parent held: each
//! is a `PerProcess` or a `OnceBeforeFork`, or has a reason here.

use std::{fs, path::Path};

/// How the types of locks begin, without their paths.
const LOCKS: [&str; 8] =
    ["Mutex", "RwLock", "Once", "OnceLock", "LazyLock", "Condvar", "PlainMutex", "ShortMutex"];

const READ: &str = "what a few instructions or a variable say, in about a microsecond";
const DRIVER: &str =
    "asked for after the driver, which a child of the process that has loaded it does not get";

/// The locks that stay, each with its reason.
const REASONS: [(&str, &str); 18] = [
    ("gpumem-collectives/src/mpi/abi/table/double.rs OBJECTS", "of tests alone"),
    (
        "gpumem-collectives/src/mpi/thread.rs AT_EXIT",
        "set where MPI is started, which a child of that process is refused",
    ),
    ("gpumem-collectives/src/nccl/join.rs FIRST", "asked for after the device, which is of this process"),
    (
        "gpumem-core/src/process.rs AT_EXIT",
        "set in a few instructions, where a library is loaded for the first time",
    ),
    ("gpumem-core/src/process.rs WATCH", "two calls of libc: with the first one the watch for forks begins"),
    ("gpumem-cuda/src/error.rs ERROR_NAME", DRIVER),
    ("gpumem-cuda/src/registry.rs OPEN", DRIVER),
    ("gpumem-host/src/copy/mod.rs IS_OTHER", READ),
    ("gpumem-kernel/src/definition/declaration.rs OF_PROGRAM", READ),
    (
        "gpumem-python/src/device.rs CURRENT",
        "held by threads that are attached to Python, as the one that forks is",
    ),
    (
        "gpumem-python/src/in_use.rs KNOWN",
        "held by threads that are attached to Python, as the one that forks is",
    ),
    (
        "gpumem-python/src/locked.rs LOCKED",
        "held by threads that are attached to Python, as the one that forks is",
    ),
    (
        "gpumem-python/src/locked.rs REGISTERED",
        "held by threads that are attached to Python, as the one that forks is",
    ),
    ("gpumem-roc/src/error.rs HIP", DRIVER),
    ("gpumem-roc/src/info.rs CAN", DRIVER),
    ("gpumem-roc/src/probe.rs HSA", DRIVER),
    ("gpumem-roc/src/registry.rs OPEN", DRIVER),
    ("gpumem-runtime/src/transfer/store_policy.rs HAS", READ),
];

/// The last word of the outermost type.
fn head_of(ty: &str) -> Option<&str> {
    ty.split(['<', '=', ';', ',']).next()?.trim().trim_start_matches('[').rsplit("::").next()
}

fn is_lock(ty: &str) -> bool {
    head_of(ty).is_some_and(|head| LOCKS.contains(&head))
}

/// The structures of a file that have a lock as a field: a static of such a type is one, and stands in the same file.
fn structures_with_locks(text: &str) -> Vec<String> {
    let (mut found, mut structure) = (Vec::new(), None);
    for line in text.lines().map(str::trim) {
        let line = line.strip_prefix("pub ").unwrap_or(line);
        let line = line.strip_prefix("pub(crate) ").unwrap_or(line);
        if let Some(item) = line.strip_prefix("struct ") {
            let name: String = item.chars().take_while(|letter| letter.is_alphanumeric()).collect();
            let fields = &item[name.len()..];
            if fields.strip_prefix('(').is_some_and(|fields| fields.split(", ").any(is_lock)) {
                found.push(name.clone());
            }
            structure = fields.contains('{').then_some(name);
        } else if line.starts_with('}') {
            structure = None;
        } else if let (Some(name), Some((_, ty))) = (&structure, line.split_once(": "))
            && !line.starts_with("//")
            && is_lock(ty)
        {
            found.push(name.clone());
        }
    }
    found
}

/// The name of a static on this line, if that is a lock, a list of locks, or one of these structures.
fn lock_on<'l>(line: &'l str, structures: &[String]) -> Option<&'l str> {
    let line = line.trim_start();
    let item = line.strip_prefix("static ").or_else(|| {
        line.strip_prefix("pub")?
            .split_once(" static ")
            .filter(|(before, _)| !before.contains("//"))
            .map(|(_, item)| item)
    })?;
    let (name, ty) = item.split_once(':')?;
    let is_structure = || head_of(ty).is_some_and(|head| structures.iter().any(|name| name == head));
    (is_lock(ty) || is_structure()).then_some(name)
}

/// The files below a folder, with their texts.
fn collect(crates: &Path, folder: &Path, found: &mut Vec<(String, String)>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(crates, &path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let file = path.strip_prefix(crates).unwrap().display().to_string();
            let text = fs::read_to_string(&path).unwrap();
            found.push((file, text));
        }
    }
}

#[test]
fn locks_of_the_process_are_known() {
    let known = [
        "static A: Mutex<u8> = Mutex::new(0);",
        "    pub(crate) static A: std::sync::OnceLock<u8> =",
        "static A: [Once; 2] =",
    ];
    assert!(known.iter().all(|line| lock_on(line, &[]) == Some("A")));
    let others = [
        "static A: PerProcess<Mutex<u8>> =",
        "static A: OnceBeforeFork<u8> =",
        "// a static A: Mutex<u8>",
        "fn f(a: &'static str)",
    ];
    assert!(others.iter().all(|line| lock_on(line, &[]).is_none()));
    let text = "pub struct Table {\n    /// Why: Mutex\n    entries: Mutex<u8>,\n}\nstruct Pair(u8, OnceLock<u8>);\n\
                struct Calm {\n    entries: PerProcess<Mutex<u8>>,\n}\nfn f() {\n    let x: Mutex<u8>;\n}\nstruct Unit;";
    let structures = structures_with_locks(text);
    assert_eq!(structures, ["Table", "Pair"]);
    assert_eq!(lock_on("pub static A: Table = Table::new();", &structures), Some("A"));
    assert_eq!(lock_on("static A: Calm = Calm::new();", &structures), None);
}

#[test]
fn each_lock_of_the_process_has_a_reason() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates");
    let mut files = Vec::new();
    for entry in fs::read_dir(&crates).unwrap() {
        collect(&crates, &entry.unwrap().path().join("src"), &mut files);
    }
    let locks_of = |(file, text): &(String, String)| -> Vec<String> {
        let mut structures = structures_with_locks(text);
        structures.retain(|name| name != "OnceBeforeFork");
        let names = text.lines().filter_map(|line| lock_on(line, &structures));
        names.map(|name| format!("{file} {name}")).collect()
    };
    let found: Vec<String> = files.iter().flat_map(locks_of).collect();
    let missing: Vec<_> =
        found.iter().filter(|lock| REASONS.iter().all(|(known, _)| known != lock)).collect();
    let stale: Vec<_> = REASONS.iter().filter(|(known, _)| found.iter().all(|lock| lock != known)).collect();
    assert!(missing.is_empty(), "make them `PerProcess` or `OnceBeforeFork`:\n{missing:#?}");
    assert!(stale.is_empty(), "take out of the list:\n{stale:#?}");
}
