//! The identity by which ranks find each other.

use gpumem_core::{Error, ErrorKind, Result};
use std::{
    fmt, process,
    sync::atomic::{AtomicU64, Ordering},
};

/// Bytes of an identity: a mark, the version, the engine's number, and what the engine keeps.
const BYTES: usize = 136;
/// Where the bytes of the engine begin.
const PAYLOAD: usize = 8;
const MAGIC: [u8; 4] = *b"gmid";
const VERSION: u8 = 1;

/// An engine. The number is the one in identities.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum EngineKind {
    /// Ranks of one process.
    Local = 1,
    /// NVIDIA's NCCL.
    Nccl = 2,
    /// AMD's RCCL.
    Rccl = 3,
    /// Processes of MPI.
    Mpi = 4,
}

impl EngineKind {
    const ALL: [Self; 4] = [Self::Local, Self::Nccl, Self::Rccl, Self::Mpi];

    /// The engine of a number in an identity.
    pub(crate) fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as u8 == number)
    }
}

/// A hash that is the same in every build of the library: processes compare it (FNV-1a, 64 bits). Those of the standard
/// library may differ between compilers.
pub(crate) fn stable_hash(bytes: impl IntoIterator<Item = u8>) -> u64 {
    bytes
        .into_iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Names a communicator, so that ranks can [join](crate::Communicator::join) it. One rank makes it and passes it to
/// the others. Each communicator needs an identity of its own.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct CommunicatorId([u8; BYTES]);

impl CommunicatorId {
    /// Number of bytes of [`to_bytes`](Self::to_bytes).
    pub const LEN: usize = BYTES;

    /// Makes an identity that no other communicator of the process has, for ranks of this process.
    pub fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let mut payload = [0; BYTES - PAYLOAD];
        payload[..8].copy_from_slice(&u64::from(process::id()).to_le_bytes());
        // Relaxed: the numbers only have to differ.
        payload[8..16].copy_from_slice(&NEXT.fetch_add(1, Ordering::Relaxed).to_le_bytes());
        Self::of(EngineKind::Local, &payload)
    }

    /// Returns the identity of the processes that MPI's launcher (`mpiexec`) has started, for devices of the host. It is the
    /// same one in each of them. [`join`](crate::Communicator::join) then waits for all of them; each rank joins as often
    /// as the others, and each time gets a communicator of its own.
    pub fn mpi() -> Self {
        Self::of(EngineKind::Mpi, &[0; BYTES - PAYLOAD])
    }

    /// An identity of an engine.
    pub(crate) fn of(kind: EngineKind, payload: &[u8; BYTES - PAYLOAD]) -> Self {
        let mut bytes = [0; BYTES];
        bytes[..4].copy_from_slice(&MAGIC);
        bytes[4] = VERSION;
        bytes[5] = kind as u8;
        bytes[PAYLOAD..].copy_from_slice(payload);
        Self(bytes)
    }

    /// The engine that it is for, if this version has it.
    pub(crate) fn kind(&self) -> Option<EngineKind> {
        EngineKind::from_number(self.0[5])
    }

    /// The bytes that its engine keeps in it.
    pub(crate) fn payload(&self) -> [u8; BYTES - PAYLOAD] {
        let mut payload = [0; BYTES - PAYLOAD];
        payload.copy_from_slice(&self.0[PAYLOAD..]);
        payload
    }

    /// Returns the identity as bytes.
    pub fn to_bytes(&self) -> [u8; BYTES] {
        self.0
    }

    /// Reads the bytes of [`to_bytes`](Self::to_bytes).
    ///
    /// # Errors
    /// Returns [`InvalidArgument`](ErrorKind::InvalidArgument) for bytes of another length, version or origin.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let refused =
            |why| Err(Error::new("", "CommunicatorId::from_bytes", ErrorKind::InvalidArgument { why }));
        let Ok(bytes) = <[u8; BYTES]>::try_from(bytes) else {
            return refused("an identity of a communicator has 136 bytes");
        };
        if bytes[..4] != MAGIC {
            return refused("the bytes are no identity of a communicator");
        }
        if bytes[4] != VERSION {
            return refused("the identity was made by another version of gpumem");
        }
        Ok(Self(bytes))
    }

    /// The number of the communicator in this process.
    pub(crate) fn local(&self) -> Result<u64> {
        let refused = |why| Err(Error::new("", "join", ErrorKind::InvalidArgument { why }));
        let number = |at: usize| {
            let mut bytes = [0; 8];
            bytes.copy_from_slice(&self.0[at..at + 8]);
            u64::from_le_bytes(bytes)
        };
        if number(PAYLOAD) != u64::from(process::id()) {
            return refused(
                "the identity was made in another process, and these devices only reach ranks of their own",
            );
        }
        Ok(number(PAYLOAD + 8))
    }
}

impl Default for CommunicatorId {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for CommunicatorId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CommunicatorId")
            .field(&self.kind())
            .field(&self.0[PAYLOAD..24].escape_ascii().to_string())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Other processes have the same numbers.
    #[test]
    fn the_hash_is_that_of_its_definition() {
        assert_eq!(stable_hash([]), 0xcbf2_9ce4_8422_2325);
        assert_eq!(stable_hash(*b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(stable_hash(*b"foobar"), 0x8594_4171_f739_67e8);
    }
}
