//! How the identity of a communicator reaches the processes that a launcher has started.

mod address;

use crate::{CommunicatorId, ProcessRank, deadline::Deadline};
use address::{ask, cannot_listen, hello, serve};
use gpumem_core::{DataFile, Error, ErrorKind, FileFailure, Result};
use std::{
    fs::File,
    io::{self, Write},
    net::TcpListener,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

const OPERATION: &str = "from_environment";
/// Time between two looks.
const NAP: Duration = Duration::from_millis(20);

/// Where the identity comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Rendezvous {
    /// The identity itself (`GPUMEM_UNIQUE_ID`).
    Given(CommunicatorId),
    /// Every process makes the same one: NCCL does where `NCCL_COMM_ID` names the address of rank 0.
    Same,
    /// MPI passes it on.
    Mpi,
    /// Rank 0 writes a file that all processes see (`GPUMEM_RENDEZVOUS=file:PATH`).
    File(PathBuf),
    /// Rank 0 passes it on at an address (`MASTER_ADDR`, and the port after `MASTER_PORT`).
    Address(String, u16),
}

impl Rendezvous {
    /// Reads the variables.
    pub(crate) fn from_variables(
        process: &ProcessRank,
        has_mpi: bool,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self> {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        if let Some(text) = set("GPUMEM_UNIQUE_ID") {
            return Ok(Self::Given(from_hex(&text)?));
        }
        // Before MPI: the user who sets it has decided how the processes find each other.
        if set("NCCL_COMM_ID").is_some() {
            return Ok(Self::Same);
        }
        if process.is_mpi && has_mpi {
            return Ok(Self::Mpi);
        }
        if let Some(place) = set("GPUMEM_RENDEZVOUS") {
            let path = place.strip_prefix("file:").filter(|path| !path.is_empty());
            let why = "GPUMEM_RENDEZVOUS is not `file:` and a path";
            return path.map(|path| Self::File(path.into())).ok_or_else(|| refused(why, &place));
        }
        if let (Some(address), Some(port)) = (set("MASTER_ADDR"), set("MASTER_PORT")) {
            // The port itself is the one at which torchrun listens.
            let next = port.trim().parse().ok().and_then(|port: u16| port.checked_add(1));
            let next = next.ok_or_else(|| refused("MASTER_PORT is no number of a port", &port))?;
            return Ok(Self::Address(address, next));
        }
        let why = "nothing says how the processes find each other";
        Err(refused(
            why,
            "looked for GPUMEM_UNIQUE_ID, NCCL_COMM_ID, MPI, GPUMEM_RENDEZVOUS, MASTER_ADDR and MASTER_PORT",
        ))
    }

    /// The identity, which `make` makes on rank 0, or on each. Waits for the other ranks, so long at most.
    pub(crate) fn identity(
        &self,
        process: &ProcessRank,
        timeout: Duration,
        make: impl Fn() -> Result<CommunicatorId>,
        by_mpi: impl FnOnce(&mut [u8]) -> Result<()>,
    ) -> Result<CommunicatorId> {
        let is_first = process.rank == 0;
        let until = Deadline::after(timeout);
        match self {
            Self::Given(id) => Ok(*id),
            // On every rank: the library makes the same one of the address. NCCL 2.14 to 2.21 put a random number beside it,
            // and each rank would wait for the others in a communicator of its own.
            Self::Same => {
                let id = make()?;
                if process.size > 1 && make()? != id {
                    let why = "NCCL_COMM_ID gives each rank another identity with this library";
                    return Err(refused(why, "NCCL 2.14 to 2.21 add a random number to the address"));
                }
                Ok(id)
            }
            Self::Mpi => {
                let mut bytes = if is_first { make()?.to_bytes() } else { [0; CommunicatorId::LEN] };
                by_mpi(&mut bytes)?;
                CommunicatorId::from_bytes(&bytes)
            }
            Self::File(path) if is_first => {
                let id = make()?;
                write(path, &id)?;
                Ok(id)
            }
            Self::File(path) => read(path, until),
            Self::Address(address, port) if is_first => {
                let id = make()?;
                let told = |error| cannot_listen(&format!("{address}:{port}"), &error);
                let listener = TcpListener::bind((&**address, *port)).map_err(told)?;
                serve(&listener, &id, process.size, until)?;
                Ok(id)
            }
            Self::Address(address, port) => ask(address, *port, hello(process.rank, process.size), until),
        }
    }
}

fn from_hex(text: &str) -> Result<CommunicatorId> {
    let digits = text.trim().as_bytes();
    let byte = |pair: &[u8]| {
        let pair = std::str::from_utf8(pair).ok().filter(|pair| pair.len() == 2)?;
        u8::from_str_radix(pair, 16).ok()
    };
    let bytes: Option<Vec<u8>> = digits.chunks(2).map(byte).collect();
    let bytes = bytes
        .ok_or_else(|| refused("GPUMEM_UNIQUE_ID is not the bytes of an identity in hexadecimal", text))?;
    CommunicatorId::from_bytes(&bytes)
}

/// Writes the file. One that is there is of another run, or of another group that has the same path.
fn write(path: &Path, id: &CommunicatorId) -> Result<()> {
    let told = |error: io::Error| {
        let why = match error.kind() {
            io::ErrorKind::AlreadyExists => {
                "the file of GPUMEM_RENDEZVOUS is there already: it may be of an earlier run"
            }
            _ => "the file of GPUMEM_RENDEZVOUS cannot be written",
        };
        refused(why, &in_file(path, &error))
    };
    let mut file = File::create_new(path).map_err(told)?;
    file.write_all(&id.to_bytes()).map_err(told)
}

fn read(path: &Path, until: Deadline) -> Result<CommunicatorId> {
    loop {
        match try_read(path) {
            // Else rank 0 is about to write it.
            Ok(bytes) if bytes.len() >= CommunicatorId::LEN || until.is_over() => {
                return CommunicatorId::from_bytes(&bytes);
            }
            Err(error) if !is_missing(&error) || until.is_over() => {
                return Err(refused(
                    "the file of GPUMEM_RENDEZVOUS cannot be read",
                    &error.kind().to_string(),
                ));
            }
            _ => thread::sleep(NAP),
        }
    }
}

/// The bytes of the file, as far as an identity has any: of a longer file one more. A pipe or a device is no regular file, and refused.
fn try_read(path: &Path) -> Result<Vec<u8>> {
    let file = DataFile::open(path)?;
    let longest = CommunicatorId::LEN + 1;
    let mut bytes = vec![0; usize::try_from(file.len()).unwrap_or(longest).min(longest)];
    file.read_at(0, &mut bytes)?;
    Ok(bytes)
}

/// Whether rank 0 has not made the file yet, or has made another one of it meanwhile.
fn is_missing(error: &Error) -> bool {
    let ErrorKind::File(error) = error.kind() else { return false };
    match &error.failure {
        FileFailure::Io { code } => io::Error::from_raw_os_error(*code).kind() == io::ErrorKind::NotFound,
        failure => matches!(failure, FileFailure::Truncated { .. }),
    }
}

fn in_file(path: &Path, error: &io::Error) -> String {
    format!("{}: {error}", path.display())
}

fn refused(why: &'static str, more: &str) -> Error {
    Error::new("", OPERATION, ErrorKind::InvalidArgument { why }).with_hint(more.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn process(rank: usize, size: usize, is_mpi: bool) -> ProcessRank {
        let name = if is_mpi { ["PMI_RANK", "PMI_SIZE"] } else { ["RANK", "WORLD_SIZE"] };
        let value = |asked: &str| {
            let at = name.iter().position(|name| *name == asked)?;
            Some([rank, size][at].to_string())
        };
        ProcessRank::from_variables(&value).unwrap()
    }

    fn chosen(is_mpi: bool, variables: &[(&str, &str)]) -> Result<Rendezvous> {
        let find = |name: &str| {
            variables.iter().find(|(other, _)| *other == name).map(|(_, value)| (*value).to_owned())
        };
        Rendezvous::from_variables(&process(0, 2, is_mpi), true, &find)
    }

    #[test]
    fn the_first_variable_of_the_documented_order_decides() {
        let id = CommunicatorId::new();
        let hex: String = id.to_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
        let mut all = vec![
            ("GPUMEM_UNIQUE_ID", hex.as_str()),
            ("NCCL_COMM_ID", "host:1"),
            ("GPUMEM_RENDEZVOUS", "file:/shared/id"),
            ("MASTER_ADDR", "10.0.0.1"),
            ("MASTER_PORT", "29500"),
        ];
        assert_eq!(chosen(true, &all).unwrap(), Rendezvous::Given(id));
        all.remove(0);
        assert_eq!(chosen(true, &all).unwrap(), Rendezvous::Same);
        all.remove(0);
        assert_eq!(chosen(true, &all).unwrap(), Rendezvous::Mpi);
        assert_eq!(chosen(false, &all).unwrap(), Rendezvous::File("/shared/id".into()));
        all.remove(0);
        assert_eq!(chosen(false, &all).unwrap(), Rendezvous::Address("10.0.0.1".to_owned(), 29501));
        let none = chosen(false, &[]).unwrap_err().to_string();
        assert!(none.contains("GPUMEM_RENDEZVOUS") && none.contains("MASTER_ADDR"), "{none}");
        let wrong: [&[(&str, &str)]; 5] = [
            &[("GPUMEM_UNIQUE_ID", "xy")],
            &[("GPUMEM_UNIQUE_ID", "123")],
            &[("GPUMEM_RENDEZVOUS", "/shared/id")],
            &[("MASTER_ADDR", "a"), ("MASTER_PORT", "65535")],
            &[("MASTER_ADDR", "a"), ("MASTER_PORT", "http")],
        ];
        for wrong in wrong {
            assert!(chosen(false, wrong).is_err(), "{wrong:?}");
        }
    }

    /// What each rank gets, each on a thread of its own.
    fn all(place: &Rendezvous, size: usize, timeout: Duration) -> Vec<Result<CommunicatorId>> {
        thread::scope(|scope| {
            let get = |rank| {
                let make = || Ok(CommunicatorId::new());
                move || place.identity(&process(rank, size, false), timeout, make, |_| Ok(()))
            };
            let ranks: Vec<_> = (0..size).map(|rank| scope.spawn(get(rank))).collect();
            ranks.into_iter().map(|rank| rank.join().unwrap()).collect()
        })
    }

    #[test]
    #[cfg_attr(miri, ignore = "files and connections")]
    fn every_rank_gets_the_identity_of_rank_0() {
        let folder = tempfile::tempdir().unwrap();
        let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let file = Rendezvous::File(folder.path().join("id"));
        for place in [file.clone(), Rendezvous::Address("127.0.0.1".to_owned(), free)] {
            let ids: Vec<CommunicatorId> =
                all(&place, 3, Duration::from_secs(20)).into_iter().collect::<Result<_>>().unwrap();
            assert!(ids.iter().all(|id| *id == ids[0]), "{place:?}");
        }
        let stale =
            file.identity(&process(0, 3, false), Duration::ZERO, || Ok(CommunicatorId::new()), |_| Ok(()));
        assert!(stale.unwrap_err().to_string().contains("earlier run"));
    }

    #[test]
    fn an_address_serves_if_the_library_makes_one_identity_of_it() {
        let get = |size, make: &dyn Fn() -> Result<CommunicatorId>| {
            Rendezvous::Same.identity(&process(0, size, false), Duration::ZERO, make, |_| Ok(()))
        };
        let id = CommunicatorId::new();
        assert_eq!(get(2, &|| Ok(id)).unwrap(), id);
        let another = || Ok(CommunicatorId::new());
        assert!(get(1, &another).is_ok());
        let refused = get(2, &another).unwrap_err();
        assert!(matches!(refused.kind(), ErrorKind::InvalidArgument { .. }), "{refused}");
        assert!(refused.to_string().contains("NCCL_COMM_ID"), "{refused}");
    }

    #[test]
    #[cfg_attr(miri, ignore = "files and connections")]
    fn a_rank_that_does_not_come_is_an_error_in_time() {
        let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let place = Rendezvous::Address("127.0.0.1".to_owned(), free);
        let soon = Duration::from_millis(50);
        let alone =
            |rank| place.identity(&process(rank, 2, false), soon, || Ok(CommunicatorId::new()), |_| Ok(()));
        assert!(alone(0).unwrap_err().to_string().contains("ranks [1]"));
        assert!(alone(1).is_err());
        let file = Rendezvous::File("/nowhere/id".into());
        assert!(all(&file, 2, soon).iter().all(Result::is_err));
    }

    #[test]
    #[cfg(unix)]
    #[cfg_attr(miri, ignore = "files")]
    fn a_pipe_and_a_device_are_refused_and_of_a_long_file_little_is_read() {
        use std::{ffi::CString, os::unix::ffi::OsStrExt};
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        let name = CString::new(pipe.as_os_str().as_bytes()).unwrap();
        // SAFETY: a text that ends with 0.
        assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
        let patient = || Deadline::after(Duration::from_secs(60));
        for path in [&*pipe, Path::new("/dev/zero"), folder.path()] {
            let refused = read(path, patient()).unwrap_err().to_string();
            assert!(refused.contains("no regular file"), "{refused}");
            assert!(refused.contains(&*path.to_string_lossy()), "{refused}");
        }
        let long = folder.path().join("long");
        File::create(&long).unwrap().set_len(1 << 40).unwrap();
        let refused = read(&long, patient()).unwrap_err();
        assert!(matches!(refused.kind(), ErrorKind::InvalidArgument { .. }), "{refused}");
    }

    #[test]
    #[cfg_attr(miri, ignore = "files")]
    fn of_two_groups_with_one_file_only_one_writes_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("id");
        let place = Rendezvous::File(path.clone());
        let first = |id| place.identity(&process(0, 2, false), Duration::ZERO, || Ok(id), |_| Ok(()));
        let (one, other) = (CommunicatorId::new(), CommunicatorId::new());
        // The other group comes meanwhile.
        let late = place.identity(&process(0, 2, false), Duration::ZERO, || first(other), |_| Ok(()));
        assert!(late.unwrap_err().to_string().contains("there already"));
        assert_eq!(read(&path, Deadline::after(Duration::ZERO)).unwrap(), other);
        // A file that is being written.
        fs::write(&path, [0; 7]).unwrap();
        thread::scope(|scope| {
            let waits = scope.spawn(|| read(&path, Deadline::after(Duration::from_secs(60))));
            thread::sleep(NAP);
            fs::write(&path, one.to_bytes()).unwrap();
            assert_eq!(waits.join().unwrap().unwrap(), one);
        });
    }
}
