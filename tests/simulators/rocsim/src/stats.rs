//! Counters that a test can query, and a report at exit.

use crate::config::{Config, StatsTarget};
use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// One counter of every kind.
        #[derive(Debug)]
        pub(crate) struct Stats { $($(#[$doc])* pub(crate) $name: Counter,)* }

        static STATS: Stats = Stats { $($name: Counter(AtomicU64::new(0)),)* };

        impl Stats {
            fn all(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$((stringify!($name), self.$name.get()),)*].into_iter()
            }
        }
    };
}

counters! {
    /// Allocations of device memory.
    vram_allocations,
    /// Freed allocations of device memory.
    vram_frees,
    /// Bytes of device memory that are allocated now, all GPUs together.
    vram_live_bytes,
    /// The most bytes of device memory that were allocated at one time.
    vram_peak_bytes,
    /// Allocations of device memory that failed because it was exhausted.
    vram_exhausted,
    /// Allocations of host memory by the driver.
    host_allocations,
    /// Freed allocations of host memory.
    host_frees,
    /// Bytes of host memory that the driver has allocated now.
    host_live_bytes,
    /// Registrations (page-locking) of the program's own memory.
    registrations,
    /// Registrations that were undone.
    deregistrations,
    /// Bytes of the program's own memory that are registered now.
    registered_live_bytes,
    /// Ranges of the program's own memory that got attributes (shared virtual memory).
    svm_ranges_set,
    /// User-mode queues that were made.
    queues_created,
    /// User-mode queues that exist now.
    queues_live,
    /// Events that were made.
    events_created,
    /// Packets that the SDMA engines ran.
    sdma_packets,
    /// Copies by SDMA, rows of a rectangle counted as one copy.
    sdma_copies,
    /// Bytes copied by SDMA.
    sdma_copied_bytes,
    /// Fills by SDMA.
    sdma_fills,
    /// AQL packets that the command processors ran.
    aql_packets,
    /// Kernels that ran, AMD's own included.
    dispatches,
    /// Kernels of AMD's runtime that copy or fill memory.
    blit_dispatches,
    /// Kernels by which gpumem copies between any two layouts.
    layout_dispatches,
    /// Kernels of the program that ran as host functions.
    host_function_dispatches,
    /// Kernels that ran from their machine code, AMD's own included.
    machine_code_dispatches,
    /// Instructions that their waves have executed.
    instructions,
    /// Instructions that a kernel which was started can reach, and that are not known.
    unknown_instructions,
    /// Kernels that came to one of them.
    unknown_kernels,
    /// Accesses to memory that was not mapped for the GPU.
    faults,
}

/// A counter of one kind of happening.
#[derive(Debug)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, amount: u64) -> u64 {
        self.0.fetch_add(amount, Ordering::Relaxed) + amount
    }

    pub(crate) fn subtract(&self, amount: u64) {
        self.0.fetch_sub(amount, Ordering::Relaxed);
    }

    pub(crate) fn raise_to(&self, amount: u64) {
        self.0.fetch_max(amount, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The counters of this process.
pub(crate) fn stats() -> &'static Stats {
    &STATS
}

/// The counter of that name.
pub(crate) fn counter(name: &str) -> Option<u64> {
    stats().all().find(|(key, _)| *key == name).map(|(_, value)| value)
}

/// Writes the report to where `ROCSIM_STATS` says. Called at exit, and before a fault is reported because AMD's
/// runtime then aborts the process.
pub(crate) fn report() {
    let Some(target) = &Config::get().stats else { return };
    let text = json();
    match target {
        StatsTarget::Stderr => eprintln!("rocsim statistics: {text}"),
        StatsTarget::File(path) => {
            if let Err(error) = std::fs::write(path, text + "\n") {
                eprintln!("rocsim: cannot write {}: {error}", path.display());
            }
        }
    }
}

fn json() -> String {
    let config = Config::get();
    let mut text = format!("{{\"gpus\": {}, \"gfx\": \"{}\"", config.gpus, config.model.name);
    for (name, value) in stats().all() {
        text.push_str(&format!(", \"{name}\": {value}"));
    }
    text.push('}');
    text
}

/// Destructors of this library run after those of AMD's libraries, which depend on it.
#[used]
#[unsafe(link_section = ".fini_array")]
static AT_EXIT: extern "C" fn() = {
    extern "C" fn at_exit() {
        // A forked child that ends with `exit` has no counts, nor has a process that only loaded the library.
        if crate::exports::was_opened() && !crate::exports::is_forked() {
            report();
        }
    }
    at_exit
};

#[cfg(test)]
mod tests {
    #[test]
    fn counters_are_found_by_name() {
        // No other test of this process runs a kernel.
        assert_eq!(super::counter("unknown_kernels"), Some(0));
        assert_eq!(super::counter("no such counter"), None);
        assert!(super::json().contains("\"faults\": "));
    }
}
