//! Random calls, with random tables of rows: where the ranks agree, each gets exactly what an oracle says; where one of them calls
//! something else, every rank gets a typed error and nothing has been written.
//!
//! `GPUMEM_TABLES` sets their number, `GPUMEM_SEED` the first seed.

#[path = "tables/case.rs"]
mod case;
#[path = "tables/rank.rs"]
mod rank;

use crate::common::{random::Random, *};
use case::{Case, What, Wrong};
use gpumem_collectives::{CollectiveCause, CollectiveState, Options};
use gpumem_core::ErrorKind;
use std::time::Duration;

/// Whether a rank has a part in the operation: pairs are ranks 0 and 1.
fn takes_part(case: &Case, rank: usize) -> bool {
    case.what != What::Pair || rank < 2
}

fn run(ranks: &[(Comm, Stream)], seed: u64) {
    let size = ranks[0].0.size();
    let mut random = Random(seed);
    let case = Case::random(&mut random, size);
    let told = || format!("seed {seed}: {case:?}");
    let mut under_way = Vec::new();
    for at in random.order(ranks.len()) {
        let (comm, stream) = &ranks[at];
        if !takes_part(&case, comm.rank()) {
            continue;
        }
        if let Some((wrong, Wrong::OwnRows)) = case.wrong
            && wrong == comm.rank()
        {
            // Refused at the call: the other ranks hear of nothing, and the rank calls again.
            let refused = rank::call(&case.of_rank(wrong), comm, stream);
            let kind = refused.called.as_ref().map_err(gpumem_core::Error::kind);
            assert!(matches!(kind, Err(ErrorKind::InvalidArgument { .. })), "{kind:?}, {}", told());
            stream.synchronize().unwrap();
            refused.held.is_untouched(&told());
        }
        under_way.push((comm, stream, rank::call(&case.called(comm.rank()), comm, stream)));
    }
    for (comm, stream, rank::Called { called, held }) in under_way {
        let waited = stream.synchronize();
        let ended = called.and(waited);
        if case.agrees() {
            ended.unwrap_or_else(|error| panic!("{error}, {}", told()));
            held.is(case.expected(comm.rank()), &told());
        } else {
            let told = format!("rank {}, {}", comm.rank(), told());
            // With a strided destination, the copy that was to follow may fail first.
            let kind = ended.as_ref().map_err(gpumem_core::Error::kind);
            let is_typed = |kind: &ErrorKind| {
                let of_copy =
                    matches!(kind, ErrorKind::Poisoned { .. } | ErrorKind::AsynchronousFault { .. });
                of_copy || matches!(kind, ErrorKind::Collective(_))
            };
            assert!(kind.is_err_and(is_typed), "{kind:?}, {told}");
            let state = comm.recent().last().map(|last| last.state);
            assert_eq!(state, Some(CollectiveState::Failed), "{told}");
            let cause = comm.failure().unwrap().cause;
            assert!(matches!(cause, CollectiveCause::Mismatch { .. }), "{cause}, {told}");
            held.is_untouched(&told);
        }
    }
}

#[test]
fn random_calls_give_what_an_oracle_says_or_an_error_on_every_rank() {
    let number = |name: &str, default| std::env::var(name).map_or(default, |text| text.parse().unwrap());
    let first = number("GPUMEM_SEED", 1);
    let of_process = if launcher::of_this_process().is_some() { 60 } else { 250 };
    let count = number("GPUMEM_TABLES", if cfg!(miri) { 4 } else { of_process });
    let options = Options::new().timeout(Duration::from_secs(60));
    for size in counts().iter().copied().filter(|size| *size <= 4) {
        for devices in seeds(2) {
            let ranks = ranks_with(size, devices, &options);
            if !ranks.is_empty() {
                (first..first + count).for_each(|seed| run(&ranks, seed * 8 + size as u64));
            }
        }
    }
}
