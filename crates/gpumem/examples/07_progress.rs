//! A long transfer with a progress bar, and one that is ended early.

use gpumem::{Device, ErrorKind, Progress, ndarray::Array1};
use indicatif::{ProgressBar, ProgressStyle};
use std::ops::ControlFlow;

fn main() -> gpumem::Result<()> {
    run(&Device::open_default()?)
}

/// A bar that follows a transfer.
fn bar(what: &'static str) -> impl FnMut(Progress) -> ControlFlow<()> {
    let bar = ProgressBar::new(0).with_message(what);
    let style =
        ProgressStyle::with_template("{msg:9} {wide_bar} {bytes}/{total_bytes} {binary_bytes_per_sec}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    move |progress| {
        bar.set_length(progress.total);
        bar.set_position(progress.done);
        if progress.done == progress.total {
            bar.finish();
        }
        ControlFlow::Continue(())
    }
}

pub(crate) fn run(device: &Device) -> gpumem::Result<()> {
    let host = Array1::from_iter(0..(32_u32 << 20));
    let mut array = device.device_array::<u32, _>(host.len())?;
    let mut back = Array1::zeros(host.len());

    // The bar moves between the pieces of the transfer, on this thread; other threads help meanwhile.
    array.copy_to_device_with_progress(&host, bar("to device"))?;
    array.copy_to_host_with_progress(back.view_mut(), bar("to host"))?;
    assert_eq!(back, host);

    // The callback can end it between two chunks.
    let ended = array.copy_to_host_with_progress(back.view_mut(), |progress| {
        println!("ended after {} of {} bytes", progress.done, progress.total);
        ControlFlow::Break(())
    });
    assert!(matches!(ended, Err(error) if *error.kind() == ErrorKind::Cancelled));

    // How a transfer is going to be done can be asked for and printed.
    println!("{}", array.copy_plan(&host)?);
    Ok(())
}
