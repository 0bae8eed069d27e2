//! Traces of several devices as one.

use super::{format::Trace, indices::Table};
use std::{collections::HashMap, hash::Hash};

/// The index of each entry of one table in another, to which it is added where it is missing.
fn entered<T: Clone + Eq + Hash>(table: &mut Vec<T>, more: Vec<T>) -> Vec<u32> {
    let mut places = HashMap::new();
    for (place, entry) in table.iter().enumerate() {
        places.entry(entry.clone()).or_insert(place as u32);
    }
    let enter = |entry: T| {
        *places.entry(entry).or_insert_with_key(|entry| {
            table.push(entry.clone());
            (table.len() - 1) as u32
        })
    };
    more.into_iter().map(enter).collect()
}

impl Trace {
    /// This trace and another one of the same process as one, on one time axis.
    #[must_use]
    pub fn merge(mut self, mut other: Self) -> Self {
        let start = self.start.min(other.start);
        let end = |trace: &Self| trace.start.saturating_add(trace.span);
        let end = end(&self).max(end(&other));
        for trace in [&mut self, &mut other] {
            let later = trace.start - start;
            trace.events.iter_mut().for_each(|event| event.time = event.time.saturating_add(later));
        }
        (self.start, self.span) = (start, end - start);
        self.lost = self.lost.saturating_add(other.lost);

        let [devices, .., allocations] = self.lengths();
        let added = |from: usize, count: usize| (from as u32..).take(count).collect();
        let maps: [Vec<u32>; 6] = [
            // A device that was opened twice was two devices.
            added(devices, other.devices.len()),
            entered(&mut self.streams, other.streams),
            entered(&mut self.threads, other.threads),
            entered(&mut self.names, other.names),
            entered(&mut self.operations, other.operations),
            added(allocations, other.allocations.len()),
        ];
        // An index of nothing stays one.
        let follow = |(table, index): (Table, &mut u32)| {
            *index = maps[table as usize].get(*index as usize).copied().unwrap_or(u32::MAX);
        };
        other.allocations.iter_mut().for_each(|allocation| allocation.indices().for_each(follow));
        other.events.iter_mut().for_each(|event| event.indices().for_each(follow));
        self.devices.append(&mut other.devices);
        self.allocations.append(&mut other.allocations);
        self.events.append(&mut other.events);
        self.events.sort_by_key(|event| event.time);
        self
    }
}
