//! Reads a memory snapshot of PyTorch, or a log of RMM (`.csv`): prints its peaks, whether it fits into a pool of
//! `--limit` bytes (`40G`), and writes it for <https://pytorch.org/memory_viz> with `--viz`.
//!
//! `cargo run -p gpumem-runtime --example trace -- FILE [--limit 40G] [--viz OUT]`
#![allow(clippy::print_stdout, reason = "its output")]

use gpumem_host::{Host, HostOptions};
use gpumem_runtime::{
    Device,
    memory::PoolOptions,
    trace::{FreeTime, Trace},
};
use std::{env, error::Error, fs::File, io::BufReader};

fn main() -> Result<(), Box<dyn Error>> {
    let usage = "trace FILE [--limit 40G] [--viz OUT]";
    let mut arguments = env::args().skip(1);
    let path = arguments.next().ok_or(usage)?;
    let (mut limit, mut viz) = (None, None);
    while let Some(option) = arguments.next() {
        let value = arguments.next().ok_or(usage)?;
        match &*option {
            "--limit" => limit = Some(bytes(&value).ok_or("the limit is a number of bytes, with K, M or G")?),
            "--viz" => viz = Some(value),
            _ => return Err(usage.into()),
        }
    }
    for (free, when) in [(FreeTime::Requested, "given up"), (FreeTime::Completed, "unused by all streams")] {
        let is_log = path.ends_with(".csv");
        let file = BufReader::new(File::open(&path)?);
        let trace = if is_log { Trace::from_rmm_csv(file)? } else { Trace::from_torch(file, free)? };
        println!("memory is free when it is {when}:");
        for peak in trace.peaks() {
            println!("  device {}: {} bytes at {} ns", peak.device, peak.bytes, peak.time);
        }
        if let Some(limit) = limit {
            let device: Device<Host> = Device::from_raw(Host::open_with(&HostOptions::new().memory(limit))?);
            println!("  {}", device.simulate_memory(&trace, PoolOptions::device(256).max_size(limit))?);
        }
        if let Some(out) = &viz {
            std::fs::write(out, trace.to_memory_viz())?;
        }
        if is_log {
            break;
        }
    }
    Ok(())
}

fn bytes(text: &str) -> Option<usize> {
    let unit = match text.chars().last()? {
        'K' => 1 << 10,
        'M' => 1 << 20,
        'G' => 1usize << 30,
        _ => return text.parse().ok(),
    };
    text[..text.len() - 1].parse::<usize>().ok()?.checked_mul(unit)
}
