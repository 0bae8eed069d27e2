//! Ranges of the program's own memory with attributes: the driver's shared virtual memory.
//!
//! Without page faults that can be retried (XNACK off) a GPU reaches such memory only where an attribute says so.

use crate::abi::{SvmAttribute, svm};
use std::collections::BTreeMap;

/// The attributes of one range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Attributes {
    /// One bit for each node with access, migrating or in place.
    access: u32,
    in_place: u32,
    preferred: u32,
    prefetch: u32,
    flags: u32,
    granularity: u32,
}

impl Default for Attributes {
    fn default() -> Self {
        // The driver's defaults: coherent host access, 2 MiB granularity.
        Self {
            access: 0,
            in_place: 0,
            preferred: svm::NO_NODE,
            prefetch: svm::NO_NODE,
            flags: 3,
            granularity: 9,
        }
    }
}

impl Attributes {
    /// Applies one attribute, or says that it is none.
    fn set(&mut self, attribute: SvmAttribute) -> Result<(), ()> {
        let SvmAttribute { kind, value } = attribute;
        let bit = 1u32.checked_shl(value).unwrap_or(0);
        match kind {
            svm::PREFERRED_LOC => self.preferred = value,
            svm::PREFETCH_LOC => self.prefetch = value,
            svm::ACCESS => (self.access, self.in_place) = (self.access | bit, self.in_place & !bit),
            svm::ACCESS_IN_PLACE => (self.access, self.in_place) = (self.access | bit, self.in_place | bit),
            svm::NO_ACCESS => (self.access, self.in_place) = (self.access & !bit, self.in_place & !bit),
            svm::SET_FLAGS => self.flags |= value,
            svm::CLR_FLAGS => self.flags &= !value,
            svm::GRANULARITY => self.granularity = value,
            _ => return Err(()),
        }
        Ok(())
    }
}

/// Ranges of the program's own memory with attributes, by their first address.
#[derive(Debug, Default)]
pub(super) struct SvmRanges(BTreeMap<u64, (u64, Attributes)>);

impl SvmRanges {
    /// Cuts ranges in two at the address.
    fn split(&mut self, at: u64) {
        let Some((&start, &(end, attributes))) = self.0.range(..at).next_back() else { return };
        if end > at {
            self.0.insert(start, (at, attributes));
            self.0.insert(at, (end, attributes));
        }
    }

    /// Sets attributes of all of a range.
    pub(super) fn set(&mut self, start: u64, bytes: u64, attributes: &[SvmAttribute]) -> Result<(), ()> {
        let mut probe = Attributes::default();
        attributes.iter().try_for_each(|attribute| probe.set(*attribute))?;
        let end = start.checked_add(bytes).ok_or(())?;
        self.split(start);
        self.split(end);
        let mut position = start;
        let inside: Vec<(u64, u64)> = self.0.range(start..end).map(|(&s, &(e, _))| (s, e)).collect();
        for (range_start, range_end) in inside.into_iter().chain([(end, end)]) {
            if position < range_start {
                self.0.insert(position, (range_start, Attributes::default()));
            }
            position = range_end;
        }
        for (_, (_, values)) in self.0.range_mut(start..end) {
            attributes.iter().try_for_each(|attribute| values.set(*attribute))?;
        }
        Ok(())
    }

    /// Answers a query about a range: the values that hold for all of it.
    pub(super) fn get(&self, start: u64, bytes: u64, attributes: &mut [SvmAttribute]) -> Result<(), ()> {
        let end = start.checked_add(bytes).ok_or(())?;
        let first = self.0.range(..=start).next_back().filter(|(_, (range_end, _))| *range_end > start);
        let ranges: Vec<Attributes> = first
            .into_iter()
            .chain(self.0.range(start.saturating_add(1)..end))
            .map(|(_, (_, values))| *values)
            .collect();
        let covered = self.covers(start, end, |_| true);
        let common = |value: fn(&Attributes) -> u32| match ranges.split_first() {
            Some((first, rest)) if covered && rest.iter().all(|r| value(r) == value(first)) => value(first),
            _ => svm::NO_NODE,
        };
        for attribute in attributes {
            let bit = 1u32.checked_shl(attribute.value).unwrap_or(0);
            match attribute.kind {
                svm::PREFERRED_LOC => attribute.value = common(|values| values.preferred),
                svm::PREFETCH_LOC => attribute.value = common(|values| values.prefetch),
                svm::ACCESS | svm::ACCESS_IN_PLACE | svm::NO_ACCESS => {
                    attribute.kind = if !self.covers(start, end, |values| values.access & bit != 0) {
                        svm::NO_ACCESS
                    } else if ranges.iter().all(|values| values.in_place & bit != 0) {
                        svm::ACCESS_IN_PLACE
                    } else {
                        svm::ACCESS
                    };
                }
                svm::SET_FLAGS => {
                    attribute.value = ranges.iter().fold(u32::MAX, |all, values| all & values.flags);
                    if ranges.is_empty() {
                        attribute.value = Attributes::default().flags;
                    }
                }
                svm::CLR_FLAGS => attribute.value = !ranges.iter().fold(0, |any, values| any | values.flags),
                svm::GRANULARITY => {
                    attribute.value =
                        ranges.iter().map(|values| values.granularity).min().unwrap_or_default();
                }
                _ => return Err(()),
            }
        }
        Ok(())
    }

    /// Whether a GPU may use all of the range.
    pub(super) fn usable(&self, node: u32, start: u64, bytes: u64) -> bool {
        let bit = 1u32.checked_shl(node).unwrap_or(0);
        start.checked_add(bytes).is_some_and(|end| self.covers(start, end, |values| values.access & bit != 0))
    }

    /// Whether ranges that fit cover everything without a gap.
    fn covers(&self, start: u64, end: u64, fits: impl Fn(&Attributes) -> bool) -> bool {
        let mut position = start;
        while position < end {
            match self.0.range(..=position).next_back() {
                Some((_, (range_end, values))) if *range_end > position && fits(values) => {
                    position = *range_end
                }
                _ => return false,
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attribute(kind: u32, value: u32) -> SvmAttribute {
        SvmAttribute { kind, value }
    }

    #[test]
    fn access_is_granted_and_taken_back_for_parts() {
        let mut ranges = SvmRanges::default();
        assert!(ranges.set(0x10_000, 0x8000, &[attribute(svm::ACCESS, 1)]).is_ok());
        assert!(ranges.usable(1, 0x10_000, 0x8000));
        assert!(!ranges.usable(2, 0x10_000, 1));
        assert!(!ranges.usable(1, 0x17_fff, 2), "one byte beyond the end");
        assert!(ranges.set(0x12_000, 0x1000, &[attribute(svm::NO_ACCESS, 1)]).is_ok());
        assert!(ranges.usable(1, 0x11_fff, 1));
        assert!(!ranges.usable(1, 0x11_fff, 2));
        assert!(ranges.usable(1, 0x13_000, 0x5000));
    }

    #[test]
    fn gaps_between_ranges_are_filled_by_a_wider_one() {
        let mut ranges = SvmRanges::default();
        assert!(ranges.set(0x1000, 0x1000, &[attribute(svm::PREFERRED_LOC, 0)]).is_ok());
        assert!(ranges.set(0x4000, 0x1000, &[attribute(svm::PREFERRED_LOC, 0)]).is_ok());
        assert!(ranges.set(0, 0x8000, &[attribute(svm::ACCESS_IN_PLACE, 2)]).is_ok());
        assert!(ranges.usable(2, 0, 0x8000));
        let mut answer = [attribute(svm::ACCESS, 2), attribute(svm::PREFERRED_LOC, 7)];
        assert!(ranges.get(0, 0x8000, &mut answer).is_ok());
        assert_eq!(answer, [attribute(svm::ACCESS_IN_PLACE, 2), attribute(svm::PREFERRED_LOC, svm::NO_NODE)]);
        assert!(ranges.get(0x4000, 0x1000, &mut answer[1..]).is_ok());
        assert_eq!(answer[1].value, 0);
    }

    #[test]
    fn an_unknown_attribute_changes_nothing() {
        let mut ranges = SvmRanges::default();
        assert!(ranges.set(0, 0x1000, &[attribute(svm::ACCESS, 1), attribute(77, 1)]).is_err());
        assert!(!ranges.usable(1, 0, 1));
    }
}
