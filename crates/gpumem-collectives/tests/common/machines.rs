//! Two machines for a test: two network namespaces of this one, joined by one cable (a veth pair).
//!
//! The namespaces are those of child processes, which end with this one however it ends. Nothing has to be removed.

use crate::common::launcher;
use std::{
    env,
    fs::{self, Permissions},
    io,
    os::unix::fs::PermissionsExt,
    path::Path,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

/// Set in the process that makes the two machines.
const INSIDE: &str = "GPUMEM_TEST_INSIDE_MACHINE";
/// The name of the interface on both machines: MPI is told one name.
const INTERFACE: &str = "eth9";
const FIRST: &str = "10.98.76.1";
const SECOND: &str = "10.98.76.2";
/// Longest time of one program on the machines, in seconds: then the launcher ends it.
const LIMIT: &str = "30";

/// Runs the test again as the first of two machines, or says why it is skipped. Whether this process is that machine.
pub(crate) fn is_first_machine(test: &str) -> bool {
    if env::var_os(INSIDE).is_some() {
        return true;
    }
    if let Err(reason) = can_make() {
        println!("skipped: no two network namespaces: {reason}");
        return false;
    }
    let own = env::current_exe().unwrap();
    let done = unshared(&own).args([test, "--exact", "--nocapture"]).env(INSIDE, "1").output().unwrap();
    let output = launcher::text(&done);
    assert!(done.status.success() && output.contains(". 1 passed;"), "{output}");
    print!("{output}");
    false
}

/// The number of the machine that this process is on, or nothing if it is on an ordinary one.
pub(crate) fn number() -> Option<u64> {
    env::var_os(INSIDE)?;
    let network = fs::read_link("/proc/self/ns/net").ok()?;
    network.to_str()?.trim_start_matches("net:[").trim_end_matches(']').parse().ok()
}

/// A command in a network of its own. A new user namespace gives it the right to that, where it is not root.
fn unshared(program: &Path) -> Command {
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--net"]).arg(program);
    command
}

/// Whether this machine allows networks, and has the programs.
fn can_make() -> Result<(), String> {
    let why = |error: io::Error, what: &str| format!("{what}: {error}");
    Command::new("nsenter").arg("--version").output().map_err(|error| why(error, "nsenter"))?;
    Command::new("ip").arg("-Version").output().map_err(|error| why(error, "ip (package iproute2)"))?;
    let mut pair = unshared(Path::new("ip"));
    pair.args(["link", "add", INTERFACE, "type", "veth", "peer", "name", "eth8"]);
    let made = pair.output().map_err(|error| why(error, "unshare"))?;
    made.status.success().then_some(()).ok_or_else(|| launcher::text(&made).trim().to_owned())
}

/// The two machines, seen from the first one.
pub(crate) struct Machines {
    /// Holds the second network, until its input is closed: also if this process is killed.
    second: Child,
    folder: tempfile::TempDir,
}

/// Bytes that the cable has brought to each machine.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Brought {
    pub(crate) first: u64,
    pub(crate) second: u64,
}

impl Machines {
    /// Joins this network with a second one.
    pub(crate) fn new() -> Self {
        let second = Command::new("unshare").args(["--net", "cat"]).stdin(Stdio::piped()).spawn().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let machines = Self { second, folder };
        let pid = machines.second.id().to_string();
        let network = |pid: &str| fs::read_link(format!("/proc/{pid}/ns/net")).ok();
        let began = Instant::now();
        while network(&pid).is_none_or(|other| Some(other) == network("self")) {
            assert!(began.elapsed() < Duration::from_secs(10), "no second network");
            thread::sleep(Duration::from_millis(5));
        }
        let peer = ["peer", "name", INTERFACE, "netns", &pid];
        succeed(Command::new("ip").args(["link", "add", INTERFACE, "type", "veth"]).args(peer));
        let ends = [(FIRST, &["ip"][..]), (SECOND, &["nsenter", "--net", "--target", &pid, "ip"])];
        let ip =
            |on: &[&str], arguments: &[&str]| succeed(Command::new(on[0]).args(&on[1..]).args(arguments));
        for (address, on) in ends {
            ip(on, &["address", "add", &format!("{address}/24"), "dev", INTERFACE]);
            ip(on, &["link", "set", INTERFACE, "up"]);
            ip(on, &["link", "set", "lo", "up"]);
        }
        // The system takes a moment until it calls an end usable, and MPI looks once.
        for (_, on) in ends {
            while !ip(on, &["link", "show", INTERFACE]).contains("state UP") {
                assert!(began.elapsed() < Duration::from_secs(10), "the cable does not work");
                thread::sleep(Duration::from_millis(10));
            }
        }
        machines
    }

    /// Runs tests of this program on both machines, with so many ranks on each, and checks that all pass in all of them.
    /// Returns the bytes that the cable has brought meanwhile, or nothing if there is no MPI.
    pub(crate) fn pass(&self, ranks: usize, arguments: &[&str]) -> Option<Brought> {
        // MPI's launcher starts its part on another machine with this: the machine's name, and a command for its shell.
        let remote = self.folder.path().join("remote");
        let pid = self.second.id();
        let script = format!("#!/bin/sh\nshift\nexec nsenter --net --target {pid} sh -c \"exec $*\"\n");
        fs::write(&remote, script).unwrap();
        fs::set_permissions(&remote, Permissions::from_mode(0o755)).unwrap();
        let (per_machine, hosts) = (ranks.to_string(), format!("{FIRST},{SECOND}"));
        let options = ["-launcher", "rsh", "-launcher-exec", remote.to_str().unwrap(), "-iface", INTERFACE];
        let places = ["-hosts", &hosts, "-ppn", &per_machine];
        let variables = [
            ("MPIR_CVAR_CH4_NETMOD", "ofi"),
            ("FI_PROVIDER", "tcp"),
            ("FI_TCP_IFACE", INTERFACE),
            // Ranks of one machine do not share memory: otherwise MPI takes the two machines for one, by their name.
            ("MPIR_CVAR_NOLOCAL", "1"),
            ("MPIEXEC_TIMEOUT", LIMIT),
        ];
        let before = self.brought();
        launcher::pass_with(&[&options[..], &places].concat(), 2 * ranks, arguments, &variables)?;
        let after = self.brought();
        Some(Brought { first: after.first - before.first, second: after.second - before.second })
    }

    fn brought(&self) -> Brought {
        let of = |pid: &str| received(&Path::new("/proc").join(pid).join("net/dev"));
        Brought { first: of("self"), second: of(&self.second.id().to_string()) }
    }
}

impl Drop for Machines {
    fn drop(&mut self) {
        drop(self.second.stdin.take());
        let _ = self.second.wait();
    }
}

/// Runs a command that must succeed. Returns what it prints.
fn succeed(command: &mut Command) -> String {
    let done = command.output().unwrap();
    let output = launcher::text(&done);
    assert!(done.status.success(), "{command:?}: {output}");
    output
}

/// The bytes that the cable's end has received.
fn received(table: &Path) -> u64 {
    let table = fs::read_to_string(table).unwrap();
    let bytes = table.lines().find_map(|line| {
        let (name, counters) = line.split_once(':')?;
        (name.trim() == INTERFACE).then(|| counters.split_whitespace().next()?.parse().ok()).flatten()
    });
    bytes.unwrap_or_else(|| panic!("no {INTERFACE} in {table}"))
}
