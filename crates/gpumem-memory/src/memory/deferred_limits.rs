//! How much may be pending in the queue of deferred frees.

/// Environment variable: most items that may be pending.
pub const ENV_MAX_PENDING_COUNT: &str = "GPUMEM_MAX_PENDING_DEALLOCS_COUNT";
/// Environment variable: most bytes that may be pending, as a part of the device's memory.
pub const ENV_MAX_PENDING_RATIO: &str = "GPUMEM_MAX_PENDING_DEALLOCS_RATIO";

/// How much may be pending before an allocation gives it back.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DeferredLimits {
    /// Items: blocks of memory, streams, events, modules. 10 by default.
    pub items: usize,
    /// Bytes, of every kind of memory, as a part of the device's memory. 0.2 by default. Also how much memory of the host
    /// (pinned, mapped, managed) pools may keep unallocated.
    pub ratio: f64,
}

impl Default for DeferredLimits {
    fn default() -> Self {
        Self { items: 10, ratio: 0.2 }
    }
}

impl DeferredLimits {
    /// Returns the defaults, changed by the environment variables. An invalid variable is logged through `tracing` and
    /// ignored.
    pub fn from_environment() -> Self {
        Self::default().read(|name| std::env::var(name).ok())
    }

    fn read(mut self, variable: impl Fn(&str) -> Option<String>) -> Self {
        if let Some(text) = variable(ENV_MAX_PENDING_COUNT) {
            match text.trim().parse() {
                Ok(items) => self.items = items,
                Err(_) => gpumem_core::tell!(warn: text, "{ENV_MAX_PENDING_COUNT} is a number of items"),
            }
        }
        if let Some(text) = variable(ENV_MAX_PENDING_RATIO) {
            match text.trim().parse() {
                Ok(ratio) if (0.0..=1.0).contains(&ratio) => self.ratio = ratio,
                _ => gpumem_core::tell!(warn: text, "{ENV_MAX_PENDING_RATIO} is a number from 0 to 1"),
            }
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_sets_both_limits() {
        let read = |items: &str, ratio: &str| {
            let (items, ratio) = (items.to_owned(), ratio.to_owned());
            DeferredLimits::default().read(move |name| {
                Some(if name == ENV_MAX_PENDING_COUNT { items.clone() } else { ratio.clone() })
            })
        };
        assert_eq!(read(" 3", "0.5"), DeferredLimits { items: 3, ratio: 0.5 });
        assert_eq!(read("", "2"), DeferredLimits::default());
        assert_eq!(read("-1", "x"), DeferredLimits { items: 10, ratio: 0.2 });
        assert_eq!(DeferredLimits::default().read(|_| None), DeferredLimits { items: 10, ratio: 0.2 });
    }
}
