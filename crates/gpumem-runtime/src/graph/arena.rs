//! Where the temporaries of a graph lie: those whose lives do not meet share bytes.

use std::ops::RangeInclusive;

/// A temporary: its bytes, and the first and the last step that uses it.
#[derive(Debug, Clone)]
pub(super) struct Temporary {
    pub(super) bytes: usize,
    pub(super) lives: RangeInclusive<usize>,
}

/// Where each temporary begins, at a multiple of `align`, and the bytes of all. `None` if they do not fit into the address space.
///
/// The largest comes first, and each into the lowest gap that is large enough among those that live at the same time.
pub(super) fn plan(temporaries: &[Temporary], align: usize) -> Option<(Vec<usize>, usize)> {
    let mut order: Vec<usize> = (0..temporaries.len()).collect();
    order.sort_by_key(|at| std::cmp::Reverse(temporaries[*at].bytes));
    let (mut starts, mut total): (Vec<Option<usize>>, _) = (vec![None; temporaries.len()], 0);
    for at in order {
        let own = &temporaries[at];
        let beside = |(other, start): (&Temporary, &Option<usize>)| {
            let is_beside = other.lives.start() <= own.lives.end() && own.lives.start() <= other.lives.end();
            start.filter(|_| is_beside).map(|start| (start, start + other.bytes))
        };
        let mut taken: Vec<(usize, usize)> = temporaries.iter().zip(&starts).filter_map(beside).collect();
        taken.sort_unstable();
        let mut start = 0_usize;
        for (from, to) in taken {
            if start.checked_add(own.bytes)? <= from {
                break;
            }
            start = start.max(to.checked_next_multiple_of(align)?);
        }
        starts[at] = Some(start);
        total = total.max(start.checked_add(own.bytes)?);
    }
    Some((starts.into_iter().flatten().collect(), total))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn temporary(bytes: usize, lives: RangeInclusive<usize>) -> Temporary {
        Temporary { bytes, lives }
    }

    #[test]
    fn temporaries_in_turn_share_bytes() {
        let in_turn = [temporary(64, 0..=1), temporary(64, 2..=3), temporary(64, 4..=4)];
        assert_eq!(plan(&in_turn, 16), Some((vec![0, 0, 0], 64)));
        // Each is read by the step that writes the next one.
        let chain = [temporary(64, 0..=1), temporary(64, 1..=2), temporary(64, 2..=3)];
        assert_eq!(plan(&chain, 16), Some((vec![0, 64, 0], 128)));
        assert_eq!(plan(&[temporary(usize::MAX, 0..=1), temporary(8, 1..=1)], 16), None);
    }

    fn temporaries() -> impl Strategy<Value = Vec<Temporary>> {
        let one = (1..1000_usize, 0..20_usize, 0..8_usize);
        let make = |(bytes, first, length)| temporary(bytes, first..=first + length);
        prop::collection::vec(one.prop_map(make), 0..24)
    }

    proptest! {
        // Miri has no folder to keep failures in.
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(if cfg!(miri) { 4 } else { 256 }) })]
        #[test]
        fn live_temporaries_share_no_byte(all in temporaries()) {
            let (starts, total) = plan(&all, 16).unwrap();
            prop_assert_eq!(starts.len(), all.len());
            let mut most = 0;
            for step in 0..30 {
                let mut live: Vec<_> = all.iter().zip(&starts).filter(|(one, _)| one.lives.contains(&step)).collect();
                live.sort_by_key(|(_, start)| **start);
                for pair in live.windows(2) {
                    prop_assert!(pair[0].1 + pair[0].0.bytes <= *pair[1].1);
                }
                most = most.max(live.iter().map(|(one, _)| one.bytes.next_multiple_of(16)).sum());
            }
            for (one, start) in all.iter().zip(&starts) {
                prop_assert!(start + one.bytes <= total && start.is_multiple_of(16));
            }
            // Bytes are never more than those of all temporaries, and those of the largest set are needed.
            prop_assert!(total <= all.iter().map(|one| one.bytes.next_multiple_of(16)).sum());
            prop_assert!(total + 16 * all.len() >= most);
        }
    }
}
