//! Ranks for the tests: with worker threads, and under the adversarial schedule.
#![allow(dead_code, reason = "not every test file uses everything")]

pub(crate) mod failure;
pub(crate) mod launcher;
pub(crate) mod random;

#[allow(unused_imports, reason = "not every test file uses both")]
pub(crate) use failure::{failed, poisoned};

use gpumem_collectives::{CollectiveCause, CollectiveError, Communicator, Options};
use gpumem_host::{Host, HostOptions};
use std::time::Duration;

/// Numbers of ranks.
pub(crate) const COUNTS: &[usize] = &[1, 2, 3, 4, 8];

/// The backend of the tests.
pub(crate) type B = Host;
pub(crate) type Device = gpumem_runtime::Device<Host>;
pub(crate) type Stream = gpumem_runtime::Stream<Host>;
pub(crate) type Comm = Communicator<Host>;

pub(crate) fn concurrent() -> Device {
    Device::from_raw(Host::open_with(&HostOptions::new().memory(256 << 20).workers(2)).unwrap())
}

pub(crate) fn adversarial(seed: u64) -> Device {
    Device::from_raw(Host::open_with(&HostOptions::new().memory(256 << 20).adversarial(seed)).unwrap())
}

/// Devices for so many ranks: all ranks on one, or each on its own.
pub(crate) fn devices(ranks: usize, seed: Option<u64>) -> Vec<Device> {
    match seed {
        None => vec![concurrent(); ranks],
        Some(seed) if seed % 2 == 0 => vec![adversarial(seed); ranks],
        Some(seed) => (0..ranks as u64).map(|rank| adversarial(seed * 100 + rank)).collect(),
    }
}

/// The numbers of ranks of most tests.
pub(crate) fn counts() -> &'static [usize] {
    match launcher::of_this_process() {
        None if cfg!(miri) => &[2],
        None => COUNTS,
        Some(_) => &[3, 4],
    }
}

/// Whether all ranks are in this process.
pub(crate) fn is_in_one_process() -> bool {
    launcher::of_this_process().is_none()
}

/// Whether the ranks are added one after the other: then sums that are rounded are known.
pub(crate) fn adds_in_order() -> bool {
    launcher::of_this_process().is_none()
}

/// The schedules of most tests.
pub(crate) fn seeds(most: u64) -> impl Iterator<Item = Option<u64>> {
    let most = if cfg!(miri) { 2 } else { most };
    std::iter::once(None).chain((0..most).map(Some))
}

/// Ranks with a stream each. Under MPI only the one of this process, if it is one of them.
pub(crate) fn ranks(count: usize, seed: Option<u64>) -> Vec<(Comm, Stream)> {
    ranks_with(count, seed, &Options::new())
}

pub(crate) fn ranks_with(count: usize, seed: Option<u64>, options: &Options) -> Vec<(Comm, Stream)> {
    let devices = devices(count, seed);
    let all = match launcher::of_this_process() {
        Some(place) => Vec::from_iter(launcher::join(&devices[0], count, options, place)),
        None => Communicator::all_with(&devices, options).unwrap(),
    };
    all.into_iter()
        .map(|rank| {
            let stream = rank.device().stream().unwrap();
            (rank, stream)
        })
        .collect()
}

pub(crate) fn soon() -> Options {
    Options::new().timeout(Duration::from_millis(60))
}

/// The ranks that a rank disagrees with.
pub(crate) fn others(failure: &CollectiveError) -> Vec<usize> {
    match &failure.cause {
        CollectiveCause::Mismatch { theirs, .. } => theirs.iter().map(|(rank, _)| *rank).collect(),
        other => panic!("{other} is no disagreement"),
    }
}
