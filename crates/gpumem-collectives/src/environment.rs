//! Which of several processes this one is, from the variables of its launcher.

use gpumem_core::{Error, ErrorKind, Result};
use std::env;

const OPERATION: &str = "ProcessRank::from_environment";

/// The place of this process among those that a launcher has started: `torchrun`, `mpiexec` of Open MPI, MPICH or Intel,
/// or `srun`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct ProcessRank {
    /// The number of this process, from 0.
    pub rank: usize,
    /// The number of processes.
    pub size: usize,
    /// The number of this process among those on its machine, if the launcher tells.
    pub local_rank: Option<usize>,
    /// Whether the launcher starts processes for MPI.
    pub(crate) is_mpi: bool,
}

/// The variables of a launcher: rank, size, and rank on the machine.
struct Launcher {
    name: &'static str,
    rank: &'static str,
    size: &'static str,
    local_rank: &'static str,
    is_mpi: bool,
}

const LAUNCHERS: [Launcher; 3] = [
    Launcher { name: "torchrun", rank: "RANK", size: "WORLD_SIZE", local_rank: "LOCAL_RANK", is_mpi: false },
    Launcher {
        name: "Open MPI",
        rank: "OMPI_COMM_WORLD_RANK",
        size: "OMPI_COMM_WORLD_SIZE",
        local_rank: "OMPI_COMM_WORLD_LOCAL_RANK",
        is_mpi: true,
    },
    Launcher {
        name: "MPICH and Intel MPI",
        rank: "PMI_RANK",
        size: "PMI_SIZE",
        local_rank: "MPI_LOCALRANKID",
        is_mpi: true,
    },
];
/// A launcher in a job of Slurm inherits these, so they count only if there is no other launcher's.
const SLURM: Launcher = Launcher {
    name: "Slurm",
    rank: "SLURM_PROCID",
    size: "SLURM_NTASKS",
    local_rank: "SLURM_LOCALID",
    is_mpi: false,
};
/// The rank as PMIx tells it, without a size.
const PMIX: &str = "PMIX_RANK";

impl ProcessRank {
    /// Reads the launcher's variables. A program picks its device by [`local_rank`](Self::local_rank) first:
    ///
    /// ```no_run
    /// use gpumem_collectives::ProcessRank;
    ///
    /// let process = ProcessRank::from_environment()?;
    /// let selector = format!("cuda:{}", process.local_rank.unwrap_or(0));
    /// # Ok::<(), gpumem_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns [`InvalidArgument`](ErrorKind::InvalidArgument), with the variables that were looked for, if there are none, if
    /// one is no number or missing beside another, and if two launchers contradict each other.
    pub fn from_environment() -> Result<Self> {
        Self::from_variables(&|name| env::var_os(name).map(|value| value.to_string_lossy().into_owned()))
    }

    /// As [`from_environment`](Self::from_environment), with these variables.
    pub(crate) fn from_variables(variable: &dyn Fn(&str) -> Option<String>) -> Result<Self> {
        let mut found: Vec<(&Launcher, Self)> = Vec::new();
        for launcher in &LAUNCHERS {
            found.extend(read(launcher, variable)?.map(|place| (launcher, place)));
        }
        if found.is_empty() {
            found.extend(read(&SLURM, variable)?.map(|place| (&SLURM, place)));
        }
        let pmix = number(PMIX, variable)?;
        let Some((first, place)) = found.first() else {
            let why = match pmix {
                Some(_) => "PMIX_RANK is set, and no variable says how many processes there are",
                None => "no launcher has started this process",
            };
            return Err(refused(why, looked_for()));
        };
        // One launcher inside another leaves both; they agree, or the inner one is not known.
        for (other, theirs) in &found {
            if (theirs.rank, theirs.size) != (place.rank, place.size) {
                let say = |launcher: &Launcher, place: &Self| {
                    let (rank, size) = (place.rank, place.size);
                    format!(
                        "{} says rank {rank} of {size} ({}, {})",
                        launcher.name, launcher.rank, launcher.size
                    )
                };
                let both = format!("{}; {}", say(first, place), say(other, theirs));
                return Err(refused("the variables of two launchers contradict each other", both));
            }
        }
        // In a job of Slurm inside another launcher, PMIx may be Slurm's.
        let is_mpi = found.iter().any(|(launcher, _)| launcher.is_mpi) || pmix == Some(place.rank);
        // Not every launcher says it, so the first that does counts.
        let local_rank = found.iter().find_map(|(_, place)| place.local_rank);
        Ok(Self { is_mpi, local_rank, ..*place })
    }
}

/// The place that a launcher tells, if it has started the process.
fn read(launcher: &Launcher, variable: &dyn Fn(&str) -> Option<String>) -> Result<Option<ProcessRank>> {
    let (rank, size) = (number(launcher.rank, variable)?, number(launcher.size, variable)?);
    let (rank, size) = match (rank, size) {
        (None, None) => return Ok(None),
        (Some(rank), Some(size)) => (rank, size),
        // Half of what a launcher sets was set by a user, or was lost on the way.
        _ => {
            let both = format!("{} and {}, of {}", launcher.rank, launcher.size, launcher.name);
            return Err(refused("one of two variables is set, and the other one is missing", both));
        }
    };
    if rank >= size {
        let values = format!("{} is {rank}, {} is {size}", launcher.rank, launcher.size);
        return Err(refused("the rank is not below the number of processes", values));
    }
    let local_rank = number(launcher.local_rank, variable)?;
    Ok(Some(ProcessRank { rank, size, local_rank, is_mpi: launcher.is_mpi }))
}

fn number(name: &str, variable: &dyn Fn(&str) -> Option<String>) -> Result<Option<usize>> {
    let Some(value) = variable(name).filter(|value| !value.is_empty()) else { return Ok(None) };
    match value.trim().parse() {
        Ok(number) => Ok(Some(number)),
        Err(_) => Err(refused("a variable of a launcher is no number", format!("{name} is {value:?}"))),
    }
}

fn looked_for() -> String {
    let of = |launcher: &Launcher| format!("{}, {} ({})", launcher.rank, launcher.size, launcher.name);
    let all: Vec<String> = LAUNCHERS.iter().chain([&SLURM]).map(of).collect();
    format!("looked for {}", all.join("; "))
}

fn refused(why: &'static str, more: String) -> Error {
    Error::new("", OPERATION, ErrorKind::InvalidArgument { why }).with_hint(more)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(variables: &[(&str, &str)]) -> Result<ProcessRank> {
        let find = |name: &str| {
            variables.iter().find(|(other, _)| *other == name).map(|(_, value)| (*value).to_owned())
        };
        ProcessRank::from_variables(&find)
    }

    #[test]
    fn the_variables_of_every_launcher_are_read() {
        let expected = |rank, size, local_rank, is_mpi| ProcessRank { rank, size, local_rank, is_mpi };
        let torchrun = [("RANK", "5"), ("WORLD_SIZE", "16"), ("LOCAL_RANK", "1")];
        assert_eq!(place(&torchrun).unwrap(), expected(5, 16, Some(1), false));
        let open_mpi = [
            ("OMPI_COMM_WORLD_RANK", "1"),
            ("OMPI_COMM_WORLD_SIZE", "2"),
            ("OMPI_COMM_WORLD_LOCAL_RANK", "0"),
            ("PMIX_RANK", "1"),
        ];
        assert_eq!(place(&open_mpi).unwrap(), expected(1, 2, Some(0), true));
        let mpich = [("PMI_RANK", "3"), ("PMI_SIZE", "4"), ("MPI_LOCALRANKID", "3")];
        assert_eq!(place(&mpich).unwrap(), expected(3, 4, Some(3), true));
        let slurm = [("SLURM_PROCID", "7"), ("SLURM_NTASKS", "8"), ("SLURM_LOCALID", "3")];
        assert_eq!(place(&slurm).unwrap(), expected(7, 8, Some(3), false));
        assert_eq!(
            place(&[slurm.as_slice(), &[("PMIX_RANK", "7")]].concat()).unwrap(),
            expected(7, 8, Some(3), true)
        );
        // torchrun in a job of Slurm has more processes than the job has tasks.
        assert_eq!(place(&[torchrun, slurm].concat()).unwrap(), expected(5, 16, Some(1), false));
        assert_eq!(place(&[("PMI_RANK", "0"), ("PMI_SIZE", "1")]).unwrap(), expected(0, 1, None, true));
    }

    #[test]
    fn missing_malformed_and_contradicting_variables_are_named() {
        let told = |variables: &[(&str, &str)]| place(variables).unwrap_err().to_string();
        let none = told(&[]);
        for name in ["RANK", "WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"] {
            assert!(none.contains(name), "{none}");
        }
        assert!(told(&[("PMIX_RANK", "0")]).contains("PMIX_RANK"));
        assert!(told(&[("RANK", "1")]).contains("WORLD_SIZE"));
        assert!(told(&[("PMI_SIZE", "1")]).contains("PMI_RANK"));
        for wrong in ["-1", "one", "1.0", "99999999999999999999999"] {
            assert!(told(&[("RANK", wrong), ("WORLD_SIZE", "2")]).contains(&format!("RANK is \"{wrong}\"")));
        }
        assert!(told(&[("RANK", "2"), ("WORLD_SIZE", "2")]).contains("RANK is 2, WORLD_SIZE is 2"));
        let both = told(&[("RANK", "0"), ("WORLD_SIZE", "2"), ("PMI_RANK", "1"), ("PMI_SIZE", "2")]);
        assert!(
            both.contains("rank 0 of 2") && both.contains("rank 1 of 2") && both.contains("PMI_RANK"),
            "{both}"
        );
    }
}
