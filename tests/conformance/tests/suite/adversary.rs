//! The whole suite under the adversarial schedule, and the fault that the schedule must bring to light.

use crate::alone;
use gpumem_conformance::{RanOn, Report, Selection, Suite};
use gpumem_host::{Host, HostOptions};
use gpumem_runtime::Device;
use host_double::{ThirdParty, ThirdPartyDevice};
use std::time::Duration;

/// Seeds of a run; `GPUMEM_SEEDS` asks for more.
fn seeds(few: u64) -> std::ops::Range<u64> {
    0..std::env::var("GPUMEM_SEEDS").map_or(few, |text| text.parse().expect("GPUMEM_SEEDS is a number"))
}

fn open(seed: u64) -> gpumem_core::Result<Device<Host>> {
    Host::open_with(&HostOptions::new().adversarial(seed)).map(Device::from_raw)
}

/// The suite on the test double: a new device for every case, so that the schedule of a case depends only on its seed.
fn on_double(is_ordered: bool, seed: u64, filters: &[&str]) -> Report {
    let open = move || -> gpumem_core::Result<_> {
        let device = ThirdPartyDevice::adversarial(seed)?;
        Ok(Device::from_raw(if is_ordered { device } else { device.unordered() }))
    };
    let selection = Selection {
        filters: filters.iter().map(|filter| (*filter).to_owned()).collect(),
        ..Selection::default()
    };
    Suite::<ThirdParty>::new("double", RanOn::Host)
        .open_with(move |_| open())
        .second_device(move |_| open().ok())
        .delay(Duration::ZERO)
        .run(&selection, |_, _| {})
}

#[test]
fn every_case_holds_under_every_schedule() {
    let _alone = alone();
    for seed in seeds(1) {
        let report = Suite::<Host>::new("host", RanOn::Host)
            .open_with(move |_| open(seed))
            .second_device(move |_| open(seed + 1).ok())
            .delay(Duration::ZERO)
            .run(&Selection::default(), |_, _| {});
        assert_eq!(report.failures, [""; 0], "seed {seed}");
        assert!(report.passed > 90, "seed {seed}: {} cases", report.passed);
    }
}

/// A device that stages the caller's memory, and whose copies read their source as late as is legal.
#[test]
fn every_case_holds_where_memory_is_staged() {
    let _alone = alone();
    let is_late = |seed: &u64| {
        let raw = ThirdPartyDevice::staging(*seed).expect("a device");
        let device = Device::<ThirdParty>::from_raw(raw.clone());
        let stream = device.stream().expect("a stream");
        for _ in 0..4 {
            drop(stream.to_device(&[1_u32; 1000]).expect("an upload"));
        }
        raw.is_late()
    };
    let late: Vec<u64> = (0..100).filter(is_late).collect();
    let levels = [
        "02_allocate",
        "03_copy",
        "05_stream",
        "06_pinned",
        "14_graphs",
        "15_files",
        "16_chunks",
        "17_spill",
    ]
    .map(str::to_owned)
    .to_vec();
    // By night also seeds whose copies are early.
    for seed in seeds(1).map(|at| late[at as usize % late.len()]).chain(seeds(0)) {
        let report = Suite::<ThirdParty>::new("double", RanOn::Host)
            .open_with(move |_| ThirdPartyDevice::staging(seed).map(Device::from_raw))
            .delay(Duration::ZERO)
            .run(&Selection { filters: levels.clone(), ..Selection::default() }, |_, _| {});
        assert_eq!(report.failures, [""; 0], "seed {seed}");
        assert!(report.passed > 50, "seed {seed}: {} cases", report.passed);
    }
}

/// Cases that stand or fall by the order of streams, and that use no thread: their schedule is the seed's alone.
const ORDER: [&str; 7] = [
    "reading_waits_for_a_late_writer",
    "writing_waits_for_a_late_reader",
    "writing_waits_for_a_late_writer",
    "views_are_ordered_by_their_memory",
    "what_was_waited_for_is_remembered",
    "a_dropped_stream_is_still_waited_for",
    "copies_between_devices_are_ordered",
];

#[test]
fn a_backend_that_does_not_wait_is_found_and_replayed() {
    let _alone = alone();
    let found =
        seeds(20).map(|seed| (seed, on_double(false, seed, &ORDER))).find(|(_, report)| report.failed > 0);
    let (seed, report) = found.expect("no seed shows that streams do not wait");
    println!("seed {seed} shows it:\n  {}", report.failures.join("\n  "));
    for _ in 0..3 {
        assert_eq!(on_double(false, seed, &ORDER).failures, report.failures, "seed {seed} replays");
    }
    assert_eq!(on_double(true, seed, &ORDER).failures, [""; 0], "with waits, seed {seed} is fine");
}

#[test]
fn the_whole_suite_finds_the_fault_in_few_seeds() {
    let _alone = alone();
    let shown =
        (0..5).filter(|seed| on_double(false, *seed, &["05_stream", "10_devices"]).failed > 0).count();
    assert!(shown >= 3, "only {shown} of 5 seeds show it");
}
