//! Starts the ranks, and joins what they measure.

use super::{
    Line,
    folder::Folder,
    rank::{Plan, Rank},
};
use anyhow::{Context, Result, bail, ensure};
use std::{
    env,
    io::{BufRead, BufReader, Write},
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    thread,
    time::Duration,
};

/// Longest time between two lines of a rank.
const LONGEST: Duration = Duration::from_secs(120);
/// The rank of a child, and the folder where it finds the others.
const RANK: &str = "GPUMEM_BENCH_RANK";
const FOLDER: &str = "GPUMEM_BENCH_FOLDER";

/// What is measured.
#[derive(Debug, Clone)]
pub struct Options {
    /// The devices of the ranks, in turn.
    pub devices: Vec<String>,
    /// The number of ranks.
    pub ranks: usize,
    /// Whether each rank is a process.
    pub processes: bool,
    /// Few short rounds.
    pub quick: bool,
    /// Largest number of bytes; by default that of the devices.
    pub largest: Option<usize>,
}

impl Options {
    /// Options for devices `cuda:0,cuda:1`: by default a rank for each device, two on the host.
    pub fn new(devices: &str, ranks: Option<usize>, processes: bool) -> Self {
        let devices: Vec<String> = devices.split(',').map(str::to_owned).collect();
        let of_host = devices.iter().all(|device| device.split(':').next() == Some("host"));
        let ranks = ranks.unwrap_or(if of_host { devices.len().max(2) } else { devices.len() });
        // The library takes two ranks on one GPU only from two machines, as it believes.
        let processes = processes || (!of_host && ranks > devices.len());
        Self { devices, ranks, processes, quick: false, largest: None }
    }

    fn plan(&self) -> Plan {
        let of_host = self.devices.iter().all(|device| device.starts_with("host"));
        let largest = match (self.quick, of_host) {
            (true, _) => 32 << 10,
            (_, true) => 16 << 20,
            _ => 1 << 30,
        };
        let (rounds, round) = if self.quick { (2, 2) } else { (7, 20) };
        Plan { rounds, round: Duration::from_millis(round), largest: self.largest.unwrap_or(largest) }
    }

    fn device(&self, rank: usize) -> &str {
        &self.devices[rank % self.devices.len()]
    }
}

/// What a rank sends: its number, and a line or an error.
type Message = (usize, Result<Line>);

/// Measures, and gives each line to `show` as soon as all ranks have it.
///
/// # Errors
/// Returns an error if a rank fails, or sends nothing for two minutes.
pub fn run(options: &Options, mut show: impl FnMut(&Line)) -> Result<Vec<Line>> {
    ensure!(options.ranks > 0, "there is no rank");
    let folder = tempfile::tempdir()?;
    let (sender, receiver) = channel();
    let mut children = Children(Vec::new());
    for rank in 0..options.ranks {
        if options.processes {
            children.0.push(start(options, rank, folder.path().into(), sender.clone())?);
        } else {
            let (options, folder, sender) = (options.clone(), Folder(folder.path().into()), sender.clone());
            thread::spawn(move || {
                if let Err(error) =
                    measure(&options, rank, &folder, |line| Ok(sender.send((rank, Ok(line)))?))
                {
                    let _ = sender.send((rank, Err(error)));
                }
            });
        }
    }
    drop(sender);
    let lines = collect(options.ranks, &receiver, &mut show)?;
    for (rank, child) in children.0.iter_mut().enumerate() {
        let status = child.wait()?;
        ensure!(status.success(), "rank {rank} ended with {status}");
    }
    Ok(lines)
}

fn measure(
    options: &Options,
    rank: usize,
    folder: &Folder,
    give: impl FnMut(Line) -> Result<()>,
) -> Result<()> {
    Rank::join(options.device(rank), (rank, options.ranks), folder, options.plan())?.measure(give)
}

/// Joins the lines of all ranks.
fn collect(ranks: usize, receiver: &Receiver<Message>, show: &mut impl FnMut(&Line)) -> Result<Vec<Line>> {
    let mut lines: Vec<Vec<Line>> = vec![Vec::new(); ranks];
    let mut joined: Vec<Line> = Vec::new();
    loop {
        match receiver.recv_timeout(LONGEST) {
            Ok((rank, line)) => lines[rank].push(line.with_context(|| format!("rank {rank}"))?),
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => bail!("the ranks have sent nothing for {LONGEST:?}"),
        }
        while let Some(all) =
            lines.iter().map(|of_rank| of_rank.get(joined.len())).collect::<Option<Vec<_>>>()
        {
            let mut line = all[0].clone();
            all[1..].iter().for_each(|other| line.join(other));
            show(&line);
            joined.push(line);
        }
    }
    ensure!(lines.iter().all(|of_rank| of_rank.len() == joined.len()), "a rank has ended too early");
    Ok(joined)
}

/// Child processes, which are killed if this is dropped before they end.
struct Children(Vec<Child>);

impl Drop for Children {
    fn drop(&mut self) {
        for child in &mut self.0 {
            // Does nothing to a process that has ended.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Starts this program again as one rank. A thread passes on the lines that it prints.
fn start(options: &Options, rank: usize, folder: PathBuf, sender: Sender<Message>) -> Result<Child> {
    let mut command = Command::new(env::current_exe()?);
    command.args([
        "collectives",
        "--device",
        &options.devices.join(","),
        "--ranks",
        &options.ranks.to_string(),
    ]);
    command.args(["--processes", "--largest", &options.plan().largest.to_string()]);
    if options.quick {
        command.arg("--quick");
    }
    command.env(RANK, rank.to_string()).env(FOLDER, folder);
    if options.ranks > options.devices.len() {
        // Ranks that share a GPU look like ranks of several machines, which the library connects through sockets.
        command.env("NCCL_HOSTID", format!("machine-{rank}")).env("NCCL_SOCKET_IFNAME", "lo");
        command.env("NCCL_NET", "Socket").env("NCCL_IB_DISABLE", "1").env("NCCL_NVLS_ENABLE", "0");
    }
    let mut child = command.stdout(Stdio::piped()).spawn()?;
    let output = child.stdout.take().context("the child has an output")?;
    thread::spawn(move || {
        for line in BufReader::new(output).lines() {
            let line = line.map_err(anyhow::Error::from).and_then(|text| Ok(serde_json::from_str(&text)?));
            if sender.send((rank, line)).is_err() {
                return;
            }
        }
    });
    Ok(child)
}

/// Measures as one rank, if this process was started as one.
///
/// # Errors
/// Returns the errors of what is measured.
pub fn as_child(options: &Options) -> Result<bool> {
    let (Some(rank), Some(folder)) = (env::var_os(RANK), env::var_os(FOLDER)) else { return Ok(false) };
    let rank = rank.to_str().context("a rank is a number")?.parse()?;
    measure(options, rank, &Folder(folder.into()), |line| {
        let mut text = serde_json::to_string(&line)?;
        text.push('\n');
        let mut output = std::io::stdout().lock();
        output.write_all(text.as_bytes())?;
        Ok(output.flush()?)
    })?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collectives::{Operation, Times};

    #[test]
    fn ranks_on_the_host_measure_every_operation_with_right_results() {
        let mut options = Options::new("host", Some(3), false);
        (options.quick, options.largest) = (true, Some(512));
        let mut shown = 0;
        let lines = run(&options, |_| shown += 1).unwrap();
        assert_eq!((lines.len(), shown), (5 * 3, 5 * 3), "8, 64 and 512 bytes");
        for line in &lines {
            assert_eq!(line.wrong, 0, "{line:?}");
            let Times { call, enqueue, wait } = &line.ours;
            assert_eq!([call.len(), enqueue.len(), wait.len()], [2; 3], "one time in each round");
            assert!(call.iter().chain(wait).chain(&line.strided.call).all(|time| *time > 0.0), "{line:?}");
            assert!(line.raw.as_ref().unwrap().call.iter().all(|time| *time > 0.0), "{line:?}");
            assert!(line.check.is_none(), "ranks of one process always compare");
        }
        assert_eq!(lines[4].operation, Operation::AllGather);
        assert_eq!((lines[4].bytes, lines[4].count), (48, 4), "three blocks of four elements");
    }

    #[test]
    fn ranks_that_share_a_gpu_are_processes() {
        assert!(Options::new("cuda:0", Some(2), false).processes);
        assert!(!Options::new("cuda:0,cuda:1", None, false).processes);
        assert_eq!(Options::new("cuda:0,cuda:1", None, false).ranks, 2);
        assert_eq!(
            (Options::new("cuda:0", None, false).ranks, Options::new("host", None, false).ranks),
            (1, 2)
        );
    }

    #[test]
    fn a_rank_that_fails_is_named() {
        let error = run(&Options::new("host,absent:0", Some(2), false), |_| {}).unwrap_err();
        assert!(format!("{error:#}").contains("rank 1"), "{error:#}");
    }
}
