//! Counts operations, for tests and users.

use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! counters {
    ($($(#[$doc:meta])* $field:ident, $count:ident;)*) => {
        /// Counts of the runtime's requests to a device since it was opened.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        #[non_exhaustive]
        pub struct DeviceCounters { $($(#[$doc])* pub $field: u64,)* }

        /// The counters of a device, which all of its streams share.
        #[derive(Debug, Default)]
        pub struct Counters { $($field: AtomicU64,)* }

        // Relaxed: numbers for reports.
        impl Counters {
            $(
                #[inline]
                pub fn $count(&self) { self.$field.fetch_add(1, Ordering::Relaxed); }
            )*

            pub fn read(&self) -> DeviceCounters {
                DeviceCounters { $($field: self.$field.load(Ordering::Relaxed),)* }
            }
        }
    };
}

counters! {
    /// Blocks of memory allocated by the driver.
    allocations, count_allocation;
    /// Blocks freed by the driver.
    releases, count_release;
    /// Copies enqueued, as driver calls.
    copies, count_copy;
    /// Fills enqueued, as driver calls.
    fills, count_fill;
    /// Events recorded to order streams or to wait for them. None on a single stream without waiting.
    records, count_record;
    /// Waits of one stream for another.
    waits, count_wait;
    /// Programs compiled from source text.
    compilations, count_compilation;
    /// Programs that had been compiled before, by this process or another.
    reuses, count_reuse;
}
