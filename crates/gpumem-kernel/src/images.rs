//! Compiled programs that come with a kernel, and which of them a device can run.

use gpumem_core::{Backend, CompileOptions, DriverDevice, Error, ErrorKind, KernelSource, Result};
use gpumem_runtime::internal::DeviceContext;
use std::borrow::Cow;

/// A compiled program.
#[derive(Debug, Clone)]
pub(super) enum Image {
    Binary { architecture: String, bytes: Cow<'static, [u8]> },
    Bundle(Cow<'static, [u8]>),
    Ptx(Cow<'static, str>),
}

/// How well an image suits a device: the best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fit {
    Exact,
    /// An earlier minor of the same generation, so many before.
    Earlier(u32),
    /// The driver looks into it.
    Unknown,
    /// The driver compiles it: PTX for a target so much older.
    Compiled(u32),
}

/// All that come with one kernel.
#[derive(Debug, Clone, Default)]
pub(super) struct Images(Vec<Image>);

impl Images {
    pub(super) fn add(&mut self, image: Image) {
        self.0.push(image);
    }

    /// Loads the best that the device takes; `Err` with the reason where it takes none, `None` where there are none.
    /// Returns an error of the device. That it does not take a program is not an error.
    pub(super) fn load<B: Backend>(
        &self,
        context: &DeviceContext<B>,
        name: &str,
    ) -> Result<Result<B::Module, Option<Error>>> {
        if self.0.is_empty() {
            return Ok(Err(None));
        }
        let architecture = &context.raw.info().architecture;
        let mut fitting: Vec<_> =
            self.0.iter().filter_map(|image| Some((image.fit(architecture)?, image))).collect();
        fitting.sort_by_key(|(fit, _)| *fit);
        let mut refusal = None;
        for (_, image) in fitting {
            match context.note_loss(context.raw.compile(&image.source(), &CompileOptions::default())) {
                Ok(module) => return Ok(Ok(module)),
                // Such as PTX that is newer than the driver: another one may do.
                Err(error)
                    if matches!(error.kind(), ErrorKind::Build { .. } | ErrorKind::Unsupported { .. }) =>
                {
                    refusal.get_or_insert(error);
                }
                Err(error) => return Err(error),
            }
        }
        let none = || {
            let has: Vec<_> = self.0.iter().map(Image::target).collect();
            let (name, architecture, has) = (name.to_owned(), architecture.clone(), has.join(", "));
            context.error("load", ErrorKind::NoProgram { name, architecture, has })
        };
        Ok(Err(Some(refusal.unwrap_or_else(none))))
    }
}

impl Image {
    fn source(&self) -> KernelSource {
        match self {
            Image::Binary { bytes, .. } | Image::Bundle(bytes) => KernelSource::Binary(bytes.to_vec()),
            Image::Ptx(text) => KernelSource::Ptx(text.to_string()),
        }
    }

    /// Whether a device of that architecture may run it, and how well that suits.
    fn fit(&self, device: &str) -> Option<Fit> {
        match self {
            Image::Binary { architecture, .. } => match (Sm::of(architecture), Sm::of(device)) {
                (Some(image), Some(device)) => image.runs_on(device),
                (None, None) => (base(architecture) == base(device)).then_some(Fit::Exact),
                _ => None,
            },
            // Which vendor's it is, is all that can be told from outside.
            Image::Bundle(bytes) => {
                let is_amd = bytes.starts_with(b"__CLANG_OFFLOAD_BUNDLE__") || bytes.starts_with(b"CCOB");
                (is_amd != Sm::of(device).is_some()).then_some(Fit::Unknown)
            }
            Image::Ptx(text) => {
                let (target, device) = (Sm::of(target_of(text)?)?, Sm::of(device)?);
                let suits = match target.only {
                    true => (target.major, target.minor) == (device.major, device.minor),
                    false => (target.major, target.minor) <= (device.major, device.minor),
                };
                let behind =
                    (device.major * 100 + device.minor).saturating_sub(target.major * 100 + target.minor);
                suits.then_some(Fit::Compiled(behind))
            }
        }
    }

    /// Its purpose, in words.
    fn target(&self) -> String {
        match self {
            Image::Binary { architecture, .. } => architecture.clone(),
            Image::Bundle(_) => "those in a bundle".to_owned(),
            Image::Ptx(text) => format!("PTX of {}", target_of(text).unwrap_or("no target")),
        }
    }
}

/// An architecture of NVIDIA: `sm_90`, `sm_90a`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Sm {
    major: u32,
    minor: u32,
    /// With features that no other architecture has.
    only: bool,
}

impl Sm {
    fn of(name: &str) -> Option<Self> {
        let name = name.strip_prefix("sm_")?;
        let digits = name.trim_end_matches(|c: char| c.is_ascii_lowercase());
        let number: u32 = digits.parse().ok()?;
        Some(Self { major: number / 10, minor: number % 10, only: name.ends_with('a') })
    }

    /// Machine code runs on its own generation from its own minor on.
    fn runs_on(self, device: Self) -> Option<Fit> {
        if self.major != device.major {
            return None;
        }
        match device.minor.checked_sub(self.minor)? {
            0 => Some(Fit::Exact),
            later if !self.only => Some(Fit::Earlier(later)),
            _ => None,
        }
    }
}

/// The architecture without its features: `gfx90a` of `gfx90a:xnack-`.
fn base(architecture: &str) -> &str {
    architecture.split(':').next().unwrap_or(architecture)
}

/// Returns the target of a PTX text: the word after `.target`.
fn target_of(text: &str) -> Option<&str> {
    let line = text.lines().find_map(|line| line.trim_start().strip_prefix(".target"))?;
    line.split(|c: char| c.is_whitespace() || c == ',').find(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn binary(architecture: &str) -> Image {
        Image::Binary { architecture: architecture.to_owned(), bytes: Cow::Borrowed(b"") }
    }

    fn ptx(target: &str) -> Image {
        Image::Ptx(format!("//\n.version 8.0\n  .target {target}, debug\n.address_size 64\n").into())
    }

    #[test]
    fn machine_code_runs_on_its_generation_from_its_minor_on() {
        for (image, device, fit) in [
            ("sm_90", "sm_90", Some(Fit::Exact)),
            ("sm_80", "sm_86", Some(Fit::Earlier(6))),
            ("sm_86", "sm_80", None),
            ("sm_80", "sm_90", None),
            ("sm_90a", "sm_90", Some(Fit::Exact)),
            ("sm_100f", "sm_103", Some(Fit::Earlier(3))),
            ("sm_100a", "sm_103", None),
            ("sm_120", "sm_100", None),
            ("gfx90a", "gfx90a", Some(Fit::Exact)),
            ("gfx90a:xnack-", "gfx90a", Some(Fit::Exact)),
            ("gfx906", "gfx90a", None),
            ("gfx906", "sm_90", None),
            ("sm_90", "gfx906", None),
        ] {
            assert_eq!(binary(image).fit(device), fit, "{image} on {device}");
        }
    }

    #[test]
    fn ptx_is_compiled_for_its_target_and_later() {
        for (target, device, fits) in [
            ("sm_80", "sm_90", true),
            ("sm_90", "sm_90", true),
            ("sm_90", "sm_80", false),
            ("sm_75", "sm_100", true),
            ("sm_90a", "sm_90", true),
            ("sm_90a", "sm_100", false),
            ("sm_80", "gfx90a", false),
        ] {
            assert_eq!(ptx(target).fit(device).is_some(), fits, "{target} on {device}");
        }
        assert_eq!(Image::Ptx("no target".into()).fit("sm_90"), None);
    }

    #[test]
    fn bundles_go_to_their_own_vendor() {
        let amd = Image::Bundle(Cow::Borrowed(b"__CLANG_OFFLOAD_BUNDLE__..."));
        let nvidia = Image::Bundle(Cow::Borrowed(&[0x50, 0xed, 0x55, 0xba]));
        assert_eq!((amd.fit("gfx906"), amd.fit("sm_90")), (Some(Fit::Unknown), None));
        assert_eq!((nvidia.fit("gfx906"), nvidia.fit("sm_90")), (None, Some(Fit::Unknown)));
    }

    #[test]
    fn the_nearest_architecture_comes_first() {
        let mut fits: Vec<_> =
            [ptx("sm_80"), binary("sm_80"), ptx("sm_86"), binary("sm_86"), binary("sm_89")]
                .iter()
                .map(|image| image.fit("sm_89").unwrap())
                .collect();
        fits.sort();
        let expected = [Fit::Exact, Fit::Earlier(3), Fit::Earlier(9), Fit::Compiled(3), Fit::Compiled(9)];
        assert_eq!(fits, expected);
    }
}
