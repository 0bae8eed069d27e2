//! Files of traces that were changed at random: each is refused with a reason, or can be used in every way.

use gpumem::trace::{RecorderOptions, ReplayOptions, Trace};
use gpumem_host::{Host, HostOptions};
use gpumem_runtime::Device;
use std::{env, thread};

struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end.max(1)
    }
}

fn device() -> Device<Host> {
    Device::from_raw(Host::open_with(&HostOptions::new().memory(64 << 20)).unwrap())
}

/// Memory of several kinds, of two threads and of two streams.
fn recorded() -> String {
    let device = device();
    let recording = device.record_memory(RecorderOptions::default()).unwrap();
    let (one, two) = (device.stream().unwrap(), device.stream().unwrap());
    let mut array = one.to_device(&[1_u32; 500]).unwrap();
    let pinned = two.copy_to_host(&array).unwrap();
    thread::scope(|scope| {
        scope.spawn(|| drop(device.device_array::<u8, _>(5000).unwrap()));
    });
    two.fill(&mut array, 3).unwrap();
    drop((pinned, device.managed_array::<u8, _>(70_usize, gpumem::Attach::Global).unwrap()));
    one.synchronize().unwrap();
    recording.finish().to_json()
}

/// Words that take the place of others.
const WORDS: &[&str] = &[
    "0",
    "1",
    "2",
    "-1",
    "63",
    "255",
    "4294967295",
    "4294967296",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551615",
    "1e30",
    "null",
    "true",
    "[]",
    "{}",
    "\"\"",
    "\"device\"",
    "\"free\"",
    "\"use\"",
    "\"wait\"",
];

/// The places of numbers and words in the text.
fn places(text: &str) -> Vec<(usize, usize)> {
    let (mut found, mut start) = (Vec::new(), None);
    for (at, byte) in text.bytes().enumerate() {
        let is_inside = byte.is_ascii_alphanumeric() || byte == b'"' || byte == b'-';
        match (start, is_inside) {
            (None, true) => start = Some(at),
            (Some(from), false) => {
                found.push((from, at));
                start = None;
            }
            _ => {}
        }
    }
    found
}

fn change(text: &str, random: &mut Random) -> String {
    let mut text = text.to_owned();
    for _ in 0..=random.below(2) {
        let places = places(&text);
        let (from, to) = places[random.below(places.len())];
        match random.below(12) {
            0 => {
                // One event or entry again, or away.
                let Some(begin) = text[..from].rfind('{') else { continue };
                let Some(end) = text[from..].find('}').map(|end| from + end + 1) else { continue };
                let object = text[begin..end].to_owned();
                let again = if random.below(2) == 0 { String::new() } else { format!("{object},{object}") };
                text.replace_range(begin..end, &again);
            }
            1 => text.truncate(from),
            2 => text.insert_str(from, &"[".repeat(random.below(1000))),
            _ => text.replace_range(from..to, WORDS[random.below(WORDS.len())]),
        }
        if text.len() < 10 {
            break;
        }
    }
    text
}

#[test]
fn a_changed_trace_is_refused_or_can_be_used() {
    let rounds = env::var("GPUMEM_ROUNDS").map_or(1500, |text| text.parse().unwrap());
    let (text, device) = (recorded(), device());
    let (mut taken, mut refused) = (0, 0);
    for seed in 0..rounds {
        let text = change(&text, &mut Random(seed));
        let Ok(trace) = Trace::from_json(&text).map_err(|error| assert!(!error.to_string().is_empty()))
        else {
            refused += 1;
            continue;
        };
        taken += 1;
        assert_eq!(Trace::from_json(&trace.to_json()).unwrap(), trace, "seed {seed}");
        let _ = (trace.peaks(), trace.usage(), trace.to_perfetto());
        let _ = trace.clone().merge(trace.clone()).check();
        let options = ReplayOptions { work: 100, threads: seed % 2 == 0, ..ReplayOptions::default() };
        let report = device.replay_memory(&trace, options, |kind| device.memory_resource(kind)).unwrap();
        assert_eq!(report.refused, 0, "seed {seed}: {report}");
    }
    assert!(taken > rounds / 50 && refused > rounds / 50, "{taken} taken, {refused} refused");
    assert_eq!(device.take_errors(), []);
}
