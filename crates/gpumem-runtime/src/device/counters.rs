//! Counting what is done, so that tests and users can see it.

use parking_lot::Mutex;
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

macro_rules! counters {
    ($($(#[$doc:meta])* $field:ident $(, $count:ident)?;)*) => {
        /// What the runtime has asked of a device since it was opened.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        #[non_exhaustive]
        pub struct DeviceCounters { $($(#[$doc])* pub $field: u64,)* }

        #[derive(Debug, Default)]
        pub struct Counters { $($field: AtomicU64,)* streams: Mutex<StreamCounterList>, ended: Arc<StreamCounters> }

        impl Counters {
            $($(pub fn $count(&self) { self.$field.fetch_add(1, Ordering::Relaxed); })?)*

            /// Those of the device itself.
            fn own(&self) -> DeviceCounters {
                DeviceCounters { $($field: self.$field.load(Ordering::Relaxed),)* }
            }
        }
    };
}

counters! {
    /// Blocks of memory allocated by the driver.
    allocations, count_allocation;
    /// Blocks given back to the driver.
    releases, count_release;
    /// Copies enqueued, as driver calls.
    copies;
    /// Fills enqueued, as driver calls.
    fills;
    /// Events recorded to order streams or to wait for them. None on a single stream without waiting.
    records, count_record;
    /// Waits of one stream for another.
    waits, count_wait;
    /// Programs compiled from source text.
    compilations, count_compilation;
    /// Programs that had been compiled before, by this process or another.
    reuses, count_reuse;
}

impl Counters {
    /// A tally for a new stream.
    pub(crate) fn counters(&self) -> Arc<StreamCounters> {
        let counters = Arc::new(StreamCounters::default());
        let mut streams = self.streams.lock();
        // Looked through when their number has doubled: programs make streams by the hundred thousand.
        if streams.all.len() >= streams.most {
            self.take_over(&mut streams.all);
            streams.most = (2 * streams.all.len()).max(FEW);
        }
        streams.all.push(counters.clone());
        counters
    }

    /// The tally of streams that are not used any more, and so count nothing.
    pub(crate) fn of_ended(&self) -> Arc<StreamCounters> {
        self.ended.clone()
    }

    pub(crate) fn read(&self) -> DeviceCounters {
        let mut streams = self.streams.lock();
        self.take_over(&mut streams.all);
        let mut sum = self.own();
        for counters in &streams.all {
            counters.add_to(&mut sum);
        }
        sum
    }

    /// Keeps what streams that are gone have counted.
    fn take_over(&self, streams: &mut Vec<Arc<StreamCounters>>) {
        streams.retain_mut(|counters| match Arc::get_mut(counters) {
            Some(counters) => {
                let StreamCounters { records, waits, copies, fills } = counters;
                self.records.fetch_add(*records.get_mut(), Ordering::Relaxed);
                self.waits.fetch_add(*waits.get_mut(), Ordering::Relaxed);
                self.copies.fetch_add(*copies.get_mut(), Ordering::Relaxed);
                self.fills.fetch_add(*fills.get_mut(), Ordering::Relaxed);
                false
            }
            None => true,
        });
    }
}

/// So many tallies need no looking through.
const FEW: usize = 16;

/// The tallies of all streams, and of some that are gone.
#[derive(Debug, Default)]
struct StreamCounterList {
    all: Vec<Arc<StreamCounters>>,
    /// The number at which those of streams that are gone are taken over.
    most: usize,
}

/// What one stream counts, under its lock, where streams share nothing and no instruction needs to be locked.
#[derive(Debug, Default)]
pub(crate) struct StreamCounters {
    records: AtomicU64,
    waits: AtomicU64,
    copies: AtomicU64,
    fills: AtomicU64,
}

impl StreamCounters {
    fn add_to(&self, sum: &mut DeviceCounters) {
        sum.records += self.records.load(Ordering::Relaxed);
        sum.waits += self.waits.load(Ordering::Relaxed);
        sum.copies += self.copies.load(Ordering::Relaxed);
        sum.fills += self.fills.load(Ordering::Relaxed);
    }

    /// One record more. The caller holds the lock of the stream.
    #[inline]
    pub(crate) fn count_record(&self) {
        add_one(&self.records);
    }

    /// One wait more. The caller holds the lock of the stream.
    #[inline]
    pub(crate) fn count_wait(&self) {
        add_one(&self.waits);
    }

    /// One copy more. The caller holds the lock of the stream.
    #[inline]
    pub(crate) fn count_copy(&self) {
        add_one(&self.copies);
    }

    /// One fill more. The caller holds the lock of the stream.
    #[inline]
    pub(crate) fn count_fill(&self) {
        add_one(&self.fills);
    }
}

#[inline]
fn add_one(counter: &AtomicU64) {
    counter.store(counter.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_stream_has_counted_outlives_it() {
        let counters = Counters::default();
        let (first, second) = (counters.counters(), counters.counters());
        first.count_record();
        second.count_record();
        second.count_wait();
        assert_eq!((counters.read().records, counters.read().waits), (2, 1));
        drop(second);
        assert_eq!((counters.read().records, counters.read().waits), (2, 1));
        first.count_record();
        drop(first);
        let _third = counters.counters();
        assert_eq!((counters.read().records, counters.read().waits), (3, 1));
        assert_eq!(counters.streams.lock().all.len(), 1);
        for _ in 0..10 * FEW {
            counters.counters().count_wait();
        }
        assert!(counters.streams.lock().all.len() <= FEW + 1);
        assert_eq!(counters.read().waits, 1 + 10 * FEW as u64);
        let last = counters.counters();
        last.count_copy();
        last.count_fill();
        last.count_fill();
        assert_eq!((counters.read().copies, counters.read().fills), (1, 2));
        drop(last);
        assert_eq!((counters.read().copies, counters.read().fills), (1, 2));
    }
}
