//! What ranks tell each other about themselves: small messages beside the operations.

use crate::fingerprint::cut;
use std::ffi::c_int;

/// Bytes of a message.
pub(crate) const BYTES: usize = 256;
/// Bytes before the text.
const HEAD: usize = 56;

/// What has happened to a rank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Event {
    /// Its communicator was dropped. What it has called goes on, and may still fail.
    Left,
    /// The same, and nothing of it is under way: it tells nothing more.
    Ended,
    /// An operation of it has waited too long.
    Late,
    /// It aborted the communicator.
    Aborted,
    /// It cannot take part in an operation that it has called.
    Lost(String),
}

/// How far a rank has come, and what has happened to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PeerStatus {
    pub(crate) event: Event,
    /// Operations of all ranks that it has called.
    pub(crate) collectives: u64,
    /// The number of the oldest of them that is not over.
    pub(crate) pending: u64,
    /// The number of the oldest of them that its stream has not come to.
    pub(crate) waiting: u64,
    /// Sends to the rank that is told, and receives from it.
    pub(crate) sends: u64,
    pub(crate) receives: u64,
}

impl PeerStatus {
    pub(crate) fn to_bytes(&self) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        let (number, text) = match &self.event {
            Event::Left => (1, ""),
            Event::Late => (2, ""),
            Event::Aborted => (3, ""),
            Event::Lost(why) => (4, why.as_str()),
            Event::Ended => (5, ""),
        };
        let text = cut(text, BYTES - HEAD);
        let Self { collectives, pending, waiting, sends, receives, .. } = *self;
        let numbers = [number, collectives, pending, waiting, sends, receives, text.len() as u64];
        for (place, number) in bytes.chunks_exact_mut(8).zip(numbers) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        bytes[HEAD..HEAD + text.len()].copy_from_slice(text.as_bytes());
        bytes
    }

    /// Reads a message, if it is one.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let number = |at: usize| Some(u64::from_le_bytes(bytes.get(8 * at..8 * at + 8)?.try_into().ok()?));
        let event = match number(0)? {
            1 => Event::Left,
            2 => Event::Late,
            3 => Event::Aborted,
            4 => {
                let end = HEAD.checked_add(usize::try_from(number(6)?).ok()?)?;
                Event::Lost(String::from_utf8_lossy(bytes.get(HEAD..end)?).into_owned())
            }
            5 => Event::Ended,
            // Of another version of this library, perhaps: what is not understood changes nothing.
            _ => return None,
        };
        Some(Self {
            event,
            collectives: number(1)?,
            pending: number(2)?,
            waiting: number(3)?,
            sends: number(4)?,
            receives: number(5)?,
        })
    }
}

impl Event {
    /// Whether the rank calls nothing more.
    pub(crate) fn is_left(&self) -> bool {
        matches!(self, Self::Left | Self::Ended)
    }
}

/// The rank that a status names.
pub(crate) fn rank(source: c_int, size: usize) -> Option<usize> {
    usize::try_from(source).ok().filter(|rank| *rank < size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_read_as_they_were_written() {
        let long = "ä".repeat(300);
        let events = [
            Event::Left,
            Event::Late,
            Event::Aborted,
            Event::Ended,
            Event::Lost("why".to_owned()),
            Event::Lost(long),
        ];
        for event in events {
            let status =
                PeerStatus { event, collectives: 1, pending: u64::MAX, waiting: 2, sends: 3, receives: 4 };
            let read = PeerStatus::from_bytes(&status.to_bytes()).unwrap();
            match (&read.event, &status.event) {
                (Event::Lost(read), Event::Lost(written)) => {
                    assert!(written.starts_with(read) && read.len() > 2)
                }
                (read, written) => assert_eq!(read, written),
            }
            assert_eq!((read.collectives, read.pending, read.waiting), (1, u64::MAX, 2));
            assert_eq!((read.sends, read.receives), (3, 4));
        }
        assert_eq!(PeerStatus::from_bytes(&[0; BYTES]), None);
        assert_eq!(PeerStatus::from_bytes(&[1, 0, 0]), None);
        let mut lying = [0xff; BYTES];
        lying[..8].copy_from_slice(&4_u64.to_le_bytes());
        assert_eq!(PeerStatus::from_bytes(&lying), None);
    }
}
