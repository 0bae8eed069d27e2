//! Tests in several processes: the test program starts itself under MPI's launcher.

use super::{Comm, Device};
use gpumem_collectives::{Communicator, CommunicatorId, Options};
use std::{
    env,
    path::{Path, PathBuf},
    process::{Command, Output},
};

/// Set in the processes that the launcher starts.
const UNDER: &str = "GPUMEM_TEST_UNDER_MPI";

/// Rank and size of this process, if MPI's launcher has started it for a test.
pub(crate) fn of_this_process() -> Option<(usize, usize)> {
    env::var_os(UNDER)?;
    let number = |name: &str| env::var(name).ok()?.parse().ok();
    let of = |rank, size| Some((number(rank)?, number(size)?));
    of("PMI_RANK", "PMI_SIZE").or_else(|| of("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"))
}

/// This process's rank of the first `count` processes, if it is one of them.
pub(crate) fn join(
    device: &Device,
    count: usize,
    options: &Options,
    (rank, size): (usize, usize),
) -> Option<Comm> {
    let all = Communicator::join(device, &CommunicatorId::mpi(), rank, size, options).unwrap();
    all.split((rank < count).then_some(0), 0).unwrap()
}

/// MPI's launcher and library: those beside the library that `GPUMEM_MPI` names, else those on the path.
fn found() -> Option<(PathBuf, Option<PathBuf>)> {
    if let Some(library) = env::var_os("GPUMEM_MPI").filter(|value| !value.is_empty()) {
        let launcher = Path::new(&library).parent()?.parent()?.join("bin/mpiexec");
        if launcher.is_file() {
            return Some((launcher, Some(library.into())));
        }
    }
    let path = env::var_os("PATH")?;
    let mut launchers = env::split_paths(&path).map(|folder| folder.join("mpiexec"));
    let launcher = launchers.find(|launcher| launcher.is_file())?;
    let library = launcher.parent()?.parent()?.join("lib/libmpi_abi.so.1");
    library.is_file().then_some((launcher, Some(library)))
}

/// Starts this program again in so many processes, each by a command before it, with these arguments and variables. `None` if there is no MPI with the standard ABI: then the test is skipped.
pub(crate) fn launch(
    processes: usize,
    before: &[&str],
    arguments: &[&str],
    variables: &[(&str, &str)],
) -> Option<Output> {
    launch_with(&[], processes, before, arguments, variables)
}

/// The same with options of the launcher.
fn launch_with(
    options: &[&str],
    processes: usize,
    before: &[&str],
    arguments: &[&str],
    variables: &[(&str, &str)],
) -> Option<Output> {
    let Some((launcher, library)) = found() else {
        eprintln!("skipped: no mpiexec with libmpi_abi.so.1 beside it (`pip install mpich`, GPUMEM_MPI)");
        return None;
    };
    let mut command = Command::new(launcher);
    command.args(options).args(["-n", &processes.to_string()]).args(before);
    command.arg(env::current_exe().unwrap()).args(arguments);
    command.env(UNDER, "1").envs(library.map(|library| ("GPUMEM_MPI", library)));
    command.envs(variables.iter().copied());
    Some(command.output().unwrap())
}

/// Runs tests of this program in so many processes, and checks that all pass in all of them.
pub(crate) fn pass(processes: usize, arguments: &[&str], variables: &[(&str, &str)]) {
    pass_with(&[], processes, arguments, variables);
}

/// The same with options of the launcher. `None` if there is no MPI.
pub(crate) fn pass_with(
    options: &[&str],
    processes: usize,
    arguments: &[&str],
    variables: &[(&str, &str)],
) -> Option<()> {
    let arguments = [arguments, &["--test-threads=1", "--nocapture"]].concat();
    let done = launch_with(options, processes, &[], &arguments, variables)?;
    let output = text(&done);
    // The lines of several processes may be mixed, and this part of one is written at once.
    let passed = output.matches(" passed; 0 failed;").count();
    let is_empty = output.contains(". 0 passed;");
    assert!(done.status.success() && passed == processes && !is_empty, "{output}");
    Some(())
}

/// What the processes have printed.
pub(crate) fn text(done: &Output) -> String {
    String::from_utf8_lossy(&done.stdout).into_owned() + &String::from_utf8_lossy(&done.stderr)
}
