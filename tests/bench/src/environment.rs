//! The environment of a run: the device, its driver, the processors, and the date.

use jiff::{Timestamp, tz::TimeZone};
use serde::Serialize;
use std::thread::available_parallelism;

/// The environment that the numbers of one run depend on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Environment {
    /// The device, its architecture and its memory.
    pub device: String,
    /// Version of the GPU's driver; absent for the host, and where the system does not say it.
    pub driver: Option<String>,
    /// Name of the processor; absent where the system does not say it.
    pub processor: Option<String>,
    /// How many processors the process may use.
    pub processors: usize,
    /// The day of the run in UTC, as `2026-11-23`.
    pub date: String,
    /// The command that repeats the run.
    pub command: String,
}

impl Environment {
    /// Asks the system about the machine on which `device` was measured by `command`.
    pub fn new(device: String, command: String) -> Self {
        let driver = match device.split(':').next() {
            Some("cuda") => first_line("/proc/driver/nvidia/version").as_deref().and_then(nvidia_version),
            Some("roc") => first_line("/sys/module/amdgpu/version"),
            _ => None,
        };
        Self {
            device,
            driver,
            processor: std::fs::read_to_string("/proc/cpuinfo").ok().as_deref().and_then(processor_name),
            processors: available_parallelism().map_or(1, usize::from),
            date: Timestamp::now().to_zoned(TimeZone::UTC).date().to_string(),
            command,
        }
    }
}

fn first_line(path: &str) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    text.lines().next().map(|line| line.trim().to_owned())
}

/// The version in `NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.159.04  <date>`, which newer modules word otherwise: the
/// first word that is made of digits and points.
fn nvidia_version(line: &str) -> Option<String> {
    let is_version = |word: &&str| word.contains('.') && word.chars().all(|c| c.is_ascii_digit() || c == '.');
    line.split_whitespace().find(is_version).map(str::to_owned)
}

/// The value of the first `model name` of `/proc/cpuinfo`.
fn processor_name(text: &str) -> Option<String> {
    let line = text.lines().find(|line| line.starts_with("model name"))?;
    line.split_once(':').map(|(_, name)| name.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_drivers_version_is_found_in_both_wordings() {
        let old = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.159.04  Tue Feb 11 12:00:00 UTC 2026";
        let new = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  590.44.01  Release Build  (dvs-builder)";
        assert_eq!(nvidia_version(old).as_deref(), Some("580.159.04"));
        assert_eq!(nvidia_version(new).as_deref(), Some("590.44.01"));
        assert_eq!(nvidia_version("NVRM version: unknown"), None);
    }

    #[test]
    fn the_processor_is_named_by_its_model() {
        let text = "processor\t: 0\nmodel name\t: AMD EPYC 9B14\ncache size\t: 1024 KB\n";
        assert_eq!(processor_name(text).as_deref(), Some("AMD EPYC 9B14"));
        assert_eq!(processor_name("processor: 0"), None);
    }
}
