//! Cuts a photo into views on a device and prints them as a contact sheet.
//!
//! ```sh
//! cargo run --release --example photo
//! cargo run --release --example photo -- --device cuda:0 --input holiday.jpg --output sheet.png
//! cargo run --release --example photo -- --timeline photo.perfetto.json
//! ```
//!
//! One stream copies each view into a packed device array, or has a kernel blur or sharpen it into one; a second stream
//! pastes that array into a sheet on the device. The program contains no waits: the library orders the two streams,
//! because both use the packed arrays. Every view and the finished sheet are compared with ndarray's result for the
//! same photo on the host. The bytes are the same on every device: the kernel computes in integers.

#[path = "../kernels/convolution.rs"]
#[allow(unreachable_pub, reason = "a library compiles the file, too")]
mod convolution;
mod filter;
mod picture;
mod place;
mod report;
mod sheet;
mod views;

use clap::Parser;
use filter::Convolution;
use gpumem::{
    Device, DeviceArray, Event, Stream, memory,
    ndarray::{Array3, Ix3, IxDyn},
    trace::RecorderOptions,
};
use sheet::Sheet;
use std::{path::PathBuf, process::ExitCode, time::Instant};
use views::{Then, View};

pub(crate) type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Cuts a photo into views on a device and prints them as a contact sheet
#[derive(Debug, Parser)]
pub(crate) struct Options {
    /// Device: host, cuda:0, ...; by default what GPUMEM_DEVICE names, or the first of the enabled backends
    #[arg(long, value_name = "NAME")]
    pub(crate) device: Option<String>,
    /// JPEG or PNG; by default the photo that comes with the example
    #[arg(long, value_name = "FILE")]
    pub(crate) input: Option<PathBuf>,
    /// Contact sheet, as PNG
    #[arg(long, value_name = "FILE", default_value = "target/photo.png")]
    pub(crate) output: PathBuf,
    /// File for a recording of memory use: for ui.perfetto.dev if the name ends in .perfetto.json, else the recording
    /// as JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) timeline: Option<PathBuf>,
}

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("photo: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The whole program.
pub(crate) fn run(options: &Options) -> Result<()> {
    let photo = picture::read(options.input.as_deref())?;
    let device = match &options.device {
        Some(name) => Device::open(name)?,
        None => Device::open_default()?,
    };
    let recording = match &options.timeline {
        Some(_) => Some(device.record_memory(RecorderOptions::default())?),
        None => None,
    };
    let sheet = print(&device, &photo)?;
    if let (Some(path), Some(recording)) = (&options.timeline, recording) {
        recording.finish().write(path).map_err(|why| format!("cannot write {}: {why}", path.display()))?;
        println!("timeline: {}", path.display());
    }
    picture::write(&options.output, &sheet)?;
    println!("contact sheet: {} ({} x {} pixels)", options.output.display(), sheet.dim().1, sheet.dim().0);
    Ok(())
}

/// The copies for one view, and their methods.
pub(crate) struct Moved {
    view: View,
    /// Strides of the view in the photo, in bytes.
    strides: Vec<isize>,
    packed: DeviceArray<u8, IxDyn>,
    /// Driver calls for the copy out of the photo, and for the one into the sheet.
    calls: [u64; 2],
    /// Waits of one stream for the other that the library added.
    waits: u64,
    /// Before and after the copy out of the photo.
    span: [Event; 2],
}

fn print(device: &Device, photo: &Array3<u8>) -> Result<Array3<u8>> {
    let start = Instant::now();
    let on_device: DeviceArray<u8, Ix3> = memory::named("original", || device.to_device(photo))?;
    let upload = start.elapsed();

    let kernel = convolution::convolution().load(device)?;
    let plan = Sheet::new(photo.dim());
    let mut sheet = memory::named("sheet", || device.device_array::<u8, _>(plan.shape()))?;
    let (cut, paste) = (device.stream()?, device.stream()?);
    paste.fill(&mut sheet, sheet::BACKGROUND)?;
    let mut moved = Vec::new();
    for view in plan.views() {
        moved.push(print_one(device, (&cut, &paste), &kernel, &on_device, view, &mut sheet)?);
    }
    cut.synchronize()?;
    paste.synchronize()?;
    let work = start.elapsed() - upload;

    let start = Instant::now();
    let finished = sheet.copy_to_host()?;
    let download = start.elapsed();
    for one in &moved {
        one.check(&cut, photo)?;
    }
    if finished != plan.on_host(photo)? {
        return Err("the sheet differs from the one that ndarray makes on the host".into());
    }
    report::views(device, &moved)?;
    report::times(&[
        ("photo to the device", photo.len(), upload),
        ("views to the sheet", moved.iter().map(|one| one.packed.byte_len()).sum(), work),
        ("sheet to the host", finished.len(), download),
    ]);
    Ok(finished)
}

/// Copies or filters one view out of the photo on one stream, and into the sheet on the other.
fn print_one(
    device: &Device,
    (cut, paste): (&Stream, &Stream),
    kernel: &Convolution,
    photo: &DeviceArray<u8, Ix3>,
    view: View,
    sheet: &mut DeviceArray<u8, Ix3>,
) -> Result<Moved> {
    let begin = cut.record_timed_event()?;
    let start = device.counters();
    let (strides, packed) = memory::named(view.name, || {
        view.on_device(photo, |elements| {
            let packed = match view.then {
                Then::Filter(filter) => filter.on_device(cut, kernel, &elements)?,
                _ => cut.to_device(&elements)?,
            };
            Ok((elements.strides().to_vec(), packed))
        })
    })?;
    let middle = device.counters();
    let end = cut.record_timed_event()?;
    let marked = device.counters();
    view.paste(paste, &packed, sheet)?;
    let finish = device.counters();
    let calls = [middle.copies - start.copies, finish.copies - marked.copies];
    let waits = middle.waits - start.waits + finish.waits - marked.waits;
    Ok(Moved { view, strides, packed, calls, waits, span: [begin, end] })
}

impl Moved {
    /// Copies the view back, into page-locked memory and in stream order, and compares it with ndarray's.
    fn check(&self, stream: &Stream, photo: &Array3<u8>) -> Result<()> {
        let back = stream.copy_to_host(&self.packed)?;
        // Looking at the array waits for the copy.
        let same = self.view.on_host(photo, |expected| Ok(back.view()? == expected))?;
        match same {
            true => Ok(()),
            false => Err(format!("the view \"{}\" differs from ndarray's", self.view.name).into()),
        }
    }
}
