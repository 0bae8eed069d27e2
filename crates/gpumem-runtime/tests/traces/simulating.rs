//! Whether workloads of others fit into a pool.

use gpumem_host::{Host, HostOptions};
use gpumem_runtime::{
    Device,
    memory::{Pool, PoolOptions},
    trace::{FreeTime, ReplayOptions, Trace},
};
use std::{fmt::Write as _, sync::Arc};

const MIB: usize = 1 << 20;
const GIB: usize = 1 << 30;

fn device(bytes: usize) -> Device<Host> {
    Device::from_raw(Host::open_with(&HostOptions::new().memory(bytes)).unwrap())
}

fn pool(limit: usize) -> PoolOptions {
    PoolOptions::device(256).max_size(limit)
}

/// A log of RMM: actions, each with an address and a size in MiB.
fn log(lines: impl IntoIterator<Item = (&'static str, usize, usize)>) -> Trace {
    let mut text = String::from("Thread,Time,Action,Pointer,Size,Stream\n");
    for (action, pointer, mib) in lines {
        writeln!(text, "1,00:00:00:000000,{action},{pointer:#x},{},0x0", mib * MIB).unwrap();
    }
    Trace::from_rmm_csv(text.as_bytes()).unwrap()
}

/// Ones and threes in turn, of which the threes go, and then a request of 8 MiB that failed.
fn fragmented() -> Trace {
    let fill = (0..8).flat_map(|pair| [("allocate", 2 * pair + 1, 1), ("allocate", 2 * pair + 2, 3)]);
    let free = (0..8).map(|pair| ("free", 2 * pair + 2, 3));
    log(fill.chain(free).chain([("allocate failure", 0, 8)]))
}

#[test]
fn a_request_after_fragmentation_is_served_where_a_piece_for_it_fits() {
    // The first piece has 32 MiB, and is full; then no free part of it has more than 3 MiB. So the 8 MiB need a piece of
    // their own, which fits from 40 MiB on.
    for (limit, fits) in [(39 * MIB, false), (40 * MIB, true)] {
        let verdict = device(GIB).simulate_memory(&fragmented(), pool(limit)).unwrap();
        assert_eq!((verdict.fits(), verdict.retried), (fits, 1), "{verdict}");
        assert_eq!(verdict.report.failures, u64::from(!fits), "{verdict}");
        assert!(verdict.report.peak_reserved <= limit as u64);
        assert_eq!(verdict.report.peak_used as usize, 32 * MIB);
    }
}

/// 2^62 bytes each, which together are more than a trace can count, and have no part of what it counts.
#[test]
fn huge_requests_that_were_refused_are_refused_again_and_take_no_addresses() {
    let trace = log([("allocate failure", 0, 1 << 42); 3].into_iter().chain([("allocate", 1, 1)]));
    let verdict = device(GIB).simulate_memory(&trace, pool(GIB)).unwrap();
    assert_eq!((verdict.fits(), verdict.retried, verdict.report.failures), (false, 3, 3), "{verdict}");
    let snapshot = trace.to_memory_viz();
    assert_eq!(snapshot.matches(r#""action":"oom""#).count(), 3, "{snapshot}");
    assert!(snapshot.contains(r#""action":"alloc","addr":512,"#), "{snapshot}");
}

#[test]
fn a_simulation_reserves_what_a_replay_over_the_same_pool_does() {
    let lines =
        (1..200).map(|at| ("allocate", at, at % 7 + 1)).chain((1..200).map(|at| ("free", at, at % 7 + 1)));
    let trace = log(lines);
    let verdict = device(4 * GIB).simulate_memory(&trace, pool(2 * GIB)).unwrap();
    let device = device(4 * GIB);
    let options = ReplayOptions { threads: false, ..ReplayOptions::default() };
    let report = device
        .replay_memory(&trace, options, |_| Ok(Arc::new(Pool::new(device.driver_memory(), pool(2 * GIB)))))
        .unwrap();
    assert_eq!(verdict.report.peak_reserved, report.peak_reserved);
    assert_eq!(verdict.report.peak_used, report.peak_used);
    assert!(report.peak_reserved >= report.peak_used && verdict.fits());
}

#[test]
fn a_snapshot_of_pytorch_is_simulated_with_both_times_of_its_frees() {
    let entry = |action: &str, at: usize, mib: usize| {
        format!(r#"{{"action": "{action}", "addr": {}, "size": {}, "stream": 0}}"#, at * MIB, mib * MIB)
    };
    // The second block is asked for after the first is given up, and before its last work is done.
    let entries = [
        entry("alloc", 1, 40),
        entry("free_requested", 1, 40),
        entry("alloc", 50, 40),
        entry("free_completed", 1, 40),
    ];
    let json = format!(
        r#"{{"segments": [{{"device": 0, "address": {}, "total_size": {}, "blocks": []}}], "device_traces": [[{}]]}}"#,
        MIB,
        100 * MIB,
        entries.join(",")
    );
    let fits = |free| {
        let trace = Trace::from_torch(json.as_bytes(), free).unwrap();
        device(GIB).simulate_memory(&trace, pool(64 * MIB)).unwrap().fits()
    };
    assert!(fits(FreeTime::Requested));
    assert!(!fits(FreeTime::Completed));
}
