//! The bytes moved, the methods, and the times.

use super::{Moved, Result};
use gpumem::Device;
use std::time::Duration;

/// A row for each view.
pub(crate) fn views(device: &Device, moved: &[Moved]) -> Result<()> {
    println!("device: {} ({})", device.name(), device.info().name);
    println!();
    println!(
        "{:<19} {:>15} {:>16} {:>8} {:>10} {:>6} {:>9}",
        "view", "shape", "strides (bytes)", "bytes", "calls", "waits", "cut (us)"
    );
    for one in moved {
        let [begin, end] = &one.span;
        println!(
            "{:<19} {:>15} {:>16} {:>8} {:>10} {:>6} {:>9.1}",
            one.view.name,
            join(one.packed.shape()),
            join(&one.strides),
            one.packed.byte_len(),
            format!("{} + {}", one.calls[0], one.calls[1]),
            one.waits,
            end.elapsed_since(begin)? * 1e3,
        );
    }
    println!();
    println!("calls: copies that the driver was asked for, out of the photo + into the sheet");
    println!("       (a filter is a kernel and copies nothing out)");
    println!("waits: of one stream for the other, added where both use the same memory");
    println!();
    Ok(())
}

/// A row for each leg of the journey.
pub(crate) fn times(legs: &[(&str, usize, Duration)]) {
    for (what, bytes, time) in legs {
        println!("{what:<20} {bytes:>9} bytes {:>9.3} ms", time.as_secs_f64() * 1e3);
    }
    println!("every view and the sheet are equal to ndarray's");
}

fn join<T: std::fmt::Display>(numbers: &[T]) -> String {
    numbers.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
}
