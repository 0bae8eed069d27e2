//! What reports, recordings and errors say of arrays that leave the device.

use super::{
    BYTES, Files, add, arrays,
    common::{host, is_clean},
    limit, manager, numbers, options,
};
use gpumem_core::{ErrorKind, SpillPressure};
use gpumem_host::Host;
use gpumem_runtime::{
    Device, SpillManager, SpillOptions, Spillable, memory,
    trace::{RecorderOptions, Trace, TraceEventKind},
};
use ndarray::Ix1;

fn named(
    device: &Device<Host>,
    spilling: &SpillManager<Host>,
    (name, number): (&str, usize),
) -> Spillable<u32, Ix1, Host> {
    add(spilling, memory::named(name, || device.to_device(&numbers(number, 0))).unwrap())
}

/// The bytes of each name, by the report.
fn held(device: &Device<Host>) -> Vec<(String, usize)> {
    let holders = device.memory_report().unwrap().holders;
    let mut held: Vec<_> = holders.into_iter().map(|holder| (holder.name, holder.bytes)).collect();
    held.sort();
    held
}

/// Device, host, files: what is where, as numbers of arrays.
fn places(found: SpillPressure) -> [usize; 4] {
    let bytes = [found.evictable_bytes, found.pinned_bytes, found.host_bytes, found.file_bytes];
    bytes.map(|bytes| {
        assert_eq!(bytes % BYTES, 0);
        bytes / BYTES
    })
}

/// The names of what was allocated and freed, in this order: `+w`, `-w`.
fn changes(trace: &Trace) -> Vec<String> {
    let name = |memory: u32| {
        let name = trace.allocations[memory as usize].name;
        name.map_or("", |name| trace.names[name as usize].as_str())
    };
    let change = |what: &TraceEventKind| match *what {
        TraceEventKind::Allocate { memory } => Some(format!("+{}", name(memory))),
        TraceEventKind::Free { memory } => Some(format!("-{}", name(memory))),
        _ => None,
    };
    trace.events.iter().filter_map(|event| change(&event.what)).collect()
}

#[test]
fn an_array_keeps_its_name_wherever_it_is() {
    let (device, raw) = host(options());
    let (spilling, stream) = (manager(&device, SpillOptions::new()), device.stream().unwrap());
    let files = Files::new(0..1);
    let recording = device.record_memory(RecorderOptions::default()).unwrap();
    let mut array = named(&device, &spilling, ("w", 1));
    let of_file = memory::named("f", || spilling.open(files.view(0))).unwrap();
    let without = arrays(&device, &spilling, 1).remove(0);
    let whole = |name: &str| (name.to_owned(), BYTES);
    assert_eq!(held(&device), [whole("w")]);
    assert!(array.evict().unwrap() && without.evict().unwrap());
    assert_eq!(held(&device), [whole("w")], "of its copy");
    // The name of another allocation goes on after them.
    let other = memory::named("o", || {
        drop((of_file.get(&stream).unwrap(), without.get(&stream).unwrap()));
        drop(array.get_mut(&stream).unwrap());
        device.to_device(&numbers(3, 0))
    });
    assert_eq!(held(&device), [whole("f"), whole("o"), whole("w")]);
    assert!(of_file.evict().unwrap());
    assert_eq!(held(&device), [whole("o"), whole("w")]);
    let array = array.into_array(&stream).map_err(|(_, error)| error).unwrap();
    assert_eq!(held(&device), [whole("o"), whole("w")]);
    drop((array, without, of_file, other));
    device.synchronize().unwrap();
    device.flush().unwrap();
    let changes = changes(&recording.finish());
    let of = |name: &str| changes.iter().filter(|change| &change[1..] == name).cloned().collect::<Vec<_>>();
    // In memory of the device, on the host, and in memory of the device again.
    assert_eq!(of("w"), ["+w", "+w", "-w", "+w", "-w", "-w"], "{changes:?}");
    assert_eq!(of("f"), ["+f", "-f"], "{changes:?}");
    assert_eq!(of("o"), ["+o", "-o"], "{changes:?}");
    drop((stream, spilling));
    is_clean(&device, &raw);
}

#[test]
fn errors_and_reports_say_where_arrays_are_and_why() {
    let (device, raw) = host(options());
    let _before = limit(&device, 3);
    let (spilling, stream) = (manager(&device, SpillOptions::new()), device.stream().unwrap());
    let report = || device.memory_report().unwrap();
    assert_eq!(places(report().spilling), [0; 4]);
    assert!(!report().to_string().contains("spilling"));
    let files = Files::new(0..1);
    let of_file = spilling.open(files.view(0)).unwrap();
    // One of four leaves.
    let all = ["a", "b", "b", "c"].map(|name| named(&device, &spilling, (name, 1)));
    assert_eq!(places(report().spilling), [3, 0, 1, 1]);
    let views = [1, 2, 3].map(|array: usize| all[array].get(&stream).unwrap());
    assert_eq!(places(report().spilling), [0, 3, 1, 1]);
    let text = format!("0 bytes could leave the device, {} stay for their views, {BYTES} are on", 3 * BYTES);
    assert!(report().to_string().contains(&text), "{}", report());
    assert!(report().to_json().contains(&format!("\"pinned_bytes\": {}", 3 * BYTES)));
    for error in [all[0].get(&stream).unwrap_err(), of_file.get(&stream).unwrap_err()] {
        let ErrorKind::OutOfMemory { pressure: Some(pressure), .. } = error.kind() else { panic!("{error}") };
        // The one that is to come back has moved at that moment.
        assert_eq!(places(pressure.spilling)[..2], [0, 3], "{error}");
        assert!(error.to_string().contains("0 bytes could leave the device"), "{error}");
    }
    let [first, second, third] = views;
    drop(first);
    let slept = spilling.sleep().unwrap();
    let kept: Vec<_> = slept.kept_names.iter().map(|(name, bytes)| (&**name, *bytes)).collect();
    assert_eq!((slept.kept, kept), (2 * BYTES, vec![("b", BYTES), ("c", BYTES)]));
    assert_eq!(places(report().spilling), [0, 2, 2, 1]);
    drop((second, third));
    assert_eq!(places(report().spilling), [2, 0, 2, 1]);
    assert_eq!(spilling.sleep().unwrap().kept_names, []);
    drop((all, of_file, spilling, stream));
    assert_eq!(places(report().spilling), [0; 4]);
    is_clean(&device, &raw);
}
