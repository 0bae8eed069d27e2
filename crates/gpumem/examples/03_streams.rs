//! Streams: work on two of them, ordered by the library.

use gpumem::{Device, ndarray::Array1, s};

fn main() -> gpumem::Result<()> {
    run(&Device::open_default()?)
}

pub(crate) fn run(device: &Device) -> gpumem::Result<()> {
    let (first, second) = (device.stream()?, device.stream()?);
    let before = device.counters();

    // Nothing here waits. `second` reads what `first` writes, so the library makes it wait for that work only.
    let host = Array1::from_iter((0..1000).map(f64::from));
    let array = first.to_device(&host)?;
    let mut odd = second.to_device(&array.slice(s![1..;2])?)?;
    second.fill(&mut odd.slice_mut(s![..10])?, 0.0)?;
    let back = second.copy_to_host(&odd)?;

    // A page-locked array of the library: looking at it waits for the copy.
    assert_eq!(back.view()?.slice(s![9..12]).to_vec(), [0.0, 21.0, 23.0]);
    let after = device.counters();
    println!("copies {}, waits {}", after.copies - before.copies, after.waits - before.waits);

    // Events are for your own purposes: how long something took, or whether it is done.
    let start = first.record_timed_event()?;
    let again = first.to_device(&array)?;
    let end = first.record_timed_event()?;
    end.synchronize()?;
    println!("{} bytes in {:.3} ms", again.byte_len(), end.elapsed_since(&start)?);

    // Callbacks run on a thread of the library's.
    let (sender, receiver) = std::sync::mpsc::channel();
    first.add_callback(move |outcome| {
        let _ = sender.send(outcome.is_ok());
    })?;
    first.synchronize()?;
    assert_eq!(receiver.recv(), Ok(true));
    Ok(())
}
