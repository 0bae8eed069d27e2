//! What a rank says in a split.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SplitKey {
    /// The part that the rank goes to, if it goes to one.
    pub(crate) colour: Option<u64>,
    /// Its place in the order there.
    pub(crate) key: i64,
}

impl SplitKey {
    /// Number of bytes.
    const LEN: usize = 24;

    pub(crate) fn to_bytes(self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        bytes[0] = u8::from(self.colour.is_some());
        bytes[8..16].copy_from_slice(&self.colour.unwrap_or_default().to_le_bytes());
        bytes[16..].copy_from_slice(&self.key.to_le_bytes());
        bytes
    }

    /// The ranks of this rank's part, in their order there, from the bytes of all.
    pub(crate) fn part(self, all: &[u8]) -> Option<Vec<usize>> {
        self.colour?;
        let own = self.to_bytes();
        let said = all.as_chunks::<{ Self::LEN }>().0.iter().enumerate();
        let mut part: Vec<(i64, usize)> = said
            .filter(|(_, bytes)| bytes[..16] == own[..16])
            .filter_map(|(rank, bytes)| Some((i64::from_le_bytes(*bytes.last_chunk()?), rank)))
            .collect();
        // By key, then by rank: alike on every rank, so all agree who is which.
        part.sort_unstable();
        Some(part.into_iter().map(|(_, rank)| rank).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_of_one_colour_are_ordered_by_key_and_rank() {
        let say = |colour, key| SplitKey { colour, key };
        let all = [say(Some(1), 5), say(Some(0), 0), say(None, 0), say(Some(1), -3), say(Some(1), 5)];
        let bytes: Vec<u8> = all.into_iter().flat_map(SplitKey::to_bytes).collect();
        assert_eq!(all[0].part(&bytes), Some(vec![3, 0, 4]));
        assert_eq!(all[1].part(&bytes), Some(vec![1]));
        assert_eq!(all[2].part(&bytes), None);
    }
}
