//! The simulated machine, as the environment configures it. Read once, at the first call.

use std::{env, path::PathBuf, sync::OnceLock};

/// The simulated machine.
#[derive(Debug)]
pub(crate) struct Config {
    /// Number of GPUs; node 0 is the CPU, nodes 1 to `gpus` are GPUs.
    pub(crate) gpus: u32,
    /// Which GPU.
    pub(crate) model: &'static Model,
    /// How many compute units each GPU has. AMD's runtime makes the grids of its copy kernels as large as the GPU.
    pub(crate) compute_units: u32,
    /// Memory of each GPU, in bytes.
    pub(crate) vram_bytes: u64,
    /// Whether the host can reach all of a GPU's memory through the PCI BAR.
    pub(crate) large_bar: bool,
    /// Whether the kernel driver has the SVM interface, on which managed memory is built.
    pub(crate) svm: bool,
    /// Whether GPUs reach registered memory under the host's address, as with AMD's thunk since ROCm 5.6 on drivers
    /// that have the SVM interface.
    pub(crate) register_in_place: bool,
    /// Whether machine code is checked for faults that only a simulator can find.
    pub(crate) check: bool,
    /// How many instructions a wave may execute before it is said to be endless.
    pub(crate) most_instructions: u64,
    /// Where the statistics go at exit.
    pub(crate) stats: Option<StatsTarget>,
    /// Whether to log to stderr.
    pub(crate) log: bool,
}

/// Where the statistics go.
#[derive(Debug)]
pub(crate) enum StatsTarget {
    Stderr,
    File(PathBuf),
}

/// Facts of a GPU that AMD's runtime decides by.
#[derive(Debug)]
pub(crate) struct Model {
    pub(crate) name: &'static str,
    /// Major, minor and stepping of the instruction set.
    pub(crate) isa: (u32, u32, u32),
    pub(crate) device_id: u16,
    pub(crate) simds_per_cu: u32,
    pub(crate) wave_size: u32,
}

const MODELS: &[Model] = &[
    Model { name: "gfx900", isa: (9, 0, 0), device_id: 0x6860, simds_per_cu: 4, wave_size: 64 },
    Model { name: "gfx906", isa: (9, 0, 6), device_id: 0x66a1, simds_per_cu: 4, wave_size: 64 },
    Model { name: "gfx908", isa: (9, 0, 8), device_id: 0x738c, simds_per_cu: 4, wave_size: 64 },
    Model { name: "gfx90a", isa: (9, 0, 10), device_id: 0x740f, simds_per_cu: 4, wave_size: 64 },
    Model { name: "gfx942", isa: (9, 4, 2), device_id: 0x74a1, simds_per_cu: 4, wave_size: 64 },
    Model { name: "gfx1010", isa: (10, 1, 0), device_id: 0x731f, simds_per_cu: 2, wave_size: 32 },
    Model { name: "gfx1030", isa: (10, 3, 0), device_id: 0x73bf, simds_per_cu: 2, wave_size: 32 },
    Model { name: "gfx1100", isa: (11, 0, 0), device_id: 0x744c, simds_per_cu: 2, wave_size: 32 },
    Model { name: "gfx1201", isa: (12, 0, 1), device_id: 0x7550, simds_per_cu: 2, wave_size: 32 },
];

/// The most GPUs that can be simulated: the mapping checks keep one bit for each node.
const MAX_GPUS: u64 = 16;

impl Config {
    /// The machine that the environment describes.
    pub(crate) fn get() -> &'static Config {
        static CONFIG: OnceLock<Config> = OnceLock::new();
        CONFIG.get_or_init(|| Self::from_lookup(|name| env::var(name).ok()))
    }

    fn from_lookup(lookup: impl Fn(&str) -> Option<String>) -> Self {
        let number = |name: &str, default: u64| match lookup(name).filter(|text| !text.is_empty()) {
            None => default,
            Some(text) => text.parse().unwrap_or_else(|_| {
                eprintln!("rocsim: {name}={text} is not a number, {default} is used");
                default
            }),
        };
        let gfx = lookup("ROCSIM_GFX").filter(|text| !text.is_empty()).unwrap_or_else(|| "gfx906".into());
        let model = MODELS.iter().find(|model| model.name == gfx).unwrap_or_else(|| {
            let known: Vec<_> = MODELS.iter().map(|model| model.name).collect();
            eprintln!("rocsim: ROCSIM_GFX={gfx} is none of {}, gfx906 is used", known.join(", "));
            &MODELS[1]
        });
        let svm = number("ROCSIM_SVM", 0);
        Self {
            gpus: number("ROCSIM_GPUS", 1).min(MAX_GPUS) as u32,
            model,
            compute_units: (number("ROCSIM_COMPUTE_UNITS", 4) as u32).clamp(4, 240).next_multiple_of(4),
            vram_bytes: number("ROCSIM_VRAM_MB", 1024).max(64) << 20,
            large_bar: number("ROCSIM_LARGE_BAR", 0) != 0,
            svm: svm != 0,
            register_in_place: number("ROCSIM_REGISTER_IN_PLACE", svm) != 0,
            check: number("ROCSIM_CHECK", 0) != 0,
            most_instructions: number("ROCSIM_MOST_INSTRUCTIONS", 1_000_000_000),
            stats: lookup("ROCSIM_STATS").filter(|text| !text.is_empty()).map(|text| match text.as_str() {
                "stderr" => StatsTarget::Stderr,
                _ => StatsTarget::File(text.replace("%p", &std::process::id().to_string()).into()),
            }),
            log: number("ROCSIM_LOG", 0) != 0,
        }
    }

    /// Whether the node is a GPU.
    pub(crate) fn is_gpu(&self, node: u32) -> bool {
        (1..=self.gpus).contains(&node)
    }

    /// The nodes of the GPUs.
    pub(crate) fn gpu_nodes(&self) -> std::ops::RangeInclusive<u32> {
        1..=self.gpus
    }
}

/// Logs to stderr, if `ROCSIM_LOG=1`.
macro_rules! trace {
    ($($argument:tt)*) => {
        if $crate::config::Config::get().log {
            eprintln!("rocsim: {}", format_args!($($argument)*));
        }
    };
}
pub(crate) use trace;

#[cfg(test)]
mod tests {
    use super::*;

    fn config(variables: &[(&str, &str)]) -> Config {
        Config::from_lookup(|name| {
            variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn the_default_is_one_small_gpu_that_is_strict() {
        let config = config(&[]);
        assert_eq!((config.gpus, config.model.name, config.compute_units), (1, "gfx906", 4));
        assert!(!config.large_bar && !config.svm && !config.register_in_place && config.stats.is_none());
        assert!(config.is_gpu(1) && !config.is_gpu(0) && !config.is_gpu(2));
    }

    #[test]
    fn values_are_read_and_nonsense_is_replaced() {
        let config = config(&[
            ("ROCSIM_GPUS", "99"),
            ("ROCSIM_GFX", "gfx1030"),
            ("ROCSIM_VRAM_MB", "many"),
            ("ROCSIM_COMPUTE_UNITS", "30"),
            ("ROCSIM_STATS", "/tmp/stats.%p"),
        ]);
        assert_eq!((config.gpus, config.compute_units), (16, 32), "the four engines have as many each");
        assert_eq!((config.model.wave_size, config.vram_bytes), (32, 1 << 30));
        let Some(StatsTarget::File(path)) = config.stats else { panic!("{:?}", config.stats) };
        assert_eq!(path.to_str(), Some(format!("/tmp/stats.{}", std::process::id()).as_str()));
    }
}
