//! Rank 0 listens at an address, and the others ask there.

use super::{NAP, refused};
use crate::{CommunicatorId, deadline::Deadline};
use gpumem_core::{Error, Result};
use std::{
    collections::BTreeSet,
    io::{self, Read, Write},
    net::{TcpListener, TcpStream, ToSocketAddrs as _},
    thread,
    time::Duration,
};

/// How long one connection may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// Most ranks that an error names.
const MOST_NAMED: usize = 16;

/// Gives the identity to every other rank once.
pub(super) fn serve(listener: &TcpListener, id: &CommunicatorId, size: usize, until: Deadline) -> Result<()> {
    let told = |error| cannot_listen(&format!("{:?}", listener.local_addr()), &error);
    // Or a rank that never comes would hold rank 0 beyond its deadline.
    listener.set_nonblocking(true).map_err(told)?;
    let (mut served, mut guests) = (BTreeSet::from([0]), Vec::new());
    while served.len() < size {
        if until.is_over() {
            let missing: Vec<usize> =
                (0..size).filter(|rank| !served.contains(rank)).take(MOST_NAMED).collect();
            return Err(refused(
                "some ranks did not ask for the identity in time",
                &format!("ranks {missing:?}"),
            ));
        }
        match listener.accept() {
            Ok((connection, _)) => guests.extend(Guest::new(connection).ok()),
            Err(error)
                if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::ConnectionAborted) =>
            {
                thread::sleep(NAP);
            }
            Err(error) => return Err(told(error)),
        }
        // All in turn: one that is slow, or is no rank, holds no other.
        guests.retain_mut(|guest| match guest.go_on(id, size) {
            Ok(None) => !guest.until.is_over(),
            Ok(Some(rank)) => {
                served.insert(rank);
                false
            }
            Err(_) => false,
        });
    }
    Ok(())
}

pub(super) fn cannot_listen(address: &str, error: &io::Error) -> Error {
    refused("rank 0 cannot listen at MASTER_ADDR", &format!("{address}: {error}"))
}

/// What a rank says first: its number, and how many ranks there are.
pub(super) type Hello = [u8; 16];

pub(super) fn hello(rank: usize, size: usize) -> Hello {
    (rank as u128 | (size as u128) << 64).to_le_bytes()
}

/// A connection to rank 0.
struct Guest {
    connection: TcpStream,
    said: Hello,
    /// Bytes of it that have come.
    came: usize,
    until: Deadline,
}

impl Guest {
    fn new(connection: TcpStream) -> io::Result<Self> {
        connection.set_nonblocking(true)?;
        Ok(Self { connection, said: Hello::default(), came: 0, until: Deadline::after(PATIENCE) })
    }

    /// Goes on with what has come. Returns the rank once it says that it has the identity: it may have stopped waiting, and bytes
    /// that were sent may be lost with the connection.
    fn go_on(&mut self, id: &CommunicatorId, size: usize) -> io::Result<Option<usize>> {
        let mut end = [0];
        loop {
            let rest = self.said.get_mut(self.came..).filter(|rest| !rest.is_empty());
            let is_known = rest.is_none();
            match self.connection.read(rest.unwrap_or(&mut end)) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(_) if is_known => return Ok(self.rank(size)),
                Ok(bytes) => self.came += bytes,
                Err(error)
                    if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) =>
                {
                    return Ok(None);
                }
                Err(error) => return Err(error),
            }
            if self.came == self.said.len() {
                // Of another group, or something else.
                self.rank(size).ok_or(io::ErrorKind::InvalidData)?;
                self.connection.write_all(&id.to_bytes())?;
            }
        }
    }

    /// The rank, of so many.
    fn rank(&self, size: usize) -> Option<usize> {
        let [rank, ranks] =
            [0, 64].map(|shift| usize::try_from((u128::from_le_bytes(self.said) >> shift) as u64));
        rank.ok().filter(|rank| *rank < size && ranks == Ok(size))
    }
}

/// How long one connection may take before a deadline.
fn patience(until: Deadline) -> Duration {
    // Zero would mean for ever.
    until.rest().map_or(PATIENCE, |rest| rest.clamp(NAP, PATIENCE))
}

/// Connects to the first address that answers, before a deadline.
fn connect(address: &str, port: u16, until: Deadline) -> io::Result<TcpStream> {
    let mut failure = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for found in (address, port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&found, patience(until)) {
            Ok(connection) => return Ok(connection),
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

/// Reads as many bytes as there is room for, however they come.
fn read_until(connection: &mut TcpStream, mut room: &mut [u8], until: Deadline) -> io::Result<()> {
    while !room.is_empty() {
        // Each read takes a part of the time.
        let rest = until.rest().filter(|rest| !rest.is_zero()).ok_or(io::ErrorKind::TimedOut)?;
        connection.set_read_timeout(Some(rest))?;
        match connection.read(room)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            bytes => room = &mut room[bytes..],
        }
    }
    Ok(())
}

pub(super) fn ask(address: &str, port: u16, hello: Hello, until: Deadline) -> Result<CommunicatorId> {
    let fetch = || -> io::Result<[u8; CommunicatorId::LEN]> {
        let mut connection = connect(address, port, until)?;
        connection.write_all(&hello)?;
        let mut bytes = [0; CommunicatorId::LEN];
        read_until(&mut connection, &mut bytes, Deadline::after(patience(until)))?;
        connection.write_all(&[1])?;
        Ok(bytes)
    };
    loop {
        match fetch() {
            Ok(bytes) => return CommunicatorId::from_bytes(&bytes),
            Err(_) if !until.is_over() => thread::sleep(NAP),
            Err(error) => {
                let why = "rank 0 did not answer at MASTER_ADDR, at the port after MASTER_PORT";
                return Err(refused(why, &format!("{address}:{port}: {error}")));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listen() -> (TcpListener, u16) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        (listener, port)
    }

    #[test]
    #[cfg_attr(miri, ignore = "connections")]
    fn a_rank_that_has_stopped_waiting_may_ask_again() {
        let (listener, port) = listen();
        let until = || Deadline::after(Duration::from_secs(20));
        thread::scope(|scope| {
            let id = CommunicatorId::new();
            let first = scope.spawn(move || serve(&listener, &id, 2, until()));
            let mut gone = TcpStream::connect(("127.0.0.1", port)).unwrap();
            gone.write_all(&hello(1, 2)).unwrap();
            drop(gone);
            // One of a group of another size, with the same address.
            let soon = Deadline::after(Duration::from_millis(50));
            assert!(ask("127.0.0.1", port, hello(1, 3), soon).is_err());
            assert_eq!(ask("127.0.0.1", port, hello(1, 2), until()).unwrap(), id);
            first.join().unwrap().unwrap();
        });
    }

    #[test]
    #[cfg_attr(miri, ignore = "connections")]
    fn connections_of_others_do_not_hold_rank_0_beyond_its_deadline() {
        let ((listener, port), began) = (listen(), std::time::Instant::now());
        // It waits to be accepted.
        let _silent = TcpStream::connect(("127.0.0.1", port)).unwrap();
        thread::scope(|scope| {
            let until = Deadline::after(Duration::from_secs(1));
            let served = scope.spawn(move || serve(&listener, &CommunicatorId::new(), usize::MAX, until));
            let error = served.join().unwrap().unwrap_err().to_string();
            assert!(error.contains("ranks [1, 2, 3"), "{error}");
        });
        assert!(began.elapsed() < PATIENCE);
    }

    #[test]
    #[cfg_attr(miri, ignore = "connections")]
    fn connections_that_are_slow_hold_no_rank() {
        let (listener, port) = listen();
        let until = || Deadline::after(Duration::from_secs(60));
        let connect = || TcpStream::connect(("127.0.0.1", port)).unwrap();
        // Together they are silent for longer than the deadline.
        let _silent: Vec<TcpStream> = (0..20).map(|_| connect()).collect();
        thread::scope(|scope| {
            let id = CommunicatorId::new();
            let first = scope.spawn(move || serve(&listener, &id, 2, until()));
            assert_eq!(ask("127.0.0.1", port, hello(1, 2), until()).unwrap(), id);
            first.join().unwrap().unwrap();
        });
    }

    /// Each byte comes soon, and the last one long after the deadline.
    #[test]
    #[cfg_attr(miri, ignore = "connections")]
    fn bytes_that_trickle_end_at_the_deadline() {
        fn trickle(mut connection: TcpStream, bytes: &[u8]) {
            for byte in bytes {
                if connection.write_all(&[*byte]).is_err() {
                    return;
                }
                thread::sleep(Duration::from_millis(30));
            }
            let _ = connection.read(&mut [0; CommunicatorId::LEN]).and_then(|_| connection.write_all(&[1]));
        }
        let (id, soon) = (CommunicatorId::new(), || Deadline::after(Duration::from_millis(100)));
        thread::scope(|scope| {
            let (listener, port) = listen();
            scope.spawn(move || trickle(TcpStream::connect(("127.0.0.1", port)).unwrap(), &hello(1, 2)));
            assert!(serve(&listener, &id, 2, soon()).is_err());
            let (listener, port) = listen();
            scope.spawn(move || trickle(listener.accept().unwrap().0, &id.to_bytes()));
            assert!(ask("127.0.0.1", port, hello(1, 2), soon()).is_err());
        });
    }
}
