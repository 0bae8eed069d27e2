//! Every public call that may take a device to work, inside the recording of a graph: recorded, refused, or no work of a device.
//! The lists of the public interface are compared with the table, so a call without a row fails the test.
#![cfg(all(feature = "host", feature = "collectives"))]
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod no_work;
mod public;
mod rows;

use gpumem::collectives::Communicator;
use gpumem_core::{Error, ErrorKind};
use gpumem_host::{Host, HostOptions};
use gpumem_kernel::Kernel;
use ndarray::Ix1;
use std::collections::BTreeSet;

type Result<T, E = Error> = std::result::Result<T, E>;
type Device = gpumem_runtime::Device<Host>;
type Stream = gpumem_runtime::Stream<Host>;
type View<'a> = gpumem_runtime::DeviceView<'a, f32, Ix1, Host>;
type ViewMut<'a> = gpumem_runtime::DeviceViewMut<'a, f32, Ix1, Host>;
type Array = gpumem_runtime::DeviceArray<f32, Ix1, Host>;
type Pinned = gpumem_runtime::PinnedArray<f32, Ix1, Host>;

const LEN: usize = 16;

/// What a call is given: the stream and the arrays of a recording, or others. What it computes, it writes to `y`.
struct Case<'a, 'o> {
    stream: &'a Stream,
    x: View<'a>,
    y: ViewMut<'a>,
    outside: &'o Outside,
}

/// What was made outside of all recordings.
struct Outside {
    device: Device,
    stream: Stream,
    rank: Communicator<Host>,
    kernel: Kernel<rows::Parameters, Host>,
}

/// What a graph does with a call.
enum Row {
    /// Records it. A launch does what the call does by itself, and not before.
    Recorded(for<'a, 'o> fn(Case<'a, 'o>) -> Result<()>),
    /// Records it, and each launch has the array that the call returns.
    Returned(for<'a, 'o> fn(Case<'a, 'o>) -> Result<Pinned>),
    /// Returns `NotRecordable` or `OfRecording`, and has recorded nothing.
    Refused(for<'a, 'o> fn(Case<'a, 'o>) -> Result<()>),
}

fn outside() -> Outside {
    let device = Device::from_raw(Host::open_with(&HostOptions::new().workers(2)).unwrap());
    let rank = Communicator::all(std::slice::from_ref(&device)).unwrap().remove(0);
    let kernel = rows::doubled().load(&device).unwrap();
    Outside { stream: device.stream().unwrap(), device, rank, kernel }
}

/// The arrays of one call: what is read, and what is written.
fn arrays(device: &Device) -> (Array, Array) {
    let x: Vec<f32> = (0..LEN).map(|at| (at * 7 % 16) as f32 + 1.0).collect();
    (device.to_device(&x).unwrap(), device.to_device(&[-1.0_f32; LEN]).unwrap())
}

/// What `y` and the returned array have.
fn seen(y: &Array, host: Option<Pinned>) -> (Vec<f32>, Option<Vec<f32>>) {
    (y.copy_to_host().unwrap().to_vec(), host.map(|host| host.view().unwrap().to_vec()))
}

/// An error that says what is wrong, unless it is so.
fn expect(is_so: bool, wrong: impl std::fmt::Display) -> Result<(), String> {
    if is_so { Ok(()) } else { Err(wrong.to_string()) }
}

fn check_recorded(
    outside: &Outside,
    call: &dyn Fn(Case<'_, '_>) -> Result<Option<Pinned>>,
) -> Result<(), String> {
    let (stream, (x, mut y)) = (&outside.stream, arrays(&outside.device));
    let host = call(Case { stream, x: x.view(), y: y.view_mut(), outside });
    let direct = seen(&y, host.map_err(|error| format!("fails outside of a recording: {error}"))?);
    let (x, mut y) = arrays(&outside.device);
    let before = (seen(&y, None), outside.device.counters());
    let graph = outside.device.record((&x, &mut y), |stream, (x, y)| call(Case { stream, x, y, outside }));
    let graph = graph.map_err(|error| format!("is not recorded: {error}"))?;
    let (after, report) = (outside.device.counters(), graph.report());
    // Elements of the host go to the device at the end of the recording.
    let copies = after.copies - u64::from(report.constant_bytes > 0);
    expect((after.fills, copies) == (before.1.fills, before.1.copies), "enqueues before the launch")?;
    expect(seen(&y, None) == before.0, "writes before the launch")?;
    for _ in 0..2 {
        let host = graph.launch(stream, (&x, &mut y)).map_err(|error| format!("is not launched: {error}"))?;
        let launched = seen(&y, host);
        expect(launched == direct, format_args!("gives {launched:?} by a launch, {direct:?} by itself"))?;
    }
    Ok(())
}

fn check_refused(outside: &Outside, call: for<'a, 'o> fn(Case<'a, 'o>) -> Result<()>) -> Result<(), String> {
    let (x, mut y) = arrays(&outside.device);
    let before = seen(&y, None);
    let mut refused = Ok(());
    let graph = outside.device.record((&x, &mut y), |stream, (x, y)| {
        refused = call(Case { stream, x, y, outside });
        Ok(())
    });
    let Err(error) = refused else { return Err("is not refused".to_owned()) };
    let is_refused = matches!(error.kind(), ErrorKind::NotRecordable { .. } | ErrorKind::OfRecording { .. });
    expect(is_refused, format_args!("fails otherwise: {error}"))?;
    let report = graph.map_err(|error| format!("is recorded in part: {error}"))?.report();
    expect(report == Default::default(), format_args!("is recorded in part: {report:?}"))?;
    expect(seen(&y, None) == before, "writes")
}

#[test]
fn each_call_is_recorded_or_refused() {
    let outside = outside();
    let wrong = rows::rows().into_iter().filter_map(|(name, row)| {
        let checked = match row {
            Row::Recorded(call) => check_recorded(&outside, &|case| call(case).map(|()| None)),
            Row::Returned(call) => check_recorded(&outside, &|case| call(case).map(Some)),
            Row::Refused(call) => check_refused(&outside, call),
        };
        checked.err().map(|wrong| format!("{name} {wrong}"))
    });
    let wrong: Vec<_> = wrong.collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(outside.device.take_errors().is_empty());
}

#[test]
fn each_public_call_has_a_row() {
    let mut table: BTreeSet<String> = rows::rows().iter().map(|(name, _)| (*name).to_owned()).collect();
    for (of, names) in no_work::NO_WORK.iter().chain(no_work::NOT_RUN) {
        for name in names.split_whitespace() {
            assert!(table.insert(format!("{of}::{name}")), "{of}::{name} has two rows");
        }
    }
    let public = public::calls();
    let lacking: Vec<_> = public.difference(&table).collect();
    assert!(lacking.is_empty(), "say in rows.rs what a graph does with {lacking:?}");
    let gone: Vec<_> = table.difference(&public).collect();
    assert!(gone.is_empty(), "rows.rs has what is not public: {gone:?}");
}
